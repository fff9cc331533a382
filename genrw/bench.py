"""`genrw bench`: the programs of a suite on a GPU, checked first and then timed, beside PyTorch where it is there.

Times are those of the GPU: medians between events around captured graphs, over inputs that rotate through more memory
than the cache holds. A case's floor is the time in which its inputs could be read and its results written at the speed
of a copy, measured on the same GPU in the same run.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from genrw.api import load
from genrw.codegen.gpu import GpuKernel, Memory
from genrw.codegen.gpu_runtime import GpuRuntime
from genrw.codegen.layout import from_memory, memory_size, to_memory
from genrw.codegen.printer import Argument
from genrw.engine.compare import compare
from genrw.engine.dtypes import DTYPES, numpy_dtype
from genrw.engine.inputs import random_inputs
from genrw.engine.launches import INPUT, RESULT, SCRATCH, Place
from genrw.grammar.diagnostics import GenrwError, error
from genrw.runner import reference_run

SUITES = Path(__file__).parent / "suites"

_POISON = 0xFF
_ROTATED_BYTES = 1 << 29
"""What the rotating inputs and results take together, at least: several times any GPU's cache."""
_MOST_SETS = 16
_GRAPH_RUNS = 20
_COPY_BYTES = 1 << 30
_READY_RUNS = 5


@dataclass
class Figures:
    """What was measured of one case. Times in microseconds, `ready` in milliseconds; None where not measured.

    `bytes` are those that must be moved at least; `peers` are times of the same work by name.
    """

    name: str
    bytes: int
    floor: float
    wrong: str | None = None
    time: float | None = None
    spread: tuple[float, float] | None = None
    ready: float | None = None
    schedules: list[dict[str, Any]] = field(default_factory=list)
    peers: dict[str, float | str] = field(default_factory=dict)

    def fraction(self, launch: float = 0.0) -> float | None:
        """The share of the copy's speed that was reached, `launch` microseconds taken off."""
        return None if not self.time else self.floor / max(self.time - launch, 1e-9)

    @property
    def best_peer(self) -> float | None:
        return min((t for t in self.peers.values() if isinstance(t, float)), default=None)


class Case:
    """A program of a suite, loaded on a GPU with rotating sets of memories: inputs, results and what lies between."""

    def __init__(self, runtime: GpuRuntime, path: Path, seed: int = 0) -> None:
        self.runtime = runtime
        self.name = path.stem
        self.program = load(path, target=runtime.arch)
        self.kernels = [GpuKernel.load(runtime, source, path.name) for source in self.program.kernels()]
        self.launches = self.program.launches()
        self.inputs = random_inputs(self.program.origin[0], self.program.library, seed)
        self.arguments = self._arguments()
        self.sets = [self._set() for _ in range(self._set_count())]

    def _arguments(self) -> dict[Place, Argument]:
        """An argument for each place that kernels read or write."""
        return {
            step.places[a.parameter]: a
            for step in self.launches.steps
            for a in self.kernels[step.kernel].source.arguments
        }

    @property
    def bytes(self) -> int:
        """The bytes that must be moved at least: inputs and results."""
        return sum(_size(a) for place, a in self.arguments.items() if place.kind != SCRATCH)

    def _set_count(self) -> int:
        return max(2, min(_MOST_SETS, math.ceil(_ROTATED_BYTES / max(self.bytes, 1))))

    def _set(self) -> dict[Place, Memory]:
        names = list(self.program.inputs)
        memories = {}
        for place, argument in self.arguments.items():
            size = self.launches.scratch[place.number] if place.kind == SCRATCH else _size(argument)
            memories[place] = Memory(self.runtime, size)
            if place.kind == INPUT:
                flat = to_memory(self.inputs[names[place.number]], argument.strides)
                self.runtime.write(memories[place].pointer, flat, 0)
        return memories

    def launch(self, memories: Mapping[Place, Memory], stream: int) -> None:
        """Start all kernels on a set of memories."""
        for step in self.launches.steps:
            kernel = self.kernels[step.kernel]
            kernel.launch([memories[step.places[a.parameter]].pointer for a in kernel.source.arguments], stream)

    def check(self) -> str | None:
        """What is wrong with the results, computed into poisoned memory; None if they are right."""
        first = self.sets[0]
        written = {place: a for place, a in self.arguments.items() if place.kind == RESULT}
        for place, argument in written.items():
            self.runtime.fill(first[place].pointer, _POISON, _size(argument), 0)
        self.launch(first, 0)
        self.runtime.synchronize(0)
        wanted = reference_run(self.program)(self.inputs, precise=True)
        for number, (name, want) in zip(self.launches.results, wanted.items(), strict=True):
            place = Place(RESULT, number)
            argument = written[place]
            memory = np.empty(memory_size(argument.lens, argument.strides), numpy_dtype(argument.dtype))
            self.runtime.read(memory, first[place].pointer, 0)
            problem = compare(from_memory(memory, argument.lens, argument.strides), want, argument.dtype)
            if problem:
                return f"{name} {problem}"
        return None

    @property
    def schedules(self) -> list[dict[str, Any]]:
        """What was chosen for each kernel."""
        return [dict(k.schedule) for unit in self.program.lower("schedule").units for k in unit.kernels]

    def times(self, count: int) -> list[float]:
        """Times of one launch, from `count` graphs of several launches each."""

        def launches(stream: int) -> None:
            for i in range(_GRAPH_RUNS):
                self.launch(self.sets[i % len(self.sets)], stream)

        graph = self.runtime.captured(launches)
        return [t / _GRAPH_RUNS for t in self.runtime.times(graph, count + 1)[1:]]

    def ready(self) -> float:
        """Milliseconds from text to a loaded kernel that no cache holds: the median of several programs alike."""
        taken = []
        for i in range(_READY_RUNS):
            text = self.program.text.replace("@return", f"# {i}\n@return")
            started = time.perf_counter()
            for source in load(_renamed(text, i), target=self.runtime.arch).kernels():
                self.runtime.load(self.runtime.build(source), source.name)
            taken.append(1e3 * (time.perf_counter() - started))
        return statistics.median(taken)


def _renamed(text: str, number: int) -> str:
    """The program under other names, so that nothing remembers it."""
    return f"@module fresh{number}\n{text}"


def _size(argument: Argument) -> int:
    """The bytes of an argument's memory."""
    return memory_size(argument.lens, argument.strides) * DTYPES[argument.dtype].itemsize


def copy_speed(runtime: GpuRuntime, count: int = 15) -> float:
    """Bytes that a large copy reads and writes on the GPU per microsecond."""
    source, target = Memory(runtime, _COPY_BYTES), Memory(runtime, _COPY_BYTES)
    runtime.fill(source.pointer, 1, _COPY_BYTES, 0)
    times = runtime.times(lambda s: runtime.copy(target.pointer, source.pointer, _COPY_BYTES, s), count + 1)[1:]
    return 2 * _COPY_BYTES / statistics.median(times)


def suite(name: str, only: str | None = None) -> list[Path]:
    """The programs of a shipped suite, or of a folder, in order of name; those whose name holds `only`."""
    folder = SUITES / name if (SUITES / name).is_dir() else Path(name)
    if not folder.is_dir():
        shipped = ", ".join(sorted(p.name for p in SUITES.iterdir() if p.is_dir()))
        raise error(f"there is no suite `{name}`", remedy=f"name a folder of programs, or {shipped}")
    found = sorted(p for p in folder.glob("*.gen") if only is None or only in p.stem)
    if not found:
        raise error(f"the suite `{name}` has no program" + (f" whose name holds `{only}`" if only else ""))
    return found


def measure(
    runtime: GpuRuntime,
    paths: Iterable[Path],
    peers: Callable[[Case], Mapping[str, float | str]] | None,
    count: int,
    done: Callable[[Figures], None],
) -> tuple[float, list[Figures]]:
    """The copy's speed, in bytes per microsecond, and the figures of all cases; `done` is told each as it is there."""
    speed = copy_speed(runtime)
    figures = []
    for path in paths:
        figures.append(_measure(runtime, path, speed, peers, count))
        done(figures[-1])
    return speed, figures


def _measure(
    runtime: GpuRuntime,
    path: Path,
    speed: float,
    peers: Callable[[Case], Mapping[str, float | str]] | None,
    count: int,
) -> Figures:
    try:
        case = Case(runtime, path)
    except GenrwError as problem:
        return Figures(path.stem, 0, 0.0, wrong=problem.diagnostics[0].message)
    figures = Figures(case.name, case.bytes, case.bytes / speed, wrong=case.check())
    times = case.times(count)
    figures.time, figures.spread = statistics.median(times), (min(times), max(times))
    figures.ready = case.ready()
    figures.schedules = case.schedules
    if peers is not None:
        figures.peers = dict(peers(case))
    return figures


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
    best = f.best_peer
    return [
        f.name,
        f"{f.bytes / 1e6:.0f}",
        f"{f.floor:.1f}",
        _shown(f.time, 1),
        _shown(f.fraction(), 2),
        *(_shown(f.peers.get(name), 1) for name in names),
        _shown(best / f.time if best and f.time else None, 2),
        _shown(f.ready, 0),
        f.wrong or "right",
    ]


def _shown(value: float | str | None, digits: int) -> str:
    return value if isinstance(value, str) else "" if value is None else f"{value:.{digits}f}"


def summary(figures: Sequence[Figures]) -> dict[str, float]:
    """The geometric mean of how much faster than the best peer, and the least of it."""
    ratios = [f.best_peer / f.time for f in figures if f.best_peer and f.time]
    if not ratios:
        return {}
    mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
    return {"geometric mean over the best peer": mean, "least": min(ratios)}


def as_json(runtime: GpuRuntime, speed: float, figures: Sequence[Figures]) -> str:
    """All figures, with the GPU and what compiled."""
    made = {
        "gpu": runtime.model,
        "arch": runtime.arch,
        "compiler": runtime.compiler,
        "copy_gb_per_s": speed / 1e3,
        "summary": summary(figures),
        "cases": [asdict(f) for f in figures],
    }
    return json.dumps(made, indent=2) + "\n"
