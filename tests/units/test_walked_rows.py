"""Rows that are walked in steps: what a lane folds of a step, and what is there in place of elements past a row's end."""

from __future__ import annotations

import numpy as np
import pytest
from breadth import spread
from rule_programs import LOGITS, STEPS
from support import check_host, load
from together import made

from genrw.engine.interpret.compare import compare

TARGETS = ("gfx942", "gfx1100", "sm_90", "host")
POSITION = """
    x = @param:x -> {dtype}{{3, {width}}}
    a = argmax[axis=1](x)
    m = reduce_min[axes={{1}}](x)
    @return(a, m)
"""
DIVERGENCE = """
    student = @param:student -> {dtype}{{3, {width}}}
    teacher = @param:teacher -> {dtype}{{3, {width}}}
    f = convert[target_type=float](student)
    g = convert[target_type=float](teacher)
    q = logsoftmax[axis=1](f)
    l = logsoftmax[axis=1](g)
    p = exp(l)
    d = sub(l, q)
    t = mul(p, d)
    y = reduce_sum[axes={{1}}](t)
    @return(y)
"""


def schedule_of(target: str) -> dict[str, object]:
    return {} if target == "host" else STEPS


FOLDS = {"logits": LOGITS, "position": POSITION, "divergence": DIVERGENCE}


@pytest.mark.parametrize(("fold", "width", "target"), spread([*FOLDS], [16384, 16396, 20012], TARGETS))
def test_folds_by_steps(fold: str, width: int, target: str) -> None:
    check_host(FOLDS[fold].format(dtype="bf16", width=width), target, schedule=schedule_of(target))


@pytest.mark.parametrize("dtype", ["half", "bf16"])
def test_a_step_leaves_one_accumulator(dtype: str) -> None:
    """What stands past the end is read as the least number, once for both folds; nothing is asked about single elements."""
    (kernel,) = made(DIVERGENCE.format(dtype=dtype, width=20012), "sm_90", schedule=STEPS).kernels
    first = kernel.text[kernel.text.index("for (int step2") :].split("\n    }\n")[0]
    assert first.count("strided_load<16") == 2
    uses = [line for line in first.splitlines() if "inside" in line]
    assert len(uses) == 3
    assert "gen::chunks_below<256, 4>(" in uses[0]
    assert all("strided_load" in line for line in uses[1:])
    assert "?" not in first
    assert "powers_float::acc, 16" not in kernel.text


@pytest.mark.parametrize("target", TARGETS)
def test_special_rows(target: str) -> None:
    """Rows with infinities, and of nothing but them, have the logarithms of sums that their definition has."""
    text = LOGITS.format(dtype="float", width=16396)
    x = np.linspace(-3, 3, 3 * 16396, dtype=np.float32).reshape(3, -1)
    x[0, ::7] = -np.inf
    x[1, 5] = np.inf
    x[2] = -np.inf
    want = load(text).run({"x": x}, "interpret", precise=True)
    got = made(text, target, schedule=schedule_of(target)).on_the_host({"x": x}, threads=2, order=0)
    assert not any(compare(got[name], want[name], "float") for name in want)
    assert got["y"][1, 0] == np.inf
    assert got["y"][2, 0] == -np.inf
