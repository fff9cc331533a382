"""Operands that lie otherwise than the result: what a chunk of a lane's share has in common is computed and read once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stages import assert_right, at, body

from genrw.engine.ir.nodes import Node

CHANNELS = """x = @param:x -> half{8, 8, 24, 16}
bias = @param:bias -> half{8, 1, 1}
y = add(x, bias)
@return(y)"""
GROUPS = """x = @param:x -> float{3, 5120}
scale = @param:scale -> float{20, 1}
m = reduce_mean[axes={1}](x)
d = sub(x, m)
r = reshape[dims={3, 20, 256}](d)
q = mul(r, scale)
y = reshape[dims={3, 5120}](q)
@return(y)"""


def test_a_chunk_within_a_channel_reads_it_once() -> None:
    """One division and one load for all elements of a lane."""
    schedule = {"vector": 8, "share": 8}
    lowered = at("final", CHANNELS, schedule=schedule)
    scalars = [n for n in lowered.modules[0].nodes if n.op == "read"]
    assert [n.type.size for n in scalars] == [0]
    assert_right(CHANNELS, schedule=schedule)


@pytest.mark.parametrize("share", [16, 32])
def test_chunks_of_several_channels_read_each_once(share: int) -> None:
    """No element's place depends on where it stands in its chunk."""
    schedule = {"vector": 8, "share": share}
    lowered = at("final", CHANNELS, schedule=schedule)
    (place,) = [n.operands[1] for n in lowered.modules[0].nodes if n.op == "read"]
    assert {n.op for n in below(place) if n.type.size} <= {"chunk_index", "idiv", "imod"}
    assert_right(CHANNELS, schedule=schedule)


def test_chunks_of_a_row_count_in_groups() -> None:
    """Chunks that stand whole groups apart take one division in all."""
    schedule = {"algo": "block", "block_size": 128, "vector": 4}
    (line,) = [line for line in body(at("final", GROUPS, schedule=schedule)) if "scale[" in line]
    assert "i % 4" not in line
    assert_right(GROUPS, schedule=schedule)


@pytest.mark.parametrize("lens", ["{4, 6, 7, 7}", "{3, 5, 1, 12}", "{2, 3, 9, 10}"])
@pytest.mark.parametrize("vector", [2, 4])
def test_chunks_that_reach_into_the_next_channel(lens: str, vector: int) -> None:
    """Extents that no chunk, or only a narrow one, divides."""
    text = CHANNELS.replace("{8, 8, 24, 16}", lens).replace("half{8, 1", f"half{{{lens.split(', ')[1]}, 1")
    assert_right(text, schedule={"vector": vector})


@pytest.mark.parametrize("lens", ["{4, 8, 7, 7}", "{16, 8, 5, 49}", "{4, 8, 4, 3}"])
def test_a_chunk_reaches_into_one_more_channel_at_most(lens: str) -> None:
    """Both are read, and each element takes one, also where the last lanes have none."""
    text = CHANNELS.replace("{8, 8, 24, 16}", lens)
    schedule = {"vector": 8, "share": 8}
    nodes = at("final", text, schedule=schedule).modules[0].nodes
    assert [n.type.size for n in nodes if n.op in ("read", "read_if")] == [0, 0]
    assert_right(text, schedule=schedule)


def test_a_chunk_that_reaches_into_several_channels_reads_each_element() -> None:
    """Channels of fewer elements than a chunk."""
    text = CHANNELS.replace("{8, 8, 24, 16}", "{64, 8, 3, 1}")
    schedule = {"vector": 8, "share": 8}
    nodes = at("final", text, schedule=schedule).modules[0].nodes
    assert [n.type.size for n in nodes if n.op in ("read", "read_if")] == [8]
    assert_right(text, schedule=schedule)


def below(node: Node) -> Iterator[Node]:
    """A node and what it is made of."""
    yield node
    for operand in node.operands:
        yield from below(operand)
