"""The devices that programs run on."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from genrw.codegen.hip.program import print_program
from genrw.codegen.runtime.device import Device, Prepared
from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.engine.lowering.program import StagedProgram
from genrw.grammar.diagnostics import error

if TYPE_CHECKING:
    from genrw.codegen.hip.printer import KernelSource
    from genrw.codegen.runtime.gpu_runtime import GpuRuntime


class HostDevice:
    """The CPU: any target's printed kernels, compiled for this machine. Settings: `threads`, `order`, `poison`."""

    name = "host"
    default_target = "host"
    settings: tuple[str, ...] = ("threads", "order", "poison")

    @cached_property
    def model(self) -> str:
        return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"

    def prepare(self, program: StagedProgram) -> Prepared:
        return self.load(program, print_program(program))

    def load(self, program: StagedProgram, kernels: list[KernelSource]) -> Prepared:
        """The same for kernels that are printed already."""
        return HostSequence([HostProgram.compile(source) for source in kernels], program)


class InterpretDevice:
    """numpy: a program at whatever stage it is, over all groups and lanes. Setting: `precise`."""

    name = "interpret"
    default_target = "host"
    settings: tuple[str, ...] = ("precise",)
    model = "interpret"

    def prepare(self, program: StagedProgram) -> Prepared:
        from genrw.codegen.runtime.interpreted import results_of

        def run(inputs: Mapping[str, Any], *, precise: bool = False) -> dict[str, Any]:
            return results_of(program, inputs, precise=precise)

        return run


_ALWAYS: dict[str, Device] = {HostDevice.name: HostDevice(), InterpretDevice.name: InterpretDevice()}
# Devices of this machine's GPUs, and where their runtimes are; opened when asked for.
GPU_SORTS = {
    "hip": ("genrw.codegen.runtime.hip_runtime", "HipRuntime"),
    "cuda": ("genrw.codegen.runtime.cuda", "CudaRuntime"),
}
DEVICE_NAMES = (*_ALWAYS, *GPU_SORTS)


def find_device(name: str) -> Device:
    """A device by name; of several GPUs, `cuda:1` is the second. GenrwError if there is none of that name."""
    if name in _ALWAYS:
        return _ALWAYS[name]
    sort, _, number = str(name).partition(":")
    if sort not in GPU_SORTS or not (number or "0").isdecimal():
        raise error(f"there is no device `{name}`", remedy=f"devices are {', '.join(DEVICE_NAMES)}")
    from genrw.codegen.runtime.gpu import GpuDevice

    return GpuDevice(open_gpu(sort, int(number or 0)))


@cache
def open_gpu(sort: str, number: int = 0) -> GpuRuntime:
    """A GPU's runtime, opened once; GenrwError if it is not there."""
    module, name = GPU_SORTS[sort]
    runtime: GpuRuntime = getattr(import_module(module), name)(number)
    return runtime
