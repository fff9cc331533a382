"""Every shipped rule matters: some program would be another one without it, and its guard was seen both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from programs import COMPOSED, CORNERS, LARGE, PINNED, SEED_TABLE, SPLIT, WRITTEN_LOWER
from support import WAVE64, load

from genrw.authoring.rulesets import load_library
from genrw.coverage.observed import Coverage, RuleRow
from genrw.engine.library.library import Library
from genrw.program import Program

RECORD = Path(__file__).parent / "covered_by.json"
"""For each rule a few of the programs that it matters to; docs/catalogue.md shows them."""
_RECORDED = 3


def catalogue(library: Library) -> Iterator[tuple[str, Program]]:
    """The programs that the rules are for, by name; all of them are checked numerically elsewhere."""
    texts = {**SEED_TABLE, **COMPOSED, **CORNERS, **SPLIT}
    for name, text in {**texts, **LARGE, **WRITTEN_LOWER}.items():
        yield name, load(text, WAVE64, library)
    for name, (text, target, pins) in PINNED.items():
        yield name, load(text, target, library, schedule=pins)
    for name, text in LARGE.items():
        yield f"{name} for sm_90", load(text, "sm_90", library)
    for name, text in texts.items():
        yield f"{name} for host", load(text, "host", library)
        yield f"{name} by classic schedules", load(text, WAVE64, library, policy="classic")


def missing(rows: Iterable[RuleRow]) -> list[str]:
    """What is still to be seen, a line for each rule."""
    return [f"{row.rule.name_span.location}: {row.direction}: {', '.join(row.gaps)}" for row in rows if row.gaps]


def recorded(rows: Iterable[RuleRow]) -> str:
    """The programs that rules matter to, as the record has them."""
    programs: dict[str, list[str]] = {}
    for row in rows:
        programs.setdefault(row.rule.name, []).extend(row.programs)
    few = {rule: list(dict.fromkeys(found))[:_RECORDED] for rule, found in programs.items()}
    return json.dumps(few, indent=1) + "\n"


@pytest.mark.slow
def test_every_shipped_rule_matters(library: Library, pytestconfig: pytest.Config) -> None:
    coverage = Coverage(library)
    names, programs = zip(*catalogue(library), strict=True)
    coverage.add(programs, names)
    assert not coverage.add_examples()
    rows = coverage.rows()
    assert {row.rule.name for row in rows} == {rule.name for rule in library.rules}
    written = [row for row in rows if row.rule.defines is None]
    assert not missing(written), "\n".join(["these rules are not covered:", *missing(written)])
    if pytestconfig.getoption("--update-golden"):
        RECORD.write_text(recorded(rows), encoding="utf-8")
    assert RECORD.read_text(encoding="utf-8") == recorded(rows), "out of date: if it is right, run with --update-golden"


# ---- what the test above would tell


RULES = """\
stage simplify

/// Its own example is the only program with such a chain.
rule without_program
  sin(cos(sin(cos(x))))
  => tanh(x)
  given x: float{4}
  example sin(cos(sin(cos(x)))) gives tanh(x)

/// What it makes is never the cheapest.
rule without_use
  tanh(x)
  => sqrt(tanh(x))

/// Its guard holds always.
rule never_refused
  floor(exp(x)) when x.rank >= 0
  => ceil(x)

/// Its guard holds never.
rule never_taken
  ceil(exp(x)) when x.rank < 0
  => floor(x)

/// There is a program for one direction.
rule one_way
  sin(neg(x))
  <=> neg(sin(x))

/// Nothing is missing.
rule matters
  log(exp(x)) when x.rank == 1
  => x
"""

PROGRAM = """
    x = @param:x -> float{12}
    y = @param:y -> float{3, 4}
    a = tanh(x)
    e = exp(x)
    b = floor(e)
    c = ceil(e)
    down = neg(x)
    sine = sin(down)
    d = abs(sine)
    f = log(e)
    power = exp(y)
    g = log(power)
    @return(a, b, c, d, f, g)"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RuleRow]:
    """What a program shows of rules that lack something."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "mine.rw").write_text(RULES)
    coverage = Coverage(load_library([folder]))
    coverage.add([load(PROGRAM, library=coverage.library)], ["the program"])
    return {row.direction: row for row in coverage.rows()}


@pytest.mark.parametrize(
    ("direction", "gaps"),
    [
        ("without_program", ["never fired"]),
        ("without_use", ["never survived"]),
        ("never_refused", ["guard never refused"]),
        ("never_taken", ["never fired", "guard never taken"]),
        ("one_way", []),
        ("one_way/reverse", ["never survived"]),
        ("matters", []),
    ],
)
def test_what_is_missing_is_told(found: dict[str, RuleRow], direction: str, gaps: list[str]) -> None:
    assert found[direction].gaps == gaps


def test_the_programs_that_need_a_rule_are_named(found: dict[str, RuleRow]) -> None:
    assert {direction: row.programs for direction, row in found.items() if direction in ("matters", "without_use")} == {
        "matters": ("the program",),
        "without_use": (),
    }


def test_the_rule_and_its_place_are_named(found: dict[str, RuleRow]) -> None:
    (line,) = missing([found["never_refused"], found["matters"]])
    assert Path(line.split(":")[0]).name == "mine.rw"
    number = 1 + RULES[: RULES.index("rule never_refused")].count("\n")
    assert line.endswith(f":{number}: never_refused: guard never refused")


def test_examples_alone_cover_nothing(library: Library) -> None:
    written = tuple(rule for rule in library.rules if rule.defines is None)
    coverage = Coverage(replace(library, rules=written[:20]))
    assert not coverage.add_examples()
    rows = coverage.rows()
    assert any(row.taken and row.refused for row in rows)
    assert all("never fired" in row.gaps for row in rows)
