"""What results of programs may be: close to double, or what the program decides in its own types."""

from __future__ import annotations

import numpy as np
import pytest

import genrw
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
