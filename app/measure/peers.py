"""Other libraries on the same work: PyTorch on a GPU, eager and compiled as for its best speed; numpy on the CPU. Timed
as our kernels are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from genrw.codegen.runtime.array_layout import Array, from_memory, to_memory
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.grammar.diagnostics import error
from genrw.measure.cases import BenchCase
from genrw.measure.compile_ahead import compile_ahead
from genrw.measure.counterparts import Counterparts, Function
from genrw.measure.torch_counterparts import compiled, imported_torch, strided_copy, torch_arrays, with_own_results
from genrw.program import Program

if TYPE_CHECKING:
    from genrw.measure.gpu_case import GpuCase
    from genrw.measure.host_case import HostCase

_GRAPH_RUNS = 20
_WARM_RUNS = 3
_FEW_CASES = 8
"""Up to so many cases, starting processes takes longer than they save."""

Times = Mapping[str, float | str]
"""Microseconds of each way to do a case's work; the message where one fails."""


class Peers(Protocol):
    """Other libraries on the work of cases."""

    def prepare(self, cases: Sequence[BenchCase], target: str) -> None:
        """Do ahead what can be done for all cases together."""

    def __call__(self, case: BenchCase, loaded: Any) -> Times: ...


class TorchPeers:
    """PyTorch's counterparts on a GPU."""

    def __init__(self, path: Path, count: int) -> None:
        """GenrwError if PyTorch or the file is not there. `count` graphs are timed for each."""
        try:
            self.torch = imported_torch()
        except ImportError:
            raise error("PyTorch is not there to compare with", remedy="leave out --peers, or install torch") from None
        self.path, self.counterparts = path, Counterparts(path)
        self.count = count

    def prepare(self, cases: Sequence[BenchCase], target: str) -> None:
        if len(cases) > _FEW_CASES:
            compile_ahead(self.path, cases, target, "cuda")

    def __call__(self, case: BenchCase, loaded: GpuCase) -> Times:
        function = self.counterparts.of(case, loaded.program)
        if function is None:
            return {}
        first = torch_arrays(self.torch, loaded.program, loaded.inputs, "cuda")
        sets = [first, *([strided_copy(tensor) for tensor in first] for _ in loaded.sets[1:])]
        try:
            function = with_own_results(self.torch, function, first)
        except Exception as problem:  # whatever a peer raises is its figure
            return dict.fromkeys(("eager", "torch.compile"), type(problem).__name__)
        found: dict[str, float | str] = {}
        for name, run in (("eager", function), ("torch.compile", compiled(self.torch, function))):
            try:
                started = time.perf_counter()
                run(*sets[0])
                self.torch.cuda.synchronize()
                found[f"{name} first s"] = f"{time.perf_counter() - started:.1f}"
                found[name] = self._time(run, sets)
            except Exception as problem:  # whatever a peer raises is its figure
                found[name] = type(problem).__name__
        del first, sets
        self.torch.compiler.reset()
        self.torch.cuda.empty_cache()
        return found

    def _time(self, run: Function, sets: list[list[Any]]) -> float:
        cuda = self.torch.cuda
        stream = cuda.Stream()
        with cuda.stream(stream):
            for i in range(_WARM_RUNS):
                run(*sets[i % len(sets)])
            stream.synchronize()
            graph = cuda.CUDAGraph()
            # Results that are let go at once would be written to the same memory in each run, and stay in the cache.
            results = [None] * len(sets)
            with cuda.graph(graph, stream=stream):
                for i in range(_GRAPH_RUNS):
                    results[i % len(sets)] = run(*sets[i % len(sets)])
            times = []
            for _ in range(self.count + 1):
                before, after = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
                before.record(stream)
                graph.replay()
                after.record(stream)
                stream.synchronize()
                times.append(1e3 * before.elapsed_time(after) / _GRAPH_RUNS)
        del graph, results
        return float(statistics.median(times[1:]))


class NumpyPeers:
    """numpy's counterparts on the CPU."""

    def __init__(self, path: Path, count: int) -> None:
        """GenrwError if the file is not there. `count` calls are timed."""
        self.counterparts = Counterparts(path)
        self.count = count

    def prepare(self, cases: Sequence[BenchCase], target: str) -> None:
        pass

    def __call__(self, case: BenchCase, loaded: HostCase) -> Times:
        function = self.counterparts.of(case, loaded.program)
        if function is None:
            return {}
        arrays = numpy_arrays(loaded.program, loaded.inputs)
        types = [numpy_dtype(node.type.dtype) for node in loaded.program.results.values()]
        times = []
        try:
            with np.errstate(all="ignore"):
                for _ in range(self.count + 1):
                    started = time.perf_counter()
                    own_results(function(*arrays), types, arrays)
                    times.append(1e6 * (time.perf_counter() - started))
        except Exception as problem:  # whatever a peer raises is its figure
            return {"numpy": type(problem).__name__}
        return {"numpy": statistics.median(times[1:])}


def numpy_arrays(program: Program, inputs: Mapping[str, Array]) -> list[Array]:
    """A program's inputs with the strides that it says, in order."""
    types = [(name, node.type) for name, node in program.inputs.items()]
    return [from_memory(to_memory(inputs[name], t.layout), t.lens, t.layout) for name, t in types]


def own_results(results: Any, types: list[np.dtype[Any]], inputs: Sequence[Array]) -> list[Array]:
    """Results as the program returns them: in order, in memory of their own, of its types; what was computed in a wider type
    is rounded."""
    arrays = [np.asarray(array) for array in (results if isinstance(results, tuple) else (results,))]
    shared = [any(np.may_share_memory(array, x) for x in inputs) for array in arrays]
    return [array.astype(dtype, order="C", copy=copy) for array, dtype, copy in zip(arrays, types, shared, strict=True)]
