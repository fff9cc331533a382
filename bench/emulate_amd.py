"""Code objects for AMD GPUs, run in an instruction-level emulator of these GPUs, against the interpreter.

The emulator is a Python file with a function `run(code, kernel, groups, block, arrays)`, which runs one launch of a
kernel of a code object, changes the arrays in place, and raises an exception with a sentence about what it cannot run.

One that runs on tinygrad's emulator has to put right what docs/amd-emulation.md lists.
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
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "verify"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "contractions"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from cases import Case as WholeNumbers
from programs import PROGRAMS, softmax_program
from support import AMD_TARGETS, differences, inputs_and_reference, load, schedules, shipped
from tiled_cases import FORMS, tiled_schedules

from genrw.codegen.runtime.amd import compile_amd
from genrw.codegen.runtime.array_layout import Array, from_memory, memory_size, poisoned, to_memory
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.engine.programs.launches import INPUT, SCRATCH, MemorySlot
from genrw.program import Program

TARGETS = {"programs": ("gfx942", "gfx1100", "gfx1201"), "instructions": AMD_TARGETS}
"""The parts of the page, and the targets of each: all of them have instructions of their own."""
MOST_ELEMENTS = 200_000
UNDER_OTHERS, OTHERS = "odd throughout", 2
"""The form of contractions that is run under schedules besides the cheapest, and how many these are."""
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
    """A program, under a schedule of its own or the one that is chosen for it; with inputs of its own if what comes out is
    known exactly."""

    name: str
    text: str
    target: str
    schedule: tuple[tuple[str, Any], ...] = ()
    exact: WholeNumbers | None = None


def main() -> None:
    given = _options()
    right = True
    for part in given.part:
        found: dict[str, dict[str, str]] = {}
        for case, outcome in _outcomes((c for c in CASES[part]() if re.search(given.only, c.name)), given.emulator):
            found.setdefault(case.name, {})[case.target] = outcome
            right = right and outcome == RIGHT
            print(f"{case.target:8} {case.name}: {outcome}", flush=True)
        if given.page is not None:
            _fill(given.page, part, found)
    if not right:
        sys.exit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", metavar="FILE", type=Path, required=True, help="the emulator's Python file")
    parser.add_argument("--page", metavar="FILE", type=Path, help="a page whose tables are to be replaced")
    parser.add_argument(
        "--part", nargs="*", choices=[*TARGETS], default=[*TARGETS], help="what to run: all, if not said"
    )
    parser.add_argument("--only", metavar="REGEX", default="", help="the cases whose names match")
    return parser.parse_args()


# ---- what is run


def _programs() -> Iterator[Case]:
    """Target by target: the programs that the tests verify, but for large ones, and each algorithm."""
    for target in TARGETS["programs"]:
        for name, text in PROGRAMS.items():
            if _elements(load(text, target)) <= MOST_ELEMENTS:
                yield Case(name, text, target)
        for name, text in UNDER_ALL_ALGORITHMS.items():
            for schedule in _one_of_each(schedules(text, target)):
                steps = ", in steps" if schedule["steps"] > 1 else ""
                yield Case(f"{name}, {schedule['algo']}{steps}", text, target, tuple(schedule.items()))


def _instructions() -> Iterator[Case]:
    """Each instruction of each target: contractions of whole numbers in all forms that it has tiles for by the cheapest
    schedule, and in one form by others, too."""
    for target in TARGETS["instructions"]:
        for by in shipped().targets[target].values["matrices"]:
            for form, made in FORMS.items():
                exact = made.case(np.random.default_rng(0), shipped().instructions[by].values["operand"])
                found = tiled_schedules(load(exact.text, target), by)
                drawn = Random(f"{target}/{by}").sample(found[1:], OTHERS) if form == UNDER_OTHERS else []
                for number, schedule in enumerate((*found[:1], *drawn)):
                    name = f"{by}, {form}{f', schedule {number}' if number else ''}"
                    yield Case(name, exact.text, target, tuple(schedule.items()), exact)


CASES = {"programs": _programs, "instructions": _instructions}


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
    inputs = case.exact.inputs if case.exact else inputs_and_reference(case.text)[0]
    try:
        got = _results(program, case.target, inputs)
    except Exception as problem:  # whatever the emulator raises is its answer
        return f"not run: {problem}"
    problem = _wrong(case, program, dict(zip(program.results, got, strict=True)))
    return f"wrong: {problem}" if problem else RIGHT


def _wrong(case: Case, program: Program, got: Mapping[str, Array]) -> str:
    """What is wrong with results, in words; nothing if they are right."""
    if case.exact is None:
        found = differences(program, got, inputs_and_reference(case.text)[1])
        return "; ".join(f"{name} {message}" for name, message in found.items())
    (result,) = got.values()
    wrong = np.count_nonzero(result.astype(float) != case.exact.wanted.astype(float))
    return f"{wrong} of {result.size} elements" if wrong else ""


def _results(program: Program, arch: str, inputs: Mapping[str, Any]) -> list[Array]:
    """The results of a program in order, its kernels run one after the other."""
    launches, kernels = program.launches(), program.kernels()
    given = {MemorySlot(INPUT, number): name for number, name in enumerate(program.inputs)}
    types = program.tensors(launches)
    memory = {place: poisoned(t.dtype, memory_size(t.lens, t.layout)) for place, t in types.items()}
    memory |= {place: to_memory(inputs[name], types[place].layout).copy() for place, name in given.items()}
    memory |= {MemorySlot(SCRATCH, number): poisoned("uint8", size) for number, size in enumerate(launches.scratch)}
    for step in launches.steps:
        kernel = kernels[step.kernel]
        if kernel.groups:
            code = compile_amd(kernel.text, arch, kernel.wave_size, kernel.name)
            taken = [memory[step.places[a.parameter]].view(numpy_dtype(a.dtype)) for a in kernel.arguments]
            _emulators[0](code.blob, kernel.name, kernel.groups, kernel.block, taken)
    return [from_memory(memory[place], types[place].lens, types[place].layout) for place in launches.result_places]


# ---- the page


def _fill(page: Path, part: str, found: Mapping[str, Mapping[str, str]]) -> None:
    """Replace what stands between the page's markers of a part by its table."""
    head, begin, rest = page.read_text(encoding="utf-8").partition(f"<!-- measured: {part} -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    page.write_text(f"{head}{begin}\n{_table(TARGETS[part], found)}\n{end}{tail}", encoding="utf-8")


def _table(targets: Sequence[str], found: Mapping[str, Mapping[str, str]]) -> str:
    lines = [f"| program | {' | '.join(targets)} |", f"| --- |{' --- |' * len(targets)}"]
    for name, row in found.items():
        cells = (row.get(target, "").replace("|", "\\|") for target in targets)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    right = [sum(row.get(target) == RIGHT for row in found.values()) for target in targets]
    tried = [sum(target in row for row in found.values()) for target in targets]
    totals = (f"{n} of {of} right" for n, of in zip(right, tried, strict=True))
    return "\n".join([*lines, f"| all | {' | '.join(totals)} |"]) + "\n"


if __name__ == "__main__":
    main()
