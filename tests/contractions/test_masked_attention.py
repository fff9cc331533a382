"""Attention whose scores are hidden by comparisons of places: steps at which all are hidden are left out, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from index_masks import Masks
from support import load

from genrw.codegen.runtime.devices import HostDevice

pytestmark = pytest.mark.few(1)

LENGTHS = (2, 31, 64, 65, 100, 128, 200, 257, 320)


def program(mask: str, lines: str, queries: int, keys: int, width: int, heads: int = 1) -> str:
    """Attention of halves whose scores are -inf where `mask` holds."""
    return f"""\
q = @param:q -> half{{{heads}, {queries}, {width}}}
k = @param:k -> half{{{heads}, {keys}, {width}}}
v = @param:v -> half{{{heads}, {keys}, {width}}}
t = transpose[permutation={{0, 2, 1}}](k)
d = dot(q, t)
x = mul(d, 0.125)
{lines}
s = where({mask}, -inf, x)
p = softmax[axis=2](s)
z = dot(p, v)
@return(z)
"""


def inputs(queries: int, keys: int, width: int, heads: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(queries * 1000 + keys)
    lens = {"q": queries, "k": keys, "v": keys}
    return {name: rng.standard_normal((heads, n, width)).astype(np.float16) for name, n in lens.items()}


def expected(given: dict[str, np.ndarray], hidden: np.ndarray) -> np.ndarray:
    """In double; rows without a visible score are NaN."""
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    s = np.where(hidden, -np.inf, q @ k.swapaxes(1, 2) * 0.125)
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(axis=2, keepdims=True))
        return e / e.sum(axis=2, keepdims=True) @ v


def run(text: str, given: dict[str, np.ndarray], order: int, **schedule: object) -> tuple[np.ndarray, str]:
    """What the kernel computes on the CPU, and its text."""
    loaded = load(text, "sm_90", schedule=schedule) if schedule else load(text, "sm_90")
    (kernel,) = loaded.kernels()
    return HostDevice().load(loaded, (kernel,))(given, threads=1, order=order)["z"], kernel.text


def check(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got.astype(np.float64), want, atol=4e-3 * np.nanmax(np.abs(want), initial=1.0))


@pytest.mark.parametrize("seed", range(16))
def test_random_masks_hide_what_they_hide(seed: int) -> None:
    random = Random(seed)
    queries, keys, width = random.choice(LENGTHS), random.choice(LENGTHS), random.choice((40, 64, 128))
    mask = Masks(random, (1, queries, keys)).drawn()
    given = inputs(queries, keys, width)
    got, _ = run(program(mask.name, "\n".join(mask.lines), queries, keys, width), given, order=seed % 2)
    check(got, expected(given, mask.hidden))


IOTAS = "r = iota[lens={{{0}, {1}, {2}}}, axis=1]()\nc = iota[lens={{{0}, {1}, {2}}}, axis=2]()\n"


@dataclass(frozen=True)
class Bounded:
    """A mask called h of so many queries and keys, what it hides, and what the kernel says of its loop."""

    lines: str
    queries: int
    keys: int
    hides: Callable[[np.ndarray, np.ndarray], np.ndarray]
    loop: str


BOUNDED = {
    "causal": Bounded("h = greater(c, r)", 320, 320, lambda r, c: c > r, "step = 0; step < end_step"),
    "after what was there before": Bounded(
        "e = add(r, 256)\nh = greater(c, e)", 64, 320, lambda r, c: c > r + 256, "step = 0; step < 5"
    ),
    "offset": Bounded(
        "e = add(r, 100)\nh = greater(c, e)", 200, 320, lambda r, c: c > r + 100, "step = 0; step < end_step"
    ),
    "window before": Bounded(
        "e = sub(r, 64)\nb = less(c, e)\na = greater(c, r)\nh = logical_or(a, b)",
        320,
        320,
        lambda r, c: (c > r) | (c < r - 64),
        "step = first_step; step < end_step",
    ),
    "window of both sides": Bounded(
        "e = sub(r, 30)\nb = less(c, e)\nf = add(r, 30)\na = greater(c, f)\nh = logical_or(a, b)",
        257,
        257,
        lambda r, c: abs(r - c) > 30,
        "step = first_step; step < end_step",
    ),
    "distance": Bounded(
        "f = sub(r, c)\ng = greater(f, 70)\na = less(f, 0)\nh = logical_or(a, g)",
        257,
        257,
        lambda r, c: (r - c > 70) | (r < c),
        "step = first_step; step < end_step",
    ),
    "kept ones": Bounded("a = less_equal(c, r)\nh = logical_not(a)", 200, 200, lambda r, c: c > r, "step < end_step"),
    "length": Bounded("h = greater_equal(c, 130)", 64, 320, lambda _, c: c >= 130, "step < end_step"),
    "beginning": Bounded("h = less(c, 130)", 64, 320, lambda _, c: c < 130, "step = first_step; step < 5"),
    "nothing": Bounded("h = greater(c, 1000)", 100, 128, lambda _, c: c > 1000, "step = 0; step < 2"),
    "holes": Bounded("h = equal(c, r)", 128, 128, lambda r, c: c == r, "step = 0; step < 2"),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_steps_that_a_mask_hides_are_left_out(name: str) -> None:
    case = BOUNDED[name]
    text = program("h", IOTAS.format(2, case.queries, case.keys) + case.lines, case.queries, case.keys, 64, heads=2)
    given = inputs(case.queries, case.keys, 64, heads=2)
    for order in (0, 1):
        got, kernel = run(text, given, order, tile=(64, 64, 64))
        assert case.loop in kernel
        check(got, expected(given, case.hides(*np.indices((case.queries, case.keys)))))


def test_rows_without_a_visible_score_are_nan_though_no_step_is_walked() -> None:
    lines = IOTAS.format(1, 200, 200) + "e = sub(r, 100)\nh = greater(c, e)"
    given = inputs(200, 200, 64)
    got, _ = run(program("h", lines, 200, 200, 64), given, 1)
    r, c = np.indices((200, 200))
    assert np.isnan(got[0, :100]).all()
    check(got, expected(given, c > r - 100))


@pytest.mark.parametrize("name", ["causal", "window before", "nothing"])
@pytest.mark.parametrize("width", [64, 128])
def test_waves_take_turns(name: str, width: int) -> None:
    """They wait for stages that are filled and left, and do not meet in the loop."""
    case = BOUNDED[name]
    text = program("h", IOTAS.format(1, case.queries, case.keys) + case.lines, case.queries, case.keys, width)
    given = inputs(case.queries, case.keys, width)
    for order in (0, 1, 2):
        got, kernel = run(text, given, order, turns=1, tile=(128, width, 64))
        loop = kernel[kernel.index("for (int step = ") :]
        assert "GEN_AWAIT_FILLED(lds" in loop
        assert "barrier" not in loop
        check(got, expected(given, case.hides(*np.indices((case.queries, case.keys)))))
