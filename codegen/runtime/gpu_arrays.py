"""Arrays in a GPU's memory: those of other libraries, taken without a copy, and results handed out to them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.gpu_memory import ResultMemory
from genrw.engine.ir.dtypes import DTYPES, dtype_name, numpy_dtype
from genrw.engine.ir.types import packed_strides
from genrw.engine.language.arrays import masked
from genrw.grammar.diagnostics import error

# DLDeviceType of dlpack.h
CUDA, ROCM = 2, 10
_GPU_DEVICES = (CUDA, ROCM)
LEGACY_STREAM, _NO_STREAM = 1, -1
"""What protocols call CUDA's default stream, which is 0 to its driver; and one that nobody is to wait for."""

# DLDataTypeCode of dlpack.h
_CODES = {"int": 0, "uint": 1, "float": 2, "bool": 6}
_BFLOAT = 4


@dataclass(frozen=True)
class DeviceView:
    """A tensor in a GPU's memory: address, element type, shape, strides in elements, the GPU's number where it is known.

    `stream` is the stream whose work must be done before the memory may be read, None where the library that owns it
    has seen to that; `owner` keeps the memory alive.
    """

    pointer: int
    dtype: str
    lens: tuple[int, ...]
    strides: tuple[int, ...]
    device: int | None
    stream: int | None
    owner: object


def device_view(name: str, value: Any, stream: int) -> DeviceView | None:
    """The GPU tensor behind a value, by DLPack or `__cuda_array_interface__`; None for one in the CPU's memory.

    `stream` is where the tensor will be used: by DLPack's protocol its library has it wait for work under way.
    """
    if hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) in _GPU_DEVICES:
        return _from_dlpack(name, value, stream)
    interface = getattr(value, "__cuda_array_interface__", None)
    return None if interface is None else _from_interface(name, value, interface)


# ---- arrays that are met again


class Reader(NamedTuple):
    """How arrays of one class are read without their protocols.

    `key` is all of an array that decides whether a kernel can use it, but for its address: arrays with the key of one
    that was taken by its protocol are of the same type, shape, strides and device, and may be lent. `stream` is the one
    whose work has to be done before the memory may be read, None where there is none.
    """

    key: Callable[[Any], tuple[Any, ...]]
    pointer: Callable[[Any], int]
    stream: Callable[[Any], int | None]


def reader_of(kind: type) -> Reader | None:
    """The reader of a class of arrays; None where only protocols tell."""
    if kind not in _readers:
        is_torch = (kind.__module__, kind.__name__) in (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))
        _readers[kind] = _torch_reader(sys.modules["torch"]) if is_torch else None
    return _readers[kind]


def _torch_reader(torch: Any) -> Reader | None:
    """PyTorch's tensors: work on them is on the current stream of their GPU, as `__dlpack__` takes it."""
    current = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if current is None:
        return None

    def key(x: Any) -> tuple[Any, ...]:
        return x.is_cuda, x.get_device(), x.dtype, x.shape, x.stride(), x.requires_grad, x.is_neg()

    return Reader(key, lambda x: x.data_ptr(), lambda x: current(x.get_device()))


def stream_address(given: Any) -> int:
    """The address of a caller's stream: the address itself, a stream of PyTorch's or CuPy's, or one that tells it by
    `__cuda_stream__`; 0 for None."""
    if hasattr(given, "__cuda_stream__"):
        return int(given.__cuda_stream__()[1])
    address = getattr(given, "cuda_stream", getattr(given, "ptr", given))
    if address is not None and not isinstance(address, int):
        raise error(
            f"a stream is not {type(given).__name__}", remedy="give its address, or an object with `__cuda_stream__`"
        )
    return address or 0


def _from_interface(name: str, value: Any, interface: dict[str, Any]) -> DeviceView:
    if interface.get("mask") is not None:
        raise masked(name)
    dtype = np.dtype(interface["typestr"])
    known = dtype_name(dtype)
    if known is None:
        raise error(f"input `{name}` has elements of type {dtype.name}, which no kernel takes")
    lens = tuple(interface["shape"])
    given = interface.get("strides")
    strides = packed_strides(lens) if given is None else tuple(s // dtype.itemsize for s in given)
    return DeviceView(interface["data"][0], known, lens, strides, None, interface.get("stream"), value)


# ---- DLPack


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_NAME = b"dltensor"
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _from_dlpack(name: str, value: Any, stream: int) -> DeviceView:
    kind, number = value.__dlpack_device__()
    # By the protocol, CUDA's default stream is 1: 0 could be either of its two.
    capsule = value.__dlpack__(stream=(stream or 1) if int(kind) == CUDA else stream)
    tensor = _Managed.from_address(_capsule_pointer(capsule, _NAME)).tensor
    lens = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else packed_strides(lens)
    given = tensor.dtype
    dtype = _dtypes_by_code().get((given.code, given.bits)) if given.lanes == 1 else None
    if dtype is None:
        shown = f"DLPack code {given.code} of {given.bits} bits"
        raise error(f"input `{name}` has elements of type {shown}, which no kernel takes")
    # The capsule, left unconsumed, lets the tensor go when it goes itself.
    return DeviceView((tensor.data or 0) + tensor.byte_offset, dtype, lens, strides, int(number), None, capsule)


@cache
def _dtypes_by_code() -> dict[tuple[int, int], str]:
    return {_code_and_bits(name): name for name in DTYPES}


def _code_and_bits(dtype: str) -> tuple[int, int]:
    if dtype == "bf16":
        return _BFLOAT, 16
    return _CODES[DTYPES[dtype].kind], DTYPES[dtype].bits


# Tensors handed out, until their receivers let them go.
_lent: dict[int, tuple[object, ...]] = {}


def _let_go(address: int) -> None:
    _lent.pop(address, None)


_take_back = _DELETER(_let_go)


@dataclass(eq=False)
class DeviceArray:
    """A result in a GPU's memory. `numpy()` copies it; other libraries take it as it is, by DLPack or
    `__cuda_array_interface__`. Its memory is freed when nobody holds it any more.

    `kind` is DLPack's number for the sort of device; strides are in elements. `stream` is the stream whose work makes it,
    None where that is done; `follow` has another stream wait for that.
    """

    pointer: int
    dtype: str
    lens: tuple[int, ...]
    strides: tuple[int, ...]
    kind: int
    device: int
    read: Callable[[DeviceArray], Array] = field(repr=False)
    owner: object = field(repr=False)
    stream: int | None = None
    follow: Callable[[int, int], None] | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lens

    def used_on(self, stream: int | None) -> None:
        """Note that a stream, None: any stream, is given work on the memory."""
        if isinstance(self.owner, ResultMemory):
            self.owner.used_on(stream)

    def numpy(self) -> Array:
        """A copy in the CPU's memory."""
        return self.read(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        dtype = numpy_dtype(self.dtype)
        strides = tuple(s * dtype.itemsize for s in self.strides)
        data = (self.pointer, False)
        stream = None if self.stream is None else self.stream or LEGACY_STREAM
        self.used_on(None)
        told = {"shape": self.lens, "typestr": dtype.str, "data": data, "strides": strides, "version": 3}
        return told | {"stream": stream}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, self.device

    def __dlpack__(self, *, stream: int | None = None, **_: object) -> object:
        """A DLPack capsule; `stream`, by DLPack's numbers, waits for what is under way."""
        taker = 0 if stream in (None, LEGACY_STREAM) else stream
        if self.stream is not None and self.follow is not None and taker not in (_NO_STREAM, self.stream):
            self.follow(self.stream, taker)
        self.used_on(None if taker == _NO_STREAM else taker)
        rank = len(self.lens)
        shape, strides = (ctypes.c_int64 * rank)(*self.lens), (ctypes.c_int64 * rank)(*self.strides)
        code, bits = _code_and_bits(self.dtype)
        pointer = ctypes.POINTER(ctypes.c_int64)
        tensor = _Tensor(
            *(self.pointer, _Device(self.kind, self.device), rank, _DataType(code, bits, 1)),
            *(ctypes.cast(shape, pointer), ctypes.cast(strides, pointer), 0),
        )
        managed = _Managed(tensor, None, ctypes.cast(_take_back, ctypes.c_void_p))
        address = ctypes.addressof(managed)
        _lent[address] = (managed, shape, strides, self)
        return _new_capsule(address, _NAME, None)


_readers: dict[type, Reader | None] = {
    DeviceArray: Reader(
        key=lambda x: (x.kind, x.device, x.dtype, x.lens, x.strides),
        pointer=lambda x: x.pointer,
        stream=lambda x: x.stream,
    )
}
