"""PyTorch on the same work: eager, and compiled as for its best speed. Timed as our kernels are."""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from genrw.grammar.diagnostics import error

if TYPE_CHECKING:
    from genrw.measure.gpu_case import GpuCase

_GRAPH_RUNS = 20
_WARM_RUNS = 3
_MODE = "max-autotune-no-cudagraphs"


class TorchPeers:
    """The functions of a Python file, each for the case of its name: tensors in, tensors out."""

    def __init__(self, path: Path, count: int) -> None:
        """GenrwError if PyTorch or the file is not there. `count` graphs are timed for each."""
        try:
            self.torch = importlib.import_module("torch")
        except ImportError:
            raise error("PyTorch is not there to compare with", remedy="leave out --peers, or install torch") from None
        self.functions = _module(path)
        self.count = count

    def __call__(self, case: GpuCase) -> Mapping[str, float | str]:
        """Microseconds of each way to run a case's function; the message where one fails."""
        function = getattr(self.functions, case.name, None)
        if function is None:
            return {}
        sets = [self._tensors(case) for _ in case.sets]
        compiled = self.torch.compile(function, mode=_MODE)
        found: dict[str, float | str] = {}
        for name, run in (("eager", function), ("torch.compile", compiled)):
            try:
                started = time.perf_counter()
                run(*sets[0])
                self.torch.cuda.synchronize()
                found[f"{name} first s"] = f"{time.perf_counter() - started:.1f}"
                found[name] = self._time(run, sets)
            except Exception as problem:  # whatever a peer raises is its figure
                found[name] = type(problem).__name__
        self.torch.compiler.reset()
        self.torch.cuda.empty_cache()
        return found

    def _tensors(self, case: GpuCase) -> list[Any]:
        return [self.torch.from_numpy(array.copy()).cuda() for array in case.inputs.values()]

    def _time(self, run: Callable[..., Any], sets: list[list[Any]]) -> float:
        cuda = self.torch.cuda
        stream = cuda.Stream()
        with cuda.stream(stream):
            for i in range(_WARM_RUNS):
                run(*sets[i % len(sets)])
            stream.synchronize()
            graph = cuda.CUDAGraph()
            with cuda.graph(graph, stream=stream):
                for i in range(_GRAPH_RUNS):
                    run(*sets[i % len(sets)])
            times = []
            for _ in range(self.count + 1):
                before, after = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
                before.record(stream)
                graph.replay()
                after.record(stream)
                stream.synchronize()
                times.append(1e3 * before.elapsed_time(after) / _GRAPH_RUNS)
        del graph
        return float(statistics.median(times[1:]))


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("genrw_peers", path)
    if spec is None or spec.loader is None or not path.exists():
        raise error(f"there is no Python file {path}", remedy="give one with a function for each case")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
