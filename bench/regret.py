"""By how much the first choice of schedules is slower than the best of the space: `python bench/regret.py models --device
cuda`.

All schedules of each kernel are timed, none is taken from the database of `genrw tune`, and none is kept there. Results are
not checked: `genrw bench` does that. `--part 2/3` measures the second of three parts of the cases; `--bars MEAN WORST` ends
with status 1 unless the mean and the worst regret stay within them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from table import parser, report

from genrw.api import load_source
from genrw.codegen.runtime.devices import find_device
from genrw.engine.lowering.options import Options
from genrw.grammar.diagnostics import GenrwError
from genrw.measure.cases import RANDOM, BenchCase, suite
from genrw.measure.random_cases import random_cases
from genrw.measure.tune import Request, Tuned, measured_kernels
from genrw.program import Program
from genrw.tuned import Database

ALL = 1 << 30


@dataclass
class Case:
    """A case's microseconds under the first choice and under the best schedule, over all of its kernels."""

    name: str
    schedules: int = 0
    first: float = 0.0
    best: float = 0.0
    taken: str = ""
    better: str = ""

    @property
    def regret(self) -> float:
        return self.first / self.best - 1

    def add(self, kernel: Tuned) -> None:
        """Count a kernel in, if a choice was to be made of its schedules."""
        timed = [m for m in kernel.right if m.microseconds is not None]
        if not timed:
            return
        best = min(timed, key=lambda m: m.microseconds or 0.0)
        self.schedules += len(timed)
        self.first += timed[0].microseconds or 0.0
        self.best += best.microseconds or 0.0
        if best is not timed[0]:
            self.taken += f"{kernel.kernel}: {_shown(timed[0].schedule)} "
            self.better += f"{kernel.kernel}: {_shown(best.schedule)} "


def _shown(schedule: object) -> str:
    return str(schedule).replace("'", "")


def cases_of(given: argparse.Namespace) -> list[BenchCase]:
    """The cases that are asked for."""
    if given.suite == RANDOM:
        cases = random_cases(given.seed, given.count, given.only)
    else:
        cases = suite(given.suite, given.only, given.quick)
    part, _, parts = given.part.partition("/")
    return cases[int(part) - 1 :: int(parts)]


def measured(cases: Iterable[BenchCase], given: argparse.Namespace) -> Iterator[Case]:
    """Each case's figures; one that fails is left out, and told."""
    target = find_device(given.device).default_target
    request = Request(given.device, given.best, given.times, None, checked=False)
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "tuned")
        for case in cases:
            found = Case(case.name)
            try:
                program: Program = load_source(case.source, Options(target))
                for kernel in measured_kernels([(case.name, program)], request, database):
                    found.add(kernel)
            except (GenrwError, ArithmeticError, OSError, RuntimeError) as problem:
                print(f"{case.name}: {problem}", file=sys.stderr, flush=True)
                continue
            if found.best:
                print(f"{case.name}: {100 * found.regret:.1f} %", file=sys.stderr, flush=True)
                yield found


def main() -> int:
    arguments = parser(__doc__ or "", times=9)
    arguments.add_argument("suite", nargs="?", default="models", help="a suite, a folder of programs, or a program")
    arguments.add_argument("--device", default="cuda", help="host, hip or cuda")
    arguments.add_argument("--only", help="cases whose name holds this")
    arguments.add_argument("--quick", action="store_true", help="each kernel of the suite once, at small extents")
    arguments.add_argument("--seed", type=int, default=0, help="which programs the suite random has")
    arguments.add_argument("--count", type=int, default=200, help="how many")
    arguments.add_argument("--part", default="1/1", metavar="I/N", help="each N-th case, from the I-th on")
    arguments.add_argument("--best", type=int, default=ALL, help="how many schedules of each kernel, cheapest first")
    arguments.add_argument(
        "--bars", type=float, nargs=2, metavar=("MEAN", "WORST"), help="shares that must not be exceeded"
    )
    given = arguments.parse_args()
    cases = sorted(measured(cases_of(given), given), key=lambda case: -case.regret)
    rows = [[c.name, c.schedules, c.first, c.best, c.regret, c.taken, c.better] for c in cases]
    report(["case", "schedules", "first µs", "best µs", "regret", "taken", "better"], rows, given.json)
    if not cases:
        return 1
    mean, worst = statistics.fmean(c.regret for c in cases), cases[0].regret
    print(f"{len(cases)} cases: mean regret {100 * mean:.2f} %, worst {100 * worst:.1f} % ({cases[0].name})")
    return 1 if given.bars and (mean > given.bars[0] or worst > given.bars[1]) else 0


if __name__ == "__main__":
    sys.exit(main())
