"""The table of functions: each by example, and the shape functions against numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.expr import compile_expr
from genrw.engine.language.functions import KINDS
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_expr


def run(text: str, **env: object) -> Any:
    return compile_expr(parse_expr(text))(env)


EXAMPLES: dict[str, list[tuple[str, object]]] = {
    "abs": [("abs(-3)", 3), ("abs(-1.5)", 1.5)],
    "all": [("all([])", True), ("all([1 < 2, 2 < 1])", False)],
    "any": [("any([])", False), ("any([1 < 2, 2 < 1])", True)],
    "argsort": [("argsort([3, 1, 3, 2])", (1, 3, 0, 2))],
    "broadcast_lens": [("broadcast_lens([8, 1], [4])", (8, 4)), ("broadcast_lens([1], [0])", (0,))],
    "broadcasts_to": [
        ("broadcasts_to([4, 1], [3, 4, 5])", True),
        ("broadcasts_to([4], [1])", False),
        ("broadcasts_to([1, 1], [1])", False),
    ],
    "ceil": [("ceil(1.2)", 2), ("ceil(-1.2)", -1), ("ceil(3)", 3)],
    "ceil_div": [("ceil_div(7, 2)", 4), ("ceil_div(-7, 2)", -3)],
    "clamp": [("clamp(5, 0, 3)", 3), ("clamp(-5, 0, 3)", 0), ("clamp(2, 0, 3)", 2)],
    "compute_type": [("compute_type(half)", "float"), ("compute_type(int8)", "int8")],
    "concat": [("concat([1], [], [2, 3])", (1, 2, 3)), ("concat()", ())],
    "concat_lens": [("concat_lens(-1, [[2, 3], [2, 0], [2, 4]])", (2, 7))],
    "converted": [
        ("converted(300, int32, int8)", 44),
        ("converted(-2.9, float, int8)", -2),
        ("converted(300.5, float, uint8)", 255),
        ("converted(0.1, double, half)", 0.0999755859375),
        ("converted(3, int8, bool)", True),
    ],
    "count": [("count([1, 2, 1], 1)", 2)],
    "cumprod": [("cumprod([2, 3, 4])", (2, 6, 24)), ("cumprod([])", ())],
    "cumsum": [("cumsum([2, 3, 4])", (2, 5, 9))],
    "divides": [("divides(3, 12)", True), ("divides(5, 12)", False), ("divides(0, 0)", True)],
    "dot": [("dot([1, 2], [3, 4])", 11)],
    "drop_axes": [("drop_axes([8, 9, 10], [0, -1])", (9,))],
    "element_value": [
        ("element_value(300, int8)", 127),
        ("element_value(1e300, half)", 65504.0),
        ("element_value(-inf, half)", -math.inf),
        ("element_value(-inf, int16)", -32768),
        ("element_value(nan, int8)", 0),
    ],
    "enumerate": [("enumerate([5, 6])", ((0, 5), (1, 6)))],
    "epsilon": [("epsilon(half)", 2.0**-10), ("epsilon(int8)", 0.0)],
    "exp": [("exp(0)", 1.0), ("exp(1000)", math.inf)],
    "find": [("find([4, 5], 5)", 1)],
    "letters": [('letters("ab ...c")', ("a", "b", "...", "c")), ('letters("")', ())],
    "split": [('split("ab,,c", ",")', ("ab", "", "c")), ('split("ab", "->")', ("ab",))],
    "floor": [("floor(1.8)", 1), ("floor(-1.2)", -2)],
    "gather_lens": [
        ("gather_lens([3, 4, 5], [2, 2], 1)", (3, 2, 2, 5)),
        ("gather_lens([3, 4], [], 0)", (4,)),
    ],
    "gcd": [("gcd(12, 18)", 6), ("gcd(0, 5)", 5), ("gcd(12, 18, 8)", 2)],
    "has_reciprocal": [("has_reciprocal(4, half)", True), ("has_reciprocal(3, float)", False)],
    "highest": [("highest(int8)", 127), ("highest(float)", math.inf), ("highest(bool)", True)],
    "holds": [
        ("holds(float, half)", True),
        ("holds(half, bf16)", False),
        ("holds(float, int32)", False),
        ("holds(float, int16)", True),
        ("holds(int16, uint8)", True),
        ("holds(uint8, int8)", False),
        ("holds(int8, bool)", True),
    ],
    "identical": [("identical([1, 2], [1, 2])", True), ("identical(1, 1.0)", False), ("identical(0.0, -0.0)", False)],
    "insert": [("insert([1, 3], 1, 2)", (1, 2, 3)), ("insert([1], 1, 2)", (1, 2))],
    "inverse": [("inverse([2, 0, 1])", (1, 2, 0))],
    "is_constant": [
        ('is_constant(3.0, 3, "float")', True),
        ('is_constant(0.1, 0.1, "half")', True),
        ('is_constant(-0.0, 0, "float")', False),
        ('is_constant([3.0, 3.0], 3, "float")', False),
    ],
    "is_element": [
        ('is_element(127, "int8")', True),
        ('is_element(128, "int8")', False),
        ('is_element([1, 2.5], "float")', True),
        ('is_element([1, 300], "uint8")', False),
    ],
    "is_float": [("is_float(bf16)", True), ("is_float(int8)", False)],
    "is_integer": [("is_integer(uint8)", True), ("is_integer(bool)", False)],
    "is_permutation": [("is_permutation([1, 0])", True), ("is_permutation([1, 1])", False)],
    "is_pow2": [("is_pow2(64)", True), ("is_pow2(0)", False), ("is_pow2(12)", False)],
    "is_signed": [("is_signed(uint8)", False), ("is_signed(half)", True)],
    "itemsize": [("itemsize(half)", 2), ("itemsize(double)", 8)],
    "largest": [("largest(half)", 65504.0), ("largest(uint8)", 255)],
    "largest_divisor": [("largest_divisor(60, 16)", 15), ("largest_divisor(7, 4)", 1)],
    "lcm": [("lcm(4, 6)", 12)],
    "len": [("len([1, 2])", 2)],
    "log": [("log(1)", 0.0)],
    "log2": [("log2(64)", 6), ("log2(65)", 7), ("log2(1)", 0)],
    "lowest": [("lowest(int8)", -128), ("lowest(half)", -math.inf), ("lowest(uint64)", 0)],
    "max": [("max(1, 2, 3)", 3), ("max([4])", 4)],
    "min": [("min(2, 1)", 1), ("min([4, 3])", 3)],
    "normalise_axes": [("normalise_axes([-1, 0], 3)", (2, 0))],
    "normalise_axis": [("normalise_axis(-1, 3)", 2)],
    "pad_lens": [("pad_lens([4, 5], [1, 0, 2, -1])", (7, 4))],
    "permute": [("permute([7, 8, 9], [2, 0, 1])", (9, 7, 8))],
    "pow2_ceil": [("pow2_ceil(33)", 64), ("pow2_ceil(64)", 64), ("pow2_ceil(0)", 1)],
    "pow2_divisor": [("pow2_divisor(48)", 16), ("pow2_divisor(0)", 1 << 62), ("pow2_divisor(-6)", 2)],
    "pow2_floor": [("pow2_floor(33)", 32), ("pow2_floor(64)", 64)],
    "product": [("product([2, 3])", 6), ("product([])", 1)],
    "promote": [("promote(half, int32)", "half"), ("promote(half, bf16)", "float")],
    "range": [
        ("range(3)", (0, 1, 2)),
        ("range(1, 3)", (1, 2)),
        ("range(3, 0, -2)", (3, 1)),
        ("range(-1)", ()),
    ],
    "ravel": [("ravel([1, 2], [3, 4])", 6), ("ravel([], [])", 0)],
    "reduce_lens": [("reduce_lens([8, 4], [-1])", (8, 1))],
    "remove": [("remove([7, 8, 9], -1)", (7, 8))],
    "replace": [("replace([7, 8], 1, 0)", (7, 0))],
    "reshape_lens": [("reshape_lens([4, 6], [-1, 3])", (8, 3)), ("reshape_lens([], [1, 1])", (1, 1))],
    "reversed": [("reversed([1, 2])", (2, 1))],
    "round": [("round(0.5)", 0), ("round(1.5)", 2), ("round(2.4)", 2)],
    "round_up": [("round_up(65, 64)", 128), ("round_up(64, 64)", 64)],
    "sign": [("sign(-2.5)", -1), ("sign(0)", 0), ("sign(7)", 1)],
    "slice_lens": [("slice_lens([10, 4], [0], [-3], [99])", (3, 4))],
    "slice_starts": [("slice_starts([10, 4], [0], [-3], [99])", (7, 0))],
    "smallest": [("smallest(int16)", -32768), ("smallest(half)", -65504.0)],
    "sorted": [("sorted([3, 1, 2])", (1, 2, 3)), ('sorted(["b", "a"])', ("a", "b"))],
    "sqrt": [("sqrt(9)", 3.0)],
    "squeeze_lens": [("squeeze_lens([1, 3, 1])", (3,)), ("squeeze_lens([1, 3, 1], [-1])", (1, 3))],
    "strides_of": [("strides_of([2, 3, 4])", (12, 4, 1)), ("strides_of([])", ()), ("strides_of([5])", (1,))],
    "sum": [("sum([1, 2.5])", 3.5), ("sum([])", 0)],
    "take_axes": [("take_axes([7, 8, 9], [2, 0])", (9, 7))],
    "trunc": [("trunc(-1.8)", -1)],
    "union": [("union([3, 1], [1, 2])", (3, 1, 2))],
    "unravel": [("unravel(6, [3, 4])", (1, 2)), ("unravel(0, [])", ())],
    "unsqueeze_lens": [("unsqueeze_lens([3, 4], [0, -1])", (1, 3, 4, 1))],
    "zip": [("zip([1, 2], [3, 4])", ((1, 3), (2, 4)))],
}


def test_every_function_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(FUNCTIONS)


@pytest.mark.parametrize(("text", "value"), [case for name in EXAMPLES for case in EXAMPLES[name]])
def test_example(text: str, value: object) -> None:
    result = run(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_table_is_documented(name: str) -> None:
    function = FUNCTIONS[name]
    assert function.signature.startswith(f"{name}(")
    assert function.doc.endswith(".")
    assert all(parameter.kind in KINDS for parameter in function.parameters)
    assert function.signature.rsplit("-> ")[-1] in KINDS


SAMPLES: list[object] = [
    0, 1, -1, 7, 2**127, True, 0.0, -2.5, math.inf, -math.inf, math.nan, "", "half", "wave",
    (), (0,), (1, 2), (-1, 0), (1.5,), ("a",), (True,), ((1, 2), (3,)), ((),), {"a": 1},
]  # fmt: skip


@given(st.data())
def test_whatever_the_arguments_the_error_is_a_message(data: st.DataObject) -> None:
    function = FUNCTIONS[data.draw(st.sampled_from(sorted(FUNCTIONS)))]
    most = len(function.parameters) + (2 if function.variadic else 0)
    args = data.draw(st.lists(st.sampled_from(SAMPLES), min_size=function.required, max_size=most))
    env = {f"a{i}": arg for i, arg in enumerate(args)}
    evaluate = compile_expr(parse_expr(f"{function.name}({', '.join(env)})"))
    try:
        evaluate(env)
    except GenrwError as failed:
        found = failed.diagnostics
    else:
        return
    assert len(found) == 1
    assert found[0].span is not None


MISUSES = [
    ("zip([1], [1, 2])", "`zip` takes lists of equal length, not of 1 and 2"),
    ("find([1], 2)", "`find` takes a value that is in the list"),
    ('split("ab", "")', "`split` needs a separator"),
    ("min([])", "`min` of an empty list has no value"),
    ('max(1, "a")', "`max` takes values that compare with one another"),
    ("log2(0)", "`log2` takes an integer from 1, not 0"),
    ("range(1, 5, 0)", "`range` takes a step other than 0"),
    ("permute([1, 2], [0, 0])", "{0, 0} is not a permutation of 2 axes"),
    ("inverse([1, 2])", "{1, 2} is not a permutation"),
    ("normalise_axis(3, 3)", "axis 3 is out of range for rank 3: axes run from -3 to 2"),
    ("normalise_axis(0, 0)", "axis 0 is out of range for rank 0: a scalar has no axes"),
    ("normalise_axes([0, -2], 2)", "the axes {0, -2} name one axis twice"),
    ("broadcast_lens([2, 3], [2, 4])", "lens {2, 3} and {2, 4} do not broadcast: axis 1 has 3 and 4"),
    ("pad_lens([4], [1])", "pads of a tensor of rank 1 hold 2 numbers, not 1"),
    ("pad_lens([4], [-2, -3])", "the pads {-2, -3} crop more than lens {4} have"),
    ("slice_lens([4], [0], [0], [1, 2])", "axes, starts, ends and steps of a slice must be of equal length"),
    ("slice_lens([4], [0], [0], [1], [0])", "the step of a slice must not be 0"),
    ("concat_lens(0, [[2, 3], [2, 4]])", "lens {2, 3} and {2, 4} differ in more than axis 0"),
    ("concat_lens(0, [])", "concat takes at least one tensor"),
    ("reshape_lens([4], [3])", "lens {4} with 4 elements do not reshape to {3}"),
    ("reshape_lens([4], [-1, -1])", "lens {4} with 4 elements do not reshape to {-1, -1}"),
    ("reshape_lens([0, 4], [0, -1])", "lens {0, 4} with 0 elements do not reshape to {0, -1}"),
    ("squeeze_lens([2, 1], [0])", "axis 0 of lens {2, 1} has extent 2: only 1 can be squeezed"),
    ("sqrt(-1)", "`sqrt` has no value at -1"),
    ("floor(nan)", "`floor` takes a finite number"),
    ("ceil_div(1, 0)", "division by zero"),
    ("sum([2 ** 127, 2 ** 127, 2 ** 127])", "the integer has more than 128 bits"),
    ("unravel(12, [3, 4])", "index 12 is out of range for lens {3, 4}"),
    ("largest_divisor(0, 4)", "`largest_divisor` takes n from 1 and a limit from 1 to 65536"),
]


@pytest.mark.parametrize(("text", "message"), MISUSES, ids=[text for text, _ in MISUSES])
def test_misuse(text: str, message: str) -> None:
    with pytest.raises(GenrwError) as caught:
        run(text)
    assert caught.value.diagnostics[0].message == message
    assert caught.value.diagnostics[0].span is not None
    assert caught.value.diagnostics[0].span.text == text


# ---- shapes against numpy

EXTENTS = st.integers(0, 4)
LENS = st.lists(EXTENTS, max_size=4).map(tuple)


def shape_or_none(text: str, **env: object) -> Any:
    try:
        return run(text, **env)
    except GenrwError:
        return None


def numpy_shape_or_none(compute: Any) -> Any:
    try:
        return compute()
    except ValueError:
        return None


@given(LENS, LENS)
def test_broadcast_lens_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    expected = numpy_shape_or_none(lambda: np.broadcast_shapes(a, b))
    assert shape_or_none("broadcast_lens(a, b)", a=a, b=b) == expected
    assert run("broadcasts_to(a, b)", a=a, b=b) is (
        numpy_shape_or_none(lambda: np.broadcast_to(np.empty(a), b).shape) is not None
    )


@given(st.lists(st.integers(1, 5), max_size=4).map(tuple))
def test_strides_are_numpys(lens: tuple[int, ...]) -> None:
    strides = np.empty(lens, np.int8).strides
    assert run("strides_of(lens)", lens=lens) == strides
    total = math.prod(lens)
    for i in range(0, total, max(1, total // 7)):
        where = run("unravel(i, lens)", i=i, lens=lens)
        assert where == tuple(map(int, np.unravel_index(i, lens)))
        assert run("ravel(w, lens)", w=where, lens=lens) == i


@given(LENS, st.data())
def test_reshape_lens_is_numpys(lens: tuple[int, ...], data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.integers(-1, 6), max_size=3).map(tuple))
    expected = numpy_shape_or_none(lambda: np.empty(lens).reshape(dims).shape)
    assert shape_or_none("reshape_lens(lens, dims)", lens=lens, dims=dims) == expected


@given(st.integers(0, 6), st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_slice_lens_is_numpys(n: int, start: int, stop: int, step: int) -> None:
    taken = range(n)[start:stop:step]
    env = {"n": n, "start": start, "stop": stop, "step": step}
    assert run("slice_lens([n, 2], [0], [start], [stop], [step])", **env) == (len(taken), 2)
    if taken:
        assert run("slice_starts([n], [0], [start], [stop], [step])", **env) == (taken[0],)


@given(LENS, LENS, st.integers(0, 3))
def test_gather_lens_is_numpys(lens: tuple[int, ...], indices: tuple[int, ...], axis: int) -> None:
    lens = (*lens[:axis], 2, *lens[axis:])
    axis = min(axis, len(lens) - 1)
    expected = np.take(np.empty(lens), np.zeros(indices, int), axis=lens.index(2)).shape
    assert run("gather_lens(a, b, axis)", a=lens, b=indices, axis=lens.index(2)) == expected


@given(st.permutations(range(4)))
def test_inverse_undoes(perm: list[int]) -> None:
    assert run("permute(permute(v, p), inverse(p))", v=(7, 8, 9, 10), p=tuple(perm)) == (7, 8, 9, 10)


@given(st.integers(1, 2**70))
def test_powers_of_two(n: int) -> None:
    assert run("pow2_floor(n) <= n < 2 * pow2_floor(n)", n=n)
    assert run("pow2_ceil(n) // 2 < n <= pow2_ceil(n)", n=n)
    assert run("pow2_ceil(n) == 2 ** log2(n)", n=n)
    assert run("n % pow2_divisor(n) == 0 and n // pow2_divisor(n) % 2 == 1", n=n)
