"""When two values are the same, as a rule's contract says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from genrw.engine.language.arrays import Array
from genrw.engine.verify.judge import Tolerance, difference

NEARLY = Tolerance(scale=2.0**-40)


def differ(a: float, b: float, tolerance: Tolerance) -> bool:
    left, right = (Array(np.array([v], np.float32), "float") for v in (a, b))
    return difference(left, right, None, tolerance) is not None


@pytest.mark.parametrize("largest", [0.0, 1.0, 5e-324])
def test_signs_of_zeros_matter_only_where_nothing_may_differ(largest: float) -> None:
    """However small the largest value was that was met."""
    assert not differ(0.0, -0.0, replace(NEARLY, largest=largest))
    assert differ(0.0, -0.0, Tolerance(largest=largest))


def test_the_tolerance_goes_by_the_largest_value() -> None:
    assert not differ(0.0, 2.0**-40, NEARLY)
    assert differ(0.0, 2.0**-40, replace(NEARLY, largest=0.5))
    assert not differ(0.0, 2.0**-40, replace(NEARLY, largest=2.0))
