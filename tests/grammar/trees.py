"""Random trees of both languages, as the parsers could have made them."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from genrw.grammar import expr_tree as e
from genrw.grammar import gen_tree as g

_RESERVED = {"and", "or", "not", "in", "if", "else", "for", "true", "false", "inf", "nan"}
_KEYWORDS = ["lo", "hi", "cost", "at", "op", "rule", "index", "type", "when", "with", "e5", "_"]

names = st.one_of(st.sampled_from(_KEYWORDS), st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)).filter(
    lambda name: name not in _RESERVED
)
dotted = st.one_of(names, st.builds("{}.{}".format, names, names))
integers = st.integers(-(2**63), 2**64 - 1)
# One nan, as the parsers make: two would differ.
floats = st.one_of(st.floats(allow_nan=False), st.just(math.nan))
numbers: st.SearchStrategy[Any] = st.one_of(st.booleans(), st.integers(-99, 99), integers, floats)
texts = st.text(max_size=8)

# ---- programs

dims = st.lists(st.one_of(st.integers(0, 9999), names), max_size=3).map(tuple)
unstrided = st.builds(lambda dtype, lens: g.TypeNode("tensor", dtype, lens), st.none() | names, dims)
tensors = st.builds(
    lambda dtype, lens, strides: g.TypeNode("tensor", dtype, lens, strides),
    st.none() | names,
    dims,
    st.none() | dims,
)
arrays = st.builds(
    lambda name, size: g.TypeNode("index", size=size) if name == "index" else g.TypeNode("array", name, size=size),
    names,
    st.integers(0, 99),
)
plain = st.builds(lambda name: g.TypeNode("scalar", name), names.filter(lambda name: name != "index"))
types = st.one_of(tensors, arrays, plain, st.sampled_from(["scalar", "index", "effect"]).map(g.TypeNode))

# A type without dtype would read as a list, one with strides would end a list's item.
_named = unstrided.filter(lambda node: node.dtype is not None)
_leaves = st.one_of(numbers, texts, dotted.map(g.Word), _named, arrays)
items: st.SearchStrategy[Any] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(st.tuples(names, inner), min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(
            lambda pairs: g.MapValue(tuple(pairs))
        ),
    ),
    max_leaves=6,
)
values = items | tensors.filter(lambda node: node.dtype is not None)
attributes = st.lists(
    st.builds(g.Attribute, dotted, st.none() | values), max_size=3, unique_by=lambda attribute: attribute.name
).map(tuple)
operands = st.lists(st.one_of(dotted.map(g.Ref), numbers.map(g.NumberOperand)), max_size=3).map(tuple)
results = st.lists(dotted, max_size=2).map(tuple)
instructions = st.one_of(
    st.builds(g.Instruction, results, dotted, attributes, operands, st.none() | types),
    st.builds(lambda n, t, p: g.Instruction(n, "@param", type=t, param=p), results, types, dotted),
    st.builds(
        lambda n, t, p, f: g.Instruction(n, "@param", type=t, param=p, file=f),
        results,
        types,
        dotted,
        st.text(min_size=1),
    ),
    st.builds(
        lambda n, t, xs: g.Instruction(n, "@literal", type=t, literal=tuple(xs)),
        results,
        types,
        st.lists(numbers, max_size=3),
    ),
    st.builds(lambda xs: g.Instruction((), "@return", operands=xs), operands),
)
modules = st.builds(g.Module, dotted, attributes, st.lists(instructions, max_size=4).map(tuple))
files = st.lists(modules, min_size=1, max_size=3).map(lambda found: g.File(tuple(found)))

# ---- expressions

_BINARY = ["or", "and", "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "//", "%", "**"]
_COMPARE = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]


def _negated(op: str, operand: e.Expr) -> e.Expr:
    """A prefix operator; the parser makes one constant of a minus and a number."""
    number = isinstance(operand, e.Const) and type(operand.value) in (int, float)
    return e.Unary("~" if op == "-" and number else op, operand)


def _compare(operands: list[e.Expr], data: list[str]) -> e.Expr:
    return e.Compare(tuple(operands), tuple(data[: len(operands) - 1]))


def _operations(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(e.Binary, st.sampled_from(_BINARY), inner, inner),
        st.builds(_negated, st.sampled_from(["-", "~", "not"]), inner),
        st.builds(
            _compare,
            st.lists(inner, min_size=2, max_size=3),
            st.lists(st.sampled_from(_COMPARE), min_size=2, max_size=2),
        ),
        st.builds(e.IfElse, inner, inner, inner),
    )


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        _operations(inner),
        st.builds(e.Member, inner, names),
        st.builds(e.Index, inner, inner),
        st.builds(e.Slice, inner, st.none() | inner, st.none() | inner),
        st.builds(e.Call, names, several),
        st.builds(e.ListExpr, several),
        st.builds(e.Comprehension, inner, names, inner, st.none() | inner),
    )


# Operators over names alone, which Python reads too.
operations: st.SearchStrategy[Any] = st.recursive(st.sampled_from("abc").map(e.Name), _operations, max_leaves=12)
expressions: st.SearchStrategy[Any] = st.recursive(
    st.one_of(names.map(e.Name), numbers.map(e.Const), texts.map(e.Const)), _larger, max_leaves=12
)
