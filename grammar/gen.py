"""`.gen` programs: text to tree and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from lark import Token

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
    lines: list[Header | Instruction] = []
    for first, last in program_lines(source, start, end, errors):
        line = errors.attempt(partial(_LANGUAGE.parse, source, source.text, first, last, "line"))
        if line is not None:
            lines.append(line)
    if not lines and not errors.found:
        errors.add(Diagnostic("the program is empty", Span(source, start, start), _FIRST_STEPS))
    errors.finish()
    return File(tuple(_modules(lines)), Span(source, start, end))


def parse_attributes(source: Source, start: int, end: int) -> tuple[Attribute, ...]:
    """Attributes in their brackets, in a part of a text."""
    attributes: AttributeList = _LANGUAGE.parse(source, source.text, start, end, "attributes")
    return attributes.items


_FIRST_STEPS = "write one instruction a line, such as x = @param:x -> float{8}"

_MARK = re.compile(r'"(?:[^"\\\n]|\\.)*("?)|(?:#|//)[^\n]*|[][(){}\n]')
_BLANK = re.compile(r"(?:[^\S\n]+|(?:#|//)[^\n]*)*")
# What can only begin an instruction: inside brackets no `=` is followed by a name and a parenthesis.
_BEGINS = re.compile(r"[ \t]*(?:@|[\w.,: \t]+=\s*(?:gpu::gen::)?[A-Za-z_][\w.]*(?:\[[^\n(]*\])?\()")


def line_tokens(source: Source, start: int, end: int) -> list[Token]:
    """The tokens of one instruction or header that can be read."""
    return _LANGUAGE.tokens(source, source.text, start, end, "line")


def attribute_tokens(source: Source, start: int, end: int) -> list[Token]:
    """The tokens of attributes in their brackets that can be read."""
    return _LANGUAGE.tokens(source, source.text, start, end, "attributes")


def program_lines(source: Source, start: int, end: int, errors: Errors | None = None) -> Iterator[tuple[int, int]]:
    """Cuts a program at the newlines outside brackets. Reports lines whose brackets or quotes do not pair."""
    text, brackets, good = source.text, Brackets(source), True
    errors = errors or Errors()
    for mark in _MARK.finditer(text, start, end):
        char, at = mark[0][0], mark.start()
        if char == "\n":
            if brackets.open and not _BEGINS.match(text, at + 1, end):
                continue
            if brackets.open:
                errors.add(brackets.never_closed())
            elif good and (first := _content(text, start, at)) is not None:
                yield first, at
            start, brackets, good = at + 1, Brackets(source), True
        elif good and (wrong := _unpaired(source, mark, brackets)):
            errors.add(wrong)
            brackets, good = Brackets(source), False
    if brackets.open:
        errors.add(brackets.never_closed())
    elif good and (first := _content(text, start, end)) is not None:
        yield first, end


def _unpaired(source: Source, mark: re.Match[str], brackets: Brackets) -> Diagnostic | None:
    """What is wrong with a bracket or a quoted text, if anything."""
    if mark[0][0] == '"':
        return None if mark[1] else unterminated(source, mark.start())
    return brackets.see(mark[0], mark.start()) if mark[0] in "()[]{}" else None


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


# ---- what to say about bad input

_ONE_A_LINE = "write one instruction a line, and `->` before a result's type"


def _both(*samples: str) -> tuple[str, ...]:
    """The samples with and without a named result: two places to the parser."""
    return (*samples, *(f"x = {sample}" for sample in samples))


_MISTAKES = (
    Mistake("an attribute's value follows `=`", "write op[name=value](x)", ("f[a:",)),
    Mistake("`:` cannot follow a name", "write name = op(x); the only prefix is gpu::gen::", ("x:", "x = f:")),
    Mistake("`=` is missing before {found}", "a result is named by name = op(operands)", ("x add(y)",)),
    Mistake(
        "`->` is missing before the type",
        "write for example: -> half{8, 4}",
        _both("@param:x {", "@param:x f", "@literal{1} {", "@literal{1} f", "f() {", "f(x) {", "f[] {", "f[a] {"),
    ),
    Mistake(
        "{found} cannot follow the operation",
        _ONE_A_LINE,
        (*_both("f(x) y", "f() y", "f[a] y", "f[] y"), "x = f y"),
    ),
    Mistake("a parameter needs its type", "write for example: x = @param:x -> half{8, 4}", _both("@param:x")),
    Mistake("a literal needs its type", "write for example: @literal{1, 2} -> float{2}", _both("@literal{1}")),
    Mistake("`@return` takes its results in parentheses", "write @return(y)", ("@return", "@return y")),
    Mistake("`@return` has no result of its own", "write @return(y) alone", ("x = @return",)),
    Mistake(
        "an operand is a name or a number, not an operation",
        "give that operation a line and a name of its own",
        ("f(g(", "f(x, g(", "f(g[", "f(x, g["),
    ),
    Mistake(
        "attributes stand in square brackets, before the operands",
        "write op[name=value](x)",
        ("f(a=", *_both("f{")),
    ),
    Mistake("attributes stand before the operands", "write op[name=value](x)", _both("f(x)[", "f()[")),
    Mistake("an attribute needs a name", "write op[name=value](x)", ("f[1", "f[{", "f[a=1, {2}]")),
    Mistake(
        "`,` is missing before {found}",
        "write one between them",
        (
            "f(x y",
            "f(x 1",
            "f(1 x",
            "f(1 1",
            "f[a b",
            "f[a=b c",
            "f[a=1 b",
            "f[a={1 1",
            "f[a={1} b",
            "f[a={b c",
        ),
    ),
    Mistake(
        "`,` is followed by {found}",
        "remove the comma, or write what is missing",
        ("f(x,)", "f(1,)", "f[a,]", "f[a=1,]", "f[a={1,}", "f[a={b=1,}", "f() -> {1,}"),
    ),
    Mistake("a second `=` cannot stand here", "several results are named by a, b = op(x)", ("x = y =",)),
    Mistake(
        "a number is no operation",
        "write it as an operand, or as x = @literal{5} -> float{1}",
        ("x = 5",),
    ),
    Mistake(
        "a literal's elements stand in braces",
        "write @literal{1, 2} -> float{2}",
        _both("@literal[", "@literal("),
    ),
)

_GROUPS = (
    Group("an instruction", frozenset({"MODULE", "PARAM", "LITERAL", "RETURN", "NAME"})),
    Group("an operation", frozenset({"PARAM", "LITERAL", "NAME"})),
    Group("a value", frozenset({"NUMBER", "STRING", "NAME", "LBRACE"})),
    Group("a type", frozenset({"NAME", "LBRACE"})),
)

_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "_STRIDES": "`,`",
}

_CHARACTERS = {
    **dict.fromkeys("+-*/%<>&|^!", "write the operator's name before its operands: op(x, y)"),
    ";": "one instruction a line needs no separator",
    "'": 'quoted text stands between "',
    "@": "there are @param:name, @literal{…}, @return(…) and @module name",
}

_WHOLES = {"line": "line", "attributes": "attributes"}

_LANGUAGE = Language("gen.lark", GenBuilder(), Wording(_WHOLES, _WORDS, _GROUPS, _MISTAKES, _CHARACTERS))
