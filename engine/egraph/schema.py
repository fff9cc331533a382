"""What an e-graph has been given: tables, rules, members of classes. More can be added, and rules can be left aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genrw.engine.egraph.bindings import egg
from genrw.engine.egraph.encode import Encoded, answer_table, demand_table
from genrw.engine.egraph.encodings import rulesets

_MORE_FOR_EACH = 1
"""How many rules an e-graph may have beside each that is needed: copying it takes time for all of them."""


class Declared:
    """The rules that an e-graph has, and those of them that run.

    Rules that are `apart` have a ruleset each, so that an e-graph goes on without some; the others share one.
    """

    def __init__(self, apart: bool) -> None:
        """`arities` are the numbers of operands for which there are tables; the other `tables` go by name, with the numbers
        of their columns."""
        self.apart = apart
        self.arities: frozenset[int] = frozenset()
        self.classes: set[str] = set()
        self.named = False
        self.tables: dict[str, int] = {}
        self._rules: dict[Encoded, dict[str, str]] = {}
        self._generation = 0

    def serves(self, encoded: Sequence[Encoded]) -> bool:
        """Can rules be added to what there is, with few others?"""
        total = len(self._rules.keys() | set(encoded))
        return bool(self.arities) and total <= (1 + _MORE_FOR_EACH) * len(encoded)

    def more(self, encoded: Sequence[Encoded], sp: Any) -> list[Any]:
        """The commands that add what is missing; from now on these rules run and no others."""
        commands = [*self._relations(encoded, sp)]
        new = [e for e in encoded if e not in self._rules]
        if not self.apart:
            self._rules.update((e, {}) for e in new)
            return [*commands, *(c for e in new for c in e.commands)]
        for e in new:
            commands += self._alone(e, sp)
        self._generation += 1
        for shared in rulesets(self.arities):
            own = [alone[shared] for alone in map(self._rules.__getitem__, encoded) if shared in alone]
            commands.append(egg.UnstableCombinedRuleset(sp, self.running(shared), [shared, *own]))
        return commands

    def running(self, shared: str) -> str:
        """The name of the ruleset that runs: the shared one, or the latest of those that combine it with others."""
        return f"{shared} {self._generation}" if self.apart else shared

    def _alone(self, encoded: Encoded, sp: Any) -> list[Any]:
        """The commands of a rule, in rulesets of its own."""
        rules = [command.rule for command in encoded.commands]
        number = len(self._rules)
        alone = self._rules[encoded] = {r.ruleset: f"rule {number} {r.ruleset}" for r in rules}
        moved = [egg.RuleCommand(egg.Rule(r.span, r.head, r.body, r.name, alone[r.ruleset])) for r in rules]
        return [*(egg.AddRuleset(sp, name) for name in alone.values()), *moved]

    def _relations(self, encoded: Sequence[Encoded], sp: Any) -> list[Any]:
        """The tables of questions, answers, operands' types and records that rules need and that are not there yet."""
        asking = [e for e in encoded if e.answer is not None]
        wanted = {demand_table(e.inputs): ["i64"] * (1 + e.inputs) for e in asking}
        wanted |= {answer_table(e.inputs, e.outputs): ["i64"] * (1 + e.inputs + e.outputs) for e in asking}
        wanted |= {piece.table: piece.sorts for e in asking for piece in e.pieces}
        wanted |= {e.recorded.table: list(e.recorded.sorts) for e in encoded if e.recorded is not None}
        missing = sorted(wanted.keys() - self.tables.keys())
        self.tables.update((name, len(wanted[name])) for name in missing)
        return [egg.Relation(sp, name, wanted[name]) for name in missing]
