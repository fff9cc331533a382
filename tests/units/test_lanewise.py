"""Loads, stores and reductions of lanes: counterparts of the seed's lanewise tests."""

from __future__ import annotations

import pytest
from stages import assert_right, at, found, listing, only

ADD = "x = @param:x -> {256}\ny = @param:y -> {256}\nadd(x, y) -> {256}\n@return(add)"
ONE_LANE = {"vector": 1, "share": 1}


def test_loads_and_store() -> None:
    """Operands are loaded at the lane's index, the result is stored there; tensors become scalars."""
    assert listing(at("lanewise", ADD, schedule=ONE_LANE)) == (
        "x = @param:x -> float{256}\n"
        "y = @param:y -> float{256}\n"
        "z_output = @param:z_output -> float{256}\n"
        "global_id = global_id\n"
        "load = load(x, global_id) -> float\n"
        "load.1 = load(y, global_id) -> float\n"
        "add = add(load, load.1) -> float\n"
        "store = store(z_output, global_id, add)\n"
        "@return(store)\n"
    )
    assert_right(ADD, schedule=ONE_LANE)


def test_copy_becomes_a_store() -> None:
    text = "x = @param:x -> {256}\n@return(x)"
    lowered = at("lanewise", text, schedule=ONE_LANE)
    assert not found(lowered, "copy")
    store = only(lowered, "store")
    assert store.operands[2] is only(lowered, "load")
    assert_right(text)


def reduction(*lens: int, axis: int) -> list[str]:
    """The operators between the input and the store of a sum, under the classic policy."""
    text = f"x = @param:x -> {{{', '.join(map(str, lens))}}}\nr = reduce_sum[axes={{{axis}}}](x)\n@return(r)"
    assert_right(text, policy="classic")
    value, chain = only(at("lanewise", text, policy="classic"), "store").operands[2], []
    while value.type.sort != "tensor":
        chain.append(value.op)
        value = value.operands[0]
    return chain[::-1]


def test_lane_reduction() -> None:
    """Each lane folds a row of its own."""
    assert reduction(64, 300, axis=0) == ["load", "lane_reduce"]


def test_wave_reduction() -> None:
    """Each lane has an element, the wave folds them."""
    assert reduction(8, 64, axis=1) == ["load", "dpp_reduce"]


@pytest.mark.parametrize(("n", "before"), [(256, ["load"]), (1024, ["load", "lane_reduce"])])
def test_block_reduction(n: int, before: list[str]) -> None:
    """Lanes with several elements fold them; the waves' results meet in workgroup memory."""
    assert reduction(3, n, axis=1) == [*before, "dpp_reduce", "reduce_waves"]
