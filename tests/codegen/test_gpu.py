"""Programs on a GPU, whose part the CPU plays: arguments, results, caches, messages."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_gpu import HostGpu, OnGpu, aligned

import genrw
from genrw.codegen.runtime import gpu_arrays
from genrw.codegen.runtime.gpu import GpuDevice, GpuProgram
from genrw.codegen.runtime.gpu_arrays import DeviceArray
from genrw.grammar.diagnostics import GenrwError

TEXT = """\
x = @param:x -> float{6, 40}
y = @param:y -> float{40}
p = mul(x, y)
s = reduce_sum[axes={1}](p)
d = sub(p, s)
@return(s, d)
"""


@pytest.fixture
def program(gpu: HostGpu) -> Any:
    return GpuDevice(gpu).prepare(genrw.load(TEXT, target="gfx942"))


def inputs() -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(3)
    return {"x": aligned(drawn.random((6, 40), np.float32)), "y": aligned(drawn.random(40, np.float32))}


def expected(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    p = given["x"].astype(np.float64) * given["y"]
    s = p.sum(1, keepdims=True)
    return {"s": s, "d": p - s}


class ByDlpack:
    """A numpy array that says it lies on a GPU, by DLPack."""

    def __init__(self, array: np.ndarray, number: int = 0) -> None:
        self.array, self.number, self.streams = array, number, []  # type: ignore[var-annotated]

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number

    def __dlpack__(self, stream: int | None = None) -> object:
        self.streams.append(stream)
        return self.array.__dlpack__()


def close(got: dict[str, Any], given: dict[str, np.ndarray]) -> None:
    for name, want in expected(given).items():
        array = got[name] if isinstance(got[name], np.ndarray) else got[name].numpy()
        np.testing.assert_allclose(array, want, rtol=1e-5, atol=1e-5)


def test_numpy_in_and_out(program: GpuProgram) -> None:
    given = inputs()
    got = program(given)
    assert all(isinstance(array, np.ndarray) for array in got.values())
    close(got, given)


def test_memory_is_given_back(gpu: HostGpu, program: GpuProgram) -> None:
    program(inputs())
    kept = len(gpu.memory)
    for _ in range(3):
        program(inputs())
    assert len(gpu.memory) == kept == 2


@pytest.mark.parametrize("lend", [OnGpu, ByDlpack])
def test_arrays_of_the_gpu_are_used_where_they_lie(gpu: HostGpu, program: GpuProgram, lend: Any) -> None:
    given = inputs()
    got = program({name: lend(array) for name, array in given.items()})
    close(got, given)
    assert len(gpu.memory) == 2, "the results alone have memory of their own"
    again = np.from_dlpack(got["d"])
    assert again.ctypes.data == got["d"].pointer
    np.testing.assert_array_equal(again, got["d"].numpy())
    interface = got["s"].__cuda_array_interface__
    assert (interface["shape"], interface["typestr"]) == ((6, 1), "<f4")


def test_results_live_as_long_as_somebody_holds_them(gpu: HostGpu, program: GpuProgram) -> None:
    got = program({name: OnGpu(array) for name, array in inputs().items()})
    taken = np.from_dlpack(got["d"])
    del got
    assert len(gpu.memory) == 1
    assert np.isfinite(taken).all()
    del taken
    assert not gpu.memory


def test_results_go_where_the_caller_wants_them(program: GpuProgram) -> None:
    given = inputs()
    d = aligned(np.zeros((6, 40), np.float32))
    got = program(given, out={"d": OnGpu(d)})
    assert got["d"].pointer == d.ctypes.data
    np.testing.assert_allclose(d, expected(given)["d"], rtol=1e-5, atol=1e-5)


def test_streams(gpu: HostGpu, program: GpuProgram) -> None:
    given = inputs()
    lent = ByDlpack(given["y"])
    program({"x": OnGpu(given["x"], stream=7), "y": lent}, stream=5)
    assert gpu.waits == [(7, 5)]
    assert lent.streams == [5]


def test_a_call_without_a_stream_is_done_when_it_returns(gpu: HostGpu, program: GpuProgram) -> None:
    got = program({name: OnGpu(array) for name, array in inputs().items()})
    assert gpu.finished == [0]
    assert got["d"].stream is None
    assert got["d"].__cuda_array_interface__["stream"] is None
    np.from_dlpack(got["d"])
    assert gpu.waits == []


def test_a_stream_goes_on_by_itself(gpu: HostGpu, program: GpuProgram) -> None:
    """Nobody waits for it; who takes a result on another stream has that wait."""
    given = inputs()
    got = program({name: OnGpu(array) for name, array in given.items()}, stream=5)
    assert gpu.finished == []
    assert got["d"].__cuda_array_interface__["stream"] == 5
    for taker, waits in ((5, []), (-1, []), (None, [(5, 0)]), (1, [(5, 0)]), (6, [(5, 6)])):
        gpu.waits.clear()
        got["d"].__dlpack__(stream=taker)
        assert gpu.waits == waits
    assert gpu.marks == []
    close(got, given)


def test_results_are_given_back_behind_who_took_them(gpu: HostGpu, program: GpuProgram) -> None:
    lent = {name: OnGpu(array) for name, array in inputs().items()}
    taken: Callable[[DeviceArray], object]
    for taken, streams in (
        (lambda _: None, (5,)),
        (lambda d: d.__dlpack__(stream=6), (5, 6)),
        (lambda d: d.__dlpack__(stream=1), (5, 0)),
        (lambda d: d.__dlpack__(stream=-1), (5, None)),
        (lambda d: d.__cuda_array_interface__, (5, None)),
        (lambda d: program({"x": d, "y": lent["y"]}, stream=9), (5, None)),  # taken by its protocol
        (lambda d: program({"x": d, "y": lent["y"]}, stream=9), (5, 9)),  # met again
    ):
        got = program(lent, stream=5)["d"]
        capsule = taken(got)
        gpu_arrays._lent.clear()  # as if the taker had let it go
        gpu.freed.clear()
        del got, capsule
        assert streams in gpu.freed, gpu.freed


def test_numpy_waits_for_its_stream(gpu: HostGpu, program: GpuProgram) -> None:
    got = program(inputs(), stream=5)
    assert isinstance(got["d"], np.ndarray)
    assert gpu.finished == [5]


def test_calls_take_turns_with_the_memory_that_they_share(gpu: HostGpu, program: GpuProgram) -> None:
    """A numpy input is copied to the same place by each call: no kernel may still read it."""
    mixed = inputs() | {"x": OnGpu(inputs()["x"])}
    program(mixed, stream=5)
    program(mixed, stream=5)
    assert gpu.waits == []
    program(mixed, stream=6)
    assert gpu.waits == [(5, 6)]
    program(mixed)
    assert gpu.waits == [(5, 6), (6, 0)]
    assert gpu.marks == []


class OfTorch:
    cuda_stream = 5


class OfCupy:
    ptr = 5


class ByProtocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 5


@pytest.mark.parametrize("sort", [OfTorch, OfCupy, ByProtocol])
def test_streams_of_libraries(program: GpuProgram, sort: Any) -> None:
    got = program({name: OnGpu(array) for name, array in inputs().items()}, stream=sort())
    assert got["d"].stream == 5


def test_what_is_no_stream_is_refused(program: GpuProgram) -> None:
    with pytest.raises(GenrwError, match="a stream is not str"):
        program(inputs(), stream="5")


REFUSED = {
    "type": (lambda a: OnGpu(a.astype(np.float64)), "input `x` is double, not float"),
    "shape": (lambda a: OnGpu(a[:5]), "input `x` has shape [5, 40], not [6, 40]"),
    "strides": (lambda a: OnGpu(np.asfortranarray(a)), "input `x` has strides [1, 6], not [40, 1]"),
    "alignment": (
        lambda a: OnGpu(a, data=(a.ctypes.data + 4, False)),
        "input `x` starts 4 bytes past a multiple of 16",
    ),
    "GPU": (lambda a: ByDlpack(a, 1), "input `x` lies on GPU 1, not on GPU 0"),
    "numpy shape": (lambda a: a[:5], "input `x` has shape [5, 40], not [6, 40]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_arguments_are_checked(program: GpuProgram, what: str) -> None:
    change, message = REFUSED[what]
    given = inputs()
    with pytest.raises(GenrwError) as problem:
        program({**given, "x": change(given["x"])})
    assert problem.value.diagnostics[0].message == message


def test_a_missing_input(program: GpuProgram) -> None:
    with pytest.raises(GenrwError, match="input `y` is missing"):
        program({"x": inputs()["x"]})


def test_a_failed_launch_names_the_kernel_and_the_program(gpu: HostGpu, program: GpuProgram) -> None:
    gpu.failing = True
    with pytest.raises(GenrwError, match=r"kernel \w+ of <text>: the launch failed: 719"):
        program(inputs())


def test_kernels_for_another_device_are_refused(gpu: HostGpu) -> None:
    with pytest.raises(GenrwError, match="kernels for sm_90 do not run on the device hip"):
        GpuDevice(gpu).prepare(genrw.load(TEXT, target="sm_90"))


def test_code_is_cached_and_damaged_entries_are_rebuilt(gpu: HostGpu, tmp_path: Path) -> None:
    program = genrw.load(TEXT, target="gfx942")
    GpuDevice(gpu).prepare(program)
    GpuDevice(gpu).prepare(program)
    assert len(gpu.built) == 1
    (entry,) = (tmp_path / "cache" / "hip").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    GpuDevice(gpu).prepare(program)
    assert len(gpu.built) == 2


# ---- arrays that are met again


class Tensor(ByDlpack):
    """What of PyTorch's tensors a call looks at."""

    requires_grad = is_negative = False
    is_cuda = True

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array)
        self.shape, self.dtype = array.shape, array.dtype

    def get_device(self) -> int:
        return 0

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def is_neg(self) -> bool:
        return self.is_negative

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def __dlpack__(self, stream: int | None = None) -> object:
        if self.requires_grad:
            raise RuntimeError("it requires a gradient")
        return super().__dlpack__(stream)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """PyTorch as far as a call looks at it; `stream` is the current one."""
    module = SimpleNamespace(stream=5)
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: module.stream + device)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(gpu_arrays, "_readers", dict(gpu_arrays._readers))
    monkeypatch.setattr(Tensor, "__module__", "torch")
    return module


def tensors() -> dict[str, Tensor]:
    return {name: Tensor(array) for name, array in inputs().items()}


def asked(given: dict[str, Tensor]) -> list[int]:
    """How often arrays were asked by their protocol."""
    return [len(tensor.streams) for tensor in given.values()]


def test_no_mask_on_the_gpu_is_ignored(program: GpuProgram) -> None:
    given = {name: OnGpu(array) for name, array in inputs().items()}
    hidden = OnGpu(inputs()["x"], mask=OnGpu(np.zeros((6, 40), np.bool_)))
    with pytest.raises(GenrwError, match="input `x` is a masked array"):
        program(given | {"x": hidden})


@pytest.mark.usefixtures("torch")
def test_arrays_that_differ_in_their_address_alone_are_not_asked_again(program: GpuProgram) -> None:
    first, second, out = tensors(), tensors(), {"d": Tensor(aligned(np.zeros((6, 40), np.float32)))}
    for given in (first, second):
        for tensor in given.values():
            tensor.array *= 1 + (given is second)
        got = program(given, stream=5, out=out)
        close({"s": got["s"], "d": out["d"].array}, {name: tensor.array for name, tensor in given.items()})
    assert (asked(first), asked(second), asked(out)) == ([1, 1], [0, 0], [1])


def test_work_on_the_current_stream_of_a_library_is_waited_for(
    gpu: HostGpu, program: GpuProgram, torch: SimpleNamespace
) -> None:
    program(tensors(), stream=5)
    assert gpu.waits == []
    torch.stream = 7
    program(tensors(), stream=5)
    assert gpu.waits == [(7, 5), (7, 5)]


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: Tensor(aligned(a.astype(np.float64))), "input `x` is double, not float"),
        (lambda a: Tensor(a[:5]), "input `x` has shape [5, 40], not [6, 40]"),
        (lambda a: Tensor(np.asfortranarray(a)), "input `x` has strides [1, 6], not [40, 1]"),
        (lambda a: Tensor(np.pad(a.reshape(-1), (1, 0))[1:].reshape(a.shape)), "bytes past a multiple of 16"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_after_one_that_does(program: GpuProgram, change: Any, said: str) -> None:
    given = tensors()
    for _ in range(2):
        program(given, stream=5)
    for _ in range(2):
        with pytest.raises(GenrwError, match=re.escape(said)):
            program(given | {"x": change(aligned(given["x"].array))}, stream=5)


@pytest.mark.usefixtures("torch")
def test_what_a_protocol_refuses_is_refused_again(program: GpuProgram) -> None:
    given = tensors()
    program(given, stream=5)
    given["x"].requires_grad = True
    for _ in range(2):
        with pytest.raises(RuntimeError, match="gradient"):
            program(given, stream=5)


def test_results_are_inputs_without_a_protocol(
    gpu: HostGpu, program: GpuProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {name: OnGpu(array) for name, array in inputs().items()}
    first = program(given, stream=5)["d"]
    program(given | {"x": first}, stream=5)
    monkeypatch.setattr(DeviceArray, "__dlpack__", None)
    program(given | {"x": program(given, stream=5)["d"]}, stream=5)
    assert gpu.waits == []
    program(given | {"x": first}, stream=6)
    assert gpu.waits == [(5, 6)]


def test_what_stands_for_an_input_is_copied_once(gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("@param:y ->", '@param:y = "y.npy" ->')
    (tmp_path / "p.gen").write_text(text)
    given = inputs()
    np.save(tmp_path / "y.npy", given["y"])
    program = GpuDevice(gpu).prepare(genrw.load(tmp_path / "p.gen", target="gfx942"))
    written: list[int] = []
    write = gpu.write
    monkeypatch.setattr(gpu, "write", lambda pointer, *rest: (written.append(pointer), write(pointer, *rest)))
    for _ in range(3):
        close(program({"x": OnGpu(given["x"])}), given)
    assert len(written) == 1
    other = {"x": given["x"], "y": given["y"] + 1}
    close(program({"x": OnGpu(given["x"]), "y": other["y"]}), other)
    close(program({"x": OnGpu(given["x"])}), given)
    assert len(written) == 2, "another array does not take its place"
