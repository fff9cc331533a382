"""Functions that move data: against numpy, or against the definition written out element by element."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.language.numeric import compile_numeric
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_expr

Values = npt.NDArray[Any]
LENS = st.lists(st.integers(0, 4), max_size=3).map(tuple)
FULL = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def run(text: str, /, **env: object) -> Any:
    return compile_numeric(parse_expr(text))(env)


def counted(lens: tuple[int, ...]) -> Values:
    """Distinct elements."""
    return np.arange(math.prod(lens), dtype=np.int32).reshape(lens)


def failure(text: str, /, **env: object) -> str:
    with pytest.raises(GenrwError) as caught:
        run(text, **env)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.message


# ---- pad


def mirrored(i: int, n: int) -> int:
    """The place of a walk along 0, 1, … n-1, n-2, … 0, 1, … that has made i steps either way."""
    place, step = 0, 1
    for _ in range(abs(i)):
        if n > 1 and not 0 <= place + step < n:
            step = -step
        place += step if n > 1 else 0
    return place


def padded(x: Values, pads: tuple[int, ...], mode: str, value: int) -> Values:
    rank = x.ndim
    lens = [n + pads[i] + pads[i + rank] for i, n in enumerate(x.shape)]
    result = np.empty(lens, x.dtype)
    for at in itertools.product(*map(range, lens)):
        source = [i - pads[axis] for axis, i in enumerate(at)]
        if mode == "edge":
            source = [min(max(i, 0), n - 1) for i, n in zip(source, x.shape, strict=True)]
        elif mode == "reflect":
            source = [mirrored(i, n) for i, n in zip(source, x.shape, strict=True)]
        inside = all(0 <= i < n for i, n in zip(source, x.shape, strict=True))
        result[at] = x[tuple(source)] if inside else value
    return result


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@given(data=st.data())
def test_pad_is_its_definition(mode: str, data: st.DataObject) -> None:
    lens = data.draw(FULL)
    pads = tuple(data.draw(st.integers(-3, 7)) for _ in range(2 * len(lens)))
    x, rank = counted(lens), len(lens)
    if any(n + pads[i] + pads[i + rank] < 0 for i, n in enumerate(lens)):
        assert "crop more than" in failure("pad(x, p, m, -7)", x=x, p=pads, m=mode)
    else:
        np.testing.assert_array_equal(run("pad(x, p, m, -7)", x=x, p=pads, m=mode), padded(x, pads, mode, -7))


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_pad_is_numpys(mode: Any) -> None:
    x = counted((5, 4))
    result = run("pad(x, [2, 3, 1, 0], m)", x=x, m=mode)
    np.testing.assert_array_equal(result, np.pad(x, ((2, 1), (3, 0)), mode))


def test_pad_values() -> None:
    for dtype, value, expected in [
        ("int8", "1000", 127), ("int8", "-inf", -128), ("uint8", "-3", 0), ("int32", "nan", 0),
        ("int32", "2.9", 2),
        ("half", "-3.4028234663852886e38", -65504.0), ("half", "-inf", -math.inf), ("bf16", "1.0", 1.0),
        ("float", "1.7976931348623157e308", DTYPES["float"].largest), ("double", "inf", math.inf),
        ("bool", "2", True),    ]:  # fmt: skip
        result = run(f'pad(x, [1, 0], "constant", {value})', x=np.zeros(1).astype(numpy_dtype(dtype)))
        assert result.dtype == numpy_dtype(dtype)
        assert result[0] == expected
        assert result[1] == 0
    assert np.isnan(run('pad(x, [1, 0], "constant", nan)', x=np.zeros(1, np.float16))[0])
    assert run('pad(x, [1, 0], "constant", v)', x=np.zeros(1), v=np.float64(3))[0] == 3


def test_pad_of_nothing() -> None:
    x = np.zeros((0, 2), np.float32)
    assert run("pad(x, [1, 0, 1, 0])", x=x).tolist() == [[0, 0], [0, 0]]
    assert run('pad(x, [0, 1, 0, 0], "edge")', x=x).shape == (0, 3)
    assert failure('pad(x, [1, 0, 0, 0], "edge")', x=x) == "axis 0 has no elements to pad with in mode edge"
    assert run("pad(x, [])", x=np.float32(2)) == 2
    assert run("pad(x, [0, -1, 0, -1])", x=np.ones((2, 2))).shape == (2, 0)
    assert run("pad(x, [-4, 6])", x=np.ones(3)).tolist() == [0] * 5


def test_pad_messages() -> None:
    x = np.zeros(3)
    assert failure('pad(x, [1, 0], "wrap")', x=x).startswith('the mode of a pad is "constant", "edge" or "reflect"')
    assert failure("pad(x, [1])", x=x) == "pads of a tensor of rank 1 hold 2 numbers, not 1"
    assert failure('pad(x, [1, 0], "constant", "a")', x=x) == '`pad` takes a number to pad with, not the string "a"'
    assert failure("pad(3, [1, 0])") == "`pad` takes a tensor, not an integer"
    assert failure("pad(x, [1 << 40, 0])", x=x).endswith("is too large to be computed here")


# ---- take, flip, slice


@given(FULL, LENS, st.data())
def test_take_is_numpys(lens: tuple[int, ...], shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(lens), len(lens) - 1))
    n, count = lens[axis], math.prod(shape)
    places = data.draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))
    for dtype in (np.int8, np.int64):
        indices = np.array(places, dtype).reshape(shape)
        result = run("take(x, i, axis)", x=counted(lens), i=indices, axis=axis)
        np.testing.assert_array_equal(result, np.take(counted(lens), indices, axis))


def test_take_of_many_and_unsigned() -> None:
    x = counted((300,))
    assert run("take(x, i)", x=x, i=np.array([255, 0], np.uint8)).tolist() == [255, 0]
    assert run("take(x, i)", x=x, i=np.array([-128, 127], np.int8)).tolist() == [172, 127]
    assert run("take(x, [0, -1])", x=x).tolist() == [0, 299]
    assert run("take(x, -2)", x=x) == 298
    assert run("take(x, i, 0)", x=np.zeros((0, 2)), i=np.zeros((0, 3), int)).shape == (0, 3, 2)


def test_take_messages() -> None:
    x = counted((2, 3))
    assert failure("take(x, [0, 3], 1)", x=x) == "index 3 is out of range for axis 1, which has 3 elements"
    assert failure("take(x, [-3])", x=x) == "index -3 is out of range for axis 0, which has 2 elements"
    assert failure("take(x, i)", x=x, i=np.array(2**63, np.uint64)).startswith("index 9223372036854775808 is out of")
    assert failure("take(x, y)", x=x, y=np.zeros(1)) == "`take` takes integers as indices"
    assert failure("take(x, [0], 2)", x=x).startswith("axis 2 is out of range for rank 2")
    assert failure("take(x, 0)", x=np.float32(1)).endswith("a scalar has no axes")


@given(LENS, st.data())
def test_flip_is_numpys(lens: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(lens))), unique=True)) if lens else []
    result = run("flip(x, a)", x=counted(lens), a=tuple(axes))
    np.testing.assert_array_equal(result, np.flip(counted(lens), axes))


@given(LENS, st.data())
def test_slice_is_numpys(lens: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(lens))), unique=True)) if lens else []
    bound = st.integers(-7, 7) | st.sampled_from([-(2**31), 2**31 - 1, 2**63 - 1])
    starts, ends = ([data.draw(bound) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from([-3, -1, 1, 2])) for _ in axes]
    parts = [slice(None)] * len(lens)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        parts[axis] = slice(start, end, step)
    env = {"x": counted(lens), "a": tuple(axes), "s": tuple(starts), "e": tuple(ends), "p": tuple(steps)}
    np.testing.assert_array_equal(run("slice(x, a, s, e, p)", **env), counted(lens)[tuple(parts)])


def test_slice_down_to_the_first() -> None:
    assert run("slice(x, [0], [-1], [-9], [-1])", x=counted((4,))).tolist() == [3, 2, 1, 0]
    assert run("slice(x, [-1], [1], [3])", x=counted((2, 4))).tolist() == [[1, 2], [5, 6]]


# ---- joining and shaping


@given(FULL, st.data())
def test_concat_is_numpys(lens: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(lens) - 1))
    extents = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    xs = tuple(counted((*lens[:axis], n, *lens[axis + 1 :])) for n in extents)
    np.testing.assert_array_equal(run("concat(a, xs)", a=axis, xs=xs), np.concatenate(xs, axis))
    np.testing.assert_array_equal(run("concat(a - r, x, y)", a=axis, r=len(lens), x=xs[0], y=xs[-1]),
                                  np.concatenate([xs[0], xs[-1]], axis))  # fmt: skip


def test_concat_messages() -> None:
    x, y = counted((2, 3)), counted((2, 4))
    assert failure("concat(0, x, y)", x=x, y=y) == "lens {2, 3} and {2, 4} differ in more than axis 0"
    assert (
        failure("concat(0, x, y)", x=x, y=x.astype(float))
        == "`concat` takes tensors of one type, not of double and int32"
    )
    assert failure("concat(0, x, 3)", x=x) == "`concat` takes a tensor, not an integer"
    assert run("concat(1, [x, y])", x=x, y=y).shape == (2, 7)


@given(LENS, st.data())
def test_transpose_is_numpys(lens: tuple[int, ...], data: st.DataObject) -> None:
    perm = tuple(data.draw(st.permutations(range(len(lens)))))
    np.testing.assert_array_equal(run("transpose(x, p)", x=counted(lens), p=perm), counted(lens).transpose(perm))


@given(LENS, LENS)
def test_broadcast_to_is_numpys(lens: tuple[int, ...], out: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_to(counted(lens), out)
    except ValueError:
        assert "do not broadcast to" in failure("broadcast_to(x, o)", x=counted(lens), o=out)
    else:
        np.testing.assert_array_equal(run("broadcast_to(x, o)", x=counted(lens), o=out), expected)


def test_broadcast_axis() -> None:
    x = counted((3,))
    result = run("broadcast_axis(x, 1, [2, 3, 4])", x=x)
    assert result.shape == (2, 3, 4)
    assert all((result[i, :, j] == x).all() for i in range(2) for j in range(4))
    assert run("broadcast_axis(x, 2, [2, 4])", x=np.float32(7)).tolist() == [[7] * 4] * 2
    assert failure("broadcast_axis(x, 3, [2, 3, 4])", x=x) == "a tensor of rank 1 does not fit at axis 3 of {2, 3, 4}"
    assert failure("broadcast_axis(x, 0, [2, 3])", x=x) == "lens {3, 1} do not broadcast to {2, 3}"


@given(LENS, st.data())
def test_reshape_is_numpys(lens: tuple[int, ...], data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.integers(-1, 6), max_size=3).map(tuple))
    try:
        expected = counted(lens).reshape(dims)
    except ValueError:
        assert "do not reshape to" in failure("reshape(x, d)", x=counted(lens), d=dims)
    else:
        np.testing.assert_array_equal(run("reshape(x, d)", x=counted(lens), d=dims), expected)


def test_reshape_of_a_view_is_row_major() -> None:
    assert run("reshape(transpose(x, [1, 0]), [-1])", x=counted((2, 3))).tolist() == [0, 3, 1, 4, 2, 5]


def test_squeeze_and_unsqueeze() -> None:
    x = counted((1, 3, 1))
    assert run("squeeze(x)", x=x).shape == (3,)
    assert run("squeeze(x, [-1])", x=x).shape == (1, 3)
    assert run("unsqueeze(x, [0, -1])", x=x).shape == (1, 1, 3, 1, 1)
    assert "only 1 can be squeezed" in failure("squeeze(x, [1])", x=x)
    assert run("squeeze(x)", x=np.float32(1)).shape == ()


@given(FULL, st.data())
def test_iota(lens: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(lens) - 1))
    result = run("iota(l, a)", l=lens, a=axis)
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, np.indices(lens)[axis])
    assert run("iota(l, a - r, half)", l=lens, a=axis, r=len(lens)).dtype == np.float16


def test_sizes_are_bounded() -> None:
    for text in (
        "full([1 << 20, 1 << 20], 0, int8)",
        "iota([1 << 40], 0)",
        "broadcast_to(full([1], 1, half), [1 << 40])",
    ):
        assert failure(text).endswith("is too large to be computed here")
    assert failure("full([-1], 0, half)") == "an extent must not be negative, as in {-1}"
    assert failure("iota([2, -1], 0)") == "an extent must not be negative, as in {2, -1}"


def test_bf16_and_bool_move_unchanged() -> None:
    for dtype in ("bf16", "half", "bool", "uint64"):
        x = np.arange(6).reshape(2, 3).astype(numpy_dtype(dtype))
        result = run("flip(transpose(x, [1, 0]), [0])", x=x)
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result, x.T[::-1])


# ---- windows and products


def test_windows_are_those_of_numpy() -> None:
    x = counted((2, 7, 8))
    found = run("windows(x, [1, 2], [3, 2], [2, 1], [1, 3])", x=x)
    seen = np.lib.stride_tricks.sliding_window_view(x, (3, 4), axis=(1, 2))[:, ::2, :, :, ::3]
    np.testing.assert_array_equal(found, seen.transpose(0, 3, 4, 1, 2))
    assert run("windows(x, [0], [2])", x=counted((2, 3))).shape == (2, 1, 3)


@pytest.mark.parametrize(
    "text", ["windows(x, [1], [9])", "windows(x, [1, 0], [2, 2])", "windows(x, [1], [2, 2])", "windows(x, [2], [1])"]
)
def test_windows_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(GenrwError):
        run(text, x=counted((4, 8)))


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 3]), st.booleans(), st.booleans()), min_size=1, max_size=4), st.data()
)
def test_products_are_summed(axes: list[tuple[int, bool, bool]], data: st.DataObject) -> None:
    """Whatever operand repeats along an axis, and axes without elements."""
    x, y = (counted(tuple(1 if axis[side] else axis[0] for axis in axes)) for side in (1, 2))
    summed = data.draw(st.lists(st.sampled_from(range(len(axes))), unique=True))
    found = run(f"sum_of_products(x, y, {summed})", x=x, y=y)
    np.testing.assert_array_equal(found, (x * y).sum(tuple(summed), keepdims=True))


def test_products_are_made_before_they_are_summed() -> None:
    """Also of an operand that is the same for all of them: infinities of both signs meet."""
    x, y = np.array([[np.inf]], np.float32), np.array([[1.0], [-3.0]], np.float32)
    assert np.isnan(run("sum_of_products(x, y, [0])", x=x, y=y)).all()
    assert np.isnan(run("sum_of_products(y, x, [0])", x=x, y=y)).all()


def test_products_of_what_does_not_fit_are_refused() -> None:
    with pytest.raises(GenrwError, match="do not broadcast"):
        run("sum_of_products(x, y, [0])", x=counted((2, 3)), y=counted((2, 4)))
    with pytest.raises(GenrwError, match="one type"):
        run("sum_of_products(x, y, [0])", x=counted((2,)), y=counted((2,)).astype(np.float64))
