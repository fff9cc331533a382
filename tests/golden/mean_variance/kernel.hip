// test: printed by genrw for gfx942, 2048 workgroups of 128
//
// # Two results from one walk over the rows.
// x = @param:x -> float{2048, 1536}
// mean = reduce_mean[axes={1}](x)
// centred = sub(x, mean)
// squares = mul(centred, centred)
// variance = reduce_mean[axes={1}](squares)
// @return(mean, variance)
#include "gen.hpp"

/// The sum; half and bf16 are added up in float.
struct sum_float {
    using acc = float;
    static GEN_DEVICE acc identity() { return 0.0f; }
    static GEN_DEVICE acc combine(acc a, acc b) { return a + b; }
};

GEN_KERNEL(128)
test(const float* __restrict__ x, float* __restrict__ z_output, float* __restrict__ z_output1)
{
    const bool ieq = gen::local_id() == 0;
    const auto x_in = gen::strided_load<12, 512, 4>(x, gen::local_id() * 4 + gen::workgroup_id() * 1536);
    const float lane_sum = gen::lane_reduce<sum_float>(x_in);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    GEN_LDS(float, lds, 2);
    const float block_sum = gen::reduce_waves<sum_float, 2, false>(wave_sum, lds);
    const float mean = block_sum / 1536.0f;
    if (ieq) z_output[gen::workgroup_id()] = mean;
    GEN_LDS(float, lds2, 2);
    gen::array<float, 12> squares;
    GEN_UNROLL
    for (int i = 0; i < 12; ++i) {
        const float centred = x_in[i] - mean;
        squares[i] = centred * centred;
    }
    const float lane_sum2 = gen::lane_reduce<sum_float>(squares);
    const float wave_sum2 = gen::dpp_reduce<sum_float, 64>(lane_sum2);
    const float block_sum2 = gen::reduce_waves<sum_float, 2, false>(wave_sum2, lds2);
    const float variance = block_sum2 / 1536.0f;
    if (ieq) z_output1[gen::workgroup_id()] = variance;
}
