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
    const int first3 = (gen::local_id() % 128) * 4;
    const bool inside = first3 < 300;
    const int base2 = gen::workgroup_id() * 2 + gen::local_id() / 128;
    const bool ige = first3 >= 300;
    const auto bias_in = gen::strided_load<4, 1024, 4>(bias, first3);
    gen::array<float, 4> y;
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        const int index = first3 + i;
        const float a_in = inside ? a[base2 * 300 + index] : 0.0f;
        const float b_in = ige ? b[base2 * 212 + index + -300] : 0.0f;
        const float positive = gen::max(b_in, 0.0f);
        const float joined = inside ? a_in : positive;
        y[i] = joined + bias_in[i];
    }
    gen::strided_store<4, 1024, 4>(z_output, gen::workgroup_id() * 1024 + gen::local_id() * 4, y);
}
