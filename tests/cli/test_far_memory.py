"""Tensors whose elements lie far apart: refused where the program says so, or printed with indices that are wide enough."""

from __future__ import annotations

from random import Random

import pytest

from genrw.engine.ir.types import MEMORY_LIMIT
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

MOVES = {
    "at its place": "y = exp(x)",
    "cut": "y = slice[axes={0}, starts={%(begin)d}, ends={%(rows)d}](x)",
    "reversed": "y = reverse[axes={0, 1}](x)",
    "turned": "y = transpose[permutation={1, 0}](x)",
    "padded": "y = pad[pads={1, 0, 0, 1}](x)",
    "folded": "y = reduce_sum[axes={0}](x)",
    "joined": "y = concat[axis=0](x, x)",
}
TARGETS = ("gfx942", "sm_90", "host")


def far_program(rng: Random, move: str) -> str:
    """A move of a tensor whose rows, of few elements, lie up to as far apart as strides may be."""
    rows, stride = 1 << rng.randrange(1, 25), rng.randrange(1, 1 << rng.randrange(1, 49))
    rows -= rng.randrange(rows // 2)
    line = MOVES[move] % {"begin": max(0, rows - 200), "rows": rows}
    return f"x = @param:x -> double{{{rows}, 3}}, {{{stride}, 1}}\n{line}\n@return(y)\n"


@pytest.mark.parametrize("move", MOVES)
def test_it_is_printed_or_told_in_the_program(library: Library, move: str, fuzz_factor: int) -> None:
    for number in range(6 * fuzz_factor):
        text = far_program(Random(f"{move} {number}"), move)
        try:
            program = Program.parse(Source("far.gen", text), library, default_target=TARGETS[number % len(TARGETS)])
            assert program.kernels()
        except GenrwError as problem:
            (told,) = problem.diagnostics
            assert told.span is not None, text
            assert (told.span.source.name, told.span.line) == ("far.gen", 1), problem
            assert "elements of memory" in told.message


@pytest.mark.parametrize(("beyond", "refused"), [(-1, False), (0, True)])
def test_the_limit_is_where_it_is_said(library: Library, beyond: int, refused: bool) -> None:
    stride = (MEMORY_LIMIT + beyond - 1) // 1023
    lens = MEMORY_LIMIT + beyond - 1023 * stride
    text = f"x = @param:x -> double{{1024, {lens}}}, {{{stride}, 1}}\n@return(x)\n"
    if refused:
        with pytest.raises(GenrwError, match=f"the tensor reaches over {MEMORY_LIMIT} elements of memory"):
            Program.parse(Source("far.gen", text), library)
    else:
        assert Program.parse(Source("far.gen", text), library).inputs["x"].type.span == MEMORY_LIMIT - 1
