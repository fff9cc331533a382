"""Schedules are refused whose kernels spill: what registers do not hold goes through memory, which no prediction knows of
before the kernel is compiled.

A target says how many bytes of memory a lane may take (`lane_scratch_bytes`). A kernel that takes more is compiled under
the next schedule, the cheapest that was not refused, and so on; where all of them spill, the one that spills least is
taken. What is pinned is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.hip.program import print_program
from genrw.codegen.runtime.refusals import told_at_own_texts
from genrw.engine.ir.nodes import Module
from genrw.engine.lowering.options import Preferences
from genrw.engine.lowering.program import StagedProgram

_LIMIT = "lane_scratch_bytes"
_MOST_REFUSED = 6
"""Further schedules are predicted to be so much slower that spilling is hardly worse."""

Entries = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Refusal:
    """A schedule that was not taken: the kernel's name, and the bytes of memory that each of its lanes takes."""

    kernel: str
    schedule: Entries
    scratch_bytes: int


@dataclass(frozen=True)
class Built(Generic[T]):
    """A program's kernels as they were printed and compiled, under the schedules that `program` prefers."""

    program: StagedProgram
    sources: Sequence[KernelSource]
    compiled: Sequence[T]
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class _Instead:
    """Prefers schedules by the name of a kernel; of others, what was preferred before."""

    before: Preferences | None
    schedules: Mapping[str, Entries]

    @property
    def key(self) -> Hashable:
        """What tells preferences apart."""
        chosen = tuple((name, tuple(sorted(s.items()))) for name, s in sorted(self.schedules.items()))
        return (self.before.key if self.before is not None else None, chosen)

    def schedule(self, module: Module) -> Entries | None:
        """The schedule to take for a kernel."""
        if module.name in self.schedules:
            return self.schedules[module.name]
        return self.before.schedule(module) if self.before is not None else None


def built(
    program: StagedProgram,
    compiled: Callable[[StagedProgram, Sequence[KernelSource]], Sequence[T]],
    scratch: Callable[[T, KernelSource], int],
) -> Built[T]:
    """A program's kernels, compiled, those that spill under other schedules.

    `compiled` compiles printed kernels; `scratch` gives the bytes of memory that a lane of one takes.
    """
    refused: list[Refusal] = []
    while True:
        sources = print_program(program)
        with told_at_own_texts(sources):
            images = compiled(program, sources)
        spilled = _spilled(program, [scratch(i, s) for i, s in zip(images, sources, strict=True)])
        chosen = _chosen(spilled, refused, program)
        if not chosen:
            return Built(program, sources, images, tuple(refused))
        program = _with(program, chosen)


def _spilled(program: StagedProgram, scratch: Sequence[int]) -> list[Refusal]:
    """The kernels that take more memory than the target allows, with the schedules that they have."""
    most = program.library.target(program.options.target).values.get(_LIMIT)
    if most is None or program.options.schedule:
        return []
    modules = program.lower(program.stages[-1]).modules
    return [
        Refusal(module.name, module.schedule, taken)
        for module, taken in zip(modules, scratch, strict=True)
        if taken > most
    ]


def _chosen(spilled: Sequence[Refusal], refused: list[Refusal], program: StagedProgram) -> dict[str, Entries]:
    """Other schedules for kernels that spill, by name; none for a kernel that has the best of what was refused. What is
    refused now is added to what was."""
    rated = program.lower(program.stages[-1]).trace.schedules
    chosen: dict[str, Entries] = {}
    for refusal in spilled:
        told = [r for r in refused if r.kernel == refusal.kernel]
        if any(r.schedule == refusal.schedule for r in told):
            continue
        told.append(refusal)
        known = [r.schedule for r in told]
        left = [schedule for _, schedule, _ in rated.get(refusal.kernel, ()) if schedule not in known]
        if not left and len(told) == 1:
            continue
        refused.append(refusal)
        another = left[0] if left and len(told) < _MOST_REFUSED else min(told, key=lambda r: r.scratch_bytes).schedule
        if another != refusal.schedule:
            chosen[refusal.kernel] = another
    return chosen


def _with(program: StagedProgram, chosen: Mapping[str, Entries]) -> StagedProgram:
    """The program with other schedules for some kernels."""
    before = program.options.preferences
    if isinstance(before, _Instead):
        chosen, before = {**before.schedules, **chosen}, before.before
    return replace(program, options=replace(program.options, preferences=_Instead(before, chosen)))
