"""`genrw rules check`: each file of `broken` has faults, which the text beside it tells."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from genrw.authoring.rulesets import unchecked_library
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.lint import check, growth
from genrw.engine.lint.check import lint
from genrw.engine.lint.check_rules import check_rules
from genrw.engine.lint.matching import PatternMatcher
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import RuleDecl, RuleFile
from genrw.main import execute

HERE = Path(__file__).parent
BROKEN = sorted(path.stem for path in (HERE / "broken").glob("*.rw"))


@lru_cache(maxsize=1)
def base() -> RuleFile:
    return parse_rw((HERE / "base.rw").read_text(), "base.rw")


def library(text: str, name: str = "mine.rw") -> Library:
    return build_library([base(), parse_rw(text, name)])


def told(text: str, name: str = "mine.rw") -> str:
    """The findings on rules beside those of the small language, as they are printed."""
    return "".join(f"[{f.kind}] {f.diagnostic.render()}\n" for f in lint(library(text, name)))


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_told_of_a_broken_file(name: str, request: pytest.FixtureRequest) -> None:
    found = told((HERE / "broken" / f"{name}.rw").read_text(), f"{name}.rw")
    expected = HERE / "broken" / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        expected.write_text(found)
    assert found == expected.read_text()
    assert found, "a broken file has findings"
    for finding in found.split("\n[")[1:]:
        assert "^" in finding, "a finding has a caret"
        assert "\n  help: " in finding, "a finding has a remedy"


def test_every_kind_is_told_of_some_file() -> None:
    kinds = {line[1 : line.index("]")] for path in (HERE / "broken").glob("*.txt") for line in _heads(path)}
    assert kinds == {
        *("declaration", "duplicate", "subsumed", "unreachable", "not lowered", "stage", "loop", "unused", "guard"),
        "example",
    }


def _heads(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("[")]


# ---- what is no fault


GOOD = {
    "equal terms may lead to one another": (
        "rule there\n  times(x, minus(y))\n  => minus(times(x, y))\n\n"
        "rule back\n  minus(times(x, y))\n  => times(x, minus(y))\n"
    ),
    "terms that only change places": "rule grouped\n  plus(plus(x, y), z)\n  => plus(x, plus(y, z))\n",
    "a double sign is one value": "rule signs\n  root(x)\n  => root(minus(minus(x)))\n\nrule no_signs\n  minus(minus(x))\n  => x\n",
    "a guard sets rules apart": (
        "rule small\n  root(root(x)) when x.elements < 4\n  => x\n\n"
        "rule large\n  root(root(x)) when x.elements >= 4\n  => minus(x)\n"
    ),
    "the more exact rule stays": (
        "rule nearly\n  root(root(x))\n  => x\n  contract approximate 0.1\n\n"
        "rule exactly\n  root(root(x)) when x.rank > 1\n  => x\n"
    ),
    "a growing rule with a guard knows its end": "rule longer\n  shape[dims](x) when len(dims) < 9\n  => shape[dims=dims + [1]](x)\n",
    "a guard that asks": "rule asks\n  root(plus(x, y)) when x.type == y.type and x.elements > 0\n  => y\n",
}


@pytest.mark.parametrize("about", GOOD)
def test_what_is_no_fault(about: str) -> None:
    assert told(f"stage early\n\n{GOOD[about]}") == ""


def test_the_small_language_is_clean() -> None:
    assert lint(build_library([base()])) == []


def test_rules_without_a_pipeline_are_looked_at() -> None:
    bare = "op minus(x: T) -> T where T: signed\n  role pointwise\n  means -x\n\nrule r\n  minus(minus(x))\n  => x\n"
    found = lint(build_library([parse_rw(bare)]))
    assert [f.diagnostic.message for f in found] == ["the rule belongs to no stage"]


# ---- the command


def test_shipped_rules_are_clean() -> None:
    library, _ = unchecked_library()
    assert [f.diagnostic.render() for f in lint(library)] == []


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.rw"
    path.write_text("stage simplify\n\nrule again\n  neg(neg(x))\n  => x\n")
    assert execute(["rules", "check", "--rules", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == "1 finding\n"
    assert err.startswith(f"{path}:3:6: error: `again` does the same as `negated_twice`, at rules/simplify/algebra.rw:")
    assert execute(["rules", "check", "--rules", str(tmp_path), "--json"]) == 1
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["kind"], entry["name"], entry["file"]) == ("duplicate", "again", str(path))
    assert (entry["line"], entry["column"], entry["end_line"], entry["end_column"]) == (3, 6, 3, 11)
    assert entry["help"]


MONOID = "monoid mine where T: real\n  carry s: T\n  element s = x\n  identity s = {}\n  combine s = {}\n  finish s\n"


@pytest.mark.parametrize(
    ("identity", "combine", "said"),
    [
        ("0", "a.s - b.s", "5:16: error: the monoid `mine` is wrong: its identity is not neutral for float"),
        ("0", "max(a.s, b.s)", "5:16: error: the monoid `mine` is wrong: its identity is not neutral for float"),
        ("-inf", "max(a.s, b.s)", ""),
    ],
)
def test_monoids_are_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], identity: str, combine: str, said: str
) -> None:
    path = tmp_path / "mine.rw"
    path.write_text("# A monoid.\n" + MONOID.format(identity, combine))
    assert execute(["rules", "check", "--rules", str(tmp_path)]) == bool(said)
    assert capsys.readouterr().err.startswith(f"{path}:{said}" if said else "")


def test_what_cannot_be_read_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.rw").write_text("rule again (\n")
    assert execute(["rules", "check", "--rules", str(tmp_path)]) == 2
    assert "this `(` is never closed" in capsys.readouterr().err


# ---- files of strangers


STEPS = (
    (PatternMatcher, "_pattern"),
    (growth._GrowthTrial, "round"),
    (growth._GrowthTrial, "matches"),
    (growth._GrowthTrial, "_make"),
)
"""What the checks do again and again: compare patterns, and try rules on small e-graphs."""


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many steps the checks took, of each kind."""
    steps: Counter[str] = Counter()

    def counted(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            steps[name] += 1
            return step(*given)

        return run

    for owner, name in STEPS:
        monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
    return steps


def test_many_alike_rules_end_soon(work: Counter[str]) -> None:
    rules = "".join(f"rule r{i}\n  plus(x, minus(y)) when x.rank == {i}\n  => y\n" for i in range(400))
    found = lint(library(f"stage early\n{rules}"))
    assert work["_pattern"] <= 150_000, "all pairs are compared, in ever more steps"
    assert [f.kind for f in found] == ["limit"]


def test_a_pattern_that_matches_in_many_ways_ends_soon(work: Counter[str]) -> None:
    deep = "plus(x, minus(x))"
    for _ in range(7):
        deep = f"plus(minus({deep}), x)"
    told(
        f"stage early\n\nrule a\n  {deep}\n  => {deep.replace('minus', 'root')}\n\nrule b\n  {deep}\n  => minus({deep})\n"
    )
    assert work["_pattern"] <= 1_000
    assert work["matches"] <= 1_000, "so large a pattern is tried in all orders of its operands"


WORDS = (
    "x",
    "y",
    "f",
    "root",
    "plus",
    "shape",
    "dims",
    "..",
    "...",
    "=>",
    "<=>",
    "when",
    "with",
    "for",
    "in",
    "{n}",
    "1",
    "[",
    "]",
    "(",
    ")",
    ",",
    "all",
    "replaces",
    "reduce_{op}",
    "stage late",
    "== x.rank",
    "let g(a) = a",
)


def test_damaged_rules_end_in_findings_or_diagnostics(work: Counter[str]) -> None:
    """No text makes the checks fail or take long."""
    rng = random.Random(3)
    texts = [path.read_text() for path in sorted((HERE / "broken").glob("*.rw"))]
    settled = 0
    for _ in range(600):
        words = re.split(r"(\W)", rng.choice(texts))
        for _ in range(rng.choice((1, 1, 2))):
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        work.clear()
        try:
            lint(library("".join(words)))
            settled += 1
        except GenrwError:
            pass
        assert work.total() <= 10_000, "".join(words)
    assert settled > 50


FOLD = """
op added(x: T tensor) -> tensor(T, x.lens)
  role fold({parts})
  at early
  means x
  emit "add({{{{x}}}}, {{{{result}}}})"
"""


def test_a_fold_whose_text_adds_says_so() -> None:
    found = told(FOLD.format(parts="x"))
    assert "error: the text of `added` names `result`, which is no accumulator" in found
    assert "help: write role fold(x, in_place)" in found
    assert "`result`" not in told(FOLD.format(parts="x, in_place"))


def test_files_in_which_nothing_was_found_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(library: Library, rules: list[RuleDecl]) -> list[Diagnostic]:
        asked.extend(rule.name for rule in rules)
        return check_rules(library, rules)

    monkeypatch.setattr(check, "check_rules", noted)
    assert told("stage early\nrule one\n  plus(x, plus(x, x))\n  => x\n") == ""
    for guard in (" when x.rnk == 2", "", " when x.rnk == 2"):
        asked.clear()
        text = f"stage early\nrule two\n  times(x, x){guard}\n  => x\n"
        for _ in range(2):
            assert ("`rnk`" in told(text)) == bool(guard)
        assert asked == ["two", "two"]


def test_files_are_looked_at_again_where_what_they_name_changes() -> None:
    user = parse_rw("stage early\nrule uses\n  own(x)\n  => helper(x)\n  given x: float{4}\n  counterexample own(x)\n")
    words = "op own{}(x: T) -> T where T: real\n  role pointwise\n  means x\ndefine {}(x) = plus(x, x)\n"

    def names(attributes: str, function: str) -> list[str]:
        declared = parse_rw(words.format(attributes, function), "words.rw")
        return [f.diagnostic.message for f in lint(build_library([base(), declared, user])) if f.subject == "uses"]

    assert names("", "helper") == []
    assert names("", "other") == ["unknown operator `helper`"]
    assert names("[n: int]", "helper") != []
    assert names("", "helper") == []


OWN_OPERATOR = "/// Twice.\nop f(x: T) -> T where T: real\n  role pointwise\n  means 2 * x\n"
OWN_TERM = "/// A power.\ndefine f(x) = exp(x)\n"


def test_what_is_called_like_a_variable_of_shipped_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who adds an operator or a term need not know the variables of rules: those stand for what they stood for."""
    path, program = tmp_path / "own.rw", tmp_path / "p.gen"
    for own, used in ((OWN_OPERATOR, "f(a)"), (OWN_TERM, "add(a, 2)")):
        path.write_text(own)
        assert execute(["rules", "check", "--rules", str(tmp_path)]) == 0
        assert capsys.readouterr().err == ""
        program.write_text(f"x = @param:x -> half{{4, 65}}\na = relu(x)\ny = {used}\nz = add(y, x)\n@return(z)\n")
        assert execute(["run", str(program), "--rules", str(tmp_path), "--check", "--target", "gfx942"]) == 0
        capsys.readouterr()
