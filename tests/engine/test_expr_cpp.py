"""Expressions as C++: their text, and that compiled it computes what the numpy meaning says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from genrw.codegen.runtime.host import compile_host
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.language.cpp_expr import TypeWord, cpp_expr, cpp_number
from genrw.engine.language.numeric import compile_numeric
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_expr
from genrw.grammar.rw_tree import PRECEDENCES

Values = npt.NDArray[Any]
NAMES = {name: name for name in ("x", "y", "z", "c", "a", "b")}


def cpp(text: str, dtype: str = "float", **types: str) -> tuple[str, str]:
    return cpp_expr(parse_expr(text), NAMES, dtype, types)


TEXTS = [
    ("x + y * z", "float", "x + y * z", "add"),
    ("(x + y) * z", "float", "(x + y) * z", "mul"),
    ("x - (y - z)", "float", "x - (y - z)", "add"),
    ("x - y - z", "float", "x - y - z", "add"),
    ("x / (y * z)", "float", "x / (y * z)", "mul"),
    ("-x * -1", "float", "-x * -1.0f", "mul"),
    ("-(x + y)", "float", "-(x + y)", "unary"),
    ("x - -y", "float", "x - -y", "add"),
    ("1 / (1 + exp(-x))", "float", "1.0f / (1.0f + gen::exp(-x))", "mul"),
    ("1 / (1 + exp(-x))", "double", "1.0 / (1.0 + gen::exp(-x))", "mul"),
    ("1 / (1 + exp(-x))", "half", "1.0f / (1.0f + gen::exp(-x))", "mul"),
    ("x // 2", "float", "gen::floor(x / 2.0f)", "atom"),
    ("x ** 2", "double", "gen::pow(x, 2.0)", "atom"),
    ("x + 1", "int64", "gen::add<gen::int64>(x, 1)", "atom"),
    ("x * y + 1", "uint32", "x * y + 1", "add"),
    ("-x", "int32", "gen::sub<int>(0, x)", "atom"),
    ("x / y", "int32", "gen::trunc_div<int, int>(x, y)", "atom"),
    ("x // y % 3", "int32", "gen::floor_mod<int, int>(gen::floor_div<int, int>(x, y), 3)", "atom"),
    ("x & y + 1", "uint32", "(x & y + 1)", "atom"),
    ("x << 3", "int32", "x << 3", "shift"),
    ("x << 3", "int8", "gen::int8(x << gen::int8(3))", "atom"),
    ("x << 8", "int8", "gen::shift_left<gen::int8>(x, gen::int8(8))", "atom"),
    ("x >> y", "uint32", "gen::shift_right<gen::uint32>(x, y)", "atom"),
    ("x % y", "float", "gen::floor_mod(x, y)", "atom"),
    ("fmod(x, 2)", "double", "gen::trunc_mod(x, 2.0)", "atom"),
    ("~x", "int32", "~x", "unary"),
    ("max(x, 0)", "int8", "gen::max(x, gen::int8(0))", "atom"),
    ("min(x, y, 2)", "float", "gen::min(gen::min(x, y), 2.0f)", "atom"),
    ("clamp(x, 0, 6)", "float", "gen::min(gen::max(x, 0.0f), 6.0f)", "atom"),
    ("x < y", "float", "x < y", "compare"),
    ("0 <= x < y == z", "float", "0.0f <= x && x < y && y == z", "and"),
    ("(x < y) == (y < z)", "float", "x < y == y < z", "equal"),
    ("x < 1 and (y < 1 or not c)", "float", "x < 1.0f && (y < 1.0f || !c)", "and"),
    ("x < 1 and y < 1 or c", "float", "x < 1.0f && y < 1.0f || c", "or"),
    ("not (x and y)", "bool", "!(x && y)", "unary"),
    ("not x == y", "float", "!(x == y)", "unary"),
    ("x if c else y", "float", "c ? x : y", "cond"),
    ("x if c else y if x < y else 0", "float", "c ? x : x < y ? y : 0.0f", "cond"),
    ("(x if c else y) if x < y else 0", "float", "x < y ? (c ? x : y) : 0.0f", "cond"),
    ("1 if c else 0", "int8", "c ? gen::int8(1) : gen::int8(0)", "cond"),
    ("1 + (x if c else y)", "float", "1.0f + (c ? x : y)", "add"),
    ("where(x < y, x, 1)", "float", "x < y ? x : 1.0f", "cond"),
    ("x * (y > 0)", "float", "x * (y > 0.0f)", "mul"),
    ("-inf", "float", "-gen::infinity<float>()", "unary"),
    (
        "nan if isnan(x) else inf",
        "double",
        "gen::isnan(x) ? gen::nan<double>() : gen::infinity<double>()",
        "cond",
    ),
    ("isfinite(x)", "float", "gen::abs(x) < gen::infinity<float>()", "compare"),
    ("isfinite(x)", "int8", "true", "atom"),
    ("lowest(type)", "float", "gen::lowest<float>()", "atom"),
    ("lowest(type)", "bf16", "gen::lowest<gen::bf16>()", "atom"),
    ("highest(int64)", "float", "gen::highest<gen::int64>()", "atom"),
    ("highest(x.type)", "half", "gen::highest<gen::half>()", "atom"),
    ("convert(x, int8)", "float", "gen::convert<gen::int8>(x)", "atom"),
    ("convert(x, float) * 0.5", "int32", "gen::convert<float>(x) * 0.5f", "mul"),
    ("x * 0.5", "int32", "x * 0.5", "mul"),
    ("sign(x)", "float", "x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x + 0.0f", "cond"),
    ("sign(x)", "uint32", "x > 0 ? 1 : x", "cond"),
    ("sign(x + y)", "float", "gen::sign<float>(x + y)", "atom"),
    ("floor(x)", "int32", "x", "atom"),
    ("a.value if a.value >= b.value else b.value", "float", "a.value >= b.value ? a.value : b.value", "cond"),
    ("true", "bool", "true", "atom"),
    ("3", "float", "3.0f", "atom"),
    ("3", "int64", "3", "atom"),
    ("fmod(x, 3)", "int32", "gen::trunc_mod<int, int>(x, 3)", "atom"),
]


@pytest.mark.parametrize(("text", "dtype", "expected", "precedence"), TEXTS, ids=[f"{t}-{d}" for t, d, *_ in TEXTS])
def test_text(text: str, dtype: str, expected: str, precedence: str) -> None:
    assert cpp(text, dtype) == (expected, precedence)
    assert precedence in PRECEDENCES


def test_names_map_to_text() -> None:
    names = {"a": "left", "b.index": "other", "target_type": TypeWord("half"), "uint32": "uint32"}
    assert cpp_expr(parse_expr("a.value + b.index"), names, "float")[0] == "left.value + other"
    assert cpp_expr(parse_expr("convert(a, target_type)"), names, "float")[0] == "gen::convert<gen::half>(left)"
    assert cpp_expr(parse_expr("uint32 + 1"), names, "float")[0] == "uint32 + 1.0f"


def test_names_of_several_types() -> None:
    """As in a monoid that carries a value and an index."""
    types = {"a.value": "float", "b.value": "float"}
    expr = parse_expr("a.index + 1 if a.value > 0.5 * b.value else b.index")
    text, _ = cpp_expr(expr, NAMES, "int64", types)
    assert text == "a.value > 0.5f * b.value ? gen::add<gen::int64>(a.index, 1) : b.index"


NUMBERS = [
    (0.1, "float", "0.1f"), (0.1, "double", "0.1"), (1, "float", "1.0f"), (1e-5, "float", "1e-05f"),
    (16777217, "float", "16777216.0f"), (1e39, "float", "gen::infinity<float>()"), (-0.0, "float", "-0.0f"),
    (math.nan, "double", "gen::nan<double>()"), (0.1, "half", "gen::half(0.1f)"),
    (3, "bf16", "gen::bf16(3.0f)"),
    (-math.inf, "half", "gen::half(-gen::infinity<float>())"), (True, "bool", "true"),
    (0, "bool", "false"), (-128, "int8", "-128"), (-(2**31), "int32", "gen::lowest<int>()"),
    (2**31, "uint32", "2147483648LL"),
    (-(2**63), "int64", "gen::lowest<gen::int64>()"), (2**64 - 1, "uint64", "18446744073709551615ULL"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "dtype", "text"), NUMBERS)
def test_number(value: float, dtype: str, text: str) -> None:
    assert cpp_number(value, dtype) == text


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [
        ("[x]", "float", "this cannot be printed as C++"),
        ("[d for d in x]", "float", "this cannot be printed as C++"),
        ("x[0]", "float", "this cannot be printed as C++"),
        ("x[0].a", "float", "this cannot be printed as C++"),
        ("x in y", "float", "`in` cannot be printed as C++"),
        ('"a"', "float", "a string cannot be printed as C++"),
        ("product(x)", "float", "`product` cannot be printed as C++"),
        ("x + y", "bool", "`+` of bool cannot be printed as C++"),
        ("x ** y", "int32", "`**` of int32 cannot be printed as C++"),
        ("exp(x)", "int32", "`exp` of int32 cannot be printed as C++"),
        ("~x", "float", "`~` of float cannot be printed as C++"),
        ("x & y", "float", "`&` of floating-point values cannot be printed as C++"),
        ("q", "float", "unknown name `q`"),
        ("q.r", "float", "unknown name `q.r`"),
        ("x + 300", "int8", "300 does not fit in int8"),
        ("lowest(q)", "float", "`q` is not the name of a type"),
        ("where(x, y)", "float", "`where` takes 3 arguments, not 2"),
        ("sqrt(x, y)", "float", "`sqrt` takes 1 argument, not 2"),
        ("pow(x)", "float", "`pow` takes 2 arguments, not 1"),
        ("convert(x)", "float", "`convert` takes 2 arguments, not 1"),
        ("min(x)", "float", "`min` takes at least 2 arguments, not 1"),
    ],
)
def test_refusal(text: str, dtype: str, message: str) -> None:
    with pytest.raises(GenrwError) as caught:
        cpp(text, dtype)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == message
    assert diagnostic.span is not None


# ---- compiled, against the meaning

ARITHMETIC = [
    "x + y",
    "x - y",
    "x * y",
    "x * y - x * 3",
    "-x",
    "min(x, y)",
    "max(x, 1)",
    "x if x < y else y",
    "abs(x)",
]
ARITHMETIC += ["sign(x)", "sign(x - y)", "clamp(x, 1, 5)", "x - (y - x)", "2 * (x + y) - (x - 3)", "x / y"]
PREDICATES = [
    "x < y",
    "x == y and not x < 1",
    "x > y or x != 2",
    "0 < x <= y",
    "(x < y) == (y < 3)",
    "isnan(x) or isinf(y)",
]
INTEGER = [
    "x // y",
    "x % y",
    "fmod(x, y)",
    "x & y",
    "x | y ^ 1",
    "~x",
    "x << 2",
    "x >> 1",
    "x << y",
    "x >> y",
    "(x + y) / 3",
    "(x * y) // 2",
]
REAL = [
    "x // y",
    "exp(x)",
    "1 / (1 + exp(-x))",
    "tanh(x) * erf(y)",
    "sqrt(abs(x))",
    "rsqrt(abs(x))",
    "log(abs(x) + 1)",
]
REAL += [
    "sin(x) + cos(y)",
    "floor(x)",
    "ceil(x)",
    "trunc(x)",
    "round(x)",
    "fma(x, y, 2)",
    "pow(abs(x), y)",
    "x * 0.1",
    "x % y",
    "fmod(x, y)",
    "asinh(x)",
    "acosh(1 + abs(x))",
    "atanh(x)",
]


def samples(dtype: str) -> tuple[Values, Values]:
    limits = DTYPES[dtype]
    if limits.is_float:
        values = [0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 1e-3, math.inf, -math.inf, math.nan, 1.0, 5.0]
    else:
        low, high = int(limits.smallest), int(limits.largest)
        values = [v for v in (low, low + 1, -3, -2, -1, 0, 1, 2, 3, 7, high - 1, high) if v >= low]
    x, y = np.meshgrid(np.array(values, numpy_dtype(dtype)), np.array(values, numpy_dtype(dtype)))
    return x.ravel(), y.ravel()


def compiled(texts: list[str], dtype: str, output: str, x: Values, y: Values) -> list[Values]:
    """The values of C++ expressions over x and y, by the host's compiler."""
    names = {"x": "x", "y": "y"}
    cases = [f"if (which == {i}) out[i] = {cpp_expr(parse_expr(t), names, dtype)[0]};" for i, t in enumerate(texts)]
    type_, result = DTYPES[dtype].cpp, DTYPES[output].cpp
    source = f"""
GEN_KERNEL(1) each(const {type_}* px, const {type_}* py, {result}* out, int which, int n)
{{
    for (int i = 0; i < n; i++) {{ const {type_} x = px[i], y = py[i]; {" ".join(cases)} }}
}}
"""
    types = [f"const {type_}*", f"const {type_}*", f"{result}*", "int", "int"]
    kernel = compile_host(source, "each", types, wave_size=1, block=1, in_loops=False)
    results = []
    for i in range(len(texts)):
        out = np.zeros(x.shape, numpy_dtype(output))
        kernel.launch([x, y, out, i, x.size], 1)
        results.append(out)
    return results


@pytest.mark.parametrize("dtype", ["float", "double", "int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_compiled_text_computes_the_meaning(dtype: str) -> None:
    x, y = samples(dtype)
    texts = ARITHMETIC + (REAL if DTYPES[dtype].is_float else INTEGER)
    for text, result in zip(texts, compiled(texts, dtype, dtype, x, y), strict=True):
        expected = compile_numeric(parse_expr(text))({"x": x, "y": y}, dtype)
        if DTYPES[dtype].is_float:
            epsilon = DTYPES[dtype].epsilon
            np.testing.assert_allclose(result, expected, rtol=16 * epsilon, atol=16 * epsilon, err_msg=text)
        else:
            np.testing.assert_array_equal(result, expected, err_msg=text)


@pytest.mark.parametrize("dtype", ["float", "int8", "uint64"])
def test_compiled_predicates(dtype: str) -> None:
    x, y = samples(dtype)
    for text, result in zip(PREDICATES, compiled(PREDICATES, dtype, "bool", x, y), strict=True):
        np.testing.assert_array_equal(result, compile_numeric(parse_expr(text))({"x": x, "y": y}), err_msg=text)


@pytest.mark.parametrize("dtype", ["float", "int32"])
def test_compiled_conversions(dtype: str) -> None:
    x, y = samples(dtype)
    for target in ("int8", "uint64", "half", "bf16", "double", "bool"):
        text = f"convert(x, {target})"
        (result,) = compiled([text], dtype, target, x, y)
        expected = compile_numeric(parse_expr(text))({"x": x})
        np.testing.assert_array_equal(result.astype(float), expected.astype(float), err_msg=text)
