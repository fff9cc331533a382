"""Whether two results are the same: exact types equal, floating ones close to a more precise reference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.language.arrays import Values
from genrw.engine.language.functions import shown

RMS_BOUND = 80
"""How many epsilons the root of the mean square error may be, in terms of the largest reference value."""
ELEMENT_BOUND = 8 * RMS_BOUND
"""How many epsilons one element may be off, in terms of its own and of the typical reference value."""

_SMALLEST_NORMAL_FLOAT = 2.0**-126
_SMALLEST_NORMAL = {"half": 2.0**-14, "double": 2.0**-1022}


def first_problem(results: Iterable[tuple[str, Values, Values, str]]) -> str | None:
    """What is wrong with the first wrong one of results, each with its name, its reference and its element type."""
    for name, got, want, dtype in results:
        problem = compare(got, want, dtype)
        if problem:
            return f"{name} {problem}"
    return None


def compare(got: Values, want: Values, dtype: str) -> str | None:
    """None if results of an element type agree, else a sentence about the worst element."""
    if got.shape != want.shape:
        return f"has lens {list(got.shape)} where {list(want.shape)} is right"
    if not got.size:
        return None
    if not DTYPES[dtype].is_float:
        return _worst(got, want, (got != want).astype(np.float64))
    with np.errstate(all="ignore"):
        return _compare_floats(got, want, dtype)


def _compare_floats(got: Values, want: Values, dtype: str) -> str | None:
    # what lies beyond the type's range rounds to an infinity
    rounded = want.astype(numpy_dtype(dtype)).astype(np.float64)
    found, right = got.astype(np.float64), want.astype(np.float64)
    special = ~np.isfinite(rounded) | ~np.isfinite(found)
    difference, sizes = np.abs(found - right), np.abs(right)
    # large results rarely have such elements, and each look at all of them takes long
    if np.any(special):
        same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        if np.any(special & ~same):
            return _worst(got, want, (special & ~same).astype(np.float64))
        difference, sizes = np.where(special, 0.0, difference), np.where(special, 0.0, sizes)
    epsilon = DTYPES[dtype].epsilon
    typical = _root_mean_square(sizes)
    # below the smallest normal number a type has not its full precision, and devices may flush to 0
    tiny = _SMALLEST_NORMAL.get(dtype, _SMALLEST_NORMAL_FLOAT)
    excess = difference / (ELEMENT_BOUND * epsilon * (sizes + typical + tiny))
    if np.any(excess > 1):
        return _worst(got, want, excess)
    error = _root_mean_square(difference) / (np.max(sizes) + tiny)
    if error > RMS_BOUND * epsilon:
        place = _worst(got, want, excess)
        return f"{place}; the RMS error is {error / epsilon:.3g} epsilons of the largest value"
    return None


def _root_mean_square(values: Values) -> float:
    """In parts of the largest value, whose square may be beyond double."""
    largest = np.max(values)
    return float(largest * np.sqrt(np.mean((values / largest) ** 2))) if largest > 0 else 0.0


def _worst(got: Values, want: Values, badness: Values) -> str | None:
    """The element of which the most is wrong; None if nothing is."""
    if not np.any(badness > 0):
        return None
    place = np.unravel_index(int(np.argmax(badness)), badness.shape)
    count = int(np.sum(badness >= 1)) or 1
    more = f" ({count} of {badness.size} elements are wrong)" if count > 1 else ""
    return f"is {_shown(got[place])} at {shown(place)} where {_shown(want[place])} is right{more}"


def _shown(value: Any) -> str:
    return repr(value.item()) if hasattr(value, "item") else str(value)
