"""In which of many kernels a rule is likely to take part, by those that it was tried in."""

from __future__ import annotations

from collections import Counter

from genrw.engine.ir.nodes import Module


class Prospects:
    """What is known of the operators of kernels: in how many kernels each of them stood in vain, and which stood in one that a
    rule took part in."""

    def __init__(self) -> None:
        self._vain: Counter[str] = Counter()
        self._met: set[str] = set()

    def of(self, kernel: Module) -> float:
        """How likely the rule takes part in a kernel: the less, the oftener an operator stood there in vain."""
        return 1 / (1 + max((self._vain[n.op] for n in kernel.nodes if n.op not in self._met), default=0)) ** 2

    def note(self, kernel: Module, took_part: bool) -> None:
        """The rule was tried in a kernel."""
        operators = {node.op for node in kernel.nodes}
        if took_part:
            self._met |= operators
        else:
            self._vain.update(operators)
