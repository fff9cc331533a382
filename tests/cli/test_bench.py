"""`genrw bench` on the CPU in a GPU's part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from host_gpu import HostGpu

import genrw as api
from genrw.measure import bench, gpu_case
from genrw.measure.bench import Figures, behind, slow, summary
from genrw.measure.cases import suite
from genrw.measure.gpu_case import GpuCase
from genrw.measure.host_case import HostCase

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


@pytest.mark.slow
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


@pytest.mark.slow
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


SWAPPED = """\
x = @param:x -> float{5, 33}, {1, 5}
y = @param:y -> float{5, 33}, {66, 2}
z = @param:z -> float{5, 33}, {0, 1}
p = mul(x, y)
r = add(p, z)
@return(r)
"""
PART = "x = @param:x -> float{6, 40}, {80, 2}\ny = slice[axes={1}, starts={3}, ends={20}](x)\n@return(y)\n"


@pytest.mark.parametrize("text", [SWAPPED, PART])
def test_inputs_lie_as_the_program_says(folder: Path, text: str) -> None:
    """Kernels may see the axes of an input in another order, or only a part of it."""
    (folder / "strided.gen").write_text(text)
    assert _case(folder / "strided.gen").check() is None


def test_what_is_no_suite(genrw: Command, folder: Path) -> None:
    result = genrw("bench", folder / "missing", "--device", "hip")
    assert result.status == 2
    assert "name a program, a folder of programs, or gpu, models, random" in result.err
    result = genrw("bench", folder, "--device", "hip", "--only", "nothing")
    assert "has no program whose name holds `nothing`" in result.err
    assert "`interpret` takes no time" in genrw("bench", folder, "--device", "interpret").err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--plot", "roofline.txt"), "no plot can be written as `.txt`"),
        (("--json", "."), "cannot be written: it is a directory"),
        (("--json", "none/figures.json"), "there is no folder none"),
    ],
)
def test_where_figures_cannot_go_nothing_is_measured(
    genrw: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str], message: str
) -> None:
    monkeypatch.chdir(folder)
    result = genrw("bench", ".", "--device", "hip", *options)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert message in result.err


def test_paths_that_exist_win(genrw: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert [case.name for case in suite(".")] == ["add", "sum"]
    assert [case.name for case in suite("add.gen")] == ["add"]
    shipped = [case.name for case in suite("gpu")]
    Path("gpu").mkdir()
    assert [case.name for case in suite("gpu")] == shipped, "a folder without programs is no suite"
    Path("gpu/own.gen").write_text(ADD)
    assert [case.name for case in suite("gpu")] == ["own"]
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
    names = [case.name for case in suite("gpu")]
    assert len(names) == len(set(names)) >= 30


def test_summary() -> None:
    figures = [
        Figures("a", 1, 1.0, time=2.0, peers={"x": 4.0, "y": 3.0, "x first s": "1.0"}),
        Figures("b", 1, 1.0, time=2.0, peers={"x": 3.0}),
        Figures("c", 10**8, 1.9, time=2.0, peers={"x": 1.9}, reads_once=True),
        Figures("d", 10**8, 1.7, time=2.0, peers={"x": 1.2}, reads_once=True),
        Figures("e", 10**8, 0.1, time=2.0),
        Figures("f", 10**8, 1.0, wrong="what failed"),
    ]
    found = summary(figures)
    mean = found.pop("geometric mean over the best peer")
    assert mean == pytest.approx((1.5 * 1.5 * 0.95 * 0.6) ** 0.25)
    assert found == {
        "least": 0.6,
        "cases beside a peer": 4,
        "behind by more than 3 %": 2,
        "behind by more than 10 %": 1,
        "cases of 64 MB and more that read once": 2,
        "least share of a copy's speed": 0.85,
        "below 0.90 of it": 1,
    }
    assert [f.name for f in behind(figures)] == ["d", "c"]
    assert [f.name for f in behind(figures, 1)] == ["d"]
    assert [f.name for f in slow(figures)] == ["d"]
    assert summary([Figures("a", 1, 1.0, time=2.0)]) == {}


def test_a_case_that_fails_ends_no_run(genrw: Command, folder: Path, tmp_path: Path) -> None:
    (folder / "bad.gen").write_text("x = @param:x -> float{8}\ny = no_such(x)\n@return(y)\n")
    figures = tmp_path / "figures.json"
    result = genrw("bench", folder, "--device", "hip", "--times", 1, "--json", figures)
    assert result.status == 1
    assert [(line.split()[0], line.endswith("right")) for line in result.out.splitlines()[2:5]] == [
        ("add", True),
        ("bad", False),
        ("sum", True),
    ]
    assert [bool(case["wrong"]) for case in json.loads(figures.read_text())["cases"]] == [False, True, False]


def test_a_device_that_fails_ends_no_run(genrw: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GpuCase, "times", lambda *_: 1 / 0)
    result = genrw("bench", folder, "--device", "hip", "--times", 1)
    assert result.status == 1
    assert result.err == "add:  ZeroDivisionError: division by zero\nsum:  ZeroDivisionError: division by zero\n"


PEERS = """
def sum(x):
    return x.sum(1, keepdims=True)

OPERATORS = {"add": lambda x, y: x + y}
"""


def test_numpy_on_the_cpu(genrw: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a function of the case's name, by operators, and not at all."""
    monkeypatch.setattr(bench, "_HOST_COPY_BYTES", 1 << 12)
    peers, figures = tmp_path / "peers.py", tmp_path / "figures.json"
    peers.write_text(PEERS)
    (folder / "tanh.gen").write_text("x = @param:x -> float{8}\ny = tanh(x)\n@return(y)\n")
    result = genrw("bench", folder, "--device", "host", "--times", 2, "--peers", peers, "--json", figures)
    assert (result.status, len(result.err.splitlines())) == (0, 3)
    cases = {case["name"]: case for case in json.loads(figures.read_text())["cases"]}
    assert {name: [*case["peers"]] for name, case in cases.items()} == {"add": ["numpy"], "sum": ["numpy"], "tanh": []}
    assert all(case["time"] > 0 and case["wrong"] is None for case in cases.values())
    assert cases["tanh"]["program"].endswith("@return(y)\n")
    assert "cases beside a peer: 2" in result.out


def test_what_a_peer_raises_is_its_figure(genrw: Command, folder: Path, tmp_path: Path) -> None:
    peers = tmp_path / "peers.py"
    peers.write_text("def sum(x):\n    return x.no_such_method()\n")
    result = genrw("bench", folder, "--device", "host", "--only", "sum", "--times", 1, "--peers", peers)
    assert result.status == 0
    assert "AttributeError" in result.out
    result = genrw("bench", folder, "--device", "host", "--peers", tmp_path / "none.py")
    assert (result.status, "there is no Python file" in result.err) == (2, True)


@pytest.mark.slow
def test_many_cases_are_judged_by_other_processes(
    genrw: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genrw.measure.references._FEW_CASES", 1)
    monkeypatch.setattr("genrw.measure.references._MOST_PROCESSES", 1)
    result = genrw("bench", folder, "--device", "hip", "--times", 1)
    assert (result.status, result.err) == (0, "add: 2.0 µs\nsum: 2.0 µs\n")
    monkeypatch.setattr(HostGpu, "launcher", lambda *_: lambda *_: None)
    result = genrw("bench", folder, "--device", "hip", "--times", 1)
    assert result.status == 1
    assert "64 of 64 elements are wrong" in result.err


def test_random_programs(genrw: Command, tmp_path: Path) -> None:
    """They are written so that each can be measured again alone."""
    programs = tmp_path / "programs"
    wanted = ("bench", "random", "--device", "host", "--seed", 5, "--count", 4, "--only", "random-5-2", "--times", 1)
    result = genrw(*wanted, "--programs", programs)
    assert result.status == 0
    (program,) = programs.iterdir()
    assert program.name == "random-5-2.gen"
    again = genrw("bench", program, "--device", "host", "--times", 1)
    assert again.status == 0
    assert again.out.splitlines()[2].split()[:2] == result.out.splitlines()[2].split()[:2]
    result = genrw("bench", "random", "--device", "host", "--count", 2, "--only", "x")
    assert (result.status, "none of 2 random programs" in result.err) == (2, True)


def test_launches_are_repeated_on_memory_that_stays() -> None:
    """A program of two kernels, launched twice, writes what one run writes; inputs are as they were."""
    text = "x = @param:x -> float{8, 32}\na = reduce_sum[axes={0}](x)\nb = mul(x, a)\ny = reduce_max[axes={1}](b)\n@return(y)\n"
    case = HostCase(api.load(text, target="host"), "two")
    before = {name: array.copy() for name, array in case.inputs.items()}
    assert len(case.times(2)) == 2
    assert case.check() is None
    assert all((case.inputs[name] == array).all() for name, array in before.items())
