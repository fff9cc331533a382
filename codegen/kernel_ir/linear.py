"""Sums of unknown integers times numbers: what is known of indices before a kernel runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from genrw.engine.ir.nodes import Node


@dataclass(frozen=True, eq=False)
class Unknown:
    """An integer from `lo` to `hi`: a node's value. It is known by its identity."""

    node: Node
    lo: int
    hi: int


@dataclass(frozen=True)
class Linear:
    """A number, and unknowns with their factors, none of which is 0."""

    number: int
    terms: tuple[tuple[Unknown, int], ...] = ()

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The sum with so many times another one."""
        factors = dict(self.terms)
        for unknown, times in other.terms:
            factors[unknown] = factors.get(unknown, 0) + factor * times
        return Linear(self.number + factor * other.number, tuple((u, f) for u, f in factors.items() if f))

    def times(self, factor: int) -> Linear:
        """Each part so many times."""
        return Linear(0).plus(self, factor)

    def without(self, unknown: Unknown) -> tuple[int, Linear]:
        """The factor of an unknown, and the rest."""
        factor = dict(self.terms).get(unknown, 0)
        return factor, self.plus(Linear(0, ((unknown, factor),)), -1) if factor else self

    @cached_property
    def lo(self) -> int:
        """No value is lower."""
        return self.number + sum(f * (u.lo if f > 0 else u.hi) for u, f in self.terms)

    @cached_property
    def hi(self) -> int:
        """No value is higher."""
        return self.number + sum(f * (u.hi if f > 0 else u.lo) for u, f in self.terms)
