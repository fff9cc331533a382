"""Operators that choose the type of their result, printed as what they mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import genrw
from genrw.engine.interpret.inputs import random_inputs
from genrw.reference import Reference

OPERATORS = """
op as_it_is[t: dtype = x.type](x: T) -> t where T: any
  role pointwise
  means convert(x, t)

op mixed[t: dtype](x: any, y: any) -> t
  role pointwise
  means convert(convert(x, "float") * 0.5 + convert(y, "float"), t)

op chosen[t: dtype](c: bool, x: T) -> t where T: any
  role pointwise
  means convert(x, t) if c else convert(0, t)

op short(x: T) -> half where T: any
  role pointwise
  means convert(x, "half")
"""


@pytest.mark.parametrize("target", ["host", "gfx942"])
def test_what_is_converted_is_of_the_type_that_it_is_stored_as(tmp_path: Path, target: str) -> None:
    (tmp_path / "mine.rw").write_text(OPERATORS)
    types = ["half", "bf16", "float", "int8", "uint64", "bool"]
    lines = [f"x{t} = @param:x{t} -> {t}{{32}}" for t in types]
    lines += [f"as{s} = as_it_is(x{s})" for s in types]
    lines += [f"s{s} = short(x{s})" for s in types]
    lines += [
        f"m{s}{t} = mixed[t={t}](x{s}, xfloat)\nc{s}{t} = chosen[t={t}](xbool, x{s})" for s in types for t in types
    ]
    names = [word.split(" = ")[0] for line in lines[len(types) :] for word in line.split("\n")]
    program = genrw.load("\n".join([*lines, f"@return({', '.join(names)})"]), target=target, rules=[tmp_path])
    inputs = dict(random_inputs(program.modules[0], program.library, 3))
    assert Reference(program, inputs).first_problem(program.run(inputs)) is None


def test_an_operator_of_halves_alone_is_computed_as_it_says(tmp_path: Path) -> None:
    """Rules that compute in float leave out what takes no floats."""
    text = 'op twice(x: half) -> half\n  role pointwise\n  means x + x\n  emit "gen::half(2.0f * gen::convert<float>({{x}}))"\n'
    text += "\nop is_large(x: bf16, y: bf16) -> bool\n  role pointwise\n  means x + y > 4\n"
    (tmp_path / "mine.rw").write_text(text)
    lines = "x = @param:x -> half{40}\nb = @param:b -> bf16{40}\ny = twice(x)\nz = is_large(b, b)\n@return(y, z)"
    program = genrw.load(lines, rules=[tmp_path], trust_rules=True)
    inputs = dict(random_inputs(program.modules[0], program.library, 3))
    assert Reference(program, inputs).first_problem(program.run(inputs)) is None


def test_a_fold_of_nothing_is_what_it_starts_from(tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text("monoid twice_as_much\n  identity 3\n  combine a + b - 3\n")
    text = "x = @param:x -> int32{4, 0}\ny = reduce_twice_as_much[axes={1}](x)\n@return(y)"
    results = genrw.load(text, rules=[tmp_path]).run({"x": np.zeros((4, 0), np.int32)})
    assert results["y"].tolist() == [[3]] * 4
