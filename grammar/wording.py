"""Lark's complaints in words: what was found, what could have stood there, and remedies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from lark import Lark, Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.source import Source, Span

_MAX_LISTED = 5
_MAX_QUOTED = 40


@dataclass(frozen=True)
class Mistake:
    """A common mistake: what to say wherever the parser fails as it does on the samples.

    A sample stands for every text that stops the parser in the same state at the same kind of token; an
    `exact` one only for the very same token.
    """

    message: str
    remedy: str | None
    samples: tuple[str, ...]
    exact: bool = False


@dataclass(frozen=True)
class Group:
    """Terminals with one word for all of them, such as all that may begin an expression."""

    word: str
    terminals: frozenset[str]
    remedy: str | None = None


@dataclass(frozen=True)
class Wording:
    """How a language talks about itself.

    `wholes` names what each start rule reads, `words` the terminals; `groups` come largest first;
    `characters` has remedies for characters that people bring along from other languages.
    """

    wholes: Mapping[str, str]
    words: Mapping[str, str]
    groups: Sequence[Group]
    mistakes: Sequence[Mistake]
    characters: Mapping[str, str] = field(default_factory=dict)


class Critic:
    """Turns a parser's failures into diagnostics."""

    def __init__(self, lark: Lark, wording: Wording) -> None:
        self._lark = lark
        self._wording = wording

    def explain(self, problem: UnexpectedInput, source: Source, rule: str) -> Diagnostic:
        """The diagnostic for a failure while reading by a start rule."""
        if isinstance(problem, UnexpectedCharacters):
            return self._character(source, problem.pos_in_stream or 0)
        assert isinstance(problem, UnexpectedToken)
        span, found = self._found(source, problem.token, rule)
        state, type_, text = _place_of(problem)
        mistake = self._mistakes.get((state, type_, text)) or self._mistakes.get((state, type_, None))
        if mistake is not None:
            return Diagnostic(mistake.message.replace("{found}", found), span, mistake.remedy)
        return self._expected(problem, span, found, self._wording.wholes[rule])

    def _found(self, source: Source, token: Token, rule: str) -> tuple[Span, str]:
        if token.type == "$END":
            at = token.end_pos or 0
            return Span(source, at, at), f"the end of the {self._wording.wholes[rule]}"
        start = token.start_pos or 0
        return Span(source, start, start + len(token)), quoted(str(token))

    # ---- common mistakes

    @cached_property
    def _mistakes(self) -> dict[tuple[int, str, str | None], Mistake]:
        places: dict[tuple[int, str, str | None], Mistake] = {}
        for mistake in self._wording.mistakes:
            for sample in mistake.samples:
                state, type_, text = self._place_in(sample)
                places.setdefault((state, type_, text if mistake.exact else None), mistake)
        return places

    def _place_in(self, sample: str) -> tuple[int, str, str]:
        try:
            self._lark.parse(sample, start=next(iter(self._wording.wholes)))
        except UnexpectedToken as problem:
            return _place_of(problem)
        raise AssertionError(f"this sample of a mistake is none: {sample}")

    # ---- what could have stood there

    def _expected(self, problem: UnexpectedToken, span: Span, found: str, whole: str) -> Diagnostic:
        accepted = set(problem.accepts or problem.expected)
        if not accepted:
            return Diagnostic(f"the {whole} ends before {found}", span)
        remedy = self._similar(problem.token, accepted)
        words = []
        for group in self._wording.groups:
            if group.terminals <= accepted:
                accepted -= group.terminals
                words.append(group.word)
                remedy = remedy or group.remedy
        words += sorted(self._word(terminal) for terminal in accepted - {"$END"})
        words += [f"the end of the {whole}"] if "$END" in accepted else []
        if len(words) > _MAX_LISTED:
            return Diagnostic(f"{found} cannot stand here", span, remedy)
        return Diagnostic(f"expected {_either(words)}, found {found}", span, remedy)

    def _word(self, terminal: str) -> str:
        if terminal in self._wording.words:
            return self._wording.words[terminal]
        pattern = self._lark.get_terminal(terminal).pattern
        return f"`{pattern.value}`" if isinstance(pattern, PatternStr) else terminal.lower()

    def _similar(self, token: Token, accepted: set[str]) -> str | None:
        """A keyword that may be meant by a name which is none."""
        keywords = [self._word(terminal).strip("`") for terminal in sorted(accepted) if terminal.isalpha()]
        match = get_close_matches(token, keywords, 1)
        return f"is `{match[0]}` meant?" if match else None

    # ---- characters that begin no token

    def _character(self, source: Source, at: int) -> Diagnostic:
        char = source.text[at]
        if char == '"':
            return unterminated(source, at)
        if char.isascii() and (char.isdigit() or char in "@."):
            match = _JUNK_WORD.match(source.text, at)
            assert match is not None
            span = Span(source, at, match.end())
            return Diagnostic(f"{quoted(match[0])} is {_what(char)}", span, self._wording.characters.get(char))
        span = Span(source, at, at + 1)
        if char.isascii() and char.isprintable():
            return Diagnostic(f"`{char}` cannot stand here", span, self._wording.characters.get(char))
        remedy = None if char.isascii() else "only quoted text and comments may hold more than ASCII"
        return Diagnostic(f"the character U+{ord(char):04X} cannot stand here", span, remedy)


_JUNK_WORD = re.compile(r"@?[\w.]*")


def _what(char: str) -> str:
    return "unknown" if char == "@" else "not a number"


def _place_of(problem: UnexpectedToken) -> tuple[int, str, str]:
    """The parser's state and the token it stumbled over, which tell one mistake from another."""
    state: Any = problem.state
    return state.position, problem.token.type, str(problem.token)


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def quoted(text: str) -> str:
    """A piece of input as messages name it: shortened, on one line."""
    text = text.split("\n")[0]
    return f"`{text[:_MAX_QUOTED]}…`" if len(text) > _MAX_QUOTED else f"`{text}`"


def unterminated(source: Source, at: int) -> Diagnostic:
    """The error for a string without end."""
    quotes = '"""' if source.text.startswith('"""', at) else '"'
    place = Span(source, at, at + len(quotes))
    return Diagnostic(f"this string has no closing `{quotes}`", place, f"write {quotes} where it ends")
