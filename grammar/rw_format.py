"""`.rw` files laid out: clauses two columns in, usual spaces, at most one empty line.

Comments stay, and so do line breaks inside a clause. Clauses begin lines of their own, but a guard may stand behind a
pattern, and what an example gives behind its term.
"""

from __future__ import annotations

from genrw.grammar.layout import Lines, Word, words
from genrw.grammar.recovery import Errors
from genrw.grammar.rw import declaration_tokens, parse_rw
from genrw.grammar.rw_cut import CLAUSES, Cutter, Part
from genrw.grammar.source import Source

_CLAUSE = 2
_CLAUSES = {
    "rule": frozenset({"=>", "<=>", *CLAUSES["rule"].split()} - {"when"}),
    "op": frozenset(CLAUSES["op"].split()),
    "monoid": frozenset(CLAUSES["monoid"].split()),
}
"""What begins a line of its own, by the word that begins the declaration."""
_MAY_BEGIN = {
    "rule": frozenset({"when", "gives"}),
    "op": frozenset({"when", "with", "gives"}),
    "import": frozenset({"when", "=>", "with", "repeat"}),
}
"""What does so where the author began a line with it."""
_APART = ("rule", "op", "monoid", "target", "instruction")
"""The declarations that have an empty line before them."""
_OF_SETTINGS = ("target", "instruction")
"""What consists of names and values, one a line."""
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_NO_KEYWORDS = ("NAME", "KEY", "STRING", "FAMILY")
_CALLED = ("NAME", "FAMILY", "RSQB")
"""What a parenthesis follows without a space; a bracket follows a closed parenthesis so, too."""
_WITH_CONTEXT = ("EXAMPLE", "COUNTEREXAMPLE")
_VALUES = ("NAME", "FAMILY", "NUMBER", "STRING", "RSQB", "RPAR", "RBRACE", "ELLIPSIS")
"""After these a sign is an operator."""


def format_rw(text: str, name: str = "<input>") -> str:
    """A rule file laid out. Raises GenrwError for a text that is none."""
    text = text.replace("\r\n", "\n")
    source = Source(name, text if text.endswith("\n") else f"{text}\n")
    parse_rw(source.text, name)
    cutter = Cutter(source, Errors())
    lines, at = Lines(), 0
    for part in cutter.parts:
        _between(lines, source.text[at : part.start])
        if source.text.startswith(_APART, part.start) and not _is_comment(lines):
            lines.blank()
        _Declaration(source, part, lines).write()
        at = part.end
    _between(lines, source.text[at:])
    return "".join(f"{line}\n" for line in lines.done)


def _is_comment(lines: Lines) -> bool:
    """Is the last line a comment?"""
    return bool(lines.done) and lines.done[-1].startswith(("#", "//"))


def _between(lines: Lines, text: str) -> None:
    """Write the documentation and the comments between declarations."""
    empty = False
    *written, _ = text.split("\n")
    for line in map(str.strip, written[1:] if lines.done else written):
        if not line:
            empty = True
            continue
        if empty or not _is_comment(lines):
            lines.blank()
        lines.done.append(_comment(line))
        empty = False
    if (empty and text.strip("\n \t\r")) or (empty and lines.done):
        lines.blank()


def _comment(line: str) -> str:
    """Documentation has a space behind its mark; other comments are the author's."""
    told = line[3:]
    return f"/// {told}" if line.startswith("///") and told and told[0] not in " \t/" else line


class _Declaration:
    """One declaration, written word by word."""

    def __init__(self, source: Source, part: Part, lines: Lines) -> None:
        self.source, self.part, self.lines = source, part, lines
        self.tokens = declaration_tokens(source, part.start, part.end)
        self.kind = str(self.tokens[0])
        self.open: list[bool] = []
        """For each open bracket, whether it holds declarations: `name: type = default`."""
        self.before: list[Word] = []
        self.in_context = False
        """Whether the brackets opened last hold an example's context."""
        self.is_signature = self.kind in ("op", "import")
        self.is_sign = self.is_keyword = self.is_context = False
        """Whether the last word is the sign of a number, the name of a target's setting, or ends an example's context."""

    def write(self) -> None:
        for word in words(self.source.text, self.tokens, self.part.start, self.part.end):
            if word.is_comment:
                self.lines.comment(word, _CLAUSE if word.column else 0)
            else:
                self._word(word)

    # ---- words

    def _word(self, word: Word) -> None:
        begins = self._begins_clause(word)
        if not self.before:
            self.lines.begin(word, 0)
        elif begins:
            self.lines.begin(word, _CLAUSE)
        elif word.breaks:
            self.lines.go_on(word, _CLAUSE)
        else:
            self.lines.append(self._space(word) + word.text)
        self.is_sign = word.text in ("-", "~") and (word.text == "~" or not self._after_value())
        self.is_keyword = begins and self.kind in _OF_SETTINGS
        self.is_context = word.text == "]" and len(self.open) == 1 and self.in_context
        if word.text == "[" and not self.open:
            self.in_context = bool(self.before) and self.before[-1].kind in _WITH_CONTEXT
        if word.text in _OPENING:
            self.open.append(self.is_signature and not self.open)
        elif word.text in _CLOSING:
            self.open.pop()
        elif word.text in ("->", "=>"):
            self.is_signature = False
        self.before.append(word)

    def _begins_clause(self, word: Word) -> bool:
        if self.open or not self.before:
            return False
        if self.kind == "rule" and len(self.before) == 2:
            return True
        if self.kind in _OF_SETTINGS:
            return word.breaks > 0 and word.text.isidentifier() and word.kind != "IN" and self._after_value()
        if word.kind in _NO_KEYWORDS:
            return False
        may = word.breaks > 0 and word.text in _MAY_BEGIN.get(self.kind, ())
        return may or word.text in _CLAUSES.get(self.kind, ())

    def _after_value(self) -> bool:
        return not self.is_keyword and not self.is_context and self.before[-1].kind in _VALUES

    def _space(self, word: Word) -> str:
        """What stands between two words of a line."""
        last = self.before[-1]
        pair = (last.text, word.text)
        if self.is_sign or last.text in (*_OPENING, ".", "@") or word.text in (*_CLOSING, ",", ".", "@", "..."):
            return ""
        if ":" in pair:
            return self._around_colon(word)
        if "=" in pair:
            return "" if self.open and not self.open[-1] else " "
        if word.text == "{":
            return "" if last.kind == "NAME" else " "
        if word.text == "[" and self.kind == "context" and not self.open:
            return " "
        if word.text in ("(", "["):
            called = (*_CALLED, "RPAR") if word.text == "[" else _CALLED
            return "" if last.kind in called and not self.is_keyword and not self.is_context else " "
        return " "

    def _around_colon(self, word: Word) -> str:
        if not self.open and self.kind == "target":
            return " "
        declares = not self.open or self.open[-1]
        return " " if declares and word.text != ":" else ""
