"""What the values of a kernel can be at the steps of one of its loops, told by what their operators mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genrw.codegen.kernel_ir.linear import Linear, Unknown
from genrw.codegen.kernel_ir.meant import (
    OPERATIONS,
    Between,
    Choice,
    Comparing,
    Meant,
    Number,
    Truth,
    both,
    choice,
    computed,
    constant,
    converted,
    extreme,
    for_each_choice,
    number,
    opposite,
    product,
)
from genrw.engine.ir.nodes import Node
from genrw.engine.language.expr_walk import calls
from genrw.engine.library.infer import environment
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.monoids import identity_value
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, IfElse, Member, Name, Unary

_LIMIT = 1 << 31
_OF_LANES = {"local_index"}
_OF_ELEMENTS = {"share_index", "step_index"}
"""The functions of meanings by which lanes, and elements and steps differ."""
_MAY_BE_TOLD = {"pointwise", "spread", "array", "identity", "index_leaf", "index_map", None}
"""The roles of operators whose results follow from their operands element by element."""


class StepMeanings:
    """The values of a kernel's nodes at the steps of one loop, whose counter is `step`; lanes may be `alone` in a workgroup."""

    def __init__(
        self,
        library: Library,
        context: Mapping[str, Any],
        ranges: Mapping[int, Mapping[str, int]],
        counter: Node,
        alone: bool,
    ) -> None:
        self.library, self.context, self.ranges = library, context, ranges
        self.differing = _OF_ELEMENTS if alone else _OF_ELEMENTS | _OF_LANES
        self.step = Unknown(counter, ranges[id(counter)]["lo"], ranges[id(counter)]["hi"])
        self._constants = {library.boundary(part).name for part in ("scalar", "number")}
        self._known: dict[int, Meant] = {
            id(counter): Between(Linear(0, ((self.step, 1),)), Linear(0, ((self.step, 1),)))
        }
        self._shared: dict[int, bool] = {id(counter): False}

    def of(self, node: Node) -> Meant:
        """What a node's value can be."""
        if id(node) not in self._known:
            self._known[id(node)] = self._of(node)
        return self._known[id(node)]

    def _of(self, node: Node) -> Meant:
        if node.op in self._constants:
            return constant(node.attribute("value"))
        facts = self.ranges.get(id(node), {})
        within = "lo" in facts and facts["lo"] >= -_LIMIT and facts["hi"] < _LIMIT
        if node.type.sort == "index" and within and self._is_shared(node):
            known = Linear(0, ((Unknown(node, facts["lo"], facts["hi"]), 1),))
            return Between(known, known)
        found = self._told(node)
        if node.type.sort == "index" and not isinstance(found, Between):
            return Between(Linear(facts["lo"]), Linear(facts["hi"])) if within else None
        return found

    def _is_shared(self, node: Node) -> bool:
        """Have all lanes of a workgroup the same value, at all steps?"""
        if id(node) not in self._shared:
            operator = self.library.operator(node.op)
            means = operator.decl.means if operator.role in ("index_leaf", "index_map", None) else None
            told = means is not None and not _all_calls(means, operator) & self.differing
            self._shared[id(node)] = node.op in self._constants or (
                node.type.sort == "index" and told and all(map(self._is_shared, node.operands))
            )
        return self._shared[id(node)]

    def _told(self, node: Node) -> Meant:
        operator = self.library.operator(node.op)
        if operator.decl.means is None or operator.role not in _MAY_BE_TOLD or node.type.sort in ("buffer", "effect"):
            return None
        names = environment(operator, None, node.attributes, [self.of(o) for o in node.operands], {}, self.context)
        return _Reader(self.library, operator, node, self.step).value(operator.decl.means, names)


def _all_calls(expr: Expr, operator: Operator) -> set[str]:
    """The functions that an expression calls, those in its helpers included."""
    found: set[str] = set()
    stack = [expr]
    while stack:
        for name in calls(stack.pop()) - found:
            found.add(name)
            if name in operator.scope.lets:
                stack.append(operator.scope.lets[name].body)
    return found


class _Reader:
    """Reads a meaning with what its names stand for."""

    def __init__(self, library: Library, operator: Operator, node: Node, step: Unknown) -> None:
        self.library, self.lets, self.node = library, operator.scope.lets, node
        self.comparing = Comparing(step).by_name

    def value(self, expr: Expr, names: Mapping[str, Any]) -> Meant:
        match expr:
            case Const(value):
                return value if isinstance(value, str) else constant(value)
            case Name(name):
                return _named(names.get(name))
            case Member(Name(base), name):
                return _named(_member(names.get(base), name))
            case Binary(op, left, right):
                operation = OPERATIONS.get(op, lambda a, b: computed(op, a, b))
                return for_each_choice(operation, *self._values((left, right), names))
            case Unary("not", operand):
                return for_each_choice(opposite, self.value(operand, names))
            case Unary("-", operand):
                return for_each_choice(product, self.value(operand, names), number(-1))
            case Compare(operands, ops):
                return self._compared(ops, self._values(operands, names))
            case IfElse(condition, then, otherwise):
                chosen = self.value(condition, names)
                return choice(chosen, self.value(then, names), self.value(otherwise, names))
            case Call(function, args):
                return self._call(function, self._values(args, names))
        return None

    def _compared(self, ops: tuple[str, ...], values: list[Meant]) -> Meant:
        """All links of a chain."""
        found: Meant = constant(True)
        for op, a, b in zip(ops, values, values[1:], strict=False):
            link = for_each_choice(self.comparing[op], a, b) if op in self.comparing else None
            found = for_each_choice(both, found, link)
        return found

    def _values(self, expressions: tuple[Expr, ...], names: Mapping[str, Any]) -> list[Meant]:
        return [self.value(e, names) for e in expressions]

    def _call(self, function: str, args: list[Meant]) -> Meant:
        if function in self.lets:
            helper = self.lets[function]
            return self.value(helper.body, dict(zip(helper.parameters, args, strict=False)))
        if function in ("local_index", "share_index"):
            size = args[0].hi.number if isinstance(args[0], Between) else max(self.node.type.size, 1)
            return Between(Linear(0), Linear(size - 1))
        if function == "convert" and isinstance(args[1], str):
            dtype = args[1]
            return for_each_choice(lambda x: converted(x, dtype), args[0])
        if function == "identity" and isinstance(args[0], str) and isinstance(args[1], str):
            monoid = self.library.monoids[args[0]]
            return None if monoid.carry else constant(identity_value(monoid, args[1]))
        if function in ("min", "max") and len(args) == 2:
            return for_each_choice(lambda a, b: extreme(function, a, b), *args)
        return None


def _named(value: Any) -> Meant:
    """What a name or a member stands for."""
    if isinstance(value, int | float):
        return constant(value)
    return value if isinstance(value, Between | Number | Truth | Choice | str) else None


def _member(base: Any, name: str) -> Any:
    if isinstance(base, Mapping):
        return base.get(name)
    try:
        return base.member(name)
    except (AttributeError, KeyError):
        return None
