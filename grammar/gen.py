"""`.gen` programs: text to tree and back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.gen_build import AttributeList, GenBuilder, Header
from genrw.grammar.gen_print import (
    print_attributes,
    print_gen,
    print_instruction,
    print_module,
    print_type,
    print_value,
)
from genrw.grammar.gen_tree import Attribute, File, Instruction, Module
from genrw.grammar.parsing import Language
from genrw.grammar.recovery import Brackets, Errors
from genrw.grammar.source import Source, Span
from genrw.grammar.wording import Group, Mistake, Wording, unterminated

__all__ = [
    "parse_attributes",
    "parse_gen",
    "parse_gen_slice",
    "print_attributes",
    "print_gen",
    "print_instruction",
    "print_module",
    "print_type",
    "print_value",
]

def parse_gen(text: str, name: str = "<input>") -> File:
    """The modules of a program. Raises GenrwError with all that is wrong."""
    return parse_gen_slice(Source(name, text), 0, len(text))


def parse_gen_slice(source: Source, start: int, end: int) -> File:
    """The program in a part of a text, its spans pointing into the whole."""
    errors = Errors()
    lines = []
    for first, last in _lines(source, start, end, errors):
        line = errors.attempt(lambda a=first, b=last: _LANGUAGE.parse(source, source.text, a, b, "line"))
        if line is not None:
            lines.append(line)
    if not lines and not errors.found:
        at = Span(source, start, start)
        errors.add([Diagnostic("the program is empty", at, "write one instruction a line: x = @param:x -> float{8}")])
    errors.finish()
    return File(tuple(_modules(lines)), Span(source, start, end))


def parse_attributes(source: Source, start: int, end: int) -> tuple[Attribute, ...]:
    """Attributes in their brackets, in a part of a text."""
    attributes: _Attributes = _LANGUAGE.parse(source, source.text, start, end, "attributes")
    return attributes.items


_MARK = re.compile(r'"(?:[^"\\\n]|\\.)*"?|(?:#|//)[^\n]*|[][(){}\n]')
_BLANK = re.compile(r"(?:[^\S\n]+|(?:#|//)[^\n]*)*")
# What can only begin an instruction: inside brackets no `=` is ever followed by a name and a parenthesis.
_BEGINS = re.compile(r"[ \t]*(?:@|[\w.,: \t]+=\s*(?:gpu::gen::)?[A-Za-z_][\w.]*(?:\[[^\n(]*\])?\()")


def _lines(source: Source, start: int, end: int, errors: Errors) -> Iterator[tuple[int, int]]:
    """Cuts a program into instructions: at each newline outside brackets. Reports brackets without partner."""
    text, brackets, good = source.text, Brackets(source), True
    for mark in _MARK.finditer(text, start, end):
        char, at = mark[0][0], mark.start()
        if char == "\n":
            if brackets.open and not _BEGINS.match(text, at + 1, end):
                continue
            if brackets.open:
                errors.add([brackets.never_closed()])
                good = False
            if good and (first := _content(text, start, at)) is not None:
                yield first, at
            start, brackets, good = at + 1, Brackets(source), True
        elif good and char in "()[]{}" and (wrong := brackets.see(char, at)):
            errors.add([wrong])
            brackets, good = Brackets(source), False
    if brackets.open:
        errors.add([brackets.never_closed()])
    elif good and (first := _content(text, start, end)) is not None:
        yield first, end


def _content(text: str, start: int, end: int) -> int | None:
    """Where a line's content begins, if it has any."""
    blank = _BLANK.match(text, start, end)
    return blank.end() if blank is not None and blank.end() < end else None


def _modules(lines: list[Header | Instruction]) -> Iterator[Module]:
    header: Header | None = None
    body: list[Instruction] = []
    for line in lines:
        if isinstance(line, Instruction):
            body.append(line)
            continue
        if header or body:
            yield _module(header, body)
        header, body = line, []
    yield _module(header, body)


def _module(header: Header | None, body: list[Instruction]) -> Module:
    first = header.span if header else body[0].span
    span = first.to(body[-1].span) if body else first
    return Module(header.name if header else "main", header.attributes if header else (), tuple(body), span)


_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "PARAM": "`@param:name`",
    "LITERAL": "`@literal{…}`",
    "RETURN": "`@return(…)`",
    "MODULE": "`@module name`",
    "_STRIDES": "`,`",
    "$END": "the end of the line",
}

_MISTAKES: tuple[Mistake, ...] = ()

_LANGUAGE = Language("gen.lark", ("line", "attributes"), _Builder(), _WORDS, _MISTAKES)


