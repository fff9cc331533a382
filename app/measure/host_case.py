"""A program on the CPU to be timed: random inputs, poisoned results that are checked, launches after one another."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.engine.interpret.inputs import random_inputs
from genrw.program import Program
from genrw.reference import Reference


class HostCase:
    """A program compiled for the CPU. It never changes its inputs, so that launches can be repeated."""

    def __init__(self, program: Program, name: str, seed: int = 0, inputs: Mapping[str, Array] | None = None) -> None:
        self.name = name
        self.inputs = random_inputs(program.origin[0], program.library, seed) if inputs is None else inputs
        self.use(program)

    def use(self, program: Program) -> None:
        """Take other kernels for the same work: the program under other options."""
        self.program = program
        self.sequence = HostSequence(HostProgram.compile_all(program.kernels()), program)
        self.run = self.sequence.repeatable(self.inputs)

    @cached_property
    def reference(self) -> Reference:
        """What its results are to be."""
        return Reference(self.program, self.inputs)

    def results(self) -> dict[str, Array]:
        """What the kernels write into poisoned memory."""
        return self.sequence(self.inputs)

    def check(self) -> str | None:
        """What is wrong with the results; None if they are right."""
        return self.reference.first_problem(self.results())

    @property
    def schedules(self) -> list[dict[str, Any]]:
        """What was chosen for each kernel."""
        return [dict(k.schedule) for unit in self.program.lower("schedule").units for k in unit.kernels]

    def times(self, count: int) -> list[float]:
        """Microseconds of launches, the first of which is left out."""
        taken = []
        for _ in range(count + 1):
            started = time.perf_counter()
            self.run()
            taken.append(1e6 * (time.perf_counter() - started))
        return taken[1:]
