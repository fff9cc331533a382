"""Which rules can match as a stage goes on: those whose operators are there, or can be made by rules that run.

An e-graph takes time for every rule that it has, and every iteration takes time for each rule that runs, whether it
matches or not. So a rule is encoded and declared once terms of all its operators can be there. One that asks runs only
once it has an answer: without, it makes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from genrw.engine.egraph.encode import Encoded
from genrw.engine.egraph.operand_types import Piece
from genrw.engine.library.library import Library
from genrw.engine.library.variants import Variant, nodes, pattern_operators
from genrw.grammar.rw_tree import OpPattern


@dataclass(frozen=True)
class Terms:
    """Terms of so many operands whose operator is one of some; of any where `operators` is None.

    What a rule makes may have the operator of a term that it matched: the one at the place `like` of those.
    """

    operators: frozenset[str] | None
    operands: int
    like: int | None = None


@dataclass(eq=False)
class Candidate:
    """A variant of a rule, or another rule of the e-graph: the terms that it needs, those that it makes, and how it is
    encoded."""

    key: str
    number: int
    needs: tuple[Terms, ...]
    makes: tuple[Terms, ...]
    encode: Callable[[], Encoded]

    @cached_property
    def encoded(self) -> Encoded:
        """The rule as egglog takes it."""
        return self.encode()

    @cached_property
    def widest(self) -> int:
        """The most operands of a term that it matches."""
        return max((terms.operands for terms in self.needs), default=0)

    @property
    def arities(self) -> frozenset[int]:
        """The numbers of operands of all its terms."""
        return frozenset(terms.operands for terms in (*self.needs, *self.makes))


def matched(variant: Variant, library: Library) -> tuple[Terms, ...]:
    """The terms that a variant's left side matches."""
    return tuple(_terms(node, variant, library) for node in nodes(variant.left))


def made(variant: Variant, library: Library) -> tuple[Terms, ...]:
    """The terms that a variant makes."""
    left = [(node.op, node.family) for node in nodes(variant.left)]
    return tuple(
        _terms(node, variant, library, left.index((node.op, node.family)) if (node.op, node.family) in left else None)
        for node in nodes(variant.right)
    )


def _terms(node: OpPattern, variant: Variant, library: Library, like: int | None = None) -> Terms:
    return Terms(pattern_operators(node, variant.rule, library), len(node.operands), like)


class Running:
    """The candidates that can match, from the terms of programs on, as rules run and are answered."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        present: Iterable[tuple[str, int]],
        of_piece: Callable[[Piece], Candidate],
    ) -> None:
        """`present` are the operators of the programs' terms, each with a number of operands. `of_piece` gives the rule that
        states the types of a piece of operands."""
        self._of_piece = of_piece
        self._places = {candidate: (0, place) for place, candidate in enumerate(candidates)}
        self._there: dict[int, set[str]] = {}
        self._waiting = list(candidates)
        self._answered: set[str] = set()
        self._unanswered: dict[str, list[Candidate]] = {}
        self._rules: list[Candidate] = []
        self._asking: list[Candidate] = []
        for operator, operands in present:
            self._there.setdefault(operands, set()).add(operator)
        self._extend()

    @property
    def rules(self) -> list[Candidate]:
        """Those that make something where they match, in the order of their declarations."""
        return self._ordered(self._rules)

    @property
    def asking(self) -> list[Candidate]:
        """Those that ask where they match, in the same order."""
        return self._ordered(self._asking)

    def answer(self, keys: Iterable[str]) -> None:
        """Rules have answers from now on. All variants of these run then: what one has made of many operands, another one
        takes on."""
        new = [key for key in keys if key not in self._answered]
        self._answered.update(new)
        for key in new:
            self._rules += self._unanswered.pop(key, [])
        if new:
            self._extend()

    def _ordered(self, found: Iterable[Candidate]) -> list[Candidate]:
        return sorted(found, key=self._places.__getitem__)

    def _extend(self) -> None:
        """Find all that can match by now."""
        grows = True
        while grows:
            grows = sum(self._make(terms, rule) for rule in self._rules for terms in rule.makes) > 0
            waiting, self._waiting = self._waiting, []
            for candidate in waiting:
                if all(map(self._are_there, candidate.needs)):
                    self._begin(candidate)
                    grows = True
                else:
                    self._waiting.append(candidate)

    def _are_there(self, terms: Terms) -> bool:
        there = self._there.get(terms.operands)
        return there is not None and (terms.operators is None or not terms.operators.isdisjoint(there))

    def _begin(self, candidate: Candidate) -> None:
        encoded = candidate.encoded
        if encoded.answer is None:
            self._rules.append(candidate)
            return
        self._asking.append(candidate)
        if candidate.key in self._answered:
            self._rules.append(candidate)
        else:
            self._unanswered.setdefault(candidate.key, []).append(candidate)
        for piece in sorted(encoded.pieces):
            rule = self._of_piece(piece)
            if rule not in self._places:
                self._places[rule] = (1, -rule.number)
                self._waiting.append(rule)

    def _make(self, terms: Terms, rule: Candidate) -> bool:
        """Note what a rule makes; says whether that is new."""
        operators = terms.operators or frozenset()
        if terms.like is not None:
            source = rule.needs[terms.like]
            operators &= self._there.get(source.operands, frozenset())
        there = self._there.setdefault(terms.operands, set()) if operators else set()
        size = len(there)
        there |= operators
        return len(there) > size
