"""`genrw explain`, `genrw rules list` and `genrw rules cover`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Command

from genrw.coverage import Coverage, without
from genrw.engine.library import Library
from genrw.grammar.source import Source
from genrw.program import Program


def test_explain(genrw: Command, softmax: Path) -> None:
    result = genrw("explain", softmax)
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "kernel main, target gfx942: the rows of {8, 100} along axis 1"
    first = lines.index(next(line for line in lines if line.split()[:2] == ["cost", "algo"])) + 1
    costs = []
    for line in lines[first:]:
        if not line:
            break
        costs.append(float(line.split()[0]))
        assert line.endswith(")"), "each schedule names its rule and where that stands"
    assert costs == sorted(costs)
    assert len(costs) > 3
    assert any(line.startswith("simplify  widen_pointwise") and "rules/simplify/" in line for line in lines)


def test_explain_names_the_rule_of_each_schedule(genrw: Command, softmax: Path) -> None:
    out = genrw("explain", softmax, "--schedule", "algo=block").out
    opened = [line.split()[-2] for line in out.splitlines() if " block " in line]
    assert set(opened) == {"row_a_block"}


def test_explain_several_kernels(genrw: Command) -> None:
    body = "x = @param:x -> float{4}\ny = exp(x)\n@return(y)\n"
    out = genrw("explain", "-", stdin=f"@module a\n{body}@module b\n{body}").out
    assert out.count("kernel ") == 2
    assert "kernel b, target gfx942: the elements of {4}" in out


def test_list(genrw: Command, library: Library) -> None:
    out = genrw("rules", "list").out
    assert len(out.splitlines()) == 1 + len(library.rules)
    entries = json.loads(genrw("rules", "list", "--json").out)
    assert [e["name"] for e in entries] == [r.name for r in library.rules]
    widen = next(e for e in entries if e["name"] == "widen_pointwise")
    assert widen["stage"] == "simplify"
    assert widen["contract"] == "exact"
    assert widen["declared_at"].startswith("rules/simplify/widen.rw:")
    assert widen["doc"]
    assert next(e for e in entries if e["name"] == "skip_rounding")["contract"].startswith("approximate ")


def test_list_of_added_rules(genrw: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text("stage simplify\n\n/// About it.\nrule mine\n  neg(neg(x))\n  => x\n")
    out = genrw("rules", "list", "--rules", tmp_path).out
    assert out.splitlines()[-1].startswith("mine ")
    assert out.splitlines()[-1].endswith("About it.")


RULES = """\
stage simplify

/// Seen both ways.
rule seen
  exp(exp(x)) when x.elements > 4
  => neg(x)

/// Never.
rule unseen
  exp(neg(exp(neg(exp(x)))))
  => exp(neg(x))

/// Makes nothing of its own.
rule leads_to_operand
  neg(exp(neg(x)))
  => exp(neg(x))
"""


def test_cover(genrw: Command, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.rw").write_text(RULES)
    for n in (4, 8):
        text = f"x = @param:x -> float{{{n}}}\na = exp(x)\nb = exp(a)\n@return(b)\n"
        (tmp_path / f"p{n}.gen").write_text(text)
    third = "x = @param:x -> float{8}\na = neg(x)\nb = exp(a)\nc = neg(b)\n@return(c)\n"
    (tmp_path / "third.gen").write_text(third)
    programs = [tmp_path / "p4.gen", tmp_path / "p8.gen", tmp_path / "third.gen"]
    result = genrw("rules", "cover", *programs, "--rules", tmp_path / "rules", "--json")
    assert result.status == 1
    rows = {entry["name"]: entry for entry in json.loads(result.out)}
    assert rows["seen"]["guard"] == {"taken": 1, "refused": 1}
    assert rows["seen"]["gaps"] == []
    assert rows["unseen"]["gaps"] == ["never fired"]
    assert rows["leads_to_operand"]["gaps"] == []
    text = genrw("rules", "cover", *programs, "--rules", tmp_path / "rules").out
    assert "rules are covered" in text.splitlines()[-1]


def test_examples_count(genrw: Command, tmp_path: Path) -> None:
    rule = (
        "stage simplify\n\nrule mine\n  neg(neg(x)) when x.elements > 4\n  => x\n"
        "  example\n    x = @param:x -> float{8}\n    y = neg(x)\n    z = neg(y)\n"
        "  gives\n    x = @param:x -> float{8}\n"
        "  counterexample\n    x = @param:x -> float{4}\n    y = neg(x)\n    z = neg(y)\n"
    )
    (tmp_path / "mine.rw").write_text(rule)
    out = genrw("rules", "cover", "--rules", tmp_path, "--json").out
    mine = next(entry for entry in json.loads(out) if entry["name"] == "mine")
    assert (mine["fired"], mine["guard"]) == (True, {"taken": 1, "refused": 1})


def test_a_bad_program_stops_coverage(genrw: Command, tmp_path: Path) -> None:
    result = genrw("rules", "cover", tmp_path / "none.gen")
    assert result.status == 2
    assert "there is no file" in result.err


@pytest.mark.parametrize("key", ["skip_rounding"])
def test_a_rule_counts_where_outputs_change_without_it(library: Library, key: str) -> None:
    text = "x = @param:x -> half{8}\na = exp(x)\ny = exp(a)\n@return(y)\n"
    coverage = Coverage(library)
    coverage.add_program(Program.parse(Source("x.gen", text), library))
    assert key in coverage.trace.fired
    assert coverage.survived(key)
    assert key not in {rule.name for rule in without(library, key).rules}
