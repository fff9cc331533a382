"""Where each value of a lane program is computed: which loop over a row, which loop over a lane's share.

A *pass loop* walks a row in steps; a value that depends on its step lives in it. A *share loop* walks the elements
that a lane holds at a time; values of array type are computed in one, element by element. Inside a pass loop or
between two of them (a *slot*), share loops and single values alternate: a fold of an array needs the share loop before
it, values that depend on the fold the share loop after it. The *level* counts that.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library

IN_PLACE = "in_place"
"""The part of a fold's role by which its operator makes an accumulator's new value of the old one."""
_VALUE = 2
"""The part of a write that says what is written."""


@dataclass
class Placed:
    """A node with its place. `wide`: one value for each element of the share, computed in a share loop.
    `cheap`: computed anew wherever it is needed, never kept. `loop`: the pass it lives in, None outside.
    `folds_whole`: a fold over a loop's steps that takes its arrays as a whole.
    `repeats`: what it computes once more, in a later share loop.
    `gathers`: an effect in a share loop that takes an array as a whole, operand number `gathered`, some elements of it at a time; of
    other arrays, indices and conditions, it takes the last of these elements'."""

    node: Node
    wide: bool = False
    cheap: bool = False
    loop: int | None = None
    slot: int = 0
    level: int = 0
    folds_loop: bool = False
    folds_whole: bool = False
    users: list[Placed] = field(default_factory=list)
    operands: list[Placed] = field(default_factory=list)
    repeats: Placed | None = None
    gathered: int | None = None

    @property
    def gathers(self) -> bool:
        return self.gathered is not None

    @property
    def takes_whole(self) -> bool:
        """Does it need all elements of its arrays at a time?"""
        return self.gathers or self.folds_whole or (not self.wide and not self.folds_loop)


@dataclass(frozen=True)
class Pass:
    """A loop over the steps of a row; `unroll` of them are written behind one another. `ahead`: what a step loads is loaded
    in the step before."""

    number: int
    extent: int
    unroll: int
    ahead: bool
    leaf: Node


@dataclass(frozen=True)
class Placement:
    """All nodes of a kernel in an order in which they can be computed, and its pass loops."""

    nodes: tuple[Placed, ...]
    passes: tuple[Pass, ...]
    share: int

    def of(self, node: Node) -> Placed:
        return self._by_id[id(node)]

    @property
    def _by_id(self) -> dict[int, Placed]:
        return {id(p.node): p for p in self.nodes}


def loops_that_need(item: Placed) -> set[tuple[int, int]]:
    """The share loops, as slots and levels, in which elements of a wide item are needed, be it to compute cheap ones."""
    needed: set[tuple[int, int]] = set()
    for user in item.users:
        if user.cheap:
            needed |= loops_that_need(user)
        else:
            needed.add((item.slot, item.level) if user.folds_loop else (user.slot, user.level))
    return needed


def last_use(item: Placed, again: Set[int] = frozenset()) -> int:
    """The last level of the item's slot at which it is needed, if the items `again` are computed where they are."""
    uses = [last_use(u, again) if id(u) in again or u.cheap else u.level for u in item.users if u.slot == item.slot]
    return max(uses, default=item.level)


def place(module: Module, library: Library) -> Placement:
    """Place every node of a kernel."""
    placed: dict[int, Placed] = {}
    order: list[Placed] = []
    passes: dict[int, Pass] = {}
    for node in module.nodes:
        if node is module.root:
            continue
        item = Placed(node, operands=[placed[id(o)] for o in node.operands])
        for operand in item.operands:
            operand.users.append(item)
        placed[id(node)] = item
        order.append(item)
        _note_pass(node, library, passes)
        _classify(item, library)
    _choose_cheap(order)
    _set_slots(order)
    _sink(order)
    sizes = [p.node.type.size for p in order if p.wide]
    share = max(sizes, default=0) or max([p.node.type.size for p in order], default=0)
    return Placement(tuple(order), tuple(passes[n] for n in sorted(passes)), share)


def _note_pass(node: Node, library: Library, passes: dict[int, Pass]) -> None:
    if node.op in library.loop_counters:
        number, extent, *others = (node.attribute(part) for part in library.operator(node.op).decl.role_parts)
        unroll = others[0] if others else 1
        ahead = len(others) > 1 and bool(others[1])
        passes[number] = Pass(number, extent, unroll, ahead, node)


def _classify(item: Placed, library: Library) -> None:
    """Is the node computed element by element, and in which pass loop?"""
    node = item.node
    operator = library.operator(node.op)
    arrays = [o for o in item.operands if o.node.type.size]
    if operator.role == "fold":
        item.loop = None
        item.folds_loop = any(o.loop is not None for o in item.operands)
        item.folds_whole = item.folds_loop and IN_PLACE in operator.decl.role_parts
        return
    is_leaf = operator.role == "index_leaf"
    if operator.role in ("sync", "array") or "whole" in operator.decl.role_parts:
        # all elements of the share at once: lanes meet but once, and what is computed or moved several at a time stays so
        item.wide = False
    elif node.type.sort == "effect":
        item.gathered = library.part(node.op, _VALUE) if "in_chunks" in operator.decl.role_parts else None
        item.wide = item.gathers or any(o.node.type.sort == "index" for o in arrays)
    else:
        # indices and conditions of a whole share differ by element, though their operands may not
        item.wide = bool(node.type.size) and (bool(arrays) or is_leaf or _is_simple(item))
    if is_leaf and operator.decl.role_parts:
        item.loop = node.attribute(operator.decl.role_parts[0])
    else:
        loops = {o.loop for o in item.operands if o.loop is not None}
        item.loop = max(loops, default=None)


def _choose_cheap(order: Sequence[Placed]) -> None:
    """Indices and what compares them are cheap, but for arrays of them that are needed as a whole."""
    for item in order:
        item.cheap = item.wide and _is_simple(item) and not any(_takes_whole(u, item) for u in item.users)


def _is_simple(item: Placed) -> bool:
    """Is it an index, or what compares some?"""
    return item.node.type.sort == "index" or _is_condition(item)


def _takes_whole(user: Placed, item: Placed) -> bool:
    """Does a user need all elements of an item at a time?"""
    return user.takes_whole and (user.gathered is None or user.operands[user.gathered] is item)


def _is_condition(item: Placed) -> bool:
    """Is it a comparison of indices, or made of such?"""
    return item.node.type.dtype == "bool" and all(
        o.cheap or o.node.type.sort == "index" or (o.node.type.sort, o.node.type.dtype) == ("scalar", "bool")
        for o in item.operands
    )


def _set_slots(order: Sequence[Placed]) -> None:
    """Slot 2p+1 is the inside of pass p, slot 2p what lies before it; levels count within a slot."""
    for item in order:
        if item.folds_loop:
            item.slot = 2 * max(o.loop for o in item.operands if o.loop is not None) + 2
            continue
        ready = max((o.slot for o in item.operands), default=0)
        item.slot = ready if item.loop is None else 2 * item.loop + 1
    _defer(order)
    for item in order:
        if not item.folds_loop:
            item.level = max((_level_after(o, item) for o in item.operands if o.slot == item.slot), default=0)


def _defer(order: Sequence[Placed]) -> None:
    """Compute arrays behind the passes that do not need them: else registers hold them all the while."""
    deferred: set[int] = set()
    for item in order:
        sources = [o for o in item.operands if o.node.type.size and not o.cheap]
        if item.loop is None and not item.folds_loop and _is_free(item) and all(id(o) in deferred for o in sources):
            deferred.add(id(item))
    for item in reversed(order):
        if id(item) in deferred and item.users:
            # What a pass needs is computed before it.
            needed = min(u.slot - 1 if u.folds_loop else u.slot for u in item.users)
            item.slot = max(item.slot, needed - needed % 2)


def _is_free(item: Placed) -> bool:
    """Is it an array that is the same wherever it is computed? Workgroup memory changes."""
    node = item.node
    return (
        bool(node.type.size)
        and not item.cheap
        and node.type.sort != "effect"
        and not any(o.node.type.sort in ("buffer", "effect") for o in item.operands)
    )


def _level_after(operand: Placed, user: Placed) -> int:
    """The first level at which a user can stand: single values that need a whole array follow its share loop."""
    return operand.level + (operand.wide and not user.wide)


def _sink(order: Sequence[Placed]) -> None:
    """Compute array elements as late as their users allow, so that few arrays are kept."""
    for item in reversed(order):
        if not item.wide or item.node.type.sort == "effect":
            continue
        levels = [u.level - (not u.wide) for u in item.users if u.slot == item.slot and not u.folds_loop]
        if any(u.folds_loop for u in item.users):
            levels.append(item.level)
        if levels:
            item.level = max(item.level, min(levels))
