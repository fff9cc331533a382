// test: printed by genrw for gfx942, 4096 workgroups of 128
//
// # Division of each row by its root mean square, then a scale.
// x = @param:x -> bf16{4096, 2048}
// scale = @param:scale -> bf16{2048}
// squares = mul(x, x)
// mean = reduce_mean[axes={1}](squares)
// guarded = add(mean, 1e-6)
// inverse = rsqrt(guarded)
// normal = mul(x, inverse)
// y = mul(normal, scale)
// @return(y)
#include "gen.hpp"

namespace gen {
/// The quotient by a reciprocal, within 2.4e-7 of it, wherever in a float's range both are; where it is to be `exact`, quotients
/// that a float holds are these. Divisors whose reciprocals are no normal numbers are scaled, and x with them. What a quotient
/// leaves of x is exact, and once added the error is less than rounding it; an infinity leaves no number.
GEN_DEVICE float div_near(float x, float y)
{
    const float size = gen::abs(y);
    const float scale = size > 8.507059e+37f ? 0.0625f : (size < 1.1754944e-38f ? 16777216.0f : 1.0f);
    return x * scale * gen::recip_near(y * scale);
}
}  // namespace gen

/// The sum; half and bf16 are added up in float.
struct sum_float {
    using acc = float;
    static GEN_DEVICE acc identity() { return 0.0f; }
    static GEN_DEVICE acc combine(acc a, acc b) { return a + b; }
};

GEN_KERNEL(128)
test(const gen::bf16* __restrict__ x,
     const gen::bf16* __restrict__ scale,
     gen::bf16* __restrict__ z_output)
{
    const int first = gen::local_id() * 8;
    const int base = first + gen::workgroup_id() * 2048;
    const auto x_in = gen::strided_load<16, 1024, 8>(x, base);
    GEN_LDS(float, lds, 2);
    const auto scale_in = gen::strided_load<16, 1024, 8>(scale, first);
    gen::array<float, 16> convert;
    gen::array<float, 16> mul;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        convert[i] = gen::convert<float>(x_in[i]);
        mul[i] = convert[i] * convert[i];
    }
    const float lane_sum = gen::lane_reduce<sum_float>(mul);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    const float block_sum = gen::reduce_waves<sum_float, 2, false>(wave_sum, lds);
    const float rsqrt = gen::rsqrt(gen::div_near(block_sum, 2048.0f) + 9.983778e-07f);
    gen::array<gen::bf16, 16> y;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        y[i] = gen::convert<gen::bf16>(convert[i] * rsqrt * gen::convert<float>(scale_in[i]));
    }
    gen::strided_store<16, 1024, 8>(z_output, base, y);
}
