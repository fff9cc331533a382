"""Parameters that name a file with their usual value."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from commands import Command

import genrw

PROGRAM = """\
x = @param:x -> float{2, 3}
w = @param:w = "{file}" -> float{3}
y = mul(x, w)
@return(y)
"""
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
W = np.array([2, 0, -1], np.float32)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program, with its file beside it."""
    (tmp_path / "weights").mkdir()
    np.save(tmp_path / "weights" / "w.npy", W)
    path = tmp_path / "scale.gen"
    path.write_text(PROGRAM.replace("{file}", "weights/w.npy"))
    return path


@pytest.mark.parametrize("device", ["host", "interpret"])
def test_the_file_stands_for_an_input_not_given(program: Path, device: str) -> None:
    loaded = genrw.load(program, target="host")
    assert np.array_equal(loaded.run({"x": X}, device)["y"], X * W)
    assert np.array_equal(loaded.run({"x": X, "w": W + 1}, device)["y"], X * (W + 1))


def test_compiled_programs_read_it_too(program: Path) -> None:
    scale = genrw.compile(program)
    assert np.array_equal(scale(X), X * W)
    assert scale.launch["inputs"][1]["file"] == "weights/w.npy"
    assert "file" not in scale.launch["inputs"][0]


def test_check_uses_it(genrw: Command, program: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    saved = tmp_path / "results"
    result = genrw("run", program, "--check", "--input", f"x={tmp_path / 'x.npy'}", "--save", saved)
    assert (result.status, result.err) == (0, "")
    assert np.array_equal(np.load(saved / "y.npy"), X * W)


def test_every_stage_keeps_the_name(genrw: Command, program: Path) -> None:
    for stage in ("simplify", "final"):
        assert 'w = @param:w = "weights/w.npy" -> float{3}\n' in genrw("lower", program, "--stage", stage).out


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("../w.npy", "the file `../w.npy` lies outside of the program's folder"),
        ("/etc/passwd", "the file `/etc/passwd` lies outside of the program's folder"),
        ("missing.npy", "there is no file"),
        ("weights", "weights"),
        ("scale.gen", "holds no array"),
    ],
)
def test_bad_files(genrw: Command, program: Path, file: str, said: str) -> None:
    program.write_text(PROGRAM.replace("{file}", file))
    result = genrw("run", program)
    assert result.status == 2
    assert said in result.err
    assert re.search(rf"{re.escape(str(program))}:\d+:1: error: ", result.err)
    assert "\n  help: " in result.err
    assert "Traceback" not in result.err


def test_a_link_does_not_lead_outside(genrw: Command, program: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "w.npy"
    np.save(outside, W)
    (program.parent / "link.npy").symlink_to(outside)
    program.write_text(PROGRAM.replace("{file}", "link.npy"))
    result = genrw("run", program)
    assert result.status == 2
    assert "outside of the program's folder" in result.err


def test_an_array_of_another_type(genrw: Command, program: Path) -> None:
    np.save(program.parent / "weights" / "w.npy", W.astype(np.float64))
    result = genrw("run", program)
    assert result.status == 2
    assert "but the input `w` is float{3}" in result.err
