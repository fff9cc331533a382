"""Launches of a program's kernels as graphs, for calls whose memory lies where that of earlier ones lay.

A launch costs the CPU some microseconds, a graph of all launches about as much as one of them: where kernels are short, the GPU
waits for the CPU no longer. A graph has the addresses of all memory in it, so there is one for each set of addresses that comes
again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from genrw.codegen.runtime.gpu_runtime import GpuRuntime

FEWEST = 3
"""Fewer launches than these cost no more than a graph of them."""
_GRAPHS = 16
_IDLE_CALLS = 64
"""A graph that was not used in so many calls makes room for another one: sets of addresses that take turns by the dozen are
launched as they are."""
_MET = 256
"""How many sets of addresses are remembered that came once."""


@dataclass
class _Graph:
    """What launches all kernels of a call, and the number of the last call that it did so for."""

    launch: Callable[[int], None]
    used: int


class Replays:
    """The graphs of one program on a GPU. `run` starts its kernels one after the other on a stream."""

    def __init__(self, runtime: GpuRuntime) -> None:
        self._runtime = runtime
        self._graphs: dict[Hashable, _Graph] = {}
        self._met: dict[Hashable, None] = {}
        self._calls = 0

    def started(self, addresses: Hashable, stream: int, run: Callable[[int], None]) -> None:
        """Start the kernels of a call on a stream: as a graph if one of the same addresses came before."""
        self._calls += 1
        graph = self._graphs.get(addresses) or self._made(addresses, run)
        if graph is None:
            run(stream)
            return
        graph.used = self._calls
        graph.launch(stream)

    def _made(self, addresses: Hashable, run: Callable[[int], None]) -> _Graph | None:
        """A graph for addresses that were met before, if there is room for one."""
        if addresses not in self._met:
            if len(self._met) >= _MET:
                self._met.clear()
            self._met[addresses] = None
            return None
        if len(self._graphs) >= _GRAPHS:
            oldest = min(self._graphs, key=lambda key: self._graphs[key].used)
            if self._graphs[oldest].used > self._calls - _IDLE_CALLS:
                return None
            del self._graphs[oldest]
        graph = self._graphs[addresses] = _Graph(self._runtime.captured(run), self._calls)
        return graph
