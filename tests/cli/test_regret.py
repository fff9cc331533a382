"""`bench/regret.py`: the first choice of schedules against the best."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from genrw.measure.tune import Tuned
from genrw.tuned import Measured

ROOT = Path(__file__).parents[2]


@pytest.fixture
def regret(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("regret")


def test_of_several_kernels(regret: Any) -> None:
    case = regret.Case("two")
    case.add(Tuned("two", "a", [Measured({"lanes": 1}, 1.0, 3.0), Measured({"lanes": 2}, 2.0, 2.0)]))
    case.add(Tuned("two", "b", [Measured({}, 1.0, 2.0), Measured({}, 2.0, None, "does not compile")]))
    case.add(Tuned("two", "c", []))
    assert (case.schedules, case.first, case.best) == (3, 5.0, 4.0)
    assert case.regret == pytest.approx(0.25)
    assert (case.taken, case.better) == ("a: {lanes: 1} ", "a: {lanes: 2} ")


def test_a_suite(
    regret: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, lens in {"a": "{16, 64}", "b": "{8, 128}", "bad": "{"}.items():
        (tmp_path / f"{name}.gen").write_text(f"x = @param:x -> float{lens}\ny = relu(x)\n@return(y)\n")
    figures = tmp_path / "regret.json"
    wanted = [str(tmp_path), "--device", "host", "--times", "1", "--best", "2", "--json", str(figures)]
    monkeypatch.setattr("sys.argv", ["regret.py", *wanted, "--bars", "1e9", "1e9"])
    assert regret.main() == 0
    assert {row["case"] for row in json.loads(figures.read_text())["figures"]} == {"a", "b"}
    told = capsys.readouterr()
    assert "2 cases: mean regret" in told.out
    assert "bad: " in told.err
    monkeypatch.setattr("sys.argv", ["regret.py", *wanted, "--part", "1/2", "--only", "a", "--bars", "-1", "-1"])
    assert regret.main() == 1
