"""Values that do not vary from step to step of a loop: only terms that say so may stand for them.

Rules find that `(i + 64 * step) % 32` is `i % 32`. Both stand for one value, and where the rest of the program needs the sum
anyway, they cost the same. But the first has a meaning inside of the loop alone, and the value may be needed behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from genrw.engine.ir.enode import ENode

Classes = Mapping[int, list[ENode]]


def unvarying(classes: Classes, counters: frozenset[str], is_legal: Callable[[ENode], bool]) -> Classes:
    """Of each class that has a legal term without counters of loops, such nodes; of the others all."""
    counting = [number for number, nodes in classes.items() if any(node.op in counters for node in nodes)]
    if not counting:
        return classes
    users = _users(classes)
    free = _free(classes, users, counters, is_legal)
    return {
        **classes,
        **{
            number: [node for node in classes[number] if _is_free(node, free, counters)]
            for number in _above(counting, users)
            if number in free
        },
    }


def _free(
    classes: Classes, users: Mapping[int, list[int]], counters: frozenset[str], is_legal: Callable[[ENode], bool]
) -> set[int]:
    """The classes that have a legal term without counters."""
    free: set[int] = set()
    todo = list(classes)
    for number in todo:
        if number not in free and any(_is_free(n, free, counters) and is_legal(n) for n in classes[number]):
            free.add(number)
            todo += [user for user in users.get(number, ()) if user not in free]
    return free


def _is_free(node: ENode, free: set[int], counters: frozenset[str]) -> bool:
    return node.op not in counters and free.issuperset(node.operands)


def _users(classes: Classes) -> dict[int, list[int]]:
    users: dict[int, list[int]] = {}
    for number, nodes in classes.items():
        for operand in {operand for node in nodes for operand in node.operands}:
            users.setdefault(operand, []).append(number)
    return users


def _above(numbers: Iterable[int], users: Mapping[int, list[int]]) -> set[int]:
    """Classes and all that is made of them."""
    todo = list(numbers)
    found = set(todo)
    for number in todo:
        above = [user for user in users.get(number, ()) if user not in found]
        found.update(above)
        todo += above
    return found
