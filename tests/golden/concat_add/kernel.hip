// test: printed by genrw for gfx942, 512 workgroups of 256
//
// # Two tensors side by side, one of them computed on the way, plus a bias.
// a = @param:a -> float{1024, 300}
// b = @param:b -> float{1024, 212}
// bias = @param:bias -> float{512}
// positive = relu(b)
// joined = concat[axis=1](a, positive)
// y = add(joined, bias)
// @return(y)
#include "gen.hpp"

GEN_KERNEL(256)
test(const float* __restrict__ a,
     const float* __restrict__ b,
     const float* __restrict__ bias,
     float* __restrict__ z_output)
{
    const int base = gen::workgroup_id() * 1024 + gen::local_id() * 4;
    const int imod = base % 512;
    const bool inside = imod < 300;
    const int idiv = base / 512;
    const auto a_in = gen::strided_load<4, 1024, 4>(a, imod + idiv * 300, inside, float());
    const auto b_in = gen::strided_load<4, 1024, 4>(b, imod + idiv * 212 - 300, imod >= 300, float());
    const auto bias_in = gen::strided_load<4, 1024, 4>(bias, imod);
    gen::array<float, 4> y;
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        const float positive = gen::max(b_in[i], 0.0f);
        const float joined = inside ? a_in[i] : positive;
        y[i] = joined + bias_in[i];
    }
    gen::strided_store<4, 1024, 4>(z_output, base, y);
}
