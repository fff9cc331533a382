"""A small e-graph of symbols, in which rules are tried without a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from genrw.grammar.expr_tree import Expr


@dataclass(frozen=True)
class Term:
    """An operator with the values of its attributes and the classes of its operands."""

    op: str
    attributes: tuple[tuple[str, Expr], ...]
    operands: tuple[int, ...]


class Terms:
    """Classes of equal terms, by number."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._classes: dict[Term, int] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def find(self, number: int) -> int:
        """The number that a class has now."""
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def add(self, op: str, attributes: tuple[tuple[str, Expr], ...], operands: Sequence[int]) -> int:
        """The class of a term, a new one if it is new."""
        term = Term(op, attributes, tuple(map(self.find, operands)))
        if term not in self._classes:
            self._parents.append(len(self._parents))
            self._classes[term] = len(self._parents) - 1
        return self.find(self._classes[term])

    def merge(self, a: int, b: int) -> None:
        """Makes two classes one; `rebuild` draws the consequences."""
        low, high = sorted((self.find(a), self.find(b)))
        self._parents[high] = low

    def rebuild(self) -> None:
        """Terms whose operands have become equal are equal."""
        merged = True
        while merged:
            merged = False
            again: dict[Term, int] = {}
            for term, number in self._classes.items():
                same = Term(term.op, term.attributes, tuple(map(self.find, term.operands)))
                if same in again and self.find(again[same]) != self.find(number):
                    self.merge(again[same], number)
                    merged = True
                again[same] = self.find(number)
            self._classes = again

    def members(self) -> dict[int, list[Term]]:
        """The terms of each class."""
        found: dict[int, list[Term]] = {}
        for term, number in self._classes.items():
            found.setdefault(self.find(number), []).append(term)
        return found
