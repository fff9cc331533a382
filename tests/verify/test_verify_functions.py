"""Functions of operators compared with what the operators mean."""

from __future__ import annotations

import pytest

from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.verify.verdict import REFUTED, TRIED, Options, Verdict, verify
from genrw.grammar.rw import parse_rw

OP = "op mine(x: float) -> float\n  role pointwise\n"


def verdict(library: Library, text: str, count: int = 20) -> Verdict:
    whole = build_library([*library.files, parse_rw(OP + text, "mine.rw")])
    return verify(whole, whole.operators["mine"].decl, Options(count))


@pytest.mark.parametrize(
    "text",
    [
        "  means expm1(x)\n  within 1e-3\n  function where(less(abs(x), 0.001), x, sub(exp(x), 1))\n",
        "  means max(x, 0)\n  function where(greater(x, 0), x, where(isnan(x), x, 0))\n",
        "  function add(x, 1)\n",
        "  means 1 / (1 + exp(-x))\n  within 1e-5\n  function recip_near(add(1, exp_short(neg(x))))\n",
    ],
)
def test_what_holds(library: Library, text: str) -> None:
    found = verdict(library, text)
    assert found.status == TRIED, found.shown
    assert found.instances > 1000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  means exp(x)\n  within 1e-7\n  function exp_short(x)\n", "within 1e-07"),
        ("  means max(x, 0)\n  function where(greater(x, 0), x, 0)\n", "x = nan"),
        ("  means x\n  function add(sub(x, 1), 1)\n", "further apart than by rounding"),
        ("  means 2 * x\n  function add(x, 2)\n", "the operator means"),
        # what is infinite is not far beyond the largest number
        ("  means x / 4\n  within 1e-3\n  function div(mul(x, 4), 16)\n", "the function gives"),
    ],
)
def test_what_does_not(library: Library, text: str, shown: str) -> None:
    found = verdict(library, text)
    assert found.status == REFUTED
    assert found.problem is not None
    assert "the function of `mine` is not what the operator means" in found.problem.message
    assert shown in f"{found.problem.message}\n{found.shown}"


def test_primitives_are_off_by_as_much_as_they_say(library: Library) -> None:
    """The processor that tries a function has better ones than some that run it: what depends on that is refuted."""
    text = "  means 1 / x\n  within 1e-3\n  domain abs(x) > 0.001, abs(x) < 1000\n  function {}\n"
    assert verdict(library, text.format("div(1, add(x, mul(100, sub(div(1, x), div(1, x)))))")).status == TRIED
    found = verdict(library, text.format("add(div(1, x), mul(100000, sub(div(1, x), recip_near(x))))"))
    assert found.status == REFUTED


def test_small_numbers_may_be_zero(library: Library) -> None:
    text = "  means 1\n  domain abs(x) > 0, abs(x) < 1e30\n  within 1e-3\n  function {}\n"
    assert verdict(library, text.format("mul(x, recip_near(x))")).status == REFUTED


def test_the_shipped_ones_hold(library: Library) -> None:
    functions = [op.decl for op in library.operators.values() if op.decl.functions]
    assert len(functions) > 5
    for op in functions:
        found = verify(library, op, Options(10))
        assert found.status == TRIED, (op.name, found.shown)
