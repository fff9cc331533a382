"""Contractions and pools of whole numbers, against numpy: as operators, at every stage, and as kernels on the CPU."""

from __future__ import annotations

import pytest
from breadth import spread
from cases import KINDS, random_case
from support import load
from together import compile_together, lower_together

AS_OPERATORS, AT_STAGES, AS_KERNELS = 60, 6, 2
"""Cases of a kind; those at stages and as kernels are of each target."""
TARGETS = ("gfx942", "gfx1100", "sm_90", "host")


@pytest.mark.parametrize("kind", KINDS)
def test_operators_mean_what_numpy_computes(kind: str) -> None:
    for seed in range(AS_OPERATORS):
        case = random_case(kind, seed)
        case.check(load(case.text).run(case.inputs, "interpret")["z"])


@pytest.mark.parametrize(("kind", "target"), spread([*KINDS], TARGETS))
def test_every_stage_computes_the_same(kind: str, target: str) -> None:
    cases = [random_case(kind, 1000 * TARGETS.index(target) + seed) for seed in range(AT_STAGES)]
    for case, program in zip(cases, lower_together([case.text for case in cases], target), strict=True):
        for stage, lowered in program.each_stage():
            assert len(lowered.modules) == (case.kernels if stage != "simplify" else 1), f"{stage}: {case}"
            case.check(lowered.run(case.inputs, "interpret")["z"])


@pytest.mark.parametrize(("kind", "target"), spread([*KINDS], TARGETS[::-1]))
def test_kernels_compute_the_same_on_the_cpu(kind: str, target: str) -> None:
    """Waves run in two orders."""
    cases = [random_case(kind, 5000 + 1000 * TARGETS.index(target) + seed) for seed in range(AS_KERNELS)]
    programs = lower_together([case.text for case in cases], target)
    compile_together(programs)
    for case, program in zip(cases, programs, strict=True):
        assert len(program.kernels) == case.kernels, case
        for order in (0, 1):
            case.check(program.on_the_host(case.inputs, threads=1, order=order)["z"])
