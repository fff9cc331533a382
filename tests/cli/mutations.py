"""Small damages to texts, as slips of the hand and of the disk make them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

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


def move_lines(text: str, others: Sequence[str], rng: random.Random) -> str:
    """Drop, repeat or bring in a line."""
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    foreign = rng.choice(rng.choice(others).split("\n"))
    lines[place : place + 1] = rng.choice(([], [lines[place]] * 2, [foreign, lines[place]]))
    return "\n".join(lines)


MUTATIONS: tuple[Mutation, ...] = (
    *(cut, truncate, insert, swap_tokens, move_lines),
    *(replace_token, replace_token, replace_token),
)


def mutated(texts: Sequence[str], rng: random.Random, others: Sequence[str] = ()) -> str:
    """One of the texts with one to three damages, some of which bring in words of the others."""
    text = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(text, others or texts, rng)
    return text
