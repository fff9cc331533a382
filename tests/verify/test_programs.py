"""Every program of the catalogue means the same at every stage, on the host, and compiles for AMD targets."""

from __future__ import annotations

from textwrap import dedent

import pytest
from breadth import first_quick, spread
from programs import MATRIX, PROGRAMS, SEED_CASES, SEED_TABLE, WRITTEN_LOWER
from support import (
    AMD_TARGETS,
    WAVE32,
    WAVE64,
    check_compiles,
    check_every_stage,
    check_host,
    check_last_stage,
)
from together import build_together, chosen, compile_together, in_batches, lower_together

_NUMBER = {name: i for i, name in enumerate(PROGRAMS)}


def rotated(name: str, choices: tuple[str, ...]) -> str:
    """One of the choices; the programs take them in turn."""
    return choices[_NUMBER[name] % len(choices)]


BATCHES = 2 * len(AMD_TARGETS)
"""So many that all programs of a batch are lowered for the same targets."""


@pytest.mark.parametrize("name", in_batches(PROGRAMS, BATCHES, "programs", quick=4))
def test_program(name: str, request: pytest.FixtureRequest) -> None:
    """At every stage, on the CPU as a target of its own and as a GPU target's kernel, and as a code object."""
    text = PROGRAMS[name]
    gpu, amd = rotated(name, (WAVE64, WAVE32)), rotated(name, AMD_TARGETS)
    batch = [PROGRAMS[chosen_name] for chosen_name in chosen(request, "name")]
    compile_together(lower_together(batch, gpu))
    compile_together(lower_together(batch, "host"))
    build_together(lower_together(batch, amd))
    check_every_stage(text, gpu)
    check_last_stage(text, "host")
    check_host(text, gpu)
    check_host(text, "host", orders=(0,))
    check_compiles(text, amd)


@pytest.mark.parametrize("name", first_quick(WRITTEN_LOWER))
def test_program_with_a_header(name: str) -> None:
    """A program that begins at a later stage, or has a schedule of its own."""
    text = WRITTEN_LOWER[name]
    check_every_stage(text, WAVE64)
    check_host(text, WAVE64)
    check_compiles(text, WAVE64)


@pytest.mark.parametrize(("name", "target"), spread(MATRIX, AMD_TARGETS))
def test_program_on_every_target(name: str, target: str) -> None:
    check_every_stage(PROGRAMS[name], target)
    check_compiles(PROGRAMS[name], target)


@pytest.mark.parametrize("target", first_quick(AMD_TARGETS))
def test_seed_cases_compile_for_every_target(target: str) -> None:
    """All of them as one file, lowered in one call."""
    modules = [f"@module {name}\n{dedent(PROGRAMS[name]).strip()}\n" for name in SEED_CASES]
    check_compiles("".join(modules), target)


@pytest.mark.parametrize(("name", "target"), spread(MATRIX, [WAVE64, WAVE32, "sm_90"]))
def test_program_in_any_order_of_waves(name: str, target: str) -> None:
    check_host(PROGRAMS[name], target, seed=1, orders=(0, 1, 2, 3))


@pytest.mark.parametrize("name", in_batches(SEED_TABLE, 2, "exact"))
def test_program_by_exact_rules(name: str, request: pytest.FixtureRequest) -> None:
    """Without the rules that change rounding."""
    lower_together([PROGRAMS[chosen_name] for chosen_name in chosen(request, "name")], WAVE64, strict=True)
    check_every_stage(PROGRAMS[name], WAVE64, strict=True)


@pytest.mark.parametrize("name", in_batches(SEED_TABLE, 2, "classic"))
def test_program_by_classic_schedule(name: str, request: pytest.FixtureRequest) -> None:
    """Under the policy that the seed's listings follow."""
    lower_together([PROGRAMS[chosen_name] for chosen_name in chosen(request, "name")], WAVE64, policy="classic")
    check_last_stage(PROGRAMS[name], WAVE64, policy="classic")
