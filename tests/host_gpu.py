"""The CPU in a GPU's part: what a vendor's runtime would do, done with printed kernels built for the host.

A run takes 20 µs, the next one 20 µs longer, and so on.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.gpu_runtime import GpuRuntime, Launcher, Mark
from genrw.codegen.runtime.host_program import HostProgram

CPU = 1

# What was built, in whichever object: code objects outlive it in the cache.
_known: dict[bytes, KernelSource] = {}


class HostGpu(GpuRuntime):
    """Addresses are the process's own, so arrays of numpy can pose as a GPU's."""

    name = "hip"
    kind = CPU
    remedy = ""
    number = 0
    arch = "gfx942"
    model = "the CPU"
    compiler = "none"
    is_sooner_by_graphs = True

    def __init__(self) -> None:
        self.built: list[KernelSource] = []
        self.marks: list[int] = []
        self.waits: list[tuple[int, int]] = []
        self.finished: list[int] = []
        self.memory: dict[int, Array] = {}
        self.failing = False
        self.capturing: set[int] = set()
        self.freed: list[tuple[int | None, ...]] = []
        """The streams behind whose work each result was given back."""
        self.graphs: list[int] = []
        """How often each graph was launched."""

    def count(self) -> int:
        return 1

    def build(self, kernel: KernelSource) -> bytes:
        self.built.append(kernel)
        _known[kernel.text.encode()] = kernel
        return kernel.text.encode()

    def scratch_bytes(self, image: bytes, kernel: str) -> int:  # noqa: ARG002
        return 0

    def is_capturing(self, stream: int) -> bool:
        return stream in self.capturing

    def enter(self) -> None:
        pass

    def load(self, image: bytes, kernel: str, dynamic_lds_bytes: int = 0) -> Any:
        assert (_known[image].name, _known[image].dynamic_lds_bytes) == (kernel, dynamic_lds_bytes)
        return HostProgram.compile(_known[image])

    def allocate(self, size: int) -> int:
        memory = np.full(max(size, 1) + 256, 0xAB, np.uint8)
        pointer = int(memory.ctypes.data) + 255 & -256
        self.memory[pointer] = memory
        return pointer

    def free(self, pointer: int) -> None:
        del self.memory[pointer]

    def free_behind(self, pointer: int, streams: Collection[int | None]) -> None:
        self.freed.append(tuple(streams))
        self.free(pointer)

    def write(self, pointer: int, array: Array, stream: int) -> None:  # noqa: ARG002
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def read(self, array: Array, pointer: int, stream: int) -> None:  # noqa: ARG002
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)

    def copy(self, to: int, pointer: int, size: int, stream: int) -> None:  # noqa: ARG002
        ctypes.memmove(to, pointer, size)

    def fill(self, pointer: int, byte: int, size: int, stream: int) -> None:  # noqa: ARG002
        ctypes.memset(pointer, byte, size)

    def times(self, run: Callable[[int], None], count: int) -> list[float]:
        for _ in range(count):
            run(0)
        return [20.0 * (i + 1) for i in range(count)]

    def synchronize(self, stream: int) -> None:
        self.finished.append(stream)

    def mark(self, stream: int) -> Mark:
        mark = Mark(stream)
        self.marks.append(stream)
        weakref.finalize(mark, self.marks.remove, stream)
        return mark

    def wait_for(self, mark: Mark, stream: int) -> None:
        self.waits.append((mark.event, stream))

    def said(self, status: Any) -> str:
        return str(status)

    def move(self, mark: Mark, stream: int) -> None:
        assert mark.event == stream

    def launcher(self, function: Any, kernel: KernelSource) -> Launcher:
        def start(pointers: Sequence[int], stream: int) -> None:  # noqa: ARG001
            if self.failing:
                self.call("the launch failed", lambda: (719,))
            assert kernel == function.source
            arguments = [_at(p, a.lens, a.strides, a.dtype) for p, a in zip(pointers, kernel.arguments, strict=True)]
            function.launch(arguments)

        return start

    def captured(self, run: Callable[[int], None]) -> Callable[[int], None]:
        number = len(self.graphs)
        self.graphs.append(0)

        def launch(stream: int) -> None:
            self.graphs[number] += 1
            run(stream)

        return launch


class OnGpu:
    """A numpy array that says it lies on a GPU, by `__cuda_array_interface__`."""

    def __init__(self, array: np.ndarray, stream: int | None = None, **changed: Any) -> None:
        interface = {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ctypes.data, False)}
        interface |= {"strides": array.strides, "version": 3, "stream": stream}
        self.__cuda_array_interface__ = interface | changed
        self.array = array


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that starts at a multiple of 64 bytes, which is enough for kernels that use it where it lies."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def _at(pointer: int, lens: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> Array:
    from genrw.codegen.runtime.array_layout import memory_size
    from genrw.engine.ir.dtypes import numpy_dtype

    size = memory_size(lens, strides)
    raw = (ctypes.c_char * (size * numpy_dtype(dtype).itemsize)).from_address(pointer)
    return np.frombuffer(raw, numpy_dtype(dtype))
