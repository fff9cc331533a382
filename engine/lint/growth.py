"""Rules that feed themselves, or one another, with ever larger terms.

Equal terms may lead to one another as they like: an e-graph holds each once. What never ends is a rule that finds its
pattern in what it made, with something new inside. So rules are tried on their own left sides, whose variables stand for
themselves, for some rounds: what still grows then grows for ever. Rules with a guard over values are taken to know where
they end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from genrw.engine.language.expr import free_names, substitute
from genrw.engine.library.arities import Arities, rest_counts
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.library import Library
from genrw.engine.library.rewriting import Match, Matcher, copied_from
from genrw.engine.library.sides import Direction
from genrw.engine.library.variants import Variant, nodes, pattern_operators, variants
from genrw.engine.lint.finding import Finding, finding
from genrw.engine.lint.terms import Term, Terms
from genrw.grammar.expr_tree import Binary, Const, Expr, ListExpr, Name, children
from genrw.grammar.rw_tree import NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern

_ROUNDS = 6
_TERMS = 150
_STEPS = 20_000
"""So many steps of matching is a round worth; larger patterns are left alone."""
_TOGETHER = 100
"""With so many other rules of the stage a suspicion is tried once more."""
_NODES = 12
"""Left sides of more nodes are not tried."""
_PAIRS = 5_000
"""How many pairs of rules are tried at most."""
_WIDEST = 2
"""So many operands does an operator of any number get."""

_UNKNOWN: Expr = Name("?")
_DEFAULT: Expr = Name("default")
_GROWING = ("+", "-", "*")


def endless(library: Library, directions: Sequence[Direction]) -> Iterator[Finding]:
    """Rules that never end, alone or two together."""
    open_ones = [d for d in directions if _unguarded(d)]
    alone = [d for d in open_ones if d.makes & _matched(d) and _grows(library, [d.rule], open_ones)]
    for rule in dict.fromkeys(d.rule.name for d in alone):
        yield _finding(next(d for d in alone if d.rule.name == rule))
    told = {d.rule.name for d in alone}
    rest = [d for d in open_ones if d.rule.name not in told]
    for first, second in _pairs(rest):
        if second.rule.name not in told and _grows(library, [first.rule, second.rule], open_ones):
            told.add(second.rule.name)
            yield _finding(second, first)


def _finding(direction: Direction, other: Direction | None = None) -> Finding:
    rule = direction.rule
    if other is None:
        message = f"`{rule.name}` finds its pattern in what it makes, each time with more inside: it never ends"
    else:
        message = (
            f"`{rule.name}` and `{other.rule.name}`, at {other.rule.name_span}, make ever larger terms of one another's"
        )
    remedy = "guard it by what shrinks, or rewrite in one direction only"
    return finding("loop", rule.name, message, direction.right.span, remedy)


def _unguarded(direction: Direction) -> bool:
    """Is there no condition on what is matched that could end it, and is the pattern small enough to be tried?"""
    guard = direction.rule.guard
    return len(direction.needs) <= _NODES and (guard is None or free_names(guard) <= set(CONTEXT_NAMES))


def _matched(direction: Direction) -> frozenset[str]:
    return frozenset().union(*direction.needs)


def _pairs(directions: Sequence[Direction]) -> Iterator[tuple[Direction, Direction]]:
    """Directions of one stage of which each can match what the other one makes."""
    by_need: dict[tuple[str, str], list[Direction]] = {}
    for d in directions:
        for key in {(stage, name) for stage in d.stages for name in _matched(d)}:
            by_need.setdefault(key, []).append(d)
    tried: set[tuple[str, str]] = set()
    for first in directions:
        fed = {id(d): d for stage in first.stages for name in first.makes for d in by_need.get((stage, name), ())}
        for second in fed.values():
            pair = (first.rule.name, second.rule.name)
            ordered = first.number < second.number and first.rule is not second.rule
            if ordered and pair not in tried and second.makes & _matched(first):
                tried.add(pair)
                yield first, second
        if len(tried) > _PAIRS:
            return


# ---- trying rules


def _grows(library: Library, rules: Sequence[RuleDecl], others: Sequence[Direction]) -> bool:
    """Do rules still make new terms after some rounds on their own left sides, whatever others of the stage merge?"""
    if not _keeps_growing(library, rules, rules):
        return False
    stages = frozenset.intersection(*(d.stages for d in others if d.rule in rules))
    together = {d.rule.name: d.rule for d in others if stages & d.stages}
    return len(together) > _TOGETHER or _keeps_growing(library, rules, list(together.values()))


def _keeps_growing(library: Library, seeds: Sequence[RuleDecl], rules: Sequence[RuleDecl]) -> bool:
    operators = frozenset().union(*(_operators(library, rule) for rule in rules))
    arities = Arities.up_to(_WIDEST)
    counts = {rule.name: rest_counts(rule, library, arities, operators) for rule in rules}
    spelled = [v for rule in rules for v in variants(rule, library, counts[rule.name])]
    names = {rule.name for rule in seeds}
    for variant in {v.key: v for v in spelled if v.rule.name in names}.values():
        trial = _GrowthTrial(library, spelled)
        trial.seed(variant)
        if all(trial.round() for _ in range(_ROUNDS)):
            return True
    return False


def _operators(library: Library, rule: RuleDecl) -> frozenset[str]:
    sides = [*nodes(rule.left), *nodes(rule.right)]
    return frozenset(name for node in sides for name in pattern_operators(node, rule, library))


class _GrowthTrial(Matcher[Match]):
    """Some rules on a small e-graph."""

    def __init__(self, library: Library, rules: Sequence[Variant]) -> None:
        super().__init__(library)
        self.rules = rules
        self.terms = Terms()
        self.present: Mapping[int, list[Term]] = {}
        self.steps = _STEPS

    def seed(self, variant: Variant) -> int:
        """Adds a left side whose variables stand for themselves."""
        return self._seed(variant.left, variant.rule)

    def _seed(self, pattern: Pattern, rule: RuleDecl) -> int:
        if isinstance(pattern, VarPattern):
            return self.terms.add(f"${pattern.name}", (), ())
        if isinstance(pattern, NumberPattern):
            return self.terms.add("#", (("value", pattern.value),), ())
        op = min(pattern_operators(pattern, rule, self.library), default=pattern.op)
        given = {a.name: a.value or Name(a.name) for a in pattern.attributes}
        other = Name("any") if pattern.open_attributes else _DEFAULT
        return self.terms.add(op, self._given(op, given, other), [self._seed(o, rule) for o in pattern.operands])

    def _given(self, op: str, given: Mapping[str, Expr], other: Expr) -> tuple[tuple[str, Expr], ...]:
        found = self.library.find(op)
        return tuple((name, given.get(name, other)) for name in (found[0].attributes if found is not None else ()))

    def round(self) -> bool:
        """Applies all rules once everywhere; does the e-graph still grow?"""
        before, self.steps = len(self.terms), _STEPS
        self.present = self.terms.members()
        made = [
            (number, variant, bound)
            for variant in self.rules
            for number in list(self.present)
            for bound in self.matches(variant.left, number, Match(), variant.rule)
        ]
        for number, variant, bound in made:
            self.terms.merge(number, self._make(variant.right, bound, variant))
            if len(self.terms) > _TERMS:
                break
        self.terms.rebuild()
        return len(self.terms) > before

    # ---- matching

    def members(self, number: int) -> Iterator[Term]:
        for term in self.present[number]:
            self.steps -= 1
            if self.steps < 0:
                return
            yield term

    def matches(self, pattern: Pattern, number: int, match: Match, rule: RuleDecl) -> Iterator[Match]:
        yield from super().matches(pattern, self.terms.find(number), match, rule)

    def numbers(self, pattern: NumberPattern, number: int, match: Match) -> Iterator[Match]:
        for term in self.members(number):
            if term.op == "#":
                value = term.attributes[0][1]
                name = pattern.value.name if isinstance(pattern.value, Name) else None
                found = match.with_value(name, value) if name else match if value == pattern.value else None
                yield from [found] if found is not None else []

    def attributes(self, pattern: OpPattern, node: Term, match: Match) -> Match | None:
        now: Match | None = match
        values = dict(node.attributes)
        asked = {a.name for a in pattern.attributes}
        if not pattern.open_attributes and any(v != _DEFAULT for name, v in values.items() if name not in asked):
            return None
        for attribute in pattern.attributes:
            value, wanted = values.get(attribute.name, _UNKNOWN), attribute.value or Name(attribute.name)
            if now is None:
                return None
            now = now.with_value(wanted.name, value) if isinstance(wanted, Name) else now if value == wanted else None
        return now

    # ---- making

    def _make(self, pattern: Pattern, bound: Match, variant: Variant) -> int:
        if isinstance(pattern, VarPattern):
            return bound.classes[pattern.name]
        if isinstance(pattern, NumberPattern):
            return self.terms.add("#", (("value", _value(pattern.value, bound)),), ())
        op = bound.operators.get(pattern.op, pattern.op)
        if pattern.family is not None:
            op = pattern.op.replace("{}", bound.operators.get(pattern.family, pattern.family))
        given = {a.name: _value(a.value or Name(a.name), bound) for a in pattern.attributes}
        if pattern.open_attributes:
            place = copied_from(list(nodes(variant.left)), pattern)
            given = {**dict(bound.matched[place].attributes if place is not None else ()), **given}
        operands = [self._make(operand, bound, variant) for operand in pattern.operands]
        return self.terms.add(op, self._given(op, given, _DEFAULT), operands)


def _value(expr: Expr, bound: Match) -> Expr:
    """An attribute's value: written out where it is a sum or a product, so that a count that goes up is always new."""
    if isinstance(expr, Const):
        return expr
    if isinstance(expr, Name):
        value: Expr = bound.values.get(expr.name, _UNKNOWN)
        return value
    return substitute(expr, bound.values) if _is_growing(expr, bound) else _UNKNOWN


def _is_growing(expr: Expr, bound: Match) -> bool:
    if isinstance(expr, Name):
        return bool(bound.values.get(expr.name, _UNKNOWN) != _UNKNOWN)
    if isinstance(expr, Binary) and expr.op not in _GROWING:
        return False
    return isinstance(expr, Const | Binary | ListExpr) and all(_is_growing(part, bound) for part in children(expr))
