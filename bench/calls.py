"""What a call of a compiled program costs the CPU: `python bench/calls.py [--device cuda] [--times N]`.

A small softmax is called on the CPU, on arrays of numpy. On a GPU a softmax is called on PyTorch's tensors and stream, beside `torch.softmax` with the same arguments. Without a
GPU a driver that does nothing stands in for the vendor's, and what is left is the Python of a call. Calls are timed
until they return, in batches between which the GPU comes to rest. Figures are those of the quickest batch: in others the
machine did something else besides.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import genrw
from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.devices import HostDevice
from genrw.codegen.runtime.gpu import GpuDevice, GpuProgram
from genrw.codegen.runtime.gpu_arrays import CUDA, DeviceArray
from genrw.codegen.runtime.gpu_runtime import GpuRuntime, Launcher, Parameters
from genrw.engine.ir.types import Type
from genrw.executable import Executable

ROWS, COLUMNS, CALLS = 64, 4096, 20
SMALL = "x = @param:x -> float{1, 64}\ny = softmax[axis=1](x)\n@return(y)\n"
"""So small that a call is all Python."""
ONE_KERNEL = f"x = @param:x -> half{{{ROWS}, {COLUMNS}}}\ny = softmax[axis=1](x)\n@return(y)\n"
MANY_ARRAYS = (
    "".join(f"x{i} = @param:x{i} -> float{{{ROWS}, {COLUMNS}}}\n" for i in range(4))
    + "a = add(x0, x1)\nb = mul(x2, x3)\nc = sub(a, b)\n@return(a, b, c)\n"
)
_LAYERS = 40
_STEPS = (("b", "mul", "a"), ("c", "add", "b"), ("d", "mul", "c"), ("e", "add", "d"))
MANY_KERNELS = (
    f"x = @param:x -> half{{{ROWS}, {COLUMNS}}}\nv0 = relu(x)\n"
    + "".join(f'w{i} = @param:w{i} = "weights.npy" -> half{{{COLUMNS}}}\n' for i in range(4 * _LAYERS))
    + "".join(
        f"a{i} = softmax[axis={i % 2}](v{i})\n"
        + "".join(f"{to}{i} = {op}({of}{i}, w{4 * i + k})\n" for k, (to, op, of) in enumerate(_STEPS))
        + f"v{i + 1} = relu(e{i})\n"
        for i in range(_LAYERS)
    )
    + f"@return(v{_LAYERS})\n"
)
PROGRAMS = {
    "softmax": ONE_KERNEL,
    "four inputs, three results": MANY_ARRAYS,
    f"a network of {4 * _LAYERS} weights": MANY_KERNELS,
}


class StubGpu(GpuRuntime):
    """A GPU whose driver does nothing, at once."""

    name, kind, remedy, number, arch, model, compiler = "hip", CUDA, "", 0, "gfx942", "none", "none"

    def __init__(self) -> None:
        self.pointer = 0
        steps = (
            "function",
            "module",
            "free",
            "synchronize",
            "event",
            "record",
            "wait",
            "free event",
            "write",
            "read",
            "capturing",
        )
        self.functions = dict.fromkeys(steps, lambda *_: (0, 0)) | {"allocate": self._allocated}

    def _allocated(self, size: int) -> tuple[int, int]:
        self.pointer += size + 255 & -256
        return 0, self.pointer

    def count(self) -> int:
        return 1

    def build(self, kernel: KernelSource) -> bytes:
        return kernel.text.encode()

    def scratch_bytes(self, image: bytes, kernel: str) -> int:  # noqa: ARG002
        return 0

    def enter(self) -> None:
        self.call("the GPU cannot be used", _nothing, 0)

    def launcher(self, function: Any, kernel: KernelSource) -> Launcher:
        parameters = Parameters(len(kernel.arguments))

        def start(pointers: Sequence[int], stream: int) -> None:
            parameters.started(pointers, lambda at: self.call("the launch failed", _nothing, function, stream, at))

        return start

    def said(self, status: Any) -> str:
        return str(status)


def _nothing(*_: object) -> tuple[int]:
    return (0,)


def microseconds(call: Callable[[], object], times: int, rest: Callable[[], object]) -> float:
    """The time of a call, in microseconds."""
    batches = []
    for _ in range(times + 1):
        rest()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        batches.append((time.perf_counter() - start) / CALLS * 1e6)
    rest()
    return min(batches[1:])


def on_the_host(times: int) -> None:
    """A call on an array of numpy, beside numpy's own softmax."""
    run = Executable(genrw.load(SMALL, target="host"), HostDevice())
    x = np.random.default_rng(0).random((1, 64), np.float32)

    def peer() -> None:
        e = np.exp(x - x.max(1, keepdims=True))
        e / e.sum(1, keepdims=True)

    taken, beside = (microseconds(call, times, lambda: None) for call in (lambda: run(x), peer))
    print(f"softmax on the CPU: {taken:.1f} µs a call, numpy's {beside:.1f} µs: {taken / beside:.1f} times as much")


def on_a_stub(times: int) -> None:
    """Calls on arrays of the GPU, with results where the caller wants them."""
    for name, text in PROGRAMS.items():
        taken, alone = stub_times(text, times)
        print(f"{name}: {taken:.1f} µs a call, a launch alone takes {alone:.1f} µs: {taken / alone:.1f} times as much")


def stub_times(text: str, times: int) -> tuple[float, float]:
    """The times of a call, and of its program's first launch alone."""
    gpu = StubGpu()
    with TemporaryDirectory() as folder:
        path = Path(folder, "program.gen")
        path.write_text(text, encoding="utf-8")
        np.save(Path(folder, "weights.npy"), np.ones(COLUMNS, np.float16))
        run = Executable(genrw.load(path, target="gfx942"), GpuDevice(gpu))
        usual = run.program.defaults
    given = [array(gpu, n.type) for name, n in run.program.inputs.items() if name not in usual]
    out = {name: array(gpu, node.type) for name, node in run.program.results.items()}
    taken = microseconds(lambda: run(*given, stream=5, out=out), times, lambda: None)
    kernel = GpuProgram(gpu, run.program).kernels[0]
    pointers = [0] * len(kernel.source.arguments)
    return taken, microseconds(lambda: kernel.launch(pointers, 5), times, lambda: None)


def array(gpu: StubGpu, type_: Type) -> DeviceArray:
    """An array that nobody looks into."""
    return DeviceArray(gpu.allocate(1 << 20), type_.dtype, type_.lens, type_.layout, CUDA, 0, DeviceArray.numpy, None)


def on_a_gpu(device: str, times: int) -> None:
    """The same on PyTorch's tensors."""
    import torch

    run = genrw.compile(ONE_KERNEL, device=device)
    x = torch.randn(ROWS, COLUMNS, dtype=torch.half, device="cuda")
    y, mine = torch.empty_like(x), torch.empty_like(x)
    stream = torch.cuda.current_stream()
    run(x, stream=stream, out={"y": mine})
    torch.testing.assert_close(mine, torch.softmax(x, 1), rtol=1e-2, atol=1e-5)
    rest = torch.cuda.synchronize
    peer = microseconds(lambda: torch.softmax(x, 1, out=y), times, rest)
    for name, call in {
        "into the caller's array": lambda: run(x, stream=stream, out={"y": mine}),
        "into memory of its own": lambda: run(x, stream=stream),
    }.items():
        taken = microseconds(call, times, rest)
        print(f"softmax {name}: {taken:.1f} µs a call, torch.softmax {peer:.1f} µs: {taken / peer:.2f} times as much")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cuda or hip; without it, a driver that does nothing")
    parser.add_argument("--times", type=int, default=300, help="how many batches of calls")
    options = parser.parse_args()
    if options.device:
        on_a_gpu(options.device, options.times)
    else:
        on_the_host(options.times)
        on_a_stub(options.times)


if __name__ == "__main__":
    main()
