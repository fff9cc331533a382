"""What the benchmarks of contractions share: cases run beside PyTorch on one GPU, compiled by several processes.

A process lowers and compiles while others measure; one at a time has the GPU.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import multiprocessing
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import torch

import genrw

TYPES = {"half": torch.half, "bf16": torch.bfloat16, "float": torch.float, "double": torch.double, "int8": torch.int8}
_TOLERANCE = 1e-2  # of the norm of what is expected: bf16 operands leave 1e-3 to 5e-3
_SAID = ("algo", "tile", "waves", "stages", "staged", "instruction", "vector", "share", "patch")


@dataclass(frozen=True)
class Case:
    """A program and what it is compared with.

    `make` gives its arguments, PyTorch's call, and what is expected, of the first samples at least.
    """

    name: str
    text: str
    operations: float
    make: Callable[[], tuple[list[torch.Tensor], Callable[[], torch.Tensor], torch.Tensor]]


def drawn(shape: Sequence[int], dtype: str) -> torch.Tensor:
    """Random elements: normal ones, or integers from -128 to 127."""
    if dtype == "int8":
        return torch.randint(-128, 128, tuple(shape), device="cuda", dtype=torch.int8)
    return torch.randn(*shape, device="cuda", dtype=TYPES[dtype])


def microseconds(call: Callable[[], object], repeats: int = 20) -> float:
    """The median time of a call on the GPU, captured in a graph so that launching takes no part."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # which may still read memory that the call's result was given
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            call()
    return milliseconds(graph.replay, repeats) * 1000 / 4


def milliseconds(run: Callable[[], object], repeats: int = 20) -> float:
    """The median time of what a run has the GPU do."""
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return median(times)


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean of ratios, of which one is as good as its reciprocal is bad."""
    return exp(sum(map(log, ratios)) / len(ratios))


def main(description: str, cases: Callable[[argparse.Namespace], list[Case]], parser: argparse.ArgumentParser) -> None:
    """Measure the cases that the command line names, and print their geometric mean."""
    parser.add_argument("--only", metavar="REGEX", default="", help="cases whose names match")
    parser.add_argument(
        "--tried", metavar="N", type=int, default=0, help="schedules that are pinned besides the chosen one"
    )
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--processes", metavar="N", type=int, default=1, help="processes that lower and compile")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    parser.description = description
    given = parser.parse_args()
    print(torch.cuda.get_device_name())
    count = len(cases(given))
    with tempfile.NamedTemporaryFile() as lock, multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        rows: list[dict[str, Any]] = []
        for lines in pool.imap(partial(_measured, cases=cases, given=given, lock=lock.name), range(count), chunksize=1):
            for row in lines:
                print(_told(row), flush=True)
            rows += lines
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    _sum_up([row for row in rows if row.get("chosen")])


def _sum_up(rows: list[dict[str, Any]]) -> None:
    ratios = [row["torch"] / row["us"] for row in rows if "us" in row]
    if ratios:
        mean = geometric_mean(ratios)
        print(
            f"{len(ratios)} cases, geometric mean {mean:.3f}, worst {min(ratios):.2f}, failed {len(rows) - len(ratios)}"
        )


def _told(row: dict[str, Any]) -> str:
    if "us" not in row:
        return f"{row['case']:>44}: {row['problem']}"
    rate, peer = row["operations"] / row["us"] / 1e6, row["operations"] / row["torch"] / 1e6
    verdict = "right" if row["off"] < _TOLERANCE else f"WRONG {row['off']:.1e}"
    return (
        f"{row['case']:>44}: {row['us']:9.1f} us {rate:6.1f} T  torch {row['torch']:9.1f} us {peer:6.1f} T  "
        f"ratio {row['torch'] / row['us']:5.2f}  {verdict}  "
        f"predicted {row['predicted']:.1f}  {row['schedule']}"
    )


def _measured(
    index: int, cases: Callable[[argparse.Namespace], list[Case]], given: argparse.Namespace, lock: str
) -> list[dict[str, Any]]:
    """The rows of one case: the schedule that is chosen, then those that are tried."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    case = cases(given)[index]
    if not re.search(given.only, case.name):
        return []
    rows: list[dict[str, Any]] = []
    for schedule in _schedules(case.text, given.tried, given.target):
        row = {"case": case.name, "operations": case.operations, "chosen": not schedule}
        try:
            row |= _chosen(case.text, given.target, schedule)
            program = genrw.compile(case.text, target=given.target, device="cuda", schedule=schedule)
            with _alone(lock):
                row |= _compared(case, program, rows[0].get("torch") if rows else None)
        except Exception as problem:  # a schedule that the device refuses is a row, too
            row["problem"] = f"{type(problem).__name__}: {str(problem).splitlines()[0][:160]} {schedule}"
        rows.append(row)
    return rows


def _compared(case: Case, program: Any, known: float | None) -> dict[str, Any]:
    """Times of the program and of PyTorch's call, and how far the result is off."""
    torch.manual_seed(0)
    arguments, call, expected = case.make()
    peer = known or microseconds(call)
    stream = torch.cuda.current_stream
    like = call()
    out = torch.full_like(like, float("nan") if like.is_floating_point() else -1)
    own = microseconds(lambda: program(*arguments, stream=stream(), out={"y": out}))
    off = (out[: len(expected)].to(expected.dtype) - expected).double().norm() / expected.double().norm()
    torch.cuda.empty_cache()
    return {"us": own, "torch": peer, "off": float(off) if off == off else float("inf")}


@contextmanager
def _alone(lock: str) -> Iterator[None]:
    with open(lock, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        torch.cuda.synchronize()


def _schedules(text: str, count: int, target: str) -> Iterator[dict[str, object]]:
    """No pins, then the schedules that are predicted to be the best."""
    yield {}
    if count:
        lowered = genrw.load(text, target=target).lower("schedule")
        yield from (dict(schedule) for _, schedule, _ in next(iter(lowered.trace.schedules.values()))[:count])


def _chosen(text: str, target: str, schedule: dict[str, object]) -> dict[str, Any]:
    """What is predicted of the program in microseconds, and the schedules of its kernels."""
    lowered = genrw.load(text, target=target, schedule=schedule).lower("schedule")
    best = [rated[0] for rated in lowered.trace.schedules.values()]
    said = [" ".join(f"{key}={pinned[key]}" for key in _SAID if key in pinned) for _, pinned, _ in best]
    return {"predicted": sum(us for us, *_ in best), "schedule": "; ".join(said)}
