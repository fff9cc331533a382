"""The table of element types against numpy's and ml_dtypes' own."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genrw.engine.ir.dtypes import (
    CLASSES,
    DTYPES,
    converted,
    dtype_name,
    has_reciprocal,
    holds,
    in_class,
    is_dtype,
    numpy_dtype,
    promote,
    rounded,
)
from genrw.engine.language.elementwise import convert


@pytest.mark.parametrize("name", DTYPES)
def test_limits_are_numpys(name: str) -> None:
    dtype, theirs = DTYPES[name], numpy_dtype(name)
    assert dtype.itemsize == theirs.itemsize
    assert dtype_name(theirs) == name
    if dtype.is_float:
        info = ml_dtypes.finfo(theirs)
        assert (dtype.smallest, dtype.largest) == (float(info.min), float(info.max))
        assert dtype.epsilon == float(info.eps)
        assert (dtype.lowest, dtype.highest) == (-np.inf, np.inf)
    elif dtype.is_integer:
        limits = np.iinfo(theirs)
        assert (dtype.lowest, dtype.highest) == (dtype.smallest, dtype.largest) == (limits.min, limits.max)
    else:
        assert (dtype.lowest, dtype.highest) == (False, True)


def test_classes() -> None:
    assert CLASSES["any"] - CLASSES["number"] == {"bool"}
    assert CLASSES["number"] == CLASSES["real"] | CLASSES["integer"]
    assert CLASSES["signed"] == CLASSES["real"] | {"int8", "int16", "int32", "int64"}
    assert in_class("half", "real")
    assert not in_class("bool", "number")
    assert in_class("int64", "int64")
    assert not in_class("int32", "int64")


def test_names() -> None:
    assert is_dtype("bf16")
    assert not is_dtype("bfloat16")
    assert dtype_name(np.dtype("complex64")) is None
    assert dtype_name(np.dtype("U3")) is None


def test_compute_types() -> None:
    computed = {name: dtype.compute for name, dtype in DTYPES.items() if dtype.compute != name}
    assert computed == {"half": "float", "bf16": "float"}


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_promotion(a: str, b: str) -> None:
    met = promote(a, b)
    assert met == promote(b, a)
    if a == b:
        assert met == a
    if DTYPES[a].is_float == DTYPES[b].is_float and {a, b} != {"half", "bf16"} and "uint64" not in (a, b):
        assert numpy_dtype(met) == np.promote_types(numpy_dtype(a), numpy_dtype(b))


def test_promotion_unlike_numpys() -> None:
    assert promote("half", "bf16") == "float"
    assert promote("half", "int64") == "half"
    assert promote("int64", "uint64") == "int64"
    assert promote("uint64", "int8") == "int64"


# ---- constants

FLOATS = st.sampled_from([name for name, dtype in DTYPES.items() if dtype.is_float])


def stored(value: float, dtype: str) -> np.ndarray:
    """An element of a type; floats round once."""
    with np.errstate(all="ignore"):
        if DTYPES[dtype].is_float:
            return np.asarray(convert(np.asarray(value, np.float64), dtype))
        return np.asarray(value, numpy_dtype(dtype))


@given(st.floats() | st.floats(-1e-4, 1e-4) | st.floats(-70000, 70000), FLOATS)
def test_rounding_is_numpys(value: float, dtype: str) -> None:
    np.testing.assert_array_equal(rounded(value, dtype), stored(value, dtype).astype(float))


@given(st.data())
def test_constants_convert_as_elements_do(data: st.DataObject) -> None:
    source, target = (data.draw(st.sampled_from(sorted(DTYPES))) for _ in range(2))
    limits = DTYPES[source]
    integer = st.integers(int(limits.smallest), int(limits.largest)) if not limits.is_float else st.just(0)
    value = data.draw(st.floats() if limits.is_float else st.booleans() if limits.kind == "bool" else integer)
    with np.errstate(all="ignore"):
        element = np.asarray(convert(stored(value, source), target))
    if DTYPES[target].is_float:
        np.testing.assert_array_equal(converted(value, source, target), element.astype(float))
    else:
        assert converted(value, source, target) == element.item()


@given(st.sampled_from(sorted(DTYPES)), st.sampled_from(sorted(DTYPES)))
def test_a_type_that_holds_another_keeps_its_limits(wide: str, narrow: str) -> None:
    limits = DTYPES[narrow]
    values = [limits.smallest, limits.largest, limits.epsilon + 1 if limits.is_float else limits.largest - 1]
    kept = all(converted(converted(v, narrow, wide), wide, narrow) == v for v in values)
    if holds(wide, narrow):
        assert kept


@given(st.floats(-1e6, 1e6).filter(bool), st.sampled_from(["half", "bf16", "float", "double"]))
def test_exact_reciprocals(value: float, dtype: str) -> None:
    element = rounded(value, dtype)
    if element and has_reciprocal(value, dtype):
        reciprocal = rounded(1 / element, dtype)
        assert reciprocal * element == 1
        assert abs(reciprocal) <= DTYPES[dtype].largest
