"""Values that are known in part: what they can be at the steps of a loop, and what operations make of that.

An index lies between two sums of what a workgroup knows. A condition may hold at some steps, and may fail at some. A value is a
number, or one of two by a condition, or anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isinf, isnan

from genrw.codegen.kernel_ir.linear import Linear, Unknown
from genrw.codegen.kernel_ir.windows import ALWAYS, NEVER, Window, steps_where
from genrw.engine.language.operators import BINARY


@dataclass(frozen=True)
class Between:
    """An integer from one sum to another."""

    lo: Linear
    hi: Linear


@dataclass(frozen=True)
class Number:
    """A number that is known, and no integer of an index."""

    value: float


@dataclass(frozen=True)
class Truth:
    """At which steps a condition may hold for some element of some lane, and at which it may fail for one."""

    holds: Window
    fails: Window


@dataclass(frozen=True)
class Choice:
    """One value where a condition holds, another where it fails."""

    condition: Truth
    then: Meant
    otherwise: Meant


Meant = Between | Number | Truth | Choice | str | None
"""None: anything."""

_EXACT = {"half": 1 << 11, "bf16": 1 << 8, "float": 1 << 24, "double": 1 << 53, "int32": 1 << 31, "int64": 1 << 62}
"""Up to where a type holds every integer."""
_LIMIT = 1 << 31
_MOST = 64
"""Of how many values one is chosen at most; where there are more, nothing is known."""


def number(value: int) -> Between:
    return Between(Linear(value), Linear(value))


def constant(value: object) -> Meant:
    if isinstance(value, bool):
        return Truth(ALWAYS, NEVER) if value else Truth(NEVER, ALWAYS)
    if isinstance(value, int) and abs(value) < _LIMIT:
        return number(value)
    return Number(value) if isinstance(value, float) and not isnan(value) else None


# ---- operations


def for_each_choice(compute: Callable[..., Meant], *values: Meant) -> Meant:
    """An operation on values, for each choice of each of them."""
    for i, value in enumerate(values):
        if isinstance(value, Choice):
            then, otherwise = (
                for_each_choice(compute, *values[:i], side, *values[i + 1 :]) for side in (value.then, value.otherwise)
            )
            return choice(value.condition, then, otherwise)
    return compute(*values)


def choice(condition: Meant, then: Meant, otherwise: Meant) -> Meant:
    if then == otherwise:
        return then
    if not isinstance(condition, Truth):
        condition = Truth(ALWAYS, ALWAYS)
    if isinstance(then, Truth) and isinstance(otherwise, Truth):
        holds = condition.holds.meet(then.holds).join(condition.fails.meet(otherwise.holds))
        return Truth(holds, condition.holds.meet(then.fails).join(condition.fails.meet(otherwise.fails)))
    if condition.fails.empty or condition.holds.empty:
        return then if condition.fails.empty else otherwise
    return Choice(condition, then, otherwise) if _values(then) + _values(otherwise) <= _MOST else None


def _values(value: Meant) -> int:
    """How many values there are to choose from."""
    return _values(value.then) + _values(value.otherwise) if isinstance(value, Choice) else 1


def sum_of(a: Meant, b: Meant, factor: int = 1) -> Meant:
    if isinstance(a, Between) and isinstance(b, Between):
        low, high = (b.lo, b.hi) if factor > 0 else (b.hi, b.lo)
        return _bounded(Between(a.lo.plus(low, factor), a.hi.plus(high, factor)))
    return computed("+" if factor > 0 else "-", a, b)


def difference(a: Meant, b: Meant) -> Meant:
    return sum_of(a, b, -1)


def product(a: Meant, b: Meant) -> Meant:
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Between) and isinstance(y, Between) and y.lo == y.hi and not y.lo.terms:
            ends = (x.lo.times(y.lo.number), x.hi.times(y.lo.number))
            return _bounded(Between(*(ends if y.lo.number >= 0 else reversed(ends))))
    return computed("*", a, b)


def quotient(a: Meant, b: Meant) -> Meant:
    divisor = _divisor(b)
    if isinstance(a, Between) and divisor:
        return Between(Linear(a.lo.lo // divisor), Linear(a.hi.hi // divisor))
    return None


def remainder(a: Meant, b: Meant) -> Meant:
    divisor = _divisor(b)
    if isinstance(a, Between) and divisor:
        return a if a.lo.lo >= 0 and a.hi.hi < divisor else Between(Linear(0), Linear(divisor - 1))
    return None


def _divisor(b: Meant) -> int:
    """The number above 0 by which is divided; 0 where it is not known."""
    return max(b.lo.number, 0) if isinstance(b, Between) and b.lo == b.hi and not b.lo.terms else 0


def _bounded(value: Between) -> Meant:
    """The value, unless it may not fit into 32 bits."""
    return value if value.lo.lo >= -_LIMIT and value.hi.hi < _LIMIT else None


def computed(op: str, a: Meant, b: Meant) -> Meant:
    """An operation on known numbers."""
    x, y = _float(a), _float(b)
    if x is None or y is None or op not in BINARY:
        return None
    try:
        found = float(BINARY[op].value(x, y))
    except (ArithmeticError, ValueError):
        return None
    return None if isnan(found) else Number(found)


def _float(x: Meant) -> float | None:
    if isinstance(x, Between) and x.lo == x.hi and not x.lo.terms:
        return float(x.lo.number)
    return x.value if isinstance(x, Number) else None


def extreme(function: str, a: Meant, b: Meant) -> Meant:
    if not (isinstance(a, Between) and isinstance(b, Between)):
        return None
    low, high = (a, b) if function == "min" else (b, a)
    if low.hi.plus(high.lo, -1).hi <= 0:
        return low
    choose = min if function == "min" else max
    return Between(Linear(choose(a.lo.lo, b.lo.lo)), Linear(choose(a.hi.hi, b.hi.hi)))


def converted(x: Meant, dtype: str) -> Meant:
    if isinstance(x, Between):
        limit = _EXACT.get(dtype, 0)
        return x if -limit <= x.lo.lo and x.hi.hi <= limit - dtype.startswith("int") else None
    if isinstance(x, Number):
        return x if isinf(x.value) or x.value == 0 else None
    return None


# ---- conditions


def both(a: Meant, b: Meant) -> Meant:
    if isinstance(a, Truth) or isinstance(b, Truth):
        x, y = (t if isinstance(t, Truth) else Truth(ALWAYS, ALWAYS) for t in (a, b))
        return Truth(x.holds.meet(y.holds), x.fails.join(y.fails))
    return None


def one_of(a: Meant, b: Meant) -> Meant:
    return opposite(both(opposite(a), opposite(b)))


def opposite(a: Meant) -> Meant:
    return Truth(a.fails, a.holds) if isinstance(a, Truth) else None


class Comparing:
    """Comparisons of integers, at the steps of a loop."""

    def __init__(self, step: Unknown) -> None:
        self.by_name = {
            "<=": self._at_most,
            "<": lambda a, b: opposite(self._at_most(b, a)),
            ">=": lambda a, b: self._at_most(b, a),
            ">": lambda a, b: opposite(self._at_most(a, b)),
            "==": self._equal,
            "!=": lambda a, b: opposite(self._equal(a, b)),
        }
        self.step = step

    def _at_most(self, a: Meant, b: Meant) -> Meant:
        x, y = _integer(a), _integer(b)
        if x is None or y is None:
            return None
        above = x.hi.plus(y.lo, -1).plus(Linear(-1))
        return Truth(steps_where(y.hi.plus(x.lo, -1), self.step), steps_where(above, self.step))

    def _equal(self, a: Meant, b: Meant) -> Meant:
        one, other = self._at_most(a, b), self._at_most(b, a)
        return both(one, other) if isinstance(one, Truth) and isinstance(other, Truth) else None


def _integer(x: Meant) -> Between | None:
    if isinstance(x, Number) and not isinf(x.value) and x.value == int(x.value) and abs(x.value) < _LIMIT:
        return number(int(x.value))
    return x if isinstance(x, Between) else None


OPERATIONS: dict[str, Callable[[Meant, Meant], Meant]] = {
    "+": sum_of,
    "-": difference,
    "*": product,
    "//": quotient,
    "%": remainder,
    "and": both,
    "or": one_of,
}
"""What operators of meanings make of two values."""
