"""Monoids of which a field, or the result, names no element."""

from __future__ import annotations

from pathlib import Path

import pytest

import genrw
from genrw.engine.interpret.inputs import random_inputs
from genrw.reference import Reference

MONOIDS = """
monoid counting where T: any
  carry c: int64
  element c = 1
  identity c = 0
  combine c = a.c + b.c
  finish c
  result int64

monoid length where T: any
  carry c: int64
  element c = 1
  identity c = 0
  combine c = 0
  finish n
  result int64

monoid places where T: any
  carry s: int64, first: bool
  element s = k * k, first = k == 0
  identity s = 0, first = false
  combine s = a.s + b.s, first = a.first or b.first
  finish s + n if first else 0
  result int64
"""


@pytest.mark.parametrize("target", ["host", "gfx942"])
@pytest.mark.parametrize("axes", ["0", "1", "0, 1"])
def test_what_names_no_element_is_of_all(tmp_path: Path, target: str, axes: str) -> None:
    (tmp_path / "mine.rw").write_text(MONOIDS)
    lines = ["x = @param:x -> half{3, 130}"]
    lines += [f"{m} = reduce_{m}[axes={{{axes}}}](x)" for m in ("counting", "length", "places")]
    text = "\n".join([*lines, "@return(counting, length, places)"])
    program = genrw.load(text, target=target, rules=[tmp_path])
    inputs = dict(random_inputs(program.modules[0], program.library, 0))
    for device in ("host", "interpret"):
        results = program.run(inputs, device)
        assert Reference(program, inputs).first_problem(results) is None
        assert (results["length"] == {"0": 3, "1": 130, "0, 1": 390}[axes]).all()
        assert (results["length"] == results["counting"]).all()
