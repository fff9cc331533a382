"""Input that nobody means well: it gives a tree or diagnostics, without much work, and never another exception."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from work import at_most

from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import parse_gen, print_gen
from genrw.grammar.rw import parse_expr, parse_rw, print_expr, print_rw

N = 3_000
CALLS_A_CHARACTER = 100
"""More than twice of what any of these takes: work grows as the text does."""


def settle(parse: Callable[[str], Any], show: Callable[[Any], str], text: str) -> str:
    """What becomes of a text: a tree, which must print and read back, or errors, which must be brief."""
    said: GenrwError | None = None
    with at_most(10_000 + CALLS_A_CHARACTER * len(text)):
        try:
            tree = parse(text)
        except GenrwError as problem:
            said = problem
    if said is None:
        assert parse(show(tree)) == tree
        return "a tree"
    assert len(str(said)) < 20_000
    assert all(diagnostic.span is not None for diagnostic in said.diagnostics)
    return said.diagnostics[0].message


DEEP = "nested more than"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("x = f" + "(" * N, DEEP),
        ("x = f[a=" + "{" * N + "}" * N + "](y)", DEEP),
        (")" * N, "closes no bracket"),
        ("x = " * N, "second `=`"),
        ('"' * N, "expected an instruction"),
        ('\\"' * N, "no closing"),
        ("x = f(" + "1" * N * 10 + ")", "64 bits"),
        ("x = f(" + "1" * N * 10 + "x)", "not a number"),
        ("x = f(" + "0" * N + "7)", "a tree"),
        ("x = f(0x" + "f" * N + ")", "64 bits"),
        ("x = f(" + "1" * N + ".0)", "larger than any float"),
        ("a" * N * 10, "a tree"),
        ("@param:" * N, "unknown"),
        ("\n" * N + " " * N + "\r" * N, "empty"),
        ("x = f(\n" * N, "never closed"),
        ("x = f(" + "y," * N + "y)", "a tree"),
        ("\0" * N, "U+0000"),
        ("x = \udcff(y)", "U+DCFF"),
        ("\ufeffx = f(y)", "U+FEFF"),
        ("x = f(\u0661)", "U+0661"),
        ("x\u00a0=\u2028f(y) # \u202e", "a tree"),
    ],
)
def test_gen(text: str, outcome: str) -> None:
    assert outcome in settle(parse_gen, print_gen, text)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("(" * N + "x" + ")" * N, "a tree"),  # parentheses leave no trace in the tree
        ("[" * N + "]" * N, DEEP),
        ("[" * 200 + "]" * 200, "a tree"),
        ("-" * N + "x", DEEP),
        ("not " * 200 + "x", "a tree"),
        ("x ** " * N + "x", DEEP),
        ("x + " * N + "x", DEEP),
        ("x < " * N + "x", "a tree"),  # one chain, not a nest
        ("a if b else " * N + "c", DEEP),
        ("x" + ".a" * N, DEEP),
        ("f(" * N + "x" + ")" * N, DEEP),
        ("[a for b in " * N, DEEP),
        ("(" * 90 + "x" + (" + x" * 60 + ")") * 90, DEEP),
        ("[" + "1, " * N + "1]", "a tree"),
        ('"""' + "a" * N, "no closing"),
        ("1" * N, "64 bits"),
        ("1e999", "larger than any float"),
    ],
)
def test_expressions(text: str, outcome: str) -> None:
    assert outcome in settle(parse_expr, print_expr, text)
    within = settle(parse_rw, print_rw, f"rule r x when {text} => y")
    assert outcome in within or "closing" in outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("rule r " + "f(" * N + "x" + ")" * N + " => y", DEEP),
        ("rule r " + "a@" * N + "f() => y", "expected `(` or `[`"),
        ("rule r f(" + "x, " * N + "x) => y", "a tree"),
        ("///\n" * N, "followed by no declaration"),
        ("rule r x => y\n" + "  example\n" * N, "has no `gives`"),
        ("rule r x => y\n" + "  example f(x)\n" * N, "no `gives`"),
        ("rule r x => y\n" + "  example f(x) gives x\n" * N, "a tree"),
        ("rule r x => y\n  counterexample " + "f(" * N + "x", DEEP),
        ("given " + "x: float{4}, " * N + "x: float{4}", "given twice"),
        ("context [a=" + "{b=" * N + "1", DEEP),
        ("rule\n" * N, "expected a name"),
        ("rule r x => y\n counterexample [" + "[" * N + "\n  x", DEEP),
        ("op f() -> T device " + '"""' * N, "expected a clause"),
        ("rule r x => y\n" + " " * N + "example\n", "has no `gives`"),
        ("op f() -> T " + "cost 1 " * N, "given twice"),
        ("rule r x => y with " + "a = 1 " * N, "a tree"),
        ("target t " + "a 1 " * N, "a tree"),
        ("", "a tree"),
        ("# nothing\n", "a tree"),
    ],
)
def test_rw(text: str, outcome: str) -> None:
    assert outcome in settle(parse_rw, print_rw, text)


WORDS = [
    "rule r ",
    "op f",
    *'()[]{}=,.\n"#a1 ',
    "->",
    "=>",
    "when ",
    "x",
    "example ",
    "gives ",
    "\ngiven ",
    "\ncontext ",
    "///",
    '"""',
    "@return",
]


@pytest.mark.parametrize("seed", range(10))
def test_noise(seed: int) -> None:
    rng = random.Random(seed)
    noise = rng.randbytes(2000).decode("utf-8", errors="replace")
    words = "".join(rng.choice(WORDS) for _ in range(1000))
    for text in (noise, words):
        settle(parse_gen, print_gen, text)
        settle(parse_rw, print_rw, text)
        settle(parse_expr, print_expr, text)
