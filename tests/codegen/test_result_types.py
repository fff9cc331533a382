"""Operators that choose the type of their result, printed as what they mean."""

from __future__ import annotations

from pathlib import Path

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
