"""The device header as CUDA, where nvcc is at hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from test_amd_objects import everything

from genrw.codegen.compilers import translation_unit

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")


def test_everything_compiles(tmp_path: Path) -> None:
    source = tmp_path / "everything.cu"
    source.write_text(translation_unit(everything(32), "everything"))
    options = ["-arch=sm_90", "-std=c++17", "-fmad=false", "-DGEN_WAVE_SIZE=32"]
    done = subprocess.run(
        ["nvcc", *options, "-ptx", str(source), "-o", str(tmp_path / "everything.ptx")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "everything.ptx").read_text()
    assert "shfl.sync.bfly" in text
    assert "ld.global.nc.v4" in text
    assert "cvt.rn.bf16.f32" in text
