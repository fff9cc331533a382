"""Which instances of a test run when: always, unless only quick tests are wanted, or when all are asked for.

`slow` tests are left out by `-m "not slow"`. `exhaustive` ones repeat on every combination what others prove on a choice
of them; they run with `-m ""` or `-m exhaustive`, and are `slow` as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest

SLOW = (pytest.mark.slow,)
EXHAUSTIVE = (pytest.mark.slow, pytest.mark.exhaustive)


def first_quick(values: Iterable[Any], quick: int = 1, usual: int | None = None) -> list[Any]:
    """Parameters of which the first few are quick to try; from `usual` on they are exhaustive, the others slow."""
    found = []
    for i, value in enumerate(values):
        marks = () if i < quick else SLOW if usual is None or i < usual else EXHAUSTIVE
        found.append(_marked(value, marks))
    return found


def spread(first: Sequence[Any], *others: Sequence[Any], quick: int = 1) -> list[Any]:
    """All combinations of the axes' values. So many are usual that each value of the first axis and each combination of
    the other axes is among them, and of these so many are quick; the rest is exhaustive."""
    rest = list(product(*others))
    period = min(len(first), len(rest))
    found, usual = [], 0
    for (i, value), (j, other) in product(enumerate(first), enumerate(rest)):
        chosen = (i + j) % period == 0
        usual += chosen
        found.append(
            pytest.param(value, *other, marks=() if chosen and usual <= quick else SLOW if chosen else EXHAUSTIVE)
        )
    return found


def _marked(value: Any, marks: Sequence[pytest.MarkDecorator]) -> Any:
    """A parameter with more marks."""
    if not marks:
        return value
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, id=value.id, marks=(*value.marks, *marks))
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks)
