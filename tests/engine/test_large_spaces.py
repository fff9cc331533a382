"""Operators that are computed over more than a tensor may have: the program's line is told, and not the rule that builds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

LARGE = "the tensor is too large"
AB = "a = @param:a -> half{1048576, 65536}\nb = @param:b -> half{65536, 1048576}\n"
IMAGES = "a = @param:a -> half{64, 256, 8192, 8192}\nw = @param:w -> half{256, 256, 7, 7}\n"
ROWS = "a = @param:a -> float{1048576, 65536}\n"


def _ones(rank: int, *lens: int) -> str:
    """Lengths of a rank that are 1 but for the last ones."""
    return "{" + ", ".join(map(str, [1] * (rank - len(lens)) + list(lens))) + "}"


CASES = {
    "a product of matrices": (AB + "c = dot(a, b)\n", 3, LARGE),
    "a product of what was computed": (AB + "e = exp(a)\nc = dot(e, b)\nd = relu(c)\n", 4, LARGE),
    "a product of a turned operand": (
        "a = @param:a -> half{1048576, 65536}\nb = @param:b -> half{1048576, 65536}\nt = transpose[permutation={1, 0}](b)\nc = dot(a, t)\n",
        4,
        LARGE,
    ),
    "the second of two products": (
        AB + "s = @param:s -> half{65536, 16}\nr = dot(a, s)\nc = dot(a, b)\nd = dot(c, a)\n",
        5,
        LARGE,
    ),
    "a product of integers": (AB.replace("half", "int8") + "c = quant_dot(a, b)\n", 3, LARGE),
    "a convolution": (IMAGES + "c = convolution[padding={3, 3, 3, 3}](a, w)\n", 3, LARGE),
    "a convolution backwards": (IMAGES + "c = convolution_backwards_data[padding={3, 3, 3, 3}](a, w)\n", 3, LARGE),
    "a convolution's weights": (
        IMAGES + "c = convolution_backwards_weights[lengths={7, 7}, padding={3, 3, 3, 3}](a, a)\n",
        3,
        LARGE,
    ),
    "a pool": (IMAGES + "c = pooling[mode=max, lengths={137, 137}](a)\n", 3, LARGE),
    "an average of windows": (IMAGES + "c = pooling[mode=average, lengths={137, 137}](a)\n", 3, LARGE),
    "running sums": (ROWS + "c = prefix_scan_sum[axis=1](a)\n", 2, LARGE),
    "running products": (ROWS + "e = exp(a)\nc = prefix_scan_prod[axis=1](e)\n", 3, LARGE),
    "scores": (
        "q = @param:q -> half{64, 128, 65536, 128}\nk = @param:k -> half{64, 128, 65536, 128}\n"
        "t = transpose[permutation={0, 1, 3, 2}](k)\ns = dot(q, t)\np = softmax[axis=3](s)\nc = dot(p, q)\n",
        4,
        LARGE,
    ),
    "repeats of many axes": (
        f"a = @param:a -> float{_ones(13, 2, 3)}\nc = tile[repeats={_ones(13, 2, 2)}](a)\n",
        2,
        "the tensor has 26 axes",
    ),
    "a product of batches with many axes": (
        f"a = @param:a -> float{_ones(24, 2, 3)}\nb = @param:b -> float{_ones(24, 3, 2)}\nc = dot(a, b)\n",
        3,
        "the tensor has 25 axes",
    ),
    "running sums along one of many axes": (
        f"a = @param:a -> float{_ones(24, 2, 3)}\nc = prefix_scan_sum[axis=23](a)\n",
        2,
        "the tensor has 25 axes",
    ),
}


@pytest.mark.parametrize("about", CASES)
def test_the_programs_line_is_told(about: str) -> None:
    text, line, said = CASES[about]
    with pytest.raises(GenrwError) as raised:
        Program.parse(Source("x.gen", text + "@return(c)\n"), load_library([])).lower("final")
    (told,) = raised.value.diagnostics
    assert told.span is not None
    assert (told.span.source.name, told.span.line) == ("x.gen", line)
    assert told.message.endswith(said)
    assert told.remedy is not None


def test_a_module_that_is_called_has_the_line() -> None:
    called = (
        "@module main\n"
        + AB
        + "c = call[module=inner](a, b)\n@return(c)\n\n@module inner\n"
        + AB
        + "d = dot(a, b)\n@return(d)\n"
    )
    with pytest.raises(GenrwError, match=r"^x\.gen:10:"):
        Program.parse(Source("x.gen", called), load_library([])).lower("final")


def test_a_rule_of_ones_own_is_told_itself(tmp_path: Path) -> None:
    """Its author can guard it."""
    rule = (
        "reduce_sum[axes=_axes](exp(x))\n  => reduce_sum[axes=[0]](multibroadcast[out_lens=concat([65536], x.lens)](x))"
    )
    (tmp_path / "mine.rw").write_text(f"stage simplify\n\nrule mine\n  {rule}\n")
    with pytest.raises(
        GenrwError, match=r"rule `mine` builds a `multibroadcast` that is not allowed: the tensor is too large"
    ):
        Program.parse(
            Source("x.gen", ROWS + "e = exp(a)\nc = reduce_sum[axes={1}](e)\n@return(c)\n"), load_library([tmp_path])
        ).lower("final")
