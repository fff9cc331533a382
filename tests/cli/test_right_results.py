"""What results of programs may be: close to double, or what the program decides in its own types."""

from __future__ import annotations

import numpy as np
import pytest

import genrw
from genrw.engine.interpret.inputs import random_inputs
from genrw.reference import Reference

PROGRAM = """x = @param:x -> float{1, 8}
a = logsoftmax[axis=1](x)
b = argmax[axis=1](a)
c = convert[target_type=float](b)
y = mul(c, 2.0)
@return(y)
"""


def reference(*largest: tuple[int, float]) -> Reference:
    x = np.zeros((1, 8), np.float32)
    for place, value in largest:
        x[0, place] = value
    return Reference(genrw.load(PROGRAM), {"x": x})


def found(place: int) -> dict[str, np.ndarray]:
    return {"y": np.full((1, 1), 2.0 * place, np.float32)}


@pytest.mark.parametrize("place", [3, 5])
def test_either_of_two_elements_that_rounding_makes_equal_is_right(place: int) -> None:
    nearly = np.nextafter(np.float32(1e-6), np.float32(0))
    assert reference((3, nearly), (5, 1e-6)).first_problem(found(place)) is None


@pytest.mark.parametrize("place", [0, 3, 7])
def test_only_those_are(place: int) -> None:
    problem = reference((3, 0.5), (5, 1.0)).first_problem(found(place))
    assert problem is not None
    assert problem.endswith("where 10.0 is right")


def test_a_result_of_other_extents_is_wrong() -> None:
    problem = reference((3, 1.0)).first_problem({"y": np.zeros((1, 2), np.float32)})
    assert problem == "y has lens [1, 2] where [1, 1] is right"


ROUNDED = """x = @param:x -> half{1, 3}
a = @param:a -> half{1, 2}
s = reduce_sum[axes={1}](x)
b = concat[axis=1](a, s)
y = argmax[axis=1](b)
@return(y)
"""


def rounded(*values: float) -> Reference:
    """The sum is half way between 1 and what follows it: rounded to even it is 1."""
    step = float(np.spacing(np.float16(1)))
    inputs = {"x": np.array([[1, step / 4, step / 4]], np.float16), "a": np.array([values], np.float16)}
    return Reference(genrw.load(ROUNDED), inputs)


@pytest.mark.parametrize("place", [0, 2])
def test_a_rounding_may_go_either_way(place: int) -> None:
    assert rounded(1.0, 0.5).first_problem({"y": np.array([[place]])}) is None


def test_what_no_rounding_decides_is_wrong() -> None:
    assert rounded(1.0, 0.5).first_problem({"y": np.array([[1]])}) is not None
    assert rounded(1.5, 0.5).first_problem({"y": np.array([[2]])}) is not None


def test_exact_elements_are_not_rounded() -> None:
    """The first of two equal elements is the largest, and the second one is not."""
    inputs = {"x": np.array([[1, 0.5, 0]], np.float16), "a": np.array([[1.5, 1.5]], np.float16)}
    found = Reference(genrw.load(ROUNDED), inputs)
    assert found.first_problem({"y": np.array([[1]])}) is not None
    assert found.first_problem({"y": np.array([[2]])}) is not None


MANY_CHOICES = """x = @param:x -> {}{{512, 64}}
q = exp(x)
s = reduce_sum[axes={{1}}](q)
p = div(q, s)
r = mul(p, 0.01)
c = cos(r)
z = hardmax[axis=1](c)
i = argmax[axis=1](c)
@return(z, i)
"""


@pytest.mark.parametrize("dtype", ["half", "bf16", "float"])
def test_many_roundings_decide_many_elements(dtype: str) -> None:
    """All cosines are nearly 1, and a kernel does not round them to a half: each of some dozens in a row may be the largest."""
    program = genrw.load(MANY_CHOICES.format(dtype))
    inputs = random_inputs(program.modules[0], program.library, 0)
    results = program.lower(program.stages[-1]).run(inputs, "interpret")
    assert Reference(program, inputs).first_problem(results) is None
    small = np.argmax(inputs["x"].astype(np.float64), axis=1, keepdims=True)
    assert Reference(program, inputs).first_problem({"i": small}) is not None


NEAR = """x = @param:x -> float{1, 3}
q = div_near(x, x)
f = floor(q)
l = log(q)
d = div(x, x)
e = floor(d)
@return(f, l, e)
"""


def near(**results: list[float]) -> str | None:
    """What is wrong with results, of which others are right."""
    one, none = [1.0] * 3, [0.0] * 3
    named = {"f": one, "l": none, "e": one} | results
    return Reference(genrw.load(NEAR), {"x": np.array([[3.0, 5.0, 7.0]], np.float32)}).first_problem(
        {name: np.array([row], np.float32) for name, row in named.items()}
    )


@pytest.mark.parametrize("results", [{}, {"f": [0.0, 1.0, 0.0]}, {"l": [-(2.0**-24), 2.0**-23, 0.0]}])
def test_an_operator_that_says_how_near_it_is_may_be_so_far_off(results: dict[str, list[float]]) -> None:
    """Of exact results, too: who is not exact is so nowhere."""
    assert near(**results) is None


@pytest.mark.parametrize(
    "results", [{"f": [2.0, 1.0, 1.0]}, {"f": [-1.0, 1.0, 1.0]}, {"l": [1e-6, 0.0, 0.0]}, {"e": [0.0, 1.0, 1.0]}]
)
def test_but_no_further(results: dict[str, list[float]]) -> None:
    assert near(**results) is not None
