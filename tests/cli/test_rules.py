"""`genrw explain`, `genrw rules list` and `genrw rules cover`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

from genrw.authoring.rulesets import load_library
from genrw.coverage.observed import Coverage, RuleRow
from genrw.coverage.report import show
from genrw.engine.library.library import Library
from genrw.grammar.source import Source
from genrw.program import Program


def test_explain(genrw: Command, softmax: Path) -> None:
    result = genrw("explain", softmax)
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "kernel main, target gfx942: the rows of {8, 100} along axis 1"
    first = lines.index(next(line for line in lines if line.split()[:2] == ["µs", "bytes"])) + 1
    costs = []
    for line in lines[first:]:
        if not line:
            break
        costs.append(float(line.split()[0]))
        assert line.endswith(")"), "each schedule names its rule and where that stands"
    assert costs == sorted(costs)
    assert len(costs) > 3
    assert any(line.startswith("simplify  widen_pointwise") and "rules/simplify/" in line for line in lines)


def test_explain_tells_what_costs_are_made_of(genrw: Command, tmp_path: Path) -> None:
    path = tmp_path / "sum.gen"
    path.write_text("x = @param:x -> float{512, 256}\ny = reduce_sum[axes={1}](x)\n@return(y)\n")
    lines = genrw("explain", path).out.splitlines()
    table = [line.split() for line in lines if line.split()[:2] == ["µs", "bytes"] or "rules/schedule/rows.rw" in line]
    head, *rows = table
    seen = [dict(zip(head, row, strict=False)) for row in rows]
    assert head[1:6] == ["bytes", "transactions", "operations", "launches", "occupancy"]
    assert {(s["bytes"], s["launches"]) for s in seen if s["steps"] == "1"} == {(str(4 * (512 * 256 + 512)), "1")}
    assert {s["operations"] for s in seen} == {str(512 * 256)}
    of_block = next(s for s in seen if s["algo"] == "block")
    assert int(of_block["transactions"]) == -(-int(of_block["bytes"]) // 64), "rows are read whole"
    # 304 units have room for 2048 lanes each.
    assert float(of_block["occupancy"]) == pytest.approx(int(of_block["block_size"]) * 512 / 304 / 2048, abs=0.005)


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


PROGRAMS = (
    "x = @param:x -> float{4}\na = exp(x)\nb = exp(a)\n@return(b)\n",
    "x = @param:x -> float{8}\na = exp(x)\nb = exp(a)\n@return(b)\n",
    "x = @param:x -> float{8}\na = neg(x)\nb = exp(a)\nc = neg(b)\n@return(c)\n",
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RuleRow]:
    """What the programs make of the rules."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "mine.rw").write_text(RULES)
    found = Coverage(load_library([folder], examples=False))
    found.add([Program.parse(Source("x.gen", text), found.library) for text in PROGRAMS])
    return {row.direction: row for row in found.rows()}


def test_what_is_still_to_be_seen(rows: dict[str, RuleRow]) -> None:
    assert (rows["seen"].taken, rows["seen"].refused, rows["seen"].gaps) == (1, 1, [])
    assert rows["unseen"].gaps == ["never fired"]
    assert rows["leads_to_operand"].gaps == []


def test_coverage_as_text_and_as_json(rows: dict[str, RuleRow], capsys: pytest.CaptureFixture[str]) -> None:
    two = [rows["seen"], rows["unseen"]]
    assert show(two, as_json=False) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "1 of 2 rules are covered"
    assert show(two, as_json=True) == 1
    seen, unseen = json.loads(capsys.readouterr().out)
    assert seen["guard"] == {"taken": 1, "refused": 1}
    assert unseen["gaps"] == ["never fired"]
    assert show(two[:1], as_json=True) == 0


def test_cover_counts_programs_and_guards_of_examples(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    rule = (
        "stage simplify\n\nrule mine\n  neg(neg(x)) when x.elements > 4\n  => x\n"
        "  given x: float{8}, y: float{4}\n  example neg(neg(x)) gives x\n  counterexample neg(neg(y))\n"
    )
    (tmp_path / "mine.rw").write_text(rule)
    result = genrw("rules", "cover", softmax, "--rules", tmp_path, "--json")
    assert (result.status, result.err) == (1, "")
    entries = {entry["name"]: entry for entry in json.loads(result.out)}
    assert (entries["mine"]["fired"], entries["mine"]["guard"]) == (False, {"taken": 1, "refused": 1})
    assert list(entries) == ["mine"], "a folder's rules are asked about, not those that came with genrw"


@pytest.mark.slow
def test_cover_tells_of_all_rules(genrw: Command, tmp_path: Path) -> None:
    """With folders, those that came with genrw as well where that is asked."""
    (tmp_path / "mine.rw").write_text("stage simplify\n\nrule mine\n  exp(exp(x))\n  => neg(x)\n")
    (tmp_path / "a.gen").write_text("x = @param:x -> float{8}\na = exp(x)\ny = exp(a)\n@return(y)\n")
    told = genrw("rules", "cover", tmp_path / "a.gen", "--rules", tmp_path, "--json")
    assert (told.status, [entry["name"] for entry in json.loads(told.out)]) == (0, ["mine"])
    told = genrw("rules", "cover", tmp_path / "a.gen", "--rules", tmp_path, "--all", "--json")
    assert told.status == 1
    entries = {entry["name"]: entry for entry in json.loads(told.out)}
    assert entries.pop("mine")["survived"]
    assert any(entry["survived"] for entry in entries.values())


def test_a_bad_program_stops_coverage(genrw: Command, tmp_path: Path) -> None:
    result = genrw("rules", "cover", tmp_path / "none.gen")
    assert result.status == 2
    assert "there is no file" in result.err
