"""Arrays between callers, who see tensors, and kernels, which see memory with strides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.engine.ir.dtypes import numpy_dtype
from genrw.engine.ir.types import packed_strides
from genrw.engine.language.arrays import check_repeats, masked
from genrw.grammar.diagnostics import GenrwError, error

Array = npt.NDArray[Any]


def memory_size(lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements of memory that a tensor reaches over."""
    if 0 in lens:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(lens, strides, strict=True))


def missing_input(name: str) -> GenrwError:
    """What is told of an input that is not given."""
    return error(f"input `{name}` is missing", remedy="give an array for it")


def other_shape(what: str, shape: Sequence[int], lens: Sequence[int]) -> GenrwError:
    """What is told of an array of another shape than a parameter's."""
    remedy = f"give an array of shape {list(lens)}, or load the program with parameters of other lengths"
    return error(f"{what} has shape {list(shape)}, not {list(lens)}", remedy=remedy)


def check_array(name: str, value: object, dtype: str, lens: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The value as an array of the tensor's type and shape that lies as its strides say; GenrwError if it is none."""
    if isinstance(value, np.ma.MaskedArray):
        raise masked(name)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as problem:
        raise error(f"input `{name}` is no array: {problem}", remedy=f"give an array of {dtype}") from None
    if array.dtype != numpy_dtype(dtype):
        if array.dtype.newbyteorder() == numpy_dtype(dtype):
            message = f"the bytes of input `{name}`'s elements are in the other order"
            raise error(message, remedy='convert it: x.astype(x.dtype.newbyteorder("="))')
        raise error(f"input `{name}` is {array.dtype.name}, not {dtype}", remedy=f"give an array of {dtype}")
    if array.shape != lens:
        raise other_shape(f"input `{name}`", array.shape, lens)
    check_repeats(name, array, strides)
    return array


def to_memory(array: Array, strides: tuple[int, ...]) -> Array:
    """The flat memory of a tensor; no copy where the array lies like that already."""
    if array.flags.c_contiguous and _is_dense(array.shape, strides):
        return array.reshape(-1)
    memory = np.zeros(memory_size(array.shape, strides), array.dtype)
    view = np.lib.stride_tricks.as_strided(memory, array.shape, tuple(s * array.itemsize for s in strides))
    view[...] = array
    return memory


def from_memory(memory: Array, lens: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The tensor that lies in a flat memory."""
    if 0 in lens:
        return np.empty(lens, memory.dtype)
    if _is_dense(lens, strides):
        return memory.reshape(lens)
    return np.lib.stride_tricks.as_strided(memory, lens, tuple(s * memory.itemsize for s in strides))


@lru_cache(maxsize=1024)
def _is_dense(lens: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Does the tensor lie row by row, without gaps?"""
    packed = packed_strides(lens)
    return 0 not in lens and all(n == 1 or s == p for n, s, p in zip(lens, strides, packed, strict=True))


def unwritten(dtype: str, size: int, poison: bool) -> Array:
    """Memory for a result; with poison, filled with a pattern that shows where nothing was written."""
    return poisoned(dtype, size) if poison else np.empty(size, numpy_dtype(dtype))


def poisoned(dtype: str, size: int) -> Array:
    """Memory for a result, filled with a pattern that shows where nothing was written."""
    memory = np.empty(size, numpy_dtype(dtype))
    memory.view(np.uint8)[...] = 0xFF if memory.dtype != np.bool_ else 0
    return memory
