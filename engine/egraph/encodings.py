"""The rules of a library as egglog commands, encoded when first declared and kept for the engines of other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import lt
from typing import Any

from genrw.engine.egraph.encode import ASKING, TYPE, Encoded, Spans, constructor, encode
from genrw.engine.egraph.operand_types import Piece
from genrw.engine.egraph.operator_facts import RANGE_FACTS, encode_facts
from genrw.engine.egraph.relevance import awaited_definitions, built_operators
from genrw.engine.language.expr import member_uses
from genrw.engine.library.arities import NARROW, Arities, rest_counts
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.variants import leaves, nodes, spelled
from genrw.grammar.rw_tree import NumberPattern, RuleDecl
from genrw.grammar.source import NOWHERE

RULES = "rules"
"""The egglog ruleset that the rules are in."""
WAITING = "waiting"
"""The ruleset of definitions that wait until no other rule changes anything."""

_DEMANDS_EACH, _ORDERS_EACH = 1 << 36, 1 << 16

_GAP = 1 << 10
"""How far apart rules are placed, so that a rule can be added between two others and these keep their places."""


@dataclass(frozen=True)
class Needed:
    """Encoded rules, and the numbers of operands for which an e-graph that runs them needs tables."""

    encoded: tuple[Encoded, ...]
    arities: frozenset[int]


class Encodings:
    """Encoded rules, which follow from the library alone, whatever was encoded before.

    `keys` names a rule's direction by the number that its provenance has; `builds` are the operators that it can build.
    Numbers are in the order of the rules, and nothing but their order counts. `awaited` are the definitions that wait.
    E-graphs keep rules `apart` if they are to go on with others: there was a library like this one before. To be used from
    one thread.
    """

    def __init__(
        self,
        library: Library,
        watched: bool = False,
        recorded: bool = False,
        before: Encodings | None = None,
        apart: bool = False,
    ) -> None:
        """Rules that are `watched` or `recorded` say more of what they do, and are slower. From the encodings `before` of a
        library that shares all but rules with this one, those of rules of the same wording are taken over."""
        self.library, self.watched, self.recorded = library, watched, recorded
        self.keys: dict[int, str] = {}
        self.builds: dict[int, frozenset[str]] = {}
        self.spans = Spans()
        self._operator_places = {name: place for place, name in enumerate(library.operators)}
        placed = before._places if before is not None else {}
        self._places: dict[str, int] = _placed(library.rules, len(self._operator_places), placed)
        self._rules: dict[Any, tuple[Encoded, ...]] = {}
        self._facts: dict[str, tuple[Encoded, ...]] = {}
        self._pieces: dict[Piece, Encoded] = {}
        self.apart = apart or before is not None
        self._origins = {rule.name: rule for rule in library.rules}
        self.awaited = awaited_definitions(library)
        if before is not None:
            self._take_over(before)

    def _take_over(self, before: Encodings) -> None:
        """Keep what was encoded of rules of the same wording, at the same place in their order, and of operators."""
        self._facts, self._pieces = before._facts, before._pieces
        same = {
            rule.name: origin
            for rule in self.library.rules
            if (origin := before._origins.get(rule.name)) is not None
            and before._places[rule.name] == self._places[rule.name]
            and (origin is rule or (origin.wording == rule.wording and origin == rule))
            and (rule.name in before.awaited) == (rule.name in self.awaited)
        }
        self._origins |= same
        self._rules = {key: encoded for key, encoded in before._rules.items() if key[0] in same}
        numbers = {number for name in same for number in _numbers(self._places[name])}
        self.keys = {number: key for number, key in before.keys.items() if number in numbers}
        self.builds = {number: before.builds[number] for number in self.keys}

    def current(self) -> set[Encoded]:
        """All that are encoded and that rules of the library have."""
        return {e for several in (*self._rules.values(), *self._facts.values(), self._pieces.values()) for e in several}

    def origin(self, rule: RuleDecl) -> RuleDecl:
        """The rule as it was when it was encoded: its text may have stood elsewhere."""
        return self._origins.get(rule.name, rule)

    def needed(self, rules: Iterable[RuleDecl], operators: frozenset[str], arities: Arities) -> Needed:
        """What an e-graph needs to run rules, on terms of some numbers of operands; `operators` can appear."""
        encoded = tuple(self._of(rules, arities, operators))
        widths = arities.all(self.library, operators).union(range(NARROW + 1), *(e.arities for e in encoded))
        return Needed(encoded, widths)

    def _of(self, rules: Iterable[RuleDecl], arities: Arities, operators: frozenset[str]) -> list[Encoded]:
        """Rules, and the facts that they ask for."""
        rules = tuple(map(self.origin, rules))
        encoded = [e for rule in rules for e in self._rule(rule, arities, operators)]
        if any(self.library.of_rule(rule, _uses_ranges) for rule in rules):
            present = [o for o in self.library.operators.values() if o.name in operators]
            encoded += [e for operator in present for e in self._facts_of(operator)]
        return encoded + [self._types_of(piece) for piece in sorted({p for e in encoded for p in e.pieces})]

    def _rule(self, rule: RuleDecl, arities: Arities, operators: frozenset[str]) -> Iterator[Encoded]:
        for direction, counts in enumerate(rest_counts(rule, self.library, arities, operators)):
            for count in counts:
                key = (rule.name, direction, count)
                if key not in self._rules:
                    self._rules[key] = self._encoded(rule, direction, count)
                yield from self._rules[key]

    def _encoded(self, rule: RuleDecl, direction: int, count: int) -> tuple[Encoded, ...]:
        place = self._places[rule.name]
        number = _numbers(place)[direction]
        first = place * _DEMANDS_EACH + (2 * count + direction) * _ORDERS_EACH
        encoded = []
        for i, variant in enumerate(spelled(rule, self.library, direction, count)):
            if number not in self.keys:
                self.keys[number] = variant.key
                self.builds[number] = built_operators(rule, variant.key, self.library)
            widest = max((len(node.operands) for node in nodes(variant.left)), default=0)
            ruleset = for_arity(WAITING if rule.name in self.awaited else RULES, widest)
            kept = self.watched, self.recorded
            encoded.append(encode(variant, first + i, number, self.library, self.spans, ruleset, *kept))
        return tuple(encoded)

    def _facts_of(self, operator: Operator) -> tuple[Encoded, ...]:
        name = operator.name
        if name not in self._facts:
            first = self._operator_places[name] * _DEMANDS_EACH
            self._facts[name] = tuple(encode_facts(operator, first, self.library, self.spans, RULES))
        return self._facts[name]

    def _types_of(self, piece: Piece) -> Encoded:
        if piece not in self._pieces:
            rule = piece.rule(constructor(piece.arity), for_arity(RULES, piece.arity), TYPE, self.spans(NOWHERE))
            self._pieces[piece] = Encoded(rule.rule.name, piece.number, [rule])
        return self._pieces[piece]


def _numbers(place: int) -> tuple[int, int]:
    """The numbers of the two directions of the rule at a place."""
    return 2 * place, 2 * place + 1


def _placed(rules: Sequence[RuleDecl], first: int, before: Mapping[str, int]) -> dict[str, int]:
    """A place for each rule, in their order, from `first` on: the one that it had before where that can be kept."""
    kept = [before[rule.name] for rule in rules if rule.name in before]
    places: dict[str, int] = {}
    waiting: list[str] = []
    last = first
    for rule in rules if all(map(lt, kept, kept[1:])) else ():
        if rule.name not in before:
            waiting.append(rule.name)
            continue
        places |= _between(waiting, last, before[rule.name])
        last = places[rule.name] = before[rule.name]
        waiting = []
    places |= _between(waiting, last, last + _GAP * (len(waiting) + 1))
    if len(set(places.values())) == len(rules):
        return places
    return {rule.name: first + _GAP * (i + 1) for i, rule in enumerate(rules)}


def _between(names: Sequence[str], low: int, high: int) -> dict[str, int]:
    """Places for names between two, as far apart as can be; some are the same if there is no room."""
    return {name: low + (high - low) * (i + 1) // (len(names) + 1) for i, name in enumerate(names)}


def for_arity(ruleset: str, arity: int) -> str:
    """The ruleset for terms of so many operands. Rules of many operands are slow even where they match nothing, so each
    arity above a few has rulesets of its own, that run only where there are such terms."""
    return ruleset if arity <= NARROW else f"{ruleset}{arity}"


def rulesets(arities: Iterable[int]) -> list[str]:
    """The rulesets for terms of some numbers of operands, those that ask among them."""
    shared = dict.fromkeys(for_arity(rules, arity) for rules in (RULES, WAITING) for arity in sorted(arities))
    return [f"{name}{kind}" for name in shared for kind in ("", ASKING)]


def _uses_ranges(rule: RuleDecl, _: Library) -> bool:
    """Does the rule look at value ranges, so that the stage must derive them?"""
    exprs = [rule.guard, *(b.value for b in rule.with_)]
    exprs += [p.value for p in leaves(rule.right) if isinstance(p, NumberPattern)]
    return any(m in RANGE_FACTS for e in exprs if e is not None for _, m in member_uses(e))
