"""Contractions whose views are copied first, so that neighbours lie together: what they compute at every stage and as kernels."""

from __future__ import annotations

import numpy as np
import pytest
from alternatives_taken import take_only
from breadth import spread
from cases import Case, case, whole
from references import backwards_data, backwards_weights, convolution, dot
from support import listed, load

from genrw.codegen.runtime.devices import HostDevice
from genrw.program import Program

COPYING = ("windows_of_copies", "bytes_along_the_depth")
TARGETS = ("sm_90", "gfx942")


@pytest.fixture(autouse=True)
def copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views are copied wherever a rule says how, whatever it costs."""
    take_only(monkeypatch, *COPYING)


def forward(dtype: str, lens: tuple[int, ...], window: tuple[int, ...], **moves: tuple[int, ...]) -> Case:
    rng = np.random.default_rng(3)
    x, w = whole(rng, dtype, (2, 16, *lens)), whole(rng, dtype, (9, 16, *window))
    ones = (1,) * len(lens)
    padding, stride, dilation = (
        moves.get(n, d) for n, d in (("padding", (0,) * len(lens)), ("stride", ones), ("dilation", ones))
    )
    result = convolution(x, w, padding, stride, dilation, 1)
    call = f"convolution[padding={listed(padding)}, stride={listed(stride)}, dilation={listed(dilation)}](x, w)"
    return case({"x": (dtype, x), "w": (dtype, w)}, call, result, dtype)


def data(dtype: str, stride: int) -> Case:
    rng = np.random.default_rng(4)
    y, w = whole(rng, dtype, (2, 16, 5, 6)), whole(rng, dtype, (16, 9, 3, 3))
    spare = stride - 1
    result = backwards_data(y, w, (1, 1), (stride, stride), (1, 1), 1, (spare, spare))
    lists = f"padding={{1, 1}}, stride={{{stride}, {stride}}}, output_padding={{{spare}, {spare}}}"
    return case({"y": (dtype, y), "w": (dtype, w)}, f"convolution_backwards_data[{lists}](y, w)", result, dtype)


def weights(dtype: str) -> Case:
    rng = np.random.default_rng(5)
    x, y = whole(rng, dtype, (2, 16, 9, 8)), whole(rng, dtype, (2, 9, 7, 6))
    result = backwards_weights(x, y, (3, 3), (0, 0), (1, 1), (1, 1), 1)
    return case(
        {"x": (dtype, x), "y": (dtype, y)}, "convolution_backwards_weights[lengths={3, 3}](x, y)", result, dtype
    )


def of_bytes(m: int, k: int, n: int) -> Case:
    rng = np.random.default_rng(6)
    x, y = whole(rng, "int8", (m, k)), whole(rng, "int8", (k, n))
    return case({"x": ("int8", x), "y": ("int8", y)}, "quant_dot(x, y)", dot(x, y), "int32")


def check(program: Program, made: Case) -> None:
    """At every stage that is left, and as kernels on the CPU."""
    for _stage, lowered in program.remaining_stages():
        made.check(lowered.run(made.inputs, "interpret")["z"])
    run = HostDevice().load(program, program.kernels())
    for order in (0, 1):
        made.check(run(made.inputs, threads=1, order=order)["z"])


WINDOWS = {
    "forward": forward("half", (9, 8), (3, 3), padding=(1, 1)),
    "forward in steps": forward("bf16", (10, 9), (3, 2), padding=(1, 0), stride=(2, 1)),
    "forward with gaps": forward("float", (9, 11), (3, 3), dilation=(2, 2)),
    "rows": forward("half", (19,), (3,), padding=(1,)),
    "volumes": forward("half", (4, 5, 6), (2, 2, 3), padding=(0, 0, 1)),
    "data": data("half", 1),
    "data in phases": data("half", 2),
    "data of floats in phases": data("float", 2),
    "weights": weights("half"),
    "weights of floats": weights("float"),
}


@pytest.mark.parametrize(("name", "target"), spread([*WINDOWS], TARGETS))
def test_windows_of_copies(name: str, target: str) -> None:
    made = WINDOWS[name]
    program = load(made.text, target)
    fused = program.lower("fuse")
    stored = [m for m in fused.modules if any(node.op == "stored" for node in m.nodes)]
    contracted = [m for m in fused.modules if any(node.op == "contraction" for node in m.nodes)]
    assert stored, fused
    assert len(contracted) == 1
    assert all(p.op == "param" for p in contracted[0].parameters)
    check(program, made)


@pytest.mark.parametrize(("m", "k", "n"), [(64, 128, 128), (33, 80, 48), (17, 77, 35)])
def test_bytes_along_the_depth(m: int, k: int, n: int) -> None:
    made = of_bytes(m, k, n)
    program = load(made.text, "sm_90")
    assert len(program.lower("fuse").modules) == 2
    check(program, made)


def test_channels_that_are_no_whole_accesses_are_not_copied() -> None:
    made = load(
        "x = @param:x -> half{2, 12, 9, 8}\nw = @param:w -> half{9, 12, 3, 3}\nz = convolution(x, w)\n@return(z)\n",
        "sm_90",
    )
    assert len(made.lower("fuse").modules) == 1
