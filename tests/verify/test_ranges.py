"""The ranges that operators on indices declare hold for all values of their operands."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from genrw.authoring.rulesets import load_library
from genrw.engine.library.library import Library, Operator
from genrw.grammar.diagnostics import GenrwError

NUMBERS = range(-7, 8)
ARITHMETIC = [
    operator.name
    for operator in load_library().operators.values()
    if operator.decl.lo is not None
    and operator.decl.means is not None
    and "nowhere" not in operator.decl.stages
    and operator.decl.operands
    and not operator.attributes
    and all(o.sort == "index" for o in operator.decl.operands)
]


class Range:
    """An index as declarations see it, of which the ends are known."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def member(self, name: str) -> int:
        return {"lo": self.low, "hi": self.high, "pow2": 1, "size": 0}[name]


def declared(operator: Operator, ranges: dict[str, Range]) -> tuple[int, int] | None:
    """The ends of the result's range; None if none is declared for such operands."""
    assert operator.decl.lo is not None
    assert operator.decl.hi is not None
    try:
        low, high = (operator.scope.compile(end)(ranges) for end in (operator.decl.lo, operator.decl.hi))
    except GenrwError:
        return None
    return int(low), int(high)


def test_arithmetic_declares_ranges() -> None:
    assert len(ARITHMETIC) >= 7


@pytest.mark.parametrize("name", ARITHMETIC)
def test_values_are_in_the_declared_range(name: str, library: Library) -> None:
    operator = library.operator(name)
    names = [o.name for o in operator.decl.operands]
    assert operator.decl.means is not None
    means = operator.scope.compile(operator.decl.means)
    random = Random(0)
    known = 0
    for _ in range(300):
        ranges = {n: Range(*sorted(random.choices(NUMBERS, k=2))) for n in names}
        ends = declared(operator, ranges)
        if ends is None:
            continue
        known += 1
        for values in product(*(range(r.low, r.high + 1) for r in ranges.values())):
            env = dict(zip(names, values, strict=True))
            if all(_is_true(operator, i, env) for i in range(len(operator.decl.domain))):
                assert ends[0] <= means(env) <= ends[1], (env, ends)
    assert known > 30


def _is_true(operator: Operator, place: int, env: dict[str, int]) -> bool:
    return operator.domain[place](env) is True
