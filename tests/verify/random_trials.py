"""Random programs tried: lowered for a target under some schedule, each stage and the printed kernels compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from random_programs import RandomProgram

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.amd import compile_amd
from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.engine.interpret.compare import ELEMENT_BOUND, compare
from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Module, Node, Unit
from genrw.engine.language.arrays import Array, stored
from genrw.engine.library.library import Library
from genrw.engine.lowering.pipeline import Options, Trace
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

Arrays = dict[str, Any]

TOGETHER = 10
"""How many programs are lowered in one call."""
ORDERS = (0, 1, 7)
"""How the groups and waves of printed kernels take turns."""
NOISE, MARGIN = ((0.0, 0.0), (0.5, 2.0), (-2.0, -0.5), (-2.0, 2.0)), 16
"""From how many to how many epsilons the rounding errors are that are thrown into runs of a program, one run for each
pair; and what part of the bound of errors they may come to where an element is to be compared."""
_SPECIAL = (float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1e30, -7e4, 1e-30)


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


class Rejected(Exception):
    """A program that says nothing: no inputs are found for it, or it asks for elements that there are not."""


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
        for name, node in self.program.results.items():
            got, want = results[name], self.wanted[name]
            if got.shape != want.shape:
                return self.fault(kind, f"{name} has lens {list(got.shape)}, not {list(want.shape)}")
            dtype = node.type.dtype
            with np.errstate(all="ignore"):
                message = compare(np.where(self.sure[name], got, want.astype(got.dtype)), want, dtype)
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


# ---- what is right


def reference(trial: Trial, program: Program) -> tuple[Arrays, Arrays, Arrays]:
    """Inputs, results in double, and which of their elements rounding errors cannot change much."""
    try:
        inputs = dict(random_inputs(program.modules[0], program.library, trial.seed))
    except GenrwError as problem:
        raise Rejected(str(problem)) from None
    if trial.special:
        inputs = _with_special(program, inputs, trial.seed)
    module, context = program.modules[0], program.context(program.modules[0])
    try:
        results, exact = _precise(module, program.library, context, inputs)
    except GenrwError as problem:
        if "out of range" in str(problem):
            raise Rejected(str(problem)) from None
        raise
    wanted = dict(zip(program.results, results, strict=True))
    sure = {name: np.ones(array.shape, np.bool_) for name, array in wanted.items()}
    for run, errors in enumerate(NOISE):
        noise = _Noise(exact, np.random.default_rng((trial.seed, run)), program.library, errors)
        try:
            noisy = _evaluated(module, program.library, context, inputs, noise)
        except GenrwError as problem:
            raise Rejected(str(problem)) from None
        for (name, want), got, node in zip(wanted.items(), noisy, program.results.values(), strict=True):
            sure[name] &= _near(got, want, node.type.dtype)
    return inputs, wanted, sure


def _with_special(program: Program, inputs: Arrays, seed: int) -> Arrays:
    """The inputs with infinities, NaN and other numbers on the edge among floats that lie packed."""
    rng = np.random.default_rng((seed, 99))
    found = dict(inputs)
    for name, node in program.inputs.items():
        if DTYPES[node.type.dtype].is_float and node.type.strides is None:
            places = rng.random(node.type.lens) < 0.05
            with np.errstate(all="ignore"):
                special = rng.choice(_SPECIAL, node.type.lens).astype(numpy_dtype(node.type.dtype))
            found[name] = np.where(places, special, inputs[name])
    return found


def _near(got: Any, want: Any, dtype: str) -> Any:
    """Where a noisy result is as good as the right one."""
    if not DTYPES[dtype].is_float:
        return got == want
    with np.errstate(all="ignore"):
        rounded = want.astype(numpy_dtype(dtype)).astype(np.float64)
        found, right = got.astype(np.float64), want.astype(np.float64)
        same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        finite = np.isfinite(found) & np.isfinite(rounded)
        typical = np.sqrt(np.mean(np.where(finite, right, 0.0) ** 2)) if right.size else 0.0
        bound = ELEMENT_BOUND / MARGIN * DTYPES[dtype].epsilon * (np.abs(right) + typical)
        return same | (finite & (np.abs(found - right) <= bound))


class _Noise:
    """Rounding errors, thrown into what is not exact: into an operation's floating operands and its result."""

    def __init__(
        self, exact: Mapping[int, Any], rng: np.random.Generator, library: Library, errors: tuple[float, float]
    ) -> None:
        self.exact, self.rng, self.library, self.errors = exact, rng, library, errors

    def operands(self, node: Node, operands: list[Array]) -> list[Array]:
        if self.library.role(node.op) == "index_map" or np.all(self.exact[id(node)]):
            return operands
        return [self._with_noise(x, x.dtype, True) for x in operands]

    def result(self, node: Node, value: Array) -> Array:
        if self.library.role(node.op) == "index_map":
            return value
        return self._with_noise(value, node.type.dtype, ~self.exact[id(node)])

    def _with_noise(self, value: Array, dtype: str, places: Any) -> Array:
        if not DTYPES[dtype].is_float:
            return value
        errors = 1 + DTYPES[dtype].epsilon * self.rng.uniform(*self.errors, value.values.shape)
        values = np.where(places, value.values * errors, value.values)
        return stored(Array(values, dtype).finished(dtype, False), dtype, False)


def _precise(
    module: Module, library: Library, context: Mapping[str, Any], inputs: Arrays
) -> tuple[list[Any], dict[int, Any]]:
    """The results in double; and by the identity of the node, which of its elements are numbers of the element type."""
    found: dict[int, Any] = {}

    def note(node: Node, value: Array) -> None:
        dtype = "float" if node.type.dtype == "double" else node.type.dtype
        if not DTYPES[dtype].is_float:
            found[id(node)] = np.ones(value.values.shape, np.bool_)
            return
        with np.errstate(all="ignore"):
            rounded = value.values.astype(numpy_dtype(dtype)).astype(np.float64)
        found[id(node)] = (rounded == value.values) | np.isnan(value.values)

    return _evaluated(module, library, context, inputs, None, note), found


def _evaluated(
    module: Module,
    library: Library,
    context: Mapping[str, Any],
    inputs: Arrays,
    noise: _Noise | None,
    note: Callable[[Node, Array], None] | None = None,
) -> list[Any]:
    """The results of a tensor program, in double, or in the elements' types with noise."""
    evaluator = Evaluator(library, context, noise is None)
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in module.nodes:
            if node is module.root:
                break
            value = _value(node, evaluator, values, inputs, noise)
            values[id(node)] = value
            if note is not None:
                note(node, value)
        return [values[id(o)].finished(o.type.dtype, noise is None) for o in module.root.operands]


def _value(
    node: Node, evaluator: Evaluator, values: Mapping[int, Array], inputs: Arrays, noise: _Noise | None
) -> Array:
    library = evaluator.library
    if node.op == library.boundary("input").name:
        return stored(np.asarray(inputs[node.attribute("name")]), node.type.dtype, evaluator.precise)
    if node.op == library.boundary("constant").name:
        return evaluator.constant(node, node.type.lens)
    operands = [values[id(o)] for o in node.operands]
    if noise is None:
        return evaluator.value(node, operands)  # type: ignore[return-value]
    value: Array = evaluator.value(node, noise.operands(node, operands))  # type: ignore[assignment]
    return noise.result(node, value)


# ---- what is found


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
            if len(found) == 1:
                return [
                    Fault(_kind(problem, f"refused at {stage}", f"at {stage}"), str(problem)) if i in found else b
                    for i, b in enumerate(begun)
                ]
            return _one_by_one(trials, library, problem)
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
    if any(isinstance(result, Fault) for result in found):
        return found
    return [Fault(_kind(problem, "refused together", "together"), str(problem)), *found[1:]]


def _kind(problem: Exception, refused: str, place: str) -> str:
    return refused if isinstance(problem, GenrwError) else f"{type(problem).__name__} {place}"


def _begun(trial: Trial, library: Library) -> Lowered | Fault | Rejected:
    """The trial with what is right, not lowered yet."""
    program = loaded(trial, library)
    try:
        inputs, wanted, sure = reference(trial, program)
    except Rejected as problem:
        return problem
    except Exception as problem:
        return Fault(_kind(problem, "cannot be interpreted as written", "as written"), str(problem))
    return Lowered(trial, program, [], inputs, wanted, sure)


def _scheduled(found: Lowered, unit: Unit, trace: Trace) -> Unit:
    """The program under the schedules that its trial asks for; the trial says then what these are like."""
    legal = {m.name: [s for _, s, _ in trace.schedules.get(m.name, ())] for m in unit.kernels}
    trial, random = found.trial, Random(found.trial.seed)
    if trial.forced and trial.schedule is None and any(legal.values()):
        schedules = random.choice([s for s in legal.values() if s])
        algo = random.choice(list(dict.fromkeys(s["algo"] for s in schedules)))
        trial = found.trial = replace(trial, schedule=random.choice([s for s in schedules if s["algo"] == algo]))
    if trial.schedule is None:
        return unit
    wanted = trial.schedule

    def likeness(schedule: Mapping[str, Any]) -> float:
        return sum((8 if k == "algo" else 1) * (schedule.get(k) == v) for k, v in wanted.items())

    def chosen(module: Module) -> Module:
        """The cheapest of those that are most like it."""
        return replace(module, schedule=max(legal[module.name], key=likeness)) if legal[module.name] else module

    return replace(unit, kernels=tuple(map(chosen, unit.kernels)))


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
    """What is wrong with the results of the kernels on the CPU."""
    for order in ORDERS:
        results = HostSequence(kernels, found.program)(found.inputs, threads=2, order=order)
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
