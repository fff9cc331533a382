"""Traces of programs whose e-graphs hold terms made of themselves, or many forms of one value, reach the result, too."""

from __future__ import annotations

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
