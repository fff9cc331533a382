"""Code objects for AMD GPUs, run in an instruction-level emulator of these GPUs, against the interpreter.

The emulator is a Python file with a function `run(code, kernel, groups, block, arrays)`, which runs one launch of a
kernel of a code object, changes the arrays in place, and raises an exception with a sentence about what it cannot run.

One that runs on tinygrad's emulator has to put three things right: operations of 16 bits with moves between lanes on CDNA,
which has no high halves of registers; addresses in workgroup memory of lanes that are switched off, which are not to be
read; and maxima and minima of gfx12, which are NaN where an operand is.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "verify"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from programs import PROGRAMS, softmax_program
from support import differences, inputs_and_reference, load, schedules

from genrw.codegen.hip.printer import Argument
from genrw.codegen.runtime.amd import compile_amd
from genrw.codegen.runtime.array_layout import Array, from_memory, memory_size, poisoned, to_memory
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.engine.programs.launches import INPUT, RESULT, SCRATCH, MemorySlot
from genrw.program import Program

TARGETS = ("gfx942", "gfx1100", "gfx1201")
MOST_ELEMENTS = 200_000
RIGHT = "right"

Run = Callable[..., object]

COLUMNS = "x = @param:x -> half{300, 33}\ns = reduce_mean[axes={0}](x)\ny = sub(x, s)\n@return(s, y)\n"
TRANSPOSED = """\
x = @param:x -> float{96, 128}
y = @param:y -> float{128, 96}
t = transpose[permutation={1, 0}](x)
r = add(t, y)
@return(r)
"""
UNDER_ALL_ALGORITHMS = {
    "softmax of 257": softmax_program("float", (5, 257), 1),
    "softmax of 9000": softmax_program("half", (2, 9000), 1),
    "mean of columns": COLUMNS,
    "transposed operand": TRANSPOSED,
}


@dataclass(frozen=True)
class Case:
    """A program, under a schedule of its own or the one that is chosen for it."""

    name: str
    text: str
    target: str
    schedule: tuple[tuple[str, Any], ...] = ()


def main() -> None:
    given = _options()
    cases = [c for c in _cases() if re.search(given.only, c.name)]
    found: dict[str, dict[str, str]] = {}
    for case, outcome in _outcomes(cases, given.emulator):
        found.setdefault(case.name, {})[case.target] = outcome
        print(f"{case.target:8} {case.name}: {outcome}", flush=True)
    if given.page is not None:
        _fill(given.page, found)
    if any(outcome != RIGHT for row in found.values() for outcome in row.values()):
        sys.exit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", metavar="FILE", type=Path, required=True, help="the emulator's Python file")
    parser.add_argument("--page", metavar="FILE", type=Path, help="a page whose table is to be replaced")
    parser.add_argument("--only", metavar="REGEX", default="", help="the cases whose names match")
    return parser.parse_args()


# ---- what is run


def _cases() -> Iterator[Case]:
    """Target by target: the programs that the tests verify, but for large ones, and each algorithm."""
    for target in TARGETS:
        for name, text in PROGRAMS.items():
            if _elements(load(text, target)) <= MOST_ELEMENTS:
                yield Case(name, text, target)
        for name, text in UNDER_ALL_ALGORITHMS.items():
            for schedule in _one_of_each(schedules(text, target)):
                steps = ", in steps" if schedule["steps"] > 1 else ""
                yield Case(f"{name}, {schedule['algo']}{steps}", text, target, tuple(schedule.items()))


def _elements(program: Program) -> int:
    tensors = [*program.inputs.values(), *program.results.values()]
    return max(prod(node.type.lens) for node in tensors)


def _one_of_each(found: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The cheapest schedule of each algorithm, with and without steps."""
    kinds: dict[tuple[str, bool], Mapping[str, Any]] = {}
    for schedule in found:
        kinds.setdefault((schedule["algo"], schedule["steps"] > 1), schedule)
    return list(kinds.values())


# ---- running


def _outcomes(cases: Iterable[Case], emulator: Path) -> Iterator[tuple[Case, str]]:
    """Each case in a process that lives on from case to case, since a wrong address ends it."""
    workers = _workers(emulator)
    for case in cases:
        try:
            yield case, workers.submit(_outcome, case).result()
        except BrokenProcessPool:
            yield case, "the emulator's process ended: an address outside of all buffers"
            workers = _workers(emulator)
    workers.shutdown()


def _workers(emulator: Path) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_load_emulator, initargs=(emulator,))


_emulators: list[Run] = []


def _load_emulator(path: Path) -> None:
    spec = importlib.util.spec_from_file_location("amd_emulator", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    _emulators.append(module.run)


def _outcome(case: Case) -> str:
    """What came out: right, what is wrong, or why the emulator gave up."""
    program = load(case.text, case.target, schedule=dict(case.schedule))
    inputs, want = inputs_and_reference(case.text)
    try:
        got = _results(program, case.target, inputs)
    except Exception as problem:  # whatever the emulator raises is its answer
        return f"not run: {problem}"
    problems = differences(program, dict(zip(program.results, got, strict=True)), want)
    return "wrong: " + "; ".join(f"{name} {message}" for name, message in problems.items()) if problems else RIGHT


def _results(program: Program, arch: str, inputs: Mapping[str, Any]) -> list[Array]:
    """The results of a program in order, its kernels run one after the other."""
    launches, kernels = program.launches(), program.kernels()
    memory: dict[MemorySlot, Array] = {}
    arguments: dict[int, Argument] = {}
    for step in launches.steps:
        kernel = kernels[step.kernel]
        places = [(step.places[a.parameter], a) for a in kernel.arguments]
        for place, argument in places:
            if place not in memory:
                memory[place] = _memory(program, launches.scratch, place, argument, inputs)
            if place.kind == RESULT:
                arguments[place.number] = argument
        if kernel.groups:
            code = compile_amd(kernel.text, arch, kernel.wave_size, kernel.name)
            taken = [memory[place].view(numpy_dtype(a.dtype)) for place, a in places]
            _emulators[0](code.blob, kernel.name, kernel.groups, kernel.block, taken)
    found = ((memory[MemorySlot(RESULT, n)], arguments[n]) for n in launches.results)
    return [from_memory(made, a.lens, a.strides) for made, a in found]


def _memory(
    program: Program, scratch: Sequence[int], place: MemorySlot, argument: Argument, inputs: Mapping[str, Any]
) -> Array:
    """What a place holds at first: an input's elements, or what shows where nothing was written."""
    if place.kind == INPUT:
        return to_memory(inputs[[*program.inputs][place.number]], argument.strides).copy()
    if place.kind == SCRATCH:
        return poisoned("uint8", scratch[place.number])
    return poisoned(argument.dtype, memory_size(argument.lens, argument.strides))


# ---- the page


def _fill(page: Path, found: Mapping[str, Mapping[str, str]]) -> None:
    """Replace what stands between the page's markers by the table."""
    head, begin, rest = page.read_text(encoding="utf-8").partition("<!-- measured -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    page.write_text(f"{head}{begin}\n{_table(found)}\n{end}{tail}", encoding="utf-8")


def _table(found: Mapping[str, Mapping[str, str]]) -> str:
    lines = [f"| program | {' | '.join(TARGETS)} |", f"| --- |{' --- |' * len(TARGETS)}"]
    for name, row in found.items():
        cells = (row.get(target, "").replace("|", "\\|") for target in TARGETS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    right = [sum(row.get(target) == RIGHT for row in found.values()) for target in TARGETS]
    tried = [sum(target in row for row in found.values()) for target in TARGETS]
    totals = (f"{n} of {of} right" for n, of in zip(right, tried, strict=True))
    return "\n".join([*lines, f"| all | {' | '.join(totals)} |"]) + "\n"


if __name__ == "__main__":
    main()
