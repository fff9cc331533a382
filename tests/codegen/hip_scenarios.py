"""What test_hip_bindings.py has a process do that takes the fake HIP for the machine's.

Each scenario takes the number of a GPU and fails by an assertion.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hip import hip

import genrw
from genrw.codegen.runtime.devices import find_device
from genrw.codegen.runtime.gpu import GpuKernel, GpuProgram, code_objects
from genrw.codegen.runtime.gpu_arrays import ROCM, DeviceArray
from genrw.codegen.runtime.gpu_runtime import GpuRuntime
from genrw.codegen.runtime.hip_runtime import HipRuntime, compile_hip
from genrw.grammar.diagnostics import GenrwError

ROWS, COLUMNS = 6, 40
TEXT = f"""\
x = @param:x -> float{{{ROWS}, {COLUMNS}}}
y = @param:y -> float{{{COLUMNS}}}
p = mul(x, y)
s = reduce_sum[axes={{1}}](p)
d = sub(p, s)
@return(s, d)
"""


# ---- what the scenarios share


def program(number: int) -> GpuProgram:
    device = find_device(f"hip:{number}")
    made = device.prepare(genrw.load(TEXT, target=device.default_target))
    assert isinstance(made, GpuProgram)
    return made


def arrays() -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(5)
    return {"x": drawn.random((ROWS, COLUMNS), np.float32), "y": drawn.random(COLUMNS, np.float32)}


def close(got: dict[str, Any], given: dict[str, np.ndarray]) -> None:
    p = given["x"].astype(np.float64) * given["y"]
    s = p.sum(1, keepdims=True)
    for name, want in {"s": s, "d": p - s}.items():
        array = got[name] if isinstance(got[name], np.ndarray) else got[name].numpy()
        np.testing.assert_allclose(array, want, rtol=1e-5, atol=1e-5)


def done(status: tuple[Any, ...]) -> Any:
    assert status[0] == hip.hipError_t.hipSuccess
    return status[1] if len(status) > 1 else None


def live(sort: str) -> int:
    """How many things of a sort the GPUs hold."""
    library = ctypes.CDLL(os.path.join(os.environ["ROCM_PATH"], "lib", "libamdhip64.so"))
    return int(library.fake_hip_live(sort.encode()))


@contextmanager
def setting(name: str, value: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        yield


class Memory:
    """Memory of the current GPU."""

    def __init__(self, size: int) -> None:
        self.pointer = int(done(hip.hipMalloc(size)))

    def __del__(self) -> None:
        hip.hipFree(self.pointer)


class Tensor(Memory):
    """An array in a GPU's memory as another library holds it, copied there on a stream."""

    def __init__(self, array: np.ndarray, stream: int = 0) -> None:
        super().__init__(array.nbytes)
        self.array = array
        done(hip.hipMemcpyHtoDAsync(self.pointer, array.ctypes.data, array.nbytes, stream))


class ByInterface(Tensor):
    """Given by `__cuda_array_interface__`; `said` is the stream that it names, by default none."""

    def __init__(self, array: np.ndarray, stream: int = 0, said: int | None = None) -> None:
        super().__init__(array, stream)
        interface = {"shape": array.shape, "typestr": array.dtype.str, "data": (self.pointer, False)}
        self.__cuda_array_interface__ = interface | {"version": 3, "stream": said}


def by_dlpack(array: np.ndarray, number: int) -> DeviceArray:
    held = Tensor(array)
    strides = tuple(s // array.itemsize for s in array.strides)
    return DeviceArray(held.pointer, "float", array.shape, strides, ROCM, number, lambda _: array, held)


@contextmanager
def new_stream() -> Iterator[int]:
    """A stream that does not wait for the default one."""
    stream = int(done(hip.hipStreamCreateWithFlags(1)))
    yield stream
    done(hip.hipStreamDestroy(stream))


# ---- scenarios


def what_the_gpu_is(number: int) -> None:
    gpu = HipRuntime(number)
    assert gpu.count() == 2
    assert (gpu.arch, gpu.model) == [("gfx942", "Pretended gfx942"), ("gfx1100", "Pretended gfx1100")][number]
    assert gpu.compiler == "hiprtc 9.0 of HIP 60342134"


def numpy_in_and_out(number: int) -> None:
    run = program(number)
    assert {k.source.wave_size for k in run.kernels} == {(64, 32)[number]}
    for _ in range(2):
        given = arrays()
        got = run(given)
        assert all(isinstance(array, np.ndarray) for array in got.values())
        close(got, given)


def arrays_of_the_gpu(number: int) -> None:
    run, given = program(number), arrays()
    got = run({"x": ByInterface(given["x"]), "y": by_dlpack(given["y"], number)})
    assert got["d"].__dlpack_device__() == (ROCM, number)
    close(got, given)
    # A result is an input as it lies.
    close(run({"x": got["d"], "y": ByInterface(given["y"])}), {"x": got["d"].numpy(), "y": given["y"]})


def results_where_the_caller_wants_them(number: int) -> None:
    run, given = program(number), arrays()
    d = ByInterface(np.zeros((ROWS, COLUMNS), np.float32))
    got = run(given, out={"d": d})
    assert got["d"].pointer == d.pointer
    close(got, given)


def streams(number: int) -> None:
    run, given = program(number), arrays()
    run.runtime.enter()
    with new_stream() as mine, new_stream() as other:
        # Both copies are still to be done when the program is called: one earlier on its stream, one on another.
        x, y = ByInterface(given["x"], mine), ByInterface(given["y"], other, said=other)
        close(run({"x": x, "y": y}, stream=mine), given)
        close(run(given, stream=mine), given)


def memory_is_given_back(number: int) -> None:
    gc.collect()
    before = {sort: live(sort) for sort in ("allocations", "streams", "events", "graphs", "programs")}
    use_all(number)
    gc.collect()
    assert {sort: live(sort) for sort in before} == before


def use_all(number: int) -> None:
    """Everything that takes something of the GPU."""
    run, given = program(number), arrays()
    run(given)
    with new_stream() as stream:
        run({name: ByInterface(array, said=0) for name, array in given.items()}, stream=stream)
    whole, held = captured(run)
    whole(0)
    times(number)
    run.runtime.synchronize(0)
    assert live("graphs")
    assert live("allocations") >= len(held) + len(given)


def captured(run: GpuProgram) -> tuple[Callable[[int], None], list[Memory]]:
    """The program's one kernel in a graph, and the memory of its arguments."""
    (kernel,) = run.kernels
    run.runtime.enter()
    held = [Memory(4 * ROWS * COLUMNS) for _ in kernel.source.arguments]
    pointers = [memory.pointer for memory in held]
    return run.runtime.captured(lambda stream: kernel.launch(pointers, stream)), held


def a_captured_graph(number: int) -> None:
    run = program(number)
    whole, held = captured(run)
    at = {a.parameter: m.pointer for a, m in zip(run.kernels[0].source.arguments, held, strict=True)}
    names = [a.parameter for a in run.kernels[0].source.arguments if a.written]
    got = {"s": np.empty((ROWS, 1), np.float32), "d": np.empty((ROWS, COLUMNS), np.float32)}
    with new_stream() as stream:
        run.runtime.read(got["d"], at[names[1]], stream)
        assert np.isnan(got["d"]).all(), "capturing runs nothing"
        for scale in (1, 3):
            given = {name: scale * array for name, array in arrays().items()}
            for name, array in given.items():
                run.runtime.write(at[name], array, stream)
            whole(stream)
            for parameter, array in zip(names, got.values(), strict=True):
                run.runtime.read(array, at[parameter], stream)
            close(got, given)


def calls_in_a_graph(number: int) -> None:
    """A stream that is captured cannot wait for calls on another one, though all share the memory between kernels."""
    text = "x = @param:x -> float{40, 6}\ns = reduce_sum[axes={0}](x)\nd = softmax[axis=1](s)\n@return(d)\n"
    device = find_device(f"hip:{number}")
    run = device.prepare(genrw.load(text, target=device.default_target))
    x = np.random.default_rng(3).random((40, 6), np.float32)
    powers = np.exp(x.astype(np.float64).sum(0))
    lies, out = ByInterface(x), ByInterface(np.zeros((1, 6), np.float32))
    run.runtime.synchronize(0)
    assert len(run.kernels) > 1, "memory is shared between kernels"
    with new_stream() as first, new_stream() as second:
        run({"x": lies}, stream=first, out={"d": out})
        whole = run.runtime.captured(lambda stream: run({"x": lies}, stream=stream, out={"d": out}))
        run.runtime.fill(out.pointer, 0, 24, second)
        run.runtime.synchronize(first)
        whole(second)
        run.runtime.synchronize(second)
        got = run({"x": lies}, stream=first)["d"].numpy()
        np.testing.assert_allclose(got, [powers / powers.sum()], rtol=1e-4)
        seen = np.empty((1, 6), np.float32)
        run.runtime.read(seen, out.pointer, second)
        np.testing.assert_allclose(seen, got, rtol=1e-6)


def memory_for_a_graph(number: int) -> None:
    """While a stream is captured, no memory can be taken."""
    text = "x = @param:x -> float{40, 6}\ns = reduce_sum[axes={0}](x)\nd = softmax[axis=1](s)\n@return(d)\n"
    device = find_device(f"hip:{number}")
    run = device.prepare(genrw.load(text, target=device.default_target))
    lies, out = ByInterface(np.zeros((40, 6), np.float32)), ByInterface(np.zeros((1, 6), np.float32))
    with pytest.raises(GenrwError, match="has no memory between its kernels yet"):
        run.runtime.captured(lambda stream: run({"x": lies}, stream=stream, out={"d": out}))


def times(number: int) -> None:
    run = program(number)
    whole, _held = captured(run)
    taken = run.runtime.times(whole, 4)
    assert len(taken) == 4
    assert all(0 < t < 10e6 for t in taken)


def another_gpu_in_between(number: int) -> None:
    run, given = program(number), arrays()
    done(hip.hipSetDevice(1 - number))
    close(run(given), given)


def a_kernel_that_does_not_compile(number: int) -> None:
    before, gpu = live("programs"), HipRuntime(number)
    with pytest.raises(GenrwError) as problem:
        compile_hip("GEN_KERNEL(64) wrong(float* x)\n{\n    x[0] = nothing;\n}\n", gpu.arch, (64, 32)[number], "wrong")
    message = problem.value.diagnostics[0].message
    assert message.startswith("kernel wrong does not compile: HIPRTC_ERROR_COMPILATION\n")
    assert "wrong.hip:3:12: error: use of undeclared identifier 'nothing'" in message
    assert live("programs") == before


def code_comes_from_the_cache(number: int) -> None:
    program(number)
    with setting("FAKE_HIPRTC", "false"):
        given = arrays()
        close(program(number)(given), given)


def steps_that_fail(number: int) -> None:
    run = program(number)
    (kernel,) = run.kernels
    failures = {
        "hipModuleLaunchKernel=719": f"kernel {kernel.source.name} of <text>: the launch failed: "
        "hipErrorLaunchFailure, unspecified launch failure",
        "hipStreamSynchronize=700": "the GPU reports a fault: hipErrorIllegalAddress, an illegal memory access",
        "hipMalloc=2": "the GPU has no 24 bytes left: hipErrorOutOfMemory, out of memory",
        "hipSetDevice=101": "the GPU cannot be used: hipErrorInvalidDevice",
    }
    given = arrays()
    for failure, message in failures.items():
        with setting("FAKE_HIP_FAIL", failure), pytest.raises(GenrwError) as problem:
            run(given)
        assert message in problem.value.diagnostics[0].message
        close(run(given), given)


def rows_in_workgroup_memory(number: int) -> None:
    """Softmax of rows of which registers hold 16 of the 64 elements of a lane; they begin anywhere, or at whole vectors."""
    device = find_device(f"hip:{number}")
    for algo, n in (("aligned", 4091), ("block", 4096)):
        made = device.prepare(genrw.load(_rows_kept(algo, n, device.default_target), target=device.default_target))
        assert "x_in_rest" in made.kernels[0].source.text
        x = np.random.default_rng(6).standard_normal((3, n)).astype(np.float16)
        powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        np.testing.assert_allclose(made({"x": x})["y"], powers / powers.sum(1, keepdims=True), rtol=2e-3, atol=1e-7)


def _rows_kept(algo: str, n: int, target: str) -> str:
    share = 64 + 8 * (algo == "aligned")
    schedule = f"algo={algo}, block_size=64, lanes=64, vector=8, share={share}, steps=1, grid=3, resident=2, held=16"
    return f"""\
@module main [stage=schedule, target={target}, schedule={{{schedule}}}, space={{3, {n}}}, axes={{1}}]
x = @param:x -> half{{3, {n}}}
f = convert[target_type=float](x)
m = reduce_max[axes={{1}}](f)
b = multibroadcast[out_lens={{3, {n}}}](m)
d = sub(f, b)
e = exp(d)
s = reduce_sum[axes={{1}}](e)
c = multibroadcast[out_lens={{3, {n}}}](s)
q = div(e, c)
y = convert[target_type=half](q)
@return(y)
"""


def code_that_does_not_load(number: int) -> None:
    run = program(number)
    other = HipRuntime(1 - number)
    with pytest.raises(GenrwError, match="kernel k does not load: hipErrorNoBinaryForGpu"):
        other.load(image_of(run.kernels[0], run.runtime), "k")
    with pytest.raises(GenrwError, match="kernel k does not load: hipErrorInvalidImage"):
        other.load(b"\0" * 64, "k")
    with pytest.raises(GenrwError, match="kernel k is not in its module: hipErrorNotFound"):
        run.runtime.load(image_of(run.kernels[0], run.runtime), "k")


def image_of(kernel: GpuKernel, gpu: GpuRuntime) -> bytes:
    (image,) = code_objects(gpu, genrw.load(TEXT, target=gpu.arch), [kernel.source])
    return image


def too_little_memory(number: int) -> None:
    run, given = program(number), arrays()
    with setting("FAKE_HIP_MEMORY", "100"), pytest.raises(GenrwError, match="hipErrorOutOfMemory, out of memory"):
        run(given)
    close(run(given), given)


SCENARIOS = (
    what_the_gpu_is,
    numpy_in_and_out,
    arrays_of_the_gpu,
    results_where_the_caller_wants_them,
    streams,
    memory_is_given_back,
    a_captured_graph,
    calls_in_a_graph,
    memory_for_a_graph,
    rows_in_workgroup_memory,
    times,
    another_gpu_in_between,
    a_kernel_that_does_not_compile,
    code_comes_from_the_cache,
    steps_that_fail,
    code_that_does_not_load,
    too_little_memory,
)


# ---- scenarios that leave the GPUs useless, for a process of its own


class HostMemory:
    """An array of numpy that says it lies on a GPU."""

    def __init__(self, array: np.ndarray) -> None:
        memory = np.empty(array.nbytes + 64, np.uint8)
        start = -memory.ctypes.data % 64
        self.array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.__cuda_array_interface__ = self.array.__array_interface__ | {"stream": None}


def memory_of_the_cpu(number: int) -> None:
    run, given = program(number), arrays()
    with pytest.raises(GenrwError) as problem:
        run({"x": HostMemory(given["x"]), "y": given["y"]})
    name = run.kernels[0].source.name
    message = "the GPU reports a fault: hipErrorIllegalAddress, an illegal memory access was encountered"
    assert problem.value.diagnostics[0].message == f"kernel {name} of <text>: {message}"


def memory_of_another_gpu(number: int) -> None:
    run, given = program(number), arrays()
    done(hip.hipSetDevice(1 - number))
    with pytest.raises(GenrwError, match="hipErrorIllegalAddress"):
        run({"x": ByInterface(given["x"]), "y": given["y"]})


FATAL = (memory_of_the_cpu, memory_of_another_gpu)
