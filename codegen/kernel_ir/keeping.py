"""Which values have a variable of their own: arrays that are needed outside of the loop that makes them, values of several
users, and what may be written into its only user."""

from __future__ import annotations

from collections.abc import Set

from genrw.codegen.kernel_ir.kernel import Inline
from genrw.codegen.kernel_ir.placement import IN_PLACE, Placed, loops_that_need
from genrw.engine.library.library import Library


def is_kept(item: Placed, handed_on: Set[int] = frozenset()) -> bool:
    """Is an element-wise value needed outside its own share loop? Those `handed_on` wait for a later step."""
    if not item.wide or item.cheap or item.node.type.sort == "effect":
        return False
    if id(item) in handed_on:
        return True
    beside = {(item.slot, item.level)}
    return any(u.takes_whole for u in item.users) or not loops_that_need(item) <= beside


def may_inline(item: Placed, library: Library, handed_on: Set[int]) -> Inline:
    """May the value be written into its user, without a variable?"""
    node, role = item.node, library.role(item.node.op)
    meets = any(_is_met(u, library) for u in item.users)
    if id(item) in handed_on or node.op in library.loop_counters or meets or role == "turn":
        return Inline.NO
    if role in ("identity", "unspecified"):
        return Inline.ALWAYS
    if role in ("read", "sync", "fold", "alloc") or item.folds_loop or len(item.users) != 1:
        return Inline.ALWAYS if role == "index_leaf" and not item.wide else Inline.NO
    return Inline.SHORT if _stands_beside(item, item.users[0]) else Inline.NO


def _is_met(user: Placed, library: Library) -> bool:
    """May lanes meet for an operation? Then its operands are the variables of all lanes."""
    return library.role(user.node.op) == "sync" or IN_PLACE in library.operator(user.node.op).decl.role_parts


def _stands_beside(item: Placed, user: Placed) -> bool:
    """Would the value be computed as often, and the program's name for it not be lost, if its user's line had it?"""
    node = item.node
    together = user.wide and (item.cheap or (item.slot, item.level) == (user.slot, user.level))
    if user.loop != item.loop or (item.wide and not together):
        return False
    if node.type.sort != "index" and (node.name is not None or (user.wide and not item.wide)):
        return False
    return not (user.folds_loop or (node.type.size and (user.gathers or not item.wide)))
