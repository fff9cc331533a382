// test: printed by genrw for gfx942, 8192 workgroups of 256
//
// # Layer normalisation with scale and shift: one kernel, a row in registers.
// x = @param:x -> half{8192, 4096}
// scale = @param:scale -> half{4096}
// shift = @param:shift -> half{4096}
// mean = reduce_mean[axes={1}](x)
// centred = sub(x, mean)
// squares = mul(centred, centred)
// variance = reduce_mean[axes={1}](squares)
// guarded = add(variance, 1e-5)
// inverse = rsqrt(guarded)
// normal = mul(centred, inverse)
// scaled = mul(normal, scale)
// y = add(scaled, shift)
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

GEN_KERNEL(256)
test(const gen::half* __restrict__ x,
     const gen::half* __restrict__ scale,
     const gen::half* __restrict__ shift,
     gen::half* __restrict__ z_output)
{
    const int first = gen::local_id() * 8;
    const int base = first + gen::workgroup_id() * 4096;
    const auto x_in = gen::strided_load<16, 2048, 8>(x, base);
    GEN_LDS(float, lds, 4);
    GEN_LDS(float, lds2, 4);
    const auto scale_in = gen::strided_load<16, 2048, 8>(scale, first);
    const auto shift_in = gen::strided_load<16, 2048, 8>(shift, first);
    gen::array<float, 16> convert;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        convert[i] = gen::convert<float>(x_in[i]);
    }
    const float lane_sum = gen::lane_reduce<sum_float>(convert);
    const float wave_sum = gen::dpp_reduce<sum_float, 64>(lane_sum);
    const float block_sum = gen::reduce_waves<sum_float, 4, false>(wave_sum, lds);
    const float div_near = gen::div_near(block_sum, 4096.0f);
    gen::array<float, 16> sub;
    gen::array<float, 16> mul;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        sub[i] = convert[i] - div_near;
        mul[i] = sub[i] * sub[i];
    }
    const float lane_sum2 = gen::lane_reduce<sum_float>(mul);
    const float wave_sum2 = gen::dpp_reduce<sum_float, 64>(lane_sum2);
    const float block_sum2 = gen::reduce_waves<sum_float, 4, false>(wave_sum2, lds2);
    const float rsqrt = gen::rsqrt(gen::div_near(block_sum2, 4096.0f) + 1.001358e-05f);
    gen::array<gen::half, 16> y;
    GEN_UNROLL
    for (int i = 0; i < 16; ++i) {
        const float fma = gen::fma(sub[i] * rsqrt, gen::convert<float>(scale_in[i]), gen::convert<float>(shift_in[i]));
        y[i] = gen::convert<gen::half>(fma);
    }
    gen::strided_store<16, 2048, 8>(z_output, base, y);
}
