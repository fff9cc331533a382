"""What is taken out of an e-graph whose classes hold terms made of themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import genrw

CIRCLE = """\
stage simplify

/// A whole number is what it is rounded to, negated twice.
rule rounds_and_negates
  floor(x)
  => neg(round(neg(floor(x))))

rule negates_nothing
  neg(neg(x))
  => x
  replaces
"""

PROGRAM = """\
x = @param:x -> float{8}
f = floor(x)
c = neg(f)
r = round(c)
@return(r)
"""


def test_what_a_rule_replaced_ends_a_circle(tmp_path: Path) -> None:
    """`neg(floor(x))` is replaced by `round(neg(floor(x)))`, which then is made of itself alone."""
    (tmp_path / "circle.rw").write_text(CIRCLE)
    program = genrw.load(PROGRAM, rules=[tmp_path])
    assert str(program.lower("simplify")).splitlines()[1:] == [
        "x = @param:x -> float{8}",
        "f = floor(x) -> float{8}",
        "c = neg(f) -> float{8}",
        "@return(c)",
    ]
    x = np.array([-2.5, -1, -0.5, 0.5, 1, 1.5, 2.5, 3], np.float32)
    assert program.run({"x": x}, "interpret")["r"].tolist() == (-np.floor(x)).tolist()


def test_what_a_rule_replaced_is_not_taken_where_something_else_is_left(tmp_path: Path) -> None:
    rule = "stage simplify\n\nrule dearer\n  floor(x)\n  => neg(ceil(neg(x)))\n  replaces\n"
    (tmp_path / "dearer.rw").write_text(rule)
    lowered = str(genrw.load(PROGRAM, rules=[tmp_path]).lower("simplify"))
    assert "floor" not in lowered
    assert "ceil" in lowered
