"""What the checks of rules find: a diagnostic, and of which kind it is."""

from __future__ import annotations

from dataclasses import dataclass

from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.source import Span


@dataclass(frozen=True)
class Finding:
    """One finding. `kind` is a word for tools, `subject` the name of the declaration that it is about."""

    kind: str
    subject: str
    diagnostic: Diagnostic


def finding(kind: str, subject: str, message: str, span: Span, remedy: str) -> Finding:
    """A finding with its place and its remedy."""
    return Finding(kind, subject, Diagnostic(message, span, remedy, "warning" if kind == "unused" else "error"))
