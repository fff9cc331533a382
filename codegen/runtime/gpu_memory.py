"""A GPU's memory, given back when nobody holds it any more."""

from __future__ import annotations

import weakref

from genrw.codegen.runtime.gpu_runtime import GpuRuntime


class Memory:
    """Memory for what lasts: whoever gives it back waits until the GPU is done."""

    def __init__(self, runtime: GpuRuntime, size: int) -> None:
        self.pointer = runtime.allocate(size)
        weakref.finalize(self, runtime.free, self.pointer)


class ResultMemory:
    """Memory of a result of a call, in the order of a stream: taking it and giving it back do not wait for the GPU."""

    def __init__(self, runtime: GpuRuntime, size: int, stream: int) -> None:
        self._streams: dict[int | None, None] = {stream: None}
        self.pointer = runtime.allocate_on(size, stream)
        weakref.finalize(self, runtime.free_behind, self.pointer, self._streams)

    def used_on(self, stream: int | None) -> None:
        """Note that a stream has work on the memory, which is given back behind that; None: on nobody knows which stream."""
        self._streams[stream] = None
