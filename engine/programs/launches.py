"""A program's kernels in launch order: which memory each of their parameters stands for, and how scratch is reused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Main, Module, Node, Unit
from genrw.engine.ir.types import Type
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import element_type
from genrw.engine.programs.signature import given_parameters, results, written_parameters

INPUT, RESULT, SCRATCH = "input", "result", "scratch"

_ALIGNMENT = 256
"""Bytes: scratch buffers are of whole multiples, so that any of them serves any type."""


@dataclass(frozen=True)
class MemorySlot:
    """Memory that a kernel's parameter stands for: an input or a result, by its number, or a scratch buffer."""

    kind: str
    number: int


@dataclass(frozen=True)
class KernelLaunch:
    """One launch: the kernel's number, and the places of its parameters by name, those it writes last."""

    kernel: int
    places: Mapping[str, MemorySlot]


@dataclass(frozen=True)
class LaunchPlan:
    """All launches in order. `scratch` are the sizes of the scratch buffers in bytes.

    `results` says, for each value that the program returns, which of the results its memory is: itself, or an earlier
    one that is the same value.
    """

    steps: tuple[KernelLaunch, ...]
    scratch: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def result_places(self) -> tuple[MemorySlot, ...]:
        """Where each value lies that the program returns."""
        return tuple(MemorySlot(RESULT, number) for number in self.results)


def launches(units: Sequence[Unit], inputs: Sequence[str], library: Library) -> LaunchPlan:
    """How the kernels of programs are launched one after the other, on inputs by name."""
    gatherer = _Gatherer(inputs, library)
    for unit in units:
        gatherer.add(unit)
    return LaunchPlan(tuple(gatherer.steps), tuple(gatherer.scratch), tuple(gatherer.results))


class _Gatherer:
    def __init__(self, inputs: Sequence[str], library: Library) -> None:
        self.inputs = {name: MemorySlot(INPUT, number) for number, name in enumerate(inputs)}
        self.library = library
        self.steps: list[KernelLaunch] = []
        self.scratch: list[int] = []
        self.results: list[int] = []
        self.kernels = 0

    def add(self, unit: Unit) -> None:
        if unit.main is None:
            self._alone(unit.kernels[0])
        else:
            self._called(unit.main, unit.kernels)
        self.kernels += len(unit.kernels)

    def _alone(self, module: Module) -> None:
        written = list(written_parameters(module, self.library))
        places = {name: self.inputs[name] for name in given_parameters(module, self.library)}
        for name in written:
            places[name] = MemorySlot(RESULT, len(self.results))
            self.results.append(len(self.results))
        self.steps.append(KernelLaunch(self.kernels, places))

    def _called(self, main: Main, kernels: Sequence[Module]) -> None:
        places = {p.name or "": self.inputs[p.attribute("name")] for p in main.parameters}
        first = len(self.results)
        for position, value in enumerate(main.returned):
            number = first + main.returned.index(value)
            self.results.append(number)
            places.setdefault(value, MemorySlot(RESULT, first + position))
        places |= self._planned(main, values_of(main, kernels, self.library), places)
        number_of = {module.name: i for i, module in enumerate(kernels)}
        for call in main.calls:
            module = kernels[number_of[call.kernel]]
            names = zip(given_parameters(module, self.library), call.operands, strict=True)
            made = zip(written_parameters(module, self.library), call.results, strict=True)
            bound = {name: places[value] for name, value in (*names, *made)}
            self.steps.append(KernelLaunch(self.kernels + number_of[call.kernel], bound))

    def _planned(
        self, main: Main, values: Mapping[str, Node], placed: Mapping[str, MemorySlot]
    ) -> dict[str, MemorySlot]:
        """A scratch buffer for each value in between: one that no value needs any more, if one is free."""
        last = {value: n for n, call in enumerate(main.calls) for value in call.operands}
        free = sorted(range(len(self.scratch)))
        found: dict[str, MemorySlot] = {}
        for n, call in enumerate(main.calls):
            for value in call.results:
                if value not in placed:
                    found[value] = MemorySlot(SCRATCH, self._taken(free, _bytes(values[value].type)))
            # What a call reads is free for the calls after it.
            ended = dict.fromkeys(v for v in (*call.operands, *call.results) if last.get(v, n) == n)
            free += [found[value].number for value in ended if value in found]
        return found

    def _taken(self, free: list[int], size: int) -> int:
        """The free buffer that fits best: the smallest that is large enough, else the largest, made larger."""
        if not free:
            self.scratch.append(size)
            return len(self.scratch) - 1
        best = min(free, key=lambda b: (self.scratch[b] < size, abs(self.scratch[b] - size), b))
        free.remove(best)
        self.scratch[best] = max(self.scratch[best], size)
        return best


def values_of(main: Main, kernels: Iterable[Module], library: Library) -> dict[str, Node]:
    """For each of a main module's values a node of its type: a parameter, or what a kernel calls it."""
    modules = {module.name: module for module in kernels}
    values = {p.name or "": p for p in main.parameters}
    for call in main.calls:
        made = (node for _, node in results(modules[call.kernel], library))
        values.update(zip(call.results, made, strict=True))
    return values


def _bytes(type_: Type) -> int:
    size = type_.elements * DTYPES[element_type(type_.dtype)].itemsize
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def returned(unit: Unit, library: Library) -> list[tuple[str, Node]]:
    """What a program returns: names, and nodes of the values' types, in order."""
    if unit.main is None:
        return results(unit.kernels[0], library)
    values = values_of(unit.main, unit.kernels, library)
    return [(name, values[value]) for name, value in zip(unit.main.results, unit.main.returned, strict=True)]


def parameters(unit: Unit, library: Library) -> dict[str, Node]:
    """The parameters that a program's caller gives, by name, in order."""
    if unit.main is None:
        return given_parameters(unit.kernels[0], library)
    return {p.attribute("name"): p for p in unit.main.parameters}
