"""`genrw rules test`: examples and counterexamples of rules, and what `check` and an editor say of false ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

from genrw.editor.project import Project

HEAD = """\
stage simplify

/// Once is enough.
rule thrice
  abs(abs(abs(x))) when x.rank > 0
  => abs(x)
"""

GIVEN = "  given x: float{4}\n"
TRUE = (
    GIVEN
    + """\
  example abs(abs(abs(x))) gives abs(x)
  counterexample abs(x)
"""
)

WRONG_RESULT = """\
  example exp(abs(abs(abs(x)))) gives exp(neg(x))
"""

MATCHED = """\
  counterexample exp(abs(abs(abs(x))))
"""

UNMATCHED = """\
  given scalar: float{}
  example abs(abs(abs(scalar))) gives abs(scalar)
"""

NO_PROGRAM = """\
  example abss(x) gives x
"""

NOT_GIVEN = """\
  example abs(abs(abs(y))) gives abs(x)
"""

FALSE = {
    "gives": (WRONG_RESULT, "neg(x)", "does not make its example what it gives"),
    "counterexample": (MATCHED, "abs(abs(abs(x)))", "changes its counterexample"),
    "unmatched": (UNMATCHED, "example", "does not match its example"),
    "unnamed": (NO_PROGRAM, "abss", "unknown operator `abss`"),
    "not given": (NOT_GIVEN, "y", "`y` is not given"),
}
"""Examples that are false, with the text that is pointed at and what is said of it."""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


def pointed(err: str) -> str:
    """The text above the first carets."""
    lines = err.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() and set(line) <= set(" ^"))
    first = lines[at].index("^")
    return lines[at - 1][first : first + lines[at].count("^")]


def test_true_examples_pass(genrw: Command, mine: Path) -> None:
    (mine / "a.rw").write_text(HEAD + TRUE)
    result = genrw("rules", "test", "--rules", mine)
    assert (result.status, result.err) == (0, "")
    head, row, last = result.out.splitlines()
    assert head.split() == ["rule", "stage", "declared", "at", "examples", "counterexamples", "result"]
    assert row.split() == ["thrice", "simplify", f"{mine}/a.rw:4", "1", "1", "passed"]
    assert last == "1 rule: 2 examples passed"
    assert genrw("rules", "check", "--rules", mine).status == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", FALSE)
def test_a_false_example_is_told_where_it_is(genrw: Command, mine: Path, kind: str) -> None:
    text, place, said = FALSE[kind]
    (mine / "a.rw").write_text(HEAD + TRUE + text)
    result = genrw("rules", "test", "--rules", mine)
    assert result.status == 1
    assert said in result.err
    assert pointed(result.err) == place
    assert result.out.splitlines()[-1] == "1 rule: 1 of 3 examples failed"
    checked = genrw("rules", "check", "--rules", mine)
    assert (checked.status, checked.out) == (1, "1 finding\n")
    assert said in checked.err
    assert pointed(checked.err) == place


def test_the_difference(genrw: Command, mine: Path) -> None:
    (mine / "a.rw").write_text(HEAD + GIVEN + WRONG_RESULT + MATCHED)
    err = genrw("rules", "test", "--rules", mine).err
    assert (
        "-neg = neg(x) -> float{4}\n-result = exp(neg) -> float{4}\n+abs = abs(x) -> float{4}\n+result = exp(abs)"
        in err
    )
    assert "-abs.1 = abs(abs) -> float{4}\n-abs.2 = abs(abs.1) -> float{4}\n-result = exp(abs.2)" in err


def test_why_an_example_is_not_matched(genrw: Command, mine: Path) -> None:
    (mine / "a.rw").write_text(HEAD + UNMATCHED)
    err = genrw("rules", "test", "--rules", mine).err
    assert "note: this does not hold: x.rank is 0" in err


def test_rules_by_name_and_for_tools(genrw: Command, mine: Path) -> None:
    (mine / "a.rw").write_text(HEAD + TRUE + MATCHED + "\nrule bare\n  relu(relu(relu(x)))\n  => x\n")
    assert (
        genrw("rules", "test", "bare", "--rules", mine).out.splitlines()[-1] == "1 rule: 0 examples passed; 1 without"
    )
    entries = json.loads(genrw("rules", "test", "--rules", mine, "--json").out)
    assert [(e["kind"], e["passed"]) for e in entries] == [
        ("example", True),
        ("counterexample", True),
        ("counterexample", False),
    ]
    assert entries[2]["difference"]
    assert genrw("rules", "test", "nonesuch").status == 2
    shipped = genrw("rules", "test", "negated_twice")
    assert (shipped.status, shipped.out.splitlines()[-1]) == (0, "1 rule: 1 example passed")


def test_a_rule_that_never_ends_is_told(genrw: Command, mine: Path) -> None:
    endless = "stage simplify\n\nrule deeper\n  tanh(x)\n  => tanh(exp(sin(x)))\n"
    (mine / "a.rw").write_text(endless + "  given x: float{4}\n  counterexample tanh(x)\n")
    result = genrw("rules", "test", "--rules", mine)
    assert result.status == 1
    assert "did not settle" in result.err or "made more than" in result.err


@pytest.mark.slow
def test_an_editor_shows_false_examples(mine: Path) -> None:
    path = mine / "a.rw"
    project = Project()
    for text, place, said in FALSE.values():
        project.edit(path, HEAD + TRUE + text)
        told = project.analysis(path).diagnostics or project.lint(path)
        assert [(d.span and d.span.text, said in d.message) for d in told] == [(place, True)]
    project.edit(path, HEAD + TRUE)
    assert project.lint(path) == []


def test_a_name_declared_twice_hides_no_other_fault(genrw: Command, mine: Path) -> None:
    again = "stage simplify\n\nrule skip_rounding\n  neg(neg(x))\n  => x\n\nrule other\n  abss(x)\n  => x\n"
    (mine / "a.rw").write_text(again)
    (mine / "b.rw").write_text("stage simplify\n\nrule third\n  abs(abs(abs(x)))\n  => y\n")
    (mine / "a.gen").write_text("x = @param:x -> float{4}\ny = abs(x)\n@return(y)\n")
    said = ("`skip_rounding` is declared twice", "unknown operator `abss`", "`y` is not bound")
    for command in (("rules", "check"), ("lower", mine / "a.gen")):
        result = genrw(*command, "--rules", mine)
        assert result.status
        assert [text for text in said if text not in result.err] == []
    project = Project([mine])
    project.edit(mine / "a.rw", again)
    assert [d.message for d in project.analysis(mine / "a.rw").diagnostics][:2] == list(said[:2])
