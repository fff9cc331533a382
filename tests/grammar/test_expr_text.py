"""Expressions: precedence as in Python, the fewest parentheses, spans."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from trees import expressions, operations

from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, IfElse, Name, Unary
from genrw.grammar.rw import parse_expr, print_expr


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_printing_reads_back(expr: Expr) -> None:
    again = parse_expr(print_expr(expr))
    assert again == expr
    assert repr(again) == repr(expr)


@settings(max_examples=300, deadline=None)
@given(operations)
def test_precedence_is_that_of_python(expr: Expr) -> None:
    """Python reads the printed text as the same nesting."""
    assert _python_shape(ast.parse(print_expr(expr), mode="eval").body) == _shape(expr)


def _shape(expr: Expr) -> object:
    match expr:
        case Binary(op, left, right):
            return (op, _shape(left), _shape(right))
        case Compare(operands, ops):
            return (ops, [_shape(operand) for operand in operands])
        case Unary(op, operand):
            return (op, _shape(operand))
        case IfElse(condition, then, otherwise):
            return ("if", _shape(condition), _shape(then), _shape(otherwise))
        case Name(name):
            return name
        case _:
            raise AssertionError(expr)


_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&", ast.And: "and",
    ast.Or: "or", ast.USub: "-", ast.Invert: "~", ast.Not: "not", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def _python_shape(node: ast.expr) -> object:
    match node:
        case ast.BinOp(left, op, right):
            return (_SIGNS[type(op)], _python_shape(left), _python_shape(right))
        case ast.BoolOp(op, operands):
            shape = _python_shape(operands[0])
            for operand in operands[1:]:
                shape = (_SIGNS[type(op)], shape, _python_shape(operand))
            return shape
        case ast.Compare(left, ops, rest):
            return (tuple(_SIGNS[type(op)] for op in ops), [_python_shape(one) for one in (left, *rest)])
        case ast.UnaryOp(op, operand):
            return (_SIGNS[type(op)], _python_shape(operand))
        case ast.IfExp(condition, then, otherwise):
            return ("if", _python_shape(condition), _python_shape(then), _python_shape(otherwise))
        case ast.Name(name):
            return name
        case _:
            raise AssertionError(node)


@pytest.mark.parametrize(
    "text",
    [
        "a + b * c",
        "(a + b) * c",
        "a - (b - c)",
        "a - b - c",
        "-a ** 2",
        "(-1) ** 2",
        "2 ** -1",
        "a ** b ** c",
        "(a ** b) ** c",
        "not a == b",
        "not (a or b) and c",
        "(not a) + b",
        "a < b <= c != d",
        "(a < b) < c",
        "a in b and c not in d",
        "a & b == c",
        "~a << 2 | b ^ c",
        "a if b else c if d else e",
        "(a if b else c) if d else e",
        "a // b % c / d",
        "x.lens[axes][1:][:n].type",
        "f(g(), [1, [], 2.5], true, inf, -inf, nan)[0]",
        "[1 if d in axes else lens[d] for d in range(len(lens)) if d != 0]",
        "[d for d in (a if b else c)]",
        r'"a\\ \"b\"\n"',
        "(1).n",
        "lo.hi.index + cost * role",
    ],
)
def test_fewest_parentheses(text: str) -> None:
    assert print_expr(parse_expr(text)) == text


def test_python_spacing_is_not_needed() -> None:
    assert print_expr(parse_expr("a if(b)else-c\n+d [ 0x10 : ]not  in[e]")) == "a if b else -c + d[16:] not in [e]"


def test_negative_numbers_are_constants() -> None:
    assert parse_expr("-1") == Const(-1)
    assert parse_expr("-x") == Unary("-", Name("x"))
    assert parse_expr("-2 ** 2") == Unary("-", Binary("**", Const(2), Const(2)))


def test_triple_quotes_have_no_escapes() -> None:
    assert parse_expr('"""a\\n"b\n"""') == Const('a\\n"b\n')


def test_comments_and_division() -> None:
    text = "# one\na // b  # two\n  // three\n// four\n + c"
    assert print_expr(parse_expr(text)) == "a // b + c"


def test_spans() -> None:
    expr = parse_expr(" f(a, b[1]) + -c.d < [e] ", "x")
    assert isinstance(expr, Compare)
    total, listed = expr.operands
    assert isinstance(total, Binary)
    assert isinstance(total.left, Call)
    found = [node.span.text for node in (expr, total, *total.left.args, total.right, listed)]
    assert found == ["f(a, b[1]) + -c.d < [e]", "f(a, b[1]) + -c.d", "a", "b[1]", "-c.d", "[e]"]
