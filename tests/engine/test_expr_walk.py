"""What is said of expressions without running them, and substitution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genrw.engine.language import operators
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.expr import calls, check_expr, compile_expr, free_names, member_uses, substitute
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import (
    Binary,
    Call,
    Compare,
    Comprehension,
    Const,
    Expr,
    IfElse,
    Index,
    ListExpr,
    Member,
    Name,
    Slice,
    Unary,
)
from genrw.grammar.rw import parse_expr, parse_rw
from genrw.grammar.rw_tree import LetDecl


def helpers(text: str) -> dict[str, LetDecl]:
    """Helpers, `name(parameters) = body` one a line, by name."""
    file = parse_rw("".join(f"let {line}\n" for line in text.strip().splitlines()))
    return {let.name: let for let in file.declarations if isinstance(let, LetDecl)}


def test_free_names() -> None:
    assert free_names(parse_expr("x.lens[d] + [e for e in axes if e != q][n] + itemsize(half)")) == {
        "x", "d", "axes", "q", "n",
    }  # fmt: skip
    assert free_names(parse_expr("[e for e in e]")) == {"e"}
    assert free_names(parse_expr("[[a + b for a in b] for b in c]")) == {"c"}
    assert free_names(parse_expr("a[b:c] if d else -e")) == {"a", "b", "c", "d", "e"}


def test_member_uses() -> None:
    expr = parse_expr("x.lens[0] + target.limits.lds + [x.rank for x in y.parts][0] + f(z).w")
    assert member_uses(expr) == {("x", "lens"), ("target", "limits"), ("y", "parts")}


def test_member_uses_through_helpers() -> None:
    lets = helpers("rank(t) = len(t.lens)\nboth(a, b) = rank(a) + b.lo\nloop(a) = loop(a) + a.hi")
    assert member_uses(parse_expr("both(x, y)"), lets) == {("x", "lens"), ("y", "lo")}
    assert member_uses(parse_expr("[both(x, y) for x in z]"), lets) == {("y", "lo")}
    assert member_uses(parse_expr("loop(x)"), lets) == {("x", "hi")}
    assert member_uses(parse_expr("both(x, y)")) == set()


def test_calls() -> None:
    assert calls(parse_expr("f(g(1), [h(2) for i in k(3) if m(4)])")) == {"f", "g", "h", "k", "m"}


def test_substitute() -> None:
    assert substitute(parse_expr("a + b * a"), {"a": parse_expr("x.n")}) == parse_expr("x.n + b * x.n")
    assert substitute(parse_expr("a"), {}) == parse_expr("a")
    assert substitute(parse_expr("[a for a in a]"), {"a": parse_expr("q")}) == parse_expr("[a for a in q]")
    swapped = substitute(parse_expr("f(a)[b:] if a < b else [a, b.c[a]]"), {"a": parse_expr("b"), "b": parse_expr("a")})
    assert swapped == parse_expr("f(b)[a:] if b < a else [b, a.c[b]]")


def test_substitute_captures_nothing() -> None:
    result = substitute(parse_expr("[d + k for d in xs]"), {"k": parse_expr("d")})
    assert compile_expr(result)({"d": 100, "xs": (1, 2)}) == (101, 102)
    result = substitute(parse_expr("[[d + e + k for d in [e]] for e in xs]"), {"k": parse_expr("d + e")})
    assert compile_expr(result)({"d": 100, "e": 1000, "xs": (1, 2)}) == ((1102,), (1104,))


def test_substitute_keeps_spans() -> None:
    expr = parse_expr("1 + a // 0")
    with pytest.raises(GenrwError) as caught:
        compile_expr(substitute(expr, {"a": parse_expr("b")}))({"b": 3})
    assert caught.value.diagnostics[0].span is not None
    assert caught.value.diagnostics[0].span.text == "a // 0"


def test_substitute_refuses_what_is_too_deep() -> None:
    expr: Expr = Const(1)
    for _ in range(50_000):
        expr = Unary("-", expr)
    with pytest.raises(GenrwError, match="nested"):
        substitute(expr, {"a": Const(1)})
    assert free_names(expr) == set()
    assert calls(expr) == set()


def test_check_finds_all() -> None:
    lets = helpers("twice(a) = a + a")
    expr = parse_expr("[d + axs for d in axes] + nop(q) + twice(1, 2) + len() + lenn([d])")
    found = [(d.message, d.span.text if d.span else "", d.remedy) for d in check_expr(expr, {"axes"}, lets)]
    assert found == [
        ("unknown name `axs`", "axs", "did you mean `axes`?"),
        ("unknown function `nop`", "nop(q)", "declare it: let nop(…) = …"),
        ("unknown name `q`", "q", "one may name axes"),
        ("`twice` takes 1 argument, not 2", "twice(1, 2)", "twice(a)"),
        ("`len` takes 1 argument, not 0", "len()", "len(xs: list) -> int"),
        ("unknown function `lenn`", "lenn([d])", "did you mean `len`?"),
        ("unknown name `d`", "d", "one may name axes"),
    ]
    assert check_expr(parse_expr("[d for d in axes][0] + len(axes) + itemsize(half)"), {"axes"}, lets) == []


LEAVES: st.SearchStrategy[Expr] = st.one_of(
    st.sampled_from(["a", "b", "v", "unknown", "half"]).map(Name),
    st.sampled_from([0, 1, -3, 2.5, True, "lens", 2**100]).map(Const),
)


def _compound(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    some = st.lists(inner, max_size=3).map(tuple)
    functions = st.sampled_from([*sorted(FUNCTIONS), "missing"])
    return st.one_of(
        st.builds(Binary, st.sampled_from([*operators.BINARY, "and", "or"]), inner, inner),
        st.builds(Unary, st.sampled_from(sorted(operators.UNARY)), inner),
        st.builds(lambda op, a, b: Compare((a, b), (op,)), st.sampled_from([*operators.COMPARE]), inner, inner),
        st.builds(Call, functions, some),
        st.builds(ListExpr, some),
        st.builds(Comprehension, inner, st.sampled_from("av"), inner, st.none() | inner),
        st.builds(IfElse, inner, inner, inner),
        st.builds(Index, inner, inner),
        st.builds(Slice, inner, st.none() | inner, st.none() | inner),
        st.builds(Member, inner, st.sampled_from(["lens", "c"])),
    )


@pytest.mark.filterwarnings("error::SyntaxWarning")
@given(st.recursive(LEAVES, _compound, max_leaves=12))
def test_running_gives_a_value_or_a_message(expr: Expr) -> None:
    env: dict[str, object] = {"a": 3, "b": (1, 2), "v": {"lens": (4, 5)}}
    wrong = check_expr(expr, env)
    assert {d.message for d in wrong if "name" in d.message} <= {"unknown name `unknown`"}
    try:
        compile_expr(substitute(expr, {"unknown": Const(1)}))(env)
    except GenrwError as failed:
        message = failed.diagnostics[0].message
    else:
        message = ""
    assert "unknown name" not in message
    assert "unknown function" not in message or wrong
