"""What the tests that lower and run programs share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from textwrap import dedent
from typing import Any

import numpy as np
from together import Made, compile_together, made, shipped

from genrw.codegen.hip.printer import KernelSource, print_kernel
from genrw.codegen.runtime.host_program import HostProgram
from genrw.engine.interpret.compare import compare
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.grammar.source import Source
from genrw.program import Program

AMD_TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
WAVE64, WAVE32 = "gfx942", "gfx1100"

Arrays = Mapping[str, Any]


def load(text: str, target: str = WAVE64, library: Library | None = None, **options: Any) -> Program:
    """A program from its text; `options` are those of lowering."""
    source = Source("test.gen", dedent(text).strip() + "\n")
    return Program.parse(source, library or shipped(), Options(target=target, **options))


@lru_cache(maxsize=64)
def inputs_and_reference(text: str, seed: int = 0) -> tuple[Arrays, Arrays]:
    """Random inputs of a program, and what it gives as written, in double precision."""
    program = load(text)
    inputs = random_inputs(program.modules[0], program.library, seed)
    return inputs, program.run(inputs, "interpret", precise=True)


def differences(program: Program, got: Arrays, want: Arrays) -> dict[str, str]:
    """What is wrong with results, by name."""
    assert list(got) == list(want)
    found = {name: compare(got[name], want[name], *types) for name, types in program.computed_in.items()}
    return {name: message for name, message in found.items() if message}


def check_every_stage(text: str, target: str = WAVE64, seed: int = 0, **options: Any) -> Program:
    """Each stage of a program means what the program means; gives the last."""
    inputs, want = inputs_and_reference(text, seed)
    program = made(text, target, **options)
    for stage, lowered in program.each_stage():
        got = lowered.run(inputs, "interpret")
        problems = differences(lowered, got, want)
        assert not problems, f"stage {stage}: {problems}\n{lowered}"
    return program.last


def check_last_stage(text: str, target: str = WAVE64, seed: int = 0, **options: Any) -> Program:
    """The last stage of a program means what the program means."""
    inputs, want = inputs_and_reference(text, seed)
    lowered = made(text, target, **options).last
    problems = differences(lowered, lowered.run(inputs, "interpret"), want)
    assert not problems, f"{problems}\n{lowered}"
    return lowered


def listed(numbers: Iterable[object]) -> str:
    """Numbers as programs list them."""
    return "{" + ", ".join(map(str, numbers)) + "}"


def check_host(text: str, target: str, seed: int = 0, orders: tuple[int, ...] = (0, 1), **options: Any) -> None:
    """The printed kernels, run on the CPU, give what the program means, in whatever order waves run."""
    inputs, want = inputs_and_reference(text, seed)
    program = made(text, target, **options)
    for order in orders:
        problems = differences(program.last, program.on_the_host(inputs, threads=2, order=order), want)
        assert not problems, f"order {order}: {problems}\n{program.kernels[0].text}"


def check_compiles(text: str, target: str, **options: Any) -> None:
    """The kernels compile for an AMD target, and need no memory that the program does not show."""
    check_built(made(text, target, **options))


def check_built(program: Made) -> None:
    """The same of a program that may have been compiled together with others."""
    for kernel, report in zip(program.kernels, program.on_the_gpu, strict=True):
        assert report.wavefront_size == kernel.wave_size
        assert report.scratch_bytes == 0, kernel.text
        assert report.vgpr_spills == 0, kernel.text
        assert report.sgpr_spills == 0, kernel.text
        assert report.lds_bytes <= kernel.lds_bytes + 16, kernel.text


def strides_in_order(lens: Sequence[int], order: Sequence[int]) -> list[int]:
    """The strides of a tensor whose axes lie in memory in an order, the last one innermost."""
    return [prod(lens[e] for e in order[order.index(d) + 1 :]) for d in range(len(lens))]


def schedules(text: str, target: str = WAVE64) -> list[dict[str, Any]]:
    """The schedules that are legal for a program, the cheapest first."""
    lowered = next(lowered for stage, lowered in made(text, target).each_stage() if stage == "schedule")
    return [dict(schedule) for _, schedule, _ in lowered.trace.schedules["main"]]


def check_host_schedules(
    text: str, schedules: Sequence[Mapping[str, Any]], target: str, orders: tuple[int, ...] = (0, 1)
) -> None:
    """The printed kernel of a program under each of the schedules, all compiled together, gives what the program means."""
    inputs, want = inputs_and_reference(text)
    program = lower_each(text, schedules, target)
    kernels = [Made(program.with_modules((module,))) for module in program.modules]
    compile_together(kernels)
    for one, schedule in zip(kernels, schedules, strict=True):
        for order in orders:
            problems = differences(program, one.on_the_host(inputs, threads=2, order=order), want)
            assert not problems, f"{schedule}, order {order}: {problems}\n{one.kernels[0].text}"


def lowered_kernel(text: str) -> tuple[Program, KernelSource]:
    """A program that is at the last stage already, as text, and its kernel."""
    program = Program.parse(Source("test.gen", text), shipped())
    module = program.modules[0]
    return program, print_kernel(module, program.library, program.context(module))


def run_kernel(kernel: KernelSource, inputs: Arrays, order: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """The output parameters that a printed kernel writes on the CPU."""
    return HostProgram.compile(kernel)(inputs, threads=1, order=order)


def lower_each(text: str, schedules: Sequence[Mapping[str, Any]], target: str = WAVE64) -> Program:
    """A program with one module for each schedule, all lowered to the last stage in one call.

    The schedules need not be among those that rules open.
    """
    return lower_scheduled([(text, schedule) for schedule in schedules], target)


def lower_scheduled(found: Sequence[tuple[str, Mapping[str, Any]]], target: str = WAVE64) -> Program:
    """The same of several programs, a module for each schedule of each."""
    scheduled = [load(text, target).lower("schedule") for text, _ in found]
    modules = tuple(
        replace(program.modules[0], name=f"k{i}", schedule=dict(schedule))
        for i, (program, (_, schedule)) in enumerate(zip(scheduled, found, strict=True))
    )
    return scheduled[0].with_modules(modules).lower(scheduled[0].stages[-1])


def check_schedules(text: str, schedules: Sequence[Mapping[str, Any]], target: str = WAVE64) -> None:
    """Under each of the schedules the last stage means what the program means."""
    inputs, want = inputs_and_reference(text)
    program = lower_each(text, schedules, target)
    for module, schedule in zip(program.modules, schedules, strict=True):
        one = program.with_modules((module,))
        problems = differences(one, one.run(inputs, "interpret"), want)
        assert not problems, f"{schedule}: {problems}\n{one}"
