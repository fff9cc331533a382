"""Values that are computed again rather than kept, where a lane's registers do not hold them.

Between two share loops of a slot a lane keeps the arrays that the later ones need. A value that follows from a narrower
array element by element, as one of float does from loaded halves, costs arithmetic to compute again, but fewer
registers: the array that it is made of is kept in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from genrw.codegen.kernel_ir.placement import Placed, Placement, last_use
from genrw.codegen.kernel_ir.spill import held_elements
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.library.library import Library

_FOR_ARRAYS = 0.75
"""The share of a lane's registers that arrays may take."""
_ACCUMULATOR_BYTES = 8
"""What an accumulator of several fields takes, about."""


def recomputed(placement: Placement, library: Library, registers: float, held: int) -> Placement:
    """The placement in which later share loops compute again what is better not kept, if a lane has so many registers of
    4 bytes, which hold `held` elements of an array that workgroup memory can keep the rest of.

    Nothing changes where the arrays fit, or where computing again would not make them fewer.
    """
    order = placement.nodes
    again: set[int] = set()
    for item in order:
        if _has_repeatable_uses(item) and (parts := _repeatable(item, library)):
            again |= parts
    if not again:
        return placement
    sizes = {id(p): held_elements(p, library, held) * _element_bytes(p) for p in order}
    kept, without = _most_kept(order, frozenset(), sizes), _most_kept(order, again, sizes)
    fits = not held and kept <= 4 * registers * _FOR_ARRAYS
    if fits or without >= kept:
        return placement
    return replace(placement, nodes=_with_copies(order, again))


def _with_copies(order: Sequence[Placed], again: Set[int]) -> tuple[Placed, ...]:
    """The nodes with a copy of each that is computed again: its later users have the copy, as copies have each other."""
    nodes: list[Placed] = []
    copies: dict[int, Placed] = {}
    for item in order:
        nodes.append(item)
        if id(item) not in again:
            continue
        operands = [copies.get(id(o), o) for o in item.operands]
        copy = replace(item, node=replace(item.node), cheap=True, users=[], operands=operands, repeats=item)
        copies[id(item)] = copy
        for operand in operands:
            operand.users.append(copy)
        for user in [u for u in item.users if u.wide and u.level > item.level]:
            user.operands = [copy if o is item else o for o in user.operands]
            item.users.remove(user)
            copy.users.append(user)
        nodes.append(copy)
    return tuple(_needed(nodes))


def _needed(nodes: Sequence[Placed]) -> Iterator[Placed]:
    """The nodes without those whose users all went to copies, and copies that nobody needs."""
    unused: set[int] = set()
    for item in reversed(nodes):
        item.users = [u for u in item.users if id(u) not in unused]
        if not item.users and item.node.type.sort != "effect":
            unused.add(id(item))
    return (item for item in nodes if id(item) not in unused)


def _has_repeatable_uses(item: Placed) -> bool:
    """Is it needed element by element in a later share loop, and as a whole array right after its own at most?"""
    return item.wide and not item.cheap and _stays(item) and any(u.wide and u.level > item.level for u in item.users)


def _stays(item: Placed) -> bool:
    """Do those who need a whole array stand in its share loop, or right behind it?"""
    whole = [u for u in item.users if not u.wide or u.gathers]
    return all((u.slot, u.level) == (item.slot, item.level + (not u.wide)) for u in whole)


def _repeatable(item: Placed, library: Library) -> frozenset[int]:
    """The item and what it is computed from element by element, down to arrays; empty if some of it cannot be."""
    found: set[int] = set()
    stack = [item]
    while stack:
        part = stack.pop()
        if id(part) in found or part.cheap or not part.wide:
            continue
        if library.role(part.node.op) != "pointwise" or part.slot != item.slot or not _stays(part):
            return frozenset()
        found.add(id(part))
        stack.extend(part.operands)
    return frozenset(found)


def _most_kept(order: Sequence[Placed], again: Set[int], sizes: Mapping[int, int]) -> int:
    """The most bytes of arrays that a lane keeps from one share loop to a later one."""
    spans = [(p.slot, p.level, last_use(p, again), sizes[id(p)]) for p in order if _is_array(p) and id(p) not in again]
    after = {(slot, level) for slot, level, _, _ in spans}
    kept = [sum(b for s, begin, end, b in spans if s == slot and begin <= level < end) for slot, level in after]
    return max(kept, default=0)


def _is_array(item: Placed) -> bool:
    """Does it hold an element for each of the share? One that is only folded or stored goes as it comes."""
    passes_by = all(u.node.type.size == 0 and not u.wide for u in item.users)
    return bool(item.node.type.size) and not item.cheap and item.node.type.sort != "index" and not passes_by


def _element_bytes(item: Placed) -> int:
    dtype = DTYPES.get(item.node.type.dtype)
    return dtype.itemsize if dtype else _ACCUMULATOR_BYTES
