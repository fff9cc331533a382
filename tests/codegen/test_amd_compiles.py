"""Kernels of contractions compiled for AMD GPUs: what the CPU runs of the device header is another text."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from device_kernels import together
from support import AMD_TARGETS, load, shipped

sys.path.insert(0, str(Path(__file__).parents[1] / "contractions"))

from tiled_cases import FORMS, tiled_schedules

from genrw.codegen.runtime.compilers import run_compiler, translation_unit, wave_options, zig

_FLAGS = ("-std=c++17", "-w", "--offload-device-only", "-nogpuinc", "-nogpulib", "-fsyntax-only")


@pytest.mark.slow
@pytest.mark.parametrize("target", AMD_TARGETS)
def test_forms_of_contractions(target: str) -> None:
    """Each form by an instruction of the target, in turn; templates are instantiated, no code is generated."""
    instructions = shipped().targets[target].values["matrices"]
    kernels = []
    for number, made in enumerate(FORMS.values()):
        by = instructions[number % len(instructions)]
        exact = made.case(np.random.default_rng(0), shipped().instructions[by].values["operand"])
        for schedule in tiled_schedules(load(exact.text, target), by)[:1]:
            kernels += load(exact.text, target, schedule=dict(schedule)).kernels()
    assert len(kernels) >= len(FORMS) // 2
    wave = kernels[0].wave_size
    flags = [f"--offload-arch={target}", f"-DGEN_WAVE_SIZE={wave}", *wave_options(target, wave), *_FLAGS]
    run_compiler([zig(), "clang", "-x", "hip", *flags, "-"], target, translation_unit(together(kernels), "forms"))
