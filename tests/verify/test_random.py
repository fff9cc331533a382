"""Random programs, lowered for some target under some legal schedule, mean the same as before."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Generated, programs
from support import (
    WAVE32,
    WAVE64,
    check_compiles,
    check_every_stage,
    check_host,
    check_last_stage,
    load,
    schedules,
)

from genrw.grammar.diagnostics import GenrwError

TARGETS = (WAVE64, WAVE32, "sm_90", "host")
SETTINGS = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)


@settings(SETTINGS, max_examples=100)
@given(programs(), st.sampled_from(TARGETS), st.integers(0, 99))
def test_random_programs_at_the_last_stage(program: Generated, target: str, choice: int) -> None:
    found = schedules(program.text, target)
    check_last_stage(program.text, target, schedule=found[choice % len(found)])


@settings(SETTINGS, max_examples=12)
@given(programs(), st.sampled_from(TARGETS[:2]), st.integers(0, 99))
def test_random_programs_on_the_host(program: Generated, target: str, choice: int) -> None:
    found = schedules(program.text, target)
    schedule = found[choice % len(found)]
    check_host(program.text, target, schedule=schedule)
    check_compiles(program.text, target, schedule=schedule)


@settings(SETTINGS, max_examples=40)
@given(programs(several=True), st.sampled_from(TARGETS))
def test_random_programs_of_several_kernels(program: Generated, target: str) -> None:
    check_last_stage(program.text, target)


@settings(SETTINGS, max_examples=8)
@given(programs(several=True), st.sampled_from(TARGETS[:2]))
def test_random_programs_of_several_kernels_on_the_host(program: Generated, target: str) -> None:
    check_host(program.text, target)


@pytest.mark.parametrize(
    "text",
    [
        "x = @param:x -> {4, 5}\na = reduce_sum[axes={1}](x)\nb = reduce_sum[axes={0}](x)\n@return(a, b)\n",
        "x = @param:x -> {4, 5}\na = reduce_max[axes={1}](x)\nb = reduce_sum[axes={0}](a)\n@return(b)\n",
        "x = @param:x -> {4, 5}\ny = @param:y -> {7}\na = relu(x)\nb = relu(y)\n@return(a, b)\n",
    ],
)
def test_several_kernels_are_launched_in_order(text: str) -> None:
    assert len(check_every_stage(text).modules) == 2
    check_host(text, WAVE64)


def test_a_kernel_that_is_several_is_refused_in_words() -> None:
    """A module that says of itself that it was cut into kernels already."""
    text = "x = @param:x -> {4, 5}\na = reduce_sum[axes={1}](x)\nb = reduce_sum[axes={0}](x)\n@return(a, b)\n"
    with pytest.raises(GenrwError, match="needs several kernels"):
        load(f"@module main [stage=fuse, target=gfx942]\n{text}").lower("final")
