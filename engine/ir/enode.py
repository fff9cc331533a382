"""A node of an e-graph as Python reads it."""

from __future__ import annotations

from typing import NamedTuple


class ENode(NamedTuple):
    """A row of the frozen e-graph: an operator with attribute id and operand classes, or an index constant."""

    op: str
    attributes: int
    operands: tuple[int, ...]
    number: int | None = None
