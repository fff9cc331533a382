"""The rules of a library as egglog commands, encoded when first declared and kept for the engines of other programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genrw.engine.encode import Encoded, Spans, encode
from genrw.engine.expr import member_uses
from genrw.engine.facts import RANGE_FACTS, encode_facts
from genrw.engine.library import Library, Operator
from genrw.engine.relevance import built_operators
from genrw.engine.variants import leaves, nodes, rest_counts, variants
from genrw.grammar.rw_tree import NumberPattern, RuleDecl

RULES = "rules"
"""The egglog ruleset that the rules are in."""

NARROW = 4
"""Operands up to which terms and rules have one ruleset."""

_DEMANDS_EACH = 1 << 20


class Encodings:
    """Encoded rules, which follow from the library alone: their numbers too, whatever was encoded before.

    `keys` names a rule's direction by the number that its provenance has; `builds` are the operators that it can build.
    Numbers are in the order of the rules. To be used from one thread.
    """

    def __init__(self, library: Library, watched: bool = False, recorded: bool = False) -> None:
        """Rules that are `watched` or `recorded` say more of what they do, and are slower."""
        self.library, self.watched, self.recorded = library, watched, recorded
        self.keys: dict[int, str] = {}
        self.builds: dict[int, frozenset[str]] = {}
        self.spans = Spans()
        self._places = {rule.name: place for place, rule in enumerate(library.rules)}
        self._operator_places = {name: len(self._places) + i for i, name in enumerate(library.operators)}
        self._rules: dict[Any, tuple[Encoded, ...]] = {}
        self._facts: dict[str, tuple[Encoded, ...]] = {}

    def of(self, rules: Iterable[RuleDecl], arities: frozenset[int], operators: frozenset[str]) -> list[Encoded]:
        """Rules, and the facts that they ask for, for terms of some numbers of operands; `operators` can appear."""
        rules = tuple(rules)
        encoded = [e for rule in rules for e in self._rule(rule, arities, operators)]
        if any(_uses_ranges(rule) for rule in rules):
            present = [o for o in self.library.operators.values() if o.name in operators]
            encoded += [e for operator in present for e in self._facts_of(operator)]
        return encoded

    def _rule(self, rule: RuleDecl, arities: frozenset[int], operators: frozenset[str]) -> tuple[Encoded, ...]:
        counts = rest_counts(rule, self.library, arities, operators)
        key = (rule.name, counts)
        if key not in self._rules:
            self._rules[key] = self._encoded(rule, counts)
        return self._rules[key]

    def _encoded(self, rule: RuleDecl, counts: tuple[tuple[int, ...], ...]) -> tuple[Encoded, ...]:
        place = self._places[rule.name]
        encoded = []
        for i, variant in enumerate(variants(rule, self.library, counts)):
            number = 2 * place + (variant.key != rule.name)
            if number not in self.keys:
                self.keys[number] = variant.key
                self.builds[number] = built_operators(rule, variant.key, self.library)
            demands = place * _DEMANDS_EACH + i
            widest = max((len(node.operands) for node in nodes(variant.left)), default=0)
            ruleset = for_arity(RULES, widest)
            kept = self.watched, self.recorded
            encoded.append(encode(variant, demands, number, self.library, self.spans, ruleset, *kept))
        return tuple(encoded)

    def _facts_of(self, operator: Operator) -> tuple[Encoded, ...]:
        name = operator.name
        if name not in self._facts:
            first = self._operator_places[name] * _DEMANDS_EACH
            self._facts[name] = tuple(encode_facts(operator, first, self.library, self.spans, RULES))
        return self._facts[name]


def for_arity(ruleset: str, arity: int) -> str:
    """The ruleset for terms of so many operands. Rules of many operands are slow even where they match nothing, so each
    arity above a few has rulesets of its own, that run only where there are such terms."""
    return ruleset if arity <= NARROW else f"{ruleset}{arity}"


def _uses_ranges(rule: RuleDecl) -> bool:
    """Does the rule look at value ranges, so that the stage must derive them?"""
    exprs = [rule.guard, *(b.value for b in rule.with_)]
    exprs += [p.value for p in leaves(rule.right) if isinstance(p, NumberPattern)]
    return any(m in RANGE_FACTS for e in exprs if e is not None for _, m in member_uses(e))
