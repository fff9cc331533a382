"""Values that are computed again rather than kept, where a lane's registers do not hold them.

Between two share loops of a slot a lane keeps the arrays that the later ones need. A value that follows from a narrower
array element by element, as one of float does from loaded halves, costs arithmetic to compute again, but fewer
registers: the array that it is made of is kept in its place.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from genrw.codegen.placement import Placed
from genrw.engine.dtypes import DTYPES
from genrw.engine.library import Library

_FOR_ARRAYS = 0.75
"""The share of a lane's registers that arrays may take."""
_ACCUMULATOR_BYTES = 8
"""What an accumulator of several fields takes, about."""


def choose_recomputed(order: Sequence[Placed], library: Library, registers: float) -> None:
    """Mark as cheap what is better computed again, if a lane has so many registers of 4 bytes.

    Nothing changes where the arrays fit, or where computing again would not make them fewer.
    """
    again: set[int] = set()
    for item in order:
        if _has_repeatable_uses(item) and (parts := _repeatable(item, library)):
            again |= parts
    if not again:
        return
    kept, without = _most_kept(order, frozenset()), _most_kept(order, again)
    if kept > 4 * registers * _FOR_ARRAYS and without < kept:
        for item in order:
            item.cheap = item.cheap or id(item) in again


def _has_repeatable_uses(item: Placed) -> bool:
    """Is it needed element by element in a later share loop, and nowhere as a whole array?"""
    return (
        item.wide and not item.cheap and all(u.wide for u in item.users) and _last_use(item, frozenset()) > item.level
    )


def _repeatable(item: Placed, library: Library) -> frozenset[int]:
    """The item and what it is computed from element by element, down to arrays; empty if some of it cannot be."""
    found: set[int] = set()
    stack = [item]
    while stack:
        part = stack.pop()
        if id(part) in found or part.cheap or not part.wide:
            continue
        if library.role(part.node.op) != "pointwise" or part.slot != item.slot or not all(u.wide for u in part.users):
            return frozenset()
        found.add(id(part))
        stack.extend(part.operands)
    return frozenset(found)


def _most_kept(order: Sequence[Placed], again: Set[int]) -> int:
    """The most bytes of arrays that a lane keeps from one share loop to a later one."""
    spans = [(p.slot, p.level, _last_use(p, again), _bytes(p)) for p in order if _is_array(p) and id(p) not in again]
    after = {(slot, level) for slot, level, _, _ in spans}
    kept = [sum(b for s, begin, end, b in spans if s == slot and begin <= level < end) for slot, level in after]
    return max(kept, default=0)


def _is_array(item: Placed) -> bool:
    """Does it hold an element for each of the share? One that is only folded or stored goes as it comes."""
    passes_by = all(u.node.type.size == 0 and not u.wide for u in item.users)
    return bool(item.node.type.size) and not item.cheap and item.node.type.sort != "index" and not passes_by


def _last_use(item: Placed, again: Set[int]) -> int:
    """The last level of the item's slot at which it is needed."""
    uses = [_last_use(u, again) if id(u) in again or u.cheap else u.level for u in item.users if u.slot == item.slot]
    return max(uses, default=item.level)


def _bytes(item: Placed) -> int:
    dtype = DTYPES.get(item.node.type.dtype)
    return item.node.type.size * (dtype.itemsize if dtype else _ACCUMULATOR_BYTES)
