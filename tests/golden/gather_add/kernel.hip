// test: printed by genrw for gfx942, 2048 workgroups of 256
//
// # Rows picked by index (negative ones count from the end), plus another tensor.
// table = @param:table -> float{30000, 256}
// tokens = @param:tokens -> int32{64, 128}
// position = @param:position -> float{128, 256}
// rows = gather[axis=0](table, tokens)
// y = add(rows, position)
// @return(y)
#include "gen.hpp"

namespace gen {
/// The entry that an index names: negative ones count from the end, those out of range are the first or the last.
template <class T>
GEN_DEVICE int64 entry(T v, int64 length)
{
    const int64 i = v < 0 ? static_cast<int64>(v) + length : static_cast<int64>(v);
    return i < 0 ? 0 : i >= length ? length - 1 : i;
}
}  // namespace gen

GEN_KERNEL(256)
test(const float* __restrict__ table,
     const int* __restrict__ tokens,
     const float* __restrict__ position,
     float* __restrict__ z_output)
{
    const int base = gen::workgroup_id() * 1024 + gen::local_id() * 4;
    const int tokens_in = tokens[base / 256];
    const auto rows = gen::strided_load<4, 1024, 4>(table, base % 256 + gen::entry(tokens_in, 30000) * 256);
    const auto position_in = gen::strided_load<4, 1024, 4>(position, base % 32768);
    gen::array<float, 4> y;
    GEN_UNROLL
    for (int i = 0; i < 4; ++i) {
        y[i] = rows[i] + position_in[i];
    }
    gen::strided_store<4, 1024, 4>(z_output, base, y);
}
