// test: printed by genrw for gfx942, 1000 workgroups of 256
//
// # The position of each row's largest element, the first of several.
// x = @param:x -> float{1000, 5000}
// i = argmax[axis=1](x)
// @return(i)
#include "gen.hpp"

/// The position of the largest element, the first of several; NaN wins.
struct argmax_float {
    struct acc { float value; int index; };
    static GEN_DEVICE acc identity() { return {gen::lowest<float>(), gen::highest<int>()}; }
    static GEN_DEVICE acc element(float x, long long index) { return {x, static_cast<int>(index)}; }
    static GEN_DEVICE acc combine(acc a, acc b) { return {gen::max(a.value, b.value), gen::min(a.value == gen::max(a.value, b.value) || gen::isnan(a.value) ? a.index : gen::highest<int>(), b.value == gen::max(a.value, b.value) || gen::isnan(b.value) ? b.index : gen::highest<int>())}; }
    static GEN_DEVICE gen::int64 finish(acc a, long long n) { return static_cast<gen::int64>(a.index); }
};

GEN_KERNEL(256)
test(const float* __restrict__ x, gen::int64* __restrict__ z_output)
{
    const int first = gen::local_id() * 4;
    const auto inside = gen::chunks_below<1024, 4>(first, 5000);
    const auto x_in = gen::strided_load<20, 1024, 4>(x, first + gen::workgroup_id() * 5000, inside, float());
    GEN_LDS(argmax_float::acc, lds, 4);
    gen::array<argmax_float::acc, 20> where;
    GEN_UNROLL
    for (int i = 0; i < 20; ++i) {
        where[i] = inside[i] ? argmax_float::element(x_in[i], first + i / 4 * 1024 + i % 4) : argmax_float::identity();
    }
    const argmax_float::acc lane_argmax = gen::lane_reduce<argmax_float>(where);
    const argmax_float::acc wave_argmax = gen::dpp_reduce<argmax_float, 64>(lane_argmax);
    const argmax_float::acc block_argmax = gen::reduce_waves<argmax_float, 4, false>(wave_argmax, lds);
    const gen::int64 i_ = argmax_float::finish(block_argmax, 5000);
    if (gen::local_id() == 0) z_output[gen::workgroup_id()] = i_;
}
