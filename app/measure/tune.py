"""`genrw tune`: the cheapest schedules of each kernel, measured on a device; the best are kept for later compiles."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from genrw.codegen.runtime.devices import GPU_SORTS, HostDevice, find_device
from genrw.engine.ir.nodes import Module, Unit
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.source import Source
from genrw.measure.cases import cases_in
from genrw.output import check_writable, write_file
from genrw.program import Program
from genrw.terminal import progress, write, write_table
from genrw.tuned import Database, Measured, database_path, kernel_key, of_schedule


class Case(Protocol):
    """A program that is timed on a device, under one schedule after the other."""

    def use(self, program: Program) -> None: ...
    def check(self) -> str | None: ...
    def times(self, count: int) -> list[float]: ...


@dataclass(frozen=True)
class Request:
    """What to measure with: the device, how many schedules of each kernel, how many times each, where figures go, and
    whether results are checked."""

    device: str
    best: int
    times: int
    json: Path | None
    checked: bool = True


@dataclass(frozen=True)
class Tuned:
    """A kernel with the schedules that were measured, in the order of what they were predicted to take."""

    file: str
    kernel: str
    measured: Sequence[Measured]

    @property
    def right(self) -> list[Measured]:
        """The schedules whose kernel ran and gave right results."""
        return [m for m in self.measured if m.problem is None]

    @property
    def winner(self) -> Measured | None:
        return min(self.right, key=_taken, default=None)

    @property
    def regret(self) -> float | None:
        """By what share the schedule predicted to be the fastest is slower than the one that is."""
        return _taken(self.right[0]) / _taken(self.winner) - 1 if self.winner is not None else None

    @property
    def correlation(self) -> float | None:
        """Spearman's rank correlation of predicted and measured times; None for fewer than three, or all the same."""
        predicted, taken = (_ranks(x) for x in ([m.predicted for m in self.right], [_taken(m) for m in self.right]))
        if len(self.right) < 3 or len(set(predicted)) == 1 or len(set(taken)) == 1:
            return None
        return statistics.correlation(predicted, taken)


def _taken(measured: Measured) -> float:
    assert measured.microseconds is not None
    return measured.microseconds


def _ranks(values: Sequence[float]) -> list[float]:
    """The place of each value among all, equal ones sharing the middle of theirs."""
    return [sum(v < value for v in values) + (values.count(value) - 1) / 2 for value in values]


def program_sources(names: Iterable[str]) -> dict[str, Source | None]:
    """Programs by name; for a folder those in it, for a shipped suite its own. None for a file that is to be read."""
    found: dict[str, Source | None] = {}
    for name in names:
        cases = cases_in(name)
        found |= {name: None} if cases is None else {case.source.name: case.source for case in cases}
    return found


def run_tune(programs: Mapping[str, Program], request: Request) -> int:
    """Measure the kernels of programs by file name; 1 if a schedule gives wrong results, else 0."""
    check_writable(request.json)
    tuned: list[Tuned] = []
    for found in measured_kernels(programs.items(), request, Database(database_path())):
        tuned.append(found)
        _show(found)
    if len(tuned) > 1:
        _summarise(tuned)
    if request.json is not None:
        write_file(request.json, (json.dumps([_figures(t) for t in tuned], indent=2) + "\n").encode())
    return 1 if any(m.problem for t in tuned for m in t.measured) else 0


def measured_kernels(programs: Iterable[tuple[str, Program]], request: Request, database: Database) -> Iterator[Tuned]:
    """The kernels of programs by name, each with its schedules measured, or known from the database."""
    device, make = _device(request.device)
    for file, program in programs:
        for name, kernel in _kernels(program).items():
            yield Tuned(file, name, _measure(kernel, f"{file} {name}", device, make, database, request))


def _device(name: str) -> tuple[str, Callable[[Program, str], Case]]:
    """What a device is called in the database, and what makes cases of it."""
    device = find_device(name)
    if isinstance(device, HostDevice):
        from genrw.measure.host_case import HostCase

        return device.model, HostCase
    if name.partition(":")[0] not in GPU_SORTS:
        raise error(
            f"`{name}` takes no time that could be measured", remedy=f"devices are host, {', '.join(GPU_SORTS)}"
        )
    from genrw.codegen.runtime.gpu import GpuDevice
    from genrw.measure.gpu_case import GpuCase

    assert isinstance(device, GpuDevice)
    runtime = device.runtime
    return device.model, lambda program, label: GpuCase(runtime, program, label)


def _kernels(program: Program) -> dict[str, Program]:
    """The kernels that a program falls into, each as a program of its own."""
    stage = program.library.fusing_stage
    started = any(unit.stage for unit in program.units)
    cut = program.lower(stage) if stage is not None and not started else program
    return {module.name: _alone(program, module) for module in cut.modules}


def _alone(program: Program, module: Module) -> Program:
    units = (Unit((module,)),)
    return replace(program, units=units, origin=units)


def _measure(
    kernel: Program,
    label: str,
    device: str,
    make: Callable[[Program, str], Case],
    database: Database,
    request: Request,
) -> list[Measured]:
    """The kernel's cheapest schedules: from the database where they were measured before, else measured now."""
    (module,) = kernel.modules
    key = kernel_key(module, kernel)
    rated = kernel.lower(kernel.stages[-1]).trace.schedules.get(module.name, [])[: request.best]
    known = database.of(key, device)
    case: Case | None = None
    measured = []
    with progress(label, len(rated)) as advance:
        for predicted, schedule, _ in rated:
            found = of_schedule(known, schedule)
            if found is None:
                pinned = kernel.pinned(schedule)
                try:
                    if case is None:
                        case = make(pinned, label)
                    else:
                        case.use(pinned)
                    found = _timed(case, schedule, predicted, request)
                except GenrwError as problem:
                    found = Measured(schedule, predicted, None, problem.diagnostics[0].message)
                database.add(key, device, found)
            measured.append(replace(found, predicted=predicted, schedule=schedule))
            advance()
    return measured


def _timed(case: Case, schedule: Mapping[str, Any], predicted: float, request: Request) -> Measured:
    problem = case.check() if request.checked else None
    return Measured(schedule, predicted, statistics.median(case.times(request.times)), problem)


# ---- what is shown


def _show(tuned: Tuned) -> None:
    write(f"{tuned.file}, kernel {tuned.kernel}")
    if not tuned.measured:
        write("no schedule to choose")
        return
    entries = list(dict.fromkeys(e for m in tuned.measured for e in m.schedule))
    rows = [
        [f"{m.predicted:.2f}", _shown(m), *(str(m.schedule.get(e, "")) for e in entries), _note(m, tuned)]
        for m in tuned.measured
    ]
    write_table(["predicted µs", "µs", *entries, ""], rows)
    write("")


def _shown(measured: Measured) -> str:
    return f"{measured.microseconds:.2f}" if measured.microseconds is not None else ""


def _note(measured: Measured, tuned: Tuned) -> str:
    return measured.problem or ("the best" if measured is tuned.winner else "")


def _summarise(tuned: Sequence[Tuned]) -> None:
    rows = [[t.file, t.kernel, str(len(t.measured)), _number(t.correlation, 2), _number(t.regret, 3)] for t in tuned]
    write_table(["file", "kernel", "schedules", "rank correlation", "regret"], rows)
    regrets = [t.regret for t in tuned if t.regret is not None]
    correlations = [t.correlation for t in tuned if t.correlation is not None]
    if regrets:
        write(f"regret: median {statistics.median(regrets):.3f}, largest {max(regrets):.3f}")
    if correlations:
        write(f"rank correlation: median {statistics.median(correlations):.2f}")


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _figures(tuned: Tuned) -> dict[str, Any]:
    return {
        "file": tuned.file,
        "kernel": tuned.kernel,
        "rank correlation": tuned.correlation,
        "regret": tuned.regret,
        "measured": [asdict(m) for m in tuned.measured],
    }
