"""Damaged programs and rules give a diagnostic or work: nothing else is raised, and nothing hangs."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from mutations import mutated

from genrw.codegen.printer import print_kernel
from genrw.engine import stage
from genrw.engine.check import check_rules
from genrw.engine.library import Library, build_library
from genrw.engine.stage import Limits
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import parse_gen
from genrw.grammar.rw import parse_rw
from genrw.grammar.source import Source
from genrw.program import Program
from genrw.rulesets import shipped_folder

ROOT = Path(__file__).parents[2]
SMALL = "x = @param:x -> half{6, 40}\nm = reduce_max[axes={1}](x)\nd = sub(x, m)\ny = exp(d)\n@return(y)\n"

PROGRAMS = [SMALL] * 12 + [  # tensor programs are what most damages leave something of
    path.read_text(encoding="utf-8")
    for folder in ("examples", "tests/golden", "tests/grammar/data/seed")
    for path in sorted((ROOT / folder).rglob("*.gen"))
]
RULES = {path: path.read_text(encoding="utf-8") for path in sorted(shipped_folder().rglob("*.rw"))}

SECONDS = 10.0
"""How long each test may go on; the number of cases that fit varies, their order does not."""
SECONDS_A_CASE = 20
CASES = 3000


class Hang(BaseException):
    """A case that does not end; no handler of exceptions may hold it up."""


def _alarm(_: int, __: FrameType | None) -> None:
    raise Hang


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Ends what takes longer."""
    before = signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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


def fuzz(case: Callable[[random.Random], None], name: str) -> None:
    """Run cases as time allows."""
    started = time.monotonic()
    outcomes = {"told": 0, "worked": 0}
    for number in range(CASES):
        if time.monotonic() - started > SECONDS:
            break
        outcomes[one_case(case, f"{name} {number}")] += 1
    assert outcomes["told"] > 10
    assert outcomes["worked"] > 0


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


def test_damaged_programs_are_parsed_or_told() -> None:
    def case(rng: random.Random) -> None:
        parse_gen(mutated(PROGRAMS, rng), "mutated.gen")

    fuzz(case, "parse gen")


def test_damaged_rules_are_parsed_or_told() -> None:
    texts = list(RULES.values())

    def case(rng: random.Random) -> None:
        parse_rw(mutated(texts, rng), "mutated.rw")

    fuzz(case, "parse rw")


def test_damaged_programs_are_lowered_or_told(library: Library) -> None:
    def case(rng: random.Random) -> None:
        program = Program.parse(Source("mutated.gen", mutated(PROGRAMS, rng)), library)
        str(program)
        lower(program)

    fuzz(case, "lower gen")


def test_damaged_rules_lower_or_are_told() -> None:
    files = {path: parse_rw(text, path.name) for path, text in RULES.items()}
    texts = list(RULES.values())
    source = Source("small.gen", SMALL)

    def case(rng: random.Random) -> None:
        path = rng.choice(list(RULES))
        file = parse_rw(mutated([RULES[path]], rng, texts), "mutated.rw")
        library = build_library([file if p == path else f for p, f in files.items()])
        findings = check_rules(library, [r for r in library.rules if r.span.source.name == "mutated.rw"])
        if findings:
            raise GenrwError(findings)
        lower(Program.parse(source, library))

    fuzz(case, "lower rw")
