"""Do the `emit` texts of pointwise operators compute what these mean? Each stands in kernels of its own, which run on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.codegen.runtime.isolated import run_apart
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Module, Node, Unit
from genrw.engine.ir.types import EFFECT, Type
from genrw.engine.language.arrays import Values
from genrw.engine.language.emit_text import names_in_emit_text
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.variants import pattern_operators
from genrw.engine.lowering.options import Options
from genrw.engine.programs.build import input_node
from genrw.engine.programs.typings import Typing, typings
from genrw.engine.verify.elements import POINTS, Elements, WrongElement
from genrw.engine.verify.verdict import OPEN, Verdict, of_elements
from genrw.engine.verify.verdict import Options as Trials
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import OpDecl, OpPattern, RuleDecl
from genrw.grammar.source import Source
from genrw.program import Program

_RESULT = "result"
_MOVED, _OFF = 8, 16
"""How often roundings are drawn, and how many times as much as they change at most a text may be off."""
_OF_THE_MACHINE = ("target", "block")
"""What a text may name that differs from target to target."""


def has_text(op: OpDecl) -> bool:
    """Is there a text that stands for what the operator means at an element? What is made of accumulators has no elements."""
    return op.role == "pointwise" and op.emit is not None and all(a.type != "monoid" for a in op.attributes)


def verify_text(library: Library, op: OpDecl, options: Trials, seconds: float, *, trusted: bool) -> Verdict:
    """Look at one operator: does its text compute what it means, as near as it says?"""
    try:
        tried = try_text(library, op, options.count, f"{options.seed}/{op.name}", seconds, trusted=trusted)
    except GenrwError as problem:
        return not_tried(op, problem)
    remedy = "mend the text, say how near it is: `within …`, or for which numbers it is: `domain …`"
    return of_elements(op, "text", *tried, remedy)


def not_tried(op: OpDecl, problem: GenrwError) -> Verdict:
    """What is said of a text that cannot be compiled, or that ends in an error."""
    said = problem.diagnostics[0]
    message = f"the text of `{op.name}` was not tried: {said.message}"
    return Verdict(op, OPEN, problem=Diagnostic(message, said.span or op.name_span, said.remedy))


def try_text(
    library: Library, op: OpDecl, count: int, seed: str, seconds: float, *, trusted: bool
) -> tuple[int, WrongElement | None]:
    """How many elements held, and the first that does not. GenrwError where the text cannot be compiled or run here."""
    alone = _printed_alone(library, op)
    with np.errstate(all="ignore"):
        trials = [
            _Trial(alone, alone.operators[op.name].decl, typing, f"{seed}/{number}", count * POINTS, trusted=trusted)
            for number, typing in enumerate(_tried(library, op))
        ]
    kernels = [kernel for trial in trials for kernel in trial.program.kernels()]
    compared = 0
    for trial, kernel in zip(trials, HostProgram.compile_all(kernels), strict=True):
        wrong = trial.compare(kernel, seconds)
        compared += len(trial.given[0])
        if wrong is not None:
            return compared, wrong
    return compared, None


def _tried(library: Library, op: OpDecl) -> Iterator[Typing]:
    """Types and attributes, on one target if the text is the same on all."""
    of_all = any(name in _OF_THE_MACHINE for name in names_in_emit_text(op))
    known = set()
    for typing in typings(library, op):
        key = typing.types, typing.attributes, typing.context["target"].name if of_all else ""
        if key not in known and typing.types:
            known.add(key)
            yield typing


def _printed_alone(library: Library, op: OpDecl) -> Library:
    """The library with an operator that stays what it is up to the last stage, whatever rules there are for it."""
    bare = replace(op, stages=(), definitions=())
    rules = tuple(rule for rule in library.rules if not _is_of(rule, op, library))
    operators = {**library.operators, op.name: Operator(bare, library.operators[op.name].scope)}
    return replace(library, operators=operators, rules=rules, _found={})


def _is_of(rule: RuleDecl, op: OpDecl, library: Library) -> bool:
    """Does a rule make something else of an operator?"""
    return isinstance(rule.left, OpPattern) and op.name in pattern_operators(rule.left, rule, library)


class _Trial(Elements):
    """A kernel that computes nothing but the operator, for operands of given types."""

    def __init__(self, library: Library, op: OpDecl, typing: Typing, seed: str, count: int, *, trusted: bool) -> None:
        super().__init__(library, op, typing, seed)
        self.given = self.operands(count)
        source = Source(f"<{op.name}>", "")
        options = Options(target=typing.context["target"].name)
        units = (Unit((self._module(self.given[0].shape),)),)
        self.program = Program(units, library, options, source, units, trusted=trusted)

    def _module(self, lens: tuple[int, ...]) -> Module:
        """The operator over tensors."""
        named = zip(self.parameters, self.typing.types, strict=True)
        tensors = tuple(input_node(self.library, p.name or "", Type("tensor", dtype, lens)) for p, dtype in named)
        value = Node(self.op.name, self.typing.attributes, tensors, Type("tensor", self.typing.result, lens))
        ending = Node(self.library.boundary("result").name, (), (value,), EFFECT)
        return Module(self.op.name, ending, tensors, results=(_RESULT,))

    def compare(self, kernel: HostProgram, seconds: float) -> WrongElement | None:
        """The first element that the kernel makes another than the operator means."""
        inputs = {p.name or "": values for p, values in zip(self.parameters, self.given, strict=True)}
        (got,) = run_apart(HostSequence([kernel], self.program), inputs, seconds)[0].values()
        want = self.meant(self.given)
        with np.errstate(all="ignore"):
            right = self.same(got, want) | self.same(got, self.computed(self.given)) | self._within_roundings(got, want)
        return self.wrong("the text", self.given, got, want, right)

    def _within_roundings(self, got: Values, want: Values) -> Values:
        """Where the text is off by no more than roundings of the operands, and of what is made of them, change: what is nearly 0
        may be far off."""
        if not DTYPES[self.typing.result].is_float:
            return np.zeros(got.shape, np.bool_)
        off = np.zeros(got.shape)
        for _ in range(_MOVED):
            moved = [self._moved(v, t) for v, t in self.typed(self.given)]
            rounded = [v.astype(numpy_dtype(t)) for v, t in self.typed(moved)]
            for other in (self.meant(moved), self.computed(rounded)):
                apart = np.abs(other.astype(np.float64) - want)
                off = np.maximum(off, np.where(np.isfinite(apart), apart, 0))
        return np.asarray(np.abs(got.astype(np.float64) - want) <= _OFF * off)

    def _moved(self, values: Values, dtype: str) -> Values:
        """Numbers that are off by roundings."""
        if not DTYPES[dtype].is_float:
            return values
        return np.asarray(values * (1 + DTYPES[dtype].epsilon * self.rng.uniform(-1, 1, values.shape)))
