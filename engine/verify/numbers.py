"""Formulas over many integers at once: what a solver does not decide is looked at for all numbers of 8 bits, where they
are few, and for random ones of 8 and of 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

FEW = 3
"""So many integers of 8 bits have 2^24 values together: all of these are looked at, of more integers random ones."""
_SAMPLES = {8: 1 << 19, 32: 1 << 15}
_OFTEN = (0, 1, 2, 3, 4, 8, 16, 64, 256, -1)


class Numbers:
    """Integers as arrays, in place of a solver's symbols. Those of 32 bits are exact however large they get."""

    def __init__(self, bits: int, names: list[str] | None = None) -> None:
        self.bits, self.names = bits, names
        self.rng = np.random.default_rng(bits)

    def Int(self, name: str) -> Any:
        """All values of an integer, each with all of the others, or random ones: every other small or a power of two."""
        if self.names is not None:
            place = self.names.index(name)
            lens = [1] * len(self.names)
            lens[place] = 1 << self.bits
            return np.arange(-(1 << self.bits - 1), 1 << self.bits - 1).reshape(lens)
        count, half = _SAMPLES[self.bits], 1 << self.bits - 1
        wide = self.rng.integers(-half, half, count) >> self.rng.integers(0, self.bits, count)
        often = np.concatenate([_OFTEN, 1 << np.arange(self.bits - 1)])
        often = self.rng.choice(often[(often >= -half) & (often < half)], count)
        return np.where(self.rng.random(count) < 0.5, often, wide).astype(object if self.bits > 8 else np.int64)

    def IntVal(self, value: int) -> int:
        """A constant."""
        return value

    def BoolVal(self, value: bool) -> Any:
        """A truth value."""
        return np.bool_(value)

    def If(self, condition: Any, a: Any, b: Any) -> Any:
        """The one or the other."""
        return np.where(condition, a, b)

    def And(self, *parts: Any) -> Any:
        """Do all hold?"""
        return self._joined(parts, np.logical_and, True)

    def Or(self, *parts: Any) -> Any:
        """Does one hold?"""
        return self._joined(parts, np.logical_or, False)

    def Not(self, part: Any) -> Any:
        """Does it not hold?"""
        return np.logical_not(np.asarray(part, np.bool_))

    def _joined(self, parts: Any, join: Any, found: Any) -> Any:
        for part in parts:
            found = join(found, np.asarray(part, np.bool_))
        return found

    def quotient(self, a: Any, b: Any) -> Any:
        """The quotient rounded towards minus infinity; some number for divisors of 0."""
        return a // np.where(np.asarray(b == 0, np.bool_), 1, b)

    def is_int(self, value: Any) -> bool:
        """Is it no truth value?"""
        return np.asarray(value).dtype != np.bool_


class Symbols:
    """A solver's symbols, with the operations that formulas are made of."""

    def __init__(self) -> None:
        import z3

        self.z3 = z3
        self.Int, self.IntVal, self.BoolVal = z3.Int, z3.IntVal, z3.BoolVal
        self.If, self.And, self.Or, self.Not = z3.If, z3.And, z3.Or, z3.Not
        self.is_int = z3.is_int

    def quotient(self, a: Any, b: Any) -> Any:
        """The quotient rounded towards minus infinity: the solver's own is that for positive divisors."""
        return self.z3.If(b > 0, a / b, (-a) / (-b))
