"""Whether two values are the same, as a rule's contract says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.functions import Value
from genrw.engine.verify.meaning import Written

_DOUBLE = 2.0**-52


@dataclass(frozen=True)
class Difference:
    """The first element at which two values differ: its place in words and, of arrays, as an index, and both values."""

    place: str
    left: str
    right: str
    index: tuple[int, ...] = ()


@dataclass(frozen=True)
class Tolerance:
    """How far values may be apart: relative to their own size, to the largest value met, and in units in the last
    place of their type. All three 0: not at all, bit for bit."""

    relative: float = 0.0
    scale: float = 0.0
    units: float = 0.0
    largest: float = 1.0

    @property
    def exact(self) -> bool:
        return not (self.relative or self.scale or self.units)


Free = Any
"""Where a value is unspecified: None for nowhere; of several values, a tuple of these."""


def difference(left: Value, right: Value, free: Free, tolerance: Tolerance) -> Difference | None:
    """The first place at which the right value is not what the left one is; None if there is none.

    Where `free`, the left value is unspecified, and the right one may be anything.
    """
    if isinstance(left, Written) or isinstance(right, Written):
        return _writes(left, right, tolerance)
    if isinstance(left, tuple):
        if not isinstance(right, tuple) or len(left) != len(right):
            return Difference("the number of values", str(len(left)), "another")
        parts = free if isinstance(free, tuple) else (None,) * len(left)
        found = (difference(a, b, f, tolerance) for a, b, f in zip(left, right, parts, strict=True))
        return next((d for d in found if d is not None), None)
    if not isinstance(left, Array) or not isinstance(right, Array):
        return Difference("the kind of value", type(left).__name__, type(right).__name__)
    if left.dtype != right.dtype:
        return Difference("the element type", left.dtype, right.dtype)
    return _arrays(left.values, right.values, left.dtype, free, tolerance)


def _arrays(a: Values, b: Values, dtype: str, free: Values | None, tolerance: Tolerance) -> Difference | None:
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        return Difference("the lengths", str(list(a.shape)), str(list(b.shape)))
    with np.errstate(all="ignore"):
        wrong = ~_same(a, b, dtype, tolerance)
    if free is not None:
        wrong &= ~np.broadcast_to(free, wrong.shape)
    if not np.any(wrong):
        return None
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return Difference(_place(place), shown(a[place]), shown(b[place]), tuple(int(p) for p in place))


def _same(a: Values, b: Values, dtype: str, tolerance: Tolerance) -> Values:
    if DTYPES[dtype].is_float:
        a, b = (v if v.dtype.kind == "f" else v.astype(np.float64) for v in (a, b))
    equal = a == b
    if a.dtype.kind != "f":
        return np.asarray(equal)
    nan = np.isnan(a) & np.isnan(b)
    if tolerance.exact:
        return np.asarray(nan | (equal & (np.signbit(a) == np.signbit(b))))
    sizes = np.maximum(np.abs(a), np.abs(b))
    units = tolerance.units * (DTYPES[dtype].epsilon * sizes + _SMALLEST.get(dtype, 2.0**-126))
    close = np.abs(a - b) <= tolerance.relative * sizes + tolerance.scale * tolerance.largest + units
    return np.asarray(nan | equal | (np.isfinite(a) & np.isfinite(b) & close))


_SMALLEST = {"half": 2.0**-14, "double": 2.0**-1022}


def _writes(left: Value, right: Value, tolerance: Tolerance) -> Difference | None:
    """Compare what is written where, lane by lane."""
    if not (isinstance(left, Written) and isinstance(right, Written)):
        return Difference("the kind of value", type(left).__name__, type(right).__name__)
    a, b = _log(left), _log(right)
    for key in sorted(a.keys() | b.keys()):
        if key not in a or key not in b:
            return Difference(
                _place_of_write(key), shown(a[key]) if key in a else "nothing", shown(b[key]) if key in b else "nothing"
            )
        one, other = np.asarray(a[key]), np.asarray(b[key])
        if not bool(_same(one, other, left.type.dtype, tolerance)):
            return Difference(_place_of_write(key), shown(one), shown(other))
    return None


def _log(memory: Written) -> dict[tuple[int, ...], Any]:
    """What each lane writes at each step to each offset."""
    found: dict[tuple[int, ...], Any] = {}
    for offsets, values, where in memory.log:
        for place in np.argwhere(where):
            key = (*(int(p) for p in place[:3]), int(offsets[tuple(place)]))
            found[key] = values[tuple(place)]
    return found


def _place_of_write(key: tuple[int, ...]) -> str:
    return f"offset {key[3]}, written in group {key[0]}, lane {key[1]}, step {key[2]}"


def _place(place: tuple[Any, ...]) -> str:
    return "{" + ", ".join(str(int(p)) for p in place) + "}"


def listed(values: Values, most: int = 16) -> str:
    """The elements of an array as messages write them, in order, the first ones of many."""
    flat = np.asarray(values).reshape(-1)
    texts = [shown(v) for v in flat[:most]] + (["…"] if flat.size > most else [])
    return "{" + ", ".join(texts) + "}"


def shown(value: Any) -> str:
    """A number as messages write it."""
    number = value.item() if hasattr(value, "item") else value
    return str(number).lower() if isinstance(number, bool) else repr(number)
