"""Output buffers, and the choice of reduction algorithms: counterparts of the seed's gridwise tests."""

from __future__ import annotations

import pytest
from stages import assert_right, at, found, listing, only
from support import WAVE32, load


def test_output_buffer() -> None:
    """A program has no buffer for its result: one is added, and the result is copied to it."""
    text = "x = @param:x -> {16}\ny = @param:y -> {16}\nadd(x, y) -> {16}\n@return(add)"
    assert listing(at("gridwise", text)) == (
        "x = @param:x -> float{16}\n"
        "y = @param:y -> float{16}\n"
        "z_output = @param:z_output -> float{16}\n"
        "add = add(x, y) -> float{16}\n"
        "copy = copy(add, z_output)\n"
        "@return(copy)\n"
    )


def test_output_buffer_for_each_result() -> None:
    text = "x = @param:x -> half{4, 16}\ns = reduce_sum[axes={1}](x)\nd = sub(x, s)\n@return(d, s)"
    lowered = at("gridwise", text)
    copies = [(str(c.operands[0].name), c.operands[1].attribute("name")) for c in found(lowered, "copy")]
    assert len(copies) == 2
    assert lowered.modules[0].outputs == {"z_output": "d", "z_output1": "s"}
    buffers = {p.attribute("name"): p.type.lens for p in lowered.modules[0].parameters}
    assert buffers == {"x": (4, 16), "z_output": (4, 16), "z_output1": (4, 1)}
    assert_right(text)


SUM = "x = @param:x -> {{{shape}}}\nr = reduce_sum[axes={{{axis}}}](x)\n@return(r)"


def algorithm(shape: str, axis: int, target: str = "gfx942") -> str:
    """What the classic policy chooses."""
    lowered = load(SUM.format(shape=shape, axis=axis), target, policy="classic").lower("gridwise")
    return str(only(lowered, "gridwise_reduce").attribute("algo"))


@pytest.mark.parametrize(("shape", "axis"), [("64, 300", 0), ("5, 1000, 3", 1), ("2, 8, 4", 1)])
def test_strided_reduction_is_a_lanes(shape: str, axis: int) -> None:
    """Neighbours along the row are more than two elements apart."""
    assert algorithm(shape, axis) == "lane"
    assert algorithm("64, 2", 0) == "wave"


@pytest.mark.parametrize(("n", "target"), [(2, "gfx942"), (33, "gfx942"), (64, "gfx942"), (32, WAVE32)])
def test_small_reduction_is_a_waves(n: int, target: str) -> None:
    """Up to one element for each lane of the target's wave."""
    assert algorithm(f"8, {n}", 1, target) == "wave"


@pytest.mark.parametrize(("n", "target"), [(65, "gfx942"), (256, "gfx942"), (5000, "gfx942"), (33, WAVE32)])
def test_large_reduction_is_a_blocks(n: int, target: str) -> None:
    text = SUM.format(shape=f"8, {n}", axis=1)
    reduction = only(load(text, target, policy="classic").lower("gridwise"), "gridwise_reduce")
    assert dict(reduction.attributes) == {
        "op": "sum",
        "algo": "block",
        "axes": (1,),
        "reduce_elements": n,
        "block_size": 256,
        "merge": False,
    }
    assert_right(text, target=target, policy="classic")
