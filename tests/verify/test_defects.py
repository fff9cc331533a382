"""What an earlier implementation of the design got wrong, one test each; and what varying the order of waves finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from breadth import spread
from programs import reduce_program, softmax_program
from support import (
    WAVE32,
    WAVE64,
    check_host,
    check_last_stage,
    differences,
    inputs_and_reference,
    load,
    lowered_kernel,
    run_kernel,
    schedules,
)

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.host_program import HostProgram

ORDERS = range(8)


def row_kernel(text: str, algo: str, target: str = WAVE64) -> KernelSource:
    """The kernel of a program under the cheapest schedule of an algorithm."""
    return load(text, target, schedule={"algo": algo}).kernels()[0]


# ---- the nine defects


@pytest.mark.parametrize("algo", ["lane", "subwave", "wave", "block"])
def test_a_mean_divides(algo: str) -> None:
    text = reduce_program("mean", "float", (6, 200), (1,))
    found = next(s for s in schedules(text) if s["algo"] == algo)
    kernel = load(text, schedule=found).kernels()[0]
    got = run_kernel(kernel, {"x": np.full((6, 200), 3, np.float32)})
    assert got["z_output"].tolist() == [[3.0]] * 6


def test_a_packed_input_can_choose_lane() -> None:
    assert any(s["algo"] == "lane" for s in schedules(reduce_program("sum", "float", (1 << 20, 3), (1,))))
    columns = load(reduce_program("sum", "float", (64, 1 << 20), (0,)), policy="classic").lower("schedule")
    assert columns.modules[0].schedule["algo"] == "lane"


@pytest.mark.parametrize("algo", ["subwave", "wave", "block"])
def test_one_lane_stores_a_reduced_output(algo: str) -> None:
    """Each store counts instead of storing."""
    kernel = row_kernel(reduce_program("sum", "float", (6, 200), (1,)), algo)
    counting = kernel.host_text.replace("] = r;", "] += 1.0f;")
    assert counting != kernel.host_text
    program = HostProgram.compile(replace(kernel, host_text=counting))
    stores = np.zeros(6, np.float32)
    program.launch([np.zeros(1200, np.float32), stores], threads=1)
    assert stores.tolist() == [1.0] * 6


@pytest.mark.parametrize(("n", "target"), spread([1, 63, 65, 257, 1000, 1025], [WAVE64, WAVE32, "host"]))
def test_tails_read_nothing_past_the_end(n: int, target: str) -> None:
    """The interpreter refuses reads outside of a tensor; on the host NaN stands behind it."""
    text = softmax_program("float", (3, n), 1)
    check_last_stage(text, target)
    inputs, want = inputs_and_reference(text)
    x, z = (np.full(3 * n + 5000, np.nan, np.float32) for _ in "xz")
    x[: 3 * n] = inputs["x"].reshape(-1)
    program = load(text, target)
    for kernel in program.kernels():
        HostProgram.compile(kernel).launch([x[: 3 * n], z[: 3 * n]])
    assert not differences(program, {"y": z[: 3 * n].reshape(3, n)}, want)
    assert np.isnan(z[3 * n :]).all()


@pytest.mark.parametrize("target", [WAVE64, WAVE32])
def test_blocks_of_several_outputs_have_rows_of_their_own(target: str) -> None:
    text = reduce_program("sum", "float", (7, 1000), (1,))
    lowered = check_last_stage(text, target, schedule={"algo": "block"})
    assert lowered.modules[0].schedule["grid"] == 7
    check_host(text, target, schedule={"algo": "block"})


def test_a_tile_is_covered_whole() -> None:
    """Outputs begin poisoned: whatever no lane writes shows."""
    text = "x = @param:x -> float{64, 128}\nt = transpose[permutation={1, 0}](x)\nr = relu(t)\n@return(r)"
    found = [s for s in schedules(text) if s["algo"] == "tile" and s["block_size"] == 256]
    assert found[0]["share"] > 1
    check_host(text, WAVE64, schedule=found[0])


@pytest.mark.parametrize(("target", "wave"), [(WAVE64, 64), (WAVE32, 32), ("sm_90", 32)])
def test_a_wave_has_the_lanes_of_its_target(target: str, wave: int) -> None:
    text = reduce_program("sum", "float", (9, wave), (1,))
    kernel = row_kernel(text, "wave", target)
    assert kernel.wave_size == wave
    assert f"gen::dpp_reduce<sum_float, {wave}>" in kernel.text
    check_host(text, target, schedule={"algo": "wave"})


FENCED = """
    @module main [stage=final, target=gfx942, schedule={algo=block, block_size=256, grid=3}, space={3, 256}, axes={1}]
    x = @param:x -> float{3, 256}
    z_output = @param:z_output -> float{3, 256}
    group = workgroup_id
    lane = local_id
    base = imul(group, 256)
    i = iadd(base, lane)
    v = read(x, i)
    lds = lds_allocate[shape={float, {4}}]
    w = dpp_reduce[op=max](v)
    m = reduce_waves[op=max, fence=false](w, lds)
    d = sub(v, m)
    e = exp(d)
    u = dpp_reduce[op=sum](e)
    s = reduce_waves[op=sum](u, lds)
    y = div(e, s)
    write = write(z_output, i, y)
    @return(write)"""


def test_memory_that_is_used_again_is_fenced() -> None:
    assert_right(FENCED, softmax_program("float", (3, 256), 1))


def test_negative_indices_of_a_gather_wrap() -> None:
    text = """
        x = @param:x -> float{6, 5}
        i = @param:i -> int64{4}
        g = gather[axis=0](x, i)
        @return(g)"""
    x, i = np.arange(30, dtype=np.float32).reshape(6, 5), np.array([-1, 0, -6, 5])
    for target in (WAVE64, "host"):
        got = load(text, target).run({"x": x, "i": i})["g"]
        assert np.array_equal(got, x[i])


# ---- barriers


def outcomes(lowered: str, text: str) -> list[bool]:
    """Whether a program at the last stage gives what another one means, for some orders of waves."""
    inputs, want = inputs_and_reference(text)
    program, kernel = lowered_kernel(lowered)
    names = dict(zip([a.parameter for a in kernel.arguments if a.written], want, strict=True))

    def right(order: int) -> bool:
        got = run_kernel(kernel, inputs, order)
        results: Mapping[str, Any] = {names[parameter]: values for parameter, values in got.items()}
        return not differences(load(text), results, want)

    assert program.options.target == WAVE64
    return [right(order) for order in ORDERS]


def assert_right(lowered: str, text: str) -> None:
    assert all(outcomes(lowered, text))


def assert_caught(lowered: str, text: str) -> None:
    """Some order gives something wrong."""
    assert not all(outcomes(lowered, text)[1:])


def edited(text: str, *replacements: tuple[str, str]) -> str:
    for old, new in replacements:
        assert text.count(old) == 1, f"{old} occurs {text.count(old)} times in\n{text}"
        text = text.replace(old, new)
    return text


SOFTMAX = softmax_program("float", (3, 1000), 1)
TRANSPOSE = "x = @param:x -> float{64, 64}\nt = transpose[permutation={1, 0}](x)\nr = add(t, 1.0)\n@return(r)"


def softmax_of_blocks() -> str:
    return str(load(SOFTMAX, schedule={"algo": "block", "block_size": 256}).lower("final"))


def test_two_folds_have_memory_of_their_own() -> None:
    lowered = softmax_of_blocks()
    assert "lds_allocate[shape=" in lowered
    assert "lds_allocate[slot=1, shape=" in lowered
    assert_right(lowered, SOFTMAX)


def test_merged_memory_is_caught() -> None:
    assert_caught(
        edited(softmax_of_blocks(), ("(dpp_reduce.1, lds_allocate.1)", "(dpp_reduce.1, lds_allocate)")),
        SOFTMAX,
    )


def test_merged_memory_with_a_fence_is_right() -> None:
    merged = edited(
        softmax_of_blocks(),
        ("(dpp_reduce.1, lds_allocate.1)", "(dpp_reduce.1, lds_allocate)"),
        ("[op=sum, fence=false]", "[op=sum]"),
    )
    assert_right(merged, SOFTMAX)


def test_a_removed_fence_is_caught() -> None:
    assert_caught(
        edited(FENCED, ("reduce_waves[op=sum]", "reduce_waves[op=sum, fence=false]")),
        softmax_program("float", (3, 256), 1),
    )


def test_a_removed_barrier_is_caught() -> None:
    """The barrier of the printed kernel, between writing a tile and reading it: on the host the end of a loop over waves
    and the begin of another."""
    program = load(TRANSPOSE, schedule={"algo": "tile"})
    inputs, want = inputs_and_reference(TRANSPOSE)
    (kernel,) = program.kernels()
    assert kernel.text.count("gen::barrier();") == 1
    unordered = replace(
        kernel, host_text=kernel.host_text.replace("    }\n    // gen::barrier();\n    GEN_WAVES {\n", "")
    )
    assert unordered != kernel

    def right(printed: KernelSource, order: int) -> bool:
        return not differences(program, {"r": run_kernel(printed, inputs, order)["z_output"]}, want)

    assert all(right(kernel, order) for order in ORDERS)
    assert not all(right(unordered, order) for order in ORDERS)


def test_a_tile_waits_for_its_memory() -> None:
    lowered = str(load(TRANSPOSE, schedule={"algo": "tile"}).lower("final"))
    assert_right(lowered, TRANSPOSE)
    unordered = edited(
        lowered,
        ("lds_read(lds_ready,", "lds_read(lds_allocate,"),
        ("@return(vector_write)", "@return(lds_write, vector_write)"),
    )
    assert_caught(unordered, TRANSPOSE)
