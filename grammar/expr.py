"""Expressions: from flat chains to trees by precedence, and back to text with the fewest parentheses."""

from __future__ import annotations

import math
from typing import Any

from lark import Token

from genrw.grammar.expr_tree import (
    Binary,
    Call,
    Compare,
    Comprehension,
    Const,
    Expr,
    IfElse,
    Index,
    ListExpr,
    Member,
    Name,
    Slice,
    Unary,
)
from genrw.grammar.parsing import Builder, number, show_number, show_string, special, string
from genrw.grammar.precedence import ATOM, BINARY, COMPARE, CONDITIONAL, PREFIX, SIGN, Chain, sign_text, tightness_of
from genrw.grammar.source import Span

# ---- text to tree


class ExprBuilder(Builder):
    """Expression nodes from Lark's rules; each method is named for its rule and takes the rule's children."""

    def name(self, c: list[Any]) -> Expr:
        span = self.place(c[0])
        value = special(c[0])
        return Name(c[0].value, span=span) if value is None else Const(value, span=span)

    def number(self, c: list[Any]) -> Expr:
        return Const(number(self.source, c[0]), span=self.place(c[0]))

    def string(self, c: list[Any]) -> Expr:
        return Const(string(self.source, c[0]), span=self.place(c[0]))

    def call(self, c: list[Any]) -> Expr:
        return Call(c[0].value, tuple(c[1:-1]), span=self.span(c[0], c[-1]))

    def items(self, c: list[Any]) -> Expr:
        return ListExpr(tuple(c[1:-1]), span=self.span(c[0], c[-1]))

    def comprehension(self, c: list[Any]) -> Expr:
        first, body, _, variable, _, source, condition, last = c
        return Comprehension(body, variable.value, source, condition, span=self.span(first, last))

    def member(self, c: list[Any]) -> Expr:
        base, name = c
        return Member(base, name.value, span=self._from(base, name))

    def index(self, c: list[Any]) -> Expr:
        base, index, last = c
        return Index(base, index, span=self._from(base, last))

    def slice(self, c: list[Any]) -> Expr:
        base, start, stop, last = c
        return Slice(base, start, stop, span=self._from(base, last))

    def conditional(self, c: list[Any]) -> Expr:
        then, condition, otherwise = c
        return IfElse(condition, then, otherwise, span=then.span.to(otherwise.span))

    def chain(self, c: list[Any]) -> Expr:
        return Chain(self._applied).read(c)

    def _applied(self, tokens: list[Token], operands: list[Expr]) -> Expr:
        """The node of an operator of a chain."""
        span = operands[0].span.to(operands[-1].span)
        if len(operands) == 1:
            start = tokens[0].start_pos or 0
            return _signed(tokens[0].value, operands[0], Span(self.source, start, span.end))
        if tightness_of(tokens[0]) == COMPARE:
            return Compare(tuple(operands), tuple(map(sign_text, tokens)), span=span)
        return Binary(tokens[0].value, operands[0], operands[1], span=span)

    def _from(self, base: Expr, last: Token) -> Span:
        return Span(self.source, base.span.start, last.end_pos or 0)


def _signed(op: str, operand: Expr, span: Span) -> Expr:
    """A prefix operator's node; a negative number is one constant."""
    if op == "-" and isinstance(operand, Const) and type(operand.value) in (int, float):
        return Const(negative(operand.value), span=span)  # type: ignore[arg-type]
    return Unary(op, operand, span=span)


def negative(value: int | float) -> int | float:
    """The number with its sign turned. There is one nan, so that equal texts give equal trees."""
    return value if isinstance(value, float) and math.isnan(value) else -value


# ---- tree to text


def print_expr(expr: Expr) -> str:
    """An expression as text, with no parentheses beyond those its meaning needs."""
    return _show(expr, CONDITIONAL)


def _show(expr: Expr, least: int) -> str:
    """The text of an expression, in parentheses if it binds less tightly than its place demands."""
    text, tightness = _text(expr)
    return text if tightness >= least else f"({text})"


def _text(expr: Expr) -> tuple[str, int]:
    match expr:
        case Const(value):
            return _constant(value)
        case Name(name):
            return name, ATOM
        case Member(base, name):
            return f"{_base(base)}.{name}", ATOM
        case Index(base, index):
            return f"{_base(base)}[{print_expr(index)}]", ATOM
        case Slice(base, start, stop):
            ends = ["" if end is None else print_expr(end) for end in (start, stop)]
            return f"{_base(base)}[{':'.join(ends)}]", ATOM
        case Call(function, args):
            return f"{function}({', '.join(map(print_expr, args))})", ATOM
        case ListExpr(items):
            return f"[{', '.join(map(print_expr, items))}]", ATOM
        case Comprehension(body, variable, source, condition):
            tail = "" if condition is None else f" if {_show(condition, 1)}"
            return f"[{print_expr(body)} for {variable} in {_show(source, 1)}{tail}]", ATOM
        case Unary(op, operand):
            space = " " if op == "not" else ""
            return f"{op}{space}{_show(operand, PREFIX[op])}", PREFIX[op]
        case IfElse(condition, then, otherwise):
            return f"{_show(then, 1)} if {_show(condition, 1)} else {print_expr(otherwise)}", CONDITIONAL
        case Compare(operands, ops):
            shown = [_show(operand, COMPARE + 1) for operand in operands]
            rest = [f" {op} {operand}" for op, operand in zip(ops, shown[1:], strict=True)]
            return shown[0] + "".join(rest), COMPARE
        case Binary(op, left, right):
            return _binary(op, left, right)


def _constant(value: int | float | bool | str) -> tuple[str, int]:
    if isinstance(value, str):
        return show_string(value), ATOM
    text = show_number(value)
    return text, SIGN if text.startswith("-") else ATOM


def _base(expr: Expr) -> str:
    """What stands before a dot or an index; a number there would swallow the dot."""
    return f"({print_expr(expr)})" if isinstance(expr, Const) else _show(expr, ATOM)


def _binary(op: str, left: Expr, right: Expr) -> tuple[str, int]:
    tightness = BINARY[op]
    if op == "**":
        return f"{_show(left, ATOM)} ** {_show(right, SIGN)}", tightness
    return f"{_show(left, tightness)} {op} {_show(right, tightness + 1)}", tightness
