"""Operands that stand bare in the texts of operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import genrw

OPERATORS = """
op minus(x: T, y: T) -> T where T: number
  role pointwise
  means x - y
  emit "{{x}} - {{y}}" prec add

op same(x: T) -> T where T: any
  role pointwise
  means x
  emit "{{x}}"

op mine(x: T) -> T where T: any
  role pointwise
  means x
  device QQQ
template <class T>
GEN_DEVICE gen::array<T, 1> only(T x)
{
    gen::array<T, 1> made;
    made[0] = x;
    return made;
}
QQQ
  emit "only({{x}})[0]"
""".replace("QQQ", '"""')


@pytest.mark.parametrize(
    "steps", [["minus(y, x)"], ["minus(y, x)", "same(minus)"], ["minus(y, x)", "mine(minus)", "same(mine)"]]
)
@pytest.mark.parametrize("target", ["host", "gfx942"])
def test_a_difference_within(tmp_path: Path, steps: list[str], target: str) -> None:
    """What is nothing but an operand binds as that does."""
    (tmp_path / "mine.rw").write_text(OPERATORS)
    inputs = ["x = @param:x -> int32{64}", "y = @param:y -> int32{64}"]
    last = steps[-1].split("(")[0]
    text = "\n".join([*inputs, *steps, f"z = minus(x, {last})", "@return(z)"])
    x, y = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32)[::-1].copy()
    kernel = genrw.compile(text, target, rules=[tmp_path])
    np.testing.assert_array_equal(kernel(x, y), x - (y - x))
