"""Products with powers of scores that the lanes of a wave hold in parts: what attention's tiles compute, over all steps.

Between steps a lane holds its sums, and of each row of scores that it has part of the largest one and the sum of its own
powers; last, whether there was a step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genrw.engine.interpret.lane_axes import SHARE
from genrw.engine.interpret.matrices import gathered, result_places
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.functions import Function, Misuse, Value, declare, describe
from genrw.engine.library.instructions import Instruction


def softmax_sums(scores: Value, values: Value, by_scores: Value, by: Value, counts: Sequence[int]) -> Array:
    """What each lane holds after the last step: `scores` as the result of `by_scores`, `values` as the right operand of `by`.

    `counts`: how many tiles of `by` lie side by side in rows, in columns, in depth. Powers are measured by the largest score
    of a row over all steps; 0 where that is infinitely small. Misuse where the shapes do not fit.
    """
    first, second = _instruction(by_scores), _instruction(by)
    (rows, columns, depth), (down, across, deep) = second.values["shape"], counts
    if not isinstance(scores, Array):
        raise Misuse(f"`softmax_sums` takes what lanes hold, not {describe(scores)}")
    i, j = result_places(
        first.values["result"], (down, rows), (deep * depth // first.values["shape"][1], first.values["shape"][1])
    )
    table = _table(scores.values.astype(np.float64), i, j, (down * rows, deep * depth))
    most = table.max(axis=(2, 4), keepdims=True)
    powers = np.exp(table - np.where(np.isneginf(most), 0.0, most))
    held = gathered(values, second, "right", across, columns, deep, depth)
    sums = np.einsum("gwsmk,gwsnk->gwmn", powers, held)
    m, n = result_places(second.values["result"], (down, rows), (across, columns))
    lanes_rows = m[:, _first_of_rows(m)]
    own = powers.sum(axis=2)[..., i, j]  # groups, waves, lanes, share of the scores
    # what a lane has of other rows may be no number
    of_row = [np.where(i == lanes_rows[:, [r]], own, 0.0) for r in range(lanes_rows.shape[1])]
    total = np.stack([powers_of_row.sum(axis=-1) for powers_of_row in of_row], axis=-1)
    parts = (sums[..., m, n], most[:, :, 0, :, 0][..., lanes_rows], total, np.ones((*total.shape[:-1], 1)))
    state = np.concatenate(parts, axis=-1)
    groups, waves, lanes, size = state.shape
    return Array(np.ascontiguousarray(state.reshape(groups, waves * lanes, 1, size)), second.values["sum"])


def softmax_finished(state: Value, by: Value, counts: Sequence[int]) -> Array:
    """A lane's sums over the sums of its rows' powers, from what `softmax_sums` leaves the lanes of a wave."""
    instruction = _instruction(by)
    if not isinstance(state, Array):
        raise Misuse(f"`softmax_finished` takes what lanes hold, not {describe(state)}")
    (rows, columns, _), (down, across, _) = instruction.values["shape"], counts
    m, _ = result_places(instruction.values["result"], (down, rows), (across, columns))
    first = _first_of_rows(m)
    lanes_rows, sums = m[:, first], m.shape[1]
    values: Values = state.values
    groups, count, steps, _ = values.shape
    waves = values.reshape(groups, -1, m.shape[0], steps, values.shape[SHARE])
    totals = np.zeros((*waves.shape[:2], steps, down * rows))
    for lane in range(m.shape[0]):
        for place, row in enumerate(lanes_rows[lane]):
            totals[..., row] += waves[:, :, lane, :, sums + len(first) + place]
    with np.errstate(all="ignore"):
        found = waves[..., :sums] / np.moveaxis(totals[..., m], 2, 3)
    return Array(np.ascontiguousarray(found.reshape(groups, count, steps, sums)), instruction.values["sum"])


def _table(held: Values, i: Values, j: Values, shape: tuple[int, int]) -> Values:
    """The matrix of each wave and step, from what its lanes hold of a result."""
    groups, count, steps, share = held.shape
    if share != i.shape[1] or count % i.shape[0]:
        raise Misuse(f"{count} lanes hold {share} elements each, where {i.shape[0]} lanes hold {i.shape[1]}")
    lanes = np.moveaxis(held.reshape(groups, -1, i.shape[0], steps, share), 3, 2)
    table = np.zeros((*lanes.shape[:3], *shape))
    table[..., i, j] = lanes
    return table


def _first_of_rows(m: Values) -> list[int]:
    """Where in a lane's share of a result each of its rows comes first."""
    return sorted(np.unique(m[0], return_index=True)[1].tolist())


def _instruction(value: Value) -> Instruction:
    if not isinstance(value, Instruction):
        raise Misuse(f"a matrix instruction is wanted, not {describe(value)}")
    return value


WEIGHTED_FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        declare(
            "softmax_sums(scores: any, values: any, by_scores: any, by: any, counts: ints) -> any",
            softmax_sums,
            "What each lane holds of products of values with powers of scores, and of the rows of these.",
        ),
        declare(
            "softmax_finished(state: any, by: any, counts: ints) -> any",
            softmax_finished,
            "A lane's sums over the sums of its rows' powers.",
        ),
    )
}
"""What the `means` of operators that weight values may call."""
