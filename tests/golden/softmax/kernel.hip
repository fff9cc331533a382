// main_: printed by genrw for gfx942, 2048 workgroups of 256
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

GEN_KERNEL(256)
main_(const gen::half* __restrict__ x, gen::half* __restrict__ z_output)
{
    const int base = gen::lane_id() * 8 + (gen::global_id() / 64) * 4096;
    const auto x_in = gen::strided_load<64, 512, 8>(x, base);
    gen::array<float, 64> convert;
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        convert[i] = gen::convert<float>(x_in[i]);
    }
    const float lane_max = gen::lane_reduce<max_float>(convert);
    const float wave_max = gen::dpp_reduce<max_float, 64>(lane_max);
    gen::array<float, 64> exp;
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        exp[i] = gen::exp((convert[i] - wave_max));
    }
    const float lane_sum = gen::lane_reduce<sum_float>(exp);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    gen::array<gen::half, 64> y;
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        y[i] = gen::convert<gen::half>(exp[i] / wave_sum);
    }
    gen::strided_store<64, 512, 8>(z_output, base, y);
}
