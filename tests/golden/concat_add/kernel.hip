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
    const auto a_in = gen::strided_load<4, 1024, 4>(a, first3 + base2 * 300, inside, 0.0f);
    const auto b_in = gen::strided_load<4, 1024, 4>(b, first3 + base2 * 212 + -300, first3 >= 300, 0.0f);
    const auto bias_in = gen::strided_load<4, 1024, 4>(bias, first3);
    gen::array<float, 4> y;
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        const float positive = gen::max(b_in[i], 0.0f);
        const float joined = inside ? a_in[i] : positive;
        y[i] = joined + bias_in[i];
    }
    gen::strided_store<4, 1024, 4>(z_output, gen::workgroup_id() * 1024 + gen::local_id() * 4, y);
}
