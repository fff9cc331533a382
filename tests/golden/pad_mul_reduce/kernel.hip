// test: printed by genrw for gfx942, 128 workgroups of 256
//
// # A padded operand, multiplied and summed: the pad costs a comparison, no memory.
// x = @param:x -> float{512, 1022}
// w = @param:w -> float{512, 1024}
// p = pad[pads={0, 1, 0, 1}](x)
// m = mul(p, w)
// s = reduce_sum[axes={1}](m)
// @return(s)
#include "gen.hpp"

/// The sum; half and bf16 are added up in float.
struct sum_float {
    using acc = float;
    static GEN_DEVICE acc identity() { return 0.0f; }
    static GEN_DEVICE acc combine(acc a, acc b) { return a + b; }
};

GEN_KERNEL(256)
test(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ z_output)
{
    const int idiv = gen::global_id() / 64;
    const int first2 = gen::lane_id() * 4;
    const auto w_in = gen::strided_load<16, 256, 4>(w, first2 + idiv * 1024);
    gen::array<float, 16> m;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        const int index = first2 + i / 4 * 256 + i % 4;
        const float p = index >= 1 && index < 1023 ? x[idiv * 1022 - 1 + index] : 0.0f;
        m[i] = p * w_in[i];
    }
    const float lane_sum = gen::lane_reduce<sum_float>(m);
    const float s = gen::dpp_reduce<sum_float, 64>(lane_sum);
    if (gen::local_id() % 64 == 0) z_output[idiv] = s;
}
