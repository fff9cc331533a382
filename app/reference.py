"""What a program's results are to be, and what is wrong with results that are not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.devices import find_device
from genrw.engine.interpret.compare import compare, nearer
from genrw.program import Program


class Reference:
    """A program as it was loaded, evaluated in double on given inputs.

    Rounding decides which of two almost equal elements is an argmax. So an element of a result may also be what the program
    gives in its own types, which is evaluated only if a result differs.
    """

    def __init__(self, program: Program, inputs: Mapping[str, Array]) -> None:
        self.program, self.inputs = program, inputs

    @cached_property
    def wanted(self) -> dict[str, Array]:
        """The results in double."""
        return self._evaluate(precise=True)

    @cached_property
    def _rounded(self) -> dict[str, Array]:
        return self._evaluate(precise=False)

    def _evaluate(self, precise: bool) -> dict[str, Array]:
        loaded = self.program.with_units(self.program.origin)
        return dict(find_device("interpret").prepare(loaded)(self.inputs, precise=precise))

    def judge(self, name: str, got: Array) -> tuple[Array, str | None]:
        """What a result is to be, and what is wrong with it; None if it is right."""
        want, types = self.wanted[name], self.program.computed_in[name]
        problem = compare(got, want, *types)
        if problem is None or got.shape != want.shape:
            return want, problem
        want = nearer(got, want, self._rounded[name])
        return want, compare(got, want, *types)

    def first_problem(self, results: Mapping[str, Array]) -> str | None:
        """What is wrong with the first wrong one of results; None if they are right."""
        for name, got in results.items():
            _, problem = self.judge(name, got)
            if problem:
                return f"{name} {problem}"
        return None
