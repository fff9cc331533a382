"""Cutting a `.rw` file into declarations, before Lark reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.recovery import Errors
from genrw.grammar.source import Source, Span
from genrw.grammar.wording import quoted


@dataclass
class Part:
    """A declaration's text and its documentation."""

    start: int
    end: int
    doc: str


_KEYWORD = "(?:rule|op|define|let|class|monoid|target|instruction|import|dialect|pipeline|stage|context)"
# Blanks of a line: a page or a chat that a text is copied from has others than spaces and tabs.
_SCAN = re.compile(
    rf"""
      (?P<string> \"\"\"[\s\S]*?(?:\"\"\"|\Z) | "(?:[^"\\\n]|\\.)*"? )
    | (?P<doc> ^[^\S\n]*///[^\n]* )
    | (?P<comment> \#[^\n]* | ^[^\S\n]*//[^\n]* )
    | ^(?P<declaration> (?:{_KEYWORD}|given)\b (?=[^\S\n]|\[|$) )
    | ^[^\S\n]+ (?P<indented> {_KEYWORD}\b (?=[^\S\n]+[A-Za-z_]) )
    """,
    re.MULTILINE | re.VERBOSE,
)
_BLANK = re.compile(r"(?:\s+|#[^\n]*|//[^\n]*)*")
_HEADING = re.compile(r"\s*((?:[^\S\n]*(?:#|//(?!/))[^\n]*(?:\n|\Z))*)")


class Cutter:
    """Walks once over a file, past strings and comments, and notes where declarations begin.

    `doc` is the comment that heads the file. What is given is a declaration in the first column, and else a rule's clause.
    """

    def __init__(self, source: Source, errors: Errors) -> None:
        self._source = source
        self._errors = errors
        self._doc: list[re.Match[str]] = []
        # Where text begins that belongs to no declaration; None while inside one.
        self._loose: int | None = 0
        self.parts: list[Part] = []
        heading = _HEADING.match(source.text)
        self.doc = _comment_text(heading[1].rstrip("\n")) if heading else ""
        self._walk()

    def _walk(self) -> None:
        text, at = self._source.text, 0
        while mark := _SCAN.search(text, at):
            at = mark.end()
            if mark["doc"]:
                self._close(mark.start())
                self._doc.append(mark)
            elif mark["declaration"] or mark["indented"]:
                self._open(mark.start(mark.lastgroup or 0))
        self._close(len(text))
        self._check_loose(len(text))
        self._orphan_doc()

    def _open(self, at: int) -> None:
        """Begins a declaration."""
        self._close(at)
        self._check_loose(at)
        self._loose = None
        part = Part(at, len(self._source.text), "")
        self.parts.append(part)
        # What documents a declaration may stand before the stage, the dialect, the context and the names that it has.
        if not self._source.text.startswith(("stage", "dialect", "context", "given"), at):
            part.doc = "\n".join(_comment_text(mark["doc"]) for mark in self._doc)
            self._doc = []

    def _close(self, at: int) -> None:
        """Ends the declaration at hand before an offset."""
        if self._loose is None:
            part = self.parts[-1]
            part.end = part.start + len(self._source.text[part.start : at].rstrip())
            self._loose = at

    def _check_loose(self, end: int) -> None:
        """Complains about text between declarations that is no comment."""
        blank = _BLANK.match(self._source.text, self._loose or 0, end)
        at = blank.end() if blank else end
        if at < end and not self._orphan_doc():
            word = self._source.text[at:end].split(maxsplit=1)[0]
            span = Span(self._source, at, at + len(word))
            self._errors.add(Diagnostic(f"expected a declaration, found {quoted(word)}", span, DECLARATIONS))

    def _orphan_doc(self) -> bool:
        """Complains about documentation that no declaration follows; whether there is any."""
        if not self._doc:
            return False
        span = Span(self._source, self._doc[0].end() - len(self._doc[0][0].lstrip()), self._doc[0].end())
        message = "a `///` comment is followed by no declaration"
        self._errors.add(Diagnostic(message, span, "other comments begin with #"))
        self._doc = []
        return True


CLAUSES = {
    "rule": "when with for contract replaces alternative given example counterexample",
    "op": "role written at commutative injective requires is function within means emit device stuck called cost terms domain lo hi pow2",
    "import": "when requires with repeat",
    "monoid": "carry element identity combine finish result accumulate domain",
}
"""What the clauses of a declaration begin with, by the word that begins the declaration."""
DECLARATIONS = "a declaration begins with rule, op, define, monoid, target, instruction, let, class, import, dialect, pipeline, stage, given or context"


def _comment_text(text: str) -> str:
    """The words of comment lines, without their marks and one space after these."""
    return "\n".join(re.sub(r"^\s*(?:///|//|#) ?", "", line).rstrip() for line in text.split("\n"))
