"""Calls of modules that do not fit these, and results that have more names than there are: told where they are written."""

from __future__ import annotations

import numpy as np
import pytest
from support import load

from genrw.grammar.diagnostics import GenrwError

ONE = "\n@module one\np = @param:p -> float{3}\nq = @param:q -> half{2}\nm = exp(p)\n@return(m)\n"
GIVEN = "@module main\nx = @param:x -> float{3}\ny = @param:y -> half{2}\nz = @param:z -> float{2}\n"

CALLS = {
    "too many": ("a = call[module=one](x, y, y)", "5:5: error: `one` takes 2 operands, not 3"),
    "too few": ("a = call[module=one](x)", "5:5: error: `one` takes 2 operands, not 1"),
    "a number": ("a = call[module=one](3, y)", "5:22: error: a module is given values, not numbers"),
    "another element type": ("a = call[module=one](y, y)", "5:22: error: `y` is half{2}, but `p` of `one` is float{3}"),
    "another shape": ("a = call[module=one](z, y)", "5:22: error: `z` is float{2}, but `p` of `one` is float{3}"),
    "more names": ("a, b = call[module=one](x, y)", "5:4: error: `call` makes 1 value, not 2"),
    "another result": ("a = call[module=one](x, y) -> float{2}", "5:31: error: the result is float{3}, not float{2}"),
    "more names than an operator has results": ("a, b = exp(x)", "5:4: error: `exp` makes 1 value, not 2"),
    "more names than a parameter": (
        "a, b = @param:b -> float{3}",
        "5:4: error: `@param` makes 1 value, not 2",
    ),
    "more names than a constant": (
        "a, b, c = @literal{3} -> float{3}",
        "5:4: error: `@literal` makes 1 value, not 3",
    ),
    "no results": ("a = call[module=none](x)", "5:17: error: module `none` has no `@return`"),
}
NONE = "\n@module none\np = @param:p -> float{3}\nm = exp(p)\n"


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_do_not_fit_are_told(name: str) -> None:
    line, said = CALLS[name]
    with pytest.raises(GenrwError) as told:
        load(f"{GIVEN}{line}\n@return(a)\n{ONE}{NONE}")
    assert str(told.value).startswith(f"test.gen:{said}\n")
    assert str(told.value).count(": error: ") == 1


def test_modules_of_elements_take_tensors() -> None:
    """A parameter without axes stands for the elements of what it is given."""
    text = (
        "@module main\nx = @param:x -> float{3}\ny = @param:y -> float{3}\nz = pointwise[module=sum](x, y)\n@return(z)\n"
        "\n@module sum\na = @param:a -> float\nb = @param:b -> float\ns = add(a, b)\n@return(s)\n"
    )
    assert load(text).run({"x": np.arange(3, dtype=np.float32), "y": np.ones(3, np.float32)}, "interpret")[
        "z"
    ].tolist() == [1, 2, 3]


def test_results_may_stay_without_names() -> None:
    text = (
        "@module main\nx = @param:x -> float{3}\na = call[module=two](x)\n@return(a)\n"
        "\n@module two\np = @param:p -> float{3}\nm = exp(p)\nn = sqrt(p)\n@return(m, n)\n"
    )
    assert [*load(text).results] == ["a"]
