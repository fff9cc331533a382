"""What lanes bring of a product's operands: boxes whichever way these lie, and where no access brings neighbours, few at once."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest
from support import check_host, listed, load
from tiled_cases import tiled_schedules
from together import made

from genrw.program import Program

pytestmark = pytest.mark.few(1)

ORDERS = [order for order in permutations(range(3)) if order[-1] != 0]
"""The orders in which the axes of a batch of matrices may lie, batches not last."""
ODD = {"along the depth": ((0, 1), (1, 0)), "across it": ((1, 0), (0, 1)), "both ways": ((0, 1), (0, 1))}
"""Orders of the axes of two matrices."""


def multiplied(lens: tuple[tuple[int, ...], ...], orders: tuple[tuple[int, ...], ...], dtype: str) -> str:
    """A product of matrices, or of batches of them, whose axes lie in some orders."""
    lines = []
    for name, lengths, order in zip("xy", lens, orders, strict=True):
        lines.append(f"p{name} = @param:p{name} -> {dtype}{listed([lengths[d] for d in order])}")
        back = [order.index(d) for d in range(len(order))]
        lines.append(f"{name} = transpose[permutation={listed(back)}](p{name})")
    return "\n".join([*lines, "z = dot(x, y)", "@return(z)", ""])


def rated(program: Program) -> list[tuple[float, dict[str, Any]]]:
    """The schedules of a program of one kernel with their predicted times, the cheapest first."""
    (found,) = program.lower("schedule").trace.schedules.values()
    return [(time, dict(schedule)) for time, schedule, _ in found]


@pytest.mark.parametrize("orders", [*product(ORDERS, ORDERS)], ids=str)
def test_boxes_are_copied_whichever_way_operands_lie(orders: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    text = multiplied(((2, 512, 1024), (2, 1024, 768)), orders, "half")
    (kernel,) = made(text, "sm_90").kernels
    assert kernel.text.count("gen::copy_boxes<") == 2, kernel.text


@pytest.mark.parametrize("way", ODD)
@pytest.mark.parametrize("dtype", ["half", "float"])
def test_lanes_side_by_side_bring_what_lies_so(way: str, dtype: str) -> None:
    """No access brings neighbours of rows of odd lengths: a lane has fewer than an access of them, so that others have the next."""
    text = multiplied(((67, 101), (101, 131)), ODD[way], dtype)
    tiled = tiled_schedules(load(text, "sm_90"))
    assert all(max(s["brings"]) < s["vector"] for s in tiled)
    for schedule in tiled[:: len(tiled) // 2]:
        check_host(text, "sm_90", schedule=schedule)


def test_lanes_of_a_row_that_lies_apart_take_their_time() -> None:
    """Folds of products ask for a line for each element where rows lie apart."""
    along, apart = (
        min(
            time
            for time, s in rated(load(multiplied(((1024, 200), (200, 1000)), orders, "float"), "sm_90"))
            if s["algo"] == "wave"
        )
        for orders in (((0, 1), (1, 0)), ((1, 0), (0, 1)))
    )
    assert apart > 3 * along


@pytest.mark.parametrize("orders", [*product([(0, 1), (1, 0)], repeat=2)], ids=str)
@pytest.mark.parametrize("depth", [12008, 12003])
def test_depths_that_are_filled_up_are_brought_as_they_lie(
    orders: tuple[tuple[int, ...], tuple[int, ...]], depth: int
) -> None:
    """The last part of a split depth is shorter than the others. Operands lie then as they do without parts, and where all rows begin
    with whole accesses, these are copied."""
    text = multiplied(((128, depth), (depth, 96)), orders, "half")
    split = load(text, "sm_90")
    schedules = [dict(s) for found in split.lower("schedule").trace.schedules.values() for _, s, _ in found]
    tiled = [s for s in schedules if s["algo"] == "matrix"]
    assert {tuple(sorted(s["across"])) for s in tiled} == {tuple(sorted((orders[0][0], 1 - orders[1][0])))}
    assert depth % 8 or not any(s.get("brings") for s in tiled)
    assert len(made(text, "sm_90").kernels) == 2
    check_host(text, "sm_90")


def test_bytes_that_lie_across_the_depth_are_copied_once() -> None:
    """Each of two matrices is turned by a kernel, and a third one multiplies."""
    text = multiplied(((1536, 2048), (2048, 1024)), ((1, 0), (0, 1)), "int8").replace("dot(", "quant_dot(")
    kernels = made(text, "sm_90").kernels
    assert ["wgmma" in k.text for k in kernels] == [False, False, True]
