"""What is rounded to a half or to 8 bits: quotients by a reciprocal, and integers by a float's last bits."""

from __future__ import annotations

import numpy as np
import pytest
from rule_programs import CLIPPED, ROUNDED_ROWS
from support import check_host, load
from together import made

TARGETS = ("gfx942", "gfx1100", "sm_90", "host")

QUOTIENT = """
    x = @param:x -> float{8, 64}
    s = @param:s -> float{8, 1}
    d = div(x, s)
    y = convert[target_type=bf16](d)
    @return(y)
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["half", "bf16", "float"])
def test_rows_by_their_largest_element(dtype: str, target: str) -> None:
    check_host(ROUNDED_ROWS.format(dtype=dtype), target)


def test_no_division_for_each_element() -> None:
    (kernel,) = made(ROUNDED_ROWS.format(dtype="bf16"), "sm_90").kernels
    assert "round_to_byte_int8(gen::div_near_exact(" in kernel.text
    assert " / m" not in kernel.text


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("target_type", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int8", 0, 127), ("int8", -7, 7)]
)
def test_bytes_are_the_nearest(target_type: str, low: int, high: int, target: str) -> None:
    """Halves go to the even one, what is beyond is the last one, NaN is 0."""
    halves = np.arange(-300, 300, 0.5, dtype=np.float32)
    others = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0, 2**23 + 1], np.float32)
    x = np.concatenate([halves, np.nextafter(halves, np.float32(np.inf)), others])
    text = CLIPPED.format(count=len(x), low=low, high=high, target_type=target_type)
    want = np.nan_to_num(np.clip(np.round(x), low, high), nan=0).astype(target_type)
    np.testing.assert_array_equal(made(text, target).on_the_host({"x": x}, threads=1, order=0)["y"], want)


@pytest.mark.parametrize("target", TARGETS)
def test_quotients_all_over_the_range(target: str) -> None:
    """Divisors without a normal reciprocal, zeros, infinities and NaN."""
    assert "div_near" in made(QUOTIENT, "sm_90").kernels[0].text
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, 1e-38, 1e-42], np.float32)
    x = np.resize(np.concatenate([special, np.geomspace(1e-30, 1e30, 56, dtype=np.float32)]), (8, 64))
    inputs = {"x": x, "s": special[:, None]}
    want = load(QUOTIENT).run(inputs, "interpret", precise=True)["y"]
    got = made(QUOTIENT, target).on_the_host(inputs, threads=1, order=0)["y"]
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=2**-7, atol=1e-40)


@pytest.mark.parametrize("target", TARGETS)
def test_quotients_between_two_bytes(target: str) -> None:
    """What lies half-way between two integers goes to the even one: the quotient has to be that, whatever divides."""
    text = """
        x = @param:x -> float{{{rows}, 251}}
        s = @param:s -> float{{{rows}, 1}}
        d = div(x, s)
        r = round(d)
        y = convert[target_type=int8](r)
        @return(y)
    """
    halves = np.arange(-125, 126, dtype=np.float32) + np.float32(0.5)
    random = np.random.default_rng(0)
    s = np.ldexp(random.integers(2**11, 2**13, 400) * 2 + 1, random.integers(-140, 100, 400)).astype(np.float32)[
        :, None
    ]
    x = (s.astype(np.float64) * halves).astype(np.float32)
    assert np.array_equal(x.astype(np.float64), s.astype(np.float64) * halves)
    got = made(text.format(rows=len(s)), target).on_the_host({"x": x, "s": s}, threads=1, order=0)["y"]
    np.testing.assert_array_equal(got, np.broadcast_to(np.round(halves), got.shape))
