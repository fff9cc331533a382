"""`genrw bench`: the programs of a suite on a GPU, checked first and then timed, beside PyTorch where it is there.

Times are those of the GPU: medians between events around captured graphs, over inputs that rotate through more memory
than the cache holds. A case's floor is the time in which its inputs could be read and its results written at the speed
of a copy, measured on the same GPU in the same run.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from genrw.api import load
from genrw.codegen.runtime.gpu import Memory
from genrw.codegen.runtime.gpu_runtime import GpuRuntime
from genrw.folders import PROGRAM
from genrw.grammar.diagnostics import GenrwError, error
from genrw.measure.gpu_case import GpuCase

SUITES = Path(__file__).parents[1] / "suites"

_COPY_BYTES = 1 << 30


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


def copy_speed(runtime: GpuRuntime, count: int = 15) -> float:
    """Bytes that a large copy reads and writes on the GPU per microsecond."""
    source, target = Memory(runtime, _COPY_BYTES), Memory(runtime, _COPY_BYTES)
    runtime.fill(source.pointer, 1, _COPY_BYTES, 0)
    times = runtime.times(lambda s: runtime.copy(target.pointer, source.pointer, _COPY_BYTES, s), count + 1)[1:]
    return 2 * _COPY_BYTES / statistics.median(times)


def programs_in(name: str) -> list[Path] | None:
    """The programs of a folder, else of a shipped suite, in order of name; None for what is neither. GenrwError for a
    folder without any."""
    folder, shipped = Path(name), {suite.name: suite for suite in SUITES.iterdir() if suite.is_dir()}
    found = sorted(folder.glob(f"*{PROGRAM}")) if folder.is_dir() else []
    if not found and name in shipped:
        return sorted(shipped[name].glob(f"*{PROGRAM}"))
    if not found and folder.is_dir():
        below = next(folder.glob(f"*/*{PROGRAM}"), None)
        where = str(below.parent) if below is not None else f"a folder that has, or {', '.join(sorted(shipped))}"
        raise error(f"the folder `{name}` has no {PROGRAM} programs", remedy=f"name {where}")
    return found or None


def suite(name: str, only: str | None = None) -> list[Path]:
    """The programs of a folder or a shipped suite, in order of name, or a program alone; those whose name holds `only`."""
    programs = [Path(name)] if Path(name).is_file() else programs_in(name)
    if programs is None:
        shipped = ", ".join(sorted(p.name for p in SUITES.iterdir() if p.is_dir()))
        raise error(f"there is no suite `{name}`", remedy=f"name a program, a folder of programs, or {shipped}")
    found = [p for p in programs if only is None or only in p.stem]
    if not found:
        names = ", ".join(p.stem for p in programs)
        raise error(f"the suite `{name}` has no program whose name holds `{only}`", remedy=f"it has {names}")
    return found


def measure(
    runtime: GpuRuntime,
    paths: Iterable[Path],
    peers: Callable[[GpuCase], Mapping[str, float | str]] | None,
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
    peers: Callable[[GpuCase], Mapping[str, float | str]] | None,
    count: int,
) -> Figures:
    try:
        case = GpuCase(runtime, load(path, target=runtime.arch), path.stem)
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
