"""What operators say that a function of theirs computes, as operations on values of the types at hand.

A function computes one element from one element of each operand. half and bf16 come as they are computed with: its
operations are those of a kernel behind the conversions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genrw.engine.ir.dtypes import is_dtype, is_element
from genrw.engine.ir.nodes import Attributes, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.expr_walk import did_you_mean
from genrw.engine.library.definitions import terms_of
from genrw.engine.library.infer import TypeProblem, check_arity, infer
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.variants import nodes
from genrw.engine.programs.build import attribute_problem, complete, input_node
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.parsing import show_number
from genrw.grammar.rw_tree import FunctionDecl, NumberPattern, OpDecl, OpPattern, Pattern, VarPattern


@dataclass(frozen=True, eq=False)
class FunctionBody:
    """A function for operands of given types: what stands for these, the parts that have names, in order, and the result."""

    parameters: tuple[Node, ...]
    steps: tuple[Node, ...]
    result: Node


def chosen_function(
    library: Library, name: str, attributes: Attributes, types: Sequence[str], context: Mapping[str, Any]
) -> FunctionDecl | None:
    """The function that kernels call for an operator of these attributes and operands; None if they call none."""
    operator = library.operator(name)
    env = _names(operator, attributes, types, context)
    for function in operator.decl.functions:
        if function.guard is None or operator.scope.compile(function.guard)(env):
            return function
    return None


def function_body(
    library: Library, name: str, attributes: Attributes, types: Sequence[str], context: Mapping[str, Any]
) -> FunctionBody | None:
    """What that function computes; GenrwError for terms that say nothing for these types."""
    function = chosen_function(library, name, attributes, types, context)
    if function is None or function.term is None:
        return None
    operator = library.operator(name)
    parameters = {
        operator.operand(i).name: input_node(library, operator.operand(i).name, Type("scalar", dtype))
        for i, dtype in enumerate(types)
    }
    common = types[0] if len(set(types)) == 1 else None
    writer = _Body(library, _names(operator, attributes, types, context), {**parameters}, context, common)
    steps = [writer.step(step.name, step.term) for step in function.steps]
    return FunctionBody(tuple(parameters.values()), tuple(steps), writer.value(function.term))


def called_functions(library: Library, op: OpDecl) -> Iterator[str]:
    """The operators with functions of their own that an operator's functions are made of."""
    for name in dict.fromkeys(node.op for term in terms_of(op) for node in nodes(term)):
        if name in library.operators and library.operators[name].decl.functions:
            yield name


def _names(
    operator: Operator, attributes: Attributes, types: Sequence[str], context: Mapping[str, Any]
) -> dict[str, Any]:
    """What expressions of a function may name."""
    operands = {operator.operand(i).name: Type("scalar", dtype) for i, dtype in enumerate(types)}
    return {**context, **dict(attributes), **operands}


@dataclass
class _Body:
    """Writes terms as nodes, each once."""

    library: Library
    names: dict[str, Any]
    values: dict[str, Node]
    context: Mapping[str, Any]
    common: str | None
    _made: dict[tuple[Any, ...], Node] = field(default_factory=dict)

    def step(self, name: str, term: Pattern) -> Node:
        """A part with a name, for those behind it."""
        self.values[name] = node = self.value(term, name)
        self.names[name] = node.type
        return node

    def value(self, term: Pattern, name: str | None = None) -> Node:
        match term:
            case VarPattern(named, False) if named in self.values:
                return self.values[named]
            case VarPattern(named):
                remedy = did_you_mean(named, self.values) or f"there is {', '.join(self.values)}"
                raise error(f"`{named}` is no operand, and no part that stands above", term.span, remedy)
            case NumberPattern():
                return self._constant(term, self.common)
            case OpPattern():
                return self._operation(term, name)

    def _operation(self, term: OpPattern, name: str | None) -> Node:
        operator = self._operator(term)
        known = [None if isinstance(o, NumberPattern) else self.value(o) for o in term.operands]
        try:
            check_arity(operator, term.op, len(known))
            operands = [
                self._number(pattern, operator, i, known) if node is None else node
                for i, (node, pattern) in enumerate(zip(known, term.operands, strict=True))
            ]
            types = [o.type for o in operands]
            attributes = self._attributes(term, operator, types)
            type_ = infer(self.library, term.op, attributes, types, self.context)
        except TypeProblem as problem:
            raise error(problem.message, term.span, problem.remedy) from None
        # Of equal terms the first one has the name: a part stands above those who say it again.
        key = (term.op, repr(attributes), *map(id, operands))
        if key not in self._made:
            self._made[key] = Node(term.op, attributes, tuple(operands), type_, name, term.span)
        return self._made[key]

    def _operator(self, term: OpPattern) -> Operator:
        found = self.library.find(term.op) if term.family is None else None
        if found is None and term.family is None:
            raise GenrwError(self.library.unknown_operator(term.op, term.op_span))
        if found is None or found[0].role != "pointwise":
            message = f"`{term.op}` is not pointwise, and a function computes one element"
            raise error(message, term.op_span, "take operators with role pointwise alone")
        return found[0]

    def _number(self, pattern: Pattern, operator: Operator, place: int, known: Sequence[Node | None]) -> Node:
        """A number, of the type that the operands beside it have; where none has, of that of all operands of the function."""
        assert isinstance(pattern, NumberPattern)
        declared = operator.operand(place).dtype
        beside = [o.type.dtype for i, o in enumerate(known) if o is not None and operator.operand(i).dtype == declared]
        dtype = declared if declared is not None and is_dtype(declared) else next(iter(beside), self.common)
        return self._constant(pattern, dtype)

    def _constant(self, pattern: NumberPattern, dtype: str | None) -> Node:
        value = self._computed(pattern.value)
        if dtype is None:
            raise error("nothing tells what type this number is of", pattern.span, "compute it beside an operand")
        if not isinstance(value, int | float) or not is_element(value, dtype):
            shown = show_number(value) if isinstance(value, int | float) else "this"
            raise error(f"{shown} is no {dtype}", pattern.span, "write another number, or bound the types by `where`")
        key = (repr(value), dtype)
        if key not in self._made:
            op = self.library.boundary("scalar").name
            given = (("value", value), ("dtype", dtype))
            self._made[key] = Node(op, given, (), Type("scalar", dtype), None, pattern.span)
        return self._made[key]

    def _attributes(self, term: OpPattern, operator: Operator, operands: Sequence[Type]) -> Attributes:
        given: dict[str, Any] = {}
        for attribute in term.attributes:
            declared = operator.attributes.get(attribute.name)
            if declared is None:
                names = ", ".join(operator.attributes) or "none"
                raise error(f"`{term.op}` has no attribute `{attribute.name}`", attribute.span, f"it has {names}")
            value = self._computed(attribute.value or Name(attribute.name, span=attribute.span))
            problem = attribute_problem(self.library, declared.type, value)
            if problem is not None:
                raise error(f"attribute `{attribute.name}` {problem}", attribute.span)
            given[attribute.name] = float(value) if declared.type == "float" else value
        return complete(operator, given, operands, self.context)

    def _computed(self, expr: Expr) -> Any:
        return self.library.scope.compile(expr)(self.names)
