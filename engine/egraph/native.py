"""The part of the expression language that egglog computes itself: integers, comparisons, conjunctions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from genrw.engine.egraph.bindings import egg
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, Member, Name, Unary

# Gives the egglog term for a name or a member of it, None if it is not an integer that egglog knows.
Lookup = Callable[[str, str | None], Any | None]

_COMPARE = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "!="}
_ARITHMETIC = {"+": "+", "-": "-", "*": "*", "&": "&", "|": "|", "^": "^", "<<": "<<", ">>": ">>"}


def native_condition(expr: Expr, lookup: Lookup, span: Any) -> list[Any] | None:
    """Facts that hold exactly when the condition does; None if egglog cannot decide it."""
    if isinstance(expr, Binary) and expr.op == "and":
        left = native_condition(expr.left, lookup, span)
        right = native_condition(expr.right, lookup, span)
        return None if left is None or right is None else left + right
    if not isinstance(expr, Compare):
        return None
    terms = [native_number(o, lookup, span) for o in expr.operands]
    if any(t is None for t in terms):
        return None
    facts: list[Any] = []
    for op, left, right in zip(expr.ops, terms, terms[1:], strict=False):
        if op == "==":
            facts.append(egg.Eq(span, left, right))
        elif op in _COMPARE:
            facts.append(egg.Fact(egg.Call(span, _COMPARE[op], [left, right])))
        else:
            return None
    return facts


def native_number(expr: Expr, lookup: Lookup, span: Any) -> Any | None:
    """The egglog term of an integer expression; None if egglog cannot compute it.

    `//` and `%` round towards minus infinity, for divisors above 0, as the expression language does.
    """

    def call(op: str, *args: Any) -> Any:
        return egg.Call(span, op, list(args))

    if isinstance(expr, Const):
        if isinstance(expr.value, int) and not isinstance(expr.value, bool):
            return egg.Lit(span, egg.Int(expr.value))
        return None
    if isinstance(expr, Name):
        return lookup(expr.name, None)
    if isinstance(expr, Member):
        return lookup(expr.base.name, expr.name) if isinstance(expr.base, Name) else None
    if isinstance(expr, Unary) and expr.op == "-":
        operand = native_number(expr.operand, lookup, span)
        return None if operand is None else call("-", egg.Lit(span, egg.Int(0)), operand)
    if isinstance(expr, Call) and expr.function in ("min", "max") and len(expr.args) > 1:
        args = [native_number(a, lookup, span) for a in expr.args]
        return None if any(a is None for a in args) else reduce(partial(call, expr.function), args)
    if not isinstance(expr, Binary):
        return None
    left, right = native_number(expr.left, lookup, span), native_number(expr.right, lookup, span)
    if left is None or right is None:
        return None
    if expr.op in _ARITHMETIC:
        return call(_ARITHMETIC[expr.op], left, right)
    if expr.op in ("//", "%"):
        rest = call("%", call("+", call("%", left, right), right), right)
        return rest if expr.op == "%" else call("/", call("-", left, rest), right)
    return None
