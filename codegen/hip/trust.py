"""C++ that rules bring and that did not come with genrw: what it may say unless its author is trusted.

Such a text is cut into tokens, and every token has to be known as harmless. It may compute with values, memory and the
functions of the device header. It has no way to name anything else: no files, no instructions, no functions of the system,
nothing of the compiler's own. The device header includes nothing, so that no other names are there to be met.

What remains possible is what any kernel can do by mistake: to reach outside of its arrays, or not to end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from genrw.codegen.hip.header import device_header
from genrw.codegen.hip.own_text import place_in
from genrw.engine.language.expr_walk import did_you_mean
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import InstructionDecl, OpDecl
from genrw.grammar.source import Span

REMEDY = "read it: with `--trust-rules`, in Python `trust_rules=True`, it is compiled as it stands and can do all that you can"

_TOKEN = re.compile(
    r"""
      (?P<space> [ \t\n]+ )
    | (?P<comment> //[^\n]* | /\*[\s\S]*?\*/ )
    | (?P<word> [A-Za-z_][A-Za-z_0-9]* )
    | (?P<number> \.?[0-9](?: [eEpP][+-] | [A-Za-z_0-9.] )* )
    | (?P<sign> /\*|\?\?|%:|<:|:>|<%|%>|\[\[|::|[{}()\[\]<>;:,.?=+*/%&|^~!-] )
    | (?P<other> [\s\S] )
    """,
    re.VERBOSE,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_MACRO_FUNCTION = re.compile(r"^GEN_[A-Z0-9_]+\((\w+)", re.MULTILINE)

_TYPES = frozenset(["auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void"])
_BEFORE_BRACKETS = _TYPES | frozenset(
    {
        *("alignof", "constexpr", "decltype", "for", "if", "noexcept", "return", "sizeof", "static_assert"),
        *("switch", "while", "case", "else"),
    }
)
_KEYWORDS = _BEFORE_BRACKETS | frozenset(
    {
        *("and", "and_eq", "bitand", "bitor", "break", "class", "compl", "const", "continue", "default", "do"),
        *("enum", "explicit", "false", "inline", "namespace", "not", "not_eq", "nullptr", "or", "or_eq", "private"),
        *("protected", "public", "static", "static_cast", "struct", "template", "this", "true", "typename"),
        *("using", "xor", "xor_eq"),
    }
)
_REFUSED = frozenset(
    {
        *("alignas", "asm", "catch", "const_cast", "delete", "dynamic_cast", "export", "extern", "friend"),
        *("goto", "mutable", "new", "operator", "register", "reinterpret_cast", "std", "thread_local", "throw"),
        *("try", "typedef", "typeid", "union", "virtual", "volatile"),
    }
)
"""Keywords and names that open a way out of the text, or that no kernel needs."""
_MACROS = frozenset(
    f"GEN_{name}"
    for name in ["AMD", "BLOCK", "CONSTANT", "DEVICE", "HOST", "LDS", "NVIDIA", "UNROLL", "UNROLL_BY", "WAVE_SIZE"]
)
"""What the device header defines for texts of operators."""
_MONOID = frozenset(["combine", "element", "finish", "identity"])
"""The functions of a monoid's struct."""
_OTHER_SPELLINGS = ("<:", ":>", "<%", "%>", "??")
"""Brackets, braces and other signs in other words."""
_CLOSING = (")", "]", "}")


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Finding(NamedTuple):
    """What a text does, the part of it that does so, and what may be meant by that."""

    what: str
    start: int
    text: str
    meant: str | None = None


class Vetting:
    """Looks at the texts of a library's operators and instructions that did not come with genrw."""

    def __init__(self, library: Library) -> None:
        self.foreign = library.foreign
        declared = [o.decl for o in (*library.operators.values(), *library.families) if o.name in self.foreign]
        texts = [_tokens(decl.device) for decl in declared if decl.device is not None]
        self.functions = frozenset(name for tokens in texts for name in _defined(tokens) | _types(tokens))

    def device(self, decl: OpDecl) -> None:
        """GenrwError if the `device` text of an operator says what only trusted ones may."""
        if decl.name in self.foreign and decl.device is not None:
            self._refuse(decl, "device", decl.device, decl.device, ())

    def emitted(self, decl: OpDecl, made: str, names: Collection[str]) -> None:
        """The same for what the `emit` text of an operator became, with the names of the kernel's values in it."""
        if decl.name in self.foreign:
            self._refuse(decl, "emit", decl.emit or "", made, names)

    def multiplied(self, decl: InstructionDecl, made: str) -> None:
        """The same for what an instruction's text became."""
        if decl.name in self.foreign:
            self._refuse(decl, "multiply", made, made, ("a", "b", "c"))

    def _refuse(
        self, decl: OpDecl | InstructionDecl, clause: str, written: str, made: str, names: Collection[str]
    ) -> None:
        first = {finding.what: finding for finding in reversed([*_findings(made, self.functions, names)])}
        found = sorted(first.values(), key=lambda finding: finding.start)
        if not found:
            return
        raise GenrwError(
            Diagnostic(
                f"the `{clause}` of `{decl.name}` {finding.what}, and its rules are not trusted",
                _place(decl, written, finding if written is made else finding._replace(start=-1)),
                " else ".join(filter(None, [finding.meant, REMEDY if finding is found[-1] else None])) or None,
            )
            for finding in found
        )


def _place(decl: OpDecl | InstructionDecl, written: str, finding: _Finding) -> Span:
    """Where a finding stands in the rule file: the token, else the text, else the operator's name."""
    start = finding.start if finding.start >= 0 else written.find(finding.text)
    return place_in(decl, written) if start < 0 else place_in(decl, written, start, len(finding.text))


# ---- what texts say


def _tokens(text: str) -> list[_Token]:
    """The tokens of a text, but for space."""
    found = (_Token(m.lastgroup or "", m[0], m.start()) for m in _TOKEN.finditer(text))
    return [token for token in found if token.kind != "space"]


def _findings(text: str, functions: frozenset[str], names: Collection[str]) -> Iterator[_Finding]:
    """All that a text says which is not known as harmless. `names` are of values, which a program chose."""
    tokens = _tokens(text)
    said = [token for token in tokens if token.kind != "comment"]
    own = functions | _types(said) | _header_functions()
    for token in tokens:
        what = _comment(token) if token.kind == "comment" else _character(token)
        if what is not None:
            yield _Finding(what, token.start, _shown(token))
    for i, token in enumerate(said):
        after = said[i + 1].text if i + 1 < len(said) else ""
        before = said[i - 1].text if i else ""
        what = _word(token.text, names) if token.kind == "word" else None
        meant = None
        if what is None and after == "(":
            what = _call(token, own)
            meant = did_you_mean(token.text, own) if what is not None and token.kind == "word" else None
        if what is None and token.text == "*" and after in (")", ">"):
            what = "casts to a pointer"
        if what is None and token.text == "::" and not _qualifies(before):
            what = "names what is outside of the device header"
        if what is not None:
            yield _Finding(what, token.start, token.text, meant)


def _shown(token: _Token) -> str:
    return token.text.split("\n")[0]


def _comment(token: _Token) -> str | None:
    """Compilers join the lines around a backslash, or a trigraph for it, in comments too."""
    if "\\" in token.text or "??/" in token.text:
        return "has a backslash in a comment"
    odd = next((c for c in token.text if not c.isprintable() and c not in "\t\n"), None)
    return f"has the character U+{ord(odd):04X}" if odd is not None else None


def _character(token: _Token) -> str | None:
    if token.text in ("#", "%:"):
        return "has a preprocessor line"
    if token.text == "/*":
        return "has a comment without an end"
    if token.text in _OTHER_SPELLINGS:
        return f"has `{token.text}`"
    if token.text == "[[":
        return "has an attribute of the compiler's"
    if token.kind != "other":
        return None
    if token.text in "\"'":
        return "has a string"
    if token.text == "\\":
        return "has a backslash"
    shown = f"`{token.text}`" if token.text.isprintable() and token.text.isascii() else f"U+{ord(token.text):04X}"
    return f"has the character {shown}"


def _word(word: str, names: Collection[str]) -> str | None:
    if word in ("asm", "__asm", "__asm__"):
        return "has inline assembly"
    if word in _REFUSED:
        return f"says `{word}`"
    if word in names:
        return None
    if word.startswith("_") or "__" in word:
        return f"names `{word}`, which is the compiler's"
    if word.startswith("GEN_") and word not in _MACROS:
        return f"uses the macro `{word}`"
    return None


def _call(token: _Token, own: Collection[str]) -> str | None:
    """What is called, by a token before a bracket."""
    if token.text in _CLOSING:
        return "calls or casts what has no name"
    if token.kind == "word" and token.text not in own and token.text not in _BEFORE_BRACKETS | _MACROS:
        return f"calls `{token.text}`, which the device header does not have"
    return None


def _qualifies(word: str) -> bool:
    """May `::` follow? A name on its left says where to look; without one, everywhere."""
    return word == ">" or (word not in _KEYWORDS and re.fullmatch(r"\w+", word) is not None)


# ---- what texts define


def _defined(tokens: Sequence[_Token]) -> set[str]:
    """The functions that a text has bodies of: a type or its end, a name, parameters, and a brace."""
    said = [token for token in tokens if token.kind != "comment"]
    return {
        said[i].text
        for i in range(1, len(said) - 1)
        if said[i].kind == "word" and said[i + 1].text == "(" and _ends_type(said[i - 1]) and _has_body(said, i + 1)
    } - _KEYWORDS


def _ends_type(token: _Token) -> bool:
    word = token.kind == "word" and (token.text not in _KEYWORDS - {"const"} or token.text in _TYPES)
    return word or token.text in (">", "*", "&")


def _has_body(said: Sequence[_Token], opening: int) -> bool:
    depth = 0
    for i in range(opening, len(said)):
        depth += {"(": 1, ")": -1}.get(said[i].text, 0)
        if depth == 0:
            rest = [t.text for t in said[i + 1 : i + 3]]
            return rest[:1] == ["{"] or rest[:2] in (["const", "{"], ["noexcept", "{"])
    return False


def _types(said: Sequence[_Token]) -> set[str]:
    """The types that a text declares, and its parameters that stand for types: calls of these convert."""
    introduced = ("class", "enum", "struct", "typename", "using")
    return {b.text for a, b in pairwise(said) if a.text in introduced and b.kind == "word"} - _KEYWORDS


@cache
def _header_functions() -> frozenset[str]:
    """The functions and types of the device header."""
    macros = _MACRO_FUNCTION.findall(_DIRECTIVE.sub("", device_header()))
    tokens = _tokens(_DIRECTIVE.sub("", device_header()))
    return frozenset(_defined(tokens) | _types(tokens) | _MONOID | {*macros}) - _KEYWORDS - _REFUSED
