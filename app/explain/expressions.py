"""Nodes of an e-graph as text: operations over the names that values have in programs."""

from __future__ import annotations

from collections.abc import Sequence

from genrw.engine.egraph.recording import Part
from genrw.engine.explain.stage_trace import State, Study
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import walk
from genrw.engine.programs.text import operation_text, value_names
from genrw.program import Program

_DEEPEST = 2
"""How many operations without names stand within one another."""


class Expressions:
    """The nodes of a stage's e-graph as text. Classes have the names of the first of some programs that has them."""

    def __init__(self, found: Study, states: Sequence[State], program: Program) -> None:
        self.graph, self.library = found.batch.graph, program.library
        self.labels: dict[int, str] = {}
        for state in states:
            self._name(state, program)

    def _name(self, state: State, program: Program) -> None:
        values = value_names(state.module, program.library, program.context(state.module))
        named = {id(node): name for name, node in values.items()}
        for term in walk(state.term):
            name = named.get(id(state.node(term)))
            if name is not None and term.node.number is None:
                self.labels.setdefault(term.number, name)

    def side(self, part: Part) -> str:
        """One side of a rule as it applied."""
        if part.node is None:
            return self.value(part.number)
        return self._operation(part.node, [self.side(operand) for operand in part.operands])

    def value(self, number: int, depth: int = 0) -> str:
        """What stands for a class: its number or name, else an operation in it."""
        members = [*self.graph.classes.get(number, ()), *self.graph.replaced.get(number, ())]
        constant = next((str(n.number) for n in members if n.number is not None), None)
        known = constant or self.labels.get(number)
        if known is not None or not members:
            return known or "…"
        return self.node(members[0], depth + 1) if depth < _DEEPEST else "…"

    def node(self, node: ENode, depth: int = 0) -> str:
        """A node over the names of its operands."""
        return self._operation(node, [self.value(operand, depth) for operand in node.operands])

    def _operation(self, node: ENode, operands: Sequence[str]) -> str:
        return operation_text(node, operands, self.graph.interner, self.library)
