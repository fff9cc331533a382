"""How tightly the `emit` texts of operators bind, by the loosest C++ operator that stands in no brackets in any of their choices; and
which operands stand in none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from jinja2 import nodes

from genrw.grammar.rw_tree import PRECEDENCES

_ATOM, _UNARY, *_BINARY = PRECEDENCES
_SIGNS = ("* / %", "+ -", "<< >>", "< > <= >=", "== !=", "& &&", "^ | ||", "?")
"""What stands between operands, of each precedence: bitwise ones bind about as those of truth values do."""
_LEVEL_OF = {sign: level for level, signs in zip(_BINARY, _SIGNS, strict=True) for sign in signs.split()}
_OPENING, _CLOSING = "([{", ")]}"
_ARGUMENTS = re.compile(r"(?<=\w)<[^<>?;]*>(?=\s*(?:[#>,]|::))")
"""The arguments of a template: behind them stands what is called, or a name of it."""
_DEEPEST = 4
"""How deeply templates stand in the arguments of templates."""
_TOKEN = re.compile(r"[\w.#:@]+|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|?!~;=,]")
_WORD = re.compile(r"\w+")
_CLOSED = "#"
_HOLE = "x"
_TEXT = "@"
"""A hole for a text, which may be part of a name, and behind an operand an operator."""


def binding(tree: nodes.Template, operands: Collection[str], texts: Collection[str]) -> str:
    """The precedence of what a text is outside of all brackets; `atom` for a statement, which is nobody's operand. Besides holes
    for operands there are some for any text."""
    text = _outside(tree, texts)
    if ";" in text:
        return _ATOM
    return max(_levels(_TOKEN.findall(text), operands), key=PRECEDENCES.index, default=_ATOM)


def names_outside(tree: nodes.Template) -> frozenset[str]:
    """What stands in no brackets; empty where that is all there is."""
    text = _outside(tree).strip()
    return frozenset() if text.isidentifier() else frozenset(_WORD.findall(text))


def _outside(tree: nodes.Template, texts: Collection[str] = ()) -> str:
    """A text without what stands in brackets, and without the arguments of templates."""
    depth, found = 0, []
    for character in "".join(_parts(tree.body, texts)):
        if character in _OPENING:
            found += [_CLOSED] * (depth == 0)
            depth += 1
        elif character in _CLOSING:
            depth = max(0, depth - 1)
        elif depth == 0:
            found.append(character)
    text = "".join(found)
    for _ in range(_DEEPEST):
        text = _ARGUMENTS.sub("", text)
    return text


def _levels(tokens: Sequence[str], operands: Collection[str]) -> Iterator[str]:
    """The precedences of a text's operators. One that follows no operand is unary, and any text that follows one may be the
    operator that binds least tightly."""
    behind_operand = False
    for token in tokens:
        if token in _LEVEL_OF or token in ("!", "~"):
            yield _LEVEL_OF[token] if behind_operand and token in _LEVEL_OF else _UNARY
            behind_operand = False
            continue
        before, text, _ = token.partition(_TEXT)
        if text and (_ends_operand(before, operands) if before else behind_operand):
            yield _BINARY[-1]
        behind_operand = token[-1].isalnum() or token[-1] in "_#@"


def _ends_operand(word: str, operands: Collection[str]) -> bool:
    """Is a word with a text behind it an operand, and not the beginning of a name?"""
    return word in operands or word[-1] == _CLOSED or word[0].isdigit()


def _parts(found: Sequence[nodes.Node], texts: Collection[str]) -> Iterator[str]:
    """The text with names in its holes, and with all choices one behind the other."""
    for node in found:
        match node:
            case nodes.Output():
                yield from _parts(node.nodes, texts)
            case nodes.TemplateData():
                yield node.data
            case nodes.If():
                choices: list[Sequence[nodes.Node]] = [node.body, *([other] for other in node.elif_), node.else_]
                yield " ".join("".join(_parts(choice, texts)) for choice in choices if choice)
            case nodes.CondExpr():
                yield " ".join(
                    "".join(_parts([choice], texts)) for choice in (node.expr1, node.expr2) if choice is not None
                )
            case nodes.Const(value=str() as text):
                yield text
            case nodes.Name(name=name):
                yield _TEXT if name in texts else name
            case _:
                yield _TEXT if any(part.name in texts for part in node.find_all(nodes.Name)) else _HOLE
