"""Tiles that are boxes of tensors: what an engine of the GPU copies, waves that have it copy while others multiply, workgroups
that make one tile after the other."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from alternatives_taken import take_only
from breadth import spread
from support import load, lower_each
from tiled_cases import Product, tiled_schedules
from together import Made, compile_together

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.kernel_ir.text import ir_text
from genrw.codegen.runtime.devices import HostDevice
from genrw.codegen.runtime.gpu_runtime import Parameters
from genrw.codegen.runtime.launch import Built, launch_table
from genrw.program import Program

pytestmark = pytest.mark.few(1)

ORDERS = (0, 1, 7)
"""Of groups and waves: in turn, and shuffled, where copies arrive as late as they may."""
BY_WGMMA = {"half": "f16", "bf16": "bf16"}
PRODUCTS = [
    *(Product(130, 264, 136), Product(65, 72, 200), Product(64, 64, 128), Product(8, 40, 16)),
    *(Product(130, 264, 136, turned=(False, True)), Product(65, 72, 200, turned=(False, True), after=True)),
    *(Product(136, 72, 72, turned=(True, False)), Product(136, 264, 136, (3,), after=True)),
    *(Product(70, 72, 136, (2, 2), turned=(False, True)), Product(200, 104, 200, (2,), turned=(True, False))),
]


def by_boxes(made: Product, dtype: str, n: int = 128, **entries: Any) -> tuple[Program, KernelSource, Any]:
    """A product's program with a schedule of tiles in workgroup memory, its kernel, and the case."""
    case = made.case(np.random.default_rng(5), dtype)
    wanted = {"algo": "matrix", "instruction": f"wgmma_m64n{n}k16_{BY_WGMMA[dtype]}", **entries}
    program = load(case.text, "sm_90", schedule=wanted)
    (kernel,) = program.kernels()
    return program, kernel, case


@pytest.mark.parametrize(("made", "dtype"), spread(PRODUCTS, [*BY_WGMMA]), ids=str)
def test_tiles_are_boxes(made: Product, dtype: str) -> None:
    program, kernel, case = by_boxes(made, dtype)
    assert kernel.text.count("GEN_TENSOR_MAP(") == 2
    assert "copy_async" not in kernel.text
    run = HostDevice().load(program, [kernel])
    for order in ORDERS:
        case.check(run(case.inputs, threads=1, order=order)["z"])


@pytest.mark.parametrize("made", PRODUCTS[1::4], ids=str)
def test_every_stage_computes_the_same(made: Product) -> None:
    program, _, case = by_boxes(made, "half")
    for _stage, lowered in program.remaining_stages():
        case.check(lowered.run(case.inputs, "interpret")["z"])


@pytest.mark.parametrize(
    ("tile", "n"), [((192, 192, 64), 192), ((192, 128, 64), 128), ((128, 192, 64), 192), ((128, 256, 64), 256)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_lanes_need_not_share_a_box(tile: tuple[int, ...], n: int, turned: bool) -> None:
    program, kernel, case = by_boxes(Product(200, 72, 264, turned=(False, turned)), "half", n, tile=tile)
    case.check(HostDevice().load(program, [kernel])(case.inputs, threads=1, order=3)["z"])


@pytest.mark.parametrize(
    "made",
    [
        Product(130, 264, 130),  # rows of the second matrix are no multiple of 16 bytes
        Product(130, 260, 136, turned=(False, True)),
        Product(130, 264, 136, before=True),  # what is multiplied is not what lies in memory
    ],
    ids=str,
)
def test_other_views_are_brought_by_lanes(monkeypatch: pytest.MonkeyPatch, made: Product) -> None:
    take_only(monkeypatch)  # what is multiplied might be stored by a kernel of its own
    program, kernel, case = by_boxes(made, "half")
    assert "GEN_TENSOR_MAP(" not in kernel.text
    run = HostDevice().load(program, [kernel])
    for order in ORDERS:
        case.check(run(case.inputs, threads=1, order=order)["z"])


@pytest.mark.parametrize("views", ["boxes", "brought"])
@pytest.mark.parametrize("depth", [32, 40, 64])
def test_a_depth_of_one_step(depth: int, views: str) -> None:
    """Nothing is copied ahead of time: all tiles are waited for, and each schedule that is offered has a kernel."""
    made = Product(200, depth, 200, before=views == "brought")
    case = made.case(np.random.default_rng(5), "half")
    offered = [s for s in tiled_schedules(load(case.text, "sm_90")) if str(s["instruction"]).startswith("wgmma")]
    alike = {(s["instruction"], s.get("stages"), s.get("staged")): s for s in offered}
    assert len(alike) >= 3
    lowered = lower_each(case.text, offered, "sm_90")
    each = [Made(lowered.with_modules((module,))) for module in lowered.modules]
    assert all(len(one.kernels) == 1 for one in each)
    tried = [one for one, schedule in zip(each, offered, strict=True) if schedule in alike.values()]
    compile_together(tried)
    for one in tried:
        for order in ORDERS:
            case.check(one.on_the_host(case.inputs, threads=1, order=order)["z"])


@pytest.mark.parametrize(
    ("product", "staged"),
    [
        ("z = dot(x, w)", 2),
        ("a = convert[target_type=float](x)\nb = convert[target_type=float](w)\nz = dot(a, b)", None),
    ],
    ids=["half", "float"],
)
def test_sums_are_exchanged_where_lanes_hold_less_than_sectors_of_the_result(product: str, staged: int | None) -> None:
    """Of floats, the pairs of four lanes side by side are 32 bytes, and are stored as they are held."""
    text = f"x = @param:x -> half{{256, 512}}\nw = @param:w -> half{{512, 128}}\n{product}\n@return(z)\n"
    offered = [s for s in tiled_schedules(load(text, "sm_90")) if str(s["instruction"]).startswith("wgmma")]
    assert {s.get("staged") for s in offered} == {staged}


TURNS = Product(8, 32, 16, (300,), after=True)
"""More tiles than all units of a GPU have room for."""


@pytest.mark.slow
def test_workgroups_take_turns() -> None:
    program, kernel, case = by_boxes(TURNS, "half", tile=(64, 128, 64))
    assert kernel.groups == 300
    assert kernel.launched_groups < 300
    assert kernel.launched == kernel.block + 32
    assert kernel.text.count(f"group < 300; group += {kernel.launched_groups}") == 2
    assert "group <" not in kernel.host_text
    run = HostDevice().load(program, [kernel])
    for order in ORDERS:
        case.check(run(case.inputs, threads=1, order=order)["z"])
    for _stage, lowered in program.remaining_stages():
        case.check(lowered.run(case.inputs, "interpret")["z"])


def test_the_copying_wave_waits_for_readers_and_no_other_does() -> None:
    _, kernel, _ = by_boxes(TURNS, "half", tile=(64, 128, 64))
    copying, multiplying = kernel.text.split("return;")
    assert "if (gen::is_elected()) {" in copying
    assert "await_readers" in copying
    assert "copy_boxes" in copying
    assert "receive_boxes" in multiplying
    assert "group_product_freeing" in multiplying
    assert "copy_boxes" not in multiplying
    assert "barrier" not in multiplying


@pytest.mark.parametrize("made", [Product(8, 256, 16), TURNS], ids=str)
def test_a_kernel_that_does_not_wait_is_wrong(made: Product) -> None:
    program, kernel, case = by_boxes(made, "half")
    text = re.sub(r"gen::(receive|await)_boxes<\d>\(.*?\);", "", kernel.host_text)
    assert text != kernel.host_text
    run = HostDevice().load(program, [replace(kernel, host_text=text)])
    with pytest.raises(AssertionError):
        case.check(run(case.inputs, threads=1, order=1)["z"])


def test_bands_have_each_tile_once() -> None:
    """23 rows of tiles are two bands, of which the second has fewer."""
    program, kernel, case = by_boxes(Product(23 * 64, 32, 13 * 128), "half", tile=(64, 128, 64))
    assert "gen::min(" in kernel.text
    case.check(HostDevice().load(program, [kernel])(case.inputs, threads=1, order=2)["z"])


def test_a_kernel_as_text_says_who_does_what() -> None:
    program, _, _ = by_boxes(TURNS, "half", tile=(64, 128, 64))
    text = ir_text(program)
    assert "has described x_map: half{300, 8, 32}" in text
    assert "1 more waves" in text
    assert re.search(r"the other 128 lanes\n +for group in 300, \d+ of them at a time", text)


# ---- the launch


def test_launches_describe_tensors() -> None:
    program, kernel, _ = by_boxes(Product(130, 264, 136, (3,)), "half")
    (launch,) = launch_table(program, [Built(kernel, {})])["kernels"]
    first, second = (a for a in launch["arguments"] if a["kind"] == "input" and "described" in a)
    assert first["described"] == {
        "shape": [3, 130, 264],
        "strides": [130 * 264, 264, 1],
        "begin": 0,
        "box": [1, 64, 64],
        "swizzle": 128,
    }
    assert second["described"]["shape"] == [3, 264, 136]
    assert launch["block"] == [kernel.block + 32, 1, 1]


def test_what_is_described_takes_the_place_of_its_address() -> None:
    described = (ctypes.c_int64 * 2)(17, 18)
    asked: list[int] = []

    def describe(pointer: int) -> tuple[object, int]:
        asked.append(pointer)
        return described, ctypes.addressof(described)

    seen: Mapping[int, int] = {}

    def start(places: int) -> None:
        nonlocal seen
        at = (ctypes.c_void_p * 2).from_address(places)
        seen = {i: ctypes.c_int64.from_address(at[i] or 0).value for i in range(2)}

    parameters = Parameters(2, {1: describe})
    for first in (256, 512):
        parameters.started([first, 1024], start)
        assert seen == {0: first, 1: 17}
    assert asked == [1024, 1024]
