"""Finding many errors in one text: the list they go to, and the brackets that tell where one ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.source import Source, Span

# Deeper nesting is refused, so that no reader of a tree runs out of Python's stack.
MAX_BRACKETS = 100
# After so many errors the rest of a text is left unread: it is probably not what it claims to be.
_MAX_ERRORS = 20

_T = TypeVar("_T")


class Errors:
    """The diagnostics of one text, up to the number at which reading on is pointless."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def add(self, *diagnostics: Diagnostic) -> None:
        """Notes what is wrong; raises once too much is."""
        self.found += diagnostics
        if len(self.found) >= _MAX_ERRORS:
            self.finish()

    def attempt(self, step: Callable[[], _T]) -> _T | None:
        """What a step gives, or None when it raises, its diagnostics noted."""
        try:
            return step()
        except GenrwError as problem:
            self.add(*problem.diagnostics)
            return None

    def finish(self) -> None:
        """Raises what was found, if anything, in the order of the text."""
        if not self.found:
            return
        found = _in_order(self.found)[:_MAX_ERRORS]
        if len(self.found) >= _MAX_ERRORS:
            found.append(Diagnostic("too many errors: the text is read no further", found[-1].span))
        raise GenrwError(found)


def _in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return sorted(diagnostics, key=lambda d: d.span.start if d.span else 0)


_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Brackets:
    """The brackets open at a point of a text; complains about the first that has no partner."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.open: list[int] = []

    def see(self, char: str, at: int) -> Diagnostic | None:
        """Takes the bracket at an offset into account; what is wrong with it, if anything."""
        span = Span(self._source, at, at + 1)
        if char in _CLOSING:
            self.open.append(at)
            if len(self.open) > MAX_BRACKETS:
                message = f"brackets are nested more than {MAX_BRACKETS} deep"
                return Diagnostic(message, span, "give what is inside a name of its own")
            return None
        if not self.open:
            return Diagnostic(f"`{char}` closes no bracket", span, "remove it, or open its bracket")
        opener = self._source.text[self.open[-1]]
        if _CLOSING[opener] != char:
            line, column = self._source.position(self.open[-1])
            message = f"`{char}` does not close the `{opener}` at line {line}, column {column}"
            return Diagnostic(message, span, f"`{_CLOSING[opener]}` is missing before it")
        self.open.pop()
        return None

    def never_closed(self) -> Diagnostic:
        """The error for the innermost bracket still open."""
        at = self.open[-1]
        opener = self._source.text[at]
        span = Span(self._source, at, at + 1)
        return Diagnostic(f"this `{opener}` is never closed", span, f"`{_CLOSING[opener]}` is missing")
