"""Whether two results are the same: exact types equal, floating ones close to a more precise reference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Node, walk
from genrw.engine.language.arrays import Values
from genrw.engine.language.functions import shown
from genrw.engine.library.library import Library, nearness

RMS_BOUND = 80
"""How many epsilons the root of the mean square error may be, in terms of the largest reference value."""
ELEMENT_BOUND = 8 * RMS_BOUND
"""How many epsilons one element may be off, in terms of its own and of the typical reference value."""

_SAID = 8
"""How many epsilons is as exact as an operator that says so: its value and what others make of it may be off by several times
as much."""

RANGE_BOUND = 8
"""How many epsilons from the end of a type's range a reference may be where what lies on the other side is right as well."""

_COMPUTES_NOTHING = ("boundary", "index_map")
_SMALLEST_NORMAL_FLOAT = 2.0**-126
_SMALLEST_NORMAL = {"half": 2.0**-14, "double": 2.0**-1022}


def computed_in(result: Node, library: Library) -> tuple[str, str, float]:
    """A result's element type; of the floating types that anything of it is computed in the one with the fewest digits; and
    the largest relative error that an operator of it says it has, 0 if none does."""
    own = result.type.dtype
    made = [node for node in walk(result) if library.role(node.op) not in _COMPUTES_NOTHING]
    floats = [own, *(node.type.dtype for node in made if DTYPES[node.type.dtype].is_float)]
    said = (nearness(library.operator(op).decl) for op in {node.op for node in made})
    return own, max(floats, key=lambda dtype: DTYPES[dtype].epsilon), max((s for s in said if s), default=0.0)


def first_problem(results: Iterable[tuple[str, Values, Values, tuple[str, str, float]]]) -> str | None:
    """What is wrong with the first wrong one of results, each with its name, its reference, and what `computed_in` says."""
    for name, got, want, types in results:
        problem = compare(got, want, *types)
        if problem:
            return f"{name} {problem}"
    return None


def compare(got: Values, want: Values, dtype: str, coarsest: str | None = None, within: float = 0.0) -> str | None:
    """None if results of an element type agree, else a sentence about the worst element.

    A result is held to the accuracy of the `coarsest` type that it was computed in, by default its own, and to no more than
    what operators say of it: that they are `within` a relative error.
    """
    if got.shape != want.shape:
        return f"has lens {list(got.shape)} where {list(want.shape)} is right"
    if not got.size:
        return None
    if not DTYPES[dtype].is_float:
        return _worst(got, want, (got != want).astype(np.float64))
    with np.errstate(all="ignore"):
        return _compare_floats(got, want, dtype, coarsest or dtype, within)


def count_wrong(got: Values, want: Values, dtype: str, coarsest: str | None = None, within: float = 0.0) -> int:
    """How many elements of a result are wrong by themselves, whatever the others are."""
    if not DTYPES[dtype].is_float:
        return int(np.count_nonzero(got != want))
    with np.errstate(all="ignore"):
        wrong, _, _, excess = _apart(got, want, dtype, coarsest or dtype, _epsilon(coarsest or dtype, within))
    return int(np.count_nonzero(wrong | (excess > 1)))


def nearer(got: Values, want: Values, other: Values, *, between: bool = False) -> Values:
    """The elements of `want`, but those of `other` where a result is nearer to them. Where what lies `between` the two is as right as
    they are, elements of the result that do."""
    with np.errstate(all="ignore"):
        found, first, second = (array.astype(np.float64) for array in (got, want, other))
        same = (found == second) | (np.isnan(found) & np.isnan(second))
        chosen = np.where(same | (np.abs(found - second) < np.abs(found - first)), other, want)
        within = (np.minimum(first, second) <= found) & (found <= np.maximum(first, second))
        return np.where(within, found, chosen) if between else chosen


def _compare_floats(got: Values, want: Values, dtype: str, coarsest: str, said: float) -> str | None:
    epsilon = _epsilon(coarsest, said)
    wrong, difference, sizes, excess = _apart(got, want, dtype, coarsest, epsilon)
    if np.any(wrong):
        return _worst(got, want, wrong.astype(np.float64))
    if np.any(excess > 1):
        return _worst(got, want, excess)
    error = _root_mean_square(difference) / (np.max(sizes) + _tiny(coarsest))
    if error > RMS_BOUND * epsilon:
        place = _worst(got, want, excess)
        return f"{place}; the RMS error is {error / epsilon:.3g} epsilons of the largest value"
    return None


def _epsilon(coarsest: str, said: float) -> float:
    return max(DTYPES[coarsest].epsilon, said / _SAID)


def _tiny(coarsest: str) -> float:
    """Below the smallest normal number a type has not its full precision, and devices may flush to 0."""
    return _SMALLEST_NORMAL.get(coarsest, _SMALLEST_NORMAL_FLOAT)


def _apart(
    got: Values, want: Values, dtype: str, coarsest: str, epsilon: float
) -> tuple[Values, Values, Values, Values]:
    """Which elements are wrong since they or their references are no finite numbers; of the others, which stand as 0 there,
    the differences, the sizes of the references, and the differences in terms of what they may be."""
    # what lies beyond the type's range rounds to an infinity
    rounded = want.astype(numpy_dtype(dtype)).astype(np.float64)
    found, right = got.astype(np.float64), want.astype(np.float64)
    special = ~np.isfinite(rounded) | ~np.isfinite(found)
    difference, sizes = np.abs(found - right), np.abs(right)
    wrong = special
    # large results rarely have such elements, and each look at all of them takes long
    if np.any(special):
        within = want.astype(numpy_dtype(coarsest)).astype(np.float64)
        same = (found == rounded) | (found == within) | (np.isnan(found) & np.isnan(rounded))
        same |= _near_the_end(found, right, dtype, RANGE_BOUND * epsilon)
        wrong = special & ~same
        difference, sizes = np.where(special, 0.0, difference), np.where(special, 0.0, sizes)
    return (
        wrong,
        difference,
        sizes,
        difference / (ELEMENT_BOUND * epsilon * (sizes + _root_mean_square(sizes) + _tiny(coarsest))),
    )


def _near_the_end(found: Values, right: Values, dtype: str, share: float) -> Values:
    """Which elements are on the other side of the end of a type's range than the reference, which is no further from it than a
    share of itself."""
    further, nearer = ((right * (1 + d)).astype(numpy_dtype(dtype)).astype(np.float64) for d in (share, -share))
    over = np.isinf(found) & (found == further) & np.isfinite(right)
    under = (
        np.isfinite(found) & np.isinf(further) & (np.sign(found) == np.sign(right)) & (np.abs(found) >= np.abs(nearer))
    )
    return np.asarray(over | under)


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
