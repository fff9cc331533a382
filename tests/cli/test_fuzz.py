"""Damaged programs and rules give a diagnostic or work: nothing else is raised, and nothing hangs."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from mutations import mutated, spliced
from odd_programs import odd_constant, odd_operation, odd_size

from genrw.authoring.rulesets import shipped_folder
from genrw.codegen.hip.printer import print_kernel
from genrw.codegen.runtime.devices import find_device
from genrw.engine.egraph import stage
from genrw.engine.egraph.stage import Limits
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.lint.check import MALFORMED, lint
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import parse_gen, print_gen
from genrw.grammar.rw import parse_rw, print_rw
from genrw.grammar.rw_tree import RuleFile
from genrw.grammar.source import Source
from genrw.program import Program

ROOT = Path(__file__).parents[2]
SMALL = "x = @param:x -> half{6, 40}\nm = reduce_max[axes={1}](x)\nd = sub(x, m)\ny = exp(d)\n@return(y)\n"

PROGRAMS = [SMALL] * 12 + [  # tensor programs are what most damages leave something of
    path.read_text(encoding="utf-8")
    for folder in ("examples", "tests/golden", "tests/grammar/data/seed")
    for path in sorted((ROOT / folder).rglob("*.gen"))
]
RULES = {path: path.read_text(encoding="utf-8") for path in sorted(shipped_folder().rglob("*.rw"))}

SECONDS_A_CASE = 20


class Hang(BaseException):
    """A case that does not end; no handler of exceptions may hold it up."""


def _alarm(_: int, __: FrameType | None) -> None:
    raise Hang


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Ends what takes more of the processor's time: other processes may hold a case up."""
    before = signal.signal(signal.SIGVTALRM, _alarm)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that never settle end sooner."""
    monkeypatch.setattr(stage, "Limits", lambda: Limits(rounds=40, nodes_per_kernel=4000, seconds=3))


def lower(program: Program) -> None:
    """Take a program to its kernels."""
    lowered = program.lower(program.stages[-1])
    str(lowered)
    for module in lowered.modules:
        print_kernel(module, program.library, lowered.context(module))


def compute(program: Program) -> None:
    """Run a program in numpy, on random inputs."""
    inputs = {name: array for unit in program.units for name, array in random_inputs(unit, program.library, 0).items()}
    find_device("interpret").prepare(program)(inputs)


def fuzz(case: Callable[[random.Random], None], name: str, count: int) -> None:
    """Run so many cases, always the same ones."""
    outcomes = Counter(one_case(case, f"{name} {number}") for number in range(count))
    assert outcomes["told"] > count // 20
    assert outcomes["worked"] > count // 50


def one_case(case: Callable[[random.Random], None], seed: str) -> str:
    """How a case ended; it is an error if that is neither a diagnostic nor success."""
    rng = random.Random(seed)
    try:
        with limited(SECONDS_A_CASE):
            case(rng)
    except GenrwError as problem:
        assert problem.diagnostics, seed
        for diagnostic in problem.diagnostics:
            assert diagnostic.message, seed
            assert "Traceback" not in diagnostic.render(), seed
        return "told"
    except BaseException as problem:
        if isinstance(problem, KeyboardInterrupt):
            raise
        raise AssertionError(f"case `{seed}`: {type(problem).__name__}: {problem}") from problem
    return "worked"


def test_damaged_programs_are_parsed_or_told(fuzz_factor: int) -> None:
    def case(rng: random.Random) -> None:
        parse_gen(mutated(PROGRAMS, rng), "mutated.gen")

    fuzz(case, "parse gen", 800 * fuzz_factor)


def test_damaged_rules_are_parsed_or_told(fuzz_factor: int) -> None:
    texts = list(RULES.values())

    def case(rng: random.Random) -> None:
        parse_rw(mutated(texts, rng), "mutated.rw")

    fuzz(case, "parse rw", 120 * fuzz_factor)


def test_damaged_programs_are_lowered_or_told(library: Library, fuzz_factor: int) -> None:
    def case(rng: random.Random) -> None:
        program = Program.parse(Source("mutated.gen", mutated(PROGRAMS, rng)), library)
        str(program)
        lower(program)

    fuzz(case, "lower gen", 120 * fuzz_factor)


def test_spliced_programs_are_lowered_or_told(library: Library, fuzz_factor: int) -> None:
    trees = [parse_gen(text, "donor.gen") for text in dict.fromkeys(PROGRAMS)]

    def case(rng: random.Random) -> None:
        text = print_gen(spliced(rng.choice((trees[0], trees[0], rng.choice(trees))), trees, rng))
        lower(Program.parse(Source("spliced.gen", text), library))

    fuzz(case, "splice gen", 80 * fuzz_factor)


def test_odd_operations_are_built_or_told(library: Library, fuzz_factor: int) -> None:
    def case(rng: random.Random) -> None:
        str(Program.parse(Source("odd.gen", odd_operation(library, rng)), library))

    fuzz(case, "odd operation", 1000 * fuzz_factor)


def test_odd_operations_are_lowered_and_computed_or_told(library: Library, fuzz_factor: int) -> None:
    def case(rng: random.Random) -> None:
        while True:
            try:
                program = Program.parse(Source("odd.gen", odd_operation(library, rng)), library)
                break
            except GenrwError:  # what is told at once is the case of another test
                continue
        compute(program)
        lower(program)

    outcomes = Counter(one_case(case, f"lower odd operation {number}") for number in range(50 * fuzz_factor))
    assert outcomes["worked"] > 10 * fuzz_factor


@pytest.mark.slow
def test_odd_constants_are_computed_and_lowered_or_told(library: Library, fuzz_factor: int) -> None:
    def case(rng: random.Random) -> None:
        program = Program.parse(Source("odd.gen", odd_constant(rng)), library)
        compute(program)
        lower(program)

    fuzz(case, "odd constant", 60 * fuzz_factor)


@pytest.mark.slow
def test_odd_sizes_are_lowered_or_told(library: Library, fuzz_factor: int) -> None:
    def case(rng: random.Random) -> None:
        lower(Program.parse(Source("odd.gen", odd_size(rng)), library))

    fuzz(case, "odd size", 40 * fuzz_factor)


@pytest.fixture(scope="module")
def files() -> dict[Path, RuleFile]:
    """The trees of the shipped rules."""
    return {path: parse_rw(text, path.name) for path, text in RULES.items()}


def checked_and_lowered(file: RuleFile, path: Path, files: Mapping[Path, RuleFile]) -> None:
    """Look for faults in all rules, one file of which is another; then lower with them."""
    library = build_library([file if p == path else f for p, f in files.items()])
    found = lint(library)
    for finding in found:
        assert finding.diagnostic.message
        finding.diagnostic.render()
    if malformed := [finding.diagnostic for finding in found if finding.kind == MALFORMED]:
        raise GenrwError(malformed)
    lower(Program.parse(Source("small.gen", SMALL), library))


@pytest.mark.slow
def test_damaged_rules_are_checked_and_lowered_or_told(files: dict[Path, RuleFile], fuzz_factor: int) -> None:
    def case(rng: random.Random) -> None:
        path = rng.choice(list(RULES))
        text = mutated([RULES[path]], rng, list(RULES.values()))
        checked_and_lowered(parse_rw(text, "mutated.rw"), path, files)

    fuzz(case, "check rw", 40 * fuzz_factor)


@pytest.mark.slow
def test_spliced_rules_are_checked_and_lowered_or_told(files: dict[Path, RuleFile], fuzz_factor: int) -> None:
    donors = list(files.values())

    def case(rng: random.Random) -> None:
        path = rng.choice(list(files))
        text = print_rw(spliced(files[path], [files[path], rng.choice(donors)], rng))
        checked_and_lowered(parse_rw(text, "spliced.rw"), path, files)

    fuzz(case, "splice rw", 40 * fuzz_factor)
