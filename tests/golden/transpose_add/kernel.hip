// test: printed by genrw for gfx942, 512 workgroups of 1024
//
// # A transposed operand goes through workgroup memory in tiles, so that all reads are along rows.
// x = @param:x -> float{2048, 1024}
// y = @param:y -> float{1024, 2048}
// t = transpose[permutation={1, 0}](x)
// z = add(t, y)
// @return(z)
#include "gen.hpp"

GEN_KERNEL(1024)
test(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z_output)
{
    const int first = (gen::local_id() % 16) * 4;
    const int idiv = gen::local_id() / 16;
    const int idiv2 = gen::workgroup_id() / 32;
    const int imod2 = gen::workgroup_id() % 32;
    const int base3 = first + idiv * 2048 + idiv2 * 131072 + imod2 * 64;
    GEN_LDS(float, lds, 4160);
    const auto x_in = gen::strided_load<4, 4096, 4>(x, first + idiv * 1024 + idiv2 * 64 + imod2 * 65536);
    const auto y_in = gen::strided_load<4, 4096, 4>(y, base3);
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        lds[first + idiv * 65 + i] = x_in[i];
    }
    gen::barrier();
    gen::array<float, 4> z;
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        const float t = lds[first * 65 + idiv + i * 65];
        z[i] = t + y_in[i];
    }
    gen::strided_store<4, 4096, 4>(z_output, base3, z);
}
