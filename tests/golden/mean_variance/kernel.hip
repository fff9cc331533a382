// test: printed by genrw for gfx942, 512 workgroups of 256
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

GEN_KERNEL(256)
test(const float* __restrict__ x, float* __restrict__ z_output, float* __restrict__ z_output1)
{
    const int idiv = gen::global_id<256>() / 64;
    const bool ieq = gen::local_id() % 64 == 0;
    const auto x_in = gen::strided_load<24, 256, 4>(x, gen::lane_id() * 4 + idiv * 1536);
    const float lane_sum = gen::lane_reduce<sum_float>(x_in);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    const float mean = wave_sum / 1536.0f;
    if (ieq) z_output[idiv] = mean;
    gen::array<float, 24> squares;
    GEN_UNROLL
    for (int i = 0; i < 24; ++i) {
        const float centred = x_in[i] - mean;
        squares[i] = centred * centred;
    }
    const float lane_sum2 = gen::lane_reduce<sum_float>(squares);
    const float wave_sum2 = gen::dpp_reduce<sum_float, 64>(lane_sum2);
    const float variance = wave_sum2 / 1536.0f;
    if (ieq) z_output1[idiv] = variance;
}
