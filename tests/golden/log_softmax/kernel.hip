// test: printed by genrw for gfx942, 21 workgroups of 256
//
// # The logarithm of softmax along the middle axis of three.
// x = @param:x -> float{10, 1000, 33}
// m = reduce_max[axes={1}](x)
// d = sub(x, m)
// e = exp(d)
// s = reduce_sum[axes={1}](e)
// l = log(s)
// y = sub(d, l)
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
test(const float* __restrict__ x, float* __restrict__ z_output)
{
    const int idiv = gen::global_id() / 16;
    const bool inside = gen::global_id() < 5280;
    const int imin = gen::min(idiv, 329);
    const float identity = max_float::identity();
    const float identity2 = sum_float::identity();
    gen::array<float, 64> x_in2;
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        const int index = (gen::local_id() % 16) * 4 + i / 4 * 64 + i % 4;
        const int first3 = index * 33;
        const bool inside2 = index < 1000;
        const int base4 = (imin / 33) * 33000 + imin % 33 + first3;
        x_in2[i] = inside2 ? x[base4] : identity;
    }
    const float lane_max = gen::lane_reduce<max_float>(x_in2);
    const float m = gen::dpp_reduce<max_float, 16>(lane_max);
    gen::array<float, 64> d;
    gen::array<float, 64> where;
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        const int index = (gen::local_id() % 16) * 4 + i / 4 * 64 + i % 4;
        const int first3 = index * 33;
        const bool inside2 = index < 1000;
        const int base4 = (imin / 33) * 33000 + imin % 33 + first3;
        const float x_in = inside2 ? x[base4] : 0.0f;
        d[i] = x_in - m;
        const float e = gen::exp(d[i]);
        where[i] = inside2 ? e : identity2;
    }
    const float lane_sum = gen::lane_reduce<sum_float>(where);
    const float s = gen::dpp_reduce<sum_float, 16>(lane_sum);
    const float l = gen::log(s);
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        const int index = (gen::local_id() % 16) * 4 + i / 4 * 64 + i % 4;
        const int first3 = index * 33;
        const bool inside2 = index < 1000;
        const float y = d[i] - l;
        if (inside && inside2) z_output[(idiv / 33) * 33000 + idiv % 33 + first3] = y;
    }
}
