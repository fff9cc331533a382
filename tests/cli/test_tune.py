"""`genrw tune`: what is measured, what is kept, and who asks for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command
from host_gpu import HostGpu

import genrw as api
from genrw.measure import gpu_case, tune
from genrw.measure.tune import Tuned
from genrw.tuned import Database, Measured, database_path, kernel_key, with_winners

ROWS = "x = @param:x -> float{32, 256}\ny = reduce_sum[axes={1}](x)\n@return(y)\n"
TWO = "x = @param:x -> float{8, 32}\na = reduce_sum[axes={0}](x)\nb = mul(x, a)\ny = reduce_max[axes={1}](b)\n@return(y)\n"


@pytest.fixture(autouse=True)
def _database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GENRW_TUNED", str(tmp_path / "data" / "tuned.sqlite"))
    monkeypatch.setattr("genrw.codegen.runtime.devices.open_gpu", lambda *_: HostGpu())
    monkeypatch.setattr(gpu_case, "_ROTATED_BYTES", 1 << 12)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.gen"
    path.write_text(ROWS)
    return path


def slow_but_one(monkeypatch: pytest.MonkeyPatch, fast: int) -> list[int]:
    """Let the schedule of a number be measured as the fastest; gives the numbers of those that are measured."""
    asked: list[int] = []

    def times(self: Any, count: int) -> list[float]:  # noqa: ARG001
        asked.append(len(asked))
        return [1.0 if asked[-1] == fast else 10.0 + asked[-1]] * count

    monkeypatch.setattr(gpu_case.GpuCase, "times", times)
    return asked


def tuned(genrw: Command, *arguments: object) -> list[str]:
    result = genrw("tune", *arguments, "--target", "gfx942", "--device", "hip")
    assert (result.status, result.err) == (0, "")
    return result.out.splitlines()


def scheduled(program: api.Program) -> dict[str, Any]:
    """The schedule of a program's only kernel."""
    (module,) = program.lower("schedule").modules
    return dict(module.schedule)


def test_the_best_is_kept_and_taken(genrw: Command, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_but_one(monkeypatch, fast=2)
    lines = tuned(genrw, rows, "--best", 4)
    assert lines[0] == f"{rows}, kernel main"
    assert [line.endswith("the best") for line in lines[2:6]] == [False, False, True, False]
    program = load(rows)
    plain, winner = scheduled(program), scheduled(with_winners(program, "the CPU"))
    assert plain != winner
    measured = Database(database_path()).of(kernel_key(program.lower("fuse").modules[0], program), "the CPU")
    assert [m.microseconds for m in measured if dict(m.schedule) == dict(winner)] == [1.0]
    assert scheduled(with_winners(program)) == winner, "on whatever device it was measured"
    other = scheduled(with_winners(program, "another GPU"))
    assert other == plain, "what was measured elsewhere says nothing"


def load(path: Path, **settings: Any) -> api.Program:
    return api.load(path, target="gfx942", **settings)


def test_what_was_measured_before_is_shown_alike(genrw: Command, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_but_one(monkeypatch, fast=1)
    figures = rows.with_name("a.json"), rows.with_name("b.json")
    first, again = (tuned(genrw, rows, "--best", 3, "--json", file) for file in figures)
    assert first == again
    assert figures[0].read_text() == figures[1].read_text()


def test_explain_shows_what_was_measured(genrw: Command, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = genrw("explain", rows, "--target", "gfx942").out
    assert "measured" not in plain
    slow_but_one(monkeypatch, fast=2)
    tuned(genrw, rows, "--best", 4)
    lines = genrw("explain", rows, "--target", "gfx942").out.splitlines()
    assert lines[3].split()[:2] == ["µs", "measured"]
    assert [line.split()[1] for line in lines[4:8]] == ["10.00", "11.00", "1.00", "13.00"]


def test_measuring_goes_on_where_it_stopped(genrw: Command, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = slow_but_one(monkeypatch, fast=0)
    tuned(genrw, rows, "--best", 2)
    assert len(asked) == 2
    first = tuned(genrw, rows, "--best", 4)
    assert len(asked) == 4, "two were there already"
    assert tuned(genrw, rows, "--best", 4) == first
    assert len(asked) == 4


def test_another_rule_asks_for_other_measurements(
    genrw: Command, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_but_one(monkeypatch, fast=1)
    tuned(genrw, rows, "--best", 2)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "one.rw").write_text("# A target.\n\ntarget fresh : gfx942\n  compute_units 2\n")
    changed = load(rows, rules=[mine])
    assert scheduled(with_winners(changed)) == scheduled(changed)


def test_other_names_are_the_same_kernel(genrw: Command, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_but_one(monkeypatch, fast=1)
    tuned(genrw, rows, "--best", 2)
    renamed = api.load(ROWS.replace("x", "rows").replace("arowses", "axes"), target="gfx942")
    found = scheduled(with_winners(renamed))
    assert found != scheduled(renamed)


def test_compile_takes_the_best(genrw: Command, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_but_one(monkeypatch, fast=1)
    lines = tuned(genrw, rows, "--best", 2)
    block = lines[1].split().index("block_size") - 1  # "predicted µs" is one heading of two words
    assert genrw("compile", rows, "--target", "gfx942", "-o", tmp_path / "out").status == 0
    launch = json.loads((tmp_path / "out" / "launch.json").read_text())
    assert str(launch["kernels"][0]["schedule"]["block_size"]) == lines[3].split()[block]


def test_on_the_cpu(genrw: Command, rows: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    result = genrw("tune", rows, "--device", "host", "--target", "host", "--times", 2, "--best", 2, "--json", figures)
    assert (result.status, result.err) == (0, "")
    (kernel,) = json.loads(figures.read_text())
    assert all(m["microseconds"] > 0 and m["problem"] is None for m in kernel["measured"])
    run = api.compile(rows)
    x = np.ones((32, 256), np.float32)
    assert np.array_equal(run(x), np.full((32, 1), 256, np.float32))


def test_every_kernel_of_a_program(genrw: Command, tmp_path: Path) -> None:
    (tmp_path / "two.gen").write_text(TWO)
    result = genrw("tune", tmp_path, "--target", "gfx942", "--device", "hip", "--best", 3)
    assert result.status == 0
    lines = result.out.splitlines()
    assert sum(", kernel " in line for line in lines) == 2
    assert "rank correlation" in lines[-4]
    assert lines[-1].startswith("regret: median ")


def test_wrong_results_never_win(genrw: Command, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostGpu, "launcher", lambda *_: lambda *_: None)
    result = genrw("tune", rows, "--target", "gfx942", "--device", "hip", "--best", 2)
    assert result.status == 1
    assert "32 of 32 elements are wrong" in result.out
    assert "the best" not in result.out
    program = load(rows)
    assert scheduled(with_winners(program)) == scheduled(program)


def test_a_damaged_database(genrw: Command, rows: Path) -> None:
    database_path().parent.mkdir()
    database_path().write_text("no database, but long enough to be looked at as if it were one\n" * 40)
    result = genrw("tune", rows, "--target", "gfx942", "--device", "hip")
    assert result.status == 2
    assert result.err.splitlines() == [
        f"error: {database_path()}: file is not a database",
        "  help: remove it, or name another one in GENRW_TUNED",
    ]


def test_nothing_is_measured_by_the_interpreter(genrw: Command, rows: Path) -> None:
    result = genrw("tune", rows, "--device", "interpret")
    assert result.status == 2
    assert "`interpret` takes no time that could be measured" in result.err


def measured(pairs: Sequence[tuple[float, float | None]]) -> Tuned:
    return Tuned("", "", [Measured({}, p, m, None if m else "wrong") for p, m in pairs])


def test_figures() -> None:
    assert measured([(1, 10), (2, 20), (3, 30)]).correlation == pytest.approx(1)
    assert measured([(1, 30), (2, 20), (3, 10)]).correlation == pytest.approx(-1)
    assert measured([(1, 30), (2, 20), (3, 15)]).regret == pytest.approx(1.0)
    assert measured([(1, None), (2, 20), (3, 10)]).regret == pytest.approx(1.0), "what is wrong is not chosen"
    assert measured([(1, 30), (2, 20)]).correlation is None
    assert measured([(1, None)]).regret is None
    assert measured([(1, 5), (2, 5), (3, 5)]).correlation is None, "there is no order"
    assert tune._ranks([2.0, 1.0, 2.0]) == [1.5, 0.0, 1.5]


def test_processes_share_the_database() -> None:
    database = Database(database_path())
    database.add("k", "d", Measured({"a": 1}, 1.0, 5.0))
    with sqlite3.connect(database.path) as other:
        other.execute("SELECT * FROM measured").fetchall()
        database.add("k", "d", Measured({"a": 1}, 1.0, 4.0))
    assert [m.microseconds for m in database.of("k", "d")] == [4.0]
    assert database.best("k", "d") == {"a": 1}
    assert database.best("k", "e") is None
    assert database.best("k", None) == {"a": 1}
