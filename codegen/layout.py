"""Arrays between callers, who see tensors, and kernels, which see memory with strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.engine.dtypes import numpy_dtype
from genrw.grammar.diagnostics import error

Array = npt.NDArray[Any]


def memory_size(lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements of memory that a tensor reaches over."""
    if 0 in lens:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(lens, strides, strict=True))


def check_array(name: str, value: object, dtype: str, lens: tuple[int, ...]) -> Array:
    """The value as an array of the tensor's type and shape; GenrwError if it is none."""
    array = np.asarray(value)
    if array.dtype != numpy_dtype(dtype):
        raise error(f"input `{name}` is {array.dtype.name}, not {dtype}", remedy=f"give an array of {dtype}")
    if array.shape != lens:
        raise error(f"input `{name}` has shape {list(array.shape)}, not {list(lens)}")
    return array


def to_memory(array: Array, strides: tuple[int, ...]) -> Array:
    """The flat memory of a tensor; no copy where the array lies like that already."""
    size = memory_size(array.shape, strides)
    item = array.itemsize
    if size == array.size and array.flags.c_contiguous and _packed(array, strides):
        return array.reshape(-1)
    memory = np.zeros(size, array.dtype)
    view = np.lib.stride_tricks.as_strided(memory, array.shape, tuple(s * item for s in strides))
    view[...] = array
    return memory


def from_memory(memory: Array, lens: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The tensor that lies in a flat memory."""
    if 0 in lens:
        return np.empty(lens, memory.dtype)
    return np.lib.stride_tricks.as_strided(memory, lens, tuple(s * memory.itemsize for s in strides))


def _packed(array: Array, strides: tuple[int, ...]) -> bool:
    return all(
        n == 1 or own == s * array.itemsize for n, own, s in zip(array.shape, array.strides, strides, strict=True)
    )


def poisoned(dtype: str, size: int) -> Array:
    """Memory for a result, filled with a pattern that shows where nothing was written."""
    memory = np.empty(size, numpy_dtype(dtype))
    memory.view(np.uint8)[...] = 0xFF if memory.dtype != np.bool_ else 0
    return memory
