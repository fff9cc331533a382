"""What declarations of foreign operators are given: a use, its surroundings, and what its names stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genrw.engine.ir.nodes import Attributes, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.arrays import Values


class Unfit(Exception):
    """An operation that a declaration does not take, and why; `progress` says how far it got."""

    def __init__(self, message: str, progress: int = 1) -> None:
        super().__init__(message)
        self.progress = progress


GIVEN_NAMES = ("opset", "outputs", "type", "position")
"""What expressions of a declaration may name besides its own: the version of the foreign operators, how many results
are asked for, the element type of the first input, and the place of a result or of an element of a list."""


class ImportHost:
    """What the translation of a graph asks of whoever reads the graph."""

    def read(self, node: Node) -> Values:
        """The elements of a value that has to be known now; Unfit if they are not."""
        raise NotImplementedError

    def make(self, op: str, attributes: Attributes, operands: tuple[Node, ...], type_: Type) -> Node:
        """An operation."""
        raise NotImplementedError

    def dtype(self, code: int) -> str:
        """The element type of a number that stands for one; Unfit if there is none."""
        raise NotImplementedError


class InnerGraph:
    """A graph that an attribute holds."""

    def results(self, operands: Sequence[Node]) -> list[Node]:
        """The graph's results for its inputs; Unfit if it cannot be translated."""
        raise NotImplementedError


@dataclass(frozen=True)
class Use:
    """One use of a foreign operator: its attributes, inputs (None: absent), and how many results are asked for."""

    name: str
    attributes: Mapping[str, Any]
    inputs: tuple[Node | None, ...]
    outputs: int


@dataclass(frozen=True)
class Number:
    """A number in a template; the operands beside it say of which type."""

    value: Any


Listed = tuple[Any, ...]
"""Several values, or lists of them."""
Built = Node | Number


@dataclass(frozen=True)
class Scope:
    """What a template may name: `values` in expressions, `nodes` and lists of them as operands."""

    values: Mapping[str, Any]
    nodes: Mapping[str, Built | Listed]

    def element(self, lists: Mapping[str, Listed], position: int) -> Scope:
        """The scope of one element of lists."""
        elements = {name: listed[position] for name, listed in lists.items()}
        types = {name: types_of(element) for name, element in elements.items()}
        return Scope({**self.values, **types, "position": position}, {**self.nodes, **elements})


def types_of(built: Any) -> Any:
    """What expressions see of a value, or of each of a list."""
    if isinstance(built, tuple):
        return tuple(map(types_of, built))
    return built.type if isinstance(built, Node) else built.value
