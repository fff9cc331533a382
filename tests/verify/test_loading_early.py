"""Loops over rows whose steps load what the next one needs, run on the CPU in whatever order waves run."""

from __future__ import annotations

import pytest
from breadth import SLOW
from support import AMD_TARGETS, WAVE32, WAVE64, check_built, check_host_schedules, load, lower_scheduled, schedules
from together import Made, build_together

SUM = "x = @param:x -> float{5, 9001}\ns = reduce_sum[axes={1}](x)\n@return(s)"
SOFTMAX = "x = @param:x -> half{3, 9000}\ny = softmax[axis=1](x)\n@return(y)"
ARGMAX = "x = @param:x -> float{4, 8200}\ny = argmax[axis=1](x)\n@return(y)"
COLUMNS = "x = @param:x -> float{600, 24}\ns = reduce_sum[axes={0}](x)\n@return(s)"
GATHERED = """
    x = @param:x -> float{4, 9100}
    k = @param:k -> int32{9000}
    g = gather[axis=1](x, k)
    s = reduce_max[axes={1}](g)
    @return(s)"""
TWO_ROWS = """
    x = @param:x -> half{2, 9008}
    y = @param:y -> half{2, 9008}
    z = mul(x, y)
    s = reduce_sum[axes={1}](z)
    b = multibroadcast[out_lens={2, 9008}](s)
    d = div(x, b)
    @return(d)"""
PROGRAMS = {
    "sum": SUM,
    "softmax": SOFTMAX,
    "argmax": ARGMAX,
    "columns": COLUMNS,
    "gathered": GATHERED,
    "two rows": TWO_ROWS,
}


def early(text: str, target: str) -> list[dict[str, object]]:
    """The schedules of a program whose steps load early: the cheapest of each algorithm."""
    found = [s for s in schedules(text, target) if s.get("ahead") and s["steps"] <= 600]
    return list({s["algo"]: s for s in reversed(found)}.values())


@pytest.mark.parametrize("target", [WAVE64, pytest.param(WAVE32, marks=SLOW), "sm_90"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str, target: str) -> None:
    chosen = early(PROGRAMS[name], target)
    assert chosen
    check_host_schedules(PROGRAMS[name], chosen, target, orders=(0, 1, 2))


def test_a_loop_loads_before_it_uses() -> None:
    (kernel,) = load(SOFTMAX, schedule={"algo": "block", "ahead": 1}).kernels()
    lines = [line.strip() for line in kernel.text.splitlines()]
    loops = [i for i, line in enumerate(lines) if line.startswith("for (int step")]
    assert len(loops) == 2
    for at in loops:
        step = lines[at].split()[2]
        assert lines[at + 1].startswith("const int next")
        assert f"gen::min({step} + 1, " in lines[at + 1]
        loads = [i for i, line in enumerate(lines[at:]) if "gen::strided_load" in line]
        uses = [i for i, line in enumerate(lines[at:]) if "gen::convert<float>(x_in" in line]
        moves = [i for i, line in enumerate(lines[at:]) if line.startswith("x_in") and line.endswith("_next;")]
        assert loads[0] < uses[0] < moves[0]


def test_nothing_is_loaded_early_unless_said() -> None:
    (kernel,) = load(SOFTMAX, schedule={"algo": "block", "ahead": 0, "steps": 5}).kernels()
    assert "next" not in kernel.text


def test_short_loops_and_columns_of_lanes_load_in_time() -> None:
    """Two steps have one to come; where lanes share a column, the loads of several steps are under way."""
    for text in PROGRAMS.values():
        for schedule in schedules(text):
            if schedule.get("ahead"):
                assert schedule["steps"] > 2
                assert schedule["algo"] != "columns" or schedule["lanes"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("target", AMD_TARGETS)
def test_registers_hold_both_steps(target: str) -> None:
    found = [(text, schedule) for text in PROGRAMS.values() for schedule in early(text, target)]
    program = lower_scheduled(found, target)
    kernels = [Made(program.with_modules((module,))) for module in program.modules]
    build_together(kernels)
    for kernel in kernels:
        check_built(kernel)
