"""Folds whose results are used at elements, and values that are folded and needed elsewhere too."""

from __future__ import annotations

from textwrap import dedent

import pytest
from breadth import spread
from support import WAVE32, WAVE64, check_host, check_host_schedules, schedules

POSITIONS = """
    x = @param:x -> {dtype}{{4, {columns}}}
    a = {fold}[axis=1](x)
    c = convert[target_type={dtype}](a)
    y = mul(x, c)
    @return(y)
"""
CARRYING = ["softmax[axis=1]", "logsoftmax[axis=1]", "layernorm[axes={1}]", "hardmax[axis=1]"]


def check_algorithms(text: str, target: str) -> None:
    """The program under the cheapest schedule of each algorithm over lanes."""
    found = {s["algo"]: s for s in reversed(schedules(text, target))}
    check_host_schedules(text, [found[algo] for algo in ("subwave", "wave", "block") if algo in found], target)


@pytest.mark.parametrize(
    ("fold", "dtype", "columns", "target"),
    [
        *(("argmax", "float", 256, target) for target in (WAVE64, WAVE32)),
        ("argmin", "half", 64, WAVE32),
        ("argmax", "int32", 128, "sm_90"),
    ],
)
def test_positions_at_elements(fold: str, dtype: str, columns: int, target: str) -> None:
    """What lanes keep from one meeting to the next is what they read."""
    check_algorithms(POSITIONS.format(fold=fold, dtype=dtype, columns=columns), target)


@pytest.mark.slow
@pytest.mark.parametrize("fold", CARRYING)
def test_several_fields_at_elements(fold: str) -> None:
    check_algorithms(f"x = @param:x -> float{{4, 256}}\ny = {fold}(x)\n@return(y)\n", WAVE64)


# ---- folded in a loop over a row, and needed as an array

FOLDED = ["reduce_max[axes={1}]", "softmax[axis=1]", "argmax[axis=1]", "layernorm[axes={1}]"]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [128, 4096])
@pytest.mark.parametrize("fold", FOLDED)
def test_values_that_are_folded_and_returned(fold: str, columns: int) -> None:
    shape = f"{{4, {columns}}}"
    text = f"""
        a = @param:a -> float{shape}
        b = @param:b -> float{shape}
        c = add(a, b)
        m = {fold}(c)
        @return(c, m)
    """
    check_host(text, "host", orders=(0,))


def test_values_that_are_folded_and_returned_by_a_wave_in_steps() -> None:
    text = """
        a = @param:a -> half{4, 4096}
        c = tanh(a)
        m = softmax[axis=1](c)
        @return(c, m)
    """
    found = [s for s in schedules(text, WAVE64) if s["steps"] > 1]
    check_host(text, WAVE64, schedule=found[0])


# ---- truth values and positions: computed anew wherever they are needed, if that can be

CONDITIONS = {
    "a choice of one value, written in chunks": """
        x = @param:x -> bool{}
        b = multibroadcast[out_lens={2}](x)
        p = pad[pads={3, 1}, value=1](b)
        q = multibroadcast[out_lens={6}](p)
        @return(p, q)""",
    "one value folded for each element": """
        x = @param:x -> float{3, 5}
        b = @param:b -> bool{5}
        r = multibroadcast[out_lens={3, 5}](b)
        low = reduce_min[axes={0}](r)
        y = where(low, x, x)
        turned = reverse[axes={0, 1}](r)
        high = reduce_max[axes={0}](r)
        @return(y, turned, high)""",
    "a choice of one value, folded in steps": """
        x = @param:x -> bool{4, 1}
        b = multibroadcast[out_lens={4, 4000}](x)
        p = pad[pads={0, 90, 0, 6}, value=1](b)
        r = reduce_min[axes={1}](p)
        @return(r)""",
    "a choice of one value, folded and written": """
        x = @param:x -> bool{4, 1}
        b = multibroadcast[out_lens={4, 90}](x)
        p = pad[pads={0, 3, 0, 7}](b)
        r = reduce_max[axes={1}](p)
        y = not_equal(p, r)
        @return(p, r, y)""",
    "entries read one by one, needed before and after a fold": """
        p = @param:p -> float{33, 5}
        q = @param:q -> float{33, 5}
        k = @param:k -> int64{64}, {3}
        a = gather[axis=0](p, k)
        s = reduce_sum[axes={0}](a)
        b = gather[axis=0](q, k)
        c = mul(b, s)
        @return(c)""",
    "entries read one by one, of a fold in steps": """
        p = @param:p -> float{33, 5}
        q = @param:q -> float{33, 5}
        k = @param:k -> int32{900}, {2}
        a = gather[axis=0](p, k)
        s = reduce_max[axes={0}](a)
        t = sub(a, s)
        u = exp(t)
        m = reduce_sum[axes={0}](u)
        b = gather[axis=0](q, k)
        c = mul(b, m)
        @return(c, t)""",
}


@pytest.mark.parametrize(("name", "target"), spread(list(CONDITIONS), [WAVE64, "sm_90", "host"]))
def test_what_is_computed_anew(name: str, target: str) -> None:
    text = dedent(CONDITIONS[name])
    found = {s["algo"]: s for s in reversed(schedules(text, target))}
    check_host_schedules(text, list(found.values()), target)
