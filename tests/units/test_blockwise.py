"""Workgroup memory and tiles: counterparts of the seed's blockwise tests."""

from __future__ import annotations

from stages import assert_right, at, found, only
from support import WAVE32


def test_block_reduction_gets_memory() -> None:
    """One element for each wave of the block, of the accumulator's type; nothing for a wave's reduction."""
    text = "x = @param:x -> half{6, 300}\nr = reduce_sum[axes={1}](x)\n@return(r)"
    for target, waves in (("gfx942", 4), (WAVE32, 8)):
        lowered = at("blockwise", text, target=target, schedule={"algo": "block", "block_size": 256})
        memory = only(lowered, "lds_allocate")
        assert memory.attribute("shape") == ("float", (waves,))
        assert only(lowered, "gridwise_reduce").operands[1] is memory
        assert_right(text, target=target, schedule={"algo": "block", "block_size": 256})
    assert not found(at("blockwise", text, schedule={"algo": "wave"}), "lds_allocate")


def test_tiled_operand() -> None:
    """Each transposed operand becomes a region in memory of its own, with rows one element longer; others stay."""
    text = """
        x = @param:x -> float{64, 128}
        y = @param:y -> float{128, 64}
        w = @param:w -> half{64, 128}
        t = transpose[permutation={1, 0}](x)
        u = transpose[permutation={1, 0}](w)
        v = convert[target_type=float](u)
        s = add(t, y)
        r = mul(s, v)
        @return(r)"""
    lowered = at("blockwise", text, schedule={"algo": "tile"})
    regions = found(lowered, "tile_region")
    assert [r.operands[0].attribute("name") for r in regions] == ["x", "w"]
    assert [r.operands[1].attribute("shape") for r in regions] == [("float", (64 * 65,)), ("half", (64 * 65,))]
    assert len({r.operands[1].attribute("slot") for r in regions}) == 2
    assert not found(lowered, "transpose")
    assert_right(text, schedule={"algo": "tile"})
