"""`genrw run --profile`: how long each kernel of a program takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol, runtime_checkable

from genrw.engine.ir.nodes import Module
from genrw.program import Program
from genrw.terminal import write_table

_PASSES = 5
"""The program is run so often; each launch's time is the median."""


@runtime_checkable
class Timed(Protocol):
    """A prepared program whose launches can be timed."""

    def launch_times(self, inputs: Mapping[str, object], passes: int) -> list[list[float]]: ...


@dataclass
class KernelTimes:
    """A kernel, the microseconds of each of its launches, and those that the cost model predicts for one."""

    name: str
    predicted: float | None
    launches: list[float] = field(default_factory=list)


def show_profile(program: Program, prepared: Timed, inputs: Mapping[str, object]) -> None:
    """Time the launches of a program that is lowered and prepared, and print a table of its kernels."""
    kernels = measured(program, prepared.launch_times(inputs, _PASSES))
    total = sum(sum(kernel.launches) for kernel in kernels)
    rows = [_row(kernel, total) for kernel in sorted(kernels, key=lambda k: -sum(k.launches))]
    launches = sum(len(kernel.launches) for kernel in kernels)
    write_table(
        ["kernel", "launches", "µs", "part", "predicted µs"],
        [*rows, ["all", str(launches), _number(total), "100 %", ""]],
    )


def measured(program: Program, times: Sequence[Sequence[float]]) -> list[KernelTimes]:
    """The kernels of a lowered program with the times of its launches."""
    modules = [module for unit in program.units for module in unit.kernels]
    kernels = [KernelTimes(module.name, _predicted(program, module)) for module in modules]
    for step, taken in zip(program.launches().steps, times, strict=True):
        kernels[step.kernel].launches.append(median(taken))
    return kernels


def _predicted(program: Program, module: Module) -> float | None:
    """What the cost model says of the schedule that a kernel has; None where it was not asked."""
    rated: Sequence[tuple[float, Mapping[str, Any], object]] = program.trace.schedules.get(module.name, ())
    return next((cost for cost, schedule, _ in rated if schedule == module.schedule), None)


def _row(kernel: KernelTimes, total: float) -> list[str]:
    taken, count = sum(kernel.launches), len(kernel.launches)
    predicted = "" if kernel.predicted is None else _number(kernel.predicted * count)
    part = f"{100 * taken / total:.1f} %" if total else ""
    return [kernel.name, str(count), _number(taken), part, predicted]


def _number(microseconds: float) -> str:
    return f"{microseconds:.3g}" if microseconds < 100 else f"{microseconds:.0f}"
