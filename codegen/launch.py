"""`launch.json`: what a caller needs to load and launch a program's kernels, and what they use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genrw.codegen.printer import Argument, KernelSource

if TYPE_CHECKING:
    from genrw.codegen.amd import KernelReport
    from genrw.engine.ir import Module, Node
    from genrw.program import Program

FORMAT = 1
"""The version of the layout of launch.json; it changes when a reader of the old one would misread the new."""


@dataclass(frozen=True)
class Built:
    """A printed kernel, the names of its files by kind, and what its code object says that it uses."""

    source: KernelSource
    files: Mapping[str, str]
    report: KernelReport | None = None


def launch_table(program: Program, kernels: Sequence[Built]) -> dict[str, Any]:
    """The launch table of a program: its inputs and results, and its kernels in the order of their launch."""
    lowered = program.lower(program.stages[-1])
    target = program.library.target(program.options.target)
    return {
        "format": FORMAT,
        "target": target.name,
        "wave_size": target.member("wave_size"),
        "inputs": [_input(name, node) for name, node in program.inputs.items()],
        "results": [_tensor(name, node) for name, node in program.results.items()],
        "kernels": [_kernel(m, k, results) for m, k, results in _with_results(program, lowered, kernels)],
    }


def _with_results(
    program: Program, lowered: Program, kernels: Sequence[Built]
) -> list[tuple[Module, Built, dict[str, str]]]:
    """Each kernel with the names of the results that its written arguments hold."""
    names = iter(program.results)
    return [
        (module, kernel, {a.parameter: next(names) for a in kernel.source.arguments if a.written})
        for module, kernel in zip(lowered.modules, kernels, strict=True)
    ]


def _input(name: str, node: Node) -> dict[str, Any]:
    """An input; one with a usual value names the `.npy` file that holds it."""
    file = node.attribute("file")
    return _tensor(name, node) | ({"file": file} if file else {})


def _tensor(name: str, node: Node) -> dict[str, Any]:
    type_ = node.type
    return {"name": name, "type": type_.dtype, "shape": list(type_.lens), "strides": list(type_.layout)}


def _kernel(module: Module, kernel: Built, results: Mapping[str, str]) -> dict[str, Any]:
    source = kernel.source
    return {
        "name": source.name,
        "files": dict(kernel.files),
        "grid": [source.groups, 1, 1],
        "block": [source.block, 1, 1],
        "lds_bytes": source.lds_bytes,
        "arguments": [_argument(a, results) for a in source.arguments],
        "scratch_buffers": [],
        "schedule": dict(module.schedule),
        "resources": _resources(kernel.report) if kernel.report is not None else None,
    }


def _argument(argument: Argument, results: Mapping[str, str]) -> dict[str, Any]:
    """An argument; one that is written names the result that it holds afterwards."""
    entry: dict[str, Any] = {"buffer": argument.parameter, "kind": "output" if argument.written else "input"}
    if argument.written:
        entry["result"] = results[argument.parameter]
    entry |= {"type": argument.dtype, "shape": list(argument.lens), "strides": list(argument.strides)}
    return entry


def _resources(report: KernelReport) -> dict[str, Any]:
    return {
        "registers": {"vgpr": report.vgprs, "agpr": report.agprs, "sgpr": report.sgprs},
        "spills": {"vgpr": report.vgpr_spills, "sgpr": report.sgpr_spills},
        "lds_bytes": report.lds_bytes,
        "scratch_bytes": report.scratch_bytes,
        "code_bytes": report.code_bytes,
        "kernarg_bytes": report.kernarg_bytes,
    }
