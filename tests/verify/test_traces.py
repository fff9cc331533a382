"""Traces of programs whose e-graphs hold terms made of themselves, or many forms of one value, reach the result, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from breadth import first_quick
from programs import PROGRAMS

import genrw
from genrw.explain.trace import traces

NAMES = ("softmax_long_rows", "truths_of_long_rows", "iota_in_a_reduction", "folds_int32", "pad_mul_reduce")


@pytest.mark.parametrize("name", first_quick(NAMES))
def test_rewrites_reach_the_result(name: str) -> None:
    program = genrw.load(PROGRAMS[name])
    last: dict[str, str] = {}
    for trace in traces(program):
        before = trace.before
        for rewrite in trace.rewrites:
            assert rewrite.before == before
            before = rewrite.after
        last[trace.module] = before
    found = "\n".join(text for module, text in last.items() if "stage=final" in text.partition("\n")[0])
    final = str(program.lower("final"))
    assert final.endswith(found)
    assert found.count("@module") == len(program.lower("final").modules)


BENEATH = """stage simplify

rule sine_is_cosine
  transpose[permutation](sin(x))
  => transpose[permutation](cos(x))
  contract approximate 1.0

rule size_of_cosine
  abs(cos(x))
  => neg(x)
  contract approximate 1.0
  replaces
"""


def test_what_is_equal_beneath_a_transpose_is_equal_elsewhere(tmp_path: Path) -> None:
    """A sine is a cosine by no rule of its own: the transposes of both are one value."""
    (tmp_path / "beneath.rw").write_text(BENEATH)
    text = "x = @param:x -> float{4, 8}\ns = sin(x)\nt = transpose[permutation={1, 0}](s)\ny = abs(s)\n@return(t, y)\n"
    program = genrw.load(text, rules=[tmp_path])
    first = next(iter(traces(program)))
    assert [rewrite.rules for rewrite in first.rewrites] == [("sine_is_cosine",), ("size_of_cosine",)]
    assert "y = abs(cos)" in first.rewrites[0].after
    assert first.after == str(program.lower("simplify"))
