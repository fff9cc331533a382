"""What the benchmarks share: medians, a table, and figures as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def medians(run: Callable[[], object], times: int) -> tuple[float, float]:
    """The medians of so many runs, after one that does not count: milliseconds, and those of the processor."""
    run()
    wall, processor = [], []
    for _ in range(times):
        before = _processor_seconds()
        wall.append(1e3 * seconds(run))
        processor.append(1e3 * (_processor_seconds() - before))
    return statistics.median(wall), statistics.median(processor)


def _processor_seconds() -> float:
    """What this process and those that it waited for have taken."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def seconds(run: Callable[[], object]) -> float:
    """How long one run takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def parser(description: str, times: int = 21) -> argparse.ArgumentParser:
    """The options of all: `--json FILE`, and `--times N` to run more or less often."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    made.add_argument("--times", metavar="N", type=int, default=times, help="runs of each measurement")
    return made


def options(description: str) -> argparse.Namespace:
    """The command line."""
    return parser(description).parse_args()


def report(headings: Sequence[str], rows: Sequence[Sequence[Any]], path: Path | None) -> None:
    """Print a table; write it to a file as JSON if one is named."""
    texts = [list(headings), *[[_text(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in texts) for i in range(len(headings))]
    for first, *others in texts:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))
    if path is not None:
        figures = [dict(zip(headings, row, strict=True)) for row in rows]
        path.write_text(json.dumps({"machine": machine(), "figures": figures}, indent=2) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {"cores": len(os.sched_getaffinity(0)), "processor": platform.machine(), "python": sys.version.split()[0]}


def _text(cell: Any) -> str:
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)
