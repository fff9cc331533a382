"""The part of the expression language that egglog computes itself: integers, comparisons, conjunctions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from genrw.engine.egraph.bindings import egg
from genrw.engine.language.builtins import BUILTINS
from genrw.engine.language.meaning import Without
from genrw.engine.language.operators import BINARY, COMPARE, UNARY
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, Member, Name, Unary

# Gives the egglog term for a name or a member of it, None if it is not an integer that egglog knows.
Lookup = Callable[[str, str | None], Any | None]


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
        elif COMPARE[op].compute is not None:
            facts.append(egg.Fact(egg.Call(span, op, [left, right])))
        else:
            return None
    return facts


def native_number(expr: Expr, lookup: Lookup, span: Any) -> Any | None:
    """The egglog term of an integer expression; None if egglog cannot compute it.

    `//` and `%` round towards minus infinity, for divisors above 0, as the expression language does.
    """

    def made(meaning: Callable[..., Any] | Without, *operands: Expr) -> Any | None:
        args = [native_number(operand, lookup, span) for operand in operands]
        if isinstance(meaning, Without) or any(arg is None for arg in args):
            return None
        return reduce(partial(meaning, call), args) if len(args) > 2 else meaning(call, *args)

    def call(op: str, *args: Any) -> Any:
        return egg.Call(span, op, [egg.Lit(span, egg.Int(a)) if isinstance(a, int) else a for a in args])

    if isinstance(expr, Const):
        if isinstance(expr.value, int) and not isinstance(expr.value, bool):
            return egg.Lit(span, egg.Int(expr.value))
        return None
    if isinstance(expr, Name):
        return lookup(expr.name, None)
    if isinstance(expr, Member):
        return lookup(expr.base.name, expr.name) if isinstance(expr.base, Name) else None
    if isinstance(expr, Unary):
        return made(UNARY[expr.op].egglog, expr.operand)
    if isinstance(expr, Call) and expr.function in BUILTINS and len(expr.args) > 1:
        return made(BUILTINS[expr.function].egglog, *expr.args)
    if isinstance(expr, Binary) and expr.op in BINARY:
        return made(BINARY[expr.op].egglog, expr.left, expr.right)
    return None
