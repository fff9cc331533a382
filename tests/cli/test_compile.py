"""`genrw compile`: the files that it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import SOFTMAX, Command


def compiled(genrw: Command, source: Path, folder: Path, target: str) -> dict[str, Any]:
    result = genrw("compile", source, "--target", target, "-o", folder)
    assert (result.status, result.err) == (0, "")
    launch = json.loads((folder / "launch.json").read_text())
    assert isinstance(launch, dict)
    return launch


def test_an_amd_target(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    launch = compiled(genrw, softmax, folder, "gfx942")
    assert sorted(os.listdir(folder)) == ["gen.hpp", "launch.json", "softmax.co", "softmax.hip"]
    assert (folder / "softmax.co").read_bytes()[:4] == b"\x7fELF"
    (kernel,) = launch["kernels"]
    assert (launch["target"], launch["wave_size"]) == ("gfx942", 64)
    assert kernel["name"] == "softmax"
    assert kernel["files"] == {"source": "softmax.hip", "code_object": "softmax.co"}
    assert kernel["grid"][0] * kernel["block"][0] >= 8
    assert kernel["arguments"] == [
        {"buffer": "x", "kind": "input", "type": "half", "shape": [8, 100], "strides": [100, 1]},
        {"buffer": "z_output", "kind": "output", "result": "y"}
        | {"type": "half", "shape": [8, 100], "strides": [100, 1]},
    ]
    assert kernel["scratch_buffers"] == []
    resources = kernel["resources"]
    assert resources["registers"]["vgpr"] > 0
    assert resources["registers"]["sgpr"] > 0
    assert resources["code_bytes"] > 0
    assert resources["scratch_bytes"] == 0
    assert resources["spills"] == {"vgpr": 0, "sgpr": 0}


@pytest.mark.parametrize("target", ["host", "sm_90"])
def test_other_targets_give_their_source(genrw: Command, softmax: Path, tmp_path: Path, target: str) -> None:
    launch = compiled(genrw, softmax, tmp_path / "out", target)
    assert sorted(os.listdir(tmp_path / "out")) == ["gen.hpp", "launch.json", "softmax.hip"]
    assert launch["kernels"][0]["resources"] is None


def test_workgroup_memory_is_stated(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    pins = ("--schedule", "algo=block,block_size=256")
    assert genrw("compile", softmax, "-o", tmp_path, *pins).status == 0
    (kernel,) = json.loads((tmp_path / "launch.json").read_text())["kernels"]
    assert kernel["block"] == [256, 1, 1]
    assert kernel["lds_bytes"] == kernel["resources"]["lds_bytes"] > 0


def test_modules_in_order(genrw: Command, tmp_path: Path) -> None:
    body = "x = @param:x -> float{4}\ny = {op}(x)\n@return(y)\n"
    source = tmp_path / "two.gen"
    source.write_text("".join(f"@module {op}\n{body.replace('{op}', op)}" for op in ("neg", "relu")))
    launch = compiled(genrw, source, tmp_path / "out", "host")
    assert [kernel["name"] for kernel in launch["kernels"]] == ["neg", "relu"]
    assert [r["name"] for r in launch["results"]] == ["y", "y_1"]
    assert [k["arguments"][1]["result"] for k in launch["kernels"]] == ["y", "y_1"]


def test_the_folder_must_be_named(genrw: Command, softmax: Path) -> None:
    result = genrw("compile", softmax)
    assert result.status == 2
    assert result.err.startswith("error: missing option '-o'")


def test_nothing_is_written_for_a_bad_program(genrw: Command, tmp_path: Path) -> None:
    result = genrw("compile", "-", "-o", tmp_path / "out", stdin=SOFTMAX.replace("exp", "expp"))
    assert result.status == 2
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_a_file(genrw: Command, softmax: Path) -> None:
    result = genrw("compile", softmax, "-o", softmax, "--target", "host")
    assert result.status == 2
    assert "cannot be written: File exists" in result.err
    assert softmax.read_text() == SOFTMAX


def test_all_files_or_none(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "launch.json").mkdir(parents=True)
    result = genrw("compile", softmax, "-o", tmp_path / "out", "--target", "host")
    assert result.status == 2
    assert os.listdir(tmp_path / "out") == ["launch.json"]
