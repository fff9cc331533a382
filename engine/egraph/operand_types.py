"""The types of many operands, gathered a piece at a time.

egglog plans a rule anew for each fact of its body, and looks at all facts for each plan: a rule that asked for the type of
each of n operands would take time in proportion to n³. So other rules state the types of a piece of the operands in one
row, and the rule asks for these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from genrw.engine.egraph.bindings import egg

_LONGEST = 16
"""How many operands a piece has."""
_ARITY_SHIFT = 20


@dataclass(frozen=True, order=True)
class Piece:
    """So many operands of the terms that have `arity`, from the one at place `first` on."""

    arity: int
    first: int
    count: int

    @property
    def table(self) -> str:
        """The relation of operands and their types."""
        return f"types{self.count}"

    @property
    def sorts(self) -> list[str]:
        """The sorts of its columns."""
        return ["T"] * self.count + ["i64"] * self.count

    @property
    def number(self) -> int:
        """What tells pieces apart, from one another and from rules, whose numbers are not below 0."""
        return -1 - (self.arity << _ARITY_SHIFT) - self.first

    def rule(self, constructor: str, ruleset: str, fact: str, sp: Any) -> Any:
        """The rule that states the types of a term's operands as soon as all are known."""
        head = [egg.Var(sp, "o"), egg.Var(sp, "a")]
        operands = [egg.Var(sp, f"x{i}") for i in range(self.arity)]
        own = operands[self.first : self.first + self.count]
        types = [egg.Var(sp, f"t{i}") for i in range(self.count)]
        body = [egg.Eq(sp, egg.Var(sp, "e"), egg.Call(sp, constructor, [*head, *operands]))]
        body += [egg.Eq(sp, t, egg.Call(sp, fact, [x])) for t, x in zip(types, own, strict=True)]
        stated = egg.Expr_(sp, egg.Call(sp, self.table, [*own, *types]))
        return egg.RuleCommand(egg.Rule(sp, [stated], body, f"{self.table} {self.arity} {self.first}", ruleset))


def pieces(arity: int, places: Sequence[int]) -> Iterator[Piece]:
    """The pieces that neighbouring operands fall into."""
    for start in range(0, len(places), _LONGEST):
        yield Piece(arity, places[start], len(places[start : start + _LONGEST]))
