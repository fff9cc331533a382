"""Lanes of the device header on the host: cross-lane operations, barriers, workgroup memory, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from device_kernels import MONOIDS, ROW_PARAMETERS, compile_body, gpu_text, row_sum
from written_kernels import BARRIER, SUM, loop, memory, plain, sum_of, value

from genrw.codegen.runtime.host import HostKernel, compile_host
from genrw.grammar.diagnostics import GenrwError

Array = npt.NDArray[Any]

# (wave size, block): whole waves, one wave, and the host's own wave of one lane
SHAPES = [(64, 64), (64, 256), (64, 448), (32, 32), (32, 96), (32, 1024), (1, 1), (1, 7), (1, 64)]
SEEDS = range(6)
BLOCK = 96


REDUCED = (  # accumulator, monoid, operand, where the result goes
    ("float", "sum", "v", "y[i] = {};"),
    ("gen::int8", "sum8", "small", "bytes[i] = {};"),
    ("bool", "every", "positive", "flags[i] = {};"),
    ("double", "greatest", "wide", "most[i] = {};"),
    ("place", "argmax", "here", "at[i] = {}.index;"),
)
LANES_PARAMETERS = "const float* x, float* y, gen::int8* bytes, bool* flags, double* most, gen::int64* at, int width"


def lanes_kernel(wave: int, block: int, compiler: str | None = None) -> HostKernel:
    """A kernel that reduces groups of 2^width lanes: sum, int8 sum, all, max, argmax."""
    body = [
        value("int", "i", "gen::global_id()"),
        value("float", "v", "x[i]"),
        value("gen::int8", "small", "gen::convert<gen::int8>(x[i])"),
        value("bool", "positive", "x[i] > 0"),
        value("double", "wide", "x[i]"),
        value("place", "here", "place{x[i], i}"),
    ]
    for w in range(wave.bit_length()):
        for type_, monoid, operand, store in REDUCED:
            name = f"{monoid}_{w}"
            body.append(value(type_, name, f"gen::dpp_reduce<{monoid}, {1 << w}>({operand})", "wave"))
            body.append(plain(f"if (width == {w}) {store.format(name)}"))
    return compile_body(wave, block, "lanes", LANES_PARAMETERS, body, MONOIDS, compiler)


@pytest.mark.parametrize(("wave", "block"), SHAPES)
def test_reduce_groups_of_lanes(wave: int, block: int) -> None:
    kernel = lanes_kernel(wave, block)
    groups = 3
    rng = np.random.default_rng(0)
    x = rng.integers(-40, 41, groups * block).astype(np.float32)
    x[rng.integers(0, x.size, 3)] = np.nan
    for width in range(wave.bit_length()):
        y, most = np.zeros_like(x), np.zeros(x.size)
        small, flags = np.zeros(x.size, np.int8), np.zeros(x.size, np.bool_)
        at = np.zeros(x.size, np.int64)
        kernel.launch([x, y, small, flags, most, at, width], groups, order=width)
        lanes = 1 << width
        rows = x.reshape(-1, lanes)
        whole = np.nan_to_num(rows).astype(np.int8)

        def spread(values: Any, lanes: int = lanes) -> Array:
            return np.repeat(values, lanes)

        assert np.array_equal(y, spread(rows.sum(1)), equal_nan=True)
        assert np.array_equal(small, spread(whole.sum(1, dtype=np.int8)))
        assert np.array_equal(flags, spread((rows > 0).all(1)))
        assert np.array_equal(most, spread(rows.max(1)), equal_nan=True)
        clean = ~np.isnan(rows).any(1)
        first = rows.argmax(1) + np.arange(0, x.size, lanes)
        assert np.array_equal(at.reshape(-1, lanes)[clean], np.repeat(first[clean], lanes).reshape(-1, lanes))


@pytest.mark.parametrize(("wave", "block"), SHAPES)
def test_reduce_rows(wave: int, block: int) -> None:
    """Lanes, waves and workgroup memory together, on lengths around the block's, in every order."""
    items = 3
    kernel = compile_body(wave, block, "rows", ROW_PARAMETERS, row_sum(block, items), MONOIDS)
    rng = np.random.default_rng(1)
    lengths = {1, 2, block - 1, block, block + 1, items * block - 1, items * block} - {0}
    for n in sorted(length for length in lengths if length <= items * block):
        x = rng.integers(-99, 99, (5, n)).astype(np.float32)
        for seed in SEEDS:
            y, at = np.full(5, 7, np.float32), np.full(5, -7, np.int64)
            kernel.launch([x, y, at, n], 5, order=seed, threads=1 + seed % 3)
            assert np.array_equal(y, x.sum(1))
            assert np.array_equal(at, x.argmax(1))


def test_another_compiler() -> None:
    kernel = lanes_kernel(32, 64, "zig")
    x = np.arange(64, dtype=np.float32)
    y, most = np.zeros_like(x), np.zeros(64)
    unused = [np.zeros(64, dtype) for dtype in (np.int8, np.bool_, np.int64)]
    kernel.launch([x, y, *unused[:2], most, unused[2], 4], 1, order=3)
    assert np.array_equal(y, np.repeat(x.reshape(4, 16).sum(1), 16))
    assert np.array_equal(most, np.repeat(x.reshape(4, 16).max(1), 16))


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_lanes_meet_in_a_loop(steps: int) -> None:
    """The loop goes around those over lanes; variables from before it, in it and for after it live on."""
    rotated = f"tile[(gen::local_id() + 1) % {BLOCK}]"
    turn = (
        value("float", "sent", "total + own"),
        plain("tile[gen::local_id()] = sent;"),
        BARRIER,
        plain(f"total = {rotated} + sent * step;"),
        BARRIER,
    )
    body = [
        memory("float", "tile", BLOCK),
        value("float", "own", "x[gen::global_id()]"),
        sum_of("total"),
        loop("step", steps, *turn),
        plain("y[gen::global_id()] = total + own;"),
    ]
    kernel = compile_body(32, BLOCK, "rotate", "const float* x, float* y", body, SUM)
    x = np.random.default_rng(4).integers(-9, 9, (3, BLOCK)).astype(np.float32)
    want = np.zeros_like(x)
    for step in range(steps):
        sent = want + x
        want = np.roll(sent, -1, 1) + sent * step
    for seed in SEEDS:
        y = np.zeros_like(x)
        kernel.launch([x.ravel(), y.ravel()], 3, order=seed)
        assert np.array_equal(y, want + x)


# ---- what must not go unseen


def shows(kernel: HostKernel, arguments: list[Any], output: int, expected: Array, groups: int = 4) -> list[bool]:
    """For each of some orders, whether the result is wrong."""
    wrong = []
    for seed in range(12):
        arguments[output][...] = 0
        kernel.launch(arguments, groups, order=seed)
        wrong.append(not np.array_equal(arguments[output], expected))
    return wrong


@pytest.mark.parametrize("barrier", [True, False])
@pytest.mark.parametrize("block", [32, 128])
def test_missing_barrier_shows(barrier: bool, block: int) -> None:
    """Lanes exchange values through workgroup memory, within one wave and between waves."""
    body = [
        memory("float", "tile", block),
        plain("tile[gen::local_id()] = x[gen::global_id()];"),
        *([BARRIER] if barrier else []),
        plain(f"y[gen::global_id()] = tile[{block} - 1 - gen::local_id()];"),
    ]
    kernel = compile_body(32, block, "flip", "const float* x, float* y", body)
    x = np.arange(4 * block, dtype=np.float32)
    wrong = shows(kernel, [x, np.zeros_like(x)], 1, x.reshape(4, block)[:, ::-1].ravel())
    assert not any(wrong) if barrier else any(wrong)


@pytest.mark.parametrize("fence", [True, False])
def test_missing_fence_shows(fence: bool) -> None:
    """Workgroup memory used again for the next reduction, while a wave still reads the last one."""
    body = [
        memory("float", "lds", 4),
        value("float", "v", "x[gen::global_id()]"),
        value("float", "square", "v * v"),
        value("float", "wave_v", "gen::dpp_reduce<sum, 32>(v)", "wave"),
        value("float", "a", "gen::reduce_waves<sum, 4>(wave_v, lds)", "block"),
        value("float", "wave_square", "gen::dpp_reduce<sum, 32>(square)", "wave"),
        value("float", "b", f"gen::reduce_waves<sum, 4, {str(fence).lower()}>(wave_square, lds)", "block"),
        plain("y[gen::global_id()] = a + 1000 * b;"),
    ]
    kernel = compile_body(32, 128, "twice", "const float* x, float* y", body, MONOIDS)
    x = np.random.default_rng(2).integers(-9, 9, 512).astype(np.float32)
    rows = x.reshape(4, 128)
    expected = np.repeat(rows.sum(1) + 1000 * (rows * rows).sum(1), 128)
    wrong = shows(kernel, [x, np.zeros_like(x)], 1, expected)
    assert not any(wrong) if fence else any(wrong)


@pytest.mark.parametrize("fence", [True, False])
@pytest.mark.parametrize(("lanes", "across"), [(2, 64), (4, 32), (8, 16), (32, 4), (128, 1)])
def test_lanes_apart_are_folded(lanes: int, across: int, fence: bool) -> None:
    """Arrays of lanes that stand apart, element by element; a second fold through the same memory needs the fence."""
    kind = f"{lanes}, {across}"
    body = [
        memory("float", "lds", max(lanes // 2, min(lanes, 4)) * across * 3),
        value("float", "v", "x[gen::global_id()]"),
        value("float", "next", "v + 1"),
        value("gen::array<float, 3>", "parts", "{{v, 2 * v, v * v}}"),
        value("gen::array<float, 3>", "a", f"gen::reduce_parts<sum, {kind}>(parts, lds)", "block"),
        value("float", "b", f"gen::reduce_parts<sum, {kind}, {str(fence).lower()}>(next, lds)", "block"),
        plain("y[gen::global_id()] = a[0] + 10 * a[1] + 100 * a[2] + 100000 * b;"),
    ]
    kernel = compile_body(32, 128, "apart", "const float* x, float* y", body, MONOIDS)
    x = np.random.default_rng(3).integers(-3, 3, 512).astype(np.float32)
    parts = x.reshape(4, lanes, across)
    of_column = 21 * parts.sum(1) + 100 * (parts * parts).sum(1) + 100000 * (parts + 1).sum(1)
    expected = np.repeat(of_column[:, None], lanes, 1).ravel()
    wrong = shows(kernel, [x, np.zeros_like(x)], 1, expected)
    assert not any(wrong) if fence else any(wrong)


def test_unwritten_workgroup_memory_is_poisoned() -> None:
    body = [
        memory("float", "tile", 64),
        BARRIER,
        plain("y[gen::global_id()] = tile[gen::local_id()];"),
        BARRIER,
        plain("tile[gen::local_id()] = 1;"),
    ]
    kernel = compile_body(64, 64, "peek", "float* y", body)
    y = np.zeros(256, np.float32)
    kernel.launch([y], 4, order=1)
    assert np.all(np.isnan(y))


def test_operation_wider_than_the_block_is_an_error() -> None:
    body = [
        value("float", "one", "1.0f"),
        value("float", "all", "gen::dpp_reduce<sum, 32>(one)", "wave"),
        plain("y[0] = all;"),
    ]
    with pytest.raises(GenrwError, match="wider than what is left of the last wave"):
        compile_body(32, 48, "wide", "float* y", body, MONOIDS)


MEETINGS = {
    "a barrier": "gen::barrier();",
    "a barrier for workgroup memory": "gen::lds_barrier();",
    "an operation across lanes": "y[0] = gen::dpp_reduce<sum, 32>(1.0f);",
    "a barrier in a branch": "if (gen::local_id() < 16) gen::barrier();",
}


@pytest.mark.parametrize("what", MEETINGS)
def test_lanes_meet_where_the_printer_does_not_know(what: str) -> None:
    """In a line that is a lane's own they cannot, which the compiler says."""
    said = "lanes meet in operators of the role `sync` only"
    with pytest.raises(GenrwError, match=said):
        compile_body(32, 64, "alone", "float* y", [BARRIER, plain(MEETINGS[what])], MONOIDS)
    source = f"{MONOIDS} GEN_KERNEL(64) alone(float* y) {{ {MEETINGS[what]} }}"
    with pytest.raises(GenrwError, match=said):
        compile_host(source, "alone", ["float*"], wave_size=32, block=64, in_loops=False)


# ---- ids and memory access


@pytest.mark.parametrize("in_loops", [True, False])
def test_ids(in_loops: bool) -> None:
    body = [
        plain("int* at = out + gen::global_id() * 8;"),
        plain("at[0] = gen::workgroup_id();"),
        plain("at[1] = gen::local_id();"),
        plain("at[2] = gen::workgroup_size();"),
        plain("at[3] = gen::lane_id();"),
        plain("at[4] = gen::wave_id();"),
        plain("at[5] = gen::global_id();"),
        plain("at[6] = gen::global_id<96>() == gen::global_id();"),
        plain("at[7] = gen::lane_reduce<total>(gen::array<int, 5>{1, 2, 3, 4, gen::local_id()});"),
    ]
    total = """
struct total {
    using acc = int;
    GEN_DEVICE static acc identity() { return 0; }
    GEN_DEVICE static acc combine(acc a, acc b) { return a + b; }
};
"""
    if in_loops:
        kernel = compile_body(32, 96, "ids", "int* out", body, total)
    else:
        text = total + gpu_text(96, "ids", "int* out", body)
        kernel = compile_host(text, "ids", ["int*"], wave_size=32, block=96, in_loops=False)
    out = np.zeros((5, 96, 8), np.int32)
    kernel.launch([out], 5, order=9, threads=2)
    group, lane = np.meshgrid(np.arange(5), np.arange(96), indexing="ij")
    columns = [group, lane, 96 + 0 * lane, lane % 32, lane // 32, group * 96 + lane, 1 + 0 * lane, 10 + lane]
    assert np.array_equal(out, np.stack(columns, -1))


@pytest.mark.parametrize("vector", [1, 2, 4])
@pytest.mark.parametrize("name", ["float", "gen::half", "double", "gen::int8"])
def test_strided_access(vector: int, name: str) -> None:
    """Chunks of a row move through a lane; the masked forms leave alone what lies beyond the limit."""
    lanes, size = 4, 8
    stride = lanes * vector
    source = f"""
GEN_KERNEL({lanes}) move(const {name}* x, {name}* plain, {name}* masked, {name}* filled, int n)
{{
    const int first = gen::local_id() * {vector};
    const auto all = gen::strided_load<{size}, {stride}, {vector}>(x, first);
    gen::strided_store<{size}, {stride}, {vector}>(plain, first, all);
    const auto inside = gen::chunks_below<{stride}, {vector}>(first, n);
    const auto some = gen::strided_load<{size}, {stride}, {vector}>(x, first, inside, {name}(-1.0f));
    gen::strided_store<{size}, {stride}, {vector}>(masked, first, some, inside);
    gen::strided_store<{size}, {stride}, {vector}>(filled, first, some);
}}
"""
    types = [f"const {name}*", f"{name}*", f"{name}*", f"{name}*", "int"]
    kernel = compile_host(source, "move", types, wave_size=1, block=lanes, in_loops=False)
    dtype = {"float": np.float32, "gen::half": np.float16, "double": np.float64, "gen::int8": np.int8}[name]
    total = lanes * size
    x = np.arange(1, total + 1).astype(dtype)
    for n in range(0, total + 1, vector):
        plain, masked, filled = (np.zeros(total, dtype) for _ in range(3))
        kernel.launch([x, plain, masked, filled, n], 1)
        inside = np.arange(total) < n
        assert np.array_equal(plain, x)
        assert np.array_equal(masked, np.where(inside, x, 0))
        assert np.array_equal(filled, np.where(inside, x, -1))


def test_single_access() -> None:
    source = """
GEN_KERNEL(1) pick(const float* x, const int* at, float* y, int n)
{
    for (int i = 0; i < n; i++) {
        y[2 * i] = gen::conditional_load(x, at[i], -1);
        y[2 * i + 1] = gen::load_if(x, at[i], at[i] % 2 == 0, -2);
    }
    gen::vec_store(y, 2 * n, gen::vec_load<4>(x, 4));
}
"""
    types = ["const float*", "const int*", "float*", "int"]
    kernel = compile_host(source, "pick", types, wave_size=1, block=1, in_loops=False)
    x, at = np.arange(10, 20, dtype=np.float32), np.array([3, -1, 8, -(1 << 30)], np.int32)
    y = np.zeros(12, np.float32)
    at[3] = -(1 << 30) + 1
    kernel.launch([x, at, y, 4], 1)
    assert y.tolist() == [13, -2, -1, -2, 18, 18, -1, -2, 14, 15, 16, 17]


def test_constant_tables() -> None:
    source = """
GEN_CONSTANT gen::half weights[3] = {gen::half(1.0f), gen::half(-2.5f), gen::half(1e6f)};
GEN_KERNEL(1) table(float* y) { for (int i = 0; i < 3; i++) y[i] = float(weights[i]); }
"""
    kernel = compile_host(source, "table", ["float*"], wave_size=1, block=1, in_loops=False)
    y = np.zeros(3, np.float32)
    kernel.launch([y], 1)
    assert y.tolist() == [1, -2.5, np.inf]
