"""Small damages to texts, as slips of the hand and of the disk make them, and trees with parts of other trees."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from genrw.grammar import gen_tree
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import (
    AttributeDecl,
    AttributePattern,
    Binding,
    Example,
    Given,
    LetDecl,
    OpDecl,
    OperandDecl,
    Pattern,
    RuleDecl,
)
from genrw.grammar.source import Span

TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "64",
    "1e400",
    "nan",
    "-inf",
    "99999999999999999999",
    "0x10",
    "1.5",
    "2147483648",
)
JUNK = (
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    "=",
    "->",
    "=>",
    "<=>",
    "@",
    "#",
    "\n",
    '"',
    "\0",
    "é",
    "%",
    "..",
    "...",
    "/",
    "\\",
)

Mutation = Callable[[str, Sequence[str], random.Random], str]


def cut(text: str, _: Sequence[str], rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + rng.randrange(12) :]


def truncate(text: str, _: Sequence[str], rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def insert(text: str, _: Sequence[str], rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice(JUNK) * rng.choice((1, 1, 1, 2, 300)) + text[place:]


def replace_token(text: str, others: Sequence[str], rng: random.Random) -> str:
    """Put a word of some text in the place of one, or an odd number in the place of a number."""
    tokens = TOKEN.findall(text)
    places = [i for i, t in enumerate(tokens) if not t.isspace()]
    if not places:
        return text
    place = rng.choice(places)
    if tokens[place].isdigit():
        tokens[place] = rng.choice(NUMBERS)
    else:
        tokens[place] = rng.choice([t for t in TOKEN.findall(rng.choice(others)) if not t.isspace()] or ["x"])
    return "".join(tokens)


def swap_tokens(text: str, _: Sequence[str], rng: random.Random) -> str:
    tokens = TOKEN.findall(text)
    places = [i for i, t in enumerate(tokens) if not t.isspace()]
    if len(places) > 1:
        a, b = rng.sample(places, 2)
        tokens[a], tokens[b] = tokens[b], tokens[a]
    return "".join(tokens)


def drop_token(text: str, _: Sequence[str], rng: random.Random) -> str:
    """Leave a word out, or write it twice."""
    tokens = TOKEN.findall(text)
    if tokens:
        place = rng.randrange(len(tokens))
        tokens[place] *= rng.choice((0, 0, 2, 3))
    return "".join(tokens)


def splice_brackets(text: str, others: Sequence[str], rng: random.Random) -> str:
    """Put what stands between brackets of some text in the place of such a part."""
    mine, theirs = _brackets(text), _brackets(rng.choice(others))
    if not mine or not theirs:
        return text
    part = rng.choice(mine)
    return text[: part.start()] + rng.choice(theirs)[0] + text[part.end() :]


def _brackets(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}", text))


def move_lines(text: str, others: Sequence[str], rng: random.Random) -> str:
    """Drop, repeat or bring in a line."""
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    foreign = rng.choice(rng.choice(others).split("\n"))
    lines[place : place + 1] = rng.choice(([], [lines[place]] * 2, [foreign, lines[place]]))
    return "\n".join(lines)


MUTATIONS: tuple[Mutation, ...] = (
    *(cut, truncate, insert, swap_tokens, move_lines, drop_token, splice_brackets),
    *(replace_token, replace_token, replace_token),
)


def mutated(texts: Sequence[str], rng: random.Random, others: Sequence[str] = ()) -> str:
    """One of the texts with one to three damages, some of which bring in words of the others."""
    text = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(text, others or texts, rng)
    return text


# ---- trees


def spliced(tree: Any, donors: Sequence[Any], rng: random.Random) -> Any:
    """A tree in which one to three parts are of other trees: parts of one kind, so that it can still be written."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = [(path, part) for path, part in _parts(tree, ()) if _kind(part) is not None]
        if not places:
            return tree
        path, part = rng.choice(places)
        theirs = [p for _, p in _parts(rng.choice(donors), ()) if _kind(p) == _kind(part)]
        if theirs:
            tree = _replaced(tree, path, rng.choice(theirs))
    return tree


_KINDS = (
    Expr,
    Pattern,
    AttributePattern,
    Binding,
    OperandDecl,
    AttributeDecl,
    Example,
    Given,
    RuleDecl,
    OpDecl,
    LetDecl,
)
_GEN_KINDS = (gen_tree.Instruction, gen_tree.TypeNode, gen_tree.Attribute, gen_tree.Ref)


def _kind(part: Any) -> Any:
    return next((kind for kind in (*_KINDS, *_GEN_KINDS) if isinstance(part, kind)), None)


def _parts(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All parts of a tree with the way to each: names of fields, places in tuples."""
    if isinstance(part, Span):
        return
    yield path, part
    if isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from _parts(item, (*path, i))
    elif is_dataclass(part):
        for item in fields(part):
            yield from _parts(getattr(part, item.name), (*path, item.name))


def _replaced(part: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    first, *rest = path
    if isinstance(part, tuple):
        return (*part[:first], _replaced(part[first], tuple(rest), new), *part[first + 1 :])
    return replace(part, **{first: _replaced(getattr(part, first), tuple(rest), new)})
