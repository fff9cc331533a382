"""Expressions of kernels as HIP C++: each operator's own text (`emit`), or its `means` as C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from genrw.codegen.hip.monoid_text import cpp_type, struct_name
from genrw.codegen.hip.names import function_name
from genrw.codegen.hip.own_text import OwnTexts
from genrw.codegen.hip.trust import Vetting
from genrw.codegen.kernel_ir.expressions import monoid_of
from genrw.codegen.kernel_ir.kernel import (
    Apply,
    Chosen,
    Constant,
    Divided,
    Expression,
    Folded,
    Function,
    Kernel,
    LaterStep,
    Made,
    Monoid,
    Step,
    Use,
    ValueType,
    Variable,
    Weighted,
)
from genrw.codegen.kernel_ir.ranges import index_dtype
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Node
from genrw.engine.ir.types import Type
from genrw.engine.language.cpp_expr import TypeWord, cpp_expr, cpp_number
from genrw.engine.language.emit_text import emit_text, outside_of_brackets
from genrw.engine.language.expr_walk import substitute
from genrw.engine.library.library import Library, Operator
from genrw.grammar.diagnostics import error
from genrw.grammar.expr_tree import Const
from genrw.grammar.rw_tree import PRECEDENCES

SHARE_VARIABLE = "i"
"""The counter of loops over a share."""
_INDICES = {"int32": "int", "int64": "long long"}
_NEAR = 1 << 32
"""Bytes of the longest array for which the device header takes an index of 32 bits."""


class Text(str):
    """C++ text with its precedence, and the members of the value that it stands for."""

    precedence: str
    about: Mapping[str, Any]

    def __new__(cls, text: str, precedence: str = "atom", about: Mapping[str, Any] | None = None) -> Text:
        made = super().__new__(cls, text)
        made.precedence, made.about = precedence, about or {}
        return made

    def __getattr__(self, name: str) -> Any:
        try:
            return self.about[name]
        except KeyError:
            raise AttributeError(name) from None


def monoid_name(monoid: Monoid) -> str:
    """The struct of a monoid."""
    return struct_name(monoid.name, monoid.dtype)


class ExpressionText:
    """Prints expressions of a kernel, whose variables have `names`. `computed` collects the nodes whose values the texts
    compute. `vetting` looks at the texts of operators, if it is given; `own` collects those of own rules."""

    def __init__(
        self,
        kernel: Kernel,
        library: Library,
        target: Mapping[str, Any],
        names: Mapping[Variable, str],
        vetting: Vetting | None = None,
        allowed: frozenset[str] = frozenset(),
        own: OwnTexts | None = None,
    ) -> None:
        self.kernel, self.library, self.target, self.names = kernel, library, target, names
        self.own = own or OwnTexts(library.foreign)
        self.vetting, self.allowed = vetting, allowed
        self.computed: list[Node] = []
        self._printed: dict[Apply, tuple[Text, list[Node]]] = {}

    def renamed(self, names: Mapping[Variable, str]) -> ExpressionText:
        """The same, with other names for some variables. What operators say was looked at under the first names."""
        return ExpressionText(self.kernel, self.library, self.target, {**self.names, **names}, own=self.own)

    def within(self, names: Mapping[Variable, str], allowed: frozenset[str]) -> ExpressionText:
        """The same in a function, whose variables have these names."""
        return ExpressionText(self.kernel, self.library, self.target, names, self.vetting, allowed, self.own)

    def type_text(self, type_: ValueType, element: bool = False) -> str:
        """The C++ type of a variable, or of an `element` of it."""
        one = _INDICES[type_.dtype] if type_.sort == "index" else cpp_type(type_.dtype)
        return one if element or not type_.size else f"gen::array<{one}, {type_.size}>"

    def text(self, expression: Expression) -> Text:
        """The C++ of an expression that stands alone."""
        match expression:
            case Apply():
                return self._applied(expression)
            case Folded():
                self.computed.append(expression.node)
                return Text(self.names[expression.accumulator])
            case LaterStep():
                return self._later(expression)
            case Step(number):
                return Text(str(number))
            case Weighted(parts, number, factors):
                return self._weighted(number, factors, parts)
            case Divided(dividend, by):
                return Text(f"{_closed(self.text(dividend), 'mul')} / {by}", "mul")
            case Chosen(parts, least):
                function = f"gen::{'min' if least else 'max'}"
                return Text(reduce(lambda a, b: f"{function}({a}, {b})", [str(self.text(part)) for part in parts]))
            case _:
                return self.operand(expression, "cond")

    def operand(self, expression: Expression, outer: str) -> Text:
        """How a user writes an operand; in parentheses where the user's operator binds more tightly."""
        match expression:
            case Constant(node):
                value = node.attribute("value")
                text = str(value) if node.type.sort == "index" else cpp_number(value, node.type.dtype)
                precedence = "unary" if text.startswith("-") else "atom"
                return _closed(Text(text, precedence, self._about(node)), outer)
            case Apply(node):
                made, about = self._applied(expression), self._about(node)
                regroups = node.type.sort == "index" and self.library.operator(node.op).decl.commutative
                alike = regroups and made.precedence == outer
                return Text(made, "atom", about) if alike else _closed(Text(made, made.precedence, about), outer)
            case Use(variable, node, element):
                name = self.names[variable]
                if element:
                    return Text(f"{name}[{SHARE_VARIABLE}]", "atom", self._about(node))
                whole = f"gen::whole({name})" if variable in self.kernel.spills else name
                return Text(whole, "atom", self._about(node))
            case Made():
                return Text("")
            case _:
                return self.text(expression)

    def _later(self, step: LaterStep) -> Text:
        later = f"{self.names[step.counter]} + {step.by}" if step.by else self.names[step.counter]
        return Text(later) if step.last is None else Text(f"gen::min({later}, {step.last})")

    def _weighted(self, number: int, factors: Sequence[int], parts: Sequence[Expression]) -> Text:
        """A sum; what is taken away stands behind what is added."""
        said = [(f, self.operand(p, "mul")) for f, p in zip(factors, parts, strict=True)]
        terms = [(f > 0, str(p) if abs(f) == 1 else f"{p} * {abs(f)}") for f, p in said]
        if number or not terms:
            terms.append((number >= 0, str(abs(number))))
        terms.sort(key=lambda term: not term[0])
        text = "".join(f" {'+' if added else '-'} {term}" for added, term in terms)
        return Text(text.removeprefix(" + ") if terms[0][0] else f"0{text}", "add" if len(terms) > 1 else "mul")

    def _about(self, node: Node) -> dict[str, Any]:
        type_: Type = node.type
        about: dict[str, Any] = {
            "size": type_.size,
            "lens": type_.lens,
            "type": cpp_type(type_.dtype) if type_.dtype else "",
            "elements": type_.elements,
        }
        return {**about, **self.kernel.ranges.get(id(node), {})}

    # ---- operators

    def _applied(self, apply: Apply) -> Text:
        """The C++ of an operator and its operands, made once: what was measured is printed."""
        if apply not in self._printed:
            before, self.computed = self.computed, []
            self._printed[apply] = self._operation(apply), self.computed
            self.computed = before
        text, computed = self._printed[apply]
        self.computed += computed
        return text

    def _operation(self, apply: Apply) -> Text:
        node = apply.node
        self.computed.append(node)
        operator = self.library.operator(node.op)
        function = self.kernel.function_of(node)
        if function is not None:
            return self._called(function, apply)
        if operator.decl.emit is None:
            return self._from_meaning(operator, apply)
        declared = operator.decl.precedence or "atom"
        # Text that binds like an atom is a call or a subscript, whose operands in brackets need no parentheses.
        outside = outside_of_brackets(operator.decl)
        names = [operator.operand(i).name for i in range(len(apply.operands))]
        outer = [declared if declared != "atom" or name in outside else "cond" for name in names]
        far = self._far_index(node)
        if far is None:
            far = self._widened(apply)
        operands = {
            names[i]: self._typed(o, operator, outer[i]) if i != far else self._far(o)
            for i, o in enumerate(apply.operands)
            if operator.variadic is None or i < len(operator.fixed)
        }
        env = {
            **self._attribute_texts(node),
            **operands,
            "result": self.names.get(apply.result, "") if apply.result is not None else "",
            "type": self._own_type(node),
            "share": f"gen::far({SHARE_VARIABLE})" if self._is_wide(node) else SHARE_VARIABLE,
            "target": self.target,
            "block": self.kernel.block,
            **self._spill_texts(apply.result),
        }
        made = emit_text(operator.decl, env)
        # what is nothing but an operand binds as that does
        text = next((o for o in operands.values() if o == made), Text(made, declared))
        if self.vetting is not None:
            self.vetting.emitted(operator.decl, text, self.allowed)
        self.own.filled_in(operator.decl, text)
        return _rounded(operator, node, text)

    def _far_index(self, node: Node) -> int | None:
        """The operand that is an index into an array whose elements, or bytes, take more than 32 bits to count; None if none is."""
        if self.library.role(node.op) not in ("read", "write"):
            return None
        memory = node.operands[self.library.part(node.op, 0)].type
        if memory.sort != "tensor" or max(2 * memory.span, memory.span * DTYPES[memory.dtype].itemsize) <= _NEAR:
            return None
        return self.library.part(node.op, 1)

    def _widened(self, apply: Apply) -> int | None:
        """The operand of 32 bits that is to have 64, so that C++ computes an index in as many as it takes; None if one has."""
        if not self._is_wide(apply.node):
            return None
        indices = [i for i, o in enumerate(apply.node.operands) if o.type.sort == "index"]
        if any(self._is_wide(apply.node.operands[i]) for i in indices):
            return None
        return next((i for i in indices if not isinstance(apply.operands[i], Constant)), None)

    def _own_type(self, node: Node) -> str:
        """The C++ type of a node's value, or of each of its elements; nothing for an effect."""
        if node.type.sort == "index":
            return _INDICES["int64" if self._is_wide(node) else "int32"]
        return cpp_type(node.type.dtype) if node.type.dtype else ""

    def _is_wide(self, node: Node) -> bool:
        """Does an index take 64 bits?"""
        facts = self.kernel.ranges.get(id(node))
        return facts is not None and index_dtype(facts) == "int64"

    def _far(self, index: Expression) -> Text:
        text = self.operand(index, "cond")
        return Text(f"gen::far({text})", "atom", text.about)

    def _spill_texts(self, result: Variable | None) -> dict[str, str]:
        """What a read says of elements that registers do not hold: how many they do hold, and where the others go."""
        spill = self.kernel.spills.get(result) if result is not None else None
        if spill is None:
            return {"held": "", "rest": ""}
        return {"held": f", {spill.held}, {self.kernel.block}", "rest": f", {self.names[spill.memory]}"}

    def _typed(self, operand: Expression, operator: Operator, outer: str) -> Text:
        """An operand; pointwise operators take half and bf16 as float, but those that compute nothing of them."""
        compute = None if isinstance(operand, LaterStep) else _compute_type(_node(operand).type)
        if operator.role != "pointwise" or compute is None or _as_stored(operator):
            return self.operand(operand, outer)
        text = self.operand(operand, "cond")
        return Text(f"{compute}({text})", "atom", text.about)

    def _called(self, function: Function, apply: Apply) -> Text:
        """A call of a function, which takes half and bf16 as float."""
        name = function_name(function.operator, function.attributes, self.library)
        operands = []
        for operand, node in zip(apply.operands, apply.node.operands, strict=True):
            text, compute = self.operand(operand, "cond"), _compute_type(node.type)
            operands.append(text if compute is None else f"{compute}({text})")
        call = f"gen::{name}({', '.join(operands)})"
        dtype = apply.node.type.dtype
        return Text(call if dtype == function.dtype else f"{cpp_type(dtype)}({call})", "atom")

    def _from_meaning(self, operator: Operator, apply: Apply) -> Text:
        """A pointwise operator's `means` as C++."""
        node = apply.node
        if operator.decl.means is None or operator.role != "pointwise":
            raise error(f"`{operator.name}` has no `emit`, so it cannot be printed", operator.decl.name_span)
        dtype = node.type.dtype
        operand_types = [o.type.dtype for o in node.operands]
        compute = DTYPES[operand_types[0] if operand_types and dtype == "bool" else dtype].compute
        names: dict[str, str] = {
            operator.operand(i).name: self._typed(o, operator, "cond") for i, o in enumerate(apply.operands)
        }
        numbers = {
            k: Const(v, span=node.span) for k, v in node.attributes if isinstance(v, (int, float)) and k not in names
        }
        # Words but for types have no value in C++, and a program may have chosen them.
        names |= {k: TypeWord(v) for k, v in node.attributes if k not in names and v in DTYPES}
        types = {operator.operand(i).name: DTYPES[t].compute for i, t in enumerate(operand_types)}
        means = substitute(operator.decl.means, numbers)
        text, precedence = cpp_expr(means, names, compute, types, result=DTYPES[dtype].compute)
        return _rounded(operator, node, Text(text, precedence))

    def _attribute_texts(self, node: Node) -> dict[str, Any]:
        operator = self.library.operator(node.op)
        texts: dict[str, Any] = {}
        for name, value in node.attributes:
            kind = operator.attributes[name].type
            if kind == "monoid":
                texts[name] = monoid_name(monoid_of(node, self.library))
            elif kind == "shape":
                texts[name] = (cpp_type(value[0]), *value[1:])
            elif isinstance(value, bool):
                texts[name] = _Truth("true" if value else "false")
            else:
                texts[name] = value
        return texts


class _Truth(str):
    """A truth value as C++ has it, which chooses in a template as it should."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return self == "true"


def _node(expression: Expression) -> Node:
    assert isinstance(expression, Apply | Constant | Folded | Made | Use)
    return expression.node


def _compute_type(type_: Type) -> str | None:
    """The type to convert to before computing; None where values are computed as they are."""
    if not type_.dtype or "." in type_.dtype:
        return None
    dtype = DTYPES[type_.dtype]
    return dtype.compute if dtype.compute != dtype.name else None


def _as_stored(operator: Operator) -> bool:
    """Does the operator take its operands as they are: does its text convert them to a type of its choice, or choose one?"""
    return (operator.converts and operator.decl.emit is not None) or operator.chosen is not None


def _rounded(operator: Operator, node: Node, text: Text) -> Text:
    if operator.role != "pointwise" or _compute_type(node.type) is None or _as_stored(operator):
        return text
    return Text(f"{cpp_type(node.type.dtype)}({text})", "atom")


def _closed(text: Text, outer: str) -> Text:
    """The text, in parentheses unless it binds more tightly than the operator around it."""
    if text.precedence == "atom" or PRECEDENCES.index(text.precedence) < PRECEDENCES.index(outer):
        return text
    if outer == "cond" and text.precedence != "cond":
        return text
    return Text(f"({text})", "atom", text.about)
