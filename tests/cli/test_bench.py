"""`genrw bench` on the CPU in a GPU's part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from host_gpu import HostGpu

import genrw as api
from genrw.measure import bench, gpu_case
from genrw.measure.bench import Figures, suite, summary
from genrw.measure.gpu_case import GpuCase

SUM = "x = @param:x -> float{8, 32}\ny = reduce_sum[axes={1}](x)\n@return(y)\n"
ADD = "a = @param:a -> half{64}\nb = @param:b -> half{64}\ny = add(a, b)\n@return(y)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("genrw.measure.bench_report.open_gpu", lambda *_: HostGpu())
    monkeypatch.setattr(bench, "_COPY_BYTES", 1 << 12)
    monkeypatch.setattr(gpu_case, "_ROTATED_BYTES", 1 << 12)
    made = tmp_path / "suite"
    made.mkdir()
    (made / "sum.gen").write_text(SUM)
    (made / "add.gen").write_text(ADD)
    return made


def _case(path: Path) -> GpuCase:
    return GpuCase(HostGpu(), api.load(path, target=HostGpu.arch), path.stem)


def test_a_suite(genrw: Command, folder: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    plot = tmp_path / "roofline.svg"
    result = genrw("bench", folder, "--device", "hip", "--times", 3, "--json", figures, "--plot", plot)
    assert (result.status, result.err) == (0, "add: 3.0 µs\nsum: 3.0 µs\n")
    lines = result.out.splitlines()
    assert lines[0] == "the CPU, none: a copy moves 0 GB/s"
    assert [line.split()[0] for line in lines[2:4]] == ["add", "sum"]
    assert all(line.endswith("right") for line in lines[2:4])
    cases = {case["name"]: case for case in json.loads(figures.read_text())["cases"]}
    assert cases["sum"]["bytes"] == 8 * 32 * 4 + 8 * 4
    assert cases["sum"]["time"] == 3.0, "the median of 40, 60 and 80 µs for 20 launches"
    assert cases["sum"]["schedules"][0]["algo"]
    assert plot.read_text().startswith("<?xml")


def test_a_wrong_result_is_told(genrw: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostGpu, "launcher", lambda *_: lambda *_: None)
    result = genrw("bench", folder, "--device", "hip", "--only", "sum")
    assert result.status == 1
    assert "8 of 8 elements are wrong" in result.out.splitlines()[2]


def test_sets_rotate_through_more_than_the_cache(folder: Path) -> None:
    case = _case(folder / "add.gen")
    assert case.bytes == 3 * 128
    assert len(case.sets) == 11
    assert len({m.pointer for s in case.sets for m in s.values()}) == 33


def test_a_program_of_several_kernels(genrw: Command, folder: Path) -> None:
    (folder / "two.gen").write_text(
        "x = @param:x -> float{8, 32}\na = reduce_sum[axes={0}](x)\nb = mul(x, a)\ny = reduce_max[axes={1}](b)\n@return(y)\n"
    )
    case = _case(folder / "two.gen")
    assert len(case.kernels) > 1
    assert case.bytes == (8 * 32 + 8) * 4, "what lies between kernels is not counted"
    result = genrw("bench", folder, "--device", "hip", "--only", "two", "--times", 1)
    assert result.status == 0
    assert result.out.splitlines()[2].endswith("right")


def test_what_is_no_suite(genrw: Command, folder: Path) -> None:
    result = genrw("bench", folder / "missing", "--device", "hip")
    assert result.status == 2
    assert "name a program, a folder of programs, or gpu" in result.err
    result = genrw("bench", folder, "--device", "hip", "--only", "nothing")
    assert "has no program whose name holds `nothing`" in result.err
    assert "`host` is no GPU" in genrw("bench", folder, "--device", "host").err


def test_paths_that_exist_win(genrw: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert [p.stem for p in suite(".")] == ["add", "sum"]
    assert [p.stem for p in suite("add.gen")] == ["add"]
    shipped = suite("gpu")
    Path("gpu").mkdir()
    assert suite("gpu") == shipped, "a folder without programs is no suite"
    Path("gpu/own.gen").write_text(ADD)
    assert [p.stem for p in suite("gpu")] == ["own"]
    result = genrw("bench", ".", "--device", "hip", "--times", 1)
    assert result.status == 0
    assert [line.split()[0] for line in result.out.splitlines()[2:4]] == ["add", "sum"]


@pytest.mark.parametrize(("command", "device"), [("bench", "hip"), ("tune", "host")])
def test_a_folder_without_programs(genrw: Command, folder: Path, command: str, device: str) -> None:
    result = genrw(command, folder.parent, "--device", device)
    assert result.status == 2
    assert f"the folder `{folder.parent}` has no .gen programs" in result.err
    assert f"name {folder}" in result.err
    (folder / "below").mkdir()
    result = genrw(command, folder / "below", "--device", device)
    assert "name a folder that has, or gpu" in result.err


def test_the_shipped_suite_is_whole() -> None:
    names = [path.stem for path in suite("gpu")]
    assert len(names) == len(set(names)) >= 30


def test_summary() -> None:
    figures = [
        Figures("a", 1, 1.0, time=2.0, peers={"x": 4.0, "y": 3.0}),
        Figures("b", 1, 1.0, time=2.0, peers={"x": 3.0}),
    ]
    assert summary(figures) == pytest.approx({"geometric mean over the best peer": 1.5, "least": 1.5})
    assert summary([Figures("a", 1, 1.0, time=2.0)]) == {}
