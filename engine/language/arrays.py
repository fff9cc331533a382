"""Arrays as the values of expressions, and what numbers and arrays do with one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.engine.ir.dtypes import DTYPES, dtype_name, numpy_dtype, promote
from genrw.engine.language import elementwise
from genrw.engine.language.functions import Misuse, Value, describe, shown
from genrw.engine.language.shapes import broadcast_lens
from genrw.engine.language.tensors import affordable
from genrw.grammar.diagnostics import GenrwError, error

Values = npt.NDArray[Any]


def masked(name: str) -> GenrwError:
    """What is told of an array with a mask, of which a program would compute with all elements."""
    return error(
        f"input `{name}` is a masked array, and programs see no masks", remedy="fill what the mask hides: x.filled(0)"
    )


def check_repeats(name: str, array: Values, strides: tuple[int, ...]) -> None:
    """GenrwError for an input with different elements where its strides say that they are one in memory."""
    steps = tuple(map(abs, strides))
    if _lie_apart(array.shape, steps):
        return
    in_order = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in strides)
    memory = np.empty(1 + sum((n - 1) * s for n, s in zip(array.shape, steps, strict=True)), array.dtype)
    repeated = np.lib.stride_tricks.as_strided(memory, array.shape, tuple(s * array.itemsize for s in steps))
    repeated[...] = array[in_order]
    found = repeated[in_order]
    different = (found != array) & ~((found != found) & (array != array))
    if np.any(different):
        place = shown(np.unravel_index(int(np.argmax(different)), different.shape))
        message = f"the strides {shown(strides)} of input `{name}` put its element at {place} where a different one is"
        raise error(message, remedy="give an array that repeats as the strides do, or leave them out of the program")


@lru_cache(maxsize=1024)
def _lie_apart(lens: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Does each element surely have a place in memory of its own?"""
    reached = 0
    for stride, length in sorted(zip(strides, lens, strict=True)):
        if length > 1 and stride <= reached:
            return 0 in lens
        reached += (length - 1) * stride
    return True


@dataclass(frozen=True, eq=False)
class Array:
    """Values in the type they are computed in, and the element type (`dtype`) they stand for."""

    values: Values
    dtype: str

    @property
    def described_as(self) -> str:
        """How messages call it."""
        return f"a tensor of {self.dtype}"

    def member(self, name: str) -> object:
        """What expressions may ask of a tensor."""
        if name == "lens":
            return self.values.shape
        if name == "type":
            return self.dtype
        if name == "rank":
            return self.values.ndim
        if name == "elements":
            return self.values.size
        raise KeyError(name)

    def __bool__(self) -> bool:
        raise error("a single true or false is needed here, not a tensor")

    def finished(self, dtype: str, precise: bool) -> Values:
        """The values in the numpy type of an element type, rounded to it; precise floats stay double."""
        if precise and DTYPES[dtype].is_float:
            return self.values.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            return np.asarray(elementwise.convert(self.values, dtype))


def storage(dtype: str, precise: bool) -> np.dtype[Any]:
    """The numpy type in which an element type is computed."""
    if precise and DTYPES[dtype].is_float:
        return np.dtype(np.float64)
    return numpy_dtype(DTYPES[dtype].compute)


def stored(values: Values, dtype: str, precise: bool) -> Array:
    """Values of an element type as an array to compute with."""
    return Array(values.astype(storage(dtype, precise), copy=False), dtype)


def adopt(value: object, precise: bool) -> Any:
    """A value of the environment as expressions see it: numpy arrays, in lists too, as `Array`."""
    if isinstance(value, Array):
        return stored(value.values, value.dtype, precise)
    if isinstance(value, np.ndarray | np.generic):
        dtype = dtype_name(value.dtype)
        if dtype is None:
            raise Misuse(f"there is no element type for numpy's {value.dtype}")
        return stored(np.asarray(value), dtype, precise)
    if isinstance(value, tuple):
        return tuple(adopt(item, precise) for item in value)
    return value


def holds_array(value: Value) -> bool:
    """Whether a value is an array or a list of some."""
    return isinstance(value, Array) or (isinstance(value, tuple) and any(map(holds_array, value)))


def meet(what: str, operands: Sequence[Value]) -> tuple[str, list[Values]]:
    """The element type operands meet in, and their values in the type it is computed in.

    A number takes on the type of the arrays where this holds numbers of its kind; numbers alone meet in
    double or int64.
    """
    for operand in operands:
        if not isinstance(operand, Array | int | float):
            raise Misuse(f"{what} takes tensors and numbers, not {describe(operand)}")
    arrays = [operand for operand in operands if isinstance(operand, Array)]
    numbers = [operand for operand in operands if not isinstance(operand, Array)]
    affordable(broadcast_lens(*(array.values.shape for array in arrays)) if arrays else ())
    dtype = _beside(reduce(promote, [array.dtype for array in arrays]) if arrays else "bool", numbers, arrays)
    floats = [array.values.dtype for array in arrays if array.values.dtype.kind == "f"]
    common = np.result_type(*floats) if floats and DTYPES[dtype].is_float else numpy_dtype(dtype)
    return dtype, [_as_stored(operand, dtype, common) for operand in operands]


def _beside(dtype: str, numbers: Sequence[float], arrays: Sequence[Array]) -> str:
    """The type of arrays beside plain numbers: these change it only where it cannot hold their kind."""
    if any(isinstance(n, float) for n in numbers) and not DTYPES[dtype].is_float:
        return "double"
    if dtype == "bool" and not all(isinstance(n, bool) for n in numbers):
        return "int32" if arrays else "int64"
    return dtype


def _as_stored(operand: Value, dtype: str, common: np.dtype[Any]) -> Values:
    if isinstance(operand, Array):
        return operand.values.astype(common, copy=False)
    if common.kind in "iu" and not DTYPES[dtype].smallest <= operand <= DTYPES[dtype].largest:
        raise Misuse(f"{operand} does not fit in {dtype}")
    return np.asarray(operand, common)
