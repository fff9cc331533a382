"""What an e-graph has been given: tables, rules, members of classes. More is added when it is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Self

from genrw.engine.egraph.bindings import egg
from genrw.engine.egraph.candidates import Candidate
from genrw.engine.egraph.encode import ASKING, Encoded, answer_table, demand_table

_DEAD_FOR_EACH = 1
"""How many rules may be left aside for each that can run: copying an e-graph takes time for all of them."""


class Declared:
    """The rules and tables that an e-graph has. Each rule has rulesets of its own, so that any of them can run together."""

    def __init__(self, arities: frozenset[int]) -> None:
        """`arities` are the numbers of operands for which there are tables; the other `tables` go by name, with the numbers
        of their columns; `cleared` are the tables that have a rule to empty them, `questions` how many numbers rules ask
        about."""
        self.arities = arities
        self.classes: set[str] = set()
        self.named = False
        self.tables: dict[str, int] = {}
        self.cleared: set[str] = set()
        self.questions: set[int] = set()
        self.encoded: dict[int, Encoded] = {}
        self._rules: dict[Candidate, dict[str, str]] = {}
        self._together: dict[tuple[str, ...], str] = {}

    def copy(self) -> Self:
        """What there is by now, for an e-graph that goes back to it."""
        other = type(self)(self.arities)
        other.classes, other.named, other.cleared = set(self.classes), self.named, set(self.cleared)
        other.questions = set(self.questions)
        other.tables, other.encoded = dict(self.tables), dict(self.encoded)
        other._rules, other._together = dict(self._rules), dict(self._together)
        return other

    def serves(self, current: Collection[Candidate]) -> bool:
        """Are there few rules but the current ones?"""
        dead = sum(candidate not in current for candidate in self._rules)
        return bool(self._rules) and dead <= 1 + _DEAD_FOR_EACH * (len(self._rules) - dead)

    def missing(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Those that are not declared yet, each once."""
        return [c for c in dict.fromkeys(candidates) if c not in self._rules]

    def beyond(self, other: Declared) -> list[Candidate]:
        """The rules that there are here and not in another e-graph."""
        return [c for c in self._rules if c not in other._rules]

    def more(self, new: Sequence[Candidate], sp: Any) -> list[Any]:
        """The commands that declare rules and what they need."""
        encoded = [candidate.encoded for candidate in new]
        commands = self._relations(encoded, sp)
        for candidate in new:
            commands += self._alone(candidate, sp)
        return commands

    @property
    def combinations(self) -> int:
        """How many rulesets there are that combine others."""
        return len(self._together)

    def together(self, shared: Sequence[str], candidates: Iterable[Candidate], sp: Any) -> tuple[str, list[Any]]:
        """The ruleset of `shared` ones and of what candidates make, or without shared ones of what they ask; and what
        declares it, if it is new."""
        asking = not shared
        own = [name for c in candidates for kind, name in self._rules[c].items() if kind.endswith(ASKING) == asking]
        names = (*shared, *own)
        if names in self._together:
            return self._together[names], []
        name = self._together[names] = f"together {len(self._together)}"
        return name, [egg.UnstableCombinedRuleset(sp, name, list(names))]

    def _alone(self, candidate: Candidate, sp: Any) -> list[Any]:
        """The commands of a rule, in rulesets of its own."""
        rules = [command.rule for command in candidate.encoded.commands]
        number = len(self._rules)
        alone = self._rules[candidate] = {r.ruleset: f"rule {number} {r.ruleset}" for r in rules}
        self.encoded[candidate.number] = candidate.encoded
        moved = [egg.RuleCommand(egg.Rule(r.span, r.head, r.body, r.name, alone[r.ruleset])) for r in rules]
        return [*(egg.AddRuleset(sp, name) for name in alone.values()), *moved]

    def _relations(self, encoded: Sequence[Encoded], sp: Any) -> list[Any]:
        """The tables of questions, answers, records and operands' types that rules need and that are not there yet."""
        asking = [e for e in encoded if e.answer is not None]
        self.questions.update(e.inputs for e in asking)
        wanted = {demand_table(e.inputs): ["i64"] * (1 + e.inputs) for e in asking}
        wanted |= {answer_table(e.inputs, e.outputs): ["i64"] * (1 + e.inputs + e.outputs) for e in asking}
        wanted |= {piece.table: piece.sorts for e in asking for piece in e.pieces}
        wanted |= {e.recorded.table: list(e.recorded.sorts) for e in encoded if e.recorded is not None}
        missing = sorted(wanted.keys() - self.tables.keys())
        self.tables.update((name, len(wanted[name])) for name in missing)
        return [egg.Relation(sp, name, wanted[name]) for name in missing]
