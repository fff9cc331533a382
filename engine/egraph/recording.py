"""Applications of rules as an e-graph recorded them: what the left side matched, and what the right side made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from genrw.engine.ir.enode import ENode

CLASS, OPERATOR, ATTRIBUTES = "T", "String", "i64"
"""The sorts of a record's columns."""


@dataclass(frozen=True)
class Shape:
    """Where a record has one part of a rule's side: the columns of its class, operator and attributes.

    A variable has a `name` and no operator, a number neither; `name` of an operation is what the rule calls it.
    """

    number: int
    op: int | None = None
    attributes: int | None = None
    operands: tuple[Shape, ...] = ()
    name: str | None = None


@dataclass(frozen=True)
class Recorded:
    """The table in which a rewrite's applications are recorded, its columns' sorts, and both sides' shapes."""

    table: str
    key: str
    sorts: tuple[str, ...]
    left: Shape
    right: Shape


@dataclass(frozen=True)
class Part:
    """One part of a rule's side as it applied: a class, the node in it, which a variable leaves open, and the name that
    the rule gives it."""

    number: int
    node: ENode | None
    operands: tuple[Part, ...] = ()
    name: str | None = None


@dataclass(frozen=True)
class Application:
    """One application of a rule's direction, `key`: what it matched and what it made, equal from then on."""

    key: str
    left: Part
    right: Part


def applications(
    recorded: Recorded, rows: Sequence[Any], read: Callable[[str, Any], Any], number_of: Callable[[int], int | None]
) -> Iterator[Application]:
    """The applications in a table. `read` gives the value of a cell of a sort; `number_of` the number in a class."""
    for row in rows:
        cells = [read(sort, cell) for sort, cell in zip(recorded.sorts, row.inputs, strict=True)]
        left, right = (_part(shape, cells, number_of) for shape in (recorded.left, recorded.right))
        yield Application(recorded.key, left, right)


def _part(shape: Shape, cells: Sequence[Any], number_of: Callable[[int], int | None]) -> Part:
    number = cells[shape.number]
    if shape.op is not None and shape.attributes is not None:
        operands = tuple(_part(operand, cells, number_of) for operand in shape.operands)
        node = ENode(cells[shape.op], cells[shape.attributes], tuple(o.number for o in operands))
        return Part(number, node, operands, shape.name)
    if shape.name is not None:
        return Part(number, None, name=shape.name)
    return Part(number, ENode("", 0, (), number_of(number)))
