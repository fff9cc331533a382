"""Products of matrices that the lanes of a wave hold in parts: what matrix instructions compute, over all waves at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genrw.engine.interpret.lane_axes import LANES, ONE, SHARE, STEPS
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.functions import Function, Misuse, Value, declare, describe
from genrw.engine.library.instructions import Instruction

Digits = Sequence[Sequence[int]]


def wave_product(a: Value, b: Value, instruction: Value, counts: Sequence[int]) -> Array:
    """The sums of products that each lane holds after its wave has multiplied the tiles of `a` and `b`.

    `counts`: how many of the instruction's tiles lie side by side in rows, in columns, in depth. A lane's share of an
    operand is counted by tiles, rows in a tile, depth, or depth, rows where it holds tiles whole; its share of the result by tiles in rows, tiles in columns, and the
    digits of the instruction. Which lane holds which part of the depth does not matter, as long as both operands are alike.
    Misuse where lanes that hold the same element differ.
    """
    if not isinstance(instruction, Instruction):
        raise Misuse(f"`wave_product` takes an instruction, not {describe(instruction)}")
    values = instruction.values
    (rows, columns, depth), (tiles_down, tiles_across, deep) = values["shape"], counts
    first = gathered(a, instruction, "left", tiles_down, rows, deep, depth)
    second = gathered(b, instruction, "right", tiles_across, columns, deep, depth)
    product = np.einsum("gwsmk,gwsnk->gwsmn", first, second)
    i, j = result_places(values["result"], (tiles_down, rows), (tiles_across, columns))
    held = np.moveaxis(product[..., i, j], 3, 2)  # groups, waves, lanes, steps, share
    groups, waves, lanes, steps, share = held.shape
    return Array(np.ascontiguousarray(held.reshape(groups, waves * lanes, steps, share)), values["sum"])


def gathered(x: Value, instruction: Instruction, part: str, tiles: int, length: int, deep: int, depth: int) -> Values:
    """The matrix of each wave and step, from what its lanes hold: rows, or columns, by depth."""
    if not isinstance(x, Array):
        raise Misuse(f"`wave_product` takes what lanes hold, not {describe(x)}")
    i, j = operand_places(instruction, part, tiles, length, deep, depth)
    lanes, share = i.shape
    values: Values = x.values.reshape(x.values.shape or ONE)
    groups, count, steps = values.shape[:SHARE]
    if count > 1 and count % lanes:
        raise Misuse(f"the {count} lanes of a group are no multiple of {lanes}")
    if values.shape[SHARE] not in (1, share):
        raise Misuse(f"a lane holds {values.shape[SHARE]} elements where the instruction takes {share}")
    values = np.broadcast_to(values, (groups, max(count, lanes), steps, share))
    values = np.moveaxis(values.reshape(groups, -1, lanes, steps, share), STEPS + 1, LANES + 1)
    wide = np.float64 if DTYPES[x.dtype].is_float else np.int64
    found = np.zeros((*values.shape[:3], tiles * length, deep * depth), wide)
    values = values.astype(wide)
    found[..., i, j] = values
    if not np.array_equal(found[..., i, j], values, equal_nan=True):
        raise Misuse("lanes hold different values of one element")
    return found


def operand_places(
    instruction: Instruction, part: str, tiles: int, length: int, deep: int, depth: int
) -> tuple[Values, Values]:
    """Row, or column, and depth of each element (axis 1) that each lane (axis 0) holds of an operand's tiles."""
    of_lane, of_share = instruction.values[part]
    along, down = [d for d in of_share if d[1]], [(deep, 0, depth), *(d for d in of_share if not d[1])]
    together = instruction.rows_together[("left", "right").index(part)]
    return _added(of_lane, [(tiles, length, 0), *(down if together else along), *(along if together else down)])


def result_places(parts: Sequence[Digits], rows: tuple[int, int], columns: tuple[int, int]) -> tuple[Values, Values]:
    of_lane, of_share = parts
    return _added(of_lane, [(*rows, 0), (columns[0], 0, columns[1]), *of_share])


def _added(of_lane: Digits, of_share: Digits) -> tuple[Values, Values]:
    lane, share = counted(of_lane), counted(of_share)
    return lane[0][:, None] + share[0][None, :], lane[1][:, None] + share[1][None, :]


def counted(digits: Digits) -> tuple[Values, Values]:
    """For each number in mixed radix the two sums of its digits times their weights."""
    sums = [np.zeros(1, np.int64), np.zeros(1, np.int64)]
    for length, *weights in digits:
        steps = np.arange(length)
        sums = [(s[:, None] + steps[None, :] * w).reshape(-1) for s, w in zip(sums, weights, strict=True)]
    return sums[0], sums[1]


MATRIX_FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        declare(
            "wave_product(a: any, b: any, instruction: any, counts: ints) -> any",
            wave_product,
            "The sums of products that each lane holds after its wave has multiplied tiles with a matrix instruction.",
        ),
    )
}
"""What the `means` of operators that multiply matrices may call."""
