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
from genrw.engine.compare import compare
from genrw.engine.dtypes import DTYPES, numpy_dtype
from genrw.engine.inputs import random_inputs
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
    schedule: dict[str, Any] = field(default_factory=dict)
    peers: dict[str, float | str] = field(default_factory=dict)

    def fraction(self, launch: float = 0.0) -> float | None:
        """The share of the copy's speed that was reached, `launch` microseconds taken off."""
        return None if not self.time else self.floor / max(self.time - launch, 1e-9)

    @property
    def best_peer(self) -> float | None:
        return min((t for t in self.peers.values() if isinstance(t, float)), default=None)


@dataclass
class Buffers:
    """One set of a case's memories on the GPU, in the order of the kernel's arguments."""

    memories: list[Memory]

    @property
    def pointers(self) -> list[int]:
        return [m.pointer for m in self.memories]


class Case:
    """A program of a suite, loaded on a GPU with rotating sets of inputs."""

    def __init__(self, runtime: GpuRuntime, path: Path, seed: int = 0) -> None:
        self.runtime = runtime
        self.name = path.stem
        self.program = load(path, target=runtime.arch)
        sources = self.program.kernels()
        if len(sources) != 1:
            raise error(f"{path} is {len(sources)} kernels: a suite's program is one")
        self.source = sources[0]
        self.kernel = GpuKernel.load(runtime, self.source, path.name)
        self.inputs = random_inputs(self.program.origin[0], self.program.library, seed)
        self.sets = [self._set() for _ in range(self._set_count())]

    @property
    def bytes(self) -> int:
        return sum(self._sizes())

    def _sizes(self) -> list[int]:
        return [memory_size(a.lens, a.strides) * DTYPES[a.dtype].itemsize for a in self.source.arguments]

    def _set_count(self) -> int:
        return max(2, min(_MOST_SETS, math.ceil(_ROTATED_BYTES / max(self.bytes, 1))))

    def _set(self) -> Buffers:
        memories = [Memory(self.runtime, size) for size in self._sizes()]
        for argument, memory in zip(self.source.arguments, memories, strict=True):
            if not argument.written:
                flat = to_memory(self.inputs[argument.parameter], argument.strides)
                self.runtime.write(memory.pointer, flat, 0)
        return Buffers(memories)

    def check(self) -> str | None:
        """What is wrong with the results, computed into poisoned memory; None if they are right."""
        first = self.sets[0]
        written = [(i, a) for i, a in enumerate(self.source.arguments) if a.written]
        for i, _ in written:
            self.runtime.fill(first.pointers[i], _POISON, self._sizes()[i], 0)
        self.kernel.launch(first.pointers, 0)
        self.runtime.synchronize(0)
        wanted = reference_run(self.program)(self.inputs, precise=True)
        for (i, argument), (name, want) in zip(written, wanted.items(), strict=True):
            memory = np.empty(memory_size(argument.lens, argument.strides), numpy_dtype(argument.dtype))
            self.runtime.read(memory, first.pointers[i], 0)
            problem = compare(from_memory(memory, argument.lens, argument.strides), want, argument.dtype)
            if problem:
                return f"{name} {problem}"
        return None

    def times(self, count: int) -> list[float]:
        """Times of one launch, from `count` graphs of several launches each."""

        def launches(stream: int) -> None:
            for i in range(_GRAPH_RUNS):
                self.kernel.launch(self.sets[i % len(self.sets)].pointers, stream)

        graph = self.runtime.captured(launches)
        return [t / _GRAPH_RUNS for t in self.runtime.times(graph, count + 1)[1:]]

    def ready(self) -> float:
        """Milliseconds from text to a loaded kernel that no cache holds: the median of several programs alike."""
        taken = []
        for i in range(_READY_RUNS):
            text = self.program.text.replace("@return", f"# {i}\n@return")
            started = time.perf_counter()
            source = load(_renamed(text, i), target=self.runtime.arch).kernels()[0]
            self.runtime.load(self.runtime.build(source), source.name)
            taken.append(1e3 * (time.perf_counter() - started))
        return statistics.median(taken)


def _renamed(text: str, number: int) -> str:
    """The program under other names, so that nothing remembers it."""
    return f"@module fresh{number}\n{text}"


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
    figures.schedule = dict(case.program.lower("schedule").modules[0].schedule)
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
