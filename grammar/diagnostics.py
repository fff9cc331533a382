"""Messages about bad input, in one shape everywhere.

softmax.gen:3:11: error: axis 7 is out of range for x, which has 2 dimensions
  m = reduce_max[axes={7}](x)
                       ^
  help: axes run from -2 to 1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from genrw.grammar.source import Span

_WIDEST_QUOTE = 160


@dataclass(frozen=True)
class Diagnostic:
    """One finding: where, what is wrong in one sentence, and the remedy where there is one."""

    message: str
    span: Span | None = None
    remedy: str | None = None
    severity: str = "error"

    def render(self) -> str:
        """The message with its quoted line and caret, without a final newline."""
        where = f"{self.span}: " if self.span is not None else ""
        lines = [f"{where}{self.severity}: {self.message}"]
        if self.span is not None and self.span.source.text:
            lines += _quote(self.span)
        if self.remedy:
            lines.append(f"  help: {self.remedy}")
        return "\n".join(lines)


def _quote(span: Span) -> list[str]:
    """The source line under a span and the carets below it; a very long line is cut around the caret."""
    line = span.source.line(span.line).replace("\t", " ")
    column = span.column - 1
    width = max(1, min(span.end - span.start, len(line) - column))
    if len(line) > _WIDEST_QUOTE:
        first = max(0, column - _WIDEST_QUOTE // 2)
        line = line[first : first + _WIDEST_QUOTE]
        column -= first
        width = min(width, max(1, len(line) - column))
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    return [f"  {shown}", "  " + " " * column + "^" * width]


class GenrwError(Exception):
    """Bad input: one or more diagnostics. The command line prints them and exits with status 2."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = [diagnostics]
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        """What is wrong, as it is printed. Many errors only tell that something cannot be: their text is never made."""
        return "\n".join(d.render() for d in self.diagnostics)

    def __reduce__(self) -> tuple[type[GenrwError], tuple[tuple[Diagnostic, ...]]]:
        """An error goes from one process to another with its diagnostics."""
        return type(self), (self.diagnostics,)


def error(message: str, span: Span | None = None, remedy: str | None = None) -> GenrwError:
    """A ready-made error of one diagnostic, to be raised."""
    return GenrwError(Diagnostic(message, span, remedy))
