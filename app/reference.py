"""What a program's results are to be, and what is wrong with results that are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial

from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.interpreted import results_of
from genrw.engine.interpret.compare import compare, count_wrong, nearer
from genrw.engine.interpret.either_way import EitherWay
from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.ir.dtypes import DTYPES
from genrw.program import Program

_WAYS, _MOST_WAYS = 8, 64
"""How often roundings are drawn. Of two elements that are equal but for one rounding, each is found with 15 of 16 draws of
those that store all that the program writes, which are every other one. Where there are thousands of such choices, or many
elements in one, each draw leaves fewer elements wrong, and others follow until several in turn leave as many."""


class Reference:
    """A program as it was loaded, evaluated in double on given inputs.

    Rounding decides which of two almost equal elements is an argmax. So an element of a result may also be what the program
    gives in its own types, or where roundings go the other way; these are evaluated only if a result differs.
    """

    def __init__(self, program: Program, inputs: Mapping[str, Array]) -> None:
        self.program, self.inputs = program, inputs
        self._others: list[dict[str, Array]] = []

    @cached_property
    def wanted(self) -> dict[str, Array]:
        """The results in double."""
        return results_of(self._loaded, self.inputs, precise=True)

    @cached_property
    def _loaded(self) -> Program:
        return self.program.with_units(self.program.origin)

    def _roundings(self) -> Iterator[dict[str, Array]]:
        """What the program may give as well; the first of these are kept."""
        yield from self._others
        for number in range(len(self._others), 1 + _MOST_WAYS):
            precise, evaluator = (False, Evaluator) if not number else (True, partial(EitherWay, seed=number))
            found = results_of(self._loaded, self.inputs, precise=precise, evaluator=evaluator)
            if number <= _WAYS:
                self._others.append(found)
            yield found

    def judge(self, name: str, got: Array) -> tuple[Array, str | None]:
        """What a result is to be, and what is wrong with it; None if it is right."""
        want, types = self.wanted[name], self.program.computed_in[name]
        problem = compare(got, want, *types)
        if problem is None or got.shape != want.shape:
            return want, problem
        fewest, in_vain = got.size + 1, 0
        own, _, said = types
        # An operator that says how near it is may give all that is as near.
        between = said > 0 and DTYPES[own].is_float
        for other in self._roundings():
            want = nearer(got, want, other[name], between=between)
            problem = compare(got, want, *types)
            wrong = count_wrong(got, want, *types)
            in_vain = 0 if wrong < fewest else in_vain + 1
            fewest = min(fewest, wrong)
            if problem is None or in_vain == _WAYS:
                break
        return want, problem

    def first_problem(self, results: Mapping[str, Array]) -> str | None:
        """What is wrong with the first wrong one of results; None if they are right."""
        for name, got in results.items():
            _, problem = self.judge(name, got)
            if problem:
                return f"{name} {problem}"
        return None
