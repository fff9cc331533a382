"""Scalar expressions as C++ text: the meanings of pointwise operators and the parts of monoids.

Arithmetic is spelled so that C++ computes what `numeric` does: integers wrap and truncate through functions of the device
header, half and bf16 never appear (callers convert to float before and round after).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from genrw.engine.dtypes import DTYPES
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import (
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    IfElse,
    Member,
    Name,
    Unary,
)

PRECEDENCES = ("atom", "unary", "mul", "add", "shift", "compare", "equal", "bitand", "bitxor", "bitor", "and", "or", "cond")

# C++ operators with their precedence; and the functions that take their place for integers.
_INFIX = {
    "+": ("+", "add"),
    "-": ("-", "add"),
    "*": ("*", "mul"),
    "/": ("/", "mul"),
    "&": ("&", "bitand"),
    "^": ("^", "bitxor"),
    "|": ("|", "bitor"),
    "<<": ("<<", "shift"),
    ">>": (">>", "shift"),
    "and": ("&&", "and"),
    "or": ("||", "or"),
}
_FOR_INTEGERS = {"+": "add", "-": "sub", "*": "mul", "/": "trunc_div", "//": "floor_div", "%": "floor_mod"}
_COMPARE = {"==": "equal", "!=": "equal", "<": "compare", "<=": "compare", ">": "compare", ">=": "compare"}
_TYPED = ("lowest", "highest")


def cpp_number(value: object, dtype: str) -> str:
    """A constant of a type as C++; numbers of half and bf16 are written as that type."""
    kind = DTYPES[dtype]
    if kind.kind == "bool":
        return "true" if value else "false"
    if not isinstance(value, (int, float)):
        raise error(f"{value!r} is not a number")
    if not kind.is_float:
        return _integer(int(value), dtype)
    compute = kind.compute
    text = _float(float(value), compute)
    return text if compute == dtype else f"{kind.cpp}({text})"


def _integer(value: int, dtype: str) -> str:
    kind = DTYPES[dtype]
    if value == -(2**63):
        return "(-9223372036854775807LL - 1)"
    if kind.itemsize == 8:
        return f"{value}{'ULL' if not kind.is_signed else 'LL'}"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    return f"{value}u" if value > 2**31 - 1 else str(value)


def _float(value: float, dtype: str) -> str:
    if math.isnan(value):
        return f"gen::nan<{dtype}>()"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}gen::infinity<{dtype}>()"
    text = repr(value)
    if "e" not in text and "." not in text:
        text += ".0"
    return text + ("f" if dtype == "float" else "")


def cpp_expr(expr: Expr, names: Mapping[str, str], dtype: str) -> tuple[str, str]:
    """The C++ of an expression and its precedence, out of `PRECEDENCES`.

    `names` gives the text for names and for members (`"a.index"`), closed against any operator; `dtype` is the type in
    which numbers are computed. GenrwError for what has no C++: lists, unknown names.
    """
    return _Writer(names, dtype).text(expr)


class _Writer:
    def __init__(self, names: Mapping[str, str], dtype: str) -> None:
        self.names, self.dtype = names, dtype

    def text(self, expr: Expr) -> tuple[str, str]:
        match expr:
            case Const(value=value):
                return self._constant(value)
            case Name(name=name):
                return self._name(name, expr)
            case Member(base=Name(name=base), name=name):
                return self._name(f"{base}.{name}", expr)
            case Unary(op=op, operand=operand):
                sign = {"-": "-", "not": "!", "~": "~"}[op]
                return f"{sign}{self.closed(operand, 'unary')}", "unary"
            case Binary():
                return self._binary(expr)
            case Compare():
                return self._compare(expr)
            case IfElse(condition=condition, then=then, otherwise=otherwise):
                parts = (self.closed(condition, "or"), self.closed(then, "or"), self.closed(otherwise, "cond"))
                return "{} ? {} : {}".format(*parts), "cond"
            case Call():
                return self._call(expr), "atom"
            case _:
                raise self._unprintable(expr)

    def closed(self, expr: Expr, outer: str) -> str:
        """The text, in parentheses where it binds less tightly than `outer`."""
        text, precedence = self.text(expr)
        return text if PRECEDENCES.index(precedence) <= PRECEDENCES.index(outer) else f"({text})"

    def _constant(self, value: object) -> tuple[str, str]:
        if isinstance(value, str):
            raise error(f"the text \"{value}\" has no C++")
        dtype = "bool" if isinstance(value, bool) else self.dtype
        text = cpp_number(value, dtype)
        return text, "unary" if text.startswith("-") else "atom"

    def _name(self, name: str, expr: Expr) -> tuple[str, str]:
        if name in self.names:
            return self.names[name], "atom"
        raise error(f"`{name}` has no value here", expr.span)

    def _binary(self, expr: Binary) -> tuple[str, str]:
        if not DTYPES[self.dtype].is_float and expr.op in _FOR_INTEGERS and self.dtype != "bool":
            name = _FOR_INTEGERS[expr.op]
            return f"gen::{name}({self.closed(expr.left, 'cond')}, {self.closed(expr.right, 'cond')})", "atom"
        if expr.op == "**":
            return f"gen::pow({self.closed(expr.left, 'cond')}, {self.closed(expr.right, 'cond')})", "atom"
        if expr.op not in _INFIX:
            raise self._unprintable(expr)
        sign, precedence = _INFIX[expr.op]
        tighter = PRECEDENCES[PRECEDENCES.index(precedence) - 1]
        # `-` and `/` group to the left; the compiler must not regroup the others either, since they round.
        return f"{self.closed(expr.left, precedence)} {sign} {self.closed(expr.right, tighter)}", precedence

    def _compare(self, expr: Compare) -> tuple[str, str]:
        parts = []
        for op, left, right in zip(expr.ops, expr.operands, expr.operands[1:], strict=False):
            if op not in _COMPARE:
                raise self._unprintable(expr)
            parts.append(f"{self.closed(left, 'shift')} {op} {self.closed(right, 'shift')}")
        return " && ".join(parts), "and" if len(parts) > 1 else _COMPARE[expr.ops[0]]

    def _call(self, expr: Call) -> str:
        name = expr.function
        if name in _TYPED and len(expr.args) == 1:
            return f"gen::{name}<{DTYPES[self._type_of(expr.args[0])].cpp}>()"
        if name == "convert" and len(expr.args) == 2:
            return f"gen::convert<{DTYPES[self._type_of(expr.args[1])].cpp}>({self.closed(expr.args[0], 'cond')})"
        if name == "where" and len(expr.args) == 3:
            return f"({self.text(IfElse(*expr.args, span=expr.span))[0]})"
        args = ", ".join(self.closed(a, "cond") for a in expr.args)
        return f"gen::{name}({args})"

    def _type_of(self, expr: Expr) -> str:
        """A dtype named by an expression: `type` is the one computed in, others are called by name or quoted."""
        if isinstance(expr, Const) and isinstance(expr.value, str) and expr.value in DTYPES:
            return expr.value
        if isinstance(expr, Name):
            name = self.names.get(expr.name, expr.name)
            if name in DTYPES:
                return name
            if expr.name in ("type", "T"):
                return self.dtype
        raise error("a type is expected here", expr.span, "name one such as int64, or `type`")

    def _unprintable(self, expr: Expr) -> GenrwError:
        return error("this expression has no C++", expr.span, "give the operator an `emit`")
