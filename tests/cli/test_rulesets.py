"""Rule sets: shipped ones, folders, and what is remembered of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library, shipped_folder
from genrw.grammar.diagnostics import GenrwError

RULE = """\
stage simplify

/// About it.
rule mine
  neg(neg(x))
  => x
  given x: float{8}
  example neg(neg(x)) gives x
"""

COUNT = "from genrw.authoring.rulesets import load_library; l = load_library(examples={}); print(len(l.rules))"


def load(cache: Path, examples: bool) -> int:
    environment = {**os.environ, "GENRW_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", COUNT.format(examples)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.slow
def test_a_cache_that_is_damaged_is_rebuilt(tmp_path: Path) -> None:
    count = load(tmp_path, False)
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(entries) > 10
    for i, entry in enumerate(entries):
        entry.write_bytes((b"", b"junk", entry.read_bytes()[:-5])[i % 3])
    assert load(tmp_path, False) == count
    assert load(tmp_path, True) == count


def test_examples_are_there_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(RULE)
    for examples in (True, False):
        library = load_library([tmp_path], examples=examples)
        mine = next(rule for rule in library.rules if rule.name == "mine")
        assert bool(mine.examples) == examples
        assert mine.doc == "About it."


def test_folders_instead_of_the_shipped_rules(tmp_path: Path) -> None:
    (tmp_path / "all.rw").write_text("pipeline first -> last\n")
    library = load_library([tmp_path], shipped=False)
    assert (library.stages, len(library.rules)) == (("first", "last"), 0)


def test_problems_of_all_files_are_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.rw").write_text("rule 3\n")
    with pytest.raises(GenrwError) as raised:
        load_library([tmp_path])
    assert {Path(d.span.source.name).name for d in raised.value.diagnostics if d.span} == {"a.rw", "b.rw"}


def test_names_may_not_be_declared_again(tmp_path: Path) -> None:
    (tmp_path / "again.rw").write_text("stage simplify\n\nrule skip_rounding\n  neg(neg(x))\n  => x\n")
    with pytest.raises(GenrwError, match="`skip_rounding` is declared twice"):
        load_library([tmp_path])


def test_a_file_of_several_folders_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "mine" / "below").mkdir(parents=True)
    (tmp_path / "mine" / "below" / "mine.rw").write_text(RULE)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    folders = [tmp_path / "mine", tmp_path / "mine" / ".." / "mine", tmp_path / "mine" / "below", tmp_path / "link"]
    assert [rule.name for rule in load_library(folders).rules].count("mine") == 1


def test_the_shipped_rules_are_not_added_to_themselves() -> None:
    folder = shipped_folder()
    with pytest.raises(GenrwError, match="is a shipped rule file") as raised:
        load_library([folder / "targets"])
    assert len(raised.value.diagnostics) == 1
    assert load_library([folder], shipped=False, examples=False).targets


def test_a_file_written_again_is_read_again(tmp_path: Path) -> None:
    """However soon, and with the size and the time of before."""
    path = tmp_path / "mine.rw"
    long_ago = 10**9
    for name in ("some", "more", "then", "last"):
        path.write_text(RULE.replace("mine", name))
        os.utime(path, (long_ago, long_ago))
        assert name in {rule.name for rule in load_library([tmp_path], examples=False).rules}
