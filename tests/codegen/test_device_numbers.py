"""Types of the device header: half and bf16, conversions, integers, limits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from device_kernels import DTYPES, elementwise, evaluate

from genrw.codegen.runtime.host import compile_host

Array = npt.NDArray[Any]

ALL_WORDS = np.arange(1 << 16, dtype=np.uint16)
SMALL_FLOATS = {"gen::half": np.dtype(np.float16), "gen::bf16": np.dtype(ml_dtypes.bfloat16)}
COMPILERS = [None, "zig"]  # g++ converts half by integer arithmetic, clang by the processor's instructions


def same_bits(got: Array, expected: Array) -> bool:
    """Equal bit by bit, where any nan equals any other."""
    with np.errstate(invalid="ignore"):
        nan = np.isnan(got.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    word = np.dtype(f"u{got.itemsize}")
    return bool(np.all(nan | (got.view(word) == expected.view(word))))


def neighbours(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """All pairs of a finite value and the next greater one."""
    values = ALL_WORDS.view(dtype)
    finite = np.unique(values[np.isfinite(values.astype(np.float32))].astype(np.float64)).astype(dtype)
    return finite[:-1], finite[1:]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", SMALL_FLOATS)
class TestSmallFloats:
    def test_every_value_to_float(self, name: str, compiler: str | None) -> None:
        words = ALL_WORDS.view(SMALL_FLOATS[name])
        got = evaluate("float(a)", {name: words}, "float", compiler=compiler)
        assert same_bits(got, words.astype(np.float32))

    def test_every_value_survives(self, name: str, compiler: str | None) -> None:
        words = ALL_WORDS.view(SMALL_FLOATS[name])
        assert same_bits(evaluate(f"{name}(float(a))", {name: words}, name, compiler=compiler), words)

    def test_from_float(self, name: str, compiler: str | None) -> None:
        rng = np.random.default_rng(0)
        below, above = (v.astype(np.float64) for v in neighbours(SMALL_FLOATS[name]))
        words = rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint64).astype(np.uint32)
        x = np.concatenate([((below + above) / 2).astype(np.float32), words.view(np.float32)])
        with np.errstate(all="ignore"):
            expected = x.astype(SMALL_FLOATS[name])
        assert same_bits(evaluate(f"{name}(a)", {"float": x}, name, compiler=compiler), expected)

    def test_from_double_rounds_once(self, name: str, compiler: str | None) -> None:
        """Just beside a midpoint a float in between would be the midpoint itself, and round to even."""
        below, above = neighbours(SMALL_FLOATS[name])
        low, high = below.astype(np.float64), above.astype(np.float64)
        middle, little = (low + high) / 2, (high - low) * 2.0**-40
        even = np.where(below.view(np.uint16) & 1 == 0, below, above)
        for x, expected in ((middle, even), (middle + little, above), (middle - little, below)):
            got = evaluate(f"{name}(a)", {"double": x}, name, compiler=compiler)
            assert np.array_equal(got.astype(np.float32), expected.astype(np.float32))


def test_compare_small_floats() -> None:
    x = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -2.0], np.float16)
    a, b = (m.ravel().copy() for m in np.meshgrid(x, x))
    for text, function in {"<": np.less, "==": np.equal, ">=": np.greater_equal, "!=": np.not_equal}.items():
        got = evaluate(f"a {text} b", {"gen::half a": a, "gen::half b": b}, "bool")
        assert np.array_equal(got, function(a, b))


HALVES = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def drawn_halves(count: int) -> list[Array]:
    """Arrays of any halves but zeros, whose signs `min` and `max` may choose."""
    rng = np.random.default_rng(0)
    words = ALL_WORDS[(ALL_WORDS & 0x7FFF) != 0]
    return [rng.choice(words, 1 << 20).view(np.float16) for _ in range(count)]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", HALVES)
def test_arrays_of_halves_are_rounded_once(name: str, compiler: str | None) -> None:
    """A double holds every sum and product of two halves exactly, so that the expected values are rounded once."""
    a, b = drawn_halves(2)
    with np.errstate(all="ignore"):
        expected = HALVES[name](a.astype(np.float64), b.astype(np.float64)).astype(np.float16)
    for operands, i in (("gen::array<gen::half, 3>{b, b, a}, b", 2), ("a, gen::array<gen::half, 2>{b, a}", 0)):
        got = evaluate(
            f"gen::halves::{name}({operands})[{i}]",
            {"gen::half a": a, "gen::half b": b},
            "gen::half",
            compiler=compiler,
        )
        assert same_bits(got, expected)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_products_and_sums_of_arrays_of_halves(compiler: str | None) -> None:
    a, b, c = drawn_halves(3)
    text = "gen::halves::fma(gen::array<gen::half, 2>{c, a}, b, gen::array<gen::half, 2>{b, c})[1]"
    got = evaluate(
        text, {f"gen::half {n}": v for n, v in zip("abc", (a, b, c), strict=True)}, "gen::half", compiler=compiler
    )
    with np.errstate(all="ignore"):
        expected = (a.astype(np.float32) * b.astype(np.float32) + c.astype(np.float32)).astype(np.float16)
    assert same_bits(got, expected)


# ---- conversions


def exact(value: Any) -> Fraction | float:
    """A number as a fraction, or as itself if it is not finite."""
    number = float(value) if isinstance(value, np.floating | ml_dtypes.bfloat16) else value
    if isinstance(number, float) and not np.isfinite(number):
        return number
    return Fraction(int(number)) if isinstance(number, np.integer | np.bool_) else Fraction(number)


def rounded(value: Fraction, bits: int, lowest_exponent: int, dtype: Any) -> Any:
    """Nearest even with so many bits of mantissa."""
    if value == 0:
        return dtype(0)
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - bits - 1
    while abs(value) >= Fraction(2) ** (exponent + bits):
        exponent += 1
    exponent = max(exponent, lowest_exponent)
    with np.errstate(over="ignore"):
        return dtype(float(round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent))


FORMATS = {
    **{np.float16: (11, -24), ml_dtypes.bfloat16: (8, -133)},
    **{np.float32: (24, -149), np.float64: (53, -1074)},
}


def converted(value: Any, dtype: Any) -> Any:
    """gen::convert in exact arithmetic."""
    number = exact(value)
    if dtype is np.bool_:
        return number != 0
    if dtype in FORMATS:
        return dtype(number) if isinstance(number, float) else rounded(number, *FORMATS[dtype], dtype)
    info = np.iinfo(dtype)
    if isinstance(value, np.integer | np.bool_):
        span = 1 << info.bits
        return dtype((int(value) - int(info.min)) % span + int(info.min))
    if isinstance(number, float):
        return dtype(0 if np.isnan(number) else info.max if number > 0 else info.min)
    return dtype(min(max(int(number), int(info.min)), int(info.max)))


def samples(dtype: Any) -> Array:
    """Values of a type at and around everything that conversions depend on."""
    rng = np.random.default_rng(1)
    if dtype is np.bool_:
        return np.array([False, True])
    edges = [0, 1, 2, 3, 127, 128, 255, 256, 32767, 32768, 65504, 65519, 65520, 65535, 65536, 70001]
    edges += [2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**62 + 2**54, 2**62 + 2**54 + 1]
    edges += [2**63 - 1, 2**63, 2**64 - 1]
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        within = [e for v in edges for e in (v, -v, -v - 1) if info.min <= e <= info.max]
        shifts = rng.integers(0, info.bits, 60, dtype=dtype)
        drawn = rng.integers(info.min, info.max, 60, dtype=dtype) >> shifts
        return np.array([*within, *drawn], dtype=dtype)
    fine = [0.25, 0.5, 0.75, 0.99, 1.5, 2.5, 126.5, 127.99, 128.5, 255.5, 1e-8, 1e-40, 1e-46, 1e20, 1e39]
    special = [np.inf, np.nan, -0.0, 1e300]
    drawn = np.concatenate([rng.normal(0, 1e4, 30), rng.normal(0, 1e18, 30)])
    values = np.array([*map(float, edges), *fine, *special, *drawn])
    with np.errstate(over="ignore"):
        return np.concatenate([values, -values]).astype(dtype)


@pytest.mark.parametrize("source", DTYPES)
def test_convert(source: str) -> None:
    targets = list(DTYPES)
    stores = " ".join(f"y{i}[i] = gen::convert<{t}>(x[i]);" for i, t in enumerate(targets))
    parameters = ", ".join(f"{t}* __restrict__ y{i}" for i, t in enumerate(targets))
    text = f"""
GEN_KERNEL(1) each(const {source}* __restrict__ x, {parameters}, int n)
{{
    for (int i = 0; i < n; i++) {{ {stores} }}
}}
"""
    types = [f"const {source}*", *(f"{t}*" for t in targets), "int"]
    kernel = compile_host(text, "each", types, wave_size=1, block=1, in_loops=False)
    x = samples(DTYPES[source])
    results = [np.zeros(x.shape, DTYPES[t]) for t in targets]
    kernel.launch([x, *results, x.size], 1)
    for target, result in zip(targets, results, strict=True):
        for value, got in zip(x, result, strict=True):
            expected = converted(value, DTYPES[target])
            both_nan = got != got and expected != expected
            assert both_nan or got == expected, f"{source} {value!r} as {target}: {got!r}, not {expected!r}"


# ---- integers

DIVISIONS = ["gen::int8", "gen::uint8", "gen::int32", "gen::int64", "gen::uint64"]


def pairs(dtype: Any) -> tuple[Array, Array]:
    info = np.iinfo(dtype)
    edge = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 7, 10, 64]
    edge += [-e for e in (1, 2, 3, 7, 10, 64)] if info.min < 0 else []
    values = np.array(edge, dtype=dtype)
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


@pytest.mark.parametrize("name", DIVISIONS)
def test_division(name: str) -> None:
    dtype = DTYPES[name]
    a, b = pairs(dtype)
    bits = np.iinfo(dtype).bits

    def wrapped(values: list[int]) -> Array:
        return np.array([v % (1 << bits) for v in values], dtype=f"u{bits // 8}").view(dtype)

    whole = [(int(p), int(q)) for p, q in zip(a, b, strict=True)]
    signs = [(-1 if (p < 0) != (q < 0) else 1) for p, q in whole]
    truncated = [s * (abs(p) // abs(q)) if q else 0 for s, (p, q) in zip(signs, whole, strict=True)]
    expected = {
        "trunc_div": truncated,
        "trunc_mod": [p - t * q if q else 0 for t, (p, q) in zip(truncated, whole, strict=True)],
        "floor_div": [p // q if q else 0 for p, q in whole],
        "floor_mod": [p % q if q else 0 for p, q in whole],
    }
    for function, values in expected.items():
        got = evaluate(f"gen::{function}(a, b)", {f"{name} a": a, f"{name} b": b}, name)
        assert np.array_equal(got, wrapped(values)), function


@pytest.mark.parametrize("name", DIVISIONS)
def test_arithmetic_wraps(name: str) -> None:
    a, b = pairs(DTYPES[name])
    with np.errstate(over="ignore"):
        for function, expected in {"add": a + b, "sub": a - b, "mul": a * b}.items():
            got = evaluate(f"gen::{function}(a, b)", {f"{name} a": a, f"{name} b": b}, name)
            assert np.array_equal(got, expected)


def test_mixed_index_types() -> None:
    x = np.array([-7, 5, 1 << 40], np.int64)
    assert evaluate("gen::floor_div(a, 4)", {"gen::int64": x}, "gen::int64").tolist() == [-2, 1, 1 << 38]
    assert evaluate("gen::floor_mod(a, 4)", {"gen::int64": x}, "gen::int64").tolist() == [1, 1, 0]
    assert evaluate("gen::min(a, 6)", {"gen::int64": x}, "gen::int64").tolist() == [-7, 5, 6]


@pytest.mark.parametrize("name", ["float", "double", "gen::half", "gen::bf16", "gen::int32", "gen::uint8"])
def test_min_max_abs(name: str) -> None:
    dtype = DTYPES[name]
    special: list[float] = [0.0, 1.0, 2.0, 100.0] + ([] if name == "gen::uint8" else [-1.0, -50.0])
    special += [np.inf, -np.inf, np.nan] if np.dtype(dtype).kind not in "iu" else []
    values = np.array(special, np.float64).astype(dtype)
    a, b = (m.ravel().copy() for m in np.meshgrid(values, values))
    for function, reference in {"min": np.minimum, "max": np.maximum}.items():
        got = evaluate(f"gen::{function}(a, b)", {f"{name} a": a, f"{name} b": b}, name)
        wide = reference(a.astype(np.float64), b.astype(np.float64))
        assert np.array_equal(got.astype(np.float64), wide, equal_nan=True)
    got = evaluate("gen::abs(a)", {name: values}, name)
    assert np.array_equal(got.astype(np.float64), np.abs(values.astype(np.float64)), equal_nan=True)
    wide = values.astype(np.float64)
    assert np.array_equal(evaluate("gen::isnan(a)", {name: values}, "bool"), np.isnan(wide))
    assert np.array_equal(evaluate("gen::isinf(a)", {name: values}, "bool"), np.isinf(wide))


def test_limits_and_constants() -> None:
    checks = [
        "gen::lowest<gen::int8>() == -128 && gen::highest<gen::int8>() == 127",
        "gen::lowest<gen::uint16>() == 0 && gen::highest<gen::uint16>() == 65535",
        "gen::lowest<gen::int64>() == -9223372036854775807ll - 1",
        "gen::highest<gen::uint64>() == 18446744073709551615ull",
        "gen::highest<bool>() && !gen::lowest<bool>()",
        "gen::highest<float>() == gen::infinity<float>()",
        "gen::lowest<double>() == -gen::infinity<double>()",
        "gen::lowest<gen::half>().word == 0xfc00 && gen::highest<gen::bf16>().word == 0x7f80",
        "gen::isnan(gen::nan<float>()) && gen::isnan(gen::nan<gen::half>())",
        "gen::half(1.5f).word == 0x3e00 && gen::bf16(-2.0).word == 0xc000",
        "gen::half(1e-7f).word == 2 && gen::half(1e30f).word == 0x7c00",
        "gen::convert<gen::int8>(300.5f) == 127 && gen::convert<bool>(gen::half(0.5f))",
        "gen::array<int, 3>{1, 2, 3}[2] == 3 && gen::array<int, 3>::size() == 3",
    ]
    asserts = "\n".join(f'static_assert({check}, "");' for check in checks)
    elementwise(f"[&] {{ {asserts} return a; }}()", ["float"], "float")
