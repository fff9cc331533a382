"""Contractions by tiles and matrix instructions: at every stage, and as kernels on the CPU, by schedules drawn from all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
import references
from breadth import spread
from cases import Case, whole
from support import check_host, check_host_schedules, load, lower_each, schedules, shipped
from tiled_cases import tiled_convolution, tiled_patches, tiled_product, tiled_schedules
from together import lower_together, made

from genrw.codegen.runtime.devices import HostDevice
from genrw.engine.interpret.matrices import operand_places

pytestmark = pytest.mark.few(1)

WAYS = (
    *(("sm_90", "half"), ("sm_90", "bf16"), ("sm_90", "float")),
    *(("gfx942", "half"), ("gfx90a", "bf16"), ("gfx942", "float")),
    *(("gfx1100", "half"), ("gfx1100", "bf16"), ("gfx1201", "half"), ("gfx1201", "bf16")),
    *(("gfx950", "half"), ("gfx950", "bf16")),
    *(("sm_90", "int8"), ("sm_90", "uint8"), ("sm_90", "double"), ("gfx942", "double")),
    *(("gfx90a", "int8"), ("gfx942", "int8"), ("gfx950", "int8")),
    *(("gfx1100", "int8"), ("gfx1100", "uint8"), ("gfx1201", "int8"), ("gfx1201", "uint8")),
    *(("host", dtype) for dtype in ("float", "double", "int32", "half", "bf16", "int8", "uint8")),
)
"""Targets with the element types for which they have instructions."""
NAMED = {f"{target}-{dtype}": (target, dtype) for target, dtype in WAYS}
AT_STAGES, AS_KERNELS = 4, 1
"""Cases of a target, a type and a kind."""
KINDS = {"product": tiled_product, "convolution": tiled_convolution, "patches": tiled_patches}


@pytest.mark.parametrize(("way", "kind"), spread([*NAMED], [*KINDS]))
def test_every_stage_computes_the_same(way: str, kind: str) -> None:
    target, dtype = NAMED[way]
    found = scheduled_cases(KINDS[kind], target, dtype, range(AT_STAGES))
    scheduled = []
    for i, (case, schedule) in enumerate(found):
        for _, before in made(case.text, target).until("schedule"):
            case.check(before.run(case.inputs, "interpret")["z"])
        (module,) = before.modules
        scheduled.append((before, replace(module, name=f"k{i}", schedule=schedule)))
    # from here on each kernel is lowered by itself, so that all may be lowered in one call
    together = load(found[0][0].text, target).with_modules(tuple(module for _, module in scheduled))
    for stage, lowered in together.remaining_stages():
        assert len(lowered.modules) == AT_STAGES, stage
        for (case, _), (program, _), module in zip(found, scheduled, lowered.modules, strict=True):
            case.check(program.with_modules((module,)).run(case.inputs, "interpret")["z"])


@pytest.mark.parametrize(("way", "kind"), spread([*NAMED], [*reversed(KINDS)]))
def test_kernels_compute_the_same_on_the_cpu(way: str, kind: str) -> None:
    target, dtype = NAMED[way]
    for case, schedule in scheduled_cases(KINDS[kind], target, dtype, range(100, 100 + AS_KERNELS)):
        program = lower_each(case.text, [schedule], target)
        run = HostDevice().load(program, program.kernels())
        for order in (0, 1):
            case.check(run(case.inputs, threads=1, order=order)["z"])


TYPES = ("half", "bf16", "float", "double", "int8", "uint8", "int32")
ADDED_UP_IN = {"half": "float", "bf16": "float"}
"""Types whose sums are made in a wider one, and rounded at the end."""
SUM = """\
x = @param:x -> {dtype}{{64, 48, 1}}
y = @param:y -> {dtype}{{1, 48, 64}}
u = convert[target_type={sums}](x)
v = convert[target_type={sums}](y)
a = multibroadcast[out_lens={{64, 48, 64}}](u)
b = multibroadcast[out_lens={{64, 48, 64}}](v)
m = mul(a, b)
z = reduce_sum[axes={{1}}](m)
@return(z)
"""


@pytest.mark.parametrize(("target", "sums"), spread(["sm_90", "gfx942", "gfx1100", "host"], TYPES))
def test_tiles_add_up_in_the_type_that_is_asked_for(target: str, sums: str) -> None:
    """Whatever elements and sums are of, what tiles make of them can be lowered."""
    for dtype in TYPES:
        program = load(SUM.format(dtype=dtype, sums=sums), target)
        rated = next(iter(program.lower("schedule").trace.schedules.values()), [])
        tiled = [schedule for _, schedule, _ in rated if schedule["algo"] == "matrix"]
        added = {shipped().instructions[schedule["instruction"]].values["sum"] for schedule in tiled}
        assert added <= {ADDED_UP_IN.get(sums, sums)}, dtype
        for schedule in tiled[:1]:
            load(SUM.format(dtype=dtype, sums=sums), target, schedule=schedule).lower("final")


def scheduled_cases(
    make: Callable[[Random, np.random.Generator, str], Case], target: str, dtype: str, seeds: Sequence[int]
) -> list[tuple[Case, Mapping[str, Any]]]:
    """For each seed a case that tiles can compute, and one of its schedules of tiles. They are lowered together."""
    draws = {seed: (Random(f"{target}/{dtype}/{seed}"), np.random.default_rng(seed)) for seed in seeds}
    found: dict[int, tuple[Case, Mapping[str, Any]]] = {}
    while open_ := [seed for seed in seeds if seed not in found]:
        cases = [make(*draws[seed], dtype) for seed in open_]
        lowered = lower_together([case.text for case in cases], target, last="schedule")
        for seed, case, one in zip(open_, cases, lowered, strict=True):
            _, scheduled = one.until("schedule")[-1]
            if tiled := tiled_schedules(scheduled):
                found[seed] = case, draws[seed][0].choice(sorted(tiled, key=str))
    return [found[seed] for seed in seeds]


@pytest.mark.parametrize("instruction", ["wgmma_m64n128k16_f16", "mma_m16n8k16_f16"])
def test_loops_work_ahead(instruction: str) -> None:
    text = "x = @param:x -> half{130, 264}\nw = @param:w -> half{264, 136}\nz = dot(x, w)\n@return(z)"
    tile, waves = ((64, 128, 64), (1, 1)) if instruction.startswith("wgmma") else ((64, 64, 64), (2, 2))
    wanted = {"algo": "matrix", "instruction": instruction, "tile": tile, "waves": waves}
    program = load(text, "sm_90", schedule=wanted)
    (kernel,) = program.kernels()
    if instruction.startswith("wgmma"):  # both matrices, in a loop of a wave's own
        assert kernel.text.count("gen::copy_boxes<") == 2
    else:  # the first one, before the loop and in it; the second one is turned around on its way
        assert kernel.text.count("gen::copy_async<") == 2
    rng = np.random.default_rng(4)
    x, w = (rng.integers(-3, 4, lens).astype(np.float16) for lens in ((130, 264), (264, 136)))
    got = HostDevice().load(program, [kernel])({"x": x, "w": w}, threads=1, order=1)["z"]
    np.testing.assert_array_equal(got.astype(float), x.astype(float) @ w.astype(float))


def test_few_rows_are_folded() -> None:
    text = "x = @param:x -> half{1, 512}\nw = @param:w -> half{512, 64}\nz = dot(x, w)\n@return(z)"
    lowered = load(text, "sm_90").lower("schedule")
    assert all(s["algo"] != "matrix" for _, s, _ in next(iter(lowered.trace.schedules.values())))


@pytest.mark.parametrize("name", shipped().instructions)
def test_lanes_hold_each_element_of_the_operands(name: str) -> None:
    instruction = shipped().instructions[name]
    rows, columns, depth = instruction.values["shape"]
    for part, length in (("left", rows), ("right", columns)):
        i, j = operand_places(instruction, part, 2, length, 2, depth)
        assert i.shape[0] == instruction.values["lanes"]
        assert {*zip(i.flat, j.flat, strict=True)} == {(r, k) for r in range(2 * length) for k in range(2 * depth)}


@pytest.mark.parametrize("tile", [(64, 32, 64), (64, 32, 32), (128, 32, 64)])
def test_places_of_sums_do_not_depend_on_the_step(tile: tuple[int, int, int]) -> None:
    """In the loop a lane's number is the remainder of a depth, too; behind it there is no step any more."""
    text = (
        "x = @param:x -> half{1, 3, 224, 224}\nw = @param:w -> half{768, 3, 16, 16}\n"
        "z = convolution[stride={16, 16}](x, w)\n@return(z)\n"
    )
    schedule = {"tile": tile, "instruction": "mma_m16n8k16_f16", "block_size": 64, "stages": 4}
    assert load(text, "sm_90", schedule=schedule).kernels()


@pytest.mark.parametrize("heads", [(3, 32), (6, 16), (12, 32)])
@pytest.mark.parametrize("words", [49, 56])
def test_places_of_sums_do_not_depend_on_the_step_of_heads(words: int, heads: tuple[int, int]) -> None:
    """An operand's place in its head is a remainder of the step, as the result's is of the lane alone."""
    wide = heads[0] * heads[1]
    text = (
        f"x = @param:x -> half{{8, {heads[0]}, {words}, {heads[1]}}}\nw = @param:w -> half{{{wide}, {wide}}}\n"
        f"t = transpose[permutation={{0, 2, 1, 3}}](x)\nr = reshape[dims={{8, {words}, {wide}}}](t)\n"
        "z = dot(r, w)\n@return(z)\n"
    )
    tiled = tiled_schedules(load(text, "sm_90"))
    alike = {(s["tile"], s["instruction"]): s for s in tiled if s.get("staged") == 2 or s["steps"] > 1}
    drawn = Random(words).sample([*alike.values()], min(10, len(alike)))
    assert len(lower_each(text, drawn, "sm_90").kernels()) == len(drawn)


def test_operands_that_are_rolled() -> None:
    """Neighbours of a join are as many as all of its parts have."""
    text = (
        "x = @param:x -> half{4, 14, 64}\nw = @param:w -> half{64, 128}\n"
        "a = slice[axes={1}, starts={3}, ends={14}](x)\nb = slice[axes={1}, starts={0}, ends={3}](x)\n"
        "c = concat[axis=1](a, b)\nz = dot(c, w)\n@return(z)\n"
    )
    assert load(text, "sm_90").lower("schedule").modules


@pytest.mark.parametrize("dtype", ["half", "bf16"])
@pytest.mark.parametrize(("m", "n"), [(64, 64), (65, 72), (130, 136), (130, 128), (97, 64), (128, 192)])
def test_what_is_added_to_exchanged_sums(m: int, n: int, dtype: str) -> None:
    """Of a bias and a residual each lane reads the neighbours that it has after the exchange."""
    rng, k = np.random.default_rng(m + n), 72
    values = {"x": (m, k), "w": (k, n), "b": (n,), "r": (m, n)}
    inputs = {name: whole(rng, dtype, lens) for name, lens in values.items()}
    text = "".join(
        f"{name} = @param:{name} -> {dtype}{{{', '.join(map(str, lens))}}}\n" for name, lens in values.items()
    )
    text += "d = dot(x, w)\ns = add(d, b)\nz = add(s, r)\n@return(z)\n"
    right = references.dot(inputs["x"].astype(float), inputs["w"].astype(float)) + inputs["b"] + inputs["r"]
    code = "f16" if dtype == "half" else "bf16"
    program = load(text, "sm_90", schedule={"instruction": f"wgmma_m64n64k16_{code}", "staged": 2})
    for _stage, lowered in program.remaining_stages():
        np.testing.assert_array_equal(lowered.run(inputs, "interpret")["z"].astype(float), right.astype(float))
    (kernel,) = program.kernels()
    assert ("gen::chunks_load<" in kernel.text[-4000:]) == (n % 64 == 0)
    run = HostDevice().load(program, [kernel])
    for order in (0, 1):
        np.testing.assert_array_equal(run(inputs, threads=1, order=order)["z"].astype(float), right.astype(float))


STORED = """\
x = @param:x -> half{{{m}, 64}}
w = @param:w -> half{{64, {n}}}
a = reshape[dims={{{m}, 64, 1}}](x)
b = reshape[dims={{1, 64, {n}}}](w)
c = contraction[axes={{1}}, type=float]({operands})
s = reshape[dims={{{m}, {n}}}](c)
h = convert[target_type=half](s)
z = relu(h)
@return(z)
"""


@pytest.mark.parametrize("operands", ["a, b", "b, a"])
@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100"])
@pytest.mark.parametrize(("m", "n"), [(392, 392), (196, 384), (387, 385), (198, 204), (202, 390)])
def test_sums_through_memory_are_stored_by_all_tiles(m: int, n: int, target: str, operands: str) -> None:
    """Where lanes make up whole rows of a tile or end within them, a chunk's neighbours are neighbours in memory."""
    text = STORED.format(m=m, n=n, operands=operands)
    alike = {(s["tile"], s["block_size"]): s for s in tiled_schedules(load(text, target)) if s.get("staged") == 1}
    along = 1 if operands == "a, b" else 0
    uneven = [s for s in alike.values() if 8 * s["block_size"] % s["tile"][along]]
    draw = Random(f"{m}/{n}/{target}/{operands}")
    drawn = draw.sample(uneven, min(6, len(uneven))) + draw.sample([*alike.values()], 2)
    rng = np.random.default_rng(m)
    inputs = {"x": whole(rng, "half", (m, 64)), "w": whole(rng, "half", (64, n))}
    right = np.maximum(inputs["x"].astype(float) @ inputs["w"].astype(float), 0)
    lowered = lower_each(text, drawn, target)
    for module, schedule in zip(lowered.modules, drawn, strict=True):
        got = lowered.with_modules((module,)).run(inputs, "interpret")["z"]
        np.testing.assert_array_equal(got.astype(float), right, err_msg=str(schedule))
    check_host_schedules(text, drawn[:2], target)


THROUGH_MEMORY = {
    "fma_m32n16_f32": ("sm_90", "float"),
    "fma_m8n4_f32": ("sm_90", "float"),
    "mma_m16n8k16_f16": ("sm_90", "half"),
    "mfma_f32_16x16x4_f32": ("gfx942", "float"),
    "wmma_f32_16x16x16_f16_gfx11": ("gfx1100", "half"),
}
"""Instructions with a target and an element type; lanes hold neighbours of the result's rows, of its columns, or of neither."""


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("instruction", THROUGH_MEMORY)
def test_sums_through_memory_along_rows_and_along_columns(instruction: str, turned: bool) -> None:
    """What lanes write together are neighbours that they hold one after another, wherever the result's neighbours lie."""
    target, dtype = THROUGH_MEMORY[instruction]
    # what is made of a parameter is the second view: then the result's rows are the tile's columns
    made = "r = relu(x)\nd = dot(r, w)" if turned else "d = dot(x, w)"
    text = f"x = @param:x -> {dtype}{{2, 67, 45}}\nw = @param:w -> {dtype}{{2, 45, 71}}\n{made}\n@return(d)"
    staged = [s for s in schedules(text, target) if s.get("instruction") == instruction and s.get("staged") == 1]
    check_host_schedules(text, [staged[0], staged[-1]], target)


WIDEST = {"mma_m16n8k16_f16": {64: 8, 68: 4, 70: 2, 71: 1}, "wgmma_m64n64k16_f16": {68: 4, 70: 2, 71: 1}}
"""How many neighbours are stored together of rows of so many halves."""


@pytest.mark.parametrize(("instruction", "n"), [(by, n) for by, widest in WIDEST.items() for n in widest])
def test_sums_through_memory_are_stored_in_the_widest_parts_of_rows(instruction: str, n: int) -> None:
    text = f"x = @param:x -> half{{70, 76}}\nw = @param:w -> half{{76, {n}}}\nz = dot(x, w)\n@return(z)"
    pinned = {"algo": "matrix", "instruction": instruction, "staged": 1}
    (kernel,) = load(text, "sm_90", schedule=pinned).kernels()
    stores = re.findall(r"gen::(?:strided_store<\d+, \d+, |write_chunk<)(\d+)>\(z_output", kernel.text)
    assert stores == [str(WIDEST[instruction][n])], kernel.text
    check_host(text, "sm_90", schedule=pinned)
