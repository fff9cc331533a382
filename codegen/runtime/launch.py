"""`launch.json`: what a caller needs to load and launch a program's kernels, and what they use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genrw.codegen.hip.printer import Argument, Description, KernelSource
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.programs.launches import INPUT, SCRATCH

if TYPE_CHECKING:
    from genrw.codegen.runtime.amd import KernelReport
    from genrw.engine.ir.nodes import Module, Node
    from genrw.engine.programs.launches import KernelLaunch, MemorySlot

FORMAT = 1
"""The version of the layout of launch.json; it changes when a reader of the old one would misread the new."""


@dataclass(frozen=True)
class Built:
    """A printed kernel, the names of its files by kind, and what its code object says that it uses."""

    source: KernelSource
    files: Mapping[str, str]
    report: KernelReport | None = None


def launch_table(program: StagedProgram, kernels: Sequence[Built]) -> dict[str, Any]:
    """The launch table of a program: its inputs, results and scratch buffers, and its launches in order."""
    lowered = program.lower(program.stages[-1])
    target = program.library.target(program.options.target)
    plan = program.launches()
    names = _Names(list(program.inputs), list(program.results))
    return {
        "format": FORMAT,
        "target": target.name,
        "wave_size": target.member("wave_size"),
        "inputs": [_input(name, node) for name, node in program.inputs.items()],
        "results": [
            _tensor(name, node) | ({"same_as": names.results[same]} if same != number else {})
            for number, ((name, node), same) in enumerate(zip(program.results.items(), plan.results, strict=True))
        ],
        "scratch_buffers": [{"buffer": names.scratch(n), "bytes": size} for n, size in enumerate(plan.scratch)],
        "kernels": [_kernel(lowered.modules[s.kernel], kernels[s.kernel], s, names) for s in plan.steps],
    }


@dataclass(frozen=True)
class _Names:
    """What the table calls memory: inputs and results by the program's names, scratch buffers by number."""

    inputs: Sequence[str]
    results: Sequence[str]

    def scratch(self, number: int) -> str:
        name = f"scratch{number}"
        while name in self.inputs:
            name += "_"
        return name


def _input(name: str, node: Node) -> dict[str, Any]:
    """An input; one with a usual value names the `.npy` file that holds it."""
    file = node.attribute("file")
    return _tensor(name, node) | ({"file": file} if file else {})


def _tensor(name: str, node: Node) -> dict[str, Any]:
    type_ = node.type
    return {"name": name, "type": type_.dtype, "shape": list(type_.lens), "strides": list(type_.layout)}


def _kernel(module: Module, kernel: Built, step: KernelLaunch, names: _Names) -> dict[str, Any]:
    source = kernel.source
    return {
        "name": source.name,
        "files": dict(kernel.files),
        "grid": [source.launched_groups, 1, 1],
        "block": [source.launched, 1, 1],
        "lds_bytes": source.lds_bytes,
        "arguments": [_argument(a, step.places[a.parameter], names) for a in source.arguments],
        "scratch_buffers": [names.scratch(number) for number in _scratch(step)],
        "schedule": dict(module.schedule),
        "resources": _resources(kernel.report) if kernel.report is not None else None,
    }


def _argument(argument: Argument, place: MemorySlot, names: _Names) -> dict[str, Any]:
    """An argument and the memory that it is given: an input, a scratch buffer, or what holds a result afterwards."""
    entry: dict[str, Any] = {"buffer": argument.parameter, "kind": "output" if argument.written else "input"}
    if place.kind == INPUT:
        entry["buffer"] = names.inputs[place.number]
    elif place.kind == SCRATCH:
        entry["buffer"] = names.scratch(place.number)
    else:
        entry["result"] = names.results[place.number]
    entry |= {"type": argument.dtype, "shape": list(argument.lens), "strides": list(argument.strides)}
    if argument.described is not None:
        entry["described"] = _described(argument.described)
    return entry


def _described(made: Description) -> dict[str, Any]:
    """What the launcher gives the kernel in place of the memory's address."""
    lens, strides, box = list(made.lens), list(made.strides), list(made.box)
    described = {"shape": lens, "strides": strides, "begin": made.begin, "box": box, "swizzle": made.swizzle}
    if made.places:
        walked = {"places": list(made.places), "steps": list(made.steps), "begins": list(made.begins)}
        described |= walked
    return described


def _scratch(step: KernelLaunch) -> list[int]:
    """The scratch buffers that a launch reads or writes."""
    return sorted({place.number for place in step.places.values() if place.kind == SCRATCH})


def _resources(report: KernelReport) -> dict[str, Any]:
    return {
        "registers": {"vgpr": report.vgprs, "agpr": report.agprs, "sgpr": report.sgprs},
        "spills": {"vgpr": report.vgpr_spills, "sgpr": report.sgpr_spills},
        "lds_bytes": report.lds_bytes,
        "scratch_bytes": report.scratch_bytes,
        "code_bytes": report.code_bytes,
        "kernarg_bytes": report.kernarg_bytes,
    }
