// test: printed by genrw for gfx942, 157 workgroups of 512
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

GEN_KERNEL(512)
test(const gen::half* __restrict__ x, float* __restrict__ z_output)
{
    const int base = gen::workgroup_id() * 32 + (gen::local_id() % 4) * 8;
    const int idiv = gen::local_id() / 4;
    const int imin = gen::min(base, 4992);
    GEN_LDS(float, lds, 2048);
    gen::array<sum_float::acc, 8> lane_sum;
    GEN_UNROLL
    for (int i = 0; i < 8; ++i) lane_sum[i] = sum_float::identity();
    GEN_UNROLL_BY(8)
    for (int step = 0; step < 32; ++step) {
        const auto x_in = gen::strided_load<8, 32, 8>(x, imin + (step * 128 + idiv) * 5000);
        GEN_UNROLL
        for (int i = 0; i < 8; ++i) {
            const float f = gen::convert<float>(x_in[i]);
            lane_sum[i] = sum_float::combine(lane_sum[i], f);
        }
    }
    const auto s = gen::reduce_parts<sum_float, 128, 4, false>(lane_sum, lds);
    if (base < 5000 & idiv == 0) gen::strided_store<8, 32, 8>(z_output, base, s);
}
