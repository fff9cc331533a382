"""Elements that a lane's registers do not hold: workgroup memory keeps them until the lane needs them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from genrw.codegen.kernel_ir.placement import Placed
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.library.library import Library

_CHUNK_BYTES = 16


@dataclass(frozen=True)
class SpilledPart:
    """What an array leaves to workgroup memory: registers hold its first `held` elements, a workgroup's other `count`
    elements begin `offset` bytes after the first array's."""

    held: int
    offset: int
    count: int


def choose_rest(order: Sequence[Placed], library: Library, held: int, block: int) -> dict[int, SpilledPart]:
    """The arrays of which registers hold `held` elements, by their nodes' ids: those that several others need; none if
    `held` is 0."""
    chosen: dict[int, SpilledPart] = {}
    offset = 0
    for item in order:
        left = item.node.type.size - held_elements(item, library, held)
        if left and len(item.users) > 1:
            chosen[id(item.node)] = SpilledPart(held, offset, left * block)
            offset += left * block * DTYPES[item.node.type.dtype].itemsize
    return chosen


def held_elements(item: Placed, library: Library, held: int) -> int:
    """How many elements of a lane's share registers hold: all, but of an array that is read once for the whole row, where
    its operator leaves the rest to workgroup memory, and that is whole chunks."""
    type_ = item.node.type
    leaves = held and type_.sort == "array" and item.loop is None
    if not leaves or held >= type_.size or "spilled" not in library.operator(item.node.op).decl.role_parts:
        return type_.size
    chunk = _CHUNK_BYTES // DTYPES[type_.dtype].itemsize
    return held if held % chunk == 0 and type_.size % chunk == 0 else type_.size
