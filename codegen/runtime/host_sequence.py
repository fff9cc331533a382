"""Programs of one or more kernels on the CPU: launched in order, on memory that is planned before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from genrw.codegen.hip.printer import Argument
from genrw.codegen.runtime.array_layout import (
    Array,
    check_array,
    from_memory,
    memory_size,
    missing_input,
    to_memory,
    unwritten,
)
from genrw.codegen.runtime.given import given_inputs
from genrw.codegen.runtime.host_program import HostProgram
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.programs.launches import INPUT, SCRATCH, MemorySlot
from genrw.grammar.diagnostics import error

if TYPE_CHECKING:
    from genrw.codegen.runtime.isolated import Guard


class HostSequence:
    """A program's kernels compiled for the CPU. Called on arrays by name it gives the results by name.

    Each call has memory of its own for results and scratch, filled with a pattern that shows where nothing was written
    unless `poison` is false.
    """

    def __init__(self, kernels: Sequence[HostProgram], program: StagedProgram) -> None:
        self.kernels, self.program = kernels, program
        self.launches = program.launches()

    def __call__(
        self,
        inputs: Mapping[str, object],
        *,
        threads: int | None = None,
        order: int = 0,
        poison: bool = True,
        guard: Guard | None = None,
    ) -> dict[str, Array]:
        _check_number("threads", threads, 1)
        _check_number("order", order, 0)
        given = given_inputs(self.program, inputs)
        memory = _Memory(self._inputs(given), self.launches.scratch, poison, guard)
        for step in self.launches.steps:
            kernel = self.kernels[step.kernel]
            if guard is not None:
                guard.begin(kernel.source.name)
            arguments = [memory.of(step.places[a.parameter], a) for a in kernel.source.arguments]
            kernel.launch(arguments, threads=threads, order=order)
        results = [memory.results[number] for number in self.launches.results]
        return dict(zip(self.program.results, results, strict=True))

    def repeatable(self, inputs: Mapping[str, object]) -> Callable[[], None]:
        """What launches all kernels on memory that stays, for measurements: a call allocates nothing."""
        launches = self._launches(inputs)

        def run() -> None:
            for launch in launches:
                launch()

        return run

    def launch_times(self, inputs: Mapping[str, object], passes: int) -> list[list[float]]:
        """The microseconds of each launch, in each of so many calls behind a first one."""
        launches = self._launches(inputs)
        times: list[list[float]] = [[] for _ in launches]
        for _ in range(passes + 1):
            for launch, taken in zip(launches, times, strict=True):
                begun = time.perf_counter()
                launch()
                taken.append(1e6 * (time.perf_counter() - begun))
        return [taken[1:] for taken in times]

    def _launches(self, inputs: Mapping[str, object]) -> list[Callable[[], None]]:
        """All launches, on memory that stays."""
        memory = _Memory(self._inputs(given_inputs(self.program, inputs)), self.launches.scratch, poison=False)
        kernels = [(step, self.kernels[step.kernel]) for step in self.launches.steps]
        return [
            partial(kernel.launch, [memory.of(step.places[a.parameter], a) for a in kernel.source.arguments])
            for step, kernel in kernels
        ]

    def _inputs(self, inputs: Mapping[str, object]) -> list[Array]:
        """The memory of each input, in order."""
        memories = []
        for name, parameter in self.program.inputs.items():
            if name not in inputs:
                raise missing_input(name)
            type_ = parameter.type
            array = check_array(name, inputs[name], type_.dtype, type_.lens, type_.layout)
            memories.append(to_memory(array, type_.layout))
        return memories


def _check_number(setting: str, value: object, least: int) -> None:
    """GenrwError for a setting that is no number of 32 bits; None says nothing."""
    if value is not None and not (isinstance(value, int | np.integer) and least <= value < 1 << 32):
        raise error(f"`{setting}` is {value!r}", remedy=f"give a whole number of {least} or more, below 2^32")


class _Memory:
    """What the parameters of all launches of one call stand for."""

    def __init__(
        self, inputs: Sequence[Array], scratch: Sequence[int], poison: bool, guard: Guard | None = None
    ) -> None:
        self.poison, self.guard = poison, guard
        self.inputs = list(inputs)
        self.guarded: dict[MemorySlot, int] = {}
        self.scratch = [unwritten("uint8", size, poison) for size in scratch]
        self.parts: dict[int, Array] = {}
        self.results: dict[int, Array] = {}
        self.written: dict[int, Array] = {}

    def of(self, place: MemorySlot, argument: Argument) -> Any:
        """The flat memory of an argument. Scratch is guarded anew for each value of another size that lies in it."""
        memory = self._memory(place, argument)
        if self.guard is None or self.guarded.get(place) == memory.nbytes:
            return memory
        self.guarded[place] = memory.nbytes
        self._replace(place, self.guard.array(memory, argument.parameter), argument)
        return self._memory(place, argument)

    def _replace(self, place: MemorySlot, memory: Array, argument: Argument) -> None:
        if place.kind == INPUT:
            self.inputs[place.number] = memory
        elif place.kind == SCRATCH:
            self.parts[place.number] = memory.view(np.uint8)
        else:
            self.written[place.number] = memory
            self.results[place.number] = from_memory(memory, argument.lens, argument.strides)

    def _memory(self, place: MemorySlot, argument: Argument) -> Any:
        if place.kind == INPUT:
            return self.inputs[place.number]
        size = memory_size(argument.lens, argument.strides)
        if place.kind == SCRATCH:
            dtype = np.dtype(numpy_dtype(argument.dtype))
            return self._scratch(place.number, size * dtype.itemsize).view(dtype)
        if place.number not in self.written:
            memory = self.written[place.number] = unwritten(argument.dtype, size, self.poison)
            self.results[place.number] = from_memory(memory, argument.lens, argument.strides)
        return self.written[place.number]

    def _scratch(self, number: int, size: int) -> Array:
        """So many bytes of scratch: the part that is guarded, if that is as long."""
        part = self.parts.get(number)
        if part is not None and part.nbytes == size:
            return part
        if part is not None:
            self.scratch[number][: part.nbytes] = part
        return self.scratch[number][:size]
