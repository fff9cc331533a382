// test: printed by genrw for gfx942, 8192 workgroups of 128
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

GEN_KERNEL(128)
test(const gen::half* __restrict__ x, gen::half* __restrict__ z_output)
{
    const int base = gen::local_id() * 8 + gen::workgroup_id() * 4096;
    const auto x_in = gen::strided_load<32, 1024, 8>(x, base);
    GEN_LDS(float, lds, 2);
    GEN_LDS(float, lds2, 2);
    gen::array<float, 32> convert;
    GEN_UNROLL
    for (int i = 0; i < 32; ++i) {
        convert[i] = gen::convert<float>(x_in[i]);
    }
    const float lane_max = gen::lane_reduce<max_float>(convert);
    const float wave_max = gen::dpp_reduce<max_float, 64>(lane_max);
    const float block_max = gen::reduce_waves<max_float, 2, false>(wave_max, lds);
    gen::array<float, 32> exp;
    GEN_UNROLL
    for (int i = 0; i < 32; ++i) {
        exp[i] = gen::exp(convert[i] - block_max);
    }
    const float lane_sum = gen::lane_reduce<sum_float>(exp);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    const float block_sum = gen::reduce_waves<sum_float, 2, false>(wave_sum, lds2);
    gen::array<gen::half, 32> y;
    GEN_UNROLL
    for (int i = 0; i < 32; ++i) {
        y[i] = gen::convert<gen::half>(exp[i] / block_sum);
    }
    gen::strided_store<32, 1024, 8>(z_output, base, y);
}
