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
    const int idiv = gen::global_id<256>() / 16;
    const int first2 = (gen::local_id() % 16) * 4;
    const auto inside2 = gen::chunks_below<64, 4>(first2, (gen::global_id<256>() < 5280 ? 1000 : 0));
    const int imin = gen::min(idiv, 329);
    const auto inside3 = gen::chunks_below<64, 4>(first2, 1000);
    gen::array<float, 64> x_in;
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        const int first3 = (first2 + i / 4 * 64 + i % 4) * 33;
        x_in[i] = inside3[i] ? x[(imin / 33) * 33000 + imin % 33 + first3] : max_float::identity();
    }
    const float lane_max = gen::lane_reduce<max_float>(x_in);
    const float m = gen::dpp_reduce<max_float, 16>(lane_max);
    gen::array<float, 64> d;
    gen::array<float, 64> where;
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        d[i] = x_in[i] - m;
        const float e = gen::exp(d[i]);
        where[i] = inside3[i] ? e : sum_float::identity();
    }
    const float lane_sum = gen::lane_reduce<sum_float>(where);
    const float s = gen::dpp_reduce<sum_float, 16>(lane_sum);
    const float l = gen::log(s);
    GEN_UNROLL
    for (int i = 0; i < 64; ++i) {
        const int first3 = (first2 + i / 4 * 64 + i % 4) * 33;
        const float y = d[i] - l;
        if (inside2[i]) z_output[(idiv / 33) * 33000 + idiv % 33 + first3] = y;
    }
}
