"""What rules may ask of the values of a term: their types, and the facts that the e-graph would know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from genrw.engine.egraph.operator_facts import RANGE_FACTS, fact_expression
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.infer import environment
from genrw.engine.library.library import Library
from genrw.engine.programs.graph_facts import GRAPH_FACTS, GraphFacts
from genrw.grammar.diagnostics import GenrwError

_ZERO_POW2 = 1 << 30
"""The power of two that divides 0, as the e-graph has it."""


class Facts:
    """The facts of all values of a term. `given` are those of its leaves, by the leaf's identity."""

    def __init__(
        self, root: Node, library: Library, context: Mapping[str, Any], given: Mapping[int, Mapping[str, int]]
    ) -> None:
        self.library, self.context, self.given = library, context, given
        graph = GraphFacts.of(Module("term", root, ()), library)
        self._graph = {name: getattr(graph, name) for name in GRAPH_FACTS}
        self._known: dict[tuple[int, str], int] = {}
        self._number = library.boundary("number").name

    def view(self, node: Node) -> View:
        """The value as expressions see it."""
        return View(node, lambda name: self.fact(node, name))

    def fact(self, node: Node, name: str) -> int:
        """One fact of a value; KeyError if none is known."""
        if name in self._graph:
            return int(self._graph[name].get(id(node), 0) if name == "uses" else self._graph[name][id(node)])
        if name not in RANGE_FACTS:
            raise KeyError(name)
        key = (id(node), name)
        if key not in self._known:
            self._known[key] = self._range_fact(node, name)
        return self._known[key]

    def _range_fact(self, node: Node, name: str) -> int:
        if id(node) in self.given:
            return self.given[id(node)][name]
        if node.op == self._number:
            value = int(node.attribute("value"))
            return {"lo": value, "hi": value, "size": 0, "pow2": value & -value or _ZERO_POW2}[name]
        found = self.library.find(node.op)
        assert found is not None, node.op
        operator, member = found
        expr = fact_expression(operator, name)
        if expr is None:
            if name == "size":
                return node.type.size
            raise KeyError(name)
        views: list[Any] = [self.view(o) for o in node.operands]
        env = environment(operator, member, node.attributes, views, {}, self.context)
        try:
            return int(self.library.scope.compile(expr)(env))
        except GenrwError:
            # a division by 0 and the like: egglog derives nothing there either
            raise KeyError(name) from None


class View:
    """A matched value as expressions see it: its type's members and its facts."""

    __slots__ = ("_fact", "node")

    def __init__(self, node: Node, fact: Callable[[str], int]) -> None:
        self.node, self._fact = node, fact

    def member(self, name: str) -> object:
        try:
            return self._fact(name)
        except KeyError:
            return self.node.type.member(name)
