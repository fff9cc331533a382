"""The device header compiled by a hiprtc that is really there; it needs no GPU."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

import pytest
from spawned import process
from test_amd_objects import everything

from genrw.codegen.runtime.amd import read_reports
from genrw.codegen.runtime.hip_runtime import compile_hip
from genrw.grammar.diagnostics import GenrwError

if importlib.util.find_spec("hip") is None:
    pytest.skip("hip-python is for Linux on x86-64", allow_module_level=True)

# Wave sizes, and the HIP from which on hiprtc knows the target: an older one ends the process.
TARGETS = {
    "gfx90a": (64, (5, 0)),
    "gfx1030": (32, (5, 0)),
    "gfx1100": (32, (5, 5)),
    "gfx942": (64, (6, 0)),
    "gfx1201": (32, (6, 3)),
    "gfx950": (64, (7, 0)),
}


def hip_version() -> tuple[int, int] | None:
    """The version of the HIP whose hiprtc the bindings find; None if there is none."""
    from hip import hip, hiprtc

    try:
        hiprtc.hiprtcVersion()
        _, number = hip.hipRuntimeGetVersion()
    except RuntimeError:
        return None
    return divmod(number // 100_000, 100)


@pytest.fixture(scope="module")
def hiprtc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Executor, tuple[int, int]]]:
    """A process that has hiprtc, and its HIP's version."""
    environments: list[dict[str, str]] = [{}, *({"ROCM_PATH": str(f)} for f in linked(tmp_path_factory.mktemp("rocm")))]
    for environment in environments:
        with process(environment) as pool:
            version = pool.submit(hip_version).result()
            if version is not None:
                yield pool, version
                return
    pytest.skip("there is no hiprtc (ROCm, or a distribution's libamdhip64)")


def linked(folder: Path) -> list[Path]:
    """A folder like ROCm's with the system's HIP, which distributions install by versioned names alone."""
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin")
    if ldconfig is None:
        return []
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    found = dict(re.findall(r"lib(amdhip64|hiprtc)\.so\.\d+ .*=> (\S+)", listed))
    if "amdhip64" not in found:
        return []
    (folder / "lib").mkdir()
    for name in ("amdhip64", "hiprtc"):  # older ones have both in one library
        (folder / "lib" / f"lib{name}.so").symlink_to(found.get(name, found["amdhip64"]))
    return [folder]


@pytest.mark.parametrize("arch", TARGETS)
def test_everything_compiles(hiprtc: tuple[Executor, tuple[int, int]], arch: str) -> None:
    pool, version = hiprtc
    wave, first = TARGETS[arch]
    if version < first:
        pytest.skip(f"the hiprtc of HIP {version[0]}.{version[1]} does not know {arch}")
    kernels = read_reports(pool.submit(compile_hip, everything(wave), arch, wave, "everything").result())
    assert set(kernels) == {"rows", "lanes", "types", "vectors", "floats", "doubles"}
    for name, report in kernels.items():
        assert report.wavefront_size == wave
        assert report.scratch_bytes == report.vgpr_spills == 0, name


def test_error_names_kernel_and_line(hiprtc: tuple[Executor, tuple[int, int]]) -> None:
    source = '#include "gen.hpp"\n\nGEN_KERNEL(64) wrong(float* x) { x[0] = nothing; }\n'
    pool, _ = hiprtc
    message = pool.submit(refusal, source).result()
    assert message.startswith("kernel wrong does not compile: HIPRTC_ERROR_COMPILATION\n")
    assert "wrong.hip:3:41: error: use of undeclared identifier 'nothing'" in message


def refusal(source: str) -> str:
    with pytest.raises(GenrwError) as problem:
        compile_hip(source, "gfx90a", 64, "wrong")
    return problem.value.diagnostics[0].message
