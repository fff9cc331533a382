"""Windows of a loop's steps, whose ends are sums of what a workgroup knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from genrw.codegen.kernel_ir.linear import Linear, Unknown


@dataclass(frozen=True)
class Quotient:
    """A sum over a number above 0, rounded down; 0 where the sum is negative."""

    sum: Linear
    by: int

    @property
    def lo(self) -> int:
        return max(self.sum.lo, 0) // self.by

    @property
    def hi(self) -> int:
        return max(self.sum.hi, 0) // self.by


@dataclass(frozen=True)
class Extreme:
    """The least of two bounds, or the most."""

    choose: Callable[[int, int], int]
    a: Bound
    b: Bound

    @property
    def lo(self) -> int:
        return self.choose(self.a.lo, self.b.lo)

    @property
    def hi(self) -> int:
        return self.choose(self.a.hi, self.b.hi)


Bound = Quotient | Extreme


@dataclass(frozen=True)
class Window:
    """The steps from `first` on, before `end`; from the first one, up to the last one, where a bound is None. It may hold more
    steps than those that it is asked for, never less. `empty`: no step at all."""

    first: Bound | None = None
    end: Bound | None = None
    empty: bool = False

    def meet(self, other: Window) -> Window:
        """The steps in both."""
        if self.empty or other.empty:
            return NEVER
        return Window(_chosen(max, self.first, other.first), _chosen(min, self.end, other.end))

    def join(self, other: Window) -> Window:
        """All steps from the first in one of them to the last in one."""
        if self.empty or other.empty:
            return other if self.empty else self
        return Window(_in_both(min, self.first, other.first), _in_both(max, self.end, other.end))


ALWAYS, NEVER = Window(), Window(empty=True)


def _chosen(choose: Callable[[int, int], int], a: Bound | None, b: Bound | None) -> Bound | None:
    return _in_both(choose, a, b) if a is not None and b is not None else a if b is None else b


def _in_both(choose: Callable[[int, int], int], a: Bound | None, b: Bound | None) -> Bound | None:
    """The least or the most of two bounds; None where one of them does not bound."""
    if a is None or b is None:
        return None
    low, high = (a, b) if choose is min else (b, a)
    if a == b or low.hi <= high.lo:
        return low
    return high if high.hi <= low.lo else Extreme(choose, a, b)


def steps_where(sum_: Linear, step: Unknown) -> Window:
    """The steps at which a sum may be 0 or more."""
    factor, rest = sum_.without(step)
    if sum_.hi < 0:
        return NEVER
    if factor == 0 or sum_.lo >= 0:
        return ALWAYS
    if factor > 0:
        first = Quotient(rest.times(-1).plus(Linear(factor - 1)), factor)
        return Window(first=first if first.hi > step.lo else None)
    end = Quotient(rest.plus(Linear(-factor)), -factor)
    return Window(end=end if end.lo <= step.hi else None)
