"""Accuracy of the device header's elementary functions, against numpy in a wider type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from device_kernels import FUNCTIONS, evaluate, math_kernel
from together import in_batches

from genrw.codegen.runtime.host import HostKernel, compile_host

Array = npt.NDArray[Any]

SIZE = 1 << 15
TYPES: dict[str, Any] = {"float": np.float32, "double": np.float64}
EXTREMES = {"float": (-104.0, 88.7), "double": (-745.0, 709.7)}
LARGEST_ERROR = 4  # units in the last place

# Where each function is sampled; "wide" is every magnitude the type has.
RANGES: dict[str, list[Any]] = {
    **{f: ["extremes", (-1, 1), (-1e-3, 1e-3)] for f in ("exp", "expm1")},
    **{f: [(0, 3), (0.5, 1.5), "wide"] for f in ("log", "log2", "rsqrt", "sqrt")},
    **{f: [(-10, 10), (-1e5, 1e5), (-1e9, 1e9), "wide"] for f in ("sin", "cos", "tan")},
    **{f: [(-10, 10), (-1.5, 1.5), (-1e-3, 1e-3)] for f in ("tanh", "erf")},
    **{f: [(-1, 1), (0.99, 1), (-1e-3, 1e-3)] for f in ("asin", "acos")},
    **{f: [(-88, 88), (-1, 1)] for f in ("sinh", "cosh")},
    "asinh": [(-10, 10), (-1e-3, 1e-3), (-1e10, 1e10), "wide"],
    "acosh": [(1, 10), (1, 1.001), (1, 1e10), "wide"],
    "atanh": [(-1, 1), (-1e-3, 1e-3), (0.99, 1)],
    "exp2": [(-120, 120), (-1, 1)],
    "log1p": [(-1, 3), (-1e-2, 1e-2), "wide"],
    "atan": [(-5, 5), (-1e-3, 1e-3), "wide"],
}
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    -1e-40,
    1e30,
    -1e30,
]
SPECIAL += [100.0, -100.0, 1000.0, -1000.0, 0.7071, 2.0, -2.0, 88.0, 89.0, -104.0, 709.0, 710.0, 3e38, -3e38]

# np.arctan and so on are numpy's names for what C calls atan.
REFERENCES: dict[str, Any] = {
    "erf": np.vectorize(math.erf),
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}


@pytest.fixture(scope="module", params=in_batches(["float-system", "double-system", "float-zig"], 3, "functions"))
def functions(request: pytest.FixtureRequest) -> tuple[str, HostKernel]:
    """All functions in one kernel."""
    name, compiler = request.param.split("-")
    types = [f"const {name}*", f"{name}*", "int", "int"]
    choice = "zig" if compiler == "zig" else None
    kernel = compile_host(math_kernel(name), "apply", types, wave_size=1, block=1, in_loops=False, compiler=choice)
    return name, kernel


def inputs(function: str, name: str) -> Array:
    rng = np.random.default_rng(3)
    parts = []
    for region in RANGES.get(function, [(-100, 100), (-1e10, 1e10)]):
        if region == "wide":
            low, high = (-149.0, 127.0) if name == "float" else (-1074.0, 1022.0)
            parts.append(np.exp2(rng.uniform(low, high, SIZE)))
        else:
            low, high = EXTREMES[name] if region == "extremes" else region
            parts.append(rng.uniform(low, high, SIZE))
    with np.errstate(over="ignore"):
        return np.concatenate([*parts, SPECIAL]).astype(TYPES[name])


def reference(function: str, x: Array) -> Array:
    """The function in a wider type; erf, which numpy lacks, in double."""
    wide = x.astype(np.float64 if function == "erf" else np.longdouble)
    with np.errstate(all="ignore"):
        result: Array = (REFERENCES.get(function) or getattr(np, function))(wide)
    return result


@pytest.mark.parametrize("function", FUNCTIONS)
def test_accuracy(functions: tuple[str, HostKernel], function: str) -> None:
    name, kernel = functions
    x = inputs(function, name)
    y = np.empty_like(x)
    kernel.launch([x, y, FUNCTIONS.index(function), x.size], 1)
    wide = reference(function, x)
    with np.errstate(all="ignore"):
        expected = wide.astype(x.dtype)
        unit = np.spacing(np.abs(expected))
        finite = np.isfinite(expected) & np.isfinite(y)
        error = np.where(finite, np.abs(y.astype(wide.dtype) - wide) / unit, 0)
        same = finite | (y == expected) | (np.isnan(y) & np.isnan(expected))
        # Within the last bit of overflow either side is right.
        same |= np.abs(np.where(np.isinf(y), expected, y)) >= np.finfo(x.dtype).max * (1 - 1e-6)
    assert np.all(same), f"{x[~same]}: {y[~same]}, not {expected[~same]}"
    worst = int(error.argmax())
    assert error[worst] <= LARGEST_ERROR, f"{function}({x[worst]!r}) = {y[worst]!r}, not {expected[worst]!r}"


ODD = ["sin", "tan", "tanh", "erf", "expm1", "asin", "atan", "sinh", "asinh", "atanh", "round", "trunc"]


@pytest.mark.parametrize("function", ODD)
def test_odd_functions_keep_the_sign_of_zero(functions: tuple[str, HostKernel], function: str) -> None:
    name, kernel = functions
    x = np.array([0.0, -0.0], TYPES[name])
    y = np.ones_like(x)
    kernel.launch([x, y, FUNCTIONS.index(function), 2], 1)
    assert y.tolist() == [0, 0]
    assert np.signbit(y).tolist() == [False, True]


@pytest.mark.parametrize("name", TYPES)
class TestPow:
    def test_accuracy(self, name: str) -> None:
        rng = np.random.default_rng(4)
        wide = 1 if name == "float" else 8
        bases = [rng.uniform(0, 10, SIZE), np.exp(rng.uniform(-40, 40, SIZE)), rng.uniform(0.5, 2, SIZE)]
        powers = [rng.uniform(-10, 10, SIZE), rng.uniform(-2, 2, SIZE), rng.uniform(-120, 120, SIZE) * wide]
        x, y = np.concatenate(bases).astype(TYPES[name]), np.concatenate(powers).astype(TYPES[name])
        got = evaluate("gen::pow(a, b)", {f"{name} a": x, f"{name} b": y}, name)
        expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        tolerance = 5e-7 if name == "float" else 1e-14
        normal = expected > np.finfo(TYPES[name]).tiny
        assert np.max(np.abs(got / expected - 1)[normal]) < tolerance

    def test_special_values(self, name: str) -> None:
        values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 2.5, -2.5]
        values += [1e30, -1e30, 1e-30, 16777216.0, 16777217.0, 1e-40, -1e-40]
        column = np.array(values, TYPES[name])
        x, y = (m.ravel().copy() for m in np.meshgrid(column, column))
        got = evaluate("gen::pow(a, b)", {f"{name} a": x, f"{name} b": y}, name)
        with np.errstate(all="ignore"):
            expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(TYPES[name])
        np.testing.assert_allclose(got, expected, rtol=5e-7 if name == "float" else 1e-14)
        assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(expected)[~np.isnan(expected)])


def test_fma_rounds_once() -> None:
    x = np.full(4, 1 + 2.0**-12, np.float32)
    got = evaluate("gen::fma(a, a, -1.0f)", {"float": x}, "float")
    assert np.all(got == np.float32(2.0**-11 + 2.0**-24))
    plain = evaluate("a * a - 1.0f", {"float": x}, "float")
    assert np.all(plain == np.float32(2.0**-11))  # nothing is contracted


@pytest.mark.parametrize("name", TYPES)
def test_remainders(name: str) -> None:
    """Exact, whatever the quotient is, with numpy's signs, zeros and nans."""
    rng = np.random.default_rng(5)
    values = [0.0, -0.0, 1.0, -1.0, 3.0, -2.5, 5.5, 1e30, -1e30, 1e-30, 1e-40, np.inf, -np.inf, np.nan, 16777217.0]
    column = np.concatenate([values, rng.uniform(-100, 100, 40), np.exp(rng.uniform(-60, 60, 40))]).astype(TYPES[name])
    x, y = (m.ravel().copy() for m in np.meshgrid(column, column))
    for function, compute in (("trunc_mod", np.fmod), ("floor_mod", np.remainder)):
        got = evaluate(f"gen::{function}(a, b)", {f"{name} a": x, f"{name} b": y}, name)
        with np.errstate(all="ignore"):
            expected = compute(x, y)
        np.testing.assert_array_equal(got, expected, err_msg=function)
        number = ~np.isnan(expected)
        assert np.array_equal(np.signbit(got[number]), np.signbit(expected[number])), function
