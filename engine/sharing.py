"""Exchanges in an extracted program that let values be shared.

The search for the cheapest term of each class sees only what lies beneath the class. So where two terms cost about the
same, it may miss the one that the rest of the program computes anyway. Here whole programs are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from genrw.engine.stage import ENode

_SWEEPS = 4
_LEAST_GAIN = 1e-9

Cost = Callable[[ENode], float | None]


class Sharing:
    """A program as one node for each class, taken from the bests of a search and exchanged as long as that pays."""

    def __init__(self, root: int, classes: Mapping[int, list[ENode]], best: Mapping[int, ENode], cost: Cost) -> None:
        self.root, self.classes, self.best, self.cost = root, classes, best, cost
        self.exchanged: dict[int, ENode] = {}

    def improved(self) -> dict[int, ENode]:
        """The node of every class of the cheapest program found."""
        program = self._program({})
        assert program is not None
        total = self._total(program)
        for _ in range(_SWEEPS):
            before = total
            for number in [n for n in program if len(self.classes[n]) > 1]:
                if number in program:
                    program, total = self._exchange(number, program, total)
            if total == before:
                break
        return program

    def _exchange(self, number: int, program: dict[int, ENode], total: float) -> tuple[dict[int, ENode], float]:
        """The program with the cheapest node for one class."""
        for node in self.classes[number]:
            if node is program[number] or not self._is_legal(node):
                continue
            other = self._program({**self.exchanged, number: node})
            if other is None:
                continue
            cheaper = self._total(other)
            if cheaper < total - _LEAST_GAIN:
                program, total = other, cheaper
                self.exchanged[number] = node
        return program, total

    def _is_legal(self, node: ENode) -> bool:
        return self.cost(node) is not None and all(o in self.best for o in node.operands)

    def _total(self, program: Mapping[int, ENode]) -> float:
        return sum(self.cost(node) or 0.0 for node in program.values())

    def _program(self, exchanged: Mapping[int, ENode]) -> dict[int, ENode] | None:
        """The nodes of all classes that the root needs, operands first; None if one would need itself."""
        found: dict[int, ENode] = {}
        open_: set[int] = set()
        stack = [self.root]
        while stack:
            number = stack[-1]
            node = exchanged.get(number) or self.best[number]
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
