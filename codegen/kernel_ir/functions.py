"""The functions that a kernel calls: what operators say that they compute, as statements over variables.

A part that has a name in the operator's declaration has a variable of that name. So has what several others are made of;
what else there is may stand in its user, and is called after the part that it belongs to where it is too long for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from genrw.codegen.kernel_ir.kernel import (
    Apply,
    Constant,
    Expression,
    Function,
    FunctionKey,
    Inline,
    Let,
    Return,
    Scope,
    Statement,
    Use,
    ValueType,
    Variable,
    function_key,
)
from genrw.engine.ir.nodes import Node, walk
from genrw.engine.library.library import Library
from genrw.engine.programs.function_bodies import FunctionBody, function_body
from genrw.grammar.diagnostics import error


def functions_of(nodes: Iterable[Node], library: Library, context: Mapping[str, Any]) -> dict[FunctionKey, Function]:
    """The functions for some nodes, each behind those that it calls; GenrwError for one that calls itself."""
    found: dict[FunctionKey, Function] = {}
    _add(nodes, library, context, found, ())
    return found


def _add(
    nodes: Iterable[Node],
    library: Library,
    context: Mapping[str, Any],
    found: dict[FunctionKey, Function],
    calling: tuple[str, ...],
) -> None:
    for node in nodes:
        operator = library.operator(node.op)
        if not operator.decl.functions or (key := function_key(node)) in found:
            continue
        if node.op in calling:
            raise error(
                f"the function of `{node.op}` calls itself", operator.decl.name_span, "functions are not recursive"
            )
        body = function_body(library, node.op, node.attributes, key[2], context)
        if body is not None:
            _add(walk(body.result), library, context, found, (*calling, node.op))
            found[key] = _Writer(library, body).function(node)


class _Writer:
    """Writes one function."""

    def __init__(self, library: Library, body: FunctionBody) -> None:
        self.library, self.body = library, body
        self.constant = library.boundary("scalar").name
        self.variables: dict[int, Variable] = {}

    def function(self, node: Node) -> Function:
        for parameter in self.body.parameters:
            self.variables[id(parameter)] = _variable(parameter, parameter.name, Scope.ARGUMENT)
        parameters = tuple(self.variables.values())
        for step in self.body.steps:
            if step.op != self.constant:
                self.variables.setdefault(id(step), _variable(step, step.name))
        named = frozenset(self.variables)
        made = self._in_order()
        uses = Counter(id(operand) for n in made for operand in n.operands)
        belongs = self._parts()
        body: list[Statement] = []
        for one in made:
            if one is self.body.result and id(one) not in named:
                break
            if id(one) not in named:
                self.variables[id(one)] = _variable(one, belongs.get(id(one), one.op))
            inline = Inline.NO if id(one) in named or uses[id(one)] > 1 else Inline.SHORT
            body.append(Let(self._applied(one), self.variables[id(one)], inline))
        body.append(Return(self._value(self.body.result)))
        variables, dtype = tuple(self.variables.values()), self.body.result.type.dtype
        return Function(node.op, node.attributes, parameters, variables, tuple(body), dtype)

    def _in_order(self) -> list[Node]:
        """What the result takes: parts with names in the author's order, each behind what it is made of itself."""
        needed = {id(n) for n in walk(self.body.result)} - {id(p) for p in self.body.parameters}
        found = {id(n): n for root in (*self.body.steps, self.body.result) for n in walk(root)}
        return [n for key, n in found.items() if key in needed and n.op != self.constant]

    def _parts(self) -> dict[int, str]:
        """The name of the first part that each node belongs to."""
        found: dict[int, str] = {}
        for step in self.body.steps:
            for node in walk(step):
                found.setdefault(id(node), step.name or step.op)
        return found

    def _value(self, node: Node) -> Expression:
        if node.op == self.constant:
            return Constant(node)
        if id(node) in self.variables:
            return Use(self.variables[id(node)], node)
        return self._applied(node)

    def _applied(self, node: Node) -> Apply:
        return Apply(node, tuple(map(self._value, node.operands)))


def _variable(node: Node, name: str | None, scope: Scope = Scope.LANE) -> Variable:
    return Variable(ValueType(node.type.dtype), name, scope=scope)
