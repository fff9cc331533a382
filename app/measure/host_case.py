"""A kernel on the CPU to be timed: random inputs, poisoned results that are checked, launches after one another."""

from __future__ import annotations

import time
from functools import cached_property

from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.engine.interpret.compare import first_problem
from genrw.engine.interpret.inputs import random_inputs
from genrw.program import Program
from genrw.runner import reference_run


class HostCase:
    """A program of one kernel, compiled for the CPU. It never changes its inputs, so that launches can be repeated."""

    def __init__(self, program: Program, name: str, seed: int = 0) -> None:
        self.name = name
        self.inputs = random_inputs(program.origin[0], program.library, seed)
        self.use(program)

    def use(self, program: Program) -> None:
        """Take another kernel for the same work: the program under other options."""
        self.program = program
        (source,) = program.kernels()
        self.kernel = HostProgram.compile(source)
        self.arguments = self.kernel.arguments(self.inputs)

    @cached_property
    def _wanted(self) -> list[Array]:
        """The results in higher precision."""
        return list(reference_run(self.program)(self.inputs, precise=True).values())

    def check(self) -> str | None:
        """What is wrong with the results; None if they are right."""
        results = HostSequence([self.kernel], self.program)(self.inputs)
        pairs = zip(results.items(), self._wanted, strict=True)
        return first_problem((name, got, want, self.program.results[name].type.dtype) for (name, got), want in pairs)

    def times(self, count: int) -> list[float]:
        """Microseconds of launches, the first of which is left out."""
        taken = []
        for _ in range(count + 1):
            started = time.perf_counter()
            self.kernel.launch(self.arguments)
            taken.append(1e6 * (time.perf_counter() - started))
        return taken[1:]
