"""Guards that say the same whatever is matched, in whole or in part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genrw.engine.ir.dtypes import CLASSES, DTYPES
from genrw.engine.language.builtins import facts
from genrw.engine.language.expr import free_names, member_uses
from genrw.engine.language.expr_walk import walk
from genrw.engine.language.operators import COMPARE, MIRRORED
from genrw.engine.library.context import Record
from genrw.engine.library.library import Library
from genrw.engine.library.sides import Direction, conditions
from genrw.engine.library.variants import nodes
from genrw.engine.lint.finding import Finding, finding
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, ListExpr, Member, Name, Unary
from genrw.grammar.rw_tree import OpPattern, VarPattern

_COUNTS = frozenset({"rank", "elements", "size"})
"""Members that are never below 0."""

_Types = Mapping[str, frozenset[str]]


def constant_guards(library: Library, directions: Sequence[Direction]) -> Iterator[Finding]:
    """Guards, or parts of them, that always hold or never do."""
    told: set[str] = set()
    for direction in directions:
        rule = direction.rule
        if rule.guard is None or rule.name in told:
            continue
        told.add(rule.name)
        types = _element_types(library, direction)
        parts = list(conditions(rule.guard))
        values = [_truth(library, part, types) for part in parts]
        clash = next((part for part in _impossible(parts)), None)
        never = next((part for part, value in zip(parts, values, strict=True) if value is False), clash)
        if never is not None:
            message = "the guard never holds, so the rule never applies"
            yield finding("guard", rule.name, message, never.span, "mend this condition, or remove the rule")
            continue
        for part, value in zip(parts, values, strict=True):
            if value is True:
                message = f"this {'part of the guard' if len(parts) > 1 else 'guard'} always holds"
                yield finding("guard", rule.name, message, part.span, "leave it out, or ask what was meant")


def _element_types(library: Library, direction: Direction) -> _Types:
    """The element types that the operators of the left side leave to its variables."""
    options = dict(zip(map(id, nodes(direction.left)), direction.needs, strict=True))
    found: dict[str, frozenset[str]] = {}
    todo: list[tuple[OpPattern, frozenset[str]]] = [(direction.left, frozenset(DTYPES))]
    while todo:
        node, whole = todo.pop()
        for place, operand in enumerate(node.operands):
            allowed = frozenset().union(*(_allowed(library, name, place, whole) for name in options[id(node)]))
            if isinstance(operand, OpPattern):
                todo.append((operand, allowed))
            elif isinstance(operand, VarPattern) and not operand.rest:
                found[operand.name] = found.get(operand.name, frozenset(DTYPES)) & allowed
    return found


def _allowed(library: Library, name: str, place: int, whole: frozenset[str]) -> frozenset[str]:
    """The element types of an operator's operand, if its result is of one of the types of `whole`."""
    operator = library.operator(name)
    if place >= len(operator.fixed) and operator.variadic is None:
        return frozenset()
    declared = operator.operand(place).dtype or ""
    bound = dict(operator.decl.where).get(declared, declared)
    allowed = frozenset({bound}) if bound in DTYPES else frozenset(CLASSES.get(bound, DTYPES))
    result = operator.decl.result
    made = result.args[0] if isinstance(result, Call) and result.args else result
    return allowed & whole if declared not in DTYPES and made == Name(declared) else allowed


# ---- what a condition is by itself


def _truth(library: Library, expr: Expr, types: _Types) -> bool | None:
    """Whether a condition always holds, or never does; None if that depends."""
    if isinstance(expr, Unary) and expr.op == "not":
        value = _truth(library, expr.operand, types)
        return None if value is None else not value
    if isinstance(expr, Binary) and expr.op in ("and", "or"):
        return _joined(expr.op, [_truth(library, part, types) for part in (expr.left, expr.right)])
    if isinstance(expr, Compare):
        pairs = zip(expr.operands, expr.ops, expr.operands[1:], strict=False)
        known = _joined("and", [_compared(left, op, right) for left, op, right in pairs])
        if known is not None:
            return known
    return _enumerated(library, expr, types)


def _joined(op: str, values: Sequence[bool | None]) -> bool | None:
    deciding = op == "or"
    if deciding in values:
        return deciding
    return None if None in values else not deciding


def _compared(left: Expr, op: str, right: Expr) -> bool | None:
    """What a comparison is by its two sides' texts, or by the numbers that they can be."""
    if op not in MIRRORED:
        return None
    if left == right:
        return COMPARE[op].on_equals
    (low, high), (other_low, other_high) = _range(left), _range(right)
    if op in ("<", "<="):
        return _compared(right, MIRRORED[op], left)
    if op == ">":
        return True if low > other_high else False if high <= other_low else None
    if op == ">=":
        return True if low >= other_high else False if high < other_low else None
    apart = low > other_high or high < other_low
    return None if not apart else op == "!="


def _range(expr: Expr) -> tuple[float, float]:
    """The numbers that an expression can be; all, if nothing is known."""
    if isinstance(expr, Const) and isinstance(expr.value, int | float) and not isinstance(expr.value, bool):
        return (expr.value, expr.value) if expr.value == expr.value else (-math.inf, math.inf)
    if isinstance(expr, Unary) and expr.op == "-":
        low, high = _range(expr.operand)
        return -high, -low
    if isinstance(expr, Member) and expr.name in _COUNTS:
        return 0, math.inf
    if isinstance(expr, Call) and "never_negative" in facts(expr.function):
        return 0, math.inf
    return -math.inf, math.inf


def _enumerated(library: Library, expr: Expr, types: _Types) -> bool | None:
    """What a condition is for each element type that it can be asked about, if it asks for nothing else."""
    names = free_names(expr)
    if not names:
        return _evaluated(library, expr, {})
    name = next(iter(names))
    only_type = len(names) == 1 and member_uses(expr) == {(name, "type")} and not _bare(expr, name)
    if not only_type or not types.get(name):
        return None
    values = {_evaluated(library, expr, {name: Record.of({"type": dtype})}) for dtype in types[name]}
    return values.pop() if len(values) == 1 else None


def _bare(expr: Expr, name: str) -> bool:
    """Does an expression ask for a value itself, not for its members?"""
    total = sum(isinstance(node, Name) and node.name == name for node in walk(expr))
    members = sum(isinstance(n, Member) and isinstance(n.base, Name) and n.base.name == name for n in walk(expr))
    return total != members


def _evaluated(library: Library, expr: Expr, env: Mapping[str, Any]) -> bool | None:
    try:
        value = library.scope.compile(expr)(env)
    except GenrwError:
        return None
    return value if isinstance(value, bool) else None


# ---- conditions that exclude one another


@dataclass
class _Allowed:
    """What conditions leave to one expression."""

    low: float = -math.inf
    high: float = math.inf
    values: frozenset[Any] | None = None
    excluded: set[Any] = field(default_factory=set)

    def possible(self) -> bool:
        """Is any value left?"""
        if self.low > self.high:
            return False
        return self.values is None or any(self._fits(value) for value in self.values - self.excluded)

    def _fits(self, value: Any) -> bool:
        return isinstance(value, str) or self.low <= value <= self.high


def _impossible(parts: Iterable[Expr]) -> Iterator[Expr]:
    """Conditions that exclude what stands before them."""
    seen: dict[Expr, _Allowed] = {}
    held: set[Expr] = set()
    for part in parts:
        opposite = part.operand if isinstance(part, Unary) and part.op == "not" else Unary("not", part)
        if opposite in held:
            yield part
        held.add(part)
        subject, op, values = _constraint(part)
        if subject is None:
            continue
        allowed = seen.setdefault(subject, _Allowed())
        _restrict(allowed, op, values)
        if not allowed.possible():
            yield part


def _constraint(part: Expr) -> tuple[Expr | None, str, tuple[Any, ...]]:
    """A comparison with constants as (what is compared, operator, constants); (None, "", ()) for others."""
    if isinstance(part, Compare) and len(part.ops) == 1:
        left, right, op = *part.operands, part.ops[0]
        if isinstance(left, Const) and op in MIRRORED:
            left, right, op = right, left, MIRRORED[op]
        if isinstance(right, Const) and op in MIRRORED:
            return left, op, (right.value,)
        if isinstance(right, ListExpr) and op == "in" and all(isinstance(i, Const) for i in right.items):
            return left, "in", tuple(i.value for i in right.items if isinstance(i, Const))
    return None, "", ()


def _restrict(allowed: _Allowed, op: str, values: tuple[Any, ...]) -> None:
    """Take a comparison into account. A bound that is excluded counts as one that is not: such pairs are left alone."""
    if op in ("==", "in"):
        allowed.values = frozenset(values) if allowed.values is None else allowed.values & frozenset(values)
    elif op == "!=":
        allowed.excluded.update(values)
    elif not isinstance(values[0], str):
        step = 0 if op in (">=", "<=") else math.ulp(float(values[0]))
        if op in (">", ">="):
            allowed.low = max(allowed.low, values[0] + step)
        else:
            allowed.high = min(allowed.high, values[0] - step)
