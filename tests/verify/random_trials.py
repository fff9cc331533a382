"""Random programs tried: lowered for a target under some schedule, each stage and the printed kernels compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from random_programs import RandomProgram
from sure_elements import Arrays, Rejected, reference

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.amd import compile_amd
from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.codegen.runtime.isolated import run_apart
from genrw.engine.interpret.compare import compare
from genrw.engine.ir.nodes import Unit
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.trace import Trace
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

TOGETHER = 10
"""How many programs are lowered in one call."""
ORDERS = (0, 1, 7)
"""How the groups and waves of printed kernels take turns."""
SECONDS_APART = 120.0
"""How long kernels may take in a process of their own."""
_NO_EXACT_PLAN = ("too large for an exact plan", "was found within")
"""What is said of programs that have no exact plan, or none in time, which are none of those that may be asked for one."""


@dataclass(frozen=True)
class Trial:
    """A program, what it is lowered for and how. `schedule` is what schedules are to be like, None for the cheapest, or if
    `forced` for any; `special` puts infinities, NaN and the like among the inputs."""

    program: RandomProgram
    target: str
    seed: int = 0
    schedule: Mapping[str, Any] | None = None
    forced: bool = False
    strict: bool = False
    plan: str = "search"
    special: bool = False


@dataclass(frozen=True)
class Fault:
    """What is wrong: `kind` tells faults apart, `text` is the message, `schedule` what was taken of those legal."""

    kind: str
    text: str
    schedule: Mapping[str, Any] | None = None


@dataclass
class Lowered:
    """A trial whose kernels are printed: the program as written, its inputs and results, and where these are sure."""

    trial: Trial
    program: Program
    kernels: list[KernelSource]
    inputs: Arrays
    wanted: Arrays
    sure: Arrays

    def fault(self, kind: str, text: str) -> Fault:
        return Fault(kind, text, self.trial.schedule)

    def wrong(self, results: Arrays, kind: str) -> Fault | None:
        """What is wrong with results."""
        if list(results) != list(self.wanted):
            return self.fault(kind, f"the results are {list(results)}, not {list(self.wanted)}")
        for name in self.program.results:
            got, want = results[name], self.wanted[name]
            if got.shape != want.shape:
                return self.fault(kind, f"{name} has lens {list(got.shape)}, not {list(want.shape)}")
            types = self.program.computed_in[name]
            with np.errstate(all="ignore"):
                message = compare(np.where(self.sure[name], got, want.astype(got.dtype)), want, *types)
            if message:
                return self.fault(kind, f"{name} {message}")
        return None


def drawn_trial(program: RandomProgram, library: Library, seed: int, number: int) -> Trial:
    """A way to lower a program: for any target, more often than not under a schedule that need not be the cheapest.

    What programs have in common that are lowered together is drawn for all of them.
    """
    alike, random = Random(f"trials {seed} {number // TOGETHER}"), Random(f"trial {seed} {number}")
    return Trial(
        program,
        alike.choice(list(library.targets)),
        seed=random.randrange(1000),
        forced=random.random() < 0.6,
        strict=alike.random() < 0.1,
        plan="exact" if alike.random() < 0.05 else "search",
        special=random.random() < 0.15,
    )


def loaded(trial: Trial, library: Library) -> Program:
    """The program as written."""
    options = Options(target=trial.target, strict=trial.strict, plan=trial.plan)
    return Program.parse(Source("random.gen", trial.program.text), library, options)


def lowered_trials(trials: Sequence[Trial], library: Library) -> list[Lowered | Fault | Rejected]:
    """Trials that agree in target, plan and strictness, lowered together, each stage interpreted, the kernels printed; or
    what is wrong with each."""
    begun = [_begun(trial, library) for trial in trials]
    found = {i: b for i, b in enumerate(begun) if isinstance(b, Lowered)}
    faults: dict[int, Fault] = {}
    units = {i: replace(b.program.units[0].kernels[0], name=f"p{i}") for i, b in found.items()}
    current = {i: Unit((module,)) for i, module in units.items()}
    for stage in library.stages:
        if not found:
            break
        program = next(iter(found.values())).program.with_units(tuple(current.values()))
        try:
            lowered = program.lower(stage)
        except Exception as problem:
            if len(found) > 1:
                return _one_by_one(trials, library, problem)
            if any(said in str(problem) for said in _NO_EXACT_PLAN):
                return [Rejected(str(problem)) if i in found else b for i, b in enumerate(begun)]
            kind = _kind(problem, f"refused at {stage}", f"at {stage}")
            faults.update((i, only.fault(kind, str(problem))) for i, only in found.items())
            current = {}
            break
        current = dict(zip(current, lowered.units, strict=True))
        for i in [*current]:
            if stage == "schedule":
                current[i] = _scheduled(found[i], current[i], lowered.trace)
            fault = _interpreted(found[i], current[i], stage)
            if fault is not None:
                faults[i] = fault
                del current[i], found[i]
    for i, unit in current.items():
        fault = _printed(found[i], unit)
        if fault is not None:
            faults[i] = fault
    return [faults.get(i, b) for i, b in enumerate(begun)]


def _one_by_one(trials: Sequence[Trial], library: Library, problem: Exception) -> list[Lowered | Fault | Rejected]:
    """Trials that cannot be lowered together: one of them cannot be lowered alone, or that is a fault of its own."""
    found = [lowered_trials([trial], library)[0] for trial in trials]
    told = any(said in str(problem) for said in _NO_EXACT_PLAN)
    if told or any(isinstance(result, Fault) for result in found):
        return found
    return [Fault(_kind(problem, "refused together", "together"), str(problem)), *found[1:]]


def _kind(problem: Exception, refused: str, place: str) -> str:
    return refused if isinstance(problem, GenrwError) else f"{type(problem).__name__} {place}"


def _begun(trial: Trial, library: Library) -> Lowered | Fault | Rejected:
    """The trial with what is right, not lowered yet."""
    program = loaded(trial, library)
    try:
        inputs, wanted, sure = reference(program, trial.seed, special=trial.special)
    except Rejected as problem:
        return problem
    except Exception as problem:
        return Fault(_kind(problem, "cannot be interpreted as written", "as written"), str(problem))
    return Lowered(trial, program, [], inputs, wanted, sure)


def _scheduled(found: Lowered, unit: Unit, trace: Trace) -> Unit:
    """The program under the schedules that its trial asks for; the trial tells then the one that was taken, of several
    kernels that which is most like what was asked for."""
    legal = {m.name: [s for _, s, _ in trace.schedules.get(m.name, ())] for m in unit.kernels}
    trial, random = found.trial, Random(found.trial.seed)
    if trial.forced and trial.schedule is None and any(legal.values()):
        schedules = random.choice([s for s in legal.values() if s])
        algos = list(dict.fromkeys(s["algo"] for s in schedules))
        algo = "matrix" if "matrix" in algos and random.random() < 0.5 else random.choice(algos)
        trial = found.trial = replace(trial, schedule=random.choice([s for s in schedules if s["algo"] == algo]))
    if trial.schedule is None:
        return unit
    wanted = trial.schedule

    def likeness(schedule: Mapping[str, Any]) -> int:
        return sum((8 if k == "algo" else 1) * (schedule.get(k) == v) for k, v in wanted.items())

    # The cheapest of those that are most like it.
    taken = {name: max(schedules, key=likeness) for name, schedules in legal.items() if schedules}
    if taken:
        found.trial = replace(trial, schedule=max(taken.values(), key=likeness))
    return replace(unit, kernels=tuple(replace(m, schedule=taken.get(m.name, m.schedule)) for m in unit.kernels))


def _printed(found: Lowered, unit: Unit) -> Fault | None:
    found.program = replace(found.program, units=(unit,))
    try:
        found.kernels = found.program.kernels()
    except Exception as problem:
        return found.fault(_kind(problem, "refused to print", "in printing"), str(problem))
    return None


def _interpreted(found: Lowered, unit: Unit, stage: str) -> Fault | None:
    try:
        results = replace(found.program, units=(unit,)).run(found.inputs, "interpret")
    except Exception as problem:
        return found.fault(_kind(problem, f"cannot be interpreted at {stage}", f"at {stage}"), str(problem))
    return found.wrong(results, f"wrong at {stage}")


def compiled(trials: list[Lowered], *, cache: bool = False) -> Iterator[tuple[Lowered, list[HostProgram] | Fault]]:
    """The kernels of trials for the CPU, compiled together as far as they can be."""
    try:
        programs = iter(HostProgram.compile_all([k for t in trials for k in t.kernels], cache=cache))
        yield from [(t, [next(programs) for _ in t.kernels]) for t in trials]
    except GenrwError as problem:
        if len(trials) == 1:
            yield trials[0], trials[0].fault("does not compile", str(problem))
            return
        middle = len(trials) // 2
        yield from compiled(trials[:middle], cache=cache)
        yield from compiled(trials[middle:], cache=cache)


def host_fault(found: Lowered, kernels: list[HostProgram]) -> Fault | None:
    """What is wrong with the results of the kernels on the CPU; first where memory ends with each array."""
    sequence = HostSequence(kernels, found.program)
    try:
        run_apart(sequence, found.inputs, SECONDS_APART, threads=2, order=ORDERS[0])
    except GenrwError as problem:
        return found.fault(_kind(problem, "stopped on the CPU", "on the CPU"), str(problem))
    for order in ORDERS:
        results = sequence(found.inputs, threads=2, order=order)
        fault = found.wrong(dict(results), "wrong on the CPU")
        if fault is not None:
            return replace(fault, text=f"{fault.text} (order {order})")
    return None


def device_fault(found: Lowered, library: Library) -> Fault | None:
    """What the compiler for an AMD target says of the kernels."""
    arch = found.trial.target
    if library.target(arch).values["device"] != "hip":
        return None
    for kernel in found.kernels:
        try:
            compile_amd(kernel.text, arch, kernel.wave_size, kernel.name)
        except GenrwError as problem:
            return found.fault("does not compile for the GPU", str(problem))
    return None


def first_fault(trial: Trial, library: Library, *, on_device: bool = False) -> Fault | None:
    """All that can be wrong with one trial; None also where it says nothing."""
    (found,) = lowered_trials([trial], library)
    if not isinstance(found, Lowered):
        return found if isinstance(found, Fault) else None
    ((_, kernels),) = compiled([found])
    fault = kernels if isinstance(kernels, Fault) else host_fault(found, kernels)
    return fault or (device_fault(found, library) if on_device else None)
