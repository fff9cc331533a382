"""Rows of operands that lie along them in memory, and of others that lie across and are turned on their way."""

from __future__ import annotations

from math import prod
from random import Random

import pytest
from support import check_host_schedules, schedules, strides_in_order

_FOLDS = ("reduce_sum[axes={{{axis}}}]", "reduce_max[axes={{{axis}}}]", "argmax[axis={axis}]", "softmax[axis={axis}]")
_OPERATORS = ("v = sub(x, y)", "v = max(x, y)", "u = abs(y)\nv = add(u, x)", "c = less(x, y)\nv = where(c, y, x)")


def _drawn(random: Random) -> str:
    """A fold of two inputs whose neighbours lie along the folded axis, and along another."""
    lens = [random.choice((1, 3, 4, 8, 20, 33, 64)) for _ in range(random.choice((2, 3, 4)))]
    axis = random.randrange(len(lens))
    lens[axis] = random.choice((2, 5, 8, 16, 36, 100))
    across = random.choice([d for d in range(len(lens)) if d != axis])
    lens[across] = random.choice((16, 40, 67))
    while prod(lens) > 1 << 15:
        lens[max((d for d in range(len(lens)) if d not in (axis, across)), key=lambda d: lens[d])] = 2
    dtype = random.choice(("float", "half", "int8", "bf16"))
    first, second = random.sample((axis, across), 2)
    return "\n".join(
        [
            _input("x", dtype, lens, first, random),
            _input("y", dtype, lens, second, random),
            random.choice(_OPERATORS),
            f"z = {random.choice(_FOLDS if dtype != 'int8' else _FOLDS[:3]).format(axis=axis)}(v)",
            "@return(z)",
        ]
    )


def _input(name: str, dtype: str, lens: list[int], along: int, random: Random) -> str:
    others = [d for d in range(len(lens)) if d != along]
    order = [*random.sample(others, len(others)), along]
    strides = strides_in_order(lens, order)
    return f"{name} = @param:{name} -> {dtype}{{{', '.join(map(str, lens))}}}, {{{', '.join(map(str, strides))}}}"


@pytest.mark.few(3)
@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100"])
@pytest.mark.parametrize("number", range(8))
def test_drawn_rows(number: int, target: str) -> None:
    """Some of the schedules that turn operands, of the first drawn program that has any."""
    random = Random(f"{number}/{target}")
    for _ in range(20):
        text = _drawn(random)
        turned = [s for s in schedules(text, target) if s.get("sides") and s["lanes"] < s["block_size"]]
        if turned:
            break
    assert turned
    check_host_schedules(text, random.sample(turned, min(3, len(turned))), target)
