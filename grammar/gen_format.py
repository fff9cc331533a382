"""`.gen` programs laid out: one instruction a line from the first column, usual spaces, at most one empty line.

Comments and line breaks inside brackets stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from genrw.grammar.gen import attribute_tokens, line_tokens, parse_gen_slice, program_lines
from genrw.grammar.layout import Lines, Word, words
from genrw.grammar.source import Source

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}", ",", ":")
_CONTINUED = 2
"""The least indentation of a line that goes on with an instruction."""


def format_gen(text: str, name: str = "<input>") -> str:
    """A program laid out. Raises GenrwError for a text that is none."""
    source = Source(name, text.replace("\r\n", "\n"))
    return "".join(f"{line}\n" for line in format_program(source, 0, len(source.text)))


def format_program(source: Source, start: int, end: int) -> list[str]:
    """The lines of a program in a part of a text, without indentation. Raises GenrwError if it is none."""
    parse_gen_slice(source, start, end)
    lines, at = Lines(), start
    for first, last in program_lines(source, start, end):
        _put(lines, words(source.text, line_tokens(source, first, last), at, last))
        at = last
    _put(lines, words(source.text, (), at, end))
    return lines.done


def format_attributes(source: Source, start: int, end: int) -> str:
    """Attributes in their brackets, in one line."""
    lines = Lines()
    _put(lines, words(source.text, attribute_tokens(source, start, end), start, end))
    return " ".join(line.strip() for line in lines.done)


def _put(lines: Lines, instruction: Iterable[Word]) -> None:
    """Write one instruction, and the comments before and in it."""
    before: list[Word] = []
    depth = 0
    for word in instruction:
        if word.is_comment:
            lines.comment(word, _CONTINUED if before else 0)
            continue
        if not before:
            if word.breaks > 1:
                lines.blank()
            lines.begin(word, 0)
        elif word.breaks:
            lines.go_on(word, _CONTINUED)
        else:
            lines.append(_space(before, word, depth) + word.text)
        depth += (word.text in _OPENING) - (word.text in _CLOSING[:3])
        before.append(word)


def _space(before: list[Word], word: Word, depth: int) -> str:
    """What stands between two words of a line."""
    last = before[-1]
    if last.text in _OPENING or word.text in _CLOSING:
        return ""
    if "=" in (last.text, word.text):
        return "" if depth else " "
    if word.text in _OPENING:
        header = word.text == "[" and before[0].kind == "MODULE"
        return " " if header or last.text in (",", "->", ":") else ""
    return " "
