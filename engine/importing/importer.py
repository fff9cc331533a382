"""Operators of another language as operators of this one, as `import` declarations say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genrw.engine.ir.dtypes import is_dtype
from genrw.engine.ir.nodes import Attributes, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.arrays import Values
from genrw.engine.language.expr import Evaluator
from genrw.engine.language.functions import Misuse, normalise_axes
from genrw.engine.library.infer import TypeProblem, check_arity, infer
from genrw.engine.library.library import Library, Operator
from genrw.engine.programs.build import attribute_problem, complete
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import AttributeDecl, ImportDecl, InputDecl, NumberPattern, OpPattern, Pattern, VarPattern

# How far a declaration got with an operation: counted its parts, bound them, asked its guard, built its templates.
_COUNTED, _BOUND, _GUARDED, _BUILT = range(4)


class Unfit(Exception):
    """An operation that a declaration does not take, and why; `progress` says how far it got."""

    def __init__(self, message: str, progress: int = _BOUND) -> None:
        super().__init__(message)
        self.progress = progress


GIVEN_NAMES = ("opset", "outputs", "type", "position")
"""What expressions of a declaration may name besides its own: the version of the foreign operators, how many results
are asked for, the element type of the first input, and the place of a result or of an element of a list."""


class ImportHost:
    """What the translation of a graph asks of whoever reads the graph."""

    def read(self, node: Node) -> Values:
        """The elements of a value that has to be known now; Unfit if they are not."""
        raise NotImplementedError

    def make(self, op: str, attributes: Attributes, operands: tuple[Node, ...], type_: Type) -> Node:
        """An operation."""
        raise NotImplementedError

    def dtype(self, code: int) -> str:
        """The element type of a number that stands for one; Unfit if there is none."""
        raise NotImplementedError


@dataclass(frozen=True)
class Use:
    """One use of a foreign operator: its attributes, inputs (None: absent), and how many results are asked for."""

    name: str
    attributes: Mapping[str, Any]
    inputs: tuple[Node | None, ...]
    outputs: int


@dataclass(frozen=True)
class _Number:
    """A number in a template; the operands beside it say of which type."""

    value: Any


_Built = Node | _Number


@dataclass(frozen=True)
class _Scope:
    """What a template may name: `values` in expressions, `nodes` and lists of them as operands."""

    values: Mapping[str, Any]
    nodes: Mapping[str, _Built | tuple[Node, ...]]

    def element(self, lists: Mapping[str, tuple[Node, ...]], position: int) -> _Scope:
        """The scope of one element of lists."""
        elements = {name: listed[position] for name, listed in lists.items()}
        types = {name: node.type for name, node in elements.items()}
        return _Scope({**self.values, **types, "position": position}, {**self.nodes, **elements})


class Translator:
    """Applies a library's `import` declarations. `opset` is the version of the foreign operators."""

    def __init__(self, library: Library, context: Mapping[str, Any], surroundings: ImportHost, opset: int = 0) -> None:
        self.library, self.context, self.surroundings, self.opset = library, context, surroundings, opset
        self._compiled: dict[int, Evaluator] = {}

    def results(self, use: Use) -> list[Node]:
        """The values of a use's results; Unfit if no declaration takes it."""
        reason = Unfit(f"there is no `{use.name}`", -1)
        for declaration in self.library.imports.get(use.name, ()):
            try:
                return self._apply(declaration, use)
            except Unfit as misfit:
                reason = max(reason, misfit, key=lambda r: r.progress)
        raise reason

    def _apply(self, declaration: ImportDecl, use: Use) -> list[Node]:
        try:
            scope = self._bound(declaration, use)
            if declaration.guard is not None and not self._value(declaration.guard, scope):
                raise Unfit("this form is not supported", _GUARDED)
            values = dict(scope.values)
            for binding in declaration.with_:
                values[binding.name] = self._value(binding.value, _Scope(values, scope.nodes))
            return list(self._results(declaration, use, _Scope(values, scope.nodes)))
        except GenrwError as problem:
            raise Unfit(problem.diagnostics[0].message, _BUILT) from None
        except TypeProblem as problem:
            raise Unfit(problem.message, _BUILT) from None

    # ---- what a declaration binds

    def _bound(self, declaration: ImportDecl, use: Use) -> _Scope:
        values: dict[str, Any] = {**self.context, "opset": self.opset, "outputs": use.outputs}
        values["type"] = use.inputs[0].type.dtype if use.inputs and use.inputs[0] is not None else ""
        nodes: dict[str, _Built | tuple[Node, ...]] = {}
        scope = _Scope(values, nodes)
        absent = self._inputs(declaration, use, values, nodes)
        for name in use.attributes:
            if all(name != a.name for a in declaration.attributes):
                raise Unfit(f"its attribute `{name}` is not supported", _COUNTED)
        for attribute in declaration.attributes:
            self._attribute(attribute, use, values, nodes)
        for declared in absent:
            if declared.default is None:
                raise Unfit(f"its input `{declared.name}` is missing", _COUNTED)
            values[declared.name] = self._value(declared.default, scope)
            nodes[declared.name] = _Number(values[declared.name])
        return scope

    def _inputs(
        self, declaration: ImportDecl, use: Use, values: dict[str, Any], nodes: dict[str, Any]
    ) -> list[InputDecl]:
        """Bind the inputs that are given; gives the declarations of the others."""
        given = list(use.inputs)
        while given and given[-1] is None:
            given.pop()
        absent = []
        for declared in declaration.inputs:
            if declared.variadic:
                nodes[declared.name] = tuple(node for node in given if node is not None)
                values[declared.name] = tuple(node.type for node in nodes[declared.name])
                given = []
                continue
            node = given.pop(0) if given else None
            if node is None:
                absent.append(declared)
            else:
                nodes[declared.name] = node
                values[declared.name] = self._known(declared, node) if declared.type else node.type
        if given:
            raise Unfit(f"it has {len(use.inputs)} inputs", _COUNTED)
        return absent

    def _known(self, declared: InputDecl, node: Node) -> Any:
        """The value of an input that is to be a constant."""
        array = self.surroundings.read(node)
        numbers = array.reshape(-1).astype(np.float64 if array.dtype.kind not in "iub" else array.dtype).tolist()
        if declared.type in ("int", "float", "bool"):
            if len(numbers) != 1:
                raise Unfit(f"its input `{declared.name}` is not a single number")
            numbers = numbers[:1]
        if declared.type in ("int", "ints"):
            numbers = [int(n) if n == n // 1 else n for n in numbers]
        return numbers[0] if declared.type in ("int", "float", "bool") else tuple(numbers)

    def _attribute(self, declared: AttributeDecl, use: Use, values: dict[str, Any], nodes: dict[str, Any]) -> None:
        if declared.name in use.attributes:
            value = use.attributes[declared.name]
        elif declared.default is not None:
            value = self._value(declared.default, _Scope(values, nodes))
        else:
            raise Unfit(f"its attribute `{declared.name}` is missing", _COUNTED)
        if isinstance(value, Node) != (declared.type == "tensor"):
            raise Unfit(f"its attribute `{declared.name}` is of another type")
        if isinstance(value, Node):
            nodes[declared.name], value = value, value.type
        elif declared.type == "dtype" and isinstance(value, int):
            value = self.surroundings.dtype(value)
        elif declared.type == "bool":
            value = bool(value)
        values[declared.name] = value

    def _value(self, expr: Expr, scope: _Scope) -> Any:
        if id(expr) not in self._compiled:
            self._compiled[id(expr)] = self.library.scope.compile(expr)
        return self._compiled[id(expr)](scope.values)

    # ---- templates

    def _results(self, declaration: ImportDecl, use: Use, scope: _Scope) -> Iterator[Node]:
        for i in range(use.outputs):
            last = declaration.results[min(i, len(declaration.results) - 1)]
            if i >= len(declaration.results) and not _repeats(last):
                raise Unfit(f"it has {use.outputs} results")
            here = _Scope({**scope.values, "position": i}, scope.nodes)
            yield self._node(self._build(last, here), "float")

    def _node(self, built: _Built, dtype: str) -> Node:
        """A value; a number becomes a constant of a type."""
        if isinstance(built, Node):
            return built
        return self._constant(built.value, dtype)

    def _constant(self, value: Any, dtype: str) -> Node:
        op = self.library.boundary("constant").name
        return self.surroundings.make(op, (("value", value), ("dtype", dtype), ("lens", ())), (), Type("tensor", dtype))

    def _build(self, pattern: Pattern, scope: _Scope) -> _Built:
        if isinstance(pattern, NumberPattern):
            return _Number(self._value(pattern.value, scope))
        if isinstance(pattern, OpPattern):
            return self._operation(pattern, scope)
        built = scope.nodes[pattern.name]
        if isinstance(built, tuple):
            raise Unfit(f"`{pattern.name}` stands for several values, and the declaration uses it as one", _BUILT)
        return built

    def _operands(self, pattern: OpPattern, scope: _Scope) -> Iterator[_Built]:
        for operand in pattern.operands:
            if isinstance(operand, VarPattern) and operand.rest:
                listed = scope.nodes[operand.name]
                yield from listed if isinstance(listed, tuple) else (listed,)
            elif isinstance(operand, OpPattern) and operand.rest:
                lists = {name: found for name in _variables(operand) if isinstance(found := scope.nodes[name], tuple)}
                for i in range(min(map(len, lists.values()), default=0)):
                    yield self._build(operand, scope.element(lists, i))
            else:
                yield self._build(operand, scope)

    def _operation(self, pattern: OpPattern, scope: _Scope) -> Node:
        name = pattern.op.replace("{}", str(scope.values.get(pattern.family or "", pattern.family)))
        operands = list(self._operands(pattern, scope))
        given = {
            a.name: scope.values[a.name] if a.value is None else self._value(a.value, scope) for a in pattern.attributes
        }
        found = self.library.find(name)
        if found is None:
            beside = next((o.type.dtype for o in operands if isinstance(o, Node)), "float")
            return self.results(Use(name, given, tuple(self._node(o, beside) for o in operands), 1))[0]
        operator = found[0]
        check_arity(operator, name, len(operands))
        nodes = self._typed(operator, operands)
        types = [node.type for node in nodes]
        attributes = complete(operator, self._attributes(operator, given, types), types, self.context)
        type_ = infer(self.library, name, attributes, types, self.context)
        return self.surroundings.make(name, attributes, nodes, type_)

    def _typed(self, operator: Operator, operands: Sequence[_Built]) -> tuple[Node, ...]:
        """Operands with numbers made constants of the type that the operands beside them have."""
        known = {operator.operand(i).dtype: o.type.dtype for i, o in enumerate(operands) if isinstance(o, Node)}
        nodes = []
        for i, operand in enumerate(operands):
            declared = operator.operand(i).dtype
            own = declared if declared and is_dtype(declared) else "float"
            nodes.append(self._node(operand, known.get(declared, own)))
        return tuple(nodes)

    def _attributes(self, operator: Operator, given: dict[str, Any], types: Sequence[Type]) -> dict[str, Any]:
        """Attributes as the operator wants them: axes counted from the first, floats as floats."""
        for name, value in given.items():
            declared = operator.attributes[name]
            problem = attribute_problem(self.library, declared.type, value)
            if problem is not None:
                raise Unfit(f"attribute `{name}` of `{operator.name}` {problem}", _BUILT)
            if declared.type in ("axes", "axis"):
                given[name] = _axes(declared.type, value, len(types[0].lens) if types else 0)
            elif declared.type == "float":
                given[name] = float(value)
        return given


def _axes(kind: str, value: Any, rank: int) -> Any:
    try:
        if kind == "axis":
            return normalise_axes((value,), rank)[0]
        return tuple(sorted(normalise_axes(value, rank)))
    except Misuse as problem:
        raise Unfit(str(problem), _BUILT) from None


def _repeats(pattern: Pattern) -> bool:
    """Does a template stand for all further results?"""
    return isinstance(pattern, (OpPattern, VarPattern)) and pattern.rest


def _variables(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, VarPattern):
        yield pattern.name
    elif isinstance(pattern, OpPattern):
        for operand in pattern.operands:
            yield from _variables(operand)
