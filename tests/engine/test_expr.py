"""Compiled expressions: what they give, and what they say when they cannot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from work import at_most

from genrw.engine.language.expr import compile_expr, declare
from genrw.engine.language.expr_walk import DEPTH_LIMIT
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Const, Expr, Unary
from genrw.grammar.rw import parse_expr, parse_rw
from genrw.grammar.rw_tree import LetDecl


def helpers(text: str) -> dict[str, LetDecl]:
    """Helpers, `name(parameters) = body` one a line, by name."""
    file = parse_rw("".join(f"let {line}\n" for line in text.strip().splitlines()))
    return {let.name: let for let in file.declarations if isinstance(let, LetDecl)}


class Shape:
    """A value with members, as a tensor's type has."""

    def __init__(self, **members: object) -> None:
        self.members = members

    def member(self, name: str) -> object:
        return self.members[name]


ENV: dict[str, object] = {
    "n": 6,
    "negative": -8,
    "x": Shape(lens=(8, 16, 32), rank=3, type="half"),
    "axes": (1, 2),
    "target": {"wave_size": 64, "arch": "gfx942"},
    "yes": True,
    "s": "wave",
}

KEEPDIMS = helpers("""
keepdims(lens, axes) = [1 if d in axes else lens[d] for d in range(len(lens))]
rank(t) = len(t.lens)
twice(a) = a + a
nested(t, axes) = keepdims(keepdims(t.lens, axes), [0])
""")


def run(text: str, env: Mapping[str, object] = ENV, lets: Any = KEEPDIMS) -> Any:
    return compile_expr(parse_expr(text), lets)(env)


def failure(text: str, env: Mapping[str, object] = ENV, lets: Any = KEEPDIMS) -> tuple[str, str]:
    """The message of the error and the text it points at."""
    with pytest.raises(GenrwError) as caught:
        compile_expr(parse_expr(text), lets)(env)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    return diagnostic.message, diagnostic.span.text


VALUES = [
    ("1 + 2 * 3", 7),
    ("-n", -6),
    ("7 / 2", 3.5),
    ("-7 // 2", -4),
    ("-7 % 3", 2),
    ("2 ** 10", 1024),
    ("2 ** -1", 0.5),
    ("~5 & 7 | 8 ^ 1", (~5 & 7) | (8 ^ 1)),
    ("1 << 100", 1 << 100),
    ("-9 >> 1", -5),
    ("x.lens", (8, 16, 32)),
    ("x.lens[1]", 16),
    ("x.lens[-1]", 32),
    ("x.lens[axes]", (16, 32)),
    ("x.lens[1:]", (16, 32)),
    ("x.lens[:-1]", (8, 16)),
    ("x.lens[0:1]", (8,)),
    ("product(x.lens[axes])", 512),
    ('n <= target.wave_size and target.arch == "gfx942"', True),
    ("1 < n < 6", False),
    ("1 < n <= 6 != 7", True),
    ("n in [1, 6]", True),
    ("n not in axes", True),
    ('"arch" in target', True),
    ('target["wave_size"]', 64),
    ("not yes or n == 6", True),
    ("1 if n > 3 else 1 // 0", 1),
    ("yes or 1 // 0 == 0", True),
    ("not yes and 1 // 0 == 0", False),
    ("[d * 2 for d in range(4) if d != 2]", (0, 2, 6)),
    ("[[a + b for a in range(b)] for b in range(3)]", ((), (1,), (2, 3))),
    ("[1, 2] + [3]", (1, 2, 3)),
    ("[d for d in range(n) if d in axes]", (1, 2)),
    ("keepdims(x.lens, axes)", (8, 1, 1)),
    ("nested(x, axes)", (1, 1, 1)),
    ("rank(x) + twice(n)", 15),
    ("[keepdims([d, d], [0]) for d in range(2)]", ((1, 0), (1, 1))),
    ("x.type == half", True),
    ("itemsize(x.type)", 2),
    ("[p[0] * p[1] for p in zip(axes, [10, 20])]", (10, 40)),
    ("inf > 1e308", True),
    ("[]", ()),
    ("sum([])", 0),
    ('s == "wave"', True),
    ("[1, 2] < [1, 3]", True),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text for text, _ in VALUES])
def test_value(text: str, value: object) -> None:
    result = run(text)
    assert result == value
    assert type(result) is type(value)


FAILURES = [
    ("q + 1", "unknown name `q`", "q"),
    ("nope(1)", "unknown function `nope`", "nope(1)"),
    ("len()", "`len` takes 1 argument, not 0", "len()"),
    ("clamp(1, 2)", "`clamp` takes 3 arguments, not 2", "clamp(1, 2)"),
    ("range(1, 2, 3, 4)", "`range` takes 1 to 3 arguments, not 4", "range(1, 2, 3, 4)"),
    ("gcd()", "`gcd` takes at least 1 argument, not 0", "gcd()"),
    ("keepdims(1)", "`keepdims` takes 2 arguments, not 1", "keepdims(1)"),
    ('1 + product("ab")', '`product` takes a list of numbers, not the string "ab"', '"ab"'),
    ('product(["a"])', "`product` takes a list of numbers, not a list of strings", '["a"]'),
    ("len(n)", "`len` takes a list, not an integer", "n"),
    ("any(axes)", "`any` takes a list of truth values, not a list of integers", "axes"),
    ('itemsize("long")', '`itemsize` takes a dtype, not the string "long"', '"long"'),
    ("axes[3]", "index 3 is out of range for a list of 2", "axes[3]"),
    ("axes[[0, -3]]", "index -3 is out of range for a list of 2", "axes[[0, -3]]"),
    ("axes[1.0]", "a list is indexed by an integer or a list of them, not by a float", "axes[1.0]"),
    ("n[0]", "only a list can be indexed, not an integer", "n[0]"),
    ("s[0]", 'only a list can be indexed, not the string "wave"', "s[0]"),
    ("s[0:1]", 'only a list can be sliced, not the string "wave"', "s[0:1]"),
    ('axes["a":]', 'a slice runs between integers, not the string "a"', 'axes["a":]'),
    ("2 * (n // 0)", "division by zero", "n // 0"),
    ("1 / 0.0", "division by zero", "1 / 0.0"),
    ("n % 0", "division by zero", "n % 0"),
    ("0 ** -1", "division by zero", "0 ** -1"),
    ("10.0 ** 400", "the result of `**` is too large", "10.0 ** 400"),
    ("negative ** 0.5", "a negative number has no power 0.5", "negative ** 0.5"),
    ("n - s", '`-` takes numbers, not the string "wave"', "n - s"),
    ("s + s", '`+` takes numbers, not the string "wave"', "s + s"),
    ("axes + 1", "`+` takes two numbers or two lists, not a list of integers and an integer", "axes + 1"),
    ("-axes", "`-` takes a number, not a list of integers", "-axes"),
    ("1.5 & 1", "`&` takes integers, not a float", "1.5 & 1"),
    ("~1.5", "`~` takes an integer, not a float", "~1.5"),
    ("not n", "`not` takes true or false, not an integer", "not n"),
    ("n and yes", "a condition is true or false, not an integer", "n"),
    ("yes and n", "a condition is true or false, not an integer", "n"),
    ("1 if axes else 2", "a condition is true or false, not a list of integers", "axes"),
    ("[1 for d in axes if d]", "a condition is true or false, not an integer", "d"),
    ("n < s", '`<` cannot compare an integer with the string "wave"', "n < s"),
    ("[1] < [s]", "`<` cannot compare a list of integers with a list of strings", "[1] < [s]"),
    ("1 < 2 < s", '`<` cannot compare an integer with the string "wave"', "1 < 2 < s"),
    ("1 in n", "`in` takes a list on its right, not an integer", "1 in n"),
    ("[d for d in n]", "a comprehension runs over a list, not an integer", "n"),
    ("x.depth", "a Shape has no member `depth`", "x.depth"),
    ("target.wave", "there is no member `wave`", "target.wave"),
    ("n.lens", "an integer has no members, so no `lens`", "n.lens"),
    ("s.upper", 'the string "wave" has no members, so no `upper`', "s.upper"),
    ("axes.count", "a list of integers has no members, so no `count`", "axes.count"),
    ("sorted([1, s])", "`sorted` takes elements that compare with one another", "sorted([1, s])"),
    ("1 << -1", "`<<` shifts by 0 to 128 bits, not by -1", "1 << -1"),
]


@pytest.mark.parametrize(("text", "message", "place"), FAILURES, ids=[text for text, _, _ in FAILURES])
def test_failure(text: str, message: str, place: str) -> None:
    assert failure(text) == (message, place)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("axes[3]", "ask before how many there are, as in `len(xs) > 3 and …`"),
        ("axes[-3]", "ask before how many there are, as in `len(xs) >= 3 and …`"),
        ("drop_axes(axes, [7])", "ask before how many there are, as in `len(xs) > 7 and …`"),
        ("n % 0", "ask before whether it is 0, as in `n != 0 and …`"),
    ],
)
def test_what_is_not_there_is_to_be_asked_for_before(text: str, remedy: str) -> None:
    with pytest.raises(GenrwError) as caught:
        run(text)
    assert caught.value.diagnostics[0].remedy == remedy


def test_remedies_name_the_closest() -> None:
    for text, remedy in (("axs", "axes"), ("prodct([1])", "product"), ("target.wavesize", "wave_size")):
        with pytest.raises(GenrwError) as caught:
            run(text)
        assert caught.value.diagnostics[0].remedy == f"did you mean `{remedy}`?"


def test_private_attributes_are_out_of_reach() -> None:
    for text in ("x.__class__", "x.members", "s.__len__", "axes.__class__", "target.keys"):
        failure(text)


def test_members_of_any_mapping() -> None:
    class View(Mapping[str, object]):
        def __getitem__(self, key: str) -> object:
            return {"a": 1}[key]

        def __iter__(self) -> Any:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    assert run("v.a", {"v": View()}) == 1
    assert failure("v.b", {"v": View()}) == ("there is no member `b`", "v.b")


# ---- helpers


def test_a_helper_sees_its_parameters_only() -> None:
    lets = helpers("leaky(a) = a + n")
    assert failure("leaky(1)", lets=lets) == ("unknown name `n` in the helper `leaky`", "n")


def test_recursion_is_refused() -> None:
    assert failure("f(1)", lets=helpers("f(a) = f(a)"))[0] == "the helper `f` calls itself"
    lets = helpers("f(a) = g(a)\ng(a) = [f(d) for d in a]")
    assert failure("f([1])", lets=lets) == ("the helper `f` calls itself", "f(d)")


def test_helpers_do_not_share_variables() -> None:
    lets = helpers("inner(a) = [d + a for d in range(2)]\nouter(a) = [inner(d) + [d] for d in range(a)]")
    assert run("[outer(d) for d in [2]]", lets=lets) == (((0, 1, 0), (1, 2, 1)),)


def test_own_functions() -> None:
    double = declare("double(x: int) -> int", lambda x: 2 * x, "Twice x.")
    assert compile_expr(parse_expr("double(n)"), functions={"double": double})(ENV) == 12
    with pytest.raises(GenrwError, match="`double` takes an integer"):
        compile_expr(parse_expr("double(1.0)"), functions={"double": double})(ENV)


def test_a_fault_of_an_own_function_is_a_message() -> None:
    bad = declare("bad(x: any) -> int", lambda x: x.nothing, "Fails.")
    worse = declare("worse(x: any) -> int", lambda x: int(x), "Fails.")
    with pytest.raises(AttributeError):  # a defect of the function, not of the input
        compile_expr(parse_expr("bad(n)"), functions={"bad": bad})(ENV)
    with pytest.raises(GenrwError, match='`worse` does not take the string "wave"'):
        compile_expr(parse_expr("worse(s)"), functions={"worse": worse})(ENV)


def test_helpers_tell_equal_numbers_of_different_types_apart() -> None:
    helper = "f(a) = [a, [a], a == 1, a == 2, a == 3, a == 4, a == 5, a == 6]"
    calls = "[f(v)[:2] for v in [1, 1.0, true, 1, [1], [1.0], [true], 0.0, -0.0]]"
    found = run(calls, lets=helpers(helper))
    assert repr(found) == repr(tuple((v, (v,)) for v in (1, 1.0, True, 1, (1,), (1.0,), (True,), 0.0, -0.0)))


def test_helpers_that_were_called_before_cost_their_steps_again() -> None:
    lets = helpers("f(a) = sum([b * b + a for b in range(30000)])")
    assert run("f(1) + f(1) == 2 * f(1)", lets=lets) is True
    assert failure("[f(1) for b in range(30000)]", lets=lets)[0].startswith("the expression takes more than")


# ---- hostile input

DOUBLING = "\n".join(f"d{i}(a) = d{i - 1}(a) + d{i - 1}(a)" for i in range(1, 60))
SQUARING = "\n".join(f"q{i}(a) = q{i - 1}(a * a)" for i in range(1, 60))
PAIRING = "\n".join(f"p{i}(a) = p{i - 1}([a, a])" for i in range(1, 60))
HOSTILE = [
    ("range(10 ** 30)", ""),
    ("range(10 ** 12)", ""),
    ("[0 for a in range(60000) for_]".replace(" for_", ""), None),
    ("[[0 for a in range(60000)] for b in range(60000)]", ""),
    ("[sum(range(60000)) for b in range(60000)]", ""),
    ("[sum(v) for b in v]", ""),
    ("[v == w for b in v]", ""),
    ("[sorted(zip(v, v)) for b in v]", ""),
    ("9 ** 9 ** 9", ""),
    ("9 ** 9 ** 9 ** 9", ""),
    ("2.0 ** 9999", ""),
    ("1 << 9999999999", ""),
    ("product(range(1, 60000))", ""),
    ("lcm(2 ** 120 + 1, 2 ** 119 - 1)", ""),
    ("d59(1)", "d0(a) = a\n" + DOUBLING),
    ("d59([1])", "d0(a) = a\n" + DOUBLING),
    ("q59(3)", "q0(a) = a\n" + SQUARING),
    ("p59(1) == p59(1)", "p0(a) = a\n" + PAIRING),
    ("union(p59(1))", "p0(a) = a\n" + PAIRING),
]


CALLS = 4_000_000
"""What the most laborious takes thrice; without limits none would end."""


@pytest.mark.parametrize(("text", "lets"), HOSTILE, ids=[text for text, _ in HOSTILE])
def test_hostile_expressions_end_soon(text: str, lets: str | None) -> None:
    env = {"v": tuple(range(60000)), "w": tuple(range(60000))}
    with at_most(CALLS):
        if lets is None:
            assert len(run(text, env)) == 60000
        else:
            failure(text, env, helpers(lets))


def test_deep_nesting_is_a_message() -> None:
    expr: Expr = Const(1)
    for _ in range(100_000):
        expr = Unary("-", expr)
    with pytest.raises(GenrwError, match=f"nested more than {DEPTH_LIMIT} levels deep"):
        compile_expr(expr)


def test_deep_helpers_are_a_message() -> None:
    brackets = "(" * 80 + "a" + " + 1)" * 80
    lets = helpers("h0(a) = a\n" + "\n".join(f"h{i}(a) = h{i - 1}({brackets})" for i in range(1, 60)))
    assert run("h3(1)", lets=lets) == 241
    deep = helpers("h0(a) = a\n" + "\n".join(f"h{i}(a) = 1 + (1 + (1 + h{i - 1}(a)))" for i in range(1, 400)))
    assert "nested too deeply" in failure("h399(1)", lets=deep)[0]


# ---- against Python itself

NUMBERS = st.integers(-50, 50)


@given(a=NUMBERS, b=NUMBERS, c=NUMBERS)
def test_integer_arithmetic_is_pythons(a: int, b: int, c: int) -> None:
    env = {"a": a, "b": b, "c": c}
    assert run("a * b - c", env) == a * b - c
    assert run("(a < b) == (b > a) and a <= a < a + 1", env) is True
    if b:
        assert run("(a // b) * b + a % b", env) == a
        assert run("ceil_div(a, b)", env) == math.ceil(a / b)


@given(xs=st.lists(NUMBERS, max_size=6), k=st.integers(-8, 8))
def test_lists_are_pythons(xs: list[int], k: int) -> None:
    env = {"xs": tuple(xs), "k": k}
    assert run("xs[k:]", env) == tuple(xs[k:])
    assert run("xs[:k]", env) == tuple(xs[:k])
    assert run("sorted(xs)", env) == tuple(sorted(xs))
    assert run("[v for v in xs if v > k]", env) == tuple(v for v in xs if v > k)
    assert run("k in xs", env) is (k in xs)
