"""AMD GPUs: hiprtc and the HIP runtime, through hip-python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.compilers import compiler_version, translation_unit, wave_options, zig
from genrw.codegen.runtime.gpu_arrays import ROCM
from genrw.codegen.runtime.gpu_runtime import GpuRuntime, Launcher, Parameters, compiler_call, refused, vendor_module
from genrw.grammar.diagnostics import GenrwError, error

_PACKAGE = "hip"
_REMEDY = "install ROCm, on a machine with an AMD GPU"
_STEPS = {
    "version": "hipRuntimeGetVersion",
    "module": "hipModuleLoadData",
    "function": "hipModuleGetFunction",
    "allocate": "hipMalloc",
    "free": "hipFree",
    "write": "hipMemcpyHtoDAsync",
    "read": "hipMemcpyDtoHAsync",
    "duplicate": "hipMemcpyDtoDAsync",
    "fill": "hipMemsetAsync",
    "synchronize": "hipStreamSynchronize",
    "stream": "hipStreamCreateWithFlags",
    "free stream": "hipStreamDestroy",
    "event": "hipEventCreateWithFlags",
    "record": "hipEventRecord",
    "wait": "hipStreamWaitEvent",
    "elapsed": "hipEventElapsedTime",
    "free event": "hipEventDestroy",
    "capturing": "hipStreamIsCapturing",
    "captured": "hipStreamEndCapture",
    "graph": "hipGraphInstantiateWithFlags",
    "free captured": "hipGraphDestroy",
    "launch graph": "hipGraphLaunch",
    "free graph": "hipGraphExecDestroy",
}


class HipRuntime(GpuRuntime):
    """An AMD GPU."""

    name = "hip"
    kind = ROCM
    remedy = _REMEDY

    def __init__(self, number: int = 0) -> None:
        """Open a GPU; GenrwError if there is none of that number, or no ROCm."""
        hip = self._hip = vendor_module(_PACKAGE, "hip", _REMEDY)
        self.functions = {step: getattr(hip, name) for step, name in _STEPS.items()}
        self.functions["capture"] = self._begin_capture
        count = self.count()
        if number >= count:
            raise error(f"there is no AMD GPU number {number}", remedy=f"there are {count}, counted from 0")
        self.number = number
        properties = self.call("the GPU does not say what it is", hip.hipGetDeviceProperties, number)
        self.arch = properties.gcnArchName.partition(":")[0]  # what follows says which features are on
        self.model = properties.name

    def count(self) -> int:
        """How many AMD GPUs there are."""
        return int(self.call("the HIP runtime counts no GPUs", self._hip.hipGetDeviceCount))

    def _begin_capture(self, stream: int) -> Any:
        return self._hip.hipStreamBeginCapture(stream, self._hip.hipStreamCaptureMode.hipStreamCaptureModeRelaxed)

    @cached_property
    def compiler(self) -> str:
        try:
            _, major, minor = vendor_module(_PACKAGE, "hiprtc", _REMEDY).hiprtcVersion()
        except RuntimeError:  # the runtime without its compiler
            return compiler_version(zig(), "version")
        # hiprtc says 9.0 in many releases of HIP.
        return f"hiprtc {major}.{minor} of HIP {self.do('version', 'HIP has no version')}"

    def build(self, kernel: KernelSource) -> bytes:
        """With hiprtc; where ROCm has none, with the clang in the ziglang package."""
        if self.compiler.startswith("hiprtc"):
            return compile_hip(kernel.text, self.arch, kernel.wave_size, kernel.name)
        from genrw.codegen.runtime.amd import compile_amd

        return compile_amd(kernel.text, self.arch, kernel.wave_size, kernel.name).blob

    def scratch_bytes(self, image: bytes, kernel: str) -> int:
        from genrw.codegen.runtime.amd import read_reports

        try:
            return read_reports(image)[kernel].scratch_bytes
        except GenrwError:  # a compiler that says nothing of what lanes take
            return 0

    def enter(self) -> None:
        self.call("the GPU cannot be used", self._hip.hipSetDevice, self.number)

    def launcher(self, function: Any, kernel: KernelSource) -> Launcher:
        parameters, launch = Parameters(len(kernel.arguments)), self._hip.hipModuleLaunchKernel
        groups, block, lds = kernel.launched_groups, kernel.launched, kernel.dynamic_lds_bytes

        def start(pointers: Sequence[int], stream: int) -> None:
            def begin(at: int) -> None:
                self.call("the launch failed", launch, function, groups, 1, 1, block, 1, 1, lds, stream, at, None)

            parameters.started(pointers, begin)

        return start

    def said(self, status: Any) -> str:
        _, text = self._hip.hipGetErrorString(status)
        return f"{status.name}, {text}" if text else str(status.name)


def compile_hip(source: str, arch: str, wave_size: int, name: str = "kernel") -> bytes:
    """Compile HIP source for an AMD GPU such as `gfx942`, with hiprtc; GenrwError with its first messages."""
    hiprtc = vendor_module(_PACKAGE, "hiprtc", _REMEDY)
    text = translation_unit(source, name)
    program = _hiprtc(hiprtc.hiprtcCreateProgram, text.encode(), f"{name}.hip".encode(), 0, None, None)
    try:
        return _compiled(hiprtc, program, arch, wave_size, name, text)
    finally:
        _hiprtc(hiprtc.hiprtcDestroyProgram, program.createRef())


def _compiled(hiprtc: Any, program: Any, arch: str, wave_size: int, name: str, unit: str) -> bytes:
    options = [f"--offload-arch={arch}", "-std=c++17", "-ffp-contract=off", f"-DGEN_WAVE_SIZE={wave_size}", "-w"]
    options += wave_options(arch, wave_size)
    (status,) = hiprtc.hiprtcCompileProgram(program, len(options), [o.encode() for o in options])
    if int(status) != 0:
        log = _text(hiprtc.hiprtcGetProgramLogSize, hiprtc.hiprtcGetProgramLog, program)
        raise refused(name, status, log, unit)
    return _text(hiprtc.hiprtcGetCodeSize, hiprtc.hiprtcGetCode, program)


def _text(size: Callable[..., Any], fill: Callable[..., Any], program: Any) -> bytes:
    text = bytearray(int(_hiprtc(size, program)))
    _hiprtc(fill, program, text)
    return bytes(text)


def _hiprtc(function: Callable[..., Any], *arguments: Any) -> Any:
    return compiler_call("hiprtc", _REMEDY, function, *arguments)
