"""C++ that rules bring and that did not come with genrw, as it stands in printed kernels: what a compiler says of a kernel is
told where the rule file has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from genrw.grammar.rw_tree import InstructionDecl, OpDecl
from genrw.grammar.source import Span

_SHORTEST = 3
"""Lines of fewer characters, which are brackets, stand anywhere."""


class OwnText(NamedTuple):
    """A line of a declaration's clause, or all of it: where it is written, and what kernels have in its place."""

    name: str
    clause: str
    span: Span
    made: str


@dataclass(frozen=True)
class OwnTexts:
    """Collects the texts of operators and instructions that are `foreign`."""

    foreign: frozenset[str]
    found: dict[OwnText, None] = field(default_factory=dict)

    def filled_in(self, decl: OpDecl, made: str) -> None:
        """Note what an operator's `emit` became."""
        if decl.name in self.foreign:
            self.found[OwnText(decl.name, "emit", place_in(decl, decl.emit or ""), made)] = None

    def as_written(self, decl: OpDecl | InstructionDecl, clause: str, text: str) -> None:
        """Note a text that kernels have as it is written, line by line."""
        if decl.name not in self.foreign:
            return
        at = 0
        for line in text.split("\n"):
            said = line.strip()
            if len(said) >= _SHORTEST:
                span = place_in(decl, text, at + line.index(said), len(said))
                self.found[OwnText(decl.name, clause, span, said)] = None
            at += len(line) + 1


def place_in(decl: OpDecl | InstructionDecl, written: str, start: int = 0, length: int | None = None) -> Span:
    """Where part of a text stands in the rule file; the declaration's name if the file has it in other words."""
    source, within = decl.span.source, decl.span.text
    ending = "\r\n" if "\r\n" in within else "\n"
    at = within.find(written.replace("\n", ending))
    if at < 0 or not written:
        return decl.name_span
    end = len(written) if length is None else start + length
    at += decl.span.start
    first, last = (at + n + written.count("\n", 0, n) * (len(ending) - 1) for n in (start, end))
    return Span(source, first, last)


def text_in(texts: Iterable[OwnText], line: str, column: int | None) -> OwnText | None:
    """The text that a kernel's line holds: the innermost one at a column, which counts from 1. None if it holds none."""
    held = [text for text in texts if text.made in line]

    def distance(text: OwnText) -> tuple[bool, int]:
        start = line.find(text.made)
        return column is not None and not start < column <= start + len(text.made), len(text.made)

    return min(held, key=distance, default=None)
