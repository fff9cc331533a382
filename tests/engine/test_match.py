"""What left sides match."""

from __future__ import annotations

from pathlib import Path

import pytest

import genrw

TWICE = """
stage simplify

/// A square of an exponential.
rule squared
  mul(e@exp(x), e) => exp(add(x, x))
  replaces
  contract approximate 1e-6
"""


@pytest.mark.parametrize(("second", "matches"), [("e", True), ("y", False), ("f", False)])
def test_a_name_met_again_is_the_same_value(tmp_path: Path, second: str, matches: bool) -> None:
    """The name of a whole pattern too, not only that of an operand."""
    (tmp_path / "twice.rw").write_text(TWICE)
    text = f"""
        x = @param:x -> float{{4}}
        y = @param:y -> float{{4}}
        e = exp(x)
        f = exp(y)
        z = mul(e, {second})
        @return(z)
        """
    lowered = str(genrw.load(text, rules=[tmp_path]).lower("simplify"))
    assert ("add(x, x)" in lowered) == matches
