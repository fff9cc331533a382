"""Programs lowered and compiled many at a time, which takes a fraction of the time that one by one takes.

What was made is kept for the tests that ask for it, one by one, as are programs that are lowered alone: a test lowers
nothing that another one lowered. Where programs cannot be lowered or compiled together, nothing is kept, and each test
meets what is wrong with its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from breadth import first_quick

from genrw.authoring.rulesets import load_library
from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.amd import CodeObject, KernelReport, compile_amd
from genrw.codegen.runtime.compilers import kernel_text
from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.engine.ir.nodes import Unit
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.trace import Trace
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

shipped = lru_cache(maxsize=1)(load_library)
"""The shipped rules, read once."""

_PROGRAMS_KEPT = 512


@dataclass(eq=False)
class Made:
    """What was made of a program so far: itself at each stage in turn, its kernels, these compiled for the CPU and for
    its AMD target."""

    program: Program
    stages: list[tuple[str, Program]] = field(default_factory=list)
    printed: list[KernelSource] | None = None
    sequence: HostSequence | None = None
    reports: list[KernelReport] | None = None

    def each_stage(self) -> Iterator[tuple[str, Program]]:
        """The program at each stage, from the first that is still to come."""
        yield from self.stages
        current = self.stages[-1][1] if self.stages else self.program
        for stage, lowered in current.remaining_stages():
            self.stages.append((stage, lowered))
            yield stage, lowered

    def until(self, last: str) -> list[tuple[str, Program]]:
        """The program at each stage up to one."""
        return _up_to(last, self.each_stage())

    @property
    def last(self) -> Program:
        """The program at the last stage."""
        reached = [lowered for _, lowered in self.each_stage()]
        return reached[-1] if reached else self.program

    @property
    def kernels(self) -> list[KernelSource]:
        """The printed kernels."""
        if self.printed is None:
            self.printed = self.last.kernels()
        return self.printed

    @property
    def on_the_host(self) -> HostSequence:
        """The kernels, compiled for the CPU."""
        if self.sequence is None:
            self.sequence = HostSequence([HostProgram.compile(kernel) for kernel in self.kernels], self.last)
        return self.sequence

    @property
    def on_the_gpu(self) -> list[KernelReport]:
        """What the kernels use, compiled for the program's AMD target."""
        if self.reports is None:
            arch = self.program.options.target
            compiled = [(k.name, compile_amd(k.text, arch, k.wave_size, k.name)) for k in self.kernels]
            self.reports = [code.kernels[name] for name, code in compiled]
        return self.reports


def _up_to(last: str | None, stages: Iterable[tuple[str, Program]]) -> list[tuple[str, Program]]:
    """The first stages, up to the one that is named; all where none is."""
    found = []
    for stage, lowered in stages:
        found.append((stage, lowered))
        if stage == last:
            break
    return found


_made: dict[Any, Made] = {}


def made(text: str, target: str, **options: Any) -> Made:
    """What was made of a program so far; `options` are those of lowering."""
    wanted = Options(target=target, **options)
    key = dedent(text).strip(), wanted.key
    if key not in _made:
        source = Source("test.gen", key[0] + "\n")
        _made[key] = Made(Program.parse(source, shipped(), wanted))
        while len(_made) > _PROGRAMS_KEPT:
            del _made[next(iter(_made))]
    return _made[key]


def lower_together(texts: Sequence[str], target: str, *, last: str | None = None, **options: Any) -> list[Made]:
    """Lower programs for a target in one call for each stage, up to the last one or the one that is named."""
    found = [made(text, target, **options) for text in texts]
    new = [one for one in dict.fromkeys(found) if not one.stages and _is_new(one.program)]
    with suppress(GenrwError):
        if new:
            _lower(new, last)
    return found


def _is_new(program: Program) -> bool:
    """Is it one module as written, before all stages?"""
    return len(program.modules) == len(program.units) == 1 and not program.modules[0].stage


def _lower(new: Sequence[Made], last: str | None) -> None:
    modules = [replace(one.program.modules[0], name=f"p{i}") for i, one in enumerate(new)]
    batch = new[0].program.with_units(tuple(Unit((module,)) for module in modules))
    stages = _up_to(last, batch.remaining_stages())
    for i, one in enumerate(new):
        name = one.program.modules[0].name
        one.stages = [(stage, _alone(one.program, lowered, i, name)) for stage, lowered in stages]


def _alone(program: Program, lowered: Program, i: int, name: str) -> Program:
    """One of the programs that were lowered together, with the schedules that were rated for it."""
    rated = lowered.trace.schedules.get(f"p{i}")
    trace = Trace(schedules={name: rated} if rated is not None else {})
    return replace(program.with_units((lowered.units[i],)), trace=trace)


def compile_together(programs: Sequence[Made]) -> None:
    """Compile programs for the CPU, as many kernels in one call of the compiler as can be."""
    with suppress(GenrwError):
        new = [one for one in programs if one.sequence is None]
        compiled = iter(HostProgram.compile_all([kernel for one in new for kernel in one.kernels]))
        for one in new:
            one.sequence = HostSequence(list(islice(compiled, len(one.kernels))), one.last)


def build_together(programs: Sequence[Made]) -> None:
    """Compile programs of one AMD target to one code object."""
    with suppress(GenrwError):
        new = [one for one in programs if one.reports is None]
        kernels = [kernel for one in new for kernel in one.kernels]
        if kernels and len({kernel.name for kernel in kernels}) == len(kernels):
            code = _one_code_object(kernels, new[0].program.options.target)
            for one in new:
                one.reports = [code.kernels[kernel.name] for kernel in one.kernels]


def _one_code_object(kernels: Sequence[KernelSource], arch: str) -> CodeObject:
    """Kernels of one source, each in a namespace of its own."""
    parts = list(dict.fromkeys(helper for kernel in kernels for helper in kernel.helpers))
    for i, kernel in enumerate(kernels):
        own = kernel_text(kernel.text)
        for helper in kernel.helpers:
            own = own.replace(helper, "", 1)
        parts += [f"namespace unit{i} {{", own, "}"]
    return compile_amd("\n".join(parts), arch, kernels[0].wave_size, "of many")


# ---- batches of tests


def chosen(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter in those tests of this run that are of the same function and batch as the one that
    asks: each stands for a program that is worth making ahead."""
    node = request.node
    return _chosen(request.session, node.path, node.originalname, batch_of(node), parameter)


@lru_cache(maxsize=256)
def _chosen(session: pytest.Session, path: Path, function: str, batch: str | None, parameter: str) -> list[Any]:
    items = [
        item
        for item in session.items
        if isinstance(item, pytest.Function) and item.originalname == function and item.path == path
    ]
    return list(dict.fromkeys(item.callspec.params[parameter] for item in items if batch_of(item) == batch))


def batch_of(item: pytest.Item) -> str | None:
    """The batch of a test, whose identifier ends so: all tests of one run in one worker, see `conftest.py`."""
    mark = item.get_closest_marker("batch")
    return str(mark.args[0]) if mark is not None else None


def in_batches(values: Sequence[str] | Mapping[str, Any], count: int, name: str, quick: int = 0) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`, batch after batch: the values take the batches in turn. All but the first
    few are slow."""
    batches = [(f"{name}{k}", list(values)[k::count]) for k in range(count)]
    found = [
        pytest.param(value, marks=pytest.mark.batch(batch), id=f"{value}@{batch}")
        for batch, some in batches
        for value in some
    ]
    return first_quick(found, quick)
