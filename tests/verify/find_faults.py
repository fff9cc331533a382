"""Random programs by the thousand: each lowered, interpreted at every stage, compiled for the CPU and run.

    python tests/verify/find_faults.py --count 2000 --seed 1

prints each fault with a small program, and how to try it again. The exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from random_contractions import random_contraction
from random_networks import random_network
from random_programs import random_program, writable
from random_trials import (
    TOGETHER,
    Fault,
    Lowered,
    Trial,
    compiled,
    device_fault,
    drawn_trial,
    first_fault,
    host_fault,
    lowered_trials,
)
from shrinking import shrunk, signature
from sure_elements import Rejected

from genrw.authoring.rulesets import load_library
from genrw.codegen.runtime.compilers import zig
from genrw.engine.language.expr_walk import did_you_mean
from genrw.engine.library.infer import show
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError, error

CHUNK = 40
"""Programs of one process: their kernels are compiled together, and what dies takes no more than these with it."""
DEVICE_SHARE = 8
"""One in so many programs is compiled for the GPU, too."""


@dataclass(frozen=True)
class Found:
    """A fault of a program's number, `trial` being as small as it was made."""

    number: int
    trial: Trial
    fault: Fault


@dataclass
class Totals:
    """What became of the programs."""

    programs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[int]] = field(default_factory=dict)


def check_operators(library: Library, operators: Sequence[str]) -> None:
    """GenrwError for an operator that random programs cannot hold."""
    names = [name for named in writable(library).values() for name in named]
    for operator in operators:
        if operator not in names:
            what = "random programs have no" if library.find(operator) else "there is no operator"
            remedy = did_you_mean(operator, names) or "docs/operators.md lists the operators: take one on tensors"
            raise error(f"{what} `{operator}`", remedy=remedy)


def trial_of(
    library: Library, seed: int, number: int, operators: Sequence[str] = (), contractions: bool = False
) -> Trial:
    """The trial of a number: programs are made around contractions, every other one as networks have them, or hold these
    operators in turn, or all that there are."""
    if contractions:
        write = random_network if number % 2 else random_contraction
        drawn = drawn_trial(write(library, (seed, number)), library, seed, number)
        target = Random(f"target {seed} {number // TOGETHER}").choice((*library.targets, "sm_90", "sm_90"))
        # most have too many plans for an exact one, and products of special values are beyond a float's range
        return replace(drawn, target=target, plan="search", special=False, forced=number % 8 > 0)
    names = [*operators] or [name for named in writable(library).values() for name in named]
    program = random_program(library, (seed, number), [names[number % len(names)]])
    return drawn_trial(program, library, seed, number)


def has_device_compiler() -> bool:
    """Whether kernels can be compiled for AMD GPUs here."""
    try:
        zig()
    except GenrwError:
        return False
    return True


class Worker:
    """Tries the programs of one chunk, and tells its parent what it does and finds."""

    def __init__(
        self,
        library: Library,
        pipe: Connection,
        known: set[str],
        shrink: float,
        operators: Sequence[str],
        contractions: bool,
    ) -> None:
        self.library, self.pipe, self.known, self.shrink = library, pipe, known, shrink
        self.operators, self.contractions = operators, contractions
        self.has_device_compiler = has_device_compiler()

    def run(self, seed: int, numbers: Sequence[int]) -> None:
        waiting: list[tuple[int, Lowered]] = []
        groups = {n // TOGETHER: [m for m in numbers if m // TOGETHER == n // TOGETHER] for n in numbers}
        for group in groups.values():
            trials = {
                number: trial_of(self.library, seed, number, self.operators, self.contractions) for number in group
            }
            self.pipe.send(("at", group[0], trials[group[0]]))
            found = lowered_trials(list(trials.values()), self.library)
            for (number, trial), result in zip(trials.items(), found, strict=True):
                if isinstance(result, Rejected):
                    self.pipe.send(("count", "said nothing", 1))
                elif isinstance(result, Fault):
                    self.tell(number, trial, result)
                else:
                    waiting.append((number, result))
        self._compiled(waiting)
        self.pipe.send(("done", None, None))

    def _compiled(self, waiting: list[tuple[int, Lowered]]) -> None:
        numbers = {id(found): number for number, found in waiting}
        for found, kernels in compiled([found for _, found in waiting]) if waiting else ():
            number = numbers[id(found)]
            self.pipe.send(("at", number, found.trial))
            fault = kernels if isinstance(kernels, Fault) else host_fault(found, kernels)
            if fault is None and number % DEVICE_SHARE == 0:
                fault = self._device_fault(found)
            if fault is not None:
                self.tell(number, found.trial, fault)
            else:
                self._count(found)

    def _device_fault(self, found: Lowered) -> Fault | None:
        if self.has_device_compiler:
            return device_fault(found, self.library)
        self.pipe.send(("count", "not compiled for a GPU: there is no compiler", 1))
        return None

    def _count(self, found: Lowered) -> None:
        self.pipe.send(("count", "right", 1))
        self.pipe.send(("count", "kernels", len(found.kernels)))
        self.pipe.send(("count", f"target {found.trial.target}", 1))
        for kernel in found.program.modules:
            self.pipe.send(("count", f"algo {kernel.schedule.get('algo')}", 1))
        self.pipe.send(("count", "elements compared", sum(int(s.sum()) for s in found.sure.values())))
        self.pipe.send(("count", "elements left out", sum(int((~s).sum()) for s in found.sure.values())))

    def tell(self, number: int, trial: Trial, fault: Fault) -> None:
        trial = replace(trial, schedule=fault.schedule, forced=False)
        if signature(fault) not in self.known:
            on_device = "GPU" in fault.kind
            trial, fault = shrunk(
                trial, fault, lambda t: first_fault(t, self.library, on_device=on_device), self.shrink
            )
            if not fault.kind.startswith("wrong"):
                self.known.add(signature(fault))
        self.pipe.send(("fault", number, Found(number, trial, fault)))


def _work(
    rules: list[str],
    pipe: Connection,
    known: set[str],
    shrink: float,
    operators: list[str],
    contractions: bool,
    seed: int,
    numbers: list[int],
) -> None:
    faulthandler.register(signal.SIGUSR1)
    try:
        Worker(load_library(rules), pipe, known, shrink, operators, contractions).run(seed, numbers)
    except BaseException:
        pipe.send(("broken", numbers[0], traceback.format_exc()))
        raise


@dataclass
class Job:
    """A process at work: the numbers that it was given, and what it is at."""

    process: BaseProcess
    pipe: Connection
    numbers: list[int]
    at: int = -1
    trial: Trial | None = None
    told: float = field(default_factory=time.monotonic)


class Hunt:
    """Gives chunks of programs to processes, and prints what they find."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.totals = Totals()
        self.known: set[str] = set()

    def run(self, numbers: Sequence[int]) -> Totals:
        chunks = [list(numbers[i : i + CHUNK]) for i in range(0, len(numbers), CHUNK)]
        jobs: list[Job] = []
        while chunks or jobs:
            while chunks and len(jobs) < self.arguments.jobs:
                jobs.append(self._started(chunks.pop(0)))
            ready = wait([job.pipe for job in jobs], timeout=5)
            for job in list(jobs):
                over = job.pipe in ready and not self._heard(job)
                if time.monotonic() - job.told > self.arguments.patience:
                    os.kill(job.process.pid or 0, signal.SIGUSR1)  # says where it is
                    time.sleep(1)
                    self._ended(job, Fault("takes too long", f"nothing for {self.arguments.patience} s"))
                    over = True
                if over:
                    job.process.kill()
                    job.process.join()
                    jobs.remove(job)
        return self.totals

    def _started(self, numbers: list[int]) -> Job:
        context = get_context("spawn")
        here, there = context.Pipe(False)
        given = (
            self.arguments.rules,
            there,
            set(self.known),
            self.arguments.shrink,
            self.arguments.operators,
            self.arguments.contractions,
            self.arguments.seed,
            numbers,
        )
        process = context.Process(target=_work, args=given)
        process.start()
        there.close()
        self.totals.programs += len(numbers)
        return Job(process, here, numbers)

    def _heard(self, job: Job) -> bool:
        """Take a message; False where there will be none any more."""
        try:
            kind, name, value = job.pipe.recv()
        except EOFError:
            job.process.join()
            number = -(job.process.exitcode or 0)
            name = signal.Signals(number).name if number > 0 else str(job.process.exitcode)
            self._ended(job, Fault("killed the process", f"by {name}"))
            return False
        job.told = time.monotonic()
        if kind == "at":
            job.at, job.trial = name, value
        elif kind == "count":
            self.totals.counts[name] += value
        elif kind == "done":
            print(f"programs {job.numbers[0]} to {job.numbers[-1]} are done", file=sys.stderr, flush=True)
        elif kind == "fault":
            self._show(value)
        elif kind == "broken":
            print(f"the finder itself broke at program {job.at}:\n{value}", flush=True)
            self.totals.faults.setdefault("broke the finder", []).append(job.at)
            return False
        return bool(kind != "done")

    def _ended(self, job: Job, fault: Fault) -> None:
        if job.trial is not None:
            self._show(Found(job.at, job.trial, fault))

    def _show(self, found: Found) -> None:
        sort = signature(found.fault)
        numbers = self.totals.faults.setdefault(sort, [])
        numbers.append(found.number)
        if sort in self.known:
            print(f"program {found.number}: again: {sort}", flush=True)
            return
        if not found.fault.kind.startswith("wrong"):
            self.known.add(sort)
        folder = Path(self.arguments.keep)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.arguments.seed}-{found.number}.gen"
        path.write_text(found.trial.program.text, encoding="utf-8")
        print(f"\n==== program {found.number}: {found.fault.kind}\n{found.trial.program.text}", flush=True)
        print(f"{found.fault.text}\n", flush=True)
        print(f"again: {' '.join(_command(found.trial, path))}")
        operators = ["--operators", *self.arguments.operators] if self.arguments.operators else []
        operators += ["--contractions"] if self.arguments.contractions else []
        print(
            "or:    python", sys.argv[0], *operators, f"--seed {self.arguments.seed} --only {found.number}", flush=True
        )


def _command(trial: Trial, path: Path) -> Iterator[str]:
    """The command line that tries a program again."""
    yield from ("genrw", "run", str(path), "--check", "--target", trial.target, "--seed", str(trial.seed))
    if trial.schedule is not None:
        yield from ("--schedule", ",".join(f"{k}={show(v)}" for k, v in trial.schedule.items()))
    if trial.strict:
        yield "--strict"
    if trial.plan != "search":
        yield from ("--plan", trial.plan)
    if trial.special:
        yield "# with infinities and NaN among the inputs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--only", type=int, nargs="*", help="programs of these numbers")
    parser.add_argument(
        "--operators", nargs="*", default=[], help="programs hold these in turn, not all that there are"
    )
    parser.add_argument("--contractions", action="store_true", help="programs around products, convolutions, pools")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--shrink", type=float, default=60, help="seconds to make a failing program smaller")
    parser.add_argument("--patience", type=float, default=900, help="seconds that one step may take")
    parser.add_argument("--keep", default="faults", help="the folder for failing programs")
    parser.add_argument("--rules", action="append", default=[], help="a folder of rules to add")
    arguments = parser.parse_args()
    try:
        check_operators(load_library(arguments.rules), arguments.operators)
    except GenrwError as problem:
        print(problem, file=sys.stderr)
        return 2
    os.environ.setdefault("GENRW_TUNED", os.devnull + "/none")
    numbers = arguments.only or range(arguments.first, arguments.first + arguments.count)
    started = time.monotonic()
    totals = Hunt(arguments).run(numbers)
    print(f"\n{totals.programs} programs in {time.monotonic() - started:.0f} s")
    for name, count in sorted(totals.counts.items()):
        print(f"  {name}: {count}")
    for name, failed in sorted(totals.faults.items(), key=lambda item: -len(item[1])):
        print(f"  {len(failed)} times {name}: {', '.join(map(str, failed[:12]))}")
    return 1 if totals.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
