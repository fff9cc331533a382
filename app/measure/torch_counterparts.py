"""PyTorch's counterparts as they are timed: compiled for the best speed, on inputs that lie as a program says, with results
in memory of their own."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genrw.codegen.runtime.array_layout import Array, to_memory
from genrw.measure.counterparts import Function
from genrw.program import Program

_MODE = "max-autotune-no-cudagraphs"


def imported_torch() -> Any:
    """PyTorch, whose compiler does not remember which configurations were the fastest. ImportError without it."""
    torch = importlib.import_module("torch")
    config: Any = importlib.import_module("torch._inductor.config")
    if hasattr(config, "autotune_local_cache"):
        config.autotune_local_cache = False
    return torch


def compiled(torch: Any, function: Function) -> Function:
    """A counterpart compiled as for its best speed."""
    made: Function = torch.compile(function, mode=_MODE)
    return made


def with_own_results(torch: Any, function: Function, arrays: Sequence[Any]) -> Function:
    """The function, whose results lie in order in memory of their own, as ours do: a view of its inputs takes no time. What
    it does with `arrays` says which of its results it must copy."""
    inputs = {array.untyped_storage().data_ptr() for array in arrays}
    copied = [r.untyped_storage().data_ptr() in inputs or not r.is_contiguous() for r in _as_tuple(function(*arrays))]
    if not any(copied):
        return function

    def run(*arrays: Any) -> tuple[Any, ...]:
        results = zip(_as_tuple(function(*arrays)), copied, strict=True)
        return tuple(r.clone(memory_format=torch.contiguous_format) if copy else r for r, copy in results)

    return run


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def torch_arrays(torch: Any, program: Program, inputs: Mapping[str, Array], device: str) -> list[Any]:
    """A program's inputs as tensors with the same strides, in order."""
    tensors = []
    for name, node in program.inputs.items():
        type_ = node.type
        flat = np.array(to_memory(inputs[name], type_.layout))
        raw = torch.from_numpy(flat.view(np.int16)).to(device).view(torch.bfloat16) if type_.dtype == "bf16" else None
        memory = torch.from_numpy(flat).to(device) if raw is None else raw
        tensors.append(memory.as_strided(type_.lens, type_.layout))
    return tensors


def strided_copy(tensor: Any) -> Any:
    """A copy with the same strides: PyTorch's own leaves gaps out."""
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.as_strided((elements,), (1,)).clone().as_strided(tensor.shape, tensor.stride())
