"""What the expression language may ask about monoids, and the types they accumulate in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from genrw.engine.ir.dtypes import DTYPES, in_class
from genrw.engine.language.builtins import facts
from genrw.engine.language.expr import compile_expr
from genrw.engine.language.expr_walk import substitute, walk
from genrw.engine.language.functions import Function, Misuse, declare
from genrw.grammar.expr_tree import Binary, Call, Compare, Expr, IfElse, Member, Name, Unary
from genrw.grammar.rw_tree import FieldExpr, MonoidDecl

ELEMENT = "T"
"""The name of the elements' type in a monoid's declaration."""
_USUAL_BOUND = "number"
"""What elements are where a monoid does not say."""
_FIELD = "value"
"""The field of a monoid that maps its elements and names none."""


def bound(monoid: MonoidDecl) -> str:
    """The class of types, or the type, that a monoid's elements are of."""
    return dict(monoid.where).get(ELEMENT, _USUAL_BOUND)


def with_field(monoid: MonoidDecl) -> MonoidDecl:
    """The monoid, carrying a field if it maps its elements to one value: so the types of elements and of accumulators
    tell them apart."""
    if monoid.carry or not monoid.element:
        return monoid

    def fielded(clause: tuple[FieldExpr, ...]) -> tuple[FieldExpr, ...]:
        return tuple(FieldExpr(_FIELD, substitute(f.value, parts)) for f in clause)

    span = monoid.name_span
    parts: dict[str, Expr] = {name: Member(Name(name, span=span), _FIELD, span=span) for name in ("a", "b")}
    result = Name(_FIELD, span=span)
    return replace(
        monoid,
        carry=((_FIELD, ELEMENT),),
        element=tuple(FieldExpr(_FIELD, f.value) for f in monoid.element),
        identity=tuple(FieldExpr(_FIELD, f.value) for f in monoid.identity),
        combine=fielded(monoid.combine),
        finish=substitute(monoid.finish, {"a": result}) if monoid.finish is not None else result,
    )


def folds(monoid: MonoidDecl, dtype: str) -> bool:
    """May elements of a type, or accumulators (`NAME.dtype`), be folded with a monoid?"""
    owner, _, element = dtype.rpartition(".")
    return owner in ("", monoid.name) and in_class(element, bound(monoid))


def accumulate_type(monoid: MonoidDecl, dtype: str) -> str:
    """The element type in which a fold over `dtype` computes: what the monoid says, else one that has arithmetic, unless
    nothing is computed but which element it is."""
    for compute, dtypes in monoid.accumulate:
        if dtype in dtypes:
            return compute
    kept = dtype not in DTYPES or (selects(monoid) and not monoid.element and monoid.finish is None)
    return dtype if kept else DTYPES[dtype].compute


def accumulator(monoid: MonoidDecl, dtype: str) -> str:
    """The type of the accumulator: the element type, or `NAME.dtype` for a monoid with several fields.

    An accumulator's own type stands for its elements'.
    """
    return f"{monoid.name}.{element_type(dtype)}" if monoid.carry else dtype


def field_types(monoid: MonoidDecl, dtype: str) -> tuple[str, ...]:
    """The types of an accumulator's fields, none where it is one value of the elements' type."""
    return tuple(element_type(dtype) if kind == "T" else kind for _, kind in monoid.carry)


def element_type(accumulator_type: str) -> str:
    """The element type that an accumulator type belongs to."""
    return accumulator_type.rpartition(".")[2]


def result_type(monoid: MonoidDecl, dtype: str) -> str:
    """The element type of the fold's result."""
    return monoid.result or dtype


def identity_value(monoid: MonoidDecl, dtype: str) -> float:
    """The value a fold starts from, of a monoid that carries one value."""
    if monoid.carry:
        raise Misuse(f"the identity of `{monoid.name}` is not one value")
    value: float = compile_expr(monoid.identity[0].value, {}, {})({"type": dtype})
    return value


def combining(monoid: MonoidDecl) -> int:
    """How many operations combine two accumulators."""
    parts = (part for field in monoid.combine for part in walk(field.value))
    return sum(isinstance(part, (Binary, Call, Compare, IfElse, Unary)) for part in parts)


def selects(monoid: MonoidDecl) -> bool:
    """Is what two accumulators combine to always one of them, by `min` and `max`? Such a fold rounds nothing."""
    return not monoid.carry and bool(monoid.combine) and _selects(monoid.combine[0].value)


def _selects(expr: Expr) -> bool:
    if isinstance(expr, Call):
        return "selects" in facts(expr.function) and all(_selects(a) for a in expr.args)
    return isinstance(expr, Name)


def monoid_functions(monoids: Mapping[str, MonoidDecl]) -> dict[str, Function]:
    """The functions on monoids' names."""

    def find(name: str) -> MonoidDecl:
        if name not in monoids:
            raise Misuse(f"`{name}` is not a monoid")
        return monoids[name]

    # fmt: off
    functions = (
        declare("carries(op: string) -> bool", lambda op: bool(find(op).carry),
            "Whether elements are mapped to another accumulator before they are combined."),
        declare("finishes(op: string) -> bool", lambda op: find(op).finish is not None,
            "Whether the accumulator is mapped to the result."),
        declare("selects(op: string) -> bool", lambda op: selects(find(op)),
            "Whether what two accumulators combine to is one of them, by `min` and `max`."),
        declare("folds(op: string, dtype: string) -> bool", lambda op, dtype: folds(find(op), dtype),
            "Whether elements of a type, or accumulators, may be folded with a monoid."),
        declare("identity_value(op: string, dtype: dtype) -> number", lambda op, dtype: identity_value(find(op), dtype),
            "The value a fold over a type starts from, of a monoid that carries one value."),
        declare("accumulate_type(op: string, dtype: string) -> string",
            lambda op, dtype: accumulate_type(find(op), dtype), "The element type in which a fold over a type computes."),
        declare("accumulator(op: string, dtype: string) -> string", lambda op, dtype: accumulator(find(op), dtype),
            "The type of the accumulator for elements of a type."),
        declare("field_names(op: string) -> list", lambda op: tuple(name for name, _ in find(op).carry),
            "The fields that a monoid carries; none where it carries one value."),
        declare("field_types(op: string, dtype: string) -> list", lambda op, dtype: field_types(find(op), dtype),
            "The types of the fields that a monoid carries for elements of a type; none where it carries one value."),
        declare("element_type(accumulator: string) -> string", element_type,
            "The element type that an accumulator type belongs to."),
        declare("result_type(op: string, dtype: string) -> string",
            lambda op, dtype: result_type(find(op), element_type(dtype)), "The element type of the fold's result."),
    )
    # fmt: on
    return {f.name: f for f in functions}
