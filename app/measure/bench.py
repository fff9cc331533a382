"""`genrw bench`: the programs of a suite on a GPU or the CPU, checked and timed, beside PyTorch or numpy where these are
there.

Times on a GPU are its own: medians between events around captured graphs, over inputs that rotate through more memory
than the cache holds. Those on the CPU are of launches after one another. A case's floor is the time in which its inputs
could be read and its results written at the speed of a copy, measured on the same device in the same run. A case that
fails says so in its figures, and the next one is measured.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from genrw.api import load_source
from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.compilers import host_compiler
from genrw.codegen.runtime.devices import HostDevice
from genrw.codegen.runtime.gpu_memory import Memory
from genrw.codegen.runtime.gpu_runtime import GpuRuntime
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module
from genrw.engine.lowering.options import Options
from genrw.engine.programs.space import space_record
from genrw.grammar.diagnostics import GenrwError
from genrw.measure.cases import BenchCase
from genrw.measure.gpu_case import GpuCase
from genrw.measure.host_case import HostCase
from genrw.measure.peers import Peers
from genrw.measure.references import References
from genrw.program import Program

_COPY_BYTES = 1 << 30
_HOST_COPY_BYTES = 1 << 28
_FEW_CASES = 50
"""Readiness is measured for suites of so many cases at most: it takes a second of each."""
_BEHIND = (0.03, 0.10)
"""Shares by which cases may be behind the best peer, as the summary counts them."""
_LARGE, _NEAR_A_COPY = 64e6, 0.90
"""Bytes from which on a launch hardly shows, and the share of a copy's speed that such a case should reach."""


@dataclass
class Figures:
    """What was measured of one case. Times in microseconds, `ready` in milliseconds; None where not measured.

    `bytes` are those that must be moved at least; `reads_once` is false where kernels hand on much through memory or walk
    rows several times; `peers` are times of the same work by name.
    """

    name: str
    bytes: int
    floor: float
    wrong: str | None = None
    time: float | None = None
    spread: tuple[float, float] | None = None
    ready: float | None = None
    reads_once: bool = False
    schedules: list[dict[str, Any]] = field(default_factory=list)
    peers: dict[str, float | str] = field(default_factory=dict)
    program: str = ""

    def fraction(self, launch: float = 0.0) -> float | None:
        """The share of the copy's speed that was reached, `launch` microseconds taken off."""
        return None if not self.time else self.floor / max(self.time - launch, 1e-9)

    @property
    def best_peer(self) -> float | None:
        return min((t for t in self.peers.values() if isinstance(t, float)), default=None)

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the best peer."""
        return self.best_peer / self.time if self.best_peer and self.time else None


class LoadedCase(Protocol):
    """A program on a device, to be run and timed."""

    program: Program
    inputs: Mapping[str, Array]

    def results(self) -> dict[str, Array]: ...
    def times(self, count: int) -> list[float]: ...
    @property
    def schedules(self) -> list[dict[str, Any]]: ...


class Bench(Protocol):
    """A device that cases are measured on."""

    arch: str
    model: str
    compiler: str

    def copy_speed(self) -> float:
        """Bytes that a large copy reads and writes per microsecond."""

    def loaded(self, program: Program, name: str, inputs: Mapping[str, Array]) -> LoadedCase: ...

    def ready(self, loaded: Any) -> float | None:
        """Milliseconds from text to a kernel that can be launched."""


class GpuBench:
    """A GPU."""

    def __init__(self, runtime: GpuRuntime) -> None:
        self.runtime = runtime
        self.arch, self.model, self.compiler = runtime.arch, runtime.model, runtime.compiler

    def copy_speed(self) -> float:
        return copy_speed(self.runtime)

    def loaded(self, program: Program, name: str, inputs: Mapping[str, Array]) -> GpuCase:
        return GpuCase(self.runtime, program, name, inputs=inputs)

    def ready(self, loaded: GpuCase) -> float:
        return loaded.ready()


class HostBench:
    """The CPU."""

    def __init__(self) -> None:
        device = HostDevice()
        self.arch, self.model, self.compiler = (
            device.default_target,
            device.model,
            Path(host_compiler().command[0]).name,
        )

    def copy_speed(self) -> float:
        source, target = np.ones(_HOST_COPY_BYTES, np.uint8), np.zeros(_HOST_COPY_BYTES, np.uint8)
        times = []
        for _ in range(5):
            started = time.perf_counter()
            np.copyto(target, source)
            times.append(1e6 * (time.perf_counter() - started))
        return 2 * _HOST_COPY_BYTES / statistics.median(times)

    def loaded(self, program: Program, name: str, inputs: Mapping[str, Array]) -> HostCase:
        return HostCase(program, name, inputs=inputs)

    def ready(self, loaded: HostCase) -> None:  # noqa: ARG002
        return None


def copy_speed(runtime: GpuRuntime, count: int = 15) -> float:
    """Bytes that a large copy reads and writes on the GPU per microsecond."""
    source, target = Memory(runtime, _COPY_BYTES), Memory(runtime, _COPY_BYTES)
    runtime.fill(source.pointer, 1, _COPY_BYTES, 0)
    times = runtime.times(lambda s: runtime.copy(target.pointer, source.pointer, _COPY_BYTES, s), count + 1)[1:]
    return 2 * _COPY_BYTES / statistics.median(times)


def measure(
    bench: Bench,
    cases: Sequence[BenchCase],
    peers: Peers | None,
    count: int,
    done: Callable[[Sequence[Figures], float], None],
) -> tuple[float, list[Figures]]:
    """The copy's speed, in bytes per microsecond, and the figures of all cases; `done` is told those that are there, the
    latest last, and the copy's speed."""
    if peers is not None:
        peers.prepare(cases, bench.arch)
    speed = bench.copy_speed()
    figures: list[Figures] = []
    waiting: list[tuple[Figures, Future[str | None]]] = []

    def take(some: int) -> None:
        """Take verdicts in order, until no more than so many are waited for."""
        while waiting and (len(waiting) > some or waiting[0][1].done()):
            measured, verdict = waiting.pop(0)
            measured.wrong = measured.wrong or _outcome(verdict)
            figures.append(measured)
            references.drop(len(figures) - 1)
            done(figures, speed)

    with References(cases) as references:
        for number, case in enumerate(cases):
            waiting.append(_measure(bench, references, number, case, speed, peers, count))
            take(2 * references.processes)
        take(0)
    return speed, figures


def _outcome(verdict: Future[str | None]) -> str | None:
    try:
        return verdict.result()
    except Exception as problem:  # a case that cannot be judged is a failure of its own
        return _message(problem)


def _message(problem: Exception) -> str:
    return problem.diagnostics[0].message if isinstance(problem, GenrwError) else f"{type(problem).__name__}: {problem}"


def _measure(
    bench: Bench, references: References, number: int, case: BenchCase, speed: float, peers: Peers | None, count: int
) -> tuple[Figures, Future[str | None]]:
    """A case's figures, and what will be known of its results."""
    figures = Figures(case.name, 0, 0.0, program=case.source.text)
    verdict: Future[str | None] = Future()
    verdict.set_result(None)
    try:
        program = load_source(case.source, Options(bench.arch))
        loaded = bench.loaded(program, case.name, references.inputs(number, program))
        figures.bytes = least_bytes(program)
        figures.floor = figures.bytes / speed
        verdict = references.verdict(number, loaded.results())
        times = loaded.times(count)
        figures.time, figures.spread = statistics.median(times), (min(times), max(times))
        figures.schedules, figures.reads_once = loaded.schedules, reads_once(program)
        if len(references.cases) <= _FEW_CASES:
            figures.ready = bench.ready(loaded)
        if peers is not None:
            figures.peers = dict(peers(case, loaded))
    except Exception as problem:  # one case's failure does not end the run
        figures.wrong = _message(problem)
    return figures, verdict


def least_bytes(program: Program) -> int:
    """The bytes that must be moved at least: inputs and results."""
    tensors = [*program.inputs.values(), *program.results.values()]
    return sum(node.type.elements * DTYPES[node.type.dtype].itemsize for node in tensors)


def reads_once(program: Program) -> bool:
    """Do kernels read each input once, and hand on next to nothing through memory?"""
    if sum(program.launches().scratch) > 0.02 * least_bytes(program):
        return False
    kernels = [kernel for unit in program.lower("schedule").units for kernel in unit.kernels]
    return all(k.schedule["steps"] == 1 or _passes(k, program) <= 1 for k in kernels)


def _passes(kernel: Module, program: Program) -> int:
    """How often a row is walked that is not kept."""
    passes = space_record(kernel, program.library)["passes"]
    assert isinstance(passes, int)
    return passes


# ---- what is shown


def table(figures: Sequence[Figures]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows."""
    names = list(dict.fromkeys(name for f in figures for name in f.peers))
    headings = [
        "case",
        "MB",
        "floor µs",
        "µs",
        "of copy",
        *(f"{n} µs" for n in names),
        "best / ours",
        "ready ms",
        "check",
    ]
    return headings, [_row(f, names) for f in figures]


def _row(f: Figures, names: Sequence[str]) -> list[str]:
    return [
        f.name,
        f"{f.bytes / 1e6:.0f}",
        f"{f.floor:.1f}",
        _shown(f.time, 1),
        _shown(f.fraction(), 2),
        *(_shown(f.peers.get(name), 1) for name in names),
        _shown(f.ratio, 2),
        _shown(f.ready, 0),
        f.wrong or "right",
    ]


def _shown(value: float | str | None, digits: int) -> str:
    return value if isinstance(value, str) else "" if value is None else f"{value:.{digits}f}"


def summary(figures: Sequence[Figures]) -> dict[str, float | int]:
    """How much faster than the best peer in the geometric mean and at least, how many cases are behind by which shares,
    and of the large cases that read once how many are near a copy's speed."""
    found: dict[str, float | int] = {}
    ratios = [f.ratio for f in figures if f.ratio]
    if ratios:
        mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
        found |= {"geometric mean over the best peer": mean, "least": min(ratios), "cases beside a peer": len(ratios)}
        found |= {
            f"behind by more than {100 * share:.0f} %": sum(r < 1 / (1 + share) for r in ratios) for share in _BEHIND
        }
    large = [share for f in figures if f.reads_once and f.bytes >= _LARGE and (share := f.fraction())]
    if large:
        found["cases of 64 MB and more that read once"] = len(large)
        found["least share of a copy's speed"] = min(large)
        found[f"below {_NEAR_A_COPY:.2f} of it"] = sum(share < _NEAR_A_COPY for share in large)
    return found


def behind(figures: Sequence[Figures], count: int = 10) -> list[Figures]:
    """The cases that are the furthest behind their best peer, the worst first; none that is not behind."""
    slower = [f for f in figures if f.ratio and f.ratio < 1]
    return sorted(slower, key=lambda f: f.ratio or 0.0)[:count]


def slow(figures: Sequence[Figures]) -> list[Figures]:
    """The large cases that read once and are the furthest from a copy's speed, the slowest first."""
    large = [f for f in figures if f.reads_once and f.bytes >= _LARGE and (f.fraction() or 1.0) < _NEAR_A_COPY]
    return sorted(large, key=lambda f: f.fraction() or 0.0)


def as_json(bench: Bench, speed: float, figures: Sequence[Figures]) -> str:
    """All figures, with the device and what compiled."""
    made = {
        "gpu": bench.model,
        "arch": bench.arch,
        "compiler": bench.compiler,
        "copy_gb_per_s": speed / 1e3,
        "summary": summary(figures),
        "worst": [f.name for f in behind(figures)],
        "cases": [asdict(f) for f in figures],
    }
    return json.dumps(made, indent=2) + "\n"
