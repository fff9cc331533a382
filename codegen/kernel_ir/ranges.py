"""Value ranges of the indices of a kernel as extracted, and the types that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genrw.engine.egraph.operator_facts import RANGE_FACTS, fact_expression
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.library.infer import environment
from genrw.engine.library.library import Library

_INT32 = 2**31


class Ranged:
    """An index operand as fact expressions see it."""

    __slots__ = ("facts", "type")

    def __init__(self, type_: Type, facts: Mapping[str, int]) -> None:
        self.type, self.facts = type_, facts

    def member(self, name: str) -> object:
        if name in self.facts:
            return self.facts[name]
        return self.type.member(name)


def index_ranges(module: Module, library: Library, context: Mapping[str, Any]) -> dict[int, dict[str, int]]:
    """lo, hi, pow2 and size of every index node, by identity."""
    number = library.boundary("number").name
    facts: dict[int, dict[str, int]] = {}
    for node in module.nodes:
        if node.type.sort != "index":
            continue
        if node.op == number:
            value = node.attribute("value")
            facts[id(node)] = {"lo": value, "hi": value, "pow2": value & -value or 1 << 30, "size": 0}
        else:
            facts[id(node)] = _declared(node, library, context, facts)
    return facts


def _declared(
    node: Node, library: Library, context: Mapping[str, Any], facts: Mapping[int, Mapping[str, int]]
) -> dict[str, int]:
    operator = library.operator(node.op)
    views = [Ranged(o.type, facts.get(id(o), {})) for o in node.operands]
    env = environment(operator, None, node.attributes, views, {}, context)
    found: dict[str, int] = {}
    for fact in RANGE_FACTS:
        expr = fact_expression(operator, fact)
        if expr is not None:
            found[fact] = int(library.scope.compile(expr)(env))
    found.setdefault("lo", -(2**62))
    found.setdefault("hi", 2**62)
    return found


def index_dtype(facts: Mapping[str, int]) -> str:
    """32 bits where a proof says that they suffice, else 64."""
    return "int32" if facts["lo"] >= -_INT32 and facts["hi"] < _INT32 else "int64"
