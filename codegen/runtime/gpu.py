"""Programs on a GPU: kernels compiled at run time, arguments checked, results handed out where the inputs lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from genrw.codegen.hip.header import device_header
from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.array_layout import (
    Array,
    check_array,
    from_memory,
    memory_size,
    missing_input,
    other_shape,
    to_memory,
)
from genrw.codegen.runtime.device import Prepared
from genrw.codegen.runtime.given import unknown_input
from genrw.codegen.runtime.gpu_arrays import DeviceArray, DeviceView, Reader, device_view, reader_of, stream_address
from genrw.codegen.runtime.gpu_memory import Memory, ResultMemory
from genrw.codegen.runtime.gpu_runtime import GpuRuntime, Launcher, Mark
from genrw.codegen.runtime.replays import FEWEST, Replays
from genrw.codegen.runtime.spills import built
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.types import packed_strides
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.programs.launches import INPUT, SCRATCH, KernelLaunch
from genrw.grammar.cache import cache_folder, cache_key, read_entry, write_entry
from genrw.grammar.diagnostics import GenrwError, error

# The widest access of a kernel is 16 bytes: what starts elsewhere cannot be read so.
_ALIGNMENT = 16
_NOT_COPIED = -1
"""Stands for the address of an array that is not on the GPU yet."""
_KEYS_KEPT = 64
"""How many sorts of arrays that fit are remembered for a tensor."""


class GpuDevice:
    """A GPU as a device. Settings of a prepared program: `stream`, on which it is to run; `out`, arrays of the GPU by
    result."""

    settings: tuple[str, ...] = ("stream", "out")

    def __init__(self, runtime: GpuRuntime) -> None:
        self.runtime = runtime
        self.name = runtime.name
        self.default_target = runtime.arch
        self.model = runtime.model

    def prepare(self, program: StagedProgram) -> Prepared:
        """Compile, or take from the cache, and load a program's kernels."""
        target = program.library.target(program.options.target)
        if target.member("device") != self.name:
            raise error(
                f"kernels for {target.name} do not run on the device {self.name}",
                remedy=f"lower for this GPU: --target {self.runtime.arch}",
            )
        return GpuProgram(self.runtime, program)


def code_objects(runtime: GpuRuntime, program: StagedProgram, kernels: Sequence[KernelSource]) -> list[bytes]:
    """The code objects of a program's kernels for a GPU: from the cache, or compiled and kept there."""
    paths = [_entry(runtime, kernel) for kernel in kernels]
    images = {path: image for path in paths if (image := read_entry(path)) is not None}
    missing = {path: kernel for path, kernel in zip(paths, kernels, strict=True) if path not in images}
    for path, image in zip(missing, compiled(runtime, program, [*missing.values()]), strict=True):
        write_entry(path, image)
        images[path] = image
    return [images[path] for path in paths]


def compiled(runtime: GpuRuntime, program: StagedProgram, kernels: Sequence[KernelSource]) -> list[bytes]:
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
    def load_all(cls, runtime: GpuRuntime, program: StagedProgram) -> tuple[StagedProgram, list[GpuKernel]]:
        """Compile and load a program's kernels; the program with the schedules under which none spills."""
        made = built(
            program,
            lambda asked, sources: code_objects(runtime, asked, sources),
            lambda image, source: runtime.scratch_bytes(image, source.name),
        )
        return made.program, [
            cls(runtime, s, load_kernel(runtime, s, i), program.source.name)
            for s, i in zip(made.sources, made.compiled, strict=True)
        ]

    @cached_property
    def _launcher(self) -> Launcher:
        return self.runtime.launcher(self.function, self.source)

    def launch(self, pointers: Sequence[int], stream: int) -> None:
        """Start the kernel on memories in the order of its arguments."""
        self.runtime.enter()
        self.start(pointers, stream)

    def start(self, pointers: Sequence[int], stream: int) -> None:
        """The same where the GPU is the calling thread's already."""
        if not self.source.groups:
            return
        try:
            self._launcher(pointers, stream)
        except GenrwError as problem:
            raise _by(f"kernel {self.source.name} of {self.origin}", problem) from None


def _by(what: str, problem: GenrwError) -> GenrwError:
    """A runtime's error with the name of what it happened to."""
    told = problem.diagnostics[0]
    return error(f"{what}: {told.message}", remedy=told.remedy)


@dataclass(frozen=True)
class _Tensor:
    """A tensor that kernels read or write: what messages call it, its name, and how it lies. `taken` holds the keys of
    arrays that were found to fit."""

    what: str
    name: str
    dtype: str
    lens: tuple[int, ...]
    strides: tuple[int, ...]
    taken: set[tuple[Any, ...]] = field(default_factory=set, compare=False)


class GpuProgram:
    """A program that is loaded on a GPU, called on arrays by name.

    Arrays of the GPU are used where they lie; numpy arrays are copied there. Results come as the inputs do: numpy
    arrays where all inputs are, else arrays of the GPU. Kernels are done when a call returns, unless it was given a
    stream and gives arrays of the GPU: these are then for what the stream does next.
    """

    def __init__(self, runtime: GpuRuntime, program: StagedProgram) -> None:
        self.runtime = runtime
        self.program, self.kernels = GpuKernel.load_all(runtime, program)
        self.launches = self.program.launches()
        self._inputs = [
            _Tensor(f"input `{name}`", name, node.type.dtype, node.type.lens, node.type.layout)
            for name, node in program.inputs.items()
        ]
        self._numbers = {tensor.name: i for i, tensor in enumerate(self._inputs)}
        self._result_names = list(program.results)
        self._outputs = self._find_outputs()
        self._steps = [(self.kernels[step.kernel].start, _picking(self._slots(step))) for step in self.launches.steps]
        self._copies: dict[str, Memory] = {}
        self._replays = Replays(runtime) if self._may_replay else None
        self._usual: dict[int, Memory] = {}
        self._usual_addresses = [_NOT_COPIED] * len(self._inputs)
        self._under_way: tuple[int, Mark] | None = None

    def _find_outputs(self) -> dict[int, _Tensor]:
        """The results that kernels write, by number, as the first kernel that writes one takes it."""
        found: dict[int, _Tensor] = {}
        for step in self.launches.steps:
            for argument in self.kernels[step.kernel].source.arguments:
                place = step.places[argument.parameter]
                if place.kind not in (INPUT, SCRATCH) and place.number not in found:
                    name, strides = self._result_names[place.number], argument.strides or packed_strides(argument.lens)
                    what = f"the array for result `{name}`"
                    found[place.number] = _Tensor(what, name, argument.dtype, argument.lens, strides)
        return found

    def _slots(self, step: KernelLaunch) -> tuple[int, ...]:
        """Where the addresses of a launch's arguments stand in a call's: inputs first, then results, then scratch."""
        outputs = {number: len(self._inputs) + i for i, number in enumerate(self._outputs)}
        first_scratch = len(self._inputs) + len(outputs)
        places = [step.places[a.parameter] for a in self.kernels[step.kernel].source.arguments]
        slots = {INPUT: lambda n: n, SCRATCH: lambda n: first_scratch + n}
        return tuple(slots.get(place.kind, outputs.get)(place.number) for place in places)

    @cached_property
    def _scratch(self) -> list[Memory]:
        """The memory of values between kernels; calls take turns with it, as they do with the GPU."""
        return [Memory(self.runtime, size) for size in self.launches.scratch]

    def __call__(
        self, inputs: Mapping[str, Any], *, stream: object = None, out: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        where = 0 if stream is None else stream_address(stream)
        self.runtime.enter()
        is_captured = stream is not None and self._asks_for_memory(out) and self.runtime.is_capturing(where)
        if is_captured:
            self._require_memory()
        else:
            self._follow_calls(where)
        arrays, addresses, on_gpu = self._placed(inputs, where, out, is_captured)
        if is_captured or self._replays is None:
            self._start(addresses, where)
        else:
            self._replays.started(tuple(addresses), where, lambda on: self._start(addresses, on))
        made = [arrays[number] for number in self.launches.results]
        if stream is None or not on_gpu:
            self._finish(where)
        else:
            self._leave(where, made, is_captured)
        results = dict(zip(self._result_names, made, strict=True))
        return results if on_gpu else {name: array.numpy() for name, array in results.items()}

    def _start(self, addresses: Sequence[int], stream: int) -> None:
        """Start the kernels, one after the other, on memory at the addresses of a call."""
        for start, picked in self._steps:
            start(picked(addresses), stream)

    def launch_times(self, inputs: Mapping[str, Any], passes: int) -> list[list[float]]:
        """The microseconds of each launch on the GPU, in each of so many calls behind a first one."""
        self.runtime.enter()
        self._follow_calls(0)
        _arrays, addresses, _ = self._placed(inputs, 0, None, False)
        self.runtime.synchronize(0)
        steps = cycle(self._steps)

        def run(stream: int) -> None:
            start, picked = next(steps)
            start(picked(addresses), stream)

        count = len(self._steps)
        times = self.runtime.times(run, count * (passes + 1))
        return [times[count + k :: count] for k in range(count)]

    def _placed(
        self, given: Mapping[str, Any], stream: int, out: Mapping[str, Any] | None, is_captured: bool
    ) -> tuple[dict[int, DeviceArray], list[int], bool]:
        """The arrays of a call's results, the addresses of all that its kernels take, and whether any of it lay on the
        GPU."""
        addresses, on_gpu = self._input_addresses(given, stream)
        on_gpu |= bool(out)
        arrays = {number: self._output(tensor, out, stream, is_captured) for number, tensor in self._outputs.items()}
        addresses += [array.pointer for array in arrays.values()]
        addresses += [memory.pointer for memory in self._scratch]
        return arrays, addresses, on_gpu

    def _input_addresses(self, given: Mapping[str, Any], stream: int) -> tuple[list[int], bool]:
        """Where kernels find the inputs, and whether any of those given lay on the GPU."""
        addresses, on_gpu = self._usual_addresses.copy(), False
        for name, value in given.items():
            if name not in self._numbers:
                raise unknown_input(self.program, name)
            number = self._numbers[name]
            addresses[number], lies_there = self._address(self._inputs[number], value, stream)
            on_gpu |= lies_there
        if _NOT_COPIED in addresses:
            addresses = [self._usual_address(k, stream) if a == _NOT_COPIED else a for k, a in enumerate(addresses)]
        return addresses, on_gpu

    def _usual_address(self, number: int, stream: int) -> int:
        """Where the array lies that stands for an input which is not given: it is copied once."""
        tensor = self._inputs[number]
        if tensor.name not in self.program.defaults:
            raise missing_input(tensor.name)
        memory = self._usual[number] = self._written(None, tensor, self.program.defaults[tensor.name], stream)
        self._usual_addresses[number] = memory.pointer
        return memory.pointer

    def _follow_calls(self, stream: int) -> None:
        """Have a stream wait for what calls on another one still do with memory that all calls share."""
        if self._under_way is not None and self._under_way[0] != stream:
            self.runtime.wait_for(self._under_way[1], stream)
            self._under_way = None

    @property
    def _may_replay(self) -> bool:
        """Are there enough launches for a graph? Programs whose calls share no memory do not ask whether they are captured."""
        return self.runtime.is_sooner_by_graphs and self._shares_memory and len(self._steps) >= FEWEST

    @property
    def _shares_memory(self) -> bool:
        """Do calls use the same memory, besides what callers give?"""
        return bool(self.launches.scratch or self._copies or self.program.defaults)

    def _asks_for_memory(self, out: Mapping[str, Any] | None) -> bool:
        """Does a call use memory that is not the caller's?"""
        return self._shares_memory or out is None or len(out) < len(self._outputs)

    def _require_memory(self) -> None:
        """GenrwError if the memory that calls share would have to be taken while a stream is captured."""
        if "_scratch" not in self.__dict__:
            raise error(
                f"{self.program.source.name} has no memory between its kernels yet, and none can be taken while a graph "
                "is captured",
                remedy="call it once before",
            )

    def _leave(self, stream: int, made: Sequence[DeviceArray], is_captured: bool) -> None:
        """Leave kernels under way on a stream. Who launches a graph waits for calls that it was not captured with."""
        for array in made:
            array.stream = stream
        if not self._shares_memory or is_captured:
            return
        if self._under_way is None:
            self._under_way = (stream, self.runtime.mark(stream))
        else:  # on the same stream: calls on others were waited for
            self.runtime.move(self._under_way[1], stream)

    def _finish(self, stream: int) -> None:
        """Wait for the kernels: what went wrong in one of them is known by then."""
        self._under_way = None
        try:
            self.runtime.synchronize(stream)
        except GenrwError as problem:
            names = ", ".join(kernel.source.name for kernel in self.kernels)
            raise _by(f"kernel {names} of {self.program.source.name}", problem) from None

    # ---- arguments

    def _address(self, tensor: _Tensor, value: Any, stream: int) -> tuple[int, bool]:
        """Where kernels find an input, and whether it lay on the GPU already."""
        pointer = self._met(tensor, value, stream)
        if pointer is not None:
            return pointer, True
        view = device_view(tensor.name, value, stream)
        if view is None:
            return self._copied_there(tensor, value, stream), False
        self._check(tensor, view)
        if view.stream is not None and view.stream != stream:
            self._follow(view.stream, stream)
        self._remember(tensor, value, view)
        return view.pointer, True

    def _met(self, tensor: _Tensor, value: Any, stream: int) -> int | None:
        """Where an array lies that differs from one that fitted in its address alone; None for any other."""
        reader = reader_of(type(value))
        key = _key(reader, value)
        if reader is None or key not in tensor.taken:
            return None
        pointer = reader.pointer(value)
        if pointer % _ALIGNMENT:
            return None
        other = reader.stream(value)
        if other is not None and other != stream:
            self._follow(other, stream)
        if isinstance(value, DeviceArray):
            value.used_on(stream)
        return pointer

    def _remember(self, tensor: _Tensor, value: Any, view: DeviceView) -> None:
        """Keep the key of an array that fits, if its reader sees what its protocol told."""
        reader = reader_of(type(value))
        key = _key(reader, value)
        if reader is None or key is None or reader.pointer(value) != view.pointer:
            return
        if len(tensor.taken) >= _KEYS_KEPT:
            tensor.taken.clear()
        tensor.taken.add(key)

    def _copied_there(self, tensor: _Tensor, value: Any, stream: int) -> int:
        """The copy of a numpy array on the GPU."""
        memory = self._copies[tensor.name] = self._written(self._copies.get(tensor.name), tensor, value, stream)
        return memory.pointer

    def _written(self, memory: Memory | None, tensor: _Tensor, value: Any, stream: int) -> Memory:
        """Memory of the GPU, the given one if there is one, with the elements of a numpy array."""
        elements = to_memory(check_array(tensor.name, value, tensor.dtype, tensor.lens, tensor.strides), tensor.strides)
        memory = memory or Memory(self.runtime, elements.nbytes)
        self.runtime.write(memory.pointer, elements, stream)
        return memory

    def _follow(self, other: int, stream: int) -> None:
        """Have a stream wait for what another one has to do up to now."""
        self.runtime.wait_for(self.runtime.mark(other), stream)

    def _check(self, tensor: _Tensor, view: DeviceView) -> None:
        """GenrwError for a GPU's array that kernels cannot use as it lies."""
        what, lens = tensor.what, tensor.lens
        if view.dtype != tensor.dtype:
            raise error(f"{what} is {view.dtype}, not {tensor.dtype}", remedy=f"give an array of {tensor.dtype}")
        if view.lens != lens:
            raise other_shape(what, view.lens, lens)
        longer = [d for d, n in enumerate(lens) if n > 1] if 0 not in lens else []
        if any(view.strides[d] != tensor.strides[d] for d in longer):
            raise error(
                f"{what} has strides {list(view.strides)}, not {list(tensor.strides)}",
                remedy="make it contiguous, or give the program's parameter these strides",
            )
        if view.pointer % _ALIGNMENT and 0 not in lens:
            raise error(
                f"{what} starts {view.pointer % _ALIGNMENT} bytes past a multiple of {_ALIGNMENT}",
                remedy="copy it to memory of its own",
            )
        if view.device is not None and view.device != self.runtime.number:
            raise error(f"{what} lies on GPU {view.device}, not on GPU {self.runtime.number}")

    def _output(self, tensor: _Tensor, out: Mapping[str, Any] | None, stream: int, is_captured: bool) -> DeviceArray:
        """Where a result goes: the caller's array, or memory of its own. What is captured writes to it whenever that is launched,
        so the memory is in no stream's order."""
        given = out.get(tensor.name) if out else None
        if given is None:
            size = memory_size(tensor.lens, tensor.strides) * DTYPES[tensor.dtype].itemsize
            own = Memory(self.runtime, size) if is_captured else ResultMemory(self.runtime, size, stream)
            return self._array(tensor, own.pointer, own)
        pointer = self._met(tensor, given, stream)
        if pointer is not None:
            return self._array(tensor, pointer, given)
        view = device_view(tensor.name, given, stream)
        if view is None:
            raise error(f"the result `{tensor.name}` is to be written to the CPU's memory", remedy="give a GPU's array")
        self._check(tensor, view)
        self._remember(tensor, given, view)
        return self._array(tensor, view.pointer, view.owner)

    def _array(self, tensor: _Tensor, pointer: int, owner: object) -> DeviceArray:
        runtime = self.runtime
        return DeviceArray(
            pointer,
            tensor.dtype,
            tensor.lens,
            tensor.strides,
            runtime.kind,
            runtime.number,
            self._copied,
            owner,
            None,
            self._follow,
        )

    def _copied(self, array: DeviceArray) -> Array:
        memory = np.empty(memory_size(array.lens, array.strides), numpy_dtype(array.dtype))
        self.runtime.read(memory, array.pointer, array.stream or 0)
        return from_memory(memory, array.lens, array.strides)


def _picking(places: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    """What takes the elements at some places out of a sequence."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda elements: [elements[place] for place in places]


def _key(reader: Reader | None, value: Any) -> tuple[Any, ...] | None:
    """The key of an array; None for one that its reader cannot read, of which its protocol says why."""
    if reader is None:
        return None
    try:
        return reader.key(value)
    except Exception:  # whatever an array of an unusual sort makes of being looked at
        return None
