"""Programs on a GPU: kernels compiled at run time, arguments checked, results handed out where the inputs lie."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from genrw.codegen.compilers import device_header
from genrw.codegen.devices import Prepared
from genrw.codegen.given import given_inputs
from genrw.codegen.gpu_arrays import DeviceArray, DeviceView, device_view, stream_address
from genrw.codegen.gpu_runtime import GpuRuntime, Mark
from genrw.codegen.layout import Array, check_array, from_memory, memory_size, to_memory
from genrw.codegen.printer import Argument, KernelSource
from genrw.engine.dtypes import DTYPES, numpy_dtype
from genrw.engine.launches import INPUT, SCRATCH, Place
from genrw.engine.types import packed_strides
from genrw.grammar.cache import cache_folder, cache_key, read_entry, write_entry
from genrw.grammar.diagnostics import GenrwError, error

if TYPE_CHECKING:
    from genrw.program import Program

# The widest access of a kernel is 16 bytes: what starts elsewhere cannot be read so.
_ALIGNMENT = 16


class GpuDevice:
    """A GPU as a device. Settings of a prepared program: `stream`, on which it is to run; `out`, arrays of the GPU by
    result."""

    settings: tuple[str, ...] = ("stream", "out")

    def __init__(self, runtime: GpuRuntime) -> None:
        self.runtime = runtime
        self.name = runtime.name
        self.default_target = runtime.arch
        self.model = runtime.model

    def prepare(self, program: Program) -> Prepared:
        """Compile, or take from the cache, and load a program's kernels."""
        target = program.library.target(program.options.target)
        if target.member("device") != self.name:
            raise error(
                f"kernels for {target.name} do not run on the device {self.name}",
                remedy=f"lower for this GPU: --target {self.runtime.arch}",
            )
        return GpuProgram(self.runtime, program, program.kernels())


def code_objects(runtime: GpuRuntime, program: Program, kernels: Sequence[KernelSource]) -> list[bytes]:
    """The code objects of a program's kernels for a GPU: from the cache, or compiled and kept there."""
    paths = [_entry(runtime, kernel) for kernel in kernels]
    images = {path: image for path in paths if (image := read_entry(path)) is not None}
    missing = {path: kernel for path, kernel in zip(paths, kernels, strict=True) if path not in images}
    for path, image in zip(missing, compiled(runtime, program, [*missing.values()]), strict=True):
        write_entry(path, image)
        images[path] = image
    return [images[path] for path in paths]


def compiled(runtime: GpuRuntime, program: Program, kernels: Sequence[KernelSource]) -> list[bytes]:
    """Kernels of a program compiled side by side; meanwhile the next lowering is made ready."""
    if not kernels:
        return []
    with ThreadPoolExecutor(len(kernels)) as pool:
        images = [pool.submit(runtime.build, kernel) for kernel in kernels]
        program.make_ready()
        return [image.result() for image in images]


def _entry(runtime: GpuRuntime, kernel: KernelSource) -> Path:
    """The cache's entry for a kernel."""
    key = cache_key(device_header(), kernel.text, runtime.arch, str(kernel.wave_size), runtime.compiler)
    return cache_folder(runtime.name) / key


def load_kernel(runtime: GpuRuntime, kernel: KernelSource, image: bytes) -> Any:
    """The function of a printed kernel, from its code object."""
    return runtime.load(image, kernel.name, kernel.dynamic_lds_bytes)


@dataclass(frozen=True)
class GpuKernel:
    """A kernel that is loaded on a GPU. `origin` names the program that it was made from."""

    runtime: GpuRuntime
    source: KernelSource
    function: Any
    origin: str

    @classmethod
    def load_all(cls, runtime: GpuRuntime, program: Program, sources: Sequence[KernelSource]) -> list[GpuKernel]:
        """Compile and load a program's printed kernels."""
        images = code_objects(runtime, program, sources)
        origin = program.source.name
        return [cls(runtime, s, load_kernel(runtime, s, i), origin) for s, i in zip(sources, images, strict=True)]

    def launch(self, pointers: Sequence[int], stream: int) -> None:
        """Start the kernel on memories in the order of its arguments."""
        if not self.source.groups:
            return
        try:
            self.runtime.launch(self.function, self.source, pointers, stream)
        except GenrwError as problem:
            raise _by(f"kernel {self.source.name} of {self.origin}", problem) from None


def _by(what: str, problem: GenrwError) -> GenrwError:
    """A runtime's error with the name of what it happened to."""
    told = problem.diagnostics[0]
    return error(f"{what}: {told.message}", remedy=told.remedy)


class Memory:
    """Some of a GPU's memory, freed when nobody holds it any more."""

    def __init__(self, runtime: GpuRuntime, size: int) -> None:
        self.pointer = runtime.allocate(size)
        weakref.finalize(self, runtime.free, self.pointer)


class GpuProgram:
    """A program that is loaded on a GPU, called on arrays by name.

    Arrays of the GPU are used where they lie; numpy arrays are copied there. Results come as the inputs do: numpy
    arrays where all inputs are, else arrays of the GPU. Kernels are done when a call returns, unless it was given a
    stream and gives arrays of the GPU: these are then for what the stream does next.
    """

    def __init__(self, runtime: GpuRuntime, program: Program, kernels: Sequence[KernelSource]) -> None:
        self.runtime, self.program = runtime, program
        self.kernels = GpuKernel.load_all(runtime, program, kernels)
        self.launches = program.launches()
        self._copies: dict[str, Memory] = {}
        self._under_way: tuple[int, Mark] | None = None

    @cached_property
    def _scratch(self) -> list[Memory]:
        """The memory of values between kernels; calls take turns with it, as they do with the GPU."""
        return [Memory(self.runtime, size) for size in self.launches.scratch]

    def __call__(
        self, inputs: Mapping[str, Any], *, stream: object = None, out: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        inputs, where = given_inputs(self.program, inputs), stream_address(stream)
        self._follow_calls(where)
        given = {name: self._input(name, value, where) for name, value in inputs.items()}
        on_gpu = bool(out) or any(isinstance(value, DeviceView) for value in given.values())
        waits = stream is None or not on_gpu
        arguments = _Arguments(self, given, out or {}, where)
        for step in self.launches.steps:
            kernel = self.kernels[step.kernel]
            kernel.launch([arguments.pointer(a, step.places[a.parameter]) for a in kernel.source.arguments], where)
        made = [arguments.results[number] for number in self.launches.results]
        if waits:
            self._finish(where)
        else:
            self._leave(where, made)
        results = dict(zip(self.program.results, made, strict=True))
        return results if on_gpu else {name: array.numpy() for name, array in results.items()}

    def _follow_calls(self, stream: int) -> None:
        """Have a stream wait for what calls on another one still do with memory that all calls share."""
        if self._under_way is not None and self._under_way[0] != stream:
            self.runtime.wait_for(self._under_way[1], stream)
            self._under_way = None

    def _leave(self, stream: int, made: Sequence[DeviceArray]) -> None:
        """Leave kernels under way on a stream."""
        for array in made:
            array.stream = stream
        shared = self.launches.scratch or self._copies
        self._under_way = (stream, self.runtime.mark(stream)) if shared else None

    def _finish(self, stream: int) -> None:
        """Wait for the kernels: what went wrong in one of them is known by then."""
        try:
            self.runtime.synchronize(stream)
        except GenrwError as problem:
            names = ", ".join(kernel.source.name for kernel in self.kernels)
            raise _by(f"kernel {names} of {self.program.source.name}", problem) from None

    def scratch(self, number: int) -> int:
        """Where a scratch buffer lies."""
        return self._scratch[number].pointer

    def copied(self, name: str) -> int:
        """Where the copy of a numpy input lies."""
        return self._copies[name].pointer

    # ---- arguments

    def _input(self, name: str, value: Any, stream: int) -> DeviceView | Array:
        """An input that kernels can read: the view of a GPU's array, or a numpy array that was copied."""
        type_ = self.program.inputs[name].type
        view = device_view(name, value, stream)
        if view is None:
            array = check_array(name, value, type_.dtype, type_.lens)
            memory = to_memory(array, type_.layout)
            if name not in self._copies:
                self._copies[name] = Memory(self.runtime, memory.nbytes)
            self.runtime.write(self._copies[name].pointer, memory, stream)
            return array
        self._check(f"input `{name}`", view, type_.dtype, type_.lens, type_.layout)
        if view.stream is not None and view.stream != stream:
            self._follow(view.stream, stream)
        return view

    def _follow(self, other: int, stream: int) -> None:
        """Have a stream wait for what another one has to do up to now."""
        self.runtime.wait_for(self.runtime.mark(other), stream)

    def _check(self, what: str, view: DeviceView, dtype: str, lens: tuple[int, ...], strides: tuple[int, ...]) -> None:
        """GenrwError for a GPU's array that kernels cannot use as it lies."""
        if view.dtype != dtype:
            raise error(f"{what} is {view.dtype}, not {dtype}", remedy=f"give an array of {dtype}")
        if view.lens != lens:
            raise error(f"{what} has shape {list(view.lens)}, not {list(lens)}")
        longer = [d for d, n in enumerate(lens) if n > 1] if 0 not in lens else []
        if any(view.strides[d] != strides[d] for d in longer):
            raise error(
                f"{what} has strides {list(view.strides)}, not {list(strides)}",
                remedy="make it contiguous, or give the program's parameter these strides",
            )
        if view.pointer % _ALIGNMENT and 0 not in lens:
            raise error(
                f"{what} starts {view.pointer % _ALIGNMENT} bytes past a multiple of {_ALIGNMENT}",
                remedy="copy it to memory of its own",
            )
        if view.device is not None and view.device != self.runtime.number:
            raise error(f"{what} lies on GPU {view.device}, not on GPU {self.runtime.number}")

    def output(self, name: str, argument: Argument, given: Any, stream: int) -> DeviceArray:
        """Where a result goes: the caller's array, or memory of its own."""
        runtime, lens, strides = self.runtime, argument.lens, argument.strides
        if given is not None:
            view = device_view(name, given, stream)
            if view is None:
                raise error(f"the result `{name}` is to be written to the CPU's memory", remedy="give a GPU's array")
            self._check(f"the array for result `{name}`", view, argument.dtype, lens, strides)
            pointer, owner = view.pointer, view.owner
        else:
            memory = Memory(runtime, memory_size(lens, strides) * DTYPES[argument.dtype].itemsize)
            pointer, owner = memory.pointer, memory
        return DeviceArray(
            pointer,
            argument.dtype,
            lens,
            strides or packed_strides(lens),
            runtime.kind,
            runtime.number,
            self._copied,
            owner,
            follow=self._follow,
        )

    def _copied(self, array: DeviceArray) -> Array:
        memory = np.empty(memory_size(array.lens, array.strides), numpy_dtype(array.dtype))
        self.runtime.read(memory, array.pointer, array.stream or 0)
        return from_memory(memory, array.lens, array.strides)


class _Arguments:
    """Where the arguments of all launches of one call lie."""

    def __init__(
        self, program: GpuProgram, given: Mapping[str, DeviceView | Array], out: Mapping[str, Any], stream: int
    ) -> None:
        self.program, self.given, self.out, self.stream = program, given, out, stream
        self.inputs, self.names = list(program.program.inputs), list(program.program.results)
        self.results: dict[int, DeviceArray] = {}

    def pointer(self, argument: Argument, place: Place) -> int:
        """The address that a launch is given for an argument."""
        if place.kind == SCRATCH:
            return self.program.scratch(place.number)
        if place.kind == INPUT:
            return self._input(self.inputs[place.number])
        if place.number not in self.results:
            name = self.names[place.number]
            self.results[place.number] = self.program.output(name, argument, self.out.get(name), self.stream)
        return self.results[place.number].pointer

    def _input(self, name: str) -> int:
        value = self.given.get(name)
        if value is None:
            raise error(f"input `{name}` is missing")
        return value.pointer if isinstance(value, DeviceView) else self.program.copied(name)
