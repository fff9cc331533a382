"""A folder that hip-python takes for ROCm, with the fake libraries in it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from genrw.codegen.runtime.compilers import host_compiler

HERE = Path(__file__).parent
GPUS = "gfx942:sramecc+:xnack-,gfx1100"


def build_rocm(folder: Path) -> Path:
    """Compile the fake runtime into a folder; gives the folder."""
    tool = host_compiler()
    command = (*tool.command, "c++") if tool.is_zig else tool.command
    library = folder / "lib" / "libamdhip64.so"
    library.parent.mkdir(parents=True)
    options = ("-std=c++17", "-O1", "-fPIC", "-shared", "-o", str(library))
    subprocess.run([*command, *options, str(HERE / "fake_hip.cpp"), "-ldl"], check=True)
    (library.parent / "libhiprtc.so").symlink_to(library.name)
    return folder


def settings(rocm: Path, cache: Path) -> dict[str, str]:
    """The environment in which a process finds that ROCm, with two GPUs."""
    compiler = shlex.join([sys.executable, str(HERE / "host_code.py")])
    paths = {"ROCM_PATH": str(rocm), "GENRW_CACHE_DIR": str(cache)}
    return {**os.environ, **paths, "FAKE_HIP_DEVICES": GPUS, "FAKE_HIPRTC": compiler}
