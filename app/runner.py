"""`genrw run`: a program on given or random arrays, its results shown, compared and saved."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from genrw.codegen.runtime.devices import find_device
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.codegen.runtime.isolated import run_apart
from genrw.demands import check_evaluated, check_memory, check_time
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.types import Type
from genrw.engine.programs.array_files import Array, array_bytes, named_files, read_array, type_text
from genrw.grammar.diagnostics import error
from genrw.output import write_files
from genrw.processes import ended_by_interrupts
from genrw.profiling import Timed, show_profile
from genrw.program import Program
from genrw.reference import Reference
from genrw.terminal import write, write_table
from genrw.tuned import with_winners

_SHOWN_VALUES = 4


@dataclass(frozen=True)
class Run:
    """What to do besides running: on which device, at which stage, with which inputs, and what then; whether kernels on
    the CPU run in a process apart; for how many seconds at most those on the CPU run, apart or not."""

    device: str
    stage: str | None = None
    inputs: Sequence[str] = ()
    check: bool = False
    seed: int = 0
    save: Path | None = None
    order: int = 0
    apart: bool = False
    seconds: float = 600.0
    profile: bool = False


def run(program: Program, request: Run) -> int:
    """Run a program and show its results; 1 if they are to be checked and wrong, else 0."""
    program, settings = _at_stage(program, request)
    _check_demands(program, request)
    inputs = read_inputs(program, request.inputs, request.seed)
    started = time.perf_counter()
    device = find_device(request.device)
    program = with_winners(program, device.model)
    if request.device != "interpret":
        program = program.lower(program.stages[-1])
    if request.device == "host":
        check_time(program, request.seconds)
    prepared = device.prepare(program)
    if request.profile and not isinstance(prepared, Timed):
        raise error("the interpreter runs no kernels that could be timed", remedy="use `--device host` or a GPU")
    ready = time.perf_counter()
    if request.apart and isinstance(prepared, HostSequence):
        results, took = run_apart(prepared, inputs, request.seconds, **settings)
    else:
        with ended_by_interrupts():
            results = prepared(inputs, **settings)
        took = time.perf_counter() - ready
    problems = check(program, inputs, results) if request.check else None
    if request.save is not None:
        write_files(request.save, {f"{name}.npy": array_bytes(a) for name, a in results.items()})
    _show(program, results, problems)
    if request.profile and isinstance(prepared, Timed):
        show_profile(program, prepared, inputs)
    how = f"{request.device}, target {program.options.target}"
    write(f"{how}: ready in {_seconds(ready - started)}, ran in {_seconds(took)}")
    return 1 if problems and any(p.message for p in problems.values()) else 0


def _at_stage(program: Program, request: Run) -> tuple[Program, dict[str, int]]:
    """The program as the device takes it, and the device's settings."""
    if request.device == "interpret":
        if request.order:
            message = "the interpreter runs all lanes at once: it has no `--order`"
            raise error(message, remedy="use `--device host`")
        return (program.lower(request.stage) if request.stage is not None else program), {}
    if request.stage is not None:
        raise error("only the interpreter runs a program at a stage", remedy="add `--device interpret`")
    if request.device != "host":
        if request.order:
            raise error("a GPU chooses the order of groups: it has no `--order`", remedy="use `--device host`")
        return program, {}
    return program, {"order": request.order}


def _check_demands(program: Program, request: Run) -> None:
    """GenrwError where the run takes more memory than there is."""
    check_memory(program)
    if request.device == "interpret":
        check_evaluated(program, precise=False, remedy="use `--device host`, or shorter lengths")
    if request.check:
        loaded = program.with_units(program.origin)
        check_evaluated(loaded, precise=True, remedy="leave out `--check`, or run it with shorter lengths")


# ---- inputs


def read_inputs(program: Program, given: Sequence[str], seed: int) -> dict[str, Array]:
    """Arrays for all inputs: those given as `name=file.npy`, random ones for the others."""
    files = _input_files(program, given)
    arrays = {name: read_array(path, program.inputs[name]) for name, path in files.items()}
    arrays = {**program.defaults, **arrays}
    if len(arrays) == len(program.inputs):
        return arrays
    drawn: dict[str, Array] = {}
    for unit in program.origin:
        drawn = random_inputs(unit, program.library, seed) | drawn
    return drawn | arrays


def _input_files(program: Program, given: Sequence[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for name, path in named_files(given):
        if name in program.unused:
            continue
        name = program.aliases.get(name, name)
        if name not in program.inputs:
            names = ", ".join(program.inputs)
            raise error(f"the program has no input `{name}`", remedy=f"its inputs are {names}")
        if name in files:
            raise error(f"the input `{name}` is given twice", remedy="give it once")
        files[name] = path
    return files


# ---- results


@dataclass(frozen=True)
class Difference:
    """How far a result is from the reference: the largest error, and what is wrong if that is too much."""

    largest: float
    message: str | None


def check(program: Program, inputs: Mapping[str, Array], results: Mapping[str, Array]) -> dict[str, Difference]:
    """Compare results with the program as it was loaded, evaluated in double precision."""
    reference = Reference(program, inputs)
    return {name: _difference(reference, name, got) for name, got in results.items()}


def _difference(reference: Reference, name: str, got: Array) -> Difference:
    want, message = reference.judge(name, got)
    if got.shape != want.shape or not got.size:
        return Difference(0.0, message)
    if not DTYPES[reference.program.results[name].type.dtype].is_float:
        return Difference(float(np.max(got != want)), message)
    with np.errstate(all="ignore"):
        found = got.astype(np.float64)
        errors, finite = np.abs(found - want), np.isfinite(found)
        if not np.all(finite):
            right = want.astype(got.dtype).astype(np.float64)
            same = (found == right) | (np.isnan(found) & np.isnan(right))
            errors = np.where(same & ~finite, 0.0, errors)
    return Difference(float(np.max(errors)), message)


def _show(program: Program, results: Mapping[str, Array], problems: Mapping[str, Difference] | None) -> None:
    headings = ["result", "type", "first values"]
    rows = [[name, type_text(_type(program, name)), _first_values(array)] for name, array in results.items()]
    if problems is not None:
        headings += ["largest error", "check"]
        rows = [[*row, *_verdict(problems[row[0]])] for row in rows]
    write_table(headings, rows)
    for name, problem in (problems or {}).items():
        if problem.message:
            write(f"{name} {problem.message}")


def _type(program: Program, name: str) -> Type:
    return program.results[name].type


def _verdict(difference: Difference) -> list[str]:
    return [f"{difference.largest:.3g}", "wrong" if difference.message else "right"]


def _first_values(array: Array) -> str:
    shown = array.reshape(-1)[:_SHOWN_VALUES]
    kept = shown.dtype.kind in "biu"
    values = [_value(v) for v in (shown if kept else shown.astype(np.float64)).tolist()]
    return " ".join([*values, "…"] if array.size > _SHOWN_VALUES else values)


def _value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).lower()


def _seconds(duration: float) -> str:
    return f"{duration:.2f} s" if duration >= 0.9995 else f"{duration * 1e3:.3g} ms"  # never 1e+03 ms
