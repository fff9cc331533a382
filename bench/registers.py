"""Registers, spills and scratch memory of kernels of tiles on AMD GPUs, as their code objects state them: the contractions that
tests name, by the cheapest schedule of each instruction of each target. Nothing is run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "contractions"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import AMD_TARGETS, load, shipped
from table import parser, report
from tiled_cases import FORMS, tiled_schedules

from genrw.codegen.runtime.amd import KernelReport, compile_amd

HEADINGS = ("kernel", "target", "vgprs", "agprs", "sgprs", "lds", "scratch", "spilled")


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument(
        "--target", nargs="*", choices=AMD_TARGETS, default=AMD_TARGETS, help="targets: all, if not said"
    )
    options.add_argument("--form", nargs="*", choices=[*FORMS], default=[*FORMS], help="contractions: all, if not said")
    given = options.parse_args()
    rows = [
        (f"{by}, {form}", target, *_figures(_compiled(target, by, form)))
        for target in given.target
        for by in shipped().targets[target].values["matrices"]
        for form in given.form
    ]
    report(HEADINGS, rows, given.json)


def _compiled(target: str, by: str, form: str) -> KernelReport:
    text = FORMS[form].case(np.random.default_rng(0), shipped().instructions[by].values["operand"]).text
    schedule = tiled_schedules(load(text, target), by)[0]
    (kernel,) = load(text, target, schedule=dict(schedule)).kernels()
    return compile_amd(kernel.text, target, kernel.wave_size, kernel.name).kernels[kernel.name]


def _figures(kernel: KernelReport) -> tuple[int, ...]:
    spilled = kernel.vgpr_spills + kernel.sgpr_spills
    return kernel.vgprs, kernel.agprs, kernel.sgprs, kernel.lds_bytes, kernel.scratch_bytes, spilled


if __name__ == "__main__":
    main()
