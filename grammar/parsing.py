"""What both parsers share: a Lark per language, set up on first use, and the literals."""

from __future__ import annotations

import json
import math
import sys
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import lark
from lark import Lark, Token, Transformer, UnexpectedInput
from lark.grammar import Rule
from lark.lexer import TerminalDef
from lark.utils import TextSlice

from genrw.grammar.cache import cache_folder, cache_key, read_object, write_object
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.source import Source, Span
from genrw.grammar.wording import Critic, Wording, quoted


class Builder(Transformer[Token, Any]):
    """Makes tree nodes while Lark parses. `source` is the text at hand, for spans."""

    source: Source

    def span(self, first: Token, last: Token) -> Span:
        """From the start of one token to the end of another."""
        return Span(self.source, first.start_pos or 0, last.end_pos or 0)

    def place(self, token: Token) -> Span:
        """Where a token stands."""
        return token_span(self.source, token)


def token_span(source: Source, token: Token) -> Span:
    """Where a token stands in a text."""
    return Span(source, token.start_pos or 0, token.end_pos or 0)


class Language:
    """One grammar with its tree builder and its wording. Lark, slow to set up, is so on first use."""

    def __init__(self, grammar: str, builder: Builder, wording: Wording) -> None:
        self._path = Path(__file__).with_name(grammar)
        self._builder = builder
        self._wording = wording
        self._lock = RLock()

    @cached_property
    def _lark(self) -> Lark:
        """The parser, from its tables if these were worked out before."""
        grammar = self._path.read_text(encoding="utf-8")
        key = cache_key(grammar, *self._wording.wholes, lark.__version__, str(sys.version_info[:2]))
        entry = cache_folder("grammar") / key
        tables = read_object(entry)
        if tables is None:
            tables = _tables(grammar, list(self._wording.wholes))
            write_object(entry, tables)
        parser: Lark = Lark._load_from_dict(**tables, transformer=self._builder)  # type: ignore[no-untyped-call]
        return parser

    @cached_property
    def _critic(self) -> Critic:
        return Critic(self._lark, self._wording)

    def parse(self, source: Source, text: str, start: int, end: int, rule: str) -> Any:
        """What the builder makes of `text[start:end]`, where `text` is the source's or stands in for it."""
        with self._lock:
            self._builder.source = source
            try:
                return self._lark.parse(TextSlice(text, start, end), start=rule)
            except UnexpectedInput as problem:
                raise GenrwError(self._critic.explain(problem, source, rule)) from None

    def tokens(self, source: Source, text: str, start: int, end: int, rule: str) -> list[Token]:
        """The words and signs of what `parse` reads without complaint, those that no tree holds among them."""
        with self._lock:
            self._builder.source = source
            parser = self._lark.parse_interactive(TextSlice(text, start, end), start=rule)
            return [token for token in parser.iter_parse() if token.value]


def _tables(grammar: str, starts: list[str]) -> dict[str, Any]:
    """What Lark works out of a grammar, as plain values."""
    made = Lark(grammar, parser="lalr", lexer="contextual", start=starts, maybe_placeholders=True)
    data, memo = made.memo_serialize([TerminalDef, Rule])
    return {"data": data, "memo": memo}


# ---- literals

_INTEGERS = range(-(2**63), 2**64)
_MAX_DIGITS = 20
# There is but one nan, so that equal texts give equal trees.
SPECIAL: dict[str, float | bool] = {"true": True, "false": False, "inf": math.inf, "nan": math.nan}
_SIGNED = {"+inf": math.inf, "-inf": -math.inf, "+nan": math.nan, "-nan": math.nan}


def special(word: str) -> float | bool | None:
    """The value of `true`, `false`, `inf` and `nan`, which are names to the lexer."""
    return SPECIAL.get(word)


def number(source: Source, token: Token) -> int | float:
    """The value of a number, refusing those that no tensor could hold."""
    text: str = token.value
    if text in _SIGNED:
        return _SIGNED[text]
    digits = text.lstrip("+-")
    if digits.isdigit() or digits[:2] in ("0x", "0X"):
        return _integer(source, token, -1 if text[0] == "-" else 1, digits)
    value = float(text)
    if math.isinf(value):
        message = f"{quoted(text)} is larger than any float"
        raise error(message, token_span(source, token), "write inf if infinity is meant")
    return value


def _integer(source: Source, token: Token, sign: int, digits: str) -> int:
    hexadecimal = not digits.isdigit()
    significant = digits[2:] if hexadecimal else digits
    significant = significant.lstrip("0") or "0"
    # Python itself refuses to read thousands of digits.
    if len(significant) <= _MAX_DIGITS:
        value = sign * int(significant, 16 if hexadecimal else 10)
        if value in _INTEGERS:
            return value
    message = f"{quoted(token)} does not fit in 64 bits"
    raise error(message, token_span(source, token), "write a float, such as 1e30")


def string(source: Source, token: Token) -> str:
    """The text of a string: with JSON's escapes, or between triple quotes none, and lines without \\r."""
    if token.startswith('"""'):
        return token[3:-3].replace("\r\n", "\n")
    try:
        return str(json.loads(token, strict=False))
    except json.JSONDecodeError as problem:
        at = (token.start_pos or 0) + problem.pos
        known = r"known are \" \\ \/ \n \t \r \b \f \u0041"
        raise error("this escape sequence is unknown", Span(source, at, at + 2), known) from None


def show_number(value: int | float | bool) -> str:
    """A number as both languages write it, so that reading gives the same number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value).replace("e-0", "e-").replace("e+", "e")


def show_string(text: str) -> str:
    """Text in quotes, so that reading gives the same text."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
