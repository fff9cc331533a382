"""What `genrw rules cover` writes and keeps, and the plugin for pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from genrw.authoring.rulesets import load_library
from genrw.coverage.data import CoverageData, content_hash
from genrw.coverage.observed import Coverage, RuleRow
from genrw.coverage.report import cobertura, page, percent
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

RULES = """\
stage simplify

let few(n) = n < 4

/// Seen both ways.
rule seen
  exp(exp(x)) when not few(x.elements)
  => neg(x)

/// Never <here>.
rule unseen
  exp(neg(exp(neg(exp(x)))))
  => exp(neg(x))
"""

PROGRAMS = (
    "x = @param:x -> float{2}\na = exp(x)\nb = exp(a)\n@return(b)\n",
    "x = @param:x -> float{8}\na = exp(x)\nb = exp(a)\n@return(b)\n",
)


def written(folder: Path, text: str = RULES) -> Library:
    folder.mkdir(exist_ok=True)
    (folder / "mine.rw").write_text(text)
    return load_library([folder])


def mine(library: Library) -> list[RuleRow]:
    """The rows of the two rules, after both programs."""
    coverage = Coverage(library)
    coverage.add([Program.parse(Source("x.gen", text), library) for text in PROGRAMS])
    return [row for row in coverage.rows() if row.rule.name in ("seen", "unseen")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cover")


@pytest.fixture(scope="module")
def library(folder: Path) -> Library:
    return written(folder / "rules")


@pytest.fixture(scope="module")
def rows(library: Library) -> list[RuleRow]:
    return mine(library)


def test_what_a_rule_cost(rows: list[RuleRow]) -> None:
    seen, unseen = rows
    assert seen.seconds > 0
    assert seen.grown > 0
    assert (unseen.seconds, unseen.grown) == (0, 0)
    at = seen.stages["simplify"]
    assert (at.fired, at.survived, at.taken, at.refused) == (1, True, 1, 1)
    assert percent(rows) == 50


def test_the_page(rows: list[RuleRow]) -> None:
    text = page(rows)
    assert "<h1>Rules covered: 1 of 2</h1>" in text
    assert '<span class="open" title="unseen: never fired">rule unseen' not in text, "a rule's first line is its anchor"
    assert '<span id="unseen" class="open" title="unseen: never fired">rule unseen</span>' in text
    assert '<span class="seen" title="seen: covered">  =&gt; neg(x)</span>' in text
    assert "Never &lt;here&gt;." in text
    assert "http" not in text, "nothing comes from elsewhere"


def test_the_xml(rows: list[RuleRow]) -> None:
    root = ElementTree.fromstring(cobertura(rows))
    assert root.attrib["line-rate"] == "0.5000"
    (made,) = root.iter("class")
    assert made.attrib["filename"].endswith("mine.rw")
    seen, unseen = made.iter("line")
    assert (seen.attrib["number"], seen.attrib["hits"]) == ("6", "1")
    assert seen.attrib["condition-coverage"] == "100% (2/2)"
    assert (unseen.attrib["number"], unseen.attrib["hits"], unseen.attrib["branch"]) == ("11", "0", "false")


def test_what_is_kept_is_of_what_rules_say(library: Library, rows: list[RuleRow], tmp_path: Path) -> None:
    data = CoverageData.of(rows, library)
    data.write(tmp_path / "data.json")
    kept = CoverageData.read(tmp_path / "data.json")
    rules = [row.rule for row in rows]
    assert [row.gaps for row in kept.rows(rules, library)] == [[], ["never fired"]]
    kept.add(data)
    assert kept.rows(rules, library)[0].taken == 2

    told_anew = written(tmp_path / "told", RULES.replace("/// Seen both ways.", "/// Said otherwise."))
    changed = written(tmp_path / "changed", RULES.replace("=> neg(x)", "=> abs(x)"))
    helper = written(tmp_path / "helper", RULES.replace("n < 4", "n < 5"))
    states = []
    for other in (told_anew, changed, helper):
        mine_now = [rule for rule in other.rules if rule.name == "seen"]
        states.append(data.rows(mine_now, other)[0].gaps)
    assert states == [[], ["stale: the rule changed since"], ["stale: the rule changed since"]]
    assert content_hash(rules[0], library) != content_hash(rules[1], library)


def test_data_that_is_none(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"format": 1, "seen": [{}]}', '{"format": 9, "seen": []}'):
        (tmp_path / "data.json").write_text(text)
        with pytest.raises(GenrwError, match="holds no coverage of rules"):
            CoverageData.read(tmp_path / "data.json")
    assert CoverageData.read(tmp_path / "none.json").entries == {}


def test_the_command_writes_and_keeps(genrw: object, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.rw").write_text(
        "pipeline one -> two\n\nstage one\n\nrule a\n  f(f(x))\n  => x\n\nop f(x: float) -> float\n  role pointwise\n"
    )
    files = {name: tmp_path / f"out.{name}" for name in ("html", "xml", "data")}
    options = [text for name, path in files.items() for text in (f"--{name}", path)]
    result = genrw("rules", "cover", "--no-shipped-rules", "--rules", tmp_path / "rules", *options)  # type: ignore[operator]
    assert (result.status, result.err) == (1, "")
    assert "0 of 1 rules are covered" in result.out
    assert files["html"].read_text().startswith("<!doctype html>")
    assert ElementTree.parse(files["xml"]).getroot().tag == "coverage"
    assert json.loads(files["data"].read_text())["format"] == 1


# ---- the plugin

TESTS = """\
import genrw, pytest

@pytest.mark.parametrize("n", [2, 8])
def test_lowers(n):
    text = f"x = @param:x -> float{{{n}}}\\na = exp(x)\\nb = exp(a)\\n@return(b)\\n"
    genrw.load(text, rules=["rules"]).lower("simplify")
"""


LEAVING = """\
import gc

def pytest_unconfigure():
    gc.freeze()
"""
"""Python and pytest look through all that a run leaves for garbage, again and again: that takes longer than the run."""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(LEAVING)
    plugins = ("genrw.pytest_plugin", "no:cacheprovider", "no:hypothesispytest")
    command = [str(Path(sys.executable).with_name("pytest")), "-q", *(w for name in plugins for w in ("-p", name))]
    return subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=300)


def test_the_plugin(tmp_path: Path) -> None:
    written(tmp_path / "rules")
    (tmp_path / "test_it.py").write_text(TESTS)
    options = ("--rule-cov", "rules", "--rule-cov-fail-under", "100", "--rule-cov-html", "page.html")
    alone = run(tmp_path, *options, "--rule-cov-data", "seen.json")
    assert CoverageData.read(tmp_path / "seen.json").entries
    assert "mine.rw:11: unseen: never fired" in alone.stdout, alone.stdout + alone.stderr
    assert "1 of 2 rules are covered: 50 %" in alone.stdout
    assert "FAIL: fewer than 100 of 100 rules are covered" in alone.stdout
    assert alone.returncode == 1

    assert "rule seen" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_the_plugin_tells_what_it_cannot_do(tmp_path: Path) -> None:
    """The tests run all the same, but for a mistaken name; files that were there stay."""
    written(tmp_path / "rules")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.rw").write_text("rule r\n  exp(")
    (tmp_path / "junk").write_bytes(b"\xff\0")
    (tmp_path / "test_it.py").write_text(TESTS)
    for options, said in [
        (("--rule-cov", "bad"), "a.rw:2:6: error: this `(` is never closed"),
        (("--rule-cov", "rules", "--rule-cov-html", "none/a.html"), "error: 'none/a.html' cannot be written: "),
        (("--rule-cov", "rules", "--rule-cov-data", "junk"), "junk:1:1: error: the byte 0xff is not UTF-8"),
        (("--rule-cov", "none"), f"error: there is no folder `{tmp_path}/none`"),
    ]:
        done = run(tmp_path, *options)
        told = done.stdout + done.stderr
        assert said in told, told
        assert "Traceback" not in told
        assert "INTERNALERROR" not in told
        assert ("2 passed" in told) == (options[1] != "none")
        assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (tmp_path / "junk").read_bytes() == b"\xff\0"


def test_workers_are_added_up(library: Library, rows: list[RuleRow]) -> None:
    """Each worker hands over plain values, whatever way they take."""
    worker = json.loads(json.dumps(CoverageData.of(rows, library).dump()))
    whole = CoverageData()
    for _ in range(2):
        whole.add(CoverageData.load(worker, "a worker"))
    assert [row.taken for row in whole.rows([rows[0].rule], library)] == [2]
