"""Extents that divide nothing, and their neighbours, under every schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pytest
from breadth import spread
from programs import reduce_program, softmax_program
from support import (
    WAVE32,
    WAVE64,
    check_every_stage,
    check_host,
    check_host_schedules,
    check_schedules,
    load,
    schedules,
)

EXTENTS = (1, 2, 3, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025)
ROWS = 5
TARGETS = (WAVE64, WAVE32, "host")

Schedule = Mapping[str, Any]


def rows(n: int) -> str:
    """Rows of n elements along the last axis: two folds, a result of the whole space."""
    return softmax_program("float", (ROWS, n), 1)


def columns(n: int) -> str:
    """Rows of n elements along the first axis, with two results."""
    return f"""
        x = @param:x -> half{{{n}, {ROWS}}}
        s = reduce_sum[axes={{0}}](x)
        y = sub(x, s)
        @return(s, y)"""


def side_by_side(n: int) -> str:
    """n rows along the first axis, next to one another: folds above each other, positions, a value that repeats."""
    return f"""
        x = @param:x -> float{{9, {n}}}
        w = @param:w -> float{{9, 1}}
        b = @param:b -> float{{1, {n}}}
        product = mul(x, w)
        m = reduce_mean[axes={{0}}](product)
        at = argmax[axis=0](product)
        d = sub(product, m)
        square = mul(d, d)
        v = reduce_sum[axes={{0}}](square)
        repeated = multibroadcast[out_lens={{9, {n}}}](b)
        c = reduce_sum[axes={{0}}](repeated)
        scaled = mul(v, c)
        y = add(d, scaled)
        @return(y, v, at)"""


def of_columns(text: str, target: str) -> list[dict[str, Any]]:
    """The schedules of a program that have a lane work on neighbouring rows."""
    return [s for s in schedules(text, target) if s["algo"] == "columns"]


def flat(n: int) -> str:
    """No rows: an element-wise program of three times n elements."""
    return f"""
        x = @param:x -> float{{3, {n}}}
        y = @param:y -> float{{{n}}}
        r = mul(x, y)
        @return(r)"""


def transposed(n: int, m: int) -> str:
    """A transposed operand, which can go through tiles."""
    return f"""
        x = @param:x -> float{{{n}, {m}}}
        y = @param:y -> float{{{m}, {n}}}
        t = transpose[permutation={{1, 0}}](x)
        r = add(t, y)
        @return(r)"""


def form(algo: str, n: int, lanes: int, share: int, vector: int = 1) -> Schedule:
    """A schedule of rows that are walked in steps, of whatever length they are."""
    block = lanes if algo == "block" else 64
    steps, grid = -(-n // (lanes * share)), -(-ROWS // (block // lanes))
    sizes = {"block_size": block, "lanes": lanes, "vector": vector, "share": share}
    return {"algo": algo, **sizes, "steps": steps, "grid": grid}


def in_steps(n: int, wave: int) -> list[Schedule]:
    """Forms that are walked in steps even where rules would keep a row of n elements in registers."""
    forms = [("lane", 1, 1), ("lane", 1, 16), ("lane", 1, 3), ("block", 2 * wave, 1), ("block", wave, 4)]
    return [f for f in (form(algo, n, lanes, share) for algo, lanes, share in forms) if f["steps"] > 1]


@pytest.mark.parametrize(("n", "target"), spread(EXTENTS, TARGETS))
def test_rows_under_every_schedule(n: int, target: str) -> None:
    check_schedules(rows(n), schedules(rows(n), target), target)
    check_schedules(columns(n), schedules(columns(n), target), target)


@pytest.mark.parametrize(("n", "target"), spread([n for n in EXTENTS if n > 1], (WAVE64, WAVE32)))
def test_rows_walked_in_steps(n: int, target: str) -> None:
    found = in_steps(n, 64 if target == WAVE64 else 32)
    check_schedules(rows(n), found, target)
    check_schedules(columns(n), found, target)


@pytest.mark.parametrize(("n", "target"), spread([n for n in EXTENTS if n > 3], TARGETS))
def test_neighbouring_rows_of_a_lane(n: int, target: str) -> None:
    found = of_columns(side_by_side(n), target)
    assert found
    check_schedules(side_by_side(n), found, target)


@pytest.mark.parametrize(
    ("shape", "dtype", "target"),
    spread(
        [((5, 3, 66), (1,)), ((3, 2, 7, 40), (0, 2)), ((300, 4), (0,))], ["half", "int8", "bool", "double"], TARGETS
    ),
)
def test_neighbouring_rows_of_a_type(shape: tuple[tuple[int, ...], tuple[int, ...]], dtype: str, target: str) -> None:
    text = reduce_program("max", dtype, *shape)
    found = of_columns(text, target)
    assert found
    check_schedules(text, found, target)
    check_host(text, target, schedule=found[0])


def in_parts(text: str, target: str) -> list[dict[str, Any]]:
    """The schedules of a program that have several lanes share a column."""
    return [s for s in of_columns(text, target) if s["lanes"] > 1]


FOLDS = [*product(["sum", "max", "argmax"], ["float", "half", "int32"]), ("any", "bool"), ("max", "bool")]


@pytest.mark.parametrize(("fold", "lens", "target"), spread(FOLDS, [(128, 64), (67, 200), (301, 71)], (WAVE64, WAVE32)))
def test_lanes_share_columns(fold: tuple[str, str], lens: tuple[int, int], target: str) -> None:
    """Extents with and without lanes to spare, along the columns and across them, aligned and not."""
    text = reduce_program(*fold, lens, (0,))
    found = in_parts(text, target)
    assert found
    check_schedules(text, found[::3], target)
    check_host(text, target, schedule=found[0])


@pytest.mark.parametrize(("n", "target"), spread([64, 71, 200], [WAVE64, WAVE32]))
def test_lanes_share_columns_of_several_folds(n: int, target: str) -> None:
    text = side_by_side(n)
    for schedule in in_parts(text, target)[:2]:
        check_every_stage(text, target, schedule=schedule)
        check_host(text, target, schedule=schedule)


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize(
    ("dtype", "lens", "axis", "vector"),
    [("float", (8192, 8192), 0, 4), ("float", (64, 4096, 256), 1, 4), ("half", (8192, 50257), 0, 1)],
)
def test_long_columns_are_shared(dtype: str, lens: tuple[int, ...], axis: int, vector: int, target: str) -> None:
    """The cheapest schedule has lanes share columns, each with accesses as wide as alignment allows, several of them
    under way at a time."""
    kernel = load(reduce_program("sum", dtype, lens, (axis,)), target).kernels()[0]
    assert "gen::reduce_parts<" in kernel.text
    assert "GEN_UNROLL_BY(8)\n    for (int step" in kernel.text
    assert "?" not in kernel.text[kernel.text.index("for (int step") : kernel.text.index("gen::reduce_parts<")]
    assert (f", {vector}>(x, " in kernel.text) == (vector > 1)


def test_what_lies_side_by_side_is_read_together() -> None:
    """Where nothing but the width of reads tells schedules apart, rows of one lane are neighbours."""
    kernel = load(reduce_program("sum", "float", (4096, 4096), (0,)), "host").kernels()[0]
    assert "gen::strided_load<64, 16, 16>(x, first + step * 4096)" in kernel.text


@pytest.mark.slow
@pytest.mark.parametrize("n", [4095, 4097, 16385])
def test_long_rows_under_every_schedule(n: int) -> None:
    found = schedules(rows(n), WAVE64)
    assert n < 4096 or any(s["algo"] == "block" and s["steps"] > 1 for s in found)
    check_schedules(rows(n), found, WAVE64)


@pytest.mark.parametrize(("n", "target"), spread(EXTENTS, TARGETS))
def test_flat_under_every_schedule(n: int, target: str) -> None:
    check_schedules(flat(n), schedules(flat(n), target), target)


@pytest.mark.parametrize(("n", "m"), spread(EXTENTS, (64, 33, 10)))
def test_tiles_under_every_schedule(n: int, m: int) -> None:
    check_schedules(transposed(n, m), schedules(transposed(n, m)), WAVE64)


def test_all_algorithms_are_among_them() -> None:
    """What the tests above call every schedule holds each algorithm, with and without steps."""
    texts = (rows(63), rows(129), rows(8193), side_by_side(64), flat(64), transposed(64, 64))
    found = {(s["algo"], s["steps"] > 1) for text in texts for s in schedules(text)}
    algorithms = {(algo, False) for algo in ("lane", "subwave", "wave", "block", "flat", "tile")}
    assert found >= algorithms | {("lane", True), ("block", True), ("columns", True)}


def first_of_each(found: Iterable[Schedule]) -> list[Schedule]:
    """The cheapest schedule of each algorithm, with and without steps."""
    kinds: dict[tuple[str, bool], Schedule] = {}
    for schedule in found:
        kinds.setdefault((schedule["algo"], schedule["steps"] > 1), schedule)
    return list(kinds.values())


@pytest.mark.parametrize(("n", "target"), spread((3, 65, 257, 1025), (WAVE64, WAVE32)))
def test_rows_on_the_host(n: int, target: str) -> None:
    """The kernel of each algorithm, run."""
    for text in (rows(n), side_by_side(n)):
        check_host_schedules(text, first_of_each(schedules(text, target)), target)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 7, 96, 257, 514])
def test_strips_under_every_schedule(n: int) -> None:
    """Strips of neighbouring columns, on a CPU: all widths, many rows or few to a strip, axes around them."""
    deep = f"""
        x = @param:x -> float{{3, 40, {n}}}
        b = @param:b -> half{{{n}, 40}}
        t = transpose[permutation={{0, 2, 1}}](x)
        h = convert[target_type=float](b)
        y = add(t, h)
        @return(y)"""
    for text, some in ((transposed(n, 48), n > 1), (transposed(n, 129), n > 1), (deep, n not in (1, 257))):
        found = schedules(text, "host")
        assert any(s["algo"] == "strip" for s in found) == some
        check_schedules(text, found, "host")
        check_host_schedules(text, first_of_each(found), "host")


@pytest.mark.slow
@pytest.mark.parametrize("target", [WAVE64, WAVE32])
def test_tiles_on_the_host(target: str) -> None:
    text = transposed(97, 129)
    check_host_schedules(text, first_of_each(schedules(text, target)), target, orders=(0, 1, 2))
