"""PyTorch's counterparts compiled ahead by several processes, so that the one that measures finds them in PyTorch's cache.

One process takes seconds for each. What goes wrong here does no harm: whatever is not in the cache is compiled when it is
measured. Which configuration of a kernel is the fastest is found out when it is measured, in any case: here several
processes share the GPU.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from genrw.api import load_source
from genrw.engine.lowering.options import Options
from genrw.measure.cases import BenchCase
from genrw.measure.counterparts import Counterparts
from genrw.measure.torch_counterparts import compiled, imported_torch, with_own_results
from genrw.processes import deaf_to_interrupts, ready_to_end
from genrw.program import Program

_MOST_PROCESSES = 8
_MOST_SECONDS = 150.0
_COMPILER_THREADS = "2"


def compile_ahead(path: Path, cases: Sequence[BenchCase], target: str, device: str) -> None:
    """Compile the counterparts of cases, until they are done or time is up."""
    count = min(_MOST_PROCESSES, max(1, (os.cpu_count() or 1) // 2), len(cases))
    context = get_context("spawn")
    shares = [list(cases[i::count]) for i in range(count)]
    processes = [context.Process(target=_compile, args=(path, share, target, device), daemon=False) for share in shares]
    until = time.monotonic() + _MOST_SECONDS
    with deaf_to_interrupts():
        for process in processes:
            process.start()
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
    late = [process for process in processes if process.is_alive()]
    for process in late:
        process.terminate()
        process.join()
    if late:
        print(f"not all counterparts were compiled in {_MOST_SECONDS:.0f} s", file=sys.stderr, flush=True)


# ---- in the other processes


def _compile(path: Path, cases: Sequence[BenchCase], target: str, device: str) -> None:
    ready_to_end()
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = _COMPILER_THREADS
    torch = imported_torch()
    counterparts = Counterparts(path)
    for case in cases:
        with suppress(Exception):  # the process that measures will meet it, and say so
            program = load_source(case.source, Options(target))
            function = counterparts.of(case, program)
            if function is not None:
                arrays = _any_arrays(torch, program, device)
                compiled(torch, with_own_results(torch, function, arrays))(*arrays)
        torch.compiler.reset()


def _any_arrays(torch: Any, program: Program, device: str) -> list[Any]:
    """Tensors of the types, shapes and strides of a program's inputs."""
    names = {"half": "float16", "bf16": "bfloat16", "float": "float32", "double": "float64"}
    types = [node.type for node in program.inputs.values()]
    made = [
        torch.empty_strided(t.lens, t.layout, dtype=getattr(torch, names.get(t.dtype, t.dtype)), device=device)
        for t in types
    ]
    for tensor in made:
        tensor.zero_()
    return made
