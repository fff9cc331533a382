"""Contractions and pools of whole numbers, against numpy: as operators, at every stage, and as kernels on the CPU."""

from __future__ import annotations

import pytest
from cases import KINDS, Case, random_case
from support import load

from genrw.codegen.runtime.devices import HostDevice

AS_OPERATORS, AT_STAGES, AS_KERNELS = 60, 6, 2
"""Cases of a kind."""
TARGETS = ("gfx942", "gfx1100", "sm_90", "host")


@pytest.mark.parametrize("kind", KINDS)
def test_operators_mean_what_numpy_computes(kind: str) -> None:
    for seed in range(AS_OPERATORS):
        case = random_case(kind, seed)
        case.check(load(case.text).run(case.inputs, "interpret")["z"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_computes_the_same(kind: str, target: str) -> None:
    for seed in range(AT_STAGES):
        case = random_case(kind, 1000 * TARGETS.index(target) + seed)
        program = load(case.text, target)
        for stage, lowered in program.remaining_stages():
            assert len(lowered.modules) == 1, f"{stage}: {case}"
            case.check(lowered.run(case.inputs, "interpret")["z"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_compute_the_same_on_the_cpu(kind: str, target: str) -> None:
    for seed in range(AS_KERNELS):
        run_on_the_cpu(random_case(kind, 5000 + 1000 * TARGETS.index(target) + seed), target)


def run_on_the_cpu(case: Case, target: str) -> None:
    """One kernel, whose waves run in two orders."""
    program = load(case.text, target)
    kernels = program.kernels()
    assert len(kernels) == 1, case
    run = HostDevice().load(program, kernels)
    for order in (0, 1):
        case.check(run(case.inputs, threads=1, order=order)["z"])
