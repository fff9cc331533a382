"""The devices that programs run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from genrw.codegen.host_program import HostProgram
from genrw.grammar.diagnostics import error

if TYPE_CHECKING:
    from genrw.codegen.gpu_runtime import GpuRuntime
    from genrw.codegen.printer import KernelSource
    from genrw.program import Program

Prepared = Callable[..., dict[str, Any]]
"""A program ready to run: called on arrays by name and the device's settings, gives the results by name."""


class Device(Protocol):
    """Prepares programs; a prepared one runs, as often as one likes, on arrays by the parameters' names."""

    name: str
    default_target: str
    """What programs are lowered for that name no target."""

    def prepare(self, program: Program) -> Prepared: ...


class HostDevice:
    """The CPU: any target's printed kernels, compiled for this machine. Settings: `threads`, `order`."""

    name = "host"
    default_target = "host"

    def prepare(self, program: Program) -> Prepared:
        return self.load(program, program.kernels())

    def load(self, program: Program, kernels: list[KernelSource]) -> Prepared:
        """The same for kernels that are printed already."""
        loaded = [HostProgram.compile(source) for source in kernels]
        names = list(program.results)

        def run(inputs: Mapping[str, object], *, threads: int | None = None, order: int = 0) -> dict[str, Any]:
            given = given_inputs(program, inputs)
            written = [kernel(given, threads=threads, order=order).values() for kernel in loaded]
            return dict(zip(names, (array for arrays in written for array in arrays), strict=True))

        return run


class InterpretDevice:
    """numpy: a program at whatever stage it is, over all groups and lanes. Setting: `precise`."""

    name = "interpret"
    default_target = "host"

    def prepare(self, program: Program) -> Prepared:
        from genrw.engine.interpret import interpret

        names = list(program.results)

        def run(inputs: Mapping[str, Any], *, precise: bool = False) -> dict[str, Any]:
            all_given = given_inputs(program, inputs)
            arrays: list[Any] = []
            for module in program.modules:
                taken = {p.attribute("name") for p in module.parameters}
                given = {name: array for name, array in all_given.items() if name in taken}
                context = program.context(module)
                results = interpret(module, program.library, context, given, precise=precise)
                arrays += results.values()
            return dict(zip(names, arrays, strict=True))

        return run


def given_inputs(program: Program, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inputs, with the usual values of those that are not given; GenrwError for some that no parameter is called."""
    unknown = [name for name in inputs if name not in program.inputs]
    if unknown:
        names = ", ".join(program.inputs)
        remedy = f"its inputs are {names}" if names else "it has no inputs"
        raise error(f"the program has no input `{unknown[0]}`", remedy=remedy)
    return {**program.defaults, **inputs}


_ALWAYS: dict[str, Device] = {d.name: d for d in (HostDevice(), InterpretDevice())}
# Devices of this machine's GPUs, and where their runtimes are; opened when asked for.
GPU_SORTS = {"hip": ("genrw.codegen.hip", "HipRuntime"), "cuda": ("genrw.codegen.cuda", "CudaRuntime")}
DEVICE_NAMES = (*_ALWAYS, *GPU_SORTS)


def find_device(name: str) -> Device:
    """A device by name; of several GPUs, `cuda:1` is the second. GenrwError if there is none of that name."""
    if name in _ALWAYS:
        return _ALWAYS[name]
    sort, _, number = name.partition(":")
    if sort not in GPU_SORTS or not (number or "0").isdecimal():
        raise error(f"there is no device `{name}`", remedy=f"devices are {', '.join(DEVICE_NAMES)}")
    from genrw.codegen.gpu import GpuDevice

    return GpuDevice(open_gpu(sort, int(number or 0)))


@cache
def open_gpu(sort: str, number: int = 0) -> GpuRuntime:
    """A GPU's runtime, opened once; GenrwError if it is not there."""
    module, name = GPU_SORTS[sort]
    runtime: GpuRuntime = getattr(import_module(module), name)(number)
    return runtime
