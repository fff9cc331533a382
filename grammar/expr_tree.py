"""The tree of the expression language: guards, computed attributes, shape rules, meanings, costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from genrw.grammar.source import NOWHERE, Span


@dataclass(frozen=True)
class Node:
    """What all expression nodes share: their place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    @cached_property
    def free(self) -> frozenset[str]:
        """The names that stand for something outside the expression."""
        return frozenset(
            n.name for n, local in walk_free(cast("Expr", self)) if isinstance(n, Name) and n.name not in local
        )

    @cached_property
    def members(self) -> frozenset[tuple[str, str]]:
        """Pairs (name, member) for each `name.member` of a free name."""
        return frozenset(
            (n.base.name, n.name)
            for n, local in walk_free(cast("Expr", self))
            if isinstance(n, Member) and isinstance(n.base, Name) and n.base.name not in local
        )

    @cached_property
    def called(self) -> frozenset[str]:
        """The functions and helpers called."""
        return frozenset(n.function for n, _ in walk_free(cast("Expr", self)) if isinstance(n, Call))


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


_CHILDREN: Mapping[type, Callable[[Any], tuple[Expr, ...]]] = {
    Const: lambda _: (),
    Name: lambda _: (),
    Member: lambda e: (e.base,),
    Unary: lambda e: (e.operand,),
    Index: lambda e: (e.base, e.index),
    Slice: lambda e: tuple([part for part in (e.base, e.start, e.stop) if part is not None]),
    Call: lambda e: e.args,
    ListExpr: lambda e: e.items,
    Compare: lambda e: e.operands,
    Binary: lambda e: (e.left, e.right),
    IfElse: lambda e: (e.then, e.condition, e.otherwise),
    Comprehension: lambda e: (e.body, e.source) if e.condition is None else (e.body, e.source, e.condition),
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, in the order of the text."""
    return _CHILDREN[type(expr)](expr)


def walk_free(expr: Expr, bound: frozenset[str] = frozenset()) -> Iterator[tuple[Expr, frozenset[str]]]:
    """Every node with the local variables in sight at it."""
    todo = [(expr, bound)]
    while todo:
        node, local = todo.pop()
        yield node, local
        if isinstance(node, Comprehension):
            inner = local | {node.variable}
            todo.append((node.source, local))
            todo += [(part, inner) for part in (node.body, node.condition) if part is not None]
        else:
            todo += [(child, local) for child in children(node)]
