"""A program loaded on a GPU to be timed: rotating inputs, poisoned results that are checked, captured launches."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from genrw.api import load
from genrw.codegen.hip.printer import Argument
from genrw.codegen.runtime.array_layout import Array, from_memory, memory_size, to_memory
from genrw.codegen.runtime.gpu import GpuKernel, compiled, load_kernel
from genrw.codegen.runtime.gpu_memory import Memory
from genrw.codegen.runtime.gpu_runtime import GpuRuntime
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.types import Type
from genrw.engine.programs.launches import INPUT, SCRATCH, MemorySlot
from genrw.program import Program
from genrw.reference import Reference

_POISON = 0xFF
_ROTATED_BYTES = 1 << 29
"""What the rotating inputs and results take together, at least: several times any GPU's cache."""
_MOST_SETS = 16
_GRAPH_RUNS = 20
_READY_RUNS = 5


class GpuCase:
    """A program loaded on a GPU with rotating sets of memories: inputs, results and what lies between."""

    def __init__(
        self,
        runtime: GpuRuntime,
        program: Program,
        name: str,
        seed: int = 0,
        inputs: Mapping[str, Array] | None = None,
    ) -> None:
        self.runtime, self.name = runtime, name
        self.use(program)
        self.inputs = random_inputs(program.origin[0], program.library, seed) if inputs is None else inputs
        self.arguments = self._arguments()
        self.tensors = self.program.tensors(self.launches)
        self.sets = [self._set()]
        self.sets += [self._copied_set() for _ in range(1, self._set_count())]

    def use(self, program: Program) -> None:
        """Take other kernels for the same work: the program under other options."""
        prepared, self.kernels = GpuKernel.load_all(self.runtime, program)
        self.program = replace(program, options=prepared.options)
        self.launches = self.program.launches()

    def _arguments(self) -> dict[MemorySlot, Argument]:
        """An argument for each place that kernels read or write."""
        return {
            step.places[a.parameter]: a
            for step in self.launches.steps
            for a in self.kernels[step.kernel].source.arguments
        }

    @property
    def bytes(self) -> int:
        """The bytes that must be moved at least: inputs and results."""
        moved = (a for place, a in self.arguments.items() if place.kind != SCRATCH)
        return sum(_size(a.dtype, a.lens, a.strides) for a in moved)

    def _set_count(self) -> int:
        return max(2, min(_MOST_SETS, math.ceil(_ROTATED_BYTES / max(self.bytes, 1))))

    def _set(self) -> dict[MemorySlot, Memory]:
        names = list(self.program.inputs)
        memories = {}
        for place in self.arguments:
            memories[place] = Memory(self.runtime, self._place_size(place))
            if place.kind == INPUT:
                flat = to_memory(self.inputs[names[place.number]], self.tensors[place].layout)
                self.runtime.write(memories[place].pointer, flat, 0)
        return memories

    def _copied_set(self) -> dict[MemorySlot, Memory]:
        """Another set with the first one's inputs, copied on the GPU. What kernels hand on lies in the same memory in each
        call."""
        memories = {}
        for place in self.arguments:
            if place.kind == SCRATCH:
                memories[place] = self.sets[0][place]
                continue
            size = self._place_size(place)
            memories[place] = Memory(self.runtime, size)
            if place.kind == INPUT:
                self.runtime.copy(memories[place].pointer, self.sets[0][place].pointer, size, 0)
        return memories

    def _place_size(self, place: MemorySlot) -> int:
        """The bytes of the memory at a place."""
        if place.kind == SCRATCH:
            return self.launches.scratch[place.number]
        tensor = self.tensors[place]
        return _size(tensor.dtype, tensor.lens, tensor.layout)

    def launch(self, memories: Mapping[MemorySlot, Memory], stream: int) -> None:
        """Start all kernels on a set of memories."""
        for step in self.launches.steps:
            kernel = self.kernels[step.kernel]
            kernel.launch([memories[step.places[a.parameter]].pointer for a in kernel.source.arguments], stream)

    def results(self) -> dict[str, Array]:
        """What the kernels write into poisoned memory."""
        first = self.sets[0]
        for place in dict.fromkeys(self.launches.result_places):
            self.runtime.fill(first[place].pointer, _POISON, self._place_size(place), 0)
        self.launch(first, 0)
        self.runtime.synchronize(0)
        found = [self._read(first[place], self.tensors[place]) for place in self.launches.result_places]
        return dict(zip(self.program.results, found, strict=True))

    def check(self) -> str | None:
        """What is wrong with the results; None if they are right."""
        return self._reference.first_problem(self.results())

    def _read(self, memory: Memory, type_: Type) -> Array:
        """A result that kernels wrote."""
        flat = np.empty(memory_size(type_.lens, type_.layout), numpy_dtype(type_.dtype))
        self.runtime.read(flat, memory.pointer, 0)
        return from_memory(flat, type_.lens, type_.layout)

    @cached_property
    def _reference(self) -> Reference:
        return Reference(self.program, self.inputs)

    @property
    def schedules(self) -> list[dict[str, Any]]:
        """What was chosen for each kernel."""
        return [dict(k.schedule) for unit in self.program.lower("schedule").units for k in unit.kernels]

    def times(self, count: int) -> list[float]:
        """Times of one launch, from `count` graphs of several launches each."""

        def launches(stream: int) -> None:
            for i in range(_GRAPH_RUNS):
                self.launch(self.sets[i % len(self.sets)], stream)

        graph = self.runtime.captured(launches)
        return [t / _GRAPH_RUNS for t in self.runtime.times(graph, count + 1)[1:]]

    def ready(self) -> float:
        """Milliseconds from text to a loaded kernel that no cache holds: the median of several programs alike."""
        taken = []
        for i in range(_READY_RUNS):
            text = self.program.text.replace("@return", f"# {i}\n@return")
            started = time.perf_counter()
            program = load(_renamed(text, i), target=self.runtime.arch)
            sources = program.kernels()
            for source, image in zip(sources, compiled(self.runtime, program, sources), strict=True):
                load_kernel(self.runtime, source, image)
            taken.append(1e3 * (time.perf_counter() - started))
        return statistics.median(taken)


def _renamed(text: str, number: int) -> str:
    """The program under other names, so that nothing remembers it."""
    return f"@module fresh{number}\n{text}"


def _size(dtype: str, lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The bytes of memory that a tensor reaches over."""
    return memory_size(lens, strides) * DTYPES[dtype].itemsize
