"""NVIDIA GPUs: NVRTC and the driver, through cuda-bindings. No CUDA toolkit and no PyTorch needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, lru_cache
from typing import Any

from genrw.codegen.hip.printer import Argument, Description, KernelSource
from genrw.codegen.runtime.compilers import translation_unit
from genrw.codegen.runtime.gpu_arrays import CUDA
from genrw.codegen.runtime.gpu_runtime import GpuRuntime, Launcher, Parameters, compiler_call, refused, vendor_module
from genrw.codegen.runtime.nvidia import read_reports
from genrw.engine.ir.dtypes import DTYPES
from genrw.grammar.diagnostics import error

_PACKAGE = "cuda.bindings"
_REMEDY = "pip install 'genrw[cuda]', on a machine with an NVIDIA GPU and its driver"
_KNOWS_MINIMAL = (12, 4)
"""The first NVRTC that can leave out textures and device-side launches, which no kernel here has: 6 ms less."""
_SHAPES = 1024
"""How many shapes of launches are kept."""
_KEPT_BYTES = 1 << 30
"""How much of what results gave back is kept for others."""
_STEPS = {
    "module": "cuModuleLoadData",
    "function": "cuModuleGetFunction",
    "allocate": "cuMemAlloc",
    "free": "cuMemFree",
    "write": "cuMemcpyHtoDAsync",
    "read": "cuMemcpyDtoHAsync",
    "duplicate": "cuMemcpyDtoDAsync",
    "fill": "cuMemsetD8Async",
    "synchronize": "cuStreamSynchronize",
    "stream": "cuStreamCreate",
    "free stream": "cuStreamDestroy",
    "event": "cuEventCreate",
    "record": "cuEventRecord",
    "wait": "cuStreamWaitEvent",
    "elapsed": "cuEventElapsedTime",
    "free event": "cuEventDestroy",
    "capturing": "cuStreamIsCapturing",
    "captured": "cuStreamEndCapture",
    "graph": "cuGraphInstantiate",
    "free captured": "cuGraphDestroy",
    "launch graph": "cuGraphLaunch",
    "free graph": "cuGraphExecDestroy",
}


class CudaRuntime(GpuRuntime):
    """An NVIDIA GPU, in its primary context: the one that PyTorch and others use too."""

    name = "cuda"
    kind = CUDA
    remedy = _REMEDY
    is_sooner_by_graphs = True

    def __init__(self, number: int = 0) -> None:
        """Open a GPU; GenrwError if there is none of that number, or no driver."""
        driver = self._driver = vendor_module(_PACKAGE, "driver", _REMEDY)
        self.functions = {step: getattr(driver, name) for step, name in _STEPS.items()}
        self.functions["capture"] = self._begin_capture
        count = self.count()
        if number >= count:
            raise error(f"there is no NVIDIA GPU number {number}", remedy=f"there are {count}, counted from 0")
        self.number = number
        # The bindings take longer to make one than to launch.
        self._shape = lru_cache(_SHAPES)(self._new_shape)
        self._device = self.call("the GPU cannot be opened", driver.cuDeviceGet, number)
        self._context = self.call("the GPU cannot be opened", driver.cuDevicePrimaryCtxRetain, self._device)
        major, minor = (self._attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
        self.arch = f"sm_{major}{minor}"
        model = self.call("the GPU has no name", driver.cuDeviceGetName, 256, self._device)
        self.model = bytes(model).split(b"\0")[0].decode()

    def count(self) -> int:
        """How many NVIDIA GPUs there are."""
        self.call("the CUDA driver does not start", self._driver.cuInit, 0)
        return int(self.call("the CUDA driver counts no GPUs", self._driver.cuDeviceGetCount))

    def _attribute(self, name: str) -> int:
        """What the driver says of the GPU under a name."""
        number = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(
            self.call("the GPU does not say what it is", self._driver.cuDeviceGetAttribute, number, self._device)
        )

    def _begin_capture(self, stream: int) -> Any:
        mode = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        return self._driver.cuStreamBeginCapture(stream, mode)

    @cached_property
    def compiler(self) -> str:
        major, minor = _version(vendor_module(_PACKAGE, "nvrtc", _REMEDY))
        return f"nvrtc {major}.{minor}"

    def build(self, kernel: KernelSource) -> bytes:
        return compile_cuda(kernel.text, self.arch, kernel.wave_size, kernel.name)

    def scratch_bytes(self, image: bytes, kernel: str) -> int:
        return read_reports(image)[kernel].scratch_bytes

    def enter(self) -> None:
        self.call("the GPU's context is lost", self._driver.cuCtxSetCurrent, self._context)

    @cached_property
    def _pool(self) -> Any:
        """Memory that streams take and give back without waiting; None where the GPU has no such."""
        if not self._attribute("MEMORY_POOLS_SUPPORTED"):
            return None
        driver = self._driver
        shape = driver.CUmemPoolProps()
        shape.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        shape.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        shape.location.id = self.number
        pool = self.call("the GPU has no memory left", driver.cuMemPoolCreate, shape)
        threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        kept = driver.cuuint64_t(_KEPT_BYTES)
        self.call("the GPU's memory cannot be kept", driver.cuMemPoolSetAttribute, pool, threshold, kept)
        return pool

    def allocate_on(self, size: int, stream: int) -> int:
        self.enter()
        if self._pool is None:
            return self.allocate(size)
        take, size = self._driver.cuMemAllocFromPoolAsync, max(size, 1)
        return int(self.call(f"the GPU has no {size} bytes left", take, size, self._pool, stream))

    def free_behind(self, pointer: int, streams: Collection[int | None]) -> None:
        if self._pool is None:
            super().free_behind(pointer, streams)
            return
        self.enter()
        known = [stream for stream in streams if stream is not None]
        home, *others = known
        if len(known) < len(streams):  # memory of a pool is given back without a look at what other streams do
            self.call("the GPU reports a fault", self._driver.cuCtxSynchronize)
        else:
            for other in others:
                self.wait_for(self.mark(other), home)
        self.call("memory cannot be freed", self._driver.cuMemFreeAsync, pointer, home)

    def allow_lds(self, function: Any, size: int) -> None:
        most = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call(f"the GPU has no {size} bytes for a workgroup", self._driver.cuFuncSetAttribute, function, most, size)

    def launcher(self, function: Any, kernel: KernelSource) -> Launcher:
        described = {i: self._describing(a) for i, a in enumerate(kernel.arguments) if a.described is not None}
        parameters = Parameters(len(kernel.arguments), described)
        launch, shapes = self._driver.cuLaunchKernelEx, self._shape
        groups, block, lds, waits = kernel.launched_groups, kernel.launched, kernel.dynamic_lds_bytes, kernel.waits

        def start(pointers: Sequence[int], stream: int) -> None:
            shape = shapes(groups, block, lds, waits, stream)
            parameters.started(pointers, lambda at: self.call("the launch failed", launch, shape, function, at, 0))

        return start

    def _describing(self, argument: Argument) -> Callable[[int], tuple[object, int]]:
        """What makes a tensor map of an argument's address: the map and where it is. Maps are kept, as arrays come again."""

        @lru_cache(_SHAPES)
        def made(pointer: int) -> tuple[object, int]:
            found = self._tensor_map(argument, pointer)
            return found, int(found.getPtr())

        return made

    def _tensor_map(self, argument: Argument, pointer: int) -> Any:
        """A tensor map: what the GPU's engine for bulk copies knows of memory. Its axes begin with the innermost one, and
        elements that lie outside are zeros."""
        driver, what, size = self._driver, argument.described, DTYPES[argument.dtype].itemsize
        assert what is not None
        boxes = self._walked(what) if what.places else self._boxes(what)
        return self.call(
            f"argument {argument.name} cannot be described to the GPU",
            driver.cuTensorMapEncodeIm2col if what.places else driver.cuTensorMapEncodeTiled,
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_UINT{8 * size}"),
            len(what.lens),
            pointer + what.begin * size,
            [driver.cuuint64_t(n) for n in reversed(what.lens)],
            [driver.cuuint64_t(n * size) for n in reversed(what.strides[:-1])],
            *boxes,
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(
                driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{f'{what.swizzle}B' if what.swizzle else 'NONE'}"
            ),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )

    def _boxes(self, what: Description) -> list[Any]:
        """The lengths of boxes, and that all of their elements are copied."""
        number = self._driver.cuuint32_t
        return [[number(n) for n in reversed(what.box)], [number(1)] * len(what.box)]

    def _walked(self, what: Description) -> list[Any]:
        """Where the places of a picture begin and end, from its corners; how many channels and places are copied at a time, and how far
        apart places are."""
        number = self._driver.cuuint32_t
        inside = list(zip(what.begins, what.places[1:], what.steps, what.lens[1:-1], strict=True))
        last = [begin + (places - 1) * step - (length - 1) for begin, places, step, length in inside]
        places, channels = what.box
        apart = [1, *reversed(what.steps), 1]
        return [what.begins[::-1], last[::-1], number(channels), number(places), [number(n) for n in apart]]

    def _new_shape(self, groups: int, block: int, lds_bytes: int, waits: bool, stream: int) -> Any:
        """How to launch a kernel: as soon as the stream's previous one lets it begin, if it waits for that one itself."""
        shape = self._driver.CUlaunchConfig()
        shape.gridDimX, shape.gridDimY, shape.gridDimZ = groups, 1, 1
        shape.blockDimX, shape.blockDimY, shape.blockDimZ = block, 1, 1
        shape.sharedMemBytes, shape.hStream = lds_bytes, stream
        if waits:
            shape.attrs, shape.numAttrs = [self._overlapping], 1
        return shape

    @cached_property
    def _overlapping(self) -> Any:
        attribute, value = self._driver.CUlaunchAttribute(), self._driver.CUlaunchAttributeValue()
        attribute.id = self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        value.programmaticStreamSerializationAllowed = 1
        attribute.value = value
        return attribute

    def said(self, status: Any) -> str:
        known, text = self._driver.cuGetErrorString(status)
        return f"{status.name}, {text.decode()}" if int(known) == 0 and text else str(status.name)


def compile_cuda(source: str, arch: str, wave_size: int, name: str = "kernel") -> bytes:
    """Compile HIP source for an NVIDIA GPU such as `sm_90`, with NVRTC; GenrwError with its first messages."""
    return _compiled(source, arch, wave_size, name, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")


def compile_ptx(source: str, arch: str, wave_size: int, name: str = "kernel") -> str:
    """The same as far as PTX: the text that the GPU's own instructions are made from."""
    return _compiled(source, arch, wave_size, name, "nvrtcGetPTXSize", "nvrtcGetPTX").rstrip(b"\0").decode()


def _with_all_features(arch: str) -> str:
    """The name by which the compiler knows a GPU with what no later one need have: code is for the GPU that it runs on."""
    return f"{arch}a" if int(arch.removeprefix("sm_")) >= 90 else arch


def _compiled(source: str, arch: str, wave_size: int, name: str, size: str, fill: str) -> bytes:
    """What NVRTC gives by two of its functions, the first of which says how many bytes that is."""
    nvrtc = vendor_module(_PACKAGE, "nvrtc", _REMEDY)
    text = translation_unit(source, name)
    program = _nvrtc(nvrtc.nvrtcCreateProgram, text.encode(), f"{name}.hip".encode(), 0, [], [])
    try:
        options = [
            f"--gpu-architecture={_with_all_features(arch)}",
            "-std=c++17",
            "--fmad=false",
            f"-DGEN_WAVE_SIZE={wave_size}",
            "-w",
        ]
        if _version(nvrtc) >= _KNOWS_MINIMAL:
            options.append("--minimal")
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        if int(status) != 0:
            log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise refused(name, status, log, text)
        return _text(getattr(nvrtc, size), getattr(nvrtc, fill), program)
    finally:
        _nvrtc(nvrtc.nvrtcDestroyProgram, program)


def _version(nvrtc: Any) -> tuple[int, int]:
    _, major, minor = nvrtc.nvrtcVersion()
    return int(major), int(minor)


def _text(size: Callable[..., Any], fill: Callable[..., Any], program: Any) -> bytes:
    text = b" " * int(_nvrtc(size, program))
    _nvrtc(fill, program, text)
    return text


def _nvrtc(function: Callable[..., Any], *arguments: Any) -> Any:
    return compiler_call("NVRTC", _REMEDY, function, *arguments)
