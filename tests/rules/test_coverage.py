"""Every shipped rule matters: some program would be another one without it, and its guard was seen both ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from programs import COMPOSED, CORNERS, LARGE, SEED_TABLE, SPLIT, WRITTEN_LOWER
from support import WAVE64, load

from genrw.coverage import Coverage, Row
from genrw.engine.library import Library
from genrw.explain import place
from genrw.program import Program
from genrw.rulesets import load_library


def catalogue(library: Library) -> Iterator[Program]:
    """The programs that the rules are for; all of them are checked numerically elsewhere."""
    texts = [*SEED_TABLE.values(), *COMPOSED.values(), *CORNERS.values(), *SPLIT.values()]
    for text in (*texts, *LARGE.values(), *WRITTEN_LOWER.values()):
        yield load(text, WAVE64, library)
    for text in texts:
        yield load(text, "host", library)
        yield load(text, WAVE64, library, policy="classic")


def missing(rows: Iterable[Row]) -> list[str]:
    """What is still to be seen, a line for each rule."""
    return [f"{place(row.rule)}: {row.direction}: {', '.join(row.gaps)}" for row in rows if row.gaps]


def test_every_shipped_rule_matters(library: Library) -> None:
    coverage = Coverage(library)
    coverage.add(list(catalogue(library)))
    assert not coverage.add_examples()
    rows = coverage.rows()
    assert {row.rule.name for row in rows} == {rule.name for rule in library.rules}
    assert not missing(rows), "\n".join(["these rules are not covered:", *missing(rows)])


# ---- what the test above would tell


RULES = """\
stage simplify

/// Its own example is the only program with such a chain.
rule without_program
  sin(cos(sin(cos(x))))
  => tanh(x)
  example
    x = @param:x -> float{4}
    a = cos(x)
    b = sin(a)
    c = cos(b)
    d = sin(c)
  gives
    x = @param:x -> float{4}
    d = tanh(x)

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
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """What a program shows of rules that lack something."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "mine.rw").write_text(RULES)
    coverage = Coverage(load_library([folder]))
    coverage.add([load(PROGRAM, library=coverage.library)])
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
def test_what_is_missing_is_told(found: dict[str, Row], direction: str, gaps: list[str]) -> None:
    assert found[direction].gaps == gaps


def test_the_rule_and_its_place_are_named(found: dict[str, Row]) -> None:
    (line,) = missing([found["never_refused"], found["matters"]])
    assert Path(line.split(":")[0]).name == "mine.rw"
    number = 1 + RULES[: RULES.index("rule never_refused")].count("\n")
    assert line.endswith(f":{number}: never_refused: guard never refused")


def test_examples_alone_cover_nothing(library: Library) -> None:
    coverage = Coverage(replace(library, rules=library.rules[:20]))
    assert not coverage.add_examples()
    rows = coverage.rows()
    assert any(row.taken and row.refused for row in rows)
    assert all("never fired" in row.gaps for row in rows)
