"""Tiles that end past a side: those of several axes in memory are read in whole accesses, and sides have lengths that fit."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from random import Random
from typing import Any

import pytest
from support import check_host, check_host_schedules, load, schedules


def turned(outer: int, inner: int, rows: int, gap: int, dtype: str = "float") -> str:
    """Rows of outer × inner elements, each run of `inner` with a gap behind it, turned around."""
    strides = (outer * (inner + gap), inner + gap, 1)
    return f"""
x = @param:x -> {dtype}{{{rows}, {outer}, {inner}}}, {{{", ".join(map(str, strides))}}}
t = transpose[permutation={{1, 2, 0}}](x)
y = tanh(t)
@return(y)
"""


@pytest.mark.parametrize(("outer", "inner"), [(23, 4), (13, 8), (9, 16)])
def test_runs_that_end_with_tiles_are_read_whole(outer: int, inner: int) -> None:
    """No tile divides so many elements; all cut them between runs."""
    program = load(turned(outer, inner, 100, inner), "sm_90", schedule={"algo": "tile", "vector": 4})
    (kernel,) = program.kernels()
    assert "gen::strided_load<4, " in kernel.text, kernel.text
    assert "gen::min(" not in kernel.text, kernel.text


@pytest.mark.parametrize("seed", range(10))
def test_what_tiles_cut_is_right(seed: int) -> None:
    random = Random(f"cut/{seed}")
    inner, outer = random.choice((3, 4, 6, 8, 24)), random.choice((1, 3, 5, 12))
    rows, gap = random.choice((5, 64, 70, 96)), random.choice((1, 4, 8))
    dtype = random.choice(("float", "half", "bf16"))
    check_host(turned(outer, inner, rows, gap, dtype), "sm_90", schedule={"algo": "tile"})


PLANES = [
    (96, 96, "float"),
    (72, 40, "half"),
    (33, 90, "bf16"),
    (77, 200, "int8"),
    (300, 49, "half"),
    (20, 256, "float"),
]


def turned_planes(down: int, across: int, dtype: str) -> str:
    return f"""
x = @param:x -> {dtype}{{3, {across}, {down}}}
y = @param:y -> {dtype}{{3, {down}, {across}}}
t = transpose[permutation={{0, 2, 1}}](x)
z = sub(t, y)
@return(z)
"""


def past_the_end(schedule: Mapping[str, Any]) -> float:
    """How many elements tiles cover for each that there is."""
    return prod(ceil(n / side) * side / n for n, side in tile_sides(schedule))


def tile_sides(schedule: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The lengths of a space down and across with those of its tiles."""
    return [(schedule["sides"][1], schedule["rows"]), (schedule["sides"][3], schedule["columns"])]


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize(("down", "across", "dtype"), PLANES)
def test_sides_of_tiles_fit_short_axes(down: int, across: int, dtype: str, target: str) -> None:
    """Some tiles have a side that is no power of two, and reach less far past the ends than all others do."""
    text = turned_planes(down, across, dtype)
    tiles = [s for s in schedules(text, target) if s["algo"] == "tile"]
    fitting = [s for s in tiles if any(side.bit_count() > 1 for _, side in tile_sides(s))]
    others = [s for s in tiles if s not in fitting]
    assert min(map(past_the_end, fitting)) <= 0.9 * min(map(past_the_end, others)), tiles
    drawn = Random(f"{down}/{across}/{dtype}").sample(fitting, min(3, len(fitting)))
    check_host_schedules(text, drawn, target)
