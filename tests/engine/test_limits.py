"""Stages that reach a limit: the rule that is named, and the e-graph that is left to look at."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import count
from mmap import mmap
from pathlib import Path

import pytest

import genrw
from genrw.engine.egraph import stage, unfinished
from genrw.engine.egraph.stage import Limits
from genrw.grammar.diagnostics import Diagnostic, GenrwError

RULES = """\
stage simplify

rule first
  sin(x) => max(sin(x), neg(sin(x)))

rule turned
  max(x, y) => max(y, x)

rule asked
  cos(x) => abs(cos(x)) when x.type in [float, half]

rule grows
  add(x, y) => add(sin(x), y)

rule calm
  add(x, y) => add(y, cos(x)) when x.type == half

rule last
  sin(x) => sub(sin(x), literal[value=0.0, dtype=x.type, lens=x.lens]())
"""
"""Only one of these rules goes on for ever. Others match all that it makes, and make more of it than it does."""

PROGRAM = "x = @param:x -> float{64}\nz = @param:z -> float{64}\ny = add(x, z)\n@return(y)\n"

SMALL = Limits(rounds=40)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where e-graphs are kept."""
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def ended(folder: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits, rules: str = RULES) -> Diagnostic:
    """What is said of a program under rules of one's own and limits."""
    monkeypatch.setattr(stage, "Limits", lambda: limits)
    (folder / "mine.rw").write_text(rules)
    with pytest.raises(GenrwError) as caught:
        genrw.load(PROGRAM, rules=[folder]).lower("simplify")
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def kept(diagnostic: Diagnostic) -> str:
    """The text of the file that a diagnostic names."""
    found = re.search(r"; the e-graph is in (.*)", diagnostic.remedy or "")
    assert found is not None
    return Path(found[1]).read_text()


def caret(diagnostic: Diagnostic) -> str:
    assert diagnostic.span is not None
    return diagnostic.span.text


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (SMALL, "did not settle within 40 rounds"),
        (Limits(nodes_per_kernel=400), "made more than 400 nodes per kernel"),
    ],
)
def test_the_rule_without_which_a_stage_settles_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits, why: str
) -> None:
    told = ended(tmp_path, monkeypatch, limits)
    assert told.message == f"stage `simplify` {why}; rule `grows` is responsible: without it the stage settles"
    assert caret(told) == "grows"


def test_the_rule_that_made_most_is_named_where_several_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = RULES.replace("rule calm", "rule also\n  add(x, y) => add(x, cos(y))\n\nrule calm")
    told = ended(tmp_path, monkeypatch, SMALL, both)
    assert told.message.endswith("rule `grows` is responsible: it made most")


def test_a_rule_of_ones_own_is_named_before_shipped_ones_that_made_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each further index is taken apart by many rules of the last stage."""
    monkeypatch.setattr(stage, "Limits", lambda: Limits(nodes_per_kernel=3000))
    rule = "rule further\n  store(z, i, v) when i.size == 0\n  => store(z, i + {1000}, v)\n  replaces\n"
    (tmp_path / "mine.rw").write_text(f"stage final\n\n{rule}")
    program = "x = @param:x -> float{64, 100}\ny = reduce_sum[axes={1}](x)\n@return(y)\n"
    with pytest.raises(GenrwError) as caught:
        genrw.load(program, rules=[tmp_path], target="host").lower("final")
    (told,) = caught.value.diagnostics
    assert told.message.endswith("rule `further` is responsible: without it the stage settles")


def test_the_rule_that_took_longest_is_named_where_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ended(tmp_path, monkeypatch, Limits(seconds=0))
    assert told.message.startswith("stage `simplify` took more than 0 s; rule `")
    assert told.message.endswith("` is responsible: it took longest")


def test_memory_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here each look finds another MiB taken."""
    taken = count(0, 1 << 20)
    monkeypatch.setattr(stage, "_memory", lambda: next(taken))
    told = ended(tmp_path, monkeypatch, Limits(memory=30 << 20))
    assert told.message == (
        "stage `simplify` took more than 30 MiB of memory; rule `grows` is responsible: without it the stage settles"
    )
    assert "add(" in kept(told)


def test_memory_is_that_of_the_process_now() -> None:
    """Memory that comes from the system and goes back there: what was freed before is not used again."""
    before = stage._memory()
    with mmap(-1, 64 << 20) as block:
        block.write(b"1" * (64 << 20))
        assert stage._memory() - before > 60 << 20
    assert stage._memory() - before < 60 << 20


def test_the_e_graph_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ended(tmp_path, monkeypatch, SMALL)
    lines = kept(told).splitlines()
    assert lines[0] == f"# {told.message}"
    made = {name: int(count) for name, count in re.findall(r"^# (\w+) made (\d+) terms$", kept(told), re.M)}
    assert list(made) == ["turned", "grows", "first", "last"]
    assert made["turned"] > made["grows"] > 200
    heading = next(line for line in lines if ", `y`: " in line)
    assert re.fullmatch(r"c\d+, `y`: \d{3} members, by grows", heading)
    after = lines[lines.index(heading) + 1 :]
    assert re.fullmatch(r"  add\(c\d+, c\d+\)", after[0])
    assert after[unfinished._MEMBERS_SHOWN].startswith("  … ")
    sizes = [int(count) for count in re.findall(r": (\d+) members?", kept(told))]
    assert sizes == sorted(sizes, reverse=True)


def test_what_is_kept_is_no_larger_than_what_a_person_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "_LARGEST", 1000)
    text = kept(ended(tmp_path, monkeypatch, SMALL))
    assert 800 < len(text) <= 1002
    assert text.endswith("\n…\n")


def test_an_e_graph_too_large_to_be_read_is_not_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_MOST_READ", 100)
    told = ended(tmp_path, monkeypatch, SMALL)
    assert told.message.endswith("rule `grows` is responsible: without it the stage settles")
    assert told.remedy == "give the rule a guard, or make it simplify in one direction"
    assert not (cache / "unfinished").exists()


def test_without_a_cache_the_error_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENRW_CACHE_DIR", os.devnull)
    told = ended(tmp_path, monkeypatch, SMALL)
    assert told.message.endswith("rule `grows` is responsible: without it the stage settles")
    assert told.remedy == "give the rule a guard, or make it simplify in one direction"


@pytest.mark.slow
def test_all_hash_seeds_tell_the_same(tmp_path: Path, cache: Path) -> None:
    """Message and e-graph, to the byte."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.rw").write_text(RULES)
    run = (
        "import genrw\nfrom genrw.engine.egraph import stage\nlimits = stage.Limits(rounds=40)\n"
        f"stage.Limits = lambda: limits\ngenrw.load({PROGRAM!r}, rules=[{str(tmp_path / 'rules')!r}]).lower('simplify')"
    )
    told = set()
    for seed in ("0", "1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", run], env=env, capture_output=True, text=True, timeout=60)
        told.add(done.stderr.partition("GenrwError: ")[2])
    assert len(told) == 1
    assert "rule `grows` is responsible" in told.pop()
    assert len(list((cache / "unfinished").iterdir())) == 1
