"""Operators of another language as operators of this one, as `import` declarations say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from genrw.engine.importing.repetition import repeated
from genrw.engine.importing.scope import Built, ImportHost, InnerGraph, Listed, Number, Scope, Unfit, Use, types_of
from genrw.engine.ir.dtypes import is_dtype
from genrw.engine.ir.nodes import Node
from genrw.engine.ir.types import Type
from genrw.engine.language.expr import Evaluator
from genrw.engine.language.functions import Misuse, describe
from genrw.engine.language.shapes import normalise_axes
from genrw.engine.library.infer import TypeProblem, check_arity, filled, infer
from genrw.engine.library.library import Library, Operator
from genrw.engine.programs.build import attribute_problem, complete
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import AttributeDecl, ImportDecl, InputDecl, NumberPattern, OpPattern, Pattern, VarPattern

# How far a declaration got with an operation: counted its parts, bound them, asked its guard, built its templates.
_COUNTED, _BOUND, _GUARDED, _BUILT = range(4)
_OWN_KINDS = {"tensor": Node, "graph": InnerGraph}
"""The types of attributes that are no numbers and texts."""


class Translator:
    """Applies a library's `import` declarations of a dialect. `opset` is the version of the foreign operators."""

    def __init__(
        self, library: Library, dialect: str, context: Mapping[str, Any], surroundings: ImportHost, opset: int = 0
    ) -> None:
        self.library, self.context, self.surroundings, self.opset = library, context, surroundings, opset
        self.dialect, self._imports = dialect, library.dialects.get(dialect, {})
        self._compiled: dict[int, Evaluator] = {}

    def results(self, use: Use) -> list[Node]:
        """The values of a use's results; Unfit if no declaration takes it."""
        reason = Unfit(f"there is no `{self.dialect}.{use.name}`", -1)
        for declaration in self._imports.get(use.name, ()):
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
            self._check_requirements(declaration, scope)
            values = dict(scope.values)
            for binding in declaration.with_:
                values[binding.name] = self._value(binding.value, Scope(values, scope.nodes))
            scope = Scope(values, scope.nodes)
            if declaration.repeat is not None:
                scope = repeated(declaration.repeat, scope, self._value, self._listed, self._seen(declaration))
            return self._results(declaration, use, scope)
        except GenrwError as problem:
            raise Unfit(problem.diagnostics[0].message, _BUILT) from None
        except TypeProblem as problem:
            raise Unfit(problem.message, _BUILT) from None

    def _check_requirements(self, declaration: ImportDecl, scope: Scope) -> None:
        for requirement in declaration.requires:
            if not self._value(requirement.condition, scope):
                raise Unfit(filled(requirement.message, scope.values), _BUILT)

    # ---- what a declaration binds

    def _bound(self, declaration: ImportDecl, use: Use) -> Scope:
        values: dict[str, Any] = {**self.context, "opset": self.opset, "outputs": use.outputs}
        values["type"] = use.inputs[0].type.dtype if use.inputs and use.inputs[0] is not None else ""
        nodes: dict[str, Built | Listed] = {}
        scope = Scope(values, nodes)
        for name in use.attributes:
            if all(name != a.name for a in declaration.attributes):
                raise Unfit(f"its attribute `{name}` is not supported", _COUNTED)
        given = [a for a in declaration.attributes if a.name in use.attributes]
        for attribute in given:
            self._attribute(attribute, use.attributes[attribute.name], values, nodes)
        absent = self._inputs(declaration, use, values, nodes)
        for attribute in declaration.attributes:
            if attribute not in given:
                self._attribute(attribute, self._default(attribute, scope), values, nodes)
        for declared in absent:
            if declared.default is None:
                raise Unfit(f"its input `{declared.name}` is missing", _COUNTED)
            values[declared.name] = self._value(declared.default, scope)
            nodes[declared.name] = Number(values[declared.name])
        return scope

    def _inputs(
        self, declaration: ImportDecl, use: Use, values: dict[str, Any], nodes: dict[str, Any]
    ) -> list[InputDecl]:
        """Bind the inputs that are given; gives the declarations of the others."""
        given = list(use.inputs)
        while given and given[-1] is None:
            given.pop()
        absent = []
        counts = {i.name: self._value(i.count, Scope(values, nodes)) for i in declaration.inputs if i.count is not None}
        for declared in declaration.inputs:
            if declared.variadic:
                count = counts.pop(declared.name, None)
                taken = len(given) - sum(counts.values()) if count is None else count
                if not 0 <= taken <= len(given):
                    raise Unfit(f"it has {len(use.inputs)} inputs", _COUNTED)
                nodes[declared.name] = tuple(node for node in given[:taken] if node is not None)
                values[declared.name] = types_of(nodes[declared.name])
                given = given[taken:]
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

    def _seen(self, declaration: ImportDecl) -> Callable[[str, Any], Any]:
        """What expressions see of an input's new value: a number where it is declared as one."""
        declared = {i.name: i for i in declaration.inputs if i.type is not None}
        return lambda name, built: self._known(declared[name], built) if name in declared else types_of(built)

    def _default(self, declared: AttributeDecl, scope: Scope) -> Any:
        if declared.default is None:
            raise Unfit(f"its attribute `{declared.name}` is missing", _COUNTED)
        return self._value(declared.default, scope)

    def _attribute(self, declared: AttributeDecl, value: Any, values: dict[str, Any], nodes: dict[str, Any]) -> None:
        if any(isinstance(value, kind) != (declared.type == name) for name, kind in _OWN_KINDS.items()):
            raise Unfit(f"its attribute `{declared.name}` is of another type")
        if isinstance(value, Node):
            nodes[declared.name], value = value, value.type
        elif declared.type == "dtype" and isinstance(value, int):
            value = self.surroundings.dtype(value)
        elif declared.type == "bool":
            value = bool(value)
        values[declared.name] = value

    def _value(self, expr: Expr, scope: Scope) -> Any:
        if id(expr) not in self._compiled:
            self._compiled[id(expr)] = self.library.scope.compile(expr)
        return self._compiled[id(expr)](scope.values)

    # ---- templates

    def _results(self, declaration: ImportDecl, use: Use, scope: Scope) -> list[Node]:
        made = list(islice(self._in_turn(declaration.results, scope), use.outputs))
        if len(made) < use.outputs:
            raise Unfit(f"it has {use.outputs} results")
        return made

    def _in_turn(self, templates: Sequence[Pattern], scope: Scope) -> Iterator[Node]:
        """What templates stand for. One with `...` that names no list stands for all further results."""
        done = 0
        for template in templates:
            here = Scope({**scope.values, "position": done}, scope.nodes)
            if isinstance(template, OpPattern) and template.rest and not self._is_several(template, scope):
                for position in count(done):
                    yield self._node(self._build(template, Scope({**scope.values, "position": position}, scope.nodes)))
            for built in self._spread(template, here):
                done += 1
                yield self._node(built)

    def _listed(self, template: Pattern, scope: Scope, wanted: int | None) -> list[Node]:
        """So many results of a template, or all that it has: of a graph that an attribute holds."""
        if isinstance(template, OpPattern):
            if (graph := _graph(template, scope)) is not None:
                return self._inner(graph, template, scope)
            if template.op in self._imports and self.library.find(template.op) is None and wanted is not None:
                return self._several(template, scope, wanted)
        return [self._node(self._build(template, scope))]

    def _node(self, built: Built, dtype: str = "float") -> Node:
        """A value; a number becomes a constant of a type."""
        if isinstance(built, Node):
            return built
        return self._constant(built.value, dtype)

    def _constant(self, value: Any, dtype: str) -> Node:
        if not isinstance(value, int | float):
            raise Unfit(f"the declaration makes a constant of {describe(value)}", _BUILT)
        op = self.library.boundary("constant").name
        return self.surroundings.make(op, (("value", value), ("dtype", dtype), ("lens", ())), (), Type("tensor", dtype))

    def _build(self, pattern: Pattern, scope: Scope) -> Built:
        if isinstance(pattern, NumberPattern):
            return Number(self._value(pattern.value, scope))
        if isinstance(pattern, OpPattern):
            return self._operation(pattern, scope)
        built = scope.nodes[pattern.name]
        if isinstance(built, tuple):
            raise Unfit(f"`{pattern.name}` stands for several values, and the declaration uses it as one", _BUILT)
        return built

    def _operands(self, pattern: OpPattern, scope: Scope) -> Iterator[Built]:
        for operand in pattern.operands:
            yield from self._spread(operand, scope)

    def _spread(self, pattern: Pattern, scope: Scope) -> Iterator[Built]:
        """What a template stands for: several values with `...`, else one."""
        if isinstance(pattern, VarPattern) and pattern.rest:
            listed = scope.nodes[pattern.name]
            yield from listed if isinstance(listed, tuple) else (listed,)
        elif not isinstance(pattern, OpPattern) or not pattern.rest:
            yield self._build(pattern, scope)
        elif (graph := _graph(pattern, scope)) is not None:
            yield from self._inner(graph, pattern, scope)
        else:
            lists = _lists(pattern, scope)
            for i in range(min(map(len, lists.values()), default=0)):
                yield self._build(pattern, scope.element(lists, i))

    def _is_several(self, pattern: OpPattern, scope: Scope) -> bool:
        return _graph(pattern, scope) is not None or bool(_lists(pattern, scope))

    def _inner(self, graph: InnerGraph, pattern: OpPattern, scope: Scope) -> list[Node]:
        """The results of a graph that an attribute holds."""
        given = self._operands(pattern, scope)
        return graph.results([self._node(o, _own_type(o.value) if isinstance(o, Number) else "") for o in given])

    def _several(self, pattern: OpPattern, scope: Scope, outputs: int) -> list[Node]:
        """The results of another import that a template uses."""
        operands = list(self._operands(pattern, scope))
        beside = next((o.type.dtype for o in operands if isinstance(o, Node)), "float")
        given = self._given(pattern, scope)
        return self.results(Use(pattern.op, given, tuple(self._node(o, beside) for o in operands), outputs))

    def _given(self, pattern: OpPattern, scope: Scope) -> dict[str, Any]:
        return {
            a.name: scope.values[a.name] if a.value is None else self._value(a.value, scope) for a in pattern.attributes
        }

    def _operation(self, pattern: OpPattern, scope: Scope) -> Node:
        if (graph := _graph(pattern, scope)) is not None:
            return self._inner(graph, pattern, scope)[0]
        name = pattern.op.replace("{}", str(scope.values.get(pattern.family or "", pattern.family)))
        found = self.library.find(name)
        if found is None:
            return self._several(pattern, scope, 1)[0]
        operands, given = list(self._operands(pattern, scope)), self._given(pattern, scope)
        operator = found[0]
        check_arity(operator, name, len(operands))
        nodes = self._typed(operator, operands)
        types = [node.type for node in nodes]
        attributes = complete(operator, self._attributes(operator, given, types), types, self.context)
        type_ = infer(self.library, name, attributes, types, self.context)
        return self.surroundings.make(name, attributes, nodes, type_)

    def _typed(self, operator: Operator, operands: Sequence[Built]) -> tuple[Node, ...]:
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


def _graph(pattern: OpPattern, scope: Scope) -> InnerGraph | None:
    """The graph that a template applies, if it applies one."""
    found = scope.values.get(pattern.op)
    return found if isinstance(found, InnerGraph) else None


def _own_type(value: Any) -> str:
    """The element type of a number that nothing stands beside."""
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float"


def _lists(pattern: Pattern, scope: Scope) -> dict[str, Listed]:
    """The lists that a template names. What all results of a graph are made of, the graph takes as a whole."""
    return {name: found for name in _variables(pattern, scope) if isinstance(found := scope.nodes[name], tuple)}


def _variables(pattern: Pattern, scope: Scope) -> Iterator[str]:
    if isinstance(pattern, VarPattern):
        yield pattern.name
    elif isinstance(pattern, OpPattern) and not (pattern.rest and _graph(pattern, scope)):
        for operand in pattern.operands:
            yield from _variables(operand, scope)
