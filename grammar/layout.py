"""Laying out tokens and comments as lines: what the formatters of both languages share.

Line breaks inside a clause or an instruction are the author's. Its lines move together, so what was set below a bracket
stays there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lark import Token

_COMMENT = re.compile(r"(?:#|//)[^\n]*")
_TAB = 8


@dataclass(frozen=True)
class Word:
    """A token or comment: its column if it begins a line, and the line breaks and spaces before it."""

    text: str
    kind: str
    column: int
    breaks: int
    blanks: str

    @property
    def is_comment(self) -> bool:
        return self.kind == COMMENT


COMMENT = "comment"


def words(text: str, tokens: Iterable[Token], start: int, end: int) -> Iterator[Word]:
    """Tokens and the comments between them, in order, of a part of a text. Blocks in between are not looked into."""
    at = start
    for token in tokens:
        first, last = token.start_pos or 0, token.end_pos or 0
        yield from _comments(text, at, first, start)
        at = max(at, _last_end(text, at, first))
        yield _word(text, str(token.value), token.type, at, first, start)
        at = last
    yield from _comments(text, at, end, start)


def _comments(text: str, at: int, end: int, start: int) -> Iterator[Word]:
    for mark in _COMMENT.finditer(text, at, end):
        yield _word(text, mark[0].rstrip(), COMMENT, at, mark.start(), start)
        at = mark.end()


def _last_end(text: str, at: int, end: int) -> int:
    """Where the last comment before a token ends."""
    return max((mark.end() for mark in _COMMENT.finditer(text, at, end)), default=at)


def _word(text: str, value: str, kind: str, at: int, first: int, start: int) -> Word:
    between = text[at:first]
    breaks = between.count("\n") if first > start else 0
    begins = breaks or first == start
    column = len(text[text.rfind("\n", 0, first) + 1 : first].expandtabs(_TAB)) if begins else 0
    return Word(value, kind, column, breaks, between.rpartition("\n")[2])


@dataclass
class Lines:
    """The lines written so far, and how far the lines of the clause at hand move to the right."""

    done: list[str] = field(default_factory=list)
    shift: int = 0

    def begin(self, word: Word, column: int) -> None:
        """Begin a line that sets how its continuations move."""
        self.shift = column - word.column
        self.done.append(" " * column + word.text)

    def go_on(self, word: Word, least: int) -> None:
        """Begin a line that continues the one before, as the author set it."""
        self.done.append(" " * max(least, word.column + self.shift) + word.text)

    def append(self, text: str) -> None:
        """Write on in the last line."""
        self.done[-1] += text

    def blank(self) -> None:
        """Leave a line empty, unless there is none to leave it below or one is empty already."""
        if self.done and self.done[-1]:
            self.done.append("")

    def comment(self, word: Word, column: int) -> None:
        """Write a comment behind what stands in its line, or in a line of its own."""
        if word.breaks == 0 and self.done:
            self.append((word.blanks.expandtabs(_TAB) or " ") + word.text)
            return
        if word.breaks > 1:
            self.blank()
        self.done.append(" " * column + word.text)
