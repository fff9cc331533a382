// test: printed by genrw for gfx942, 313 workgroups of 256
//
// # Sums down the columns: neighbouring lanes take neighbouring columns.
// x = @param:x -> half{4096, 5000}
// f = convert[target_type=float](x)
// s = reduce_sum[axes={0}](f)
// @return(s)
#include "gen.hpp"

/// The sum; half and bf16 are added up in float.
struct sum_float {
    using acc = float;
    static GEN_DEVICE acc identity() { return 0.0f; }
    static GEN_DEVICE acc combine(acc a, acc b) { return a + b; }
};

GEN_KERNEL(256)
test(const gen::half* __restrict__ x, float* __restrict__ z_output)
{
    const int idiv = gen::global_id() / 16;
    const int imod = gen::local_id() % 16;
    const int imin = gen::min(idiv, 4999);
    gen::array<sum_float::acc, 16> lane_sum_acc;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) lane_sum_acc[i] = sum_float::identity();
    for (int step = 0; step < 16; ++step) {
        const auto x_in = gen::strided_load<16, 80000, 1>(x, (step * 256 + imod) * 5000 + imin);
        GEN_UNROLL
        for (int i = 0; i < 16; ++i) {
            const float f = gen::convert<float>(x_in[i]);
            lane_sum_acc[i] = sum_float::combine(lane_sum_acc[i], f);
        }
    }
    const float lane_sum = gen::lane_reduce<sum_float>(lane_sum_acc);
    const float s = gen::dpp_reduce<sum_float, 16>(lane_sum);
    if (idiv < 5000 && imod == 0) z_output[idiv] = s;
}
