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
    const int idiv = gen::workgroup_id() / 32;
    const int imod = gen::workgroup_id() % 32;
    GEN_LDS(float, lds, 4160);
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        const int index = gen::local_id() + i * 1024;
        const int idiv2 = index / 64;
        const int imod2 = index % 64;
        const float x_in = x[idiv * 64 + imod * 65536 + imod2 + idiv2 * 1024];
        lds[idiv2 * 65 + imod2] = x_in;
    }
    gen::barrier();
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        const int index = gen::local_id() + i * 1024;
        const int idiv2 = index / 64;
        const int imod2 = index % 64;
        const int base3 = idiv * 131072 + imod * 64 + idiv2 * 2048 + imod2;
        const float t = lds[imod2 * 65 + idiv2];
        const float y_in = y[base3];
        const float z = t + y_in;
        z_output[base3] = z;
    }
}
