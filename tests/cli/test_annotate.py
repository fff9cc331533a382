"""`genrw explain --annotate`: comments name the rules behind each line, and change nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import Command

from genrw.engine.library.library import Library

TOLD = re.compile(r"(\w+(?:/reverse)?) \((rules/[\w/]+\.rw:\d+)\)")


@pytest.fixture
def text(genrw: Command, softmax: Path) -> str:
    result = genrw("explain", softmax, "--annotate")
    assert (result.status, result.err) == (0, "")
    return str(result.out)


def test_stages_read_as_they_do_without(text: str, genrw: Command, softmax: Path) -> None:
    plain = genrw("lower", softmax, "--stage", "all").out
    bare = re.sub(r"  # [^\n]*", "", text)
    assert bare.startswith(plain)


def test_lines_name_rules_and_their_places(text: str, library: Library) -> None:
    line = next(line for line in text.splitlines() if line.startswith("reduce_max = "))
    assert "# widen_reduce (rules/simplify/widen.rw:" in line
    places = {rule.name: rule.name_span.location for rule in library.rules}
    told = TOLD.findall(text)
    assert len(told) > 50
    assert all(places[key.split("/")[0]] == where for key, where in told)


def test_lines_of_the_kernel(text: str, genrw: Command, softmax: Path) -> None:
    """Every line that computes something names a rule; without the comments it is the kernel as printed."""
    body = text[text.index("GEN_KERNEL(") :].rstrip()
    printed = genrw("emit", softmax).out
    printed = printed[printed.index("GEN_KERNEL(") :].rstrip()
    bare = re.sub(r"  // [^\n]*", "", body)
    assert bare.split("\n")[2:] == printed.split("\n")[2:]
    computing = [line for line in body.split("\n") if " = " in line and "for (" not in line]
    assert computing
    assert all(TOLD.search(line) for line in computing)
    assert "fold_wave (rules/lanewise/reduce.rw:" in next(line for line in computing if "dpp_reduce" in line)
