"""The table of element types against numpy's and ml_dtypes' own."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from genrw.engine.dtypes import CLASSES, DTYPES, dtype_name, in_class, is_dtype, numpy_dtype, promote


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
