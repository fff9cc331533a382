"""The rules of a library as egglog commands, encoded when first declared and kept for the engines of other programs."""

from __future__ import annotations

from typing import Any

from genrw.engine.encode import Encoded, Spans, encode
from genrw.engine.facts import encode_facts
from genrw.engine.library import Library, Operator
from genrw.engine.relevance import built_operators
from genrw.engine.variants import rest_counts, variants
from genrw.grammar.rw_tree import RuleDecl

RULES = "rules"
"""The egglog ruleset that the rules are in."""

_DEMANDS_EACH = 1 << 20


class Encodings:
    """Encoded rules, which follow from the library alone: their numbers too, whatever was encoded before.

    `keys` names a rule's direction by the number that its provenance has; `builds` are the operators that it can build.
    Numbers are in the order of the rules. To be used from one thread.
    """

    def __init__(self, library: Library, watched: bool = False) -> None:
        self.library, self.watched = library, watched
        self.keys: dict[int, str] = {}
        self.builds: dict[int, frozenset[str]] = {}
        self.spans = Spans()
        self._places = {rule.name: place for place, rule in enumerate(library.rules)}
        self._operator_places = {name: len(self._places) + i for i, name in enumerate(library.operators)}
        self._rules: dict[Any, tuple[Encoded, ...]] = {}
        self._facts: dict[str, tuple[Encoded, ...]] = {}

    def rule(self, rule: RuleDecl, widest: int, operators: frozenset[str]) -> tuple[Encoded, ...]:
        """A rule for operators of up to `widest` operands, where `operators` can appear."""
        counts = rest_counts(rule, self.library, widest, operators)
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
            encoded.append(encode(variant, demands, number, self.library, self.spans, RULES, self.watched))
        return tuple(encoded)

    def facts(self, operator: Operator) -> tuple[Encoded, ...]:
        """The rules that derive an operator's declared facts."""
        name = operator.name
        if name not in self._facts:
            first = self._operator_places[name] * _DEMANDS_EACH
            self._facts[name] = tuple(encode_facts(operator, first, self.library, self.spans, RULES))
        return self._facts[name]
