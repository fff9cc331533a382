"""Exchanges in an extracted program that let values be shared.

The search for the cheapest term of each class sees only what lies beneath the class. So where two terms cost about the
same, it may miss the one that the rest of the program computes anyway. Here whole programs are compared: by what an
exchange adds to a program and what nothing uses any more after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from genrw.engine.ir.enode import ENode

_SWEEPS = 4
_LEAST_GAIN = 1e-9

Cost = Callable[[ENode], float | None]


class Sharing:
    """A program as one node for each class, taken from the bests of a search and exchanged as long as that pays."""

    def __init__(self, root: int, classes: Mapping[int, list[ENode]], best: Mapping[int, ENode], cost: Cost) -> None:
        self.root, self.classes, self.best, self.cost = root, classes, best, cost
        self.exchanged: dict[int, ENode] = {}
        self._take({})

    def improved(self) -> dict[int, ENode]:
        """The node of every class of the cheapest program found."""
        for _ in range(_SWEEPS):
            changed = False
            for number in [n for n in self.program if len(self.classes[n]) > 1]:
                if number in self.program:
                    changed = self._exchange(number) or changed
            if not changed:
                break
        return self.program

    def _exchange(self, number: int) -> bool:
        """Take the cheapest node for one class; says whether that is another one."""
        changed = False
        for node in self.classes[number]:
            if node is self.program[number] or not self._is_legal(node):
                continue
            gain = self._gain(number, node)
            if gain is not None and gain > _LEAST_GAIN:
                changed = self._take({number: node}) or changed
        return changed

    def _is_legal(self, node: ENode) -> bool:
        return self.cost(node) is not None and all(o in self.best for o in node.operands)

    def _price(self, node: ENode) -> float:
        return self.cost(node) or 0.0

    def _chosen(self, number: int) -> ENode:
        return self.exchanged.get(number) or self.best[number]

    # ---- what an exchange saves

    def _gain(self, number: int, node: ENode) -> float | None:
        """What another node for a class saves; None if it would need itself."""
        uses: dict[int, int] = {}
        added = self._added(number, node, uses)
        if added is None:
            return None
        before = self.program[number]
        return self._price(before) - self._price(node) - added + self._dropped(before, uses)

    def _added(self, number: int, node: ENode, uses: dict[int, int]) -> float | None:
        """The price of what a node needs and the program does not have, and in `uses` how much more each class is used;
        None if the node needs its own class."""
        price = 0.0
        found: set[int] = set()
        stack = list(dict.fromkeys(node.operands))
        while stack:
            operand = stack.pop()
            if operand == number or (operand in self.program and self._needs(operand, number)):
                return None
            uses[operand] = uses.get(operand, 0) + 1
            if operand not in self.program and operand not in found:
                found.add(operand)
                below = self._chosen(operand)
                price += self._price(below)
                stack.extend(dict.fromkeys(below.operands))
        return price

    def _needs(self, number: int, goal: int) -> bool:
        """Does the program need one class for another? Only for those after it in the program's order."""
        first = self.rank[goal]
        seen: set[int] = set()
        stack = [number]
        while stack:
            number = stack.pop()
            if number == goal:
                return True
            if number not in seen and self.rank[number] > first:
                seen.add(number)
                stack.extend(self.program[number].operands)
        return False

    def _dropped(self, node: ENode, uses: dict[int, int]) -> float:
        """The price of what nothing uses any more if nothing uses a node's operands for it."""
        price = 0.0
        stack = list(dict.fromkeys(node.operands))
        while stack:
            operand = stack.pop()
            uses[operand] = uses.get(operand, 0) - 1
            if self.uses[operand] + uses[operand] == 0:
                below = self.program[operand]
                price += self._price(below)
                stack.extend(dict.fromkeys(below.operands))
        return price

    # ---- the program

    def _take(self, exchanged: Mapping[int, ENode]) -> bool:
        """Make the program anew with other nodes for some classes; not if one would need itself."""
        before = self.exchanged
        self.exchanged = {**before, **exchanged}
        program = self._program()
        if program is None:
            assert exchanged, "a program needs itself"
            self.exchanged = before
            return False
        self.program = program
        self.rank = {number: place for place, number in enumerate(program)}
        self.uses = {self.root: 1}
        for node in program.values():
            _count(self.uses, dict.fromkeys(node.operands))
        return True

    def _program(self) -> dict[int, ENode] | None:
        """The nodes of all classes that the root needs, operands first; None if one would need itself."""
        found: dict[int, ENode] = {}
        open_: set[int] = set()
        stack = [self.root]
        while stack:
            number = stack[-1]
            node = self._chosen(number)
            missing = [o for o in node.operands if o not in found]
            if not missing:
                found[number] = node
                open_.discard(number)
                stack.pop()
            elif number in open_ and any(o in open_ for o in missing):
                return None
            else:
                open_.add(number)
                stack += missing
        return found


def _count(uses: dict[int, int], numbers: Iterable[int]) -> None:
    for number in numbers:
        uses[number] = uses.get(number, 0) + 1
