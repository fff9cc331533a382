"""Rows made of pieces that lie apart in memory: what chunks do with them is right at every stage, and a chunk that lies within
a piece is one access."""

from __future__ import annotations

from random import Random

import pytest
from breadth import spread
from support import check_every_stage, check_host
from together import made

TARGETS = ["gfx942", "gfx1100", "sm_90", "host"]


def program(seed: int) -> str:
    """A reduction over the first and the last axes, of which elements or rows are the result."""
    random = Random(seed)
    dtype = random.choice(("float", "half", "int8", "double"))
    first, rows, second, last = (
        random.choice(n) for n in ((1, 2, 3, 20, 50), (1, 3, 5), (1, 7, 14), (1, 3, 4, 7, 8, 28))
    )
    gap = random.choice((0, 0, 1, 4))
    strides = [rows * second * (last + gap), second * (last + gap), last + gap, 1]
    lines = [f"x = @param:x -> {dtype}{{{first}, {rows}, {second}, {last}}}, {{{', '.join(map(str, strides))}}}"]
    op = random.choice(("reduce_max", "reduce_sum", "reduce_min"))
    lines.append(f"m = {op}[axes={{0, 2, 3}}](x)")
    elements = random.random() < 0.5
    lines += ["y = sub(x, m)" if elements else "y = abs(m)", "@return(y)"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("seed", "target"), spread(range(40), TARGETS, quick=6))
def test_pieces_at_every_stage(seed: int, target: str) -> None:
    check_every_stage(program(seed), target, seed)


@pytest.mark.parametrize(("seed", "target"), spread(range(60, 72), TARGETS, quick=2))
def test_pieces_on_the_host(seed: int, target: str) -> None:
    check_host(program(seed), target, seed)


def printed(type_: str, target: str) -> str:
    text = f"x = @param:x -> {type_}\nm = reduce_max[axes={{0, 2, 3}}](x)\ny = sub(x, m)\n@return(y)\n"
    return "\n".join(kernel.text for kernel in made(text, target).kernels)


@pytest.mark.parametrize("target", TARGETS[:3])
@pytest.mark.parametrize("type_", ["half{16, 256, 28, 28}", "float{40, 300, 6, 6}", "half{8, 300, 13, 24}"])
def test_chunks_within_a_piece_are_one_access(type_: str, target: str) -> None:
    text = printed(type_, target)
    assert "gen::placed_load<" in text
    assert "gen::placed_store<" in text


@pytest.mark.parametrize("target", TARGETS[:3])
def test_chunks_that_reach_into_the_next_piece_are_not(target: str) -> None:
    assert "placed_" not in printed("half{16, 256, 7, 7}", target)
