"""Memory as lanes see it: flat, laid out as a tensor's strides say, and watched while a program runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genrw.engine.ir.nodes import Node
from genrw.engine.ir.types import Type, packed_strides
from genrw.engine.language.arrays import Values
from genrw.engine.language.functions import Misuse, shown

MISSING = -1
"""The index of an element that does not exist."""


@dataclass(frozen=True, eq=False)
class Memory:
    """A tensor's memory, or workgroup memory.

    `origin` is the lowest offset, which `values` begins with; `written` what was written, None for inputs. Of
    workgroup memory there is one for each of `groups` workgroups, one behind the other; if a loop fills it, one for each of
    its `steps`.
    """

    name: str
    type: Type
    values: Values
    origin: int
    written: Values | None = None
    groups: int | None = None
    steps: int = 1

    described_as = "a tensor in memory"

    @classmethod
    def holding(cls, name: str, type_: Type, elements: Values) -> Memory:
        """A tensor that can be read; what lies between its elements is poison."""
        memory = cls._empty(name, type_, elements.dtype, False)
        _by_element(memory.values, memory)[...] = elements.reshape(type_.lens)
        return memory

    @classmethod
    def unwritten(cls, name: str, type_: Type, numpy_type: np.dtype[Any]) -> Memory:
        """A tensor that is to be written."""
        return cls._empty(name, type_, numpy_type, True)

    @classmethod
    def of_groups(cls, name: str, type_: Type, numpy_type: np.dtype[Any], groups: int, steps: int = 1) -> Memory:
        """Memory that each of some workgroups has for itself, as if each step of a loop had its own."""
        return cls._empty(name, type_, numpy_type, True, groups, steps)

    @classmethod
    def _empty(
        cls, name: str, type_: Type, numpy_type: np.dtype[Any], output: bool, groups: int | None = None, steps: int = 1
    ) -> Memory:
        origin, size = extent(type_)
        size *= 1 if groups is None else groups * steps
        values = np.full(size, poison(numpy_type), numpy_type)
        return cls(name, type_, values, origin, np.zeros(size, np.bool_) if output else None, groups, steps)

    def seen_as(self, type_: Type, offset: int) -> Memory:
        """The same memory as a tensor of another type, which begins at an offset."""
        return replace(self, type=type_, origin=self.origin - offset)

    @property
    def length(self) -> int:
        """How many elements a lane can address."""
        return len(self.values) // ((self.groups or 1) * self.steps)

    def member(self, name: str) -> object:
        """What expressions may ask of a tensor."""
        return self.type.member(name)

    def offsets(self, indices: Values) -> Values:
        """The offsets of elements counted along the rows, of those that exist; others keep their index."""
        if self.type.strides is None or not self.type.elements:
            return indices
        outside = (indices < 0) | (indices >= self.type.elements)
        places = np.where(outside, 0, indices)
        packed = zip(packed_strides(self.type.lens), self.type.lens, self.type.layout, strict=True)
        # not by np.unravel_index: numpy 2.4 gets arrays of several axes and more than 8192 elements wrong
        offsets = sum((places // step % n * stride for step, n, stride in packed), np.zeros_like(indices))
        # an index out of range becomes an offset out of range
        beyond = np.where(indices < 0, indices + self.origin, indices + self.length)
        return np.where(outside, beyond, offsets)

    def read(self, offsets: Values, where: Values | None, count_from: Sequence[int]) -> Values:
        """The values at offsets, poison where not `where`; Misuse if one lies outside or is not written."""
        places = self._places(offsets, where, "reads", count_from)
        if not self.values.size:
            return np.full(places.shape, poison(self.values.dtype), self.values.dtype)
        if self.written is not None and not np.all(_chosen(self.written[places], where)):
            raise Misuse(f"reads an element of {self.name} that was not written yet")
        values = self.values[places]
        return values if where is None else np.where(where, values, poison(values.dtype))

    def write(self, offsets: Values, values: Values, where: Values | None, count_from: Sequence[int]) -> None:
        """Values put at offsets; Misuse if one lies outside, or two that differ meet at one place."""
        if self.written is None:
            raise Misuse(f"writes to {self.name}, which is an input")
        groups = np.zeros((self.groups or 1, 1, self.steps, 1))
        everywhere = np.asarray(True)
        offsets, values, chosen, _ = np.broadcast_arrays(
            offsets, values, everywhere if where is None else where, groups
        )
        places = self._places(offsets, chosen, "writes", count_from)[chosen]
        values = values[chosen].astype(self.values.dtype, copy=False)
        old = self.written[places]
        clash = old & ~_same(self.values[places], values)
        self.values[places] = values
        self.written[places] = True
        clash |= ~_same(self.values[places], values)
        if np.any(clash):
            place = int(places[np.argmax(clash)]) % self.length + self.origin
            raise Misuse(f"writes different values to offset {place} of {self.name}")

    def _places(self, offsets: Values, where: Values | None, verb: str, count_from: Sequence[int]) -> Values:
        """Offsets as places in the flat array, 0 where not `where`."""
        places = offsets - self.origin
        bad = (places < 0) | (places >= self.length)
        if where is not None:
            bad = bad & where
        if np.any(bad):
            first = np.unravel_index(int(np.argmax(bad)), bad.shape)
            offset = int(np.broadcast_to(offsets, bad.shape)[first])
            lane = [int(p) + c for p, c in zip(first, count_from, strict=True)]
            raise Misuse(
                f"{verb} offset {offset} of {self.name}, outside its memory, "
                f"in group {lane[0]}, lane {lane[1]}, step {lane[2]}, element {lane[3]} of the share"
            )
        places = places if where is None else np.where(where, places, 0)
        if self.groups is None:
            return places
        own = np.arange(self.groups * self.steps).reshape(-1, 1, self.steps, 1)
        return places + own * self.length

    def elements(self) -> Values:
        """The tensor; Misuse if some of its elements were never written."""
        if self.written is not None:
            unwritten = ~_by_element(self.written, self)
            if np.any(unwritten):
                first = np.unravel_index(int(np.argmax(unwritten)), unwritten.shape)
                raise Misuse(
                    f"leaves {int(np.sum(unwritten))} of {unwritten.size} elements of {self.name} unwritten, "
                    f"the first at {shown(first)}"
                )
        return _by_element(self.values, self).copy()


def read_as(elements: Values, declared: Type, type_: Type) -> Values:
    """The elements of a type in the memory of a tensor that was declared with another one."""
    if type_ == declared:
        return elements
    memory = Memory.holding("", declared, elements)
    return _by_element(memory.values, Memory("", type_, memory.values, memory.origin)).copy()


def inputs_read_as(
    parameters: Iterable[Node], inputs: Mapping[str, Values], declared: Mapping[str, Type]
) -> dict[str, Values]:
    """Of inputs by name, those that there are parameters for, as these read the memory of the declared tensors."""
    types = {p.attribute("name"): p.type for p in parameters}
    return {name: read_as(array, declared[name], types[name]) for name, array in inputs.items() if name in types}


def extent(type_: Type) -> tuple[int, int]:
    """The lowest offset of a tensor's elements, and the length of the memory from there on."""
    if not type_.elements:
        return 0, 0
    spans = [(length - 1) * stride for length, stride in zip(type_.lens, type_.layout, strict=True)]
    low = sum(min(span, 0) for span in spans)
    return low, sum(max(span, 0) for span in spans) - low + 1


def poison(numpy_type: np.dtype[Any]) -> Any:
    """A value that shows in results where it should not have been used."""
    kind = np.dtype(numpy_type).kind
    if kind == "b":
        return True
    return numpy_type.type(np.iinfo(numpy_type).max if kind == "u" else -1 if kind == "i" else np.nan)


def _by_element(flat: Values, memory: Memory) -> Values:
    """A view of flat memory with the tensor's shape."""
    if not flat.size:
        return flat.reshape(memory.type.lens)
    strides = tuple(s * flat.itemsize for s in memory.type.layout)
    view: Values = np.lib.stride_tricks.as_strided(flat[-memory.origin :], memory.type.lens, strides)
    return view


def _chosen(values: Values, where: Values | None) -> Values:
    return values if where is None else values | ~where


def _same(a: Values, b: Values) -> Values:
    same: Values = (a == b) | ((a != a) & (b != b))
    return same
