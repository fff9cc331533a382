"""Programs of several kernels on a GPU, whose part the CPU plays: launches as graphs where memory lies as it did before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_gpu import HostGpu, OnGpu, aligned

import genrw
from genrw.codegen.runtime.gpu import GpuDevice, GpuProgram
from genrw.codegen.runtime.replays import Replays

LAYERS = 3
TEXT = "x0 = @param:x0 -> float{64, 64}\nw = @param:w -> float{64, 64}\n" + "".join(
    f"d{i} = dot(x{i}, w)\ns{i} = reduce_mean[axes={{0}}](d{i})\nx{i + 1} = sub(d{i}, s{i})\n" for i in range(LAYERS)
)
TEXT += f"@return(x{LAYERS})\n"


@pytest.fixture
def program(gpu: HostGpu) -> Any:
    made = GpuDevice(gpu).prepare(genrw.load(TEXT, target="gfx942"))
    assert isinstance(made, GpuProgram)
    assert len(made.launches.steps) >= 3
    return made


def drawn(seed: int) -> OnGpu:
    return OnGpu(aligned(np.random.default_rng(seed).standard_normal((64, 64), np.float32) / 8))


def right(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    for _ in range(LAYERS):
        x = x @ w
        x = x - x.mean(0)
    return x


def check(program: GpuProgram, x: OnGpu, w: OnGpu, out: OnGpu, **settings: Any) -> None:
    out.array[...] = np.nan
    program({"x0": x, "w": w}, out={f"x{LAYERS}": out}, **settings)
    np.testing.assert_allclose(out.array, right(x.array, w.array), rtol=1e-3, atol=1e-4)


def test_the_second_call_on_the_same_memory_is_a_graph(gpu: HostGpu, program: GpuProgram) -> None:
    x, w, out = drawn(0), drawn(1), drawn(2)
    for graphs in ([], [1], [2], [3]):
        x.array[0] += 1
        check(program, x, w, out)
        assert gpu.graphs == graphs


def test_other_memory_is_another_graph(gpu: HostGpu, program: GpuProgram) -> None:
    w, out = drawn(1), drawn(2)
    for x in (drawn(3), drawn(4)):
        check(program, x, w, out)
        assert sum(gpu.graphs) % 2 == 0
        check(program, x, w, out, stream=5)
        check(program, x, w, out, stream=6)
    assert gpu.graphs == [2, 2]


def test_launches_that_are_captured_are_part_of_that_graph(gpu: HostGpu, program: GpuProgram) -> None:
    x, w, out = drawn(0), drawn(1), drawn(2)
    check(program, x, w, out, stream=5)
    gpu.capturing.add(5)
    for _ in range(3):
        check(program, x, w, out, stream=5)
    assert gpu.graphs == []


def test_runtimes_for_which_graphs_were_not_measured(gpu: HostGpu) -> None:
    gpu.is_sooner_by_graphs = False
    program = GpuDevice(gpu).prepare(genrw.load(TEXT, target="gfx942"))
    assert isinstance(program, GpuProgram)
    for _ in range(3):
        check(program, drawn(0), drawn(1), drawn(2))
    assert gpu.graphs == []


def test_graphs_in_use_make_no_room(gpu: HostGpu) -> None:
    """Sets of addresses that take turns by the dozen are launched as they are; a graph that idles gives its place away."""
    replays, started = Replays(gpu), list[int]()
    for _ in range(4):
        for addresses in range(20):
            replays.started((addresses,), 0, started.append)
    assert len(gpu.graphs) == 16
    assert len(started) == 80
    for _ in range(70):
        replays.started((0,), 0, started.append)
    for _ in range(2):
        replays.started((99,), 0, started.append)
    assert len(gpu.graphs) == 17
