"""One rule as written, spelled out: both directions, every arity, both orders of commutative operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from genrw.engine.language.expr import free_names, substitute
from genrw.engine.library.defaults import written_out
from genrw.engine.library.library import Library
from genrw.grammar.expr_tree import Const, Expr, ListExpr, Name
from genrw.grammar.rw_tree import (
    AttributePattern,
    Binding,
    NumberPattern,
    OpPattern,
    Pattern,
    RuleDecl,
    VarPattern,
)

POSITION = "position"
"""What stands for an operand's place in a template that is mapped over operands."""

_OF_REST = "#"
"""Stands between a rest variable's name and the place of one of its operands."""


@dataclass(frozen=True)
class Variant:
    """A rewrite of fixed arity and operand order. `key` names the direction: the rule's name, or name/reverse."""

    rule: RuleDecl
    key: str
    left: Pattern
    right: Pattern
    guard: Expr | None
    with_: tuple[Binding, ...]


def variants(rule: RuleDecl, library: Library, counts: tuple[tuple[int, ...], ...]) -> Iterator[Variant]:
    """All variants of a rule, of each direction with as many rest operands as `counts` says for it."""
    for direction, numbers in enumerate(counts):
        for count in numbers:
            yield from spelled(rule, library, direction, count)


def spelled(rule: RuleDecl, library: Library, direction: int, count: int) -> Iterator[Variant]:
    """The variants of one direction of a rule whose rest variable, if it has one, stands for so many operands."""
    key, left, right = directions(rule)[direction]
    left, right = written_out(left, library), written_out(right, library)
    variant = Variant(rule, key, left, right, rule.guard, rule.with_)
    rest = rest_name(left)
    if rest is not None:
        variant = _spell(variant, rest, count)
    for ordered in _orders(variant.left, library, _order_free(rule)):
        yield replace(variant, left=ordered)


def directions(rule: RuleDecl) -> list[tuple[str, Pattern, Pattern]]:
    """Key, left and right side of each direction of a rule."""
    forwards = [(rule.name, rule.left, rule.right)]
    return [*forwards, (f"{rule.name}/reverse", rule.right, rule.left)] if rule.both_ways else forwards


def rest_name(left: Pattern) -> str | None:
    """The variable that stands for the rest of an operator's operands, if the pattern has one."""
    return next((p.name for p in leaves(left) if isinstance(p, VarPattern) and p.rest), None)


def rest_owner(left: Pattern, rest: str) -> OpPattern:
    """The node that a rest variable is an operand of."""
    return next(n for n in nodes(left) if any(isinstance(o, VarPattern) and o.name == rest for o in n.operands))


def pattern_operators(pattern: OpPattern, rule: RuleDecl, library: Library) -> frozenset[str]:
    """The operators that a pattern's root may be."""
    if pattern.family is not None:
        if pattern.family in library.monoids:
            return frozenset({pattern.op.replace("{}", pattern.family)})
        return frozenset(pattern.op.replace("{}", member) for member in library.monoids)
    for binding in rule.for_:
        if binding.name == pattern.op and isinstance(binding.value, Name):
            return library.members_of(binding.value.name) or frozenset()
    return frozenset({pattern.op})


def leaves(pattern: Pattern) -> Iterator[Pattern]:
    """The variables and numbers of a pattern, left to right."""
    if isinstance(pattern, OpPattern):
        for operand in pattern.operands:
            yield from leaves(operand)
    else:
        yield pattern


def nodes(pattern: Pattern) -> Iterator[OpPattern]:
    """The operator nodes of a pattern, parents before operands."""
    if isinstance(pattern, OpPattern):
        yield pattern
        for operand in pattern.operands:
            yield from nodes(operand)


def element_name(rest: str, position: int) -> str:
    """The variable that stands for one of several rest operands."""
    return f"{rest}{_OF_REST}{position}"


def rest_places(pattern: OpPattern) -> dict[str, int]:
    """The variables of a spelled pattern that stand for its rest operands, with the places of these."""
    found = enumerate(pattern.operands)
    return {o.name: place for place, o in found if isinstance(o, VarPattern) and _OF_REST in o.name}


def _spell(variant: Variant, rest: str, count: int) -> Variant:
    """Replace rest operands by `count` variables, and templates mapped over them by as many copies."""
    listed = ListExpr(tuple(Name(element_name(rest, i)) for i in range(count)))
    everywhere: dict[str, Expr] = {rest: listed}
    return replace(
        variant,
        left=_spell_pattern(variant.left, rest, count),
        right=_spell_pattern(variant.right, rest, count),
        guard=substitute(variant.guard, everywhere) if variant.guard is not None else None,
        with_=tuple(replace(b, value=substitute(b.value, everywhere)) for b in variant.with_),
    )


def _spell_pattern(pattern: Pattern, rest: str, count: int) -> Pattern:
    if not isinstance(pattern, OpPattern):
        return pattern
    operands: list[Pattern] = []
    for operand in pattern.operands:
        if isinstance(operand, VarPattern) and operand.rest:
            operands += [VarPattern(element_name(rest, i), span=operand.span) for i in range(count)]
        elif isinstance(operand, OpPattern) and operand.rest:
            operands += [_element(replace(operand, rest=False), rest, i) for i in range(count)]
        else:
            operands.append(_spell_pattern(operand, rest, count))
    listed: dict[str, Expr] = {rest: ListExpr(tuple(Name(element_name(rest, i)) for i in range(count)))}
    return replace(pattern, operands=tuple(operands), attributes=_substitute_attributes(pattern, listed))


def _element(pattern: Pattern, rest: str, position: int) -> Pattern:
    """The copy of a mapped template for one of the rest operands; `position` in it counts from 0."""
    if isinstance(pattern, VarPattern):
        return replace(pattern, name=element_name(rest, position)) if pattern.name == rest else pattern
    mapping: dict[str, Expr] = {rest: Name(element_name(rest, position)), POSITION: Const(position)}
    if isinstance(pattern, NumberPattern):
        return replace(pattern, value=substitute(pattern.value, mapping))
    return replace(
        pattern,
        operands=tuple(_element(o, rest, position) for o in pattern.operands),
        attributes=_substitute_attributes(pattern, mapping),
    )


def _substitute_attributes(pattern: OpPattern, mapping: dict[str, Expr]) -> tuple[AttributePattern, ...]:
    return tuple(
        replace(a, value=substitute(a.value, mapping)) if a.value is not None else a for a in pattern.attributes
    )


def _order_free(rule: RuleDecl) -> frozenset[str]:
    """Variables that stand once in the left side and that the guard and the computed attributes do not look at."""
    used: set[str] = set()
    for expr in [rule.guard, *(b.value for b in rule.with_)]:
        if expr is not None:
            used |= free_names(expr)
    counts = Counter(p.name for p in leaves(rule.left) if isinstance(p, VarPattern))
    return frozenset(name for name, count in counts.items() if count == 1 and name not in used)


def _orders(pattern: Pattern, library: Library, free: frozenset[str]) -> list[Pattern]:
    """The pattern with the operands of its commutative operators in every order that differs."""
    if not isinstance(pattern, OpPattern):
        return [pattern]
    combined: list[tuple[Pattern, ...]] = [()]
    for operand in pattern.operands:
        combined = [(*done, o) for done in combined for o in _orders(operand, library, free)]
    found = library.find(pattern.op) if pattern.family is None else None
    if found is not None and found[0].decl.commutative and len(pattern.operands) == 2:
        a, b = pattern.operands
        alike = all(isinstance(o, VarPattern) and o.name in free for o in (a, b))
        # rules keep index constants last
        if a != b and not alike and not isinstance(b, NumberPattern):
            combined += [(second, first) for first, second in combined]
    return [replace(pattern, operands=operands) for operands in combined]
