"""Terms with signs: how they read, what they print as, and that the layout keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genrw.grammar.expr import print_expr
from genrw.grammar.expr_tree import Binary, Compare, Const, Expr, Name
from genrw.grammar.rw import parse_expr, parse_rw, print_declaration, print_pattern, print_rw
from genrw.grammar.rw_format import format_rw
from genrw.grammar.rw_tree import AttributePattern, NumberPattern, OpDecl, OpPattern, Pattern, RuleDecl, VarPattern

SIGNS = ("+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or", "&", "|", "^", "<<", ">>")


def rule(text: str) -> RuleDecl:
    (found,) = parse_rw(f"rule r\n  x\n  => {text}\n").declarations
    assert isinstance(found, RuleDecl)
    return found


def term(text: str) -> Pattern:
    return rule(text).right


def called(pattern: Pattern) -> str:
    """A term as calls, the signs as operators' names."""
    match pattern:
        case OpPattern():
            return f"({pattern.op} {' '.join(map(called, pattern.operands))})"
        case _:
            return print_pattern(pattern)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("i // 4 * 8 + i % 4", "(+ (* (// i 4) 8) (% i 4))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a - (b - c)", "(- a (- b c))"),
        ("a * (b + c)", "(* a (+ b c))"),
        ("a < b and c >= d + 1 or e", "(or (and (< a b) (>= c (+ d 1))) e)"),
        ("at(i) < {n * 2} and ok(i)", "(and (< (at i) {n * 2}) (ok i))"),
        ("f(a + b, c) % 2", "(% (f (+ a b) c) 2)"),
        ("(a < b) == c", "(== (< a b) c)"),
        ("a - -1", "(- a -1)"),
        ("-1 - -inf", "(- -1 -inf)"),
        ("a\n  # why\n  +\n  b", "(+ a b)"),
    ],
)
def test_a_sign_binds_as_in_expressions(text: str, tree: str) -> None:
    assert called(term(text)) == tree


def test_a_sign_is_an_operator_without_attributes() -> None:
    found = term("a + f[n](b)")
    assert found == OpPattern(
        "+", (), (VarPattern("a"), OpPattern("f", (AttributePattern("n", None),), (VarPattern("b"),)))
    )
    assert isinstance(found, OpPattern)
    assert found.sign == "+"


def test_parentheses_may_be_named_and_mapped() -> None:
    assert term("r@(a + b)") == OpPattern("+", (), (VarPattern("a"), VarPattern("b")), binds="r")
    assert term("f((at(xs) + b)...)") == OpPattern(
        "f", (), (OpPattern("+", (), (OpPattern("at", (), (VarPattern("xs"),)), VarPattern("b")), rest=True),)
    )
    assert term("((f(a)))") == term("f(a)")


def test_where_parts_stand() -> None:
    found = term("(a + bb) * r@(c - d)")
    assert isinstance(found, OpPattern)
    left, right = found.operands
    assert isinstance(left, OpPattern)
    assert isinstance(right, OpPattern)
    assert [part.span.text for part in (found, left, right)] == ["(a + bb) * r@(c - d)", "(a + bb)", "r@(c - d)"]
    assert [part.op_span.text for part in (found, left, right)] == ["*", "+", "-"]


def test_signs_stand_wherever_terms_do() -> None:
    text = """\
stage s

context [target=host]

given i = j + 1

op f(a: index, b: index) -> index
  written a // b
  commutative
  is (a + b) * c when a.lo > 0
  is a - b

define g(a, b) = a % b

rule r
  a + {n} when n > 0
  <=> {n} + a
  given k = i * 4
  example [] (k + 1) * 2, k gives k
  counterexample k - 1

dialect onnx

import Every(x)
  => x + 1, x and x
  repeat i in [1] while true: h = h + x
"""
    assert format_rw(text) == text
    assert parse_rw(print_rw(parse_rw(text))) == parse_rw(text)


def test_a_comment_may_stand_behind_a_sign_and_begins_lines() -> None:
    assert term("a +  # why\n  b\n  // 4\n") == term("a + b")
    assert term("a // 4") == OpPattern("//", (), (VarPattern("a"), NumberPattern(Const(4))))


def test_how_an_operator_is_written() -> None:
    (found,) = parse_rw("op f[n: int = 1](a: index, b: index) -> index\n  written a and b\n").declarations
    assert isinstance(found, OpDecl)
    assert (found.sign, found.sign_span.text) == ("and", "and")
    assert "  written a and b" in print_declaration(found).splitlines()


def test_the_word_is_a_name_elsewhere() -> None:
    assert term("written + written[written](written)")
    (target,) = parse_rw("target t\n  written 1\n").declarations
    assert target.name == "t"


# ---- any term

_LEAVES = st.one_of(
    st.sampled_from("abc").map(VarPattern),
    st.sampled_from([0, 3, -2, 1.5]).map(lambda value: NumberPattern(Const(value))),
    st.just(NumberPattern(Binary("+", Name("n"), Const(1)))),
)


def _signed(sign: str, left: Pattern, right: Pattern, binds: str | None) -> OpPattern:
    return OpPattern(sign, (), (left, right), sign=sign, binds=binds)


TERMS: st.SearchStrategy[Pattern] = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(_signed, st.sampled_from(SIGNS), inner, inner, st.sampled_from([None, None, None, "r"])),
        st.builds(lambda operands: OpPattern("f", (), tuple(operands)), st.lists(inner, max_size=3)),
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(TERMS)
def test_any_term_reads_back(tree: Pattern) -> None:
    text = f"stage s\n\nrule r\n  x\n  => {print_pattern(tree)}\n"
    found = parse_rw(text)
    assert print_rw(found) == text
    (read,) = found.declarations
    assert isinstance(read, RuleDecl)
    assert read.right == tree
    assert format_rw(text) == text


def _as_expression(tree: Pattern) -> Expr:
    match tree:
        case VarPattern(name):
            return Name(name)
        case NumberPattern(value):
            return value
        case OpPattern(op, operands=(left, right)) if op in ("<", "<=", ">", ">=", "==", "!="):
            return Compare((_as_expression(left), _as_expression(right)), (op,))
        case OpPattern(op, operands=(left, right)):
            return Binary(op, _as_expression(left), _as_expression(right))
    raise AssertionError(tree)


SIGNED: st.SearchStrategy[Pattern] = st.recursive(
    st.sampled_from("abc").map(VarPattern),
    lambda inner: st.builds(_signed, st.sampled_from(SIGNS), inner, inner, st.none()),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(SIGNED)
def test_signs_bind_and_print_as_in_expressions(tree: Pattern) -> None:
    text = print_pattern(tree)
    assert text == print_expr(_as_expression(tree))
    assert parse_expr(text) == _as_expression(tree)
