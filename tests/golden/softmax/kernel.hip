// test: printed by genrw for gfx942, 8192 workgroups of 256
//
// # Row softmax of a half matrix: one kernel, computed in float.
// x = @param:x -> half{8192, 4096}
// m = reduce_max[axes={1}](x)
// d = sub(x, m)                       # {8192, 1} broadcasts along length-1 axes
// e = exp(d)
// s = reduce_sum[axes={1}](e)
// y = div(e, s)
// @return(y)
#include "gen.hpp"

namespace gen {
/// The power by the hardware's own of 2, within 5e-6 of it; what is below 1.2e-38 may be 0.
GEN_DEVICE float exp_short(float x)
{
    return gen::exp2_near(1.442695f * x);
}
}  // namespace gen

namespace gen {
/// The quotient of numbers in a half's range, by a reciprocal where that is an instruction: within 2.4e-7 of it.
GEN_DEVICE float div_short(float x, float y)
{
    return x * gen::recip_near(y);
}
}  // namespace gen

/// The largest element; NaN wins.
struct max_half {
    using acc = gen::half;
    static GEN_DEVICE acc identity() { return gen::lowest<gen::half>(); }
    template <class T>
    static GEN_DEVICE T combine(T a, T b) { return gen::max(a, b); }
};

/// The largest element; NaN wins.
struct max_float {
    using acc = float;
    static GEN_DEVICE acc identity() { return gen::lowest<float>(); }
    static GEN_DEVICE acc combine(acc a, acc b) { return gen::max(a, b); }
};

/// The sum; half and bf16 are added up in float.
struct sum_float {
    using acc = float;
    static GEN_DEVICE acc identity() { return 0.0f; }
    static GEN_DEVICE acc combine(acc a, acc b) { return a + b; }
};

GEN_KERNEL(256)
test(const gen::half* __restrict__ x, gen::half* __restrict__ z_output)
{
    const int base = gen::local_id() * 8 + gen::workgroup_id() * 4096;
    const auto x_in = gen::strided_load<16, 2048, 8>(x, base);
    const gen::half lane_max = gen::lane_reduce<max_half>(x_in);
    const float convert2 = gen::convert<float>(lane_max);
    const float wave_max = gen::dpp_reduce<max_float, 64>(convert2);
    GEN_LDS(float, lds, 4);
    const float block_max = gen::reduce_waves<max_float, 4, false>(wave_max, lds);
    GEN_LDS(float, lds2, 4);
    gen::array<float, 16> exp_short;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        exp_short[i] = gen::exp_short(gen::convert<float>(x_in[i]) - block_max);
    }
    const float lane_sum = gen::lane_reduce<sum_float>(exp_short);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    const float block_sum = gen::reduce_waves<sum_float, 4, false>(wave_sum, lds2);
    gen::array<gen::half, 16> y;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        y[i] = gen::convert<gen::half>(gen::div_short(exp_short[i], block_sum));
    }
    gen::strided_store<16, 2048, 8>(z_output, base, y);
}
