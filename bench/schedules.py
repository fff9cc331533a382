"""What schedules take on a GPU, to fit their costs to, and how well costs rate them.

    python bench/schedules.py measure measured.jsonl       times schedules of random programs, of the kernels of the suite
                                                           `models` at other extents and types, and of that suite itself
    python bench/schedules.py rate measured.jsonl          how much slower the cheapest schedules are than the best

Processes lower and compile side by side; one at a time measures. Of each kernel the cheapest schedules are measured, and a few
of the others. The suite `models` is there to judge by: costs are fitted to the rest. Rating takes no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import log
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from genrw.api import load_source
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.lowering.options import Options
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.measure.cases import SUITES, BenchCase, _filled, cases_in
from genrw.measure.random_cases import random_case
from genrw.measure.tune import _kernels
from genrw.program import Program

JUDGED = "models"
FACTORS = (0.5, 0.75, 1, 1, 1.25, 1.5, 2)
TYPES = ("half", "half", "bf16", "float")
LEAST_BYTES, MOST_BYTES = 1e6, 6e8
CHEAPEST, OTHERS, TIMES = 9, 4, 3
TRIES = 30

Row = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What the processes share: the target, the folder of their files, and when they have to be done."""

    target: str
    folder: Path
    until: float


# ---- programs


def programs(target: str, random: int, seed: int) -> list[tuple[str, Source]]:
    """Programs to measure with the kind of each, in an order that mixes kinds."""
    draw = Random(seed)
    models = cases_in(JUDGED) or []
    kernels = {case.kernel: case for case in models}
    found = [("varied", source) for case in kernels.values() if (source := varied(case, target, draw)) is not None]
    found += [("random", random_case(seed, number).source) for number in range(random)]
    found += [(JUDGED, case.source) for case in models]
    draw.shuffle(found)
    return found


def varied(case: BenchCase, target: str, draw: Random) -> Source | None:
    """A kernel of the suite at other extents and of other types; None where none was found that may be."""
    name = f"varied-{case.kernel}"
    for _ in range(TRIES):
        values = {key: _other(value, draw) for key, value in case.open.items()}
        if values == dict(case.open):
            continue
        with suppress(GenrwError):
            source = Source(name, _filled(SUITES / JUDGED / "cases.toml", name, case.kernel, values))
            if LEAST_BYTES < _bytes(load_source(source, Options(target))) < MOST_BYTES:
                return source
    return None


def _other(value: Any, draw: Random) -> Any:
    if isinstance(value, int) and value > 8:
        return max(2, int(value * draw.choice(FACTORS)))
    return draw.choice(TYPES) if value in TYPES else value


def _bytes(program: Program) -> int:
    types = [node.type for node in (*program.inputs.values(), *program.results.values())]
    return sum(t.elements * DTYPES[t.dtype].itemsize for t in types)


# ---- measuring


def measure(given: argparse.Namespace) -> None:
    """Write a line for each kernel: its program, and what its schedules take."""
    found = programs(given.target, given.random, given.seed)
    context = get_context("spawn")
    lock, count = context.Lock(), given.processes
    request = Request(given.target, given.file.parent, time.time() + given.seconds)
    workers = [context.Process(target=_work, args=(i, found[i::count], request, lock)) for i in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    parts = [_part(request, i) for i in range(count)]
    given.file.write_text("".join(part.read_text() for part in parts if part.is_file()))
    for part in parts:
        part.unlink(missing_ok=True)


def _part(request: Request, number: int) -> Path:
    return request.folder / f".schedules-{number}.jsonl"


def _work(number: int, found: Sequence[tuple[str, Source]], request: Request, lock: Any) -> None:
    os.environ["GENRW_TUNED"] = os.devnull + "/none"
    with _part(request, number).open("w") as file:
        for kind, source in found:
            with suppress(GenrwError, ArithmeticError, OSError, RuntimeError):
                for name, kernel in _kernels(load_source(source, Options(request.target))).items():
                    times = list(_times(kernel, request, lock))
                    row = {"kind": kind, "case": source.name, "kernel": name, "text": source.text, "times": times}
                    file.write(json.dumps(row) + "\n")
                    file.flush()
            if time.time() > request.until:
                return


def _times(kernel: Program, request: Request, lock: Any) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """The microseconds that schedules of a kernel take."""
    from genrw.codegen.runtime.devices import find_device
    from genrw.codegen.runtime.gpu import GpuDevice, code_objects
    from genrw.engine.interpret.inputs import random_inputs
    from genrw.measure.gpu_case import GpuCase

    device = find_device("cuda")
    assert isinstance(device, GpuDevice)
    runtime, case, inputs = device.runtime, None, None
    for schedule in _chosen(kernel):
        if time.time() > request.until:
            return
        pinned = kernel.pinned(schedule)
        code_objects(runtime, pinned, pinned.kernels())
        inputs = inputs or random_inputs(pinned.origin[0], pinned.library, 0)
        with lock:
            runtime.enter()
            if case is None:
                case = GpuCase(runtime, pinned, kernel.source.name, inputs=inputs)
            else:
                case.use(pinned)
            yield statistics.median(case.times(TIMES)), schedule


def _chosen(kernel: Program) -> list[Mapping[str, Any]]:
    rated = rated_schedules(kernel)
    others = rated[CHEAPEST:]
    Random(kernel.source.name).shuffle(others)
    return [schedule for _, schedule in rated[:CHEAPEST] + others[:OTHERS]]


def rated_schedules(kernel: Program) -> list[tuple[float, Mapping[str, Any]]]:
    """The schedules of a kernel with their costs, the cheapest first."""
    (module,) = kernel.modules
    scheduled = next(stage for stage in kernel.stages if kernel.library.is_scheduled(stage))
    return [(cost, schedule) for cost, schedule, _ in kernel.lower(scheduled).trace.schedules.get(module.name, ())]


# ---- rating


def rate(given: argparse.Namespace) -> None:
    """Print for each kind of programs how much slower the cheapest schedules are than the best measured ones."""
    rows = [json.loads(line) for line in given.file.read_text().splitlines()]
    regrets: dict[str, list[float]] = {}
    for row in rows:
        regret = _regret(row, given.target)
        if regret is not None:
            regrets.setdefault(row["kind"], []).append(regret)
    for kind, found in sorted(regrets.items()):
        ends = sorted(found)
        print(
            f"{kind}: {len(found)} kernels, mean {statistics.fmean(found):.3f}, nine tenths below "
            f"{ends[9 * len(ends) // 10]:.3f}, above 0.03: {sum(r > 0.03 for r in found)}"
        )


def _regret(row: Row, target: str) -> float | None:
    """The logarithm of the times' ratio; None where nothing was to be chosen."""
    kernel = _kernels(load_source(Source(row["case"], row["text"]), Options(target))).get(row["kernel"])
    if kernel is None:
        return None
    costs = {_key(schedule): cost for cost, schedule in rated_schedules(kernel)}
    known = [(costs[_key(s)], microseconds) for microseconds, s in row["times"] if _key(s) in costs]
    return log(min(known)[1] / min(t for _, t in known)) if len(known) > 1 else None


def _key(schedule: Mapping[str, Any]) -> str:
    return json.dumps(dict(schedule), sort_keys=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "rate"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--random", type=int, default=220, help="how many random programs")
    parser.add_argument("--seed", type=int, default=90210, help="which ones")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=350.0, help="when to stop")
    given = parser.parse_args()
    measure(given) if given.what == "measure" else rate(given)


if __name__ == "__main__":
    main()
