"""HIP through its Python bindings, as they are: what they load in place of ROCm has the CPU play the GPUs."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from fake_hip.build import build_rocm, settings
from spawned import problem, process

if importlib.util.find_spec("hip") is None:
    pytest.skip("hip-python is for Linux on x86-64", allow_module_level=True)

import hip_scenarios

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-c", "from genrw.main import main; main()")
SOFTMAX = Path(__file__).parents[2] / "examples" / "softmax.gen"


@pytest.fixture(scope="session")
def rocm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_rocm(tmp_path_factory.mktemp("rocm"))


@pytest.fixture(scope="session")
def environment(rocm: Path) -> dict[str, str]:
    return settings(rocm, Path(os.environ["GENRW_CACHE_DIR"]))


@pytest.fixture(scope="session")
def gpus(environment: dict[str, str]) -> Iterator[Executor]:
    with process(environment) as pool:
        yield pool


@pytest.mark.parametrize("number", [0, 1], ids=["gfx942", "gfx1100"])
@pytest.mark.parametrize("scenario", hip_scenarios.SCENARIOS, ids=lambda s: s.__name__)
def test_scenario(gpus: Executor, scenario: Callable[[int], None], number: int) -> None:
    assert problem(gpus, scenario, number) == ""


@pytest.mark.parametrize("scenario", hip_scenarios.FATAL, ids=lambda s: s.__name__)
def test_fatal_scenario(environment: dict[str, str], scenario: Callable[[int], None]) -> None:
    with process(environment) as pool:
        assert problem(pool, scenario, 0) == ""


# ---- the command


def run(environment: dict[str, str], *arguments: object, **changed: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**environment, **changed}
    )


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    """The example, of a size for lanes that run one after the other."""
    small = tmp_path / "softmax.gen"
    small.write_text(SOFTMAX.read_text().replace("half{8192, 4096}", "half{16, 512}"))
    return small


@pytest.mark.parametrize("device", ["hip", "hip:1"])
def test_run(environment: dict[str, str], softmax: Path, device: str) -> None:
    done = run(environment, "run", softmax, "--device", device, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert "half{16, 512}" in done.stdout
    assert "right" in done.stdout
    assert f"{device}, target {'gfx1100' if device == 'hip:1' else 'gfx942'}: ready in" in done.stdout


def test_devices(environment: dict[str, str]) -> None:
    done = run(environment, "devices", "--json")
    rows = {row["device"]: row for row in json.loads(done.stdout)}
    assert rows["hip"] == {"device": "hip", "target": "gfx942", "there": True, "what": "Pretended gfx942"}
    assert rows["hip:1"] == {"device": "hip:1", "target": "gfx1100", "there": True, "what": "Pretended gfx1100"}


REFUSED = {
    "number": (
        ("--device", "hip:7"),
        {},
        "error: there is no AMD GPU number 7\n  help: there are 2, counted from 0\n",
    ),
    "no GPU": (
        (),
        {"FAKE_HIP_DEVICES": ""},
        "error: the HIP runtime counts no GPUs: hipErrorNoDevice, no ROCm-capable device is detected\n",
    ),
    "order": (
        ("--order", "3"),
        {},
        "error: a GPU chooses the order of groups: it has no `--order`\n  help: use `--device host`\n",
    ),
    "waves": (
        ("--target", "gfx1100"),
        {},
        "error: gfx942 has waves of 64 lanes, not 32\n  help: lower for it: --target gfx942\n",
    ),
    "launch": (
        (),
        {"FAKE_HIP_FAIL": "hipModuleLaunchKernel=719"},
        "error: kernel softmax of {file}: the launch failed: hipErrorLaunchFailure, unspecified launch failure\n",
    ),
    "memory": (
        (),
        {"FAKE_HIP_MEMORY": "1000"},
        "error: the GPU has no 16384 bytes left: hipErrorOutOfMemory, out of memory\n",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(environment: dict[str, str], softmax: Path, what: str) -> None:
    options, changed, message = REFUSED[what]
    done = run(
        environment, "run", softmax, *(() if "--device" in options else ("--device", "hip")), *options, **changed
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == message.format(file=softmax)


def test_no_rocm(environment: dict[str, str], softmax: Path, tmp_path: Path) -> None:
    done = run(environment, "run", softmax, "--device", "hip", ROCM_PATH=str(tmp_path), LD_LIBRARY_PATH="")
    if "libamdhip64.so" not in done.stderr:
        pytest.skip("this machine has HIP installed")
    assert done.returncode == 2
    assert done.stderr.startswith("error: the HIP runtime counts no GPUs: failed to dlopen")
    assert done.stderr.endswith("\n  help: install ROCm, on a machine with an AMD GPU\n")


def test_no_hiprtc(environment: dict[str, str], rocm: Path, softmax: Path, tmp_path: Path) -> None:
    """The clang of ziglang takes its place; what it makes is for the GPU, which the CPU can load but not play."""
    library = tmp_path / "rocm" / "lib" / "libamdhip64.so"
    library.parent.mkdir(parents=True)
    library.symlink_to(rocm / "lib" / library.name)
    changed = {"ROCM_PATH": str(tmp_path / "rocm"), "GENRW_CACHE_DIR": str(tmp_path / "cache"), "LD_LIBRARY_PATH": ""}
    done = run(environment, "run", softmax, "--device", "hip", **changed)
    told = "the launch failed: hipErrorNotSupported, operation not supported"
    assert done.stderr == f"error: kernel softmax of {softmax}: {told}\n"
    (entry,) = (tmp_path / "cache" / "hip").iterdir()
    with entry.open("rb") as file:
        assert ELFFile(file).get_machine_arch() == "AMD GPU"
