"""Elementwise functions on numpy arrays where numpy's own are missing or mean something else.

Integers wrap in their type, division by zero gives 0 and never warns; callers run these with numpy's floating
warnings off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.engine.ir.dtypes import DTYPES, dtype_name, numpy_dtype

Values = npt.NDArray[Any]


# ---- integer division


def _safe(b: Values) -> tuple[Values, Values]:
    """Divisors made harmless, and where they were not: 0 traps, and -1 overflows with the lowest value."""
    special = b == 0 if b.dtype.kind == "u" else (b == 0) | (b == -1)
    return np.where(special, np.ones_like(b), b), special


def _by_special(a: Values, b: Values) -> Values:
    """a / b where b is 0 or -1: 0, or the wrapped negative."""
    return np.where(b == 0, np.zeros_like(a), np.negative(a))


def truncating_divide(a: Values, b: Values) -> Values:
    """The quotient rounded towards 0."""
    safe, special = _safe(b)
    quotient = np.floor_divide(a, safe)
    inexact = quotient * safe != a
    quotient = quotient + (inexact & ((a < 0) != (safe < 0))).astype(quotient.dtype)
    return np.where(special, _by_special(a, b), quotient)


def floor_divide(a: Values, b: Values) -> Values:
    """The quotient rounded down; of floats, after it is rounded to the type."""
    if a.dtype.kind == "f":
        return np.asarray(np.floor(a / b))
    safe, special = _safe(b)
    return np.where(special, _by_special(a, b), np.floor_divide(a, safe))


def floor_modulo(a: Values, b: Values) -> Values:
    """The remainder with the sign of the divisor."""
    return _remainder(np.remainder, a, b)


def truncating_modulo(a: Values, b: Values) -> Values:
    """The remainder with the sign of the dividend."""
    return _remainder(np.fmod, a, b)


def _remainder(compute: np.ufunc, a: Values, b: Values) -> Values:
    if a.dtype.kind == "f":
        result: Values = compute(a, b)
        return result
    safe, special = _safe(b)
    return np.where(special, np.zeros_like(a), compute(a, safe))


def divide(a: Values, b: Values) -> Values:
    """`/`: exact division of floats, truncating division of integers."""
    return np.true_divide(a, b) if a.dtype.kind == "f" else truncating_divide(a, b)


# ---- powers and shifts


def power(a: Values, b: Values) -> Values:
    """a to the power b; integers wrap, and a negative integer power is the truncated reciprocal."""
    if a.dtype.kind == "f":
        # numpy takes a repeated exponent of 0.5 for a square root, which keeps the sign of -0 and has no root of -inf.
        return np.power(np.where((b == 0.5) & ((a == 0) | (a == -np.inf)), np.abs(a), a), b)
    reciprocal = np.where(a == 1, 1, np.where((a == -1) & (a < 0), np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, reciprocal.astype(a.dtype), _integer_power(a, np.where(b < 0, np.zeros_like(b), b)))


def _integer_power(a: Values, b: Values) -> Values:
    """By repeated squaring, in the wrapping arithmetic of the type."""
    a, b = np.broadcast_arrays(a, b)
    result = np.ones_like(a)
    while np.any(b > 0):
        result = np.where(b & 1 == 1, result * a, result)
        a, b = a * a, b >> 1
    return result


def shift_left(a: Values, b: Values) -> Values:
    """a times 2^b, wrapped; 0 where b is not below the width."""
    return np.where(_beyond(a, b), np.zeros_like(a), np.left_shift(a, _within(a, b)))


def shift_right(a: Values, b: Values) -> Values:
    """a over 2^b, rounded down; nothing but the sign is left where b is not below the width."""
    gone = np.where(a < 0, np.full_like(a, -1 if a.dtype.kind == "i" else 0), np.zeros_like(a))
    return np.where(_beyond(a, b), gone, np.right_shift(a, _within(a, b)))


def _beyond(a: Values, b: Values) -> Values:
    beyond: Values = (b < 0) | (b >= a.dtype.itemsize * 8)
    return beyond


def _within(a: Values, b: Values) -> Values:
    return np.where(_beyond(a, b), np.zeros_like(b), b)


# ---- functions of several values


def clamp(x: Values, low: Values, high: Values) -> Values:
    """x, but no less than low nor more than high."""
    return np.asarray(np.minimum(np.maximum(x, low), high))


def fma(a: Values, b: Values, c: Values) -> Values:
    """a * b + c, rounded once."""
    if a.dtype != np.float32:
        return np.asarray(a * b + c)
    return np.asarray((a.astype(np.float64) * b + c).astype(np.float32))


# ---- functions of one value


def _of_floats(compute: np.ufunc) -> Callable[[Values], Values]:
    """A rounding function, which leaves integers alone."""
    return lambda x: np.asarray(compute(x)) if x.dtype.kind == "f" else x


floor, ceil, trunc, round = map(_of_floats, (np.floor, np.ceil, np.trunc, np.rint))


def rsqrt(x: Values) -> Values:
    """1 over the square root."""
    return np.asarray(x.dtype.type(1) / np.sqrt(x))


# W. J. Cody, "Rational Chebyshev approximations for the error function", 1969, with the coefficients of his
# SPECFUN package: relative error below 1e-16 on each of the three ranges.
_NEAR_TOP = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
             3.20937758913846947e3)  # fmt: skip
_NEAR_BOTTOM = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
                2.84423683343917062e3)  # fmt: skip
_MIDDLE_TOP = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
               2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
               1.23033935479799725e3)  # fmt: skip
_MIDDLE_BOTTOM = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
                  1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
                  1.23033935480374942e3)  # fmt: skip
_FAR_TOP = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
            1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_FAR_BOTTOM = (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
               2.33520497626869185e-3)  # fmt: skip
_ERFC_IS_ZERO = 30.0


def erf(x: Values) -> Values:
    """The error function, computed in double."""
    wide = x.astype(np.float64)
    size = np.abs(wide)
    near = np.where(size < 0.46875, wide, 0.0)
    result = np.where(size < 0.46875, _erf_near(near), np.copysign(1.0 - _erfc_beyond(size), wide))
    return np.where(np.isnan(wide), wide, result).astype(x.dtype)


def erfc(x: Values) -> Values:
    """What the error function leaves of 1, computed in double."""
    wide = x.astype(np.float64)
    size = np.abs(wide)
    near = np.where(size < 0.46875, wide, 0.0)
    tail = _erfc_beyond(size)
    result = np.where(size < 0.46875, 1.0 - _erf_near(near), np.where(wide < 0, 2.0 - tail, tail))
    return np.where(np.isnan(wide), wide, result).astype(x.dtype)


def _erfc_beyond(size: Values) -> Values:
    """What is left at sizes from 0.46875 on."""
    middle = np.clip(np.where(np.isnan(size), 1.0, size), 0.46875, 4.0)
    far = np.clip(np.where(np.isnan(size), 5.0, size), 4.0, _ERFC_IS_ZERO)
    return np.where(size <= 4.0, _erfc_middle(middle), _erfc_far(far))


def _ratio(top: tuple[float, ...], bottom: tuple[float, ...], at: Values) -> Values:
    return np.asarray(np.polyval(np.array(top), at) / np.polyval(np.array(bottom), at))


def _erf_near(x: Values) -> Values:
    return x * _ratio(_NEAR_TOP, _NEAR_BOTTOM, x * x)


def _erfc_middle(x: Values) -> Values:
    return np.asarray(np.exp(-x * x) * _ratio(_MIDDLE_TOP, _MIDDLE_BOTTOM, x))


def _erfc_far(x: Values) -> Values:
    square = 1.0 / (x * x)
    series = square * _ratio(_FAR_TOP, _FAR_BOTTOM, square)
    return np.asarray(np.exp(-x * x) * (1.0 / math.sqrt(math.pi) - series) / x)


# ---- conversion


def convert(x: Values, dtype: str) -> Values:
    """Values as another type, in that type's own numpy representation.

    Floats become integers by truncation, those out of range the nearest limit and nan 0; integers wrap;
    values round to half and bf16 once, to nearest, ties to even.
    """
    target = numpy_dtype(dtype)
    if x.dtype == target:
        return x
    if dtype_name(x.dtype) == "bf16":
        x = x.astype(np.float32)  # to numpy bf16 is no floating type
    if dtype == "bool":
        return np.asarray(x != 0)
    if DTYPES[dtype].is_integer and x.dtype.kind == "f":
        return _float_to_integer(x, dtype)
    if dtype in ("half", "bf16"):
        return (_rounded_to_odd(x) if dtype == "bf16" else _as_float(x)).astype(target)
    return x.astype(target)


def _as_float(x: Values) -> Values:
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def _float_to_integer(x: Values, dtype: str) -> Values:
    low, high = int(DTYPES[dtype].smallest), int(DTYPES[dtype].largest)
    whole = np.trunc(x.astype(np.float64))
    fits = (whole >= float(low)) & (whole < float(high + 1))
    result = np.where(fits, whole, 0.0).astype(numpy_dtype(dtype))
    result = np.where(whole < float(low), result.dtype.type(low), result)
    return np.where(whole >= float(high + 1), result.dtype.type(high), result)


def _rounded_to_odd(x: Values) -> Values:
    """Values as float, the last bit set where that was inexact: so rounding once more loses nothing."""
    if x.dtype == np.float32:
        return x
    wide = np.asarray(_as_float(x))
    near = np.asarray(wide.astype(np.float32))
    inexact = np.isfinite(near) & (near.astype(np.float64) != wide)
    towards_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(wide), np.nextafter(near, np.float32(0)), near)
    odd = (towards_zero.view(np.uint32) | np.uint32(1)).view(np.float32)
    return np.where(inexact, odd, near)
