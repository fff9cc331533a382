"""Numbers for attributes and types, so that the e-graph sees integers only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genrw.engine.ir.nodes import Attributes
from genrw.engine.ir.types import Type

CONTEXT_SHIFT = 32
CONTEXT_MASK = -(1 << CONTEXT_SHIFT)


def attributes_key(attributes: Attributes) -> tuple[Any, ...]:
    """A key that tells 1, 1.0 and true apart, as Python's own equality does not."""
    return tuple([(k, type(v), repr(v) if isinstance(v, float) else v) for k, v in attributes])


class Interner:
    """Numbers attributes and types of one e-graph run.

    An attribute id holds the number of the kernel's context above its low 32 bits, so equal terms of two kernels never
    merge, and every rule can reach its kernel's target, schedule and space from any node. Attributes that are empty
    have 0 there. Contexts are counted from `first` on, so that nothing is equal to what an e-graph had before.
    """

    def __init__(self, contexts: list[Mapping[str, Any]], first: int = 0) -> None:
        self.contexts, self.first = contexts, first
        self._attribute_ids: dict[tuple[int, Any], int] = {}
        self._attributes: dict[int, Attributes] = {}
        self._type_ids: dict[Type, int] = {}
        self.types: list[Type] = []
        self.inferred: dict[Any, Type] = {}

    def attributes_id(self, context: int, attributes: Attributes) -> int:
        """The number of an operation's attributes in the kernel of a context, one of `contexts`."""
        start = self.first + context << CONTEXT_SHIFT
        if not attributes:
            return start
        key = (context, attributes_key(attributes))
        number = self._attribute_ids.get(key)
        if number is None:
            number = start + len(self._attribute_ids) + 1
            self._attribute_ids[key] = number
            self._attributes[number] = attributes
        return number

    def attributes(self, number: int) -> Attributes:
        return self._attributes.get(number, ())

    def context(self, number: int) -> Mapping[str, Any]:
        """The context of the kernel whose node has this attribute id."""
        return self.contexts[self.place(number)]

    def place(self, number: int) -> int:
        """Which of the contexts that is."""
        return (number >> CONTEXT_SHIFT) - self.first

    def type_id(self, type_: Type) -> int:
        number = self._type_ids.get(type_)
        if number is None:
            number = self._type_ids[type_] = len(self.types)
            self.types.append(type_)
        return number
