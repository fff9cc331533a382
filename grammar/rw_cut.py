"""Cutting a `.rw` file into declarations and the programs of their examples, before Lark reads either."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.recovery import Errors
from genrw.grammar.source import Source, Span
from genrw.grammar.wording import quoted


class Block(NamedTuple):
    """The program under `example`, `gives` or `counterexample`: its place, and the keyword's context."""

    keyword: Span
    context: tuple[int, int] | None
    start: int
    end: int


@dataclass
class Part:
    """A declaration's text, its documentation, and its blocks."""

    start: int
    end: int
    doc: str
    blocks: list[Block] = field(default_factory=list)


_KEYWORD = "(?:rule|op|define|let|class|monoid|target|import|pipeline|stage)"
_SCAN = re.compile(
    rf"""
      (?P<string> \"\"\"[\s\S]*?(?:\"\"\"|\Z) | "(?:[^"\\\n]|\\.)*"? )
    | (?P<doc> ^[ \t]*///[^\n]* )
    | (?P<comment> \#[^\n]* | ^[ \t]*//[^\n]* )
    | ^(?P<indent>[ \t]*) (?P<block> (?:example|gives|counterexample)\b )
    | ^(?P<declaration> {_KEYWORD}\b (?=[ \t]|\r?$) )
    | ^[ \t]+ (?P<indented> {_KEYWORD}\b (?=[ \t]+[A-Za-z_]) )
    """,
    re.MULTILINE | re.VERBOSE,
)
_BLANK = re.compile(r"(?:\s+|#[^\n]*|//[^\n]*)*")
_CONTEXT = re.compile(r"[ \t]*(\[(?:[^][\n]|\[[^][\n]*\])*\])")
_INDENT = re.compile(r"([ \t]*)([^\n]*)(?:\n|\Z)")
_HEADING = re.compile(r"(?:(?:#|//(?!/))[^\n]*(?:\n|\Z))*")


class Cutter:
    """Walks once over a file, past strings and comments, and notes where declarations and their blocks begin.

    `doc` is the comment that heads the file, `masked` the text with all blocks blanked out, at equal offsets.
    """

    def __init__(self, source: Source, errors: Errors) -> None:
        self._source = source
        self._errors = errors
        self._doc: list[re.Match[str]] = []
        # Where text begins that belongs to no declaration; None while inside one.
        self._loose: int | None = 0
        # The masked text so far, and up to where it reaches.
        self._pieces: list[str] = []
        self._reach = 0
        self.parts: list[Part] = []
        heading = _HEADING.match(source.text)
        self.doc = _comment_text(heading[0].rstrip("\n")) if heading else ""
        self._walk()
        self.masked = "".join(self._pieces) + source.text[self._reach :]

    def _walk(self) -> None:
        text, at = self._source.text, 0
        while mark := _SCAN.search(text, at):
            at = mark.end()
            if mark["doc"]:
                self._close(mark.start())
                self._doc.append(mark)
            elif mark["declaration"] or mark["indented"]:
                self._open(mark.start(mark.lastgroup or 0))
            elif mark["block"]:
                at = self._block(mark)
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
        # A stage is none of the declarations: what documents the next one may stand before it.
        if not self._source.text.startswith("stage", at):
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

    def _block(self, mark: re.Match[str]) -> int:
        """Notes a block and blanks it out; where the text goes on after it."""
        text, start, after = self._source.text, mark.start("block"), mark.end()
        context = _CONTEXT.match(text, after)
        next_line = text.find("\n", after) + 1 or len(text)
        end = _block_end(text, next_line, len(mark["indent"].expandtabs()))
        if self._loose is None:
            keyword = Span(self._source, start, after)
            first = context.end() if context else after
            self.parts[-1].blocks.append(Block(keyword, context.span(1) if context else None, first, end))
        self._pieces += [text[self._reach : start], " " * (end - start)]
        self._reach = end
        return end


CLAUSES = {
    "rule": "when with for contract replaces alternative",
    "op": "role at commutative requires is means emit device stuck called cost terms domain lo hi pow2",
    "import": "when with",
    "monoid": "carry element identity combine finish result accumulate domain",
}
"""What the clauses of a declaration begin with, by the word that begins the declaration."""
DECLARATIONS = "a declaration begins with rule, op, define, monoid, target, let, class, import, pipeline or stage"


def _block_end(text: str, at: int, column: int) -> int:
    """Where the first line begins, from `at` on, that is not indented deeper than a column."""
    while at < len(text):
        line = _INDENT.match(text, at)
        assert line is not None
        if line[2].strip() and len(line[1].expandtabs()) <= column:
            return at
        at = line.end()
    return at


def _comment_text(text: str) -> str:
    """The words of comment lines, without their marks and one space after these."""
    return "\n".join(re.sub(r"^\s*(?:///|//|#) ?", "", line).rstrip() for line in text.split("\n"))
