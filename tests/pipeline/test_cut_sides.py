"""Tiles that end past a side of several axes in memory: what begins and ends with these is read in whole accesses."""

from __future__ import annotations

from random import Random

import pytest
from support import check_host, load


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
