// test: printed by genrw for gfx942, 512 workgroups of 128
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

GEN_KERNEL(128)
test(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ z_output)
{
    const int first2 = gen::local_id() * 4;
    const auto w_in = gen::strided_load<8, 512, 4>(w, first2 + gen::workgroup_id() * 1024);
    GEN_LDS(float, lds, 2);
    gen::array<float, 8> m;
    GEN_UNROLL
    for (int i = 0; i < 8; ++i) {
        const int index = first2 + i / 4 * 512 + i % 4;
        const float p = index >= 1 & index < 1023 ? x[gen::workgroup_id() * 1022 - 1 + index] : 0.0f;
        m[i] = p * w_in[i];
    }
    const float lane_sum = gen::lane_reduce<sum_float>(m);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    const float s = gen::reduce_waves<sum_float, 2, false>(wave_sum, lds);
    if (gen::local_id() == 0) z_output[gen::workgroup_id()] = s;
}
