"""Meanings over numpy arrays: arithmetic, functions, conversions and rounding, against references."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genrw.engine.ir.dtypes import DTYPES, dtype_name, numpy_dtype
from genrw.engine.language.array_functions import array_functions
from genrw.engine.language.arrays import Array
from genrw.engine.language.functions import KINDS, declare
from genrw.engine.language.numeric import compile_numeric
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_expr

Values = npt.NDArray[Any]

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["half", "bf16", "float", "double"]


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def run(text: str, /, precise: bool = False, **env: object) -> Any:
    return compile_numeric(parse_expr(text), precise=precise)(env)


def array(values: object, dtype: str) -> Values:
    return np.array(values).astype(numpy_dtype(dtype)) if dtype in FLOATS else np.array(values, numpy_dtype(dtype))


def failure(text: str, /, **env: object) -> str:
    with pytest.raises(GenrwError) as caught:
        run(text, **env)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    return diagnostic.message


def same(result: Values, expected: object, dtype: str) -> None:
    """Equal in value and type; nan equals nan, and zeros need the same sign."""
    assert isinstance(result, np.ndarray)
    assert dtype_name(result.dtype) == dtype
    wanted = np.array(expected, float if DTYPES[dtype].is_float else object)
    assert result.shape == wanted.shape
    if DTYPES[dtype].is_float:
        wide = result.astype(np.float64)
        np.testing.assert_array_equal(wide, wanted)
        np.testing.assert_array_equal(np.signbit(wide[wide == 0]), np.signbit(wanted[wide == 0]))
    else:
        np.testing.assert_array_equal(result.astype(object), wanted)


# ---- integers, against Python's


def wrapped(value: int, dtype: str) -> int:
    limits = DTYPES[dtype]
    return (value - int(limits.smallest)) % 2**limits.bits + int(limits.smallest)


def truncated_quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "x + y": lambda a, b: a + b,
    "x - y": lambda a, b: a - b,
    "x * y": lambda a, b: a * b,
    "x / y": truncated_quotient,
    "x // y": lambda a, b: a // b if b else 0,
    "x % y": lambda a, b: a % b if b else 0,
    "fmod(x, y)": lambda a, b: a - truncated_quotient(a, b) * b if b else 0,
    "x & y": lambda a, b: a & b,
    "x | y": lambda a, b: a | b,
    "x ^ y": lambda a, b: a ^ b,
    "min(x, y)": min,
    "max(x, y)": max,
    "-x": lambda a, _: -a,
    "~x": lambda a, _: ~a,
    "abs(x)": lambda a, _: abs(a),
    "sign(x)": lambda a, _: (a > 0) - (a < 0),
    "floor(x)": lambda a, _: a,
    "clamp(x, 3, 90)": lambda a, _: min(max(a, 3), 90),
    "x ** 3": lambda a, _: a**3,
    "fma(x, y, x)": lambda a, b: a * b + a,
}


def integers(dtype: str) -> st.SearchStrategy[int]:
    low, high = int(DTYPES[dtype].smallest), int(DTYPES[dtype].largest)
    edges = [v for v in (low, low + 1, -2, -1, 0, 1, 2, 7, high - 1, high) if v >= low]
    return st.sampled_from(edges) | st.integers(low, high)


@pytest.mark.parametrize("text", INTEGER_OPERATORS)
@given(data=st.data())
def test_integer_operators_wrap(text: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    pairs = data.draw(st.lists(st.tuples(integers(dtype), integers(dtype)), min_size=1, max_size=6))
    x, y = (array([p[i] for p in pairs], dtype) for i in (0, 1))
    expected = [wrapped(INTEGER_OPERATORS[text](a, b), dtype) for a, b in pairs]
    same(run(text, x=x, y=y), expected, dtype)
    same(run(text, x=x[0], y=y[0]), expected[0], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_shifts_and_powers(dtype: str, data: st.DataObject) -> None:
    a, b = data.draw(integers(dtype)), data.draw(integers(dtype))
    inside = 0 <= b < DTYPES[dtype].bits
    x, y = array([a], dtype), array([b], dtype)
    same(run("x << y", x=x, y=y), [wrapped(a << b, dtype) if inside else 0], dtype)
    same(run("x >> y", x=x, y=y), [a >> b if inside else -1 if a < 0 else 0], dtype)
    power = pow(a, b, 2 ** DTYPES[dtype].bits) if b >= 0 else {1: 1, -1: 1 - 2 * (b % 2)}.get(a, 0)
    same(run("x ** y", x=x, y=y), [wrapped(power, dtype)], dtype)


@given(data=st.data())
def test_comparisons_of_integers(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    a, b = data.draw(integers(dtype)), data.draw(integers("int64"))
    x = array([a], dtype)
    for op, expected in {
        "<": a < b,
        "<=": a <= b,
        "==": a == b,
        "!=": a != b,
        ">": a > b,
        ">=": a >= b,
    }.items():
        same(run(f"x {op} {b}", x=x), [expected], "bool")
        same(
            run(f"{b} {op} x", x=x),
            [{"<": b < a, "<=": b <= a, ">": b > a, ">=": b >= a}.get(op, expected)],
            "bool",
        )


# ---- floats

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.75,
    -7.25,
    1e30,
    -1e-30,
    math.inf,
    -math.inf,
    math.nan,
]
SPECIAL_PAIRS = [(a, b) for a in SPECIAL for b in SPECIAL]


def python_min(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b)


def python_max(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_min_and_max_propagate_nan(dtype: str) -> None:
    x, y = (array([p[i] for p in SPECIAL_PAIRS], dtype) for i in (0, 1))
    pairs = list(zip(x.astype(float).tolist(), y.astype(float).tolist(), strict=True))
    np.testing.assert_array_equal(run("min(x, y)", x=x, y=y), [python_min(a, b) for a, b in pairs])
    np.testing.assert_array_equal(run("max(x, y)", x=x, y=y), [python_max(a, b) for a, b in pairs])
    assert np.isnan(run("max(x, 1, y)", x=array([math.nan], dtype), y=array([2], dtype)))[0]


@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("text", ["x ** y", "x / y", "x % y", "min(x, y)", "max(x, y)"])
def test_repeated_operands_are_like_written_out_ones(text: str, dtype: str) -> None:
    """numpy has loops of its own for operands that are repeated."""
    x = array(SPECIAL, dtype)
    for number in SPECIAL:
        repeated = np.broadcast_to(array([number], dtype), x.shape)
        got, want = run(text, x=x, y=repeated), run(text, x=x, y=repeated.copy())
        np.testing.assert_allclose(got, want, 4 * np.finfo(x.dtype).eps)
        signed = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(want[signed]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_functions(dtype: str) -> None:
    x = array([0.5, 1.5, 2.5, -0.5, -1.5, 2.25, -2.75, math.inf, math.nan], dtype)
    same(run("round(x)", x=x), [0.0, 2.0, 2.0, -0.0, -2.0, 2.0, -3.0, math.inf, math.nan], dtype)
    same(run("floor(x)", x=x), [0.0, 1.0, 2.0, -1.0, -2.0, 2.0, -3.0, math.inf, math.nan], dtype)
    same(run("ceil(x)", x=x), [1.0, 2.0, 3.0, -0.0, -1.0, 3.0, -2.0, math.inf, math.nan], dtype)
    same(run("trunc(x)", x=x), [0.0, 1.0, 2.0, -0.0, -1.0, 2.0, -2.0, math.inf, math.nan], dtype)
    same(run("sign(x)", x=x), [1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, math.nan], dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_predicates(dtype: str) -> None:
    x = array([1.0, math.inf, -math.inf, math.nan], dtype)
    same(run("isnan(x)", x=x), [False, False, False, True], "bool")
    same(run("isinf(x)", x=x), [False, True, True, False], "bool")
    same(run("isfinite(x)", x=x), [True, False, False, False], "bool")
    same(run("not (x < 2) or x != x", x=x), [False, True, False, True], "bool")
    same(run("0 < x < inf", x=x), [True, False, False, False], "bool")


def test_predicates_of_integers() -> None:
    x = array([1, 2], "int8")
    same(run("isnan(x)", x=x), [False, False], "bool")
    same(run("isfinite(x)", x=x), [True, True], "bool")


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "expm1", "log1p", "atan", "sinh"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_functions_are_those_of_python(name: str, dtype: str) -> None:
    x = array(np.linspace(0.01, 9, 300), dtype)
    expected = [getattr(math, name)(v) for v in x.astype(float).tolist()]
    np.testing.assert_allclose(
        run(f"{name}(x)", x=x), expected, rtol=8 * DTYPES[dtype].epsilon, atol=DTYPES[dtype].epsilon
    )
    assert run(f"{name}(x)", x=x).dtype == numpy_dtype(dtype)


def test_outside_their_domain_functions_give_no_warning() -> None:
    x = array([-1.0, 0.0, math.inf], "float")
    np.testing.assert_array_equal(run("sqrt(x)", x=x), np.float32([math.nan, 0, math.inf]))
    np.testing.assert_array_equal(run("rsqrt(x)", x=x), np.float32([math.nan, math.inf, 0]))
    np.testing.assert_array_equal(run("log(x)", x=x), np.float32([math.nan, -math.inf, math.inf]))
    np.testing.assert_array_equal(run("1 / x", x=x), np.float32([-1, math.inf, 0]))
    np.testing.assert_array_equal(run("exp(x * x * 1000)", x=x), np.float32([math.inf, 1, math.inf]))


@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_erf_is_accurate_to_double(values: list[float]) -> None:
    result = run("erf(x)", x=np.array(values))
    expected = np.array([math.erf(v) for v in values])
    np.testing.assert_allclose(result, expected, rtol=5e-16, atol=1e-323)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected) | np.signbit(result) & np.isnan(expected))


def test_erfc_is_accurate_where_little_is_left() -> None:
    x = np.concatenate([np.linspace(-8, 26, 2000), [0.0, -0.0, np.inf, -np.inf, np.nan]])
    np.testing.assert_allclose(run("erfc(x)", x=x), [math.erfc(v) for v in x.tolist()], rtol=2e-13)


def test_erf_over_its_ranges() -> None:
    x = np.concatenate([np.linspace(-7, 7, 40001), np.logspace(-320, 0, 2000), [0.46875, 4.0, -4.0, 6.0]])
    np.testing.assert_allclose(run("erf(x)", x=x), [math.erf(v) for v in x.tolist()], rtol=5e-16, atol=1e-323)
    narrow = run("erf(x)", x=x.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, [math.erf(v) for v in x.astype(np.float32).tolist()], rtol=6e-8, atol=1e-45)


# ---- conversion


def python_convert(value: float, dtype: str) -> int:
    limits = DTYPES[dtype]
    if math.isnan(value):
        return 0
    return int(limits.smallest if value <= limits.smallest else limits.largest if value >= limits.largest else value)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_float_to_integer_truncates_and_saturates(source: str, dtype: str, data: st.DataObject) -> None:
    near = [s * 2.0**k + d for k in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1) for d in (-1, -0.5, 0, 0.5, 1)]
    drawn = data.draw(st.lists(st.floats() | st.sampled_from([*near, *SPECIAL]), min_size=1, max_size=9))
    with np.errstate(over="ignore"):
        x = array(np.array(drawn), source)
    expected = [python_convert(v, dtype) for v in x.astype(float).tolist()]
    same(run(f"convert(x, {dtype})", x=x), expected, dtype)


@given(data=st.data())
def test_integer_to_integer_wraps(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from(INTEGERS)), data.draw(st.sampled_from(INTEGERS))
    value = data.draw(integers(source))
    same(run(f"convert(x, {target})", x=array([value], source)), [wrapped(value, target)], target)


def nearest(value: float, dtype: str) -> float:
    """Correct rounding of a double by search among the neighbours of numpy's answer."""
    with np.errstate(over="ignore"):
        first = np.array(value).astype(numpy_dtype(dtype))
    if not np.isfinite(first.astype(float)) or first == 0:
        return float(first)
    step = 2.0 ** (math.frexp(float(first))[1] - 1) * DTYPES[dtype].epsilon
    candidates = [float(first) + k * step / 2 for k in range(-4, 5)]
    stored = {float(np.array(c).astype(numpy_dtype(dtype))) for c in candidates} - {math.inf, -math.inf}
    exact = [s for s in stored if abs(s - value) == min(abs(s - value) for s in stored)]
    ties = [s for s in exact if round(s / step) % 2 == 0]
    return ties[0] if len(exact) > 1 else exact[0]


@given(st.floats(-1e4, 1e4).filter(lambda v: abs(v) > 1e-3), st.sampled_from(["half", "bf16"]))
def test_double_rounds_once(value: float, dtype: str) -> None:
    assert run(f"convert(x, {dtype})", x=np.array([value])).astype(float)[0] == nearest(value, dtype)


def test_double_to_bf16_does_not_round_twice() -> None:
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-8, -1 - 2.0**-8 - 2.0**-40])
    same(run("convert(x, bf16)", x=x), [1.0078125, 1.0, 1.0, -1.0078125], "bf16")
    same(
        run("convert(x, bf16)", x=array([2**24 + 2**16 + 1, 2**24 + 2**16], "int32")),
        [2**24 + 2**17, 2**24],
        "bf16",
    )


def test_conversions_to_and_from_bool() -> None:
    same(run("convert(x, bool)", x=np.array([0.0, -0.0, 0.3, math.nan])), [False, False, True, True], "bool")
    same(run("convert(x, bool)", x=array([0, 2, -1], "int8")), [False, True, True], "bool")
    same(run("convert(x, half)", x=np.array([True, False])), [1.0, 0.0], "half")


def test_conversion_inside_an_expression_rounds() -> None:
    x = np.array([1 + 2.0**-20])
    same(run("convert(convert(x, half), double) * 2", x=x), [2.0], "double")
    same(run("convert(convert(x, half), double) * 2", precise=True, x=x), [2 + 2.0**-19], "double")


# ---- types and rounding


@pytest.mark.parametrize("dtype", ["half", "bf16"])
def test_small_floats_round_once_at_the_end(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, y = (array(rng.normal(size=500), dtype) for _ in range(2))
    a, b = x.astype(np.float32), y.astype(np.float32)
    expected = (a * b + a) / (np.float32(1) + b * b)
    result = run("(x * y + x) / (1 + y * y)", x=x, y=y)
    assert result.dtype == numpy_dtype(dtype)
    np.testing.assert_array_equal(result, expected.astype(numpy_dtype(dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_precise_mode_computes_in_double(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = array(rng.normal(size=100), dtype)
    wide = x.astype(np.float64)
    result = run("exp(x) / 3 + x * x", precise=True, x=x)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, np.exp(wide) / 3 + wide * wide)
    assert run("lowest(x.type)", precise=True, x=Array(wide, "int8")) == -128


def test_numbers_take_on_the_type() -> None:
    for dtype in FLOATS:
        same(run("x + 1 * 0.5", x=array([1], dtype)), [1.5], dtype)
    for dtype in INTEGERS:
        same(run("x + 1", x=array([1], dtype)), [2], dtype)
    same(run("x * 0.5", x=array([3], "int32")), [1.5], "double")
    same(run("x * (x > 1)", x=array([3.0, 1.0], "half")), [3.0, 0.0], "half")
    same(run("x + 1", x=np.array([True])), [2], "int32")
    same(run("x + y", x=array([1], "int8"), y=array([200], "uint8")), [201], "int16")
    same(run("x + y", x=array([1], "half"), y=array([2], "float")), [3.0], "float")


def test_a_result_may_be_asked_for_in_a_type() -> None:
    meaning = compile_numeric(parse_expr("1 if x > 0 else 0"))
    x = array([-1.0, 2.0], "half")
    same(meaning({"x": x}), [0, 1], "int64")
    same(meaning({"x": x}, "half"), [0.0, 1.0], "half")
    same(compile_numeric(parse_expr("3"))({}), 3, "int64")
    same(compile_numeric(parse_expr("[x, 2.5]"))({"x": x}, "float")[1], 2.5, "float")


def test_members() -> None:
    x = array(np.zeros((2, 0)), "bf16")
    env = {"x": x}
    same(run("full(x.lens, x.rank + x.elements, x.type)", **env), np.zeros((2, 0)), "bf16")
    assert "has no member `strides`" in failure("x.strides", x=x)


def test_conditions() -> None:
    x, y = array([1.0, -1.0], "half"), array([5.0, 6.0], "half")
    same(run("x if x > 0 else y", x=x, y=y), [1.0, 6.0], "half")
    same(run("where(x > 0, x, 0)", x=x), [1.0, 0.0], "half")
    same(run("1 if 2 > 1 else missing", x=x), 1, "int64")
    same(run("x > 0 and y > 5", x=x, y=y), [False, False], "bool")
    same(run("x > 0 or y > 5", x=x, y=y), [True, True], "bool")
    same(run("2 > 1 and x > 0", x=x), [True, False], "bool")
    same(run("x > 0 and 2 > 1", x=x), [True, False], "bool")
    same(run("x if c else y", c=np.array(True), x=x, y=y), [1.0, -1.0], "half")
    same(run("c and not d", c=np.array([True, True]), d=np.array([True, False])), [False, True], "bool")


def test_rank_and_extent_zero() -> None:
    same(run("x + 1", x=np.float32(2)), np.float32(3), "float")
    same(run("x * y", x=np.zeros((0, 3)), y=np.ones(3)), np.zeros((0, 3)), "double")
    same(run("convert(erf(x), int8)", x=np.zeros((0,))), np.zeros((0,)), "int8")
    same(run("x / y", x=array(7, "int32"), y=array(-2, "int32")), -3, "int32")
    same(run("abs(x)", x=array(-128, "int8")), -128, "int8")


def test_numbers_alone() -> None:
    """Without arrays the language means what it means elsewhere, and elementwise functions give numbers."""
    for text, value in (
        ("7 / 2", 3.5),
        ("floor(7 / 2)", 3),
        ("max([1, 2])", 2),
        ("tanh(0)", 0.0),
        ("pow(2, 3)", 8),
    ):
        assert run(f"full([1], {text}, double)")[0] == value
    assert run("full([1], 1, int8) if isnan(nan) else 0") == 1


# ---- messages


def test_messages() -> None:
    f, b, i = np.zeros(2), np.array([True]), array([1], "int8")
    assert failure("x + y", x=f, y=np.zeros(3)) == "lens {2} and {3} do not broadcast: axis 0 has 2 and 3"
    assert failure("x + y", x=f, y="a") == '`+` takes tensors and numbers, not the string "a"'
    assert failure("x - x", x=b) == "`-` does not take tensors of bool"
    assert failure("x & 1", x=f) == "`&` does not take tensors of double"
    assert failure("exp(x)", x=i) == "`exp` does not take tensors of int8"
    assert failure("x + 300", x=i) == "300 does not fit in int8"
    assert failure("x if x else y", x=i, y=i) == "a condition is true or false, not a tensor of int8"
    assert failure("where(x, x, x)", x=i) == "`where` takes a condition of type bool, not a tensor of int8"
    assert failure("not x", x=i) == "`not` does not take tensors of int8"
    assert failure("x[0]", x=f) == "only a list can be indexed, not a tensor of double"
    assert failure("len(x)", x=f) == "`len` takes a list, not a tensor of double"
    assert failure("min(x)", x=f).startswith("`min` takes two or more tensors")
    assert failure("x", x=np.zeros(1, complex)) == "there is no element type for numpy's complex128"
    assert failure("missing + x", x=f) == "unknown name `missing`"
    assert failure("expp(x)", x=f) == "unknown function `expp`"
    assert failure("log2(1, 2)", x=f) == "`log2` takes 1 argument, not 2"
    assert failure("x + y", x=np.zeros((1 << 20, 1)), y=np.zeros((1, 1 << 20))).endswith(
        "too large to be computed here"
    )


def test_a_tensor_is_no_truth_value() -> None:
    with pytest.raises(GenrwError, match="a single true or false is needed here, not a tensor"):
        run("full([len([d for d in [1] if x > 0])], 0, half)", x=np.zeros(2))


# ---- functions of the caller's, helpers


def test_own_functions_take_and_give_arrays() -> None:
    def total(x: Array) -> Array:
        assert x.values.dtype == np.float32
        return Array(x.values.sum(keepdims=True), x.dtype)

    functions = {"total": declare("total(x: any) -> any", total, "The sum.")}
    meaning = compile_numeric(parse_expr("x / total(x)"), functions=functions)
    same(meaning({"x": array([1.0, 3.0], "half")}), [0.25, 0.75], "half")
    precise = compile_numeric(
        parse_expr("total(x)"),
        precise=True,
        functions={"total": declare("total(x: any) -> any", np_total, "Sum.")},
    )
    assert precise({"x": array([1.0, 3.0], "half")}).dtype == np.float64


def np_total(x: Array) -> Values:
    """A function that gives a plain numpy array."""
    assert x.values.dtype == np.float64
    return np.asarray(x.values.sum())


@pytest.mark.parametrize("name", sorted(array_functions()))
def test_table_is_documented(name: str) -> None:
    function = array_functions()[name]
    assert function.signature.startswith(f"{name}(")
    assert function.doc.endswith(".")
    assert all(parameter.kind in KINDS for parameter in function.parameters)
    assert sorted(array_functions()) == sorted(array_functions(True))


POOL: list[object] = [
    np.zeros((2, 3), np.float32), np.float16(1.5), np.array([1, -1], np.int8), np.array([True, False]),
    np.zeros((0,), ml_dtypes.bfloat16), np.array([[2**63]], np.uint64), 1, -3, 2.5, math.nan, True,
    "edge", "half",    (), (0,), (1, 0), (2, 3), (-1,), (np.zeros(2), np.zeros(2)), (1.5,), ((1,), 2),
]  # fmt: skip


@given(st.data())
def test_whatever_the_arguments_the_error_is_a_message(data: st.DataObject) -> None:
    function = array_functions()[data.draw(st.sampled_from(sorted(array_functions())))]
    most = len(function.parameters) + (2 if function.variadic else 0)
    args = data.draw(st.lists(st.sampled_from(POOL), min_size=function.required, max_size=most))
    env = {f"a{i}": arg for i, arg in enumerate(args)}
    try:
        compile_numeric(parse_expr(f"{function.name}({', '.join(env)})"))(env)
    except GenrwError as failed:
        found = failed.diagnostics
    else:
        return
    assert len(found) == 1


@pytest.mark.filterwarnings("error::SyntaxWarning")
@pytest.mark.parametrize("text", ["1 if 2.5 else 3", "2 and true", '"a"[0]', "(1).b"])
def test_constants_out_of_place_are_refused_without_a_warning(text: str) -> None:
    with pytest.raises(GenrwError):
        run(text)
