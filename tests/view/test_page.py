"""What `genrw view` writes."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import genrw
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import Pipeline
from genrw.explain.view import json_in_html, page
from genrw.explain.view_data import view_data
from genrw.grammar.diagnostics import GenrwError
from genrw.main import execute

ROOT = Path(__file__).parents[2]
SOFTMAX = ROOT / "examples" / "softmax.gen"


@pytest.fixture(scope="module")
def data() -> dict[str, object]:
    return view_data(genrw.load(SOFTMAX))


def texts(data: dict, stage: str) -> str:
    """A column's text."""
    modules = [m for m in data["modules"].values() if m["stage"] == stage]
    lines = [line["parts"] for m in modules for line in m["lines"]]
    return "".join("".join(p if isinstance(p, str) else p[0] for p in parts) + "\n" for parts in lines)


def test_columns_are_the_stages_as_they_are_printed(data: dict) -> None:
    program = genrw.load(SOFTMAX)
    for stage, lowered in program.remaining_stages():
        assert texts(data, stage) == str(lowered)


def test_a_condition_whose_parts_stand_in_the_other_order() -> None:
    """No rule exchanges them, so no step says so; the program after the last step has them as they are printed."""
    program = genrw.load(
        "q = @param:q -> half{2, 17}\nk = @param:k -> half{17, 5}\nv = @param:v -> half{5, 17}\n"
        "b = @param:b -> half{2, 5}\ns = dot(q, k)\nm = mul(s, 0.3)\na = add(m, b)\np = softmax[axis=1](a)\n"
        "y = dot(p, v)\n@return(y)\n",
        target="sm_90",
    )
    shown = texts(view_data(program), "final")
    (printed,) = [lowered for stage, lowered in program.remaining_stages() if stage == "final"]
    assert [line for line in str(printed).split("\n") if line not in shown.split("\n")] == []


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "examples").glob("*.gen")))
def test_every_value_comes_from_somewhere(name: str) -> None:
    """But for inputs of the machine, which rules bring in; and what was taken is the cheapest that there is in all."""
    data = view_data(genrw.load(ROOT / "examples" / f"{name}.gen"))
    stages = ["written", *genrw.load(ROOT / "examples" / f"{name}.gen").stages]
    for key, value in data["values"].items():
        if key.endswith(":") or value["stage"] == "written":
            continue
        assert value["ancestors"] or value["rules"], key
        for ancestor in value["ancestors"]:
            at = data["values"][ancestor]["stage"]
            assert stages.index(at) == stages.index(value["stage"]) - 1
        taken = [m for m in value["members"] if m["taken"]]
        if value["stage"] != "schedule":
            assert len(taken) == 1, key
            assert taken[0]["total"] is not None


def test_lines_of_the_source_name_values_of_the_last_stage(data: dict) -> None:
    (kernel,) = data["kernels"]
    printed = genrw.load(SOFTMAX).kernels()[0].text
    body = [line["text"] for line in kernel["source"]]
    assert body[body.index("{") :] == printed.rstrip("\n").split("\n")[printed.split("\n").index("{") :]
    named = [key for line in kernel["source"] for key in line["values"]]
    assert {data["values"][key]["stage"] for key in named} == {"final"}
    assert len(named) > 10


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    pages = set()
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.html"
        command = [
            sys.executable,
            "-c",
            f"from genrw.main import execute; execute(['view', {str(SOFTMAX)!r}, '-o', {str(path)!r}])",
        ]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
        pages.add(path.read_bytes())
    assert len(pages) == 1


def test_nothing_ends_the_script_that_holds_the_data() -> None:
    hostile = {"doc": "</script><script>alert(1)</script><!-- & ]]>\u2028", "</ScRiPt>": "<"}
    text = json_in_html(hostile)
    assert not re.search(r"[<>&\u2028]", text)
    assert json.loads(text) == hostile


def test_titles_are_escaped(data: dict) -> None:
    shown = page({**data, "title": "<b>&.gen", "target": '"<i>'})
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert "&lt;b&gt;&amp;.gen" in shown


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    (tmp_path / "bad.gen").write_text("x = nonesuch(y)\n")
    assert execute(["view", str(tmp_path / "bad.gen"), "-o", str(path)]) == 2
    assert path.read_text() == "before"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert execute(["view", str(SOFTMAX), "-o", str(path)]) == 2
    assert path.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.gen", "page.html"]


def test_a_page_has_the_programs_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.gen").write_text("x = @param:x -> float{8}\ny = exp(x)\n@return(y)\n")
    monkeypatch.chdir(tmp_path)
    assert execute(["view", "mine.gen"]) == 0
    assert (tmp_path / "mine.html").read_text().startswith("<!doctype html>")


def test_a_page_of_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = b"x = @param:x -> float{8}\ny = exp(x)\n@return(y)\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert execute(["view", "-"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["stdin.html"]


def test_ordinary_lowering_records_nothing() -> None:
    program = genrw.load(SOFTMAX)
    module = replace(program.modules[0], target="gfx942")
    options = Options("gfx942")
    for recorded in (False, True):
        pipeline = Pipeline(program.library, recorded=recorded)
        assert bool(pipeline.batch([module], "simplify", options).graph.applied) is recorded


def test_programs_of_one_file_at_different_stages() -> None:
    late = str(genrw.load("@module late\nx = @param:x -> float{8}\ny = exp(x)\n@return(y)\n").lower("lanewise"))
    early = "@module early\nx = @param:x -> float{8}\ny = neg(x)\n@return(y)\n"
    kernels = view_data(genrw.load(f"{early}\n{late}"))["kernels"]
    assert [kernel["name"] for kernel in kernels] == ["early", "late"]
    assert [column["stage"] for column in kernels[1]["columns"]] == ["lanewise", "final"]
    assert len(kernels[0]["columns"]) == 8


def test_a_program_past_the_last_stage() -> None:
    """Its source is shown, and its text as it was given."""
    lowered = str(genrw.load(SOFTMAX).lower("final"))
    data = view_data(genrw.load(lowered))
    (kernel,) = data["kernels"]
    assert [column["stage"] for column in kernel["columns"]] == ["final"]
    with pytest.raises(GenrwError):
        genrw.load(lowered).lower("simplify")
