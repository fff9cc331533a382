"""A name in a text: where it stands and of what kind it is."""

from __future__ import annotations

from dataclasses import dataclass

from genrw.grammar.source import Span

OPERATOR, RULE, CLASS, LET, MONOID, TARGET, INSTRUCTION, FUNCTION = (
    "operator",
    "rule",
    "class",
    "let",
    "monoid",
    "target",
    "instruction",
    "function",
)
VARIABLE, VALUE, MODULE, CONTEXT = "variable", "value", "module", "context"
LOCAL = (VARIABLE, VALUE, MODULE, CONTEXT)
RENAMED = (OPERATOR, RULE, CLASS, LET, VARIABLE, VALUE, MODULE, CONTEXT)
"""What may be called otherwise; the names of monoids and families are parts of other names."""


@dataclass(frozen=True)
class Occurrence:
    """A name in a text. `scope` tells apart what has the same name in other rules, programs and files.

    `prefix` stands before a new name where the old one stands for itself: `f[axes]` is `f[axes=axes]`. A sign between terms
    names its operator, and stays what it is when that is called otherwise.
    """

    span: Span
    kind: str
    name: str
    scope: str = ""
    declares: bool = False
    prefix: str = ""
    is_sign: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What all places of one thing share."""
        return self.kind, self.name, self.scope


def head(span: Span, name: str) -> Span:
    """The name at the beginning of a span."""
    return Span(span.source, span.start, span.start + len(name))
