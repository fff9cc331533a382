"""Kernels of the IR whose expressions are C++, written by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from genrw.codegen.kernel_ir.kernel import (
    Allocate,
    Buffer,
    Declare,
    Effect,
    Expression,
    IfStep,
    Let,
    Loop,
    Meeting,
    Monoid,
    Start,
    Statement,
    ValueType,
    Variable,
    Walk,
    walk,
)

_WORD = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")


@dataclass(frozen=True, eq=False)
class Written(Expression):
    """A C++ text that names variables."""

    text: str
    named: tuple[Variable, ...] = ()

    @property
    def own_variables(self) -> tuple[Variable, ...]:
        return self.named


class WrittenText:
    """Prints what was written; variables have the names that they were given."""

    def __init__(self, body: Sequence[Statement], names: Mapping[Variable, str] | None = None) -> None:
        own = {v: v.name or "" for v in _variables(body).values()}
        self.body, self.names, self.computed = body, {**own, **(names or {})}, list[Any]()

    def renamed(self, names: Mapping[Variable, str]) -> WrittenText:
        return WrittenText(self.body, names)

    def type_text(self, type_: ValueType, element: bool = False) -> str:
        assert not element
        return type_.dtype

    def text(self, expression: Written) -> str:
        names = {v.name: self.names[v] for v in expression.named}
        return _WORD.sub(lambda m: names.get(m[0], m[0]), expression.text)


def resolved(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """A body whose texts know which variables they name."""
    return tuple(_resolved(s, _variables(body)) for s in body)


def _resolved(statement: Statement, variables: Mapping[str, Variable]) -> Statement:
    found = tuple(
        replace(e, named=tuple(variables[w] for w in dict.fromkeys(_WORD.findall(e.text)) if w in variables))
        for e in statement.expressions
    )
    made = statement.with_expressions(found)
    if isinstance(made, Loop | IfStep):
        return replace(made, body=tuple(_resolved(s, variables) for s in made.body))
    return made


def _variables(body: Sequence[Statement]) -> dict[str, Variable]:
    found = [s.counter if isinstance(s, Loop) else s.declared for s in walk(tuple(body))]
    return {v.name or "": v for v in found if v is not None}


def variable(type_: str, name: str) -> Variable:
    return Variable(ValueType(type_, type_.startswith("gen::array")), name)


def plain(text: str) -> Statement:
    """A statement of each lane."""
    return Effect(Written(text))


def value(type_: str, name: str, text: str, meets: str = "") -> Statement:
    """A constant of each lane; lanes of the "wave" or the "block" meet where it is made."""
    return Let(Written(text), variable(type_, name), meets=Meeting(meets))


def array(type_: str, name: str) -> Statement:
    """An array of each lane, whose elements get values later."""
    return Declare(variable(type_, name))


def memory(type_: str, name: str, count: object) -> Statement:
    """Workgroup memory."""
    return Allocate(Written(f"GEN_LDS({type_}, {name}, {count})"), Buffer(variable(type_, name), 0, 0, 0))


def loop(counter: str, extent: int, *body: Statement) -> Loop:
    """A loop that all lanes walk alike."""
    return Loop(Walk.STEPS, extent, 1, body, variable("int", counter))


BARRIER = Effect(Written("gen::barrier();"), Meeting.BLOCK)

SUM = """
struct sum_float {
    using acc = float;
    GEN_DEVICE static acc identity() { return 0; }
};
"""


def sum_of(name: str) -> Statement:
    """A sum of floats, which begins as 0."""
    return Start(variable("float", name), Monoid("sum", "float"))
