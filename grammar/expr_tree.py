"""The tree of the expression language: guards, computed attributes, shape rules, meanings, costs."""

from __future__ import annotations

from dataclasses import dataclass, field

from genrw.grammar.source import NOWHERE, Span


@dataclass(frozen=True)
class Node:
    """What all expression nodes share: their place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Const(Node):
    """An int, float (inf and nan too), bool or quoted string."""

    value: int | float | bool | str


@dataclass(frozen=True)
class Name(Node):
    """A variable, parameter or function name."""

    name: str


@dataclass(frozen=True)
class Member(Node):
    """`base.name`."""

    base: Expr
    name: str


@dataclass(frozen=True)
class Index(Node):
    """`base[index]`; an index that is a list picks several elements."""

    base: Expr
    index: Expr


@dataclass(frozen=True)
class Slice(Node):
    """`base[start:stop]`, either end may be absent."""

    base: Expr
    start: Expr | None
    stop: Expr | None


@dataclass(frozen=True)
class Call(Node):
    """`function(args…)`."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Unary(Node):
    """`-x`, `~x` or `not x`."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary(Node):
    """Arithmetic, bit operations, `and`, `or`: `left op right`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Compare(Node):
    """A chain `first op second op third …` of comparisons, `in` and `not in`."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True)
class IfElse(Node):
    """`then if condition else otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class ListExpr(Node):
    """`[a, b, …]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Comprehension(Node):
    """`[body for variable in source if condition]`."""

    body: Expr
    variable: str
    source: Expr
    condition: Expr | None


Expr = Const | Name | Member | Index | Slice | Call | Unary | Binary | Compare | IfElse | ListExpr | Comprehension
