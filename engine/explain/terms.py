"""Terms of an e-graph, whose operands are terms and no classes; equal ones are one object."""

from __future__ import annotations

from dataclasses import dataclass

from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import walk


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """A term of an e-graph: the class that it stands for, its node, its operands. Equal terms are one object."""

    number: int
    node: ENode
    operands: tuple[Term, ...]


class Terms:
    """All terms of an e-graph that were made."""

    def __init__(self) -> None:
        self._known: dict[tuple[ENode, tuple[int, ...]], Term] = {}

    def make(self, number: int, node: ENode, operands: tuple[Term, ...]) -> Term:
        """The term of a node over operands."""
        key = (node, tuple(map(id, operands)))
        if key not in self._known:
            self._known[key] = Term(number, node, operands)
        return self._known[key]

    def replaced(self, root: Term, old: Term, new: Term) -> Term:
        """A term with another one in place of all occurrences of a third."""
        found = {id(old): new}
        for term in walk(root):
            if id(term) not in found:
                operands = tuple(found[id(o)] for o in term.operands)
                found[id(term)] = term if operands == term.operands else self.make(term.number, term.node, operands)
        return found[id(root)]
