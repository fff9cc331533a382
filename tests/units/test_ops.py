"""Each operator of lanes, in a program written for one lane: counterparts of the seed's tests of operators.

`written` has the interpreter and the kernel agree; the types are inferred from the operators' declarations.
"""

from __future__ import annotations

import numpy as np
from stages import body, only, written
from support import load

X = np.arange(1, 65, dtype=np.float32)


def lanes(text: str, n: int = 64, size: int = 1, grid: int = 1) -> str:
    """A program at stage lanewise: `grid` workgroups of 64 lanes, whose output `z` has n elements."""
    schedule = f"{{algo=flat, block_size=64, lanes=64, vector={size}, share={size}, steps=1, grid={grid}}}"
    return f"@module m [stage=lanewise, target=gfx942, schedule={schedule}, space={{{n}}}]\n{text.strip()}\n"


def test_ids() -> None:
    text = lanes(
        """
        x = @param:x -> int64{64}
        z = @param:z -> int64{128}
        g = gpu::gen::global_id
        l = gpu::gen::local_id
        w = gpu::gen::workgroup_id
        n = gpu::gen::workgroup_size
        k = gpu::gen::lane_id
        first = imul(w, n)
        place = iadd(first, k)
        v = load(x, l)
        s = store(z, place, v)
        @return(s)""",
        n=128,
        grid=2,
    )
    x = np.arange(64) * 3
    assert written(text, x=x).tolist() == [*x, *x]
    ids = [only(load(text), name) for name in ("local_id", "workgroup_id", "workgroup_size", "lane_id")]
    assert {(n.type.sort, n.type.size) for n in ids} == {("index", 0)}


def test_load_and_store() -> None:
    text = lanes(
        """
        x = @param:x -> {64}
        z = @param:z -> {64}
        i = global_id
        v = load(x, i)
        s = store(z, i, v)
        @return(s)"""
    )
    assert written(text, x=X).tolist() == X.tolist()
    assert (only(load(text), "load").type.sort, only(load(text), "store").type.sort) == ("scalar", "effect")
    assert body(load(text)) == ["const float v = x[gen::global_id<64>()];", "z[gen::global_id<64>()] = v;"]


def test_vector_load_and_store() -> None:
    """Neighbours, as one access."""
    text = lanes(
        """
        x = @param:x -> half{256}
        z = @param:z -> half{256}
        i = global_id
        first = imul(i, 4)
        v = vector_load[size=4](x, first)
        s = vector_store(z, first, v)
        @return(s)""",
        n=256,
        size=4,
    )
    x = np.arange(256).astype(np.float16)
    assert written(text, x=x).tolist() == x.tolist()
    loaded = only(load(text), "vector_load").type
    assert (loaded.sort, loaded.dtype, loaded.size) == ("array", "half", 4)
    assert any("gen::strided_load<4, 4, 4>(x, first)" in line for line in body(load(text)))
    assert any("gen::strided_store<4, 4, 4>(z, first, " in line for line in body(load(text)))


def test_strided_load() -> None:
    """Elements a stride apart, folded by the lane that has them."""
    text = lanes(
        """
        x = @param:x -> {192}
        z = @param:z -> {64}
        i = local_id
        v = strided_load[size=3, stride=64](x, i)
        r = lane_reduce[op=max](v)
        s = store(z, i, r)
        @return(s)""",
        size=3,
    )
    x = np.arange(192, dtype=np.float32) * np.float32(7) % np.float32(192)
    assert written(text, x=x).tolist() == x.reshape(3, 64).max(axis=0).tolist()
    assert any("gen::strided_load<3, 64, 1>(x, gen::local_id())" in line for line in body(load(text)))


def test_lds_allocate() -> None:
    """A buffer of the workgroup's, in which all lanes see what all have written."""
    text = lanes(
        """
        x = @param:x -> {64}
        z = @param:z -> {64}
        i = local_id
        later = iadd(i, 17)
        other = imod(later, 64)
        lds = lds_allocate[shape={float, {64}}]
        v = load(x, i)
        w = lds_write(lds, i, v)
        full = lds_ready(lds, w)
        u = lds_read(full, other)
        s = store(z, i, u)
        @return(s)"""
    )
    assert written(text, x=X).tolist() == np.roll(X, -17).tolist()
    memory = only(load(text), "lds_allocate").type
    assert (memory.sort, memory.dtype, memory.lens) == ("buffer", "float", (64,))
    assert "GEN_LDS(float, lds, 64);" in body(load(text))


def test_conditional_load() -> None:
    """The fill stands where the index is -1, and memory is not touched there."""
    text = lanes(
        """
        x = @param:x -> {40}
        z = @param:z -> {64}
        i = local_id
        inside = bound[limit=40](i)
        v = conditional_load(x, inside, 0.5)
        s = store(z, i, v)
        @return(s)"""
    )
    assert written(text, x=X[:40]).tolist() == [*X[:40], *[0.5] * 24]
    assert "const float v = gen::local_id() < 40 ? x[gen::local_id()] : 0.5f;" in body(load(text))


def test_pad_index() -> None:
    """-1 out of bounds, so that the element of the pad is the fill; in two dimensions."""
    text = lanes(
        """
        x = @param:x -> {4, 5}
        z = @param:z -> {8, 8}
        i = global_id
        p = pad_index[input_shape={4, 5}, pads={1, 2, 3, 1}](i)
        v = conditional_load(x, p, -1.0)
        s = store(z, i, v)
        @return(s)"""
    )
    x = X[:20].reshape(4, 5)
    assert written(text, x=x).tolist() == np.pad(x, ((1, 3), (2, 1)), constant_values=-1).tolist()


def test_gather_index() -> None:
    """A table of entries; those below 0 count from the end."""
    text = lanes(
        """
        x = @param:x -> {7, 8}
        k = @param:k -> int32{8}
        z = @param:z -> {8, 8}
        i = global_id
        g = gather_index[input_shape={7, 8}, axis=0](k, i)
        v = load(x, g)
        s = store(z, i, v)
        @return(s)"""
    )
    x, k = X[:56].reshape(7, 8), np.array([0, 6, -1, -7, 3, 3, 2, 5], np.int32)
    assert written(text, x=x, k=k).tolist() == x[k].tolist()


def test_reverse_index() -> None:
    text = lanes(
        """
        x = @param:x -> {2, 4, 8}
        z = @param:z -> {2, 4, 8}
        i = global_id
        r = reverse_index[input_shape={2, 4, 8}, axes={0, 2}](i)
        v = load(x, r)
        s = store(z, i, v)
        @return(s)"""
    )
    x = X.reshape(2, 4, 8)
    assert written(text, x=x).tolist() == x[::-1, :, ::-1].tolist()
