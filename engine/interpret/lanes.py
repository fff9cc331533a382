"""What lanes compute, over many of them at once: the functions that the `means` of lane operators may call.

Every value is an array that broadcasts to (groups, lanes, steps, share): an axis has length 1 where the value
does not depend on it. The steps are those of the loop over a row that the value lives in.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from genrw.engine.interpret.fold import Accumulator, Folds, closed, opened
from genrw.engine.interpret.lane_axes import GROUPS, LANES, ONE, SHARE, STEPS
from genrw.engine.interpret.matrices import MATRIX_FUNCTIONS
from genrw.engine.interpret.memory import MISSING, Memory
from genrw.engine.interpret.weighted_products import WEIGHTED_FUNCTIONS
from genrw.engine.language.arrays import Array, Values, meet
from genrw.engine.language.functions import Function, Misuse, Value, declare, describe


class Lanes:
    """The lanes of some workgroups: `count` of them from `first` on.

    `missing` says whether an index of -1 stands for an element that does not exist, or is one out of range.
    """

    def __init__(self, folds: Folds, missing: bool) -> None:
        self.folds = folds
        self.missing = missing
        self.first = 0
        self.count = 1
        self.extents = [1, 1, 1, 1]

    def of_groups(self, first: int, count: int) -> None:
        """Go on to other workgroups."""
        self.first, self.count = first, count

    @property
    def groups(self) -> int:
        """How many workgroups are at hand."""
        return max(0, min(self.count, self.extents[GROUPS] - self.first))

    # ---- where a lane stands

    def index_along(self, axis: int, extent: int) -> Array:
        """0, 1 … along an axis; the groups count from the first of those at hand."""
        if extent < 0:
            raise Misuse(f"an extent must not be negative, as {extent}")
        self.extents[axis] = max(self.extents[axis], extent)
        start, stop = (self.first, min(self.first + self.count, extent)) if axis == GROUPS else (0, extent)
        lens = [1, 1, 1, 1]
        lens[axis] = stop - start
        return Array(np.arange(start, stop, dtype=np.int64).reshape(lens), "int64")

    def share_index(self, of: Value) -> Array:
        """0, 1 … along the share of a value, or of so many elements."""
        if isinstance(of, Array):
            return self.index_along(SHARE, of.values.shape[SHARE])
        if not isinstance(of, int):
            raise Misuse(f"`share_index` takes a number of elements or a share, not {describe(of)}")
        return self.index_along(SHARE, of)

    def unspecified(self) -> Array:
        """An index that nothing may depend on."""
        return Array(np.full(ONE, MISSING, np.int64), "int64")

    # ---- memory

    def _existing(self, indices: Values) -> Values | None:
        """Which indices are those of elements that exist; None for all."""
        exists: Values = indices != MISSING
        return exists if self.missing and not np.all(exists) else None

    def _origin(self) -> tuple[int, int, int, int]:
        return self.first, 0, 0, 0

    def element(self, x: Value, i: Value, fill: Value = None) -> Array:
        """The element of that number; where there is none, `fill`, or poison."""
        memory, indices = _memory("element", x), _index("element", i)
        exists = self._existing(indices)
        values = memory.read(_offsets(memory, indices, exists), exists, self._origin())
        return self._filled(memory, values, exists, fill)

    def at_offset(self, x: Value, i: Value, ok: Value = True, fill: Value = None) -> Array:
        """The element at an offset, `fill` without touching memory where not `ok`."""
        memory, offsets, where = _memory("at_offset", x), _index("at_offset", i), _condition(ok)
        if where is not None:
            offsets, where = np.broadcast_arrays(offsets, where)
        return self._filled(memory, memory.read(offsets, where, self._origin()), where, fill)

    def _filled(self, memory: Memory, values: Values, where: Values | None, fill: Value) -> Array:
        dtype = memory.type.dtype
        if where is not None and fill is not None:
            other = fill.values if isinstance(fill, Array) else np.asarray(fill)
            values = np.where(where, values, other.astype(values.dtype))
        return Array(values, dtype)

    def set_element(self, z: Value, i: Value, v: Value) -> int:
        """Writes the element of that number, none where there is none."""
        memory, indices = _memory("set_element", z), _index("set_element", i)
        exists = self._existing(indices)
        memory.write(_offsets(memory, indices, exists), self._stored(memory, v), exists, self._origin())
        return 0

    def set_offset(self, z: Value, i: Value, v: Value, ok: Value = True) -> int:
        """Writes the element at an offset, nothing where not `ok`."""
        memory, offsets = _memory("set_offset", z), _index("set_offset", i)
        memory.write(offsets, self._stored(memory, v), _condition(ok), self._origin())
        return 0

    def _stored(self, memory: Memory, v: Value) -> Values:
        _, (values,) = meet("a write", (v,))
        return Array(values, memory.type.dtype).finished(memory.type.dtype, self.folds.precise)

    # ---- folds

    def identity(self, op: str, dtype: str) -> Value:
        """What a fold starts from."""
        identity = self.folds.of(op, dtype).identity
        return closed(_each(lambda values: values.reshape(ONE), identity))

    def fold_element(self, op: str, x: Value, k: Value) -> Value:
        """The accumulator of one element at position k of its row: one for each position, where `x` is the same at all."""
        if not isinstance(x, Array):
            raise Misuse(f"`fold_element` takes an element, not {describe(x)}")
        if isinstance(k, Array):
            x = Array(np.broadcast_to(x.values, np.broadcast_shapes(x.values.shape, k.values.shape)), x.dtype)
        return closed(self.folds.of(op, x.dtype).element(x, k))

    def fold_finish(self, op: str, x: Value, n: int) -> Array:
        """The result of a fold over n elements."""
        return self.folds.over(op, opened(x)).finish(opened(x), n)

    def share_reduce(self, op: str, x: Value) -> Value:
        """A lane's elements folded, over its share and over all steps."""
        parts = _each(_share_and_steps, aligned(opened(x)))
        return closed(self.folds.over(op, parts).along(parts, SHARE))

    def own_reduce(self, op: str, x: Value) -> Value:
        """A lane's elements of each step folded."""
        parts = aligned(opened(x))
        return closed(self.folds.over(op, parts).along(parts, SHARE))

    def step_reduce(self, op: str, x: Value) -> Value:
        """Each of a lane's elements folded over all steps."""
        parts = aligned(opened(x))
        return closed(self.folds.over(op, parts).along(parts, STEPS))

    def wave_reduce(self, op: str, x: Value, lanes: int) -> Value:
        """The values of each `lanes` neighbouring lanes folded; all of them get the result."""
        return self._among_lanes(op, x, lanes, LANES + 1)

    def block_reduce(self, op: str, x: Value, waves: int) -> Value:
        """One value of each of the block's waves folded, that of its first lane; all lanes get the result."""
        parts = self._several_lanes(opened(x), waves)
        if parts is None:
            firsts = _each(lambda values: values.repeat(waves, LANES), opened(x))
        else:
            firsts = _each(lambda values: values[:, :: values.shape[LANES] // waves], parts)
        return closed(self.folds.over(op, firsts).along(firsts, LANES))

    def parts_reduce(self, op: str, x: Value, parts: int) -> Value:
        """Each element of `parts` lanes that stand equally far apart folded; all lanes get their element's result."""
        return self._among_lanes(op, x, parts, LANES)

    def team_turn(self, x: Value, team: int, before: int, unit: int) -> Array:
        """What the lanes of each team hold, of which lane t gets the parts numbered t of all, side by side."""
        if not isinstance(x, Array):
            raise Misuse(f"`team_turn` takes what lanes hold, not {describe(x)}")
        groups, lanes, steps, share = x.values.shape
        values = np.broadcast_to(x.values, (groups, max(lanes, team), steps, share))
        parts = values.reshape(groups, -1, team, steps, share // (team * before * unit), team, before, unit)
        turned = parts.transpose(0, 1, 5, 3, 4, 6, 2, 7)
        return Array(turned.reshape(groups, max(lanes, team), steps, share), x.dtype)

    def _among_lanes(self, op: str, x: Value, count: int, axis: int) -> Value:
        """The values of `count` lanes of a block folded: of neighbours along axis LANES + 1, of lanes that stand equally
        far apart along LANES."""
        parts = self._several_lanes(opened(x), count)
        if parts is None:
            parts = _each(lambda values: values.repeat(count, LANES), opened(x))
            return closed(self.folds.over(op, parts).along(parts, LANES))

        def grouped(values: Values) -> Values:
            groups, lanes, *rest = values.shape
            shape = (count, lanes // count) if axis == LANES else (lanes // count, count)
            return values.reshape((groups, *shape, *rest))

        def to_all(values: Values) -> Values:
            groups, first, second, *rest = values.shape
            return values.repeat(count, axis).reshape((groups, first * second * count, *rest))

        teams = _each(grouped, parts)
        return closed(_each(to_all, self.folds.over(op, teams).along(teams, axis)))

    def _several_lanes(self, parts: Accumulator, teams: int) -> Accumulator | None:
        """The fields of an accumulator in one shape; None where all lanes have the same value."""
        parts = aligned(parts)
        lanes = parts[0].values.shape[LANES]
        if lanes > 1 and (teams < 1 or lanes % teams):
            raise Misuse(f"the {lanes} lanes of a group are no multiple of {teams}")
        return parts if lanes > 1 else None


def aligned(parts: Accumulator) -> Accumulator:
    """Arrays of one shape."""
    lens = np.broadcast_shapes(*(array.values.shape for array in parts))
    return _each(lambda values: np.broadcast_to(values, lens), parts)


def _each(compute: Callable[[Values], Values], parts: Accumulator) -> Accumulator:
    return tuple(Array(compute(array.values), array.dtype) for array in parts)


def _share_and_steps(values: Values) -> Values:
    return values.reshape((*values.shape[:STEPS], 1, values.shape[STEPS] * values.shape[SHARE]))


def _memory(what: str, value: Value) -> Memory:
    if not isinstance(value, Memory):
        raise Misuse(f"`{what}` takes a tensor in memory, not {describe(value)}")
    return value


def _index(what: str, value: Value) -> Values:
    _, (values,) = meet(f"`{what}`", (value,))
    if values.dtype.kind not in "iu":
        raise Misuse(f"`{what}` takes an integer as index")
    return values.reshape(values.shape or ONE)


def _offsets(memory: Memory, indices: Values, exists: Values | None) -> Values:
    return memory.offsets(indices if exists is None else np.where(exists, indices, 0))


def _condition(ok: Value) -> Values | None:
    """A condition, None where it always holds."""
    if isinstance(ok, bool):
        ok = Array(np.full(ONE, ok), "bool")
    if not isinstance(ok, Array) or ok.dtype != "bool":
        raise Misuse(f"a condition is true or false, not {describe(ok)}")
    return None if np.all(ok.values) else ok.values


def total(xs: Value) -> Value:
    """The sum of a list of indices."""
    values = [x.values if isinstance(x, Array) else np.asarray(x) for x in xs]
    return Array(np.asarray(sum(values, np.zeros(ONE, np.int64))), "int64")


def aligned_to(i: Value, n: int) -> Value:
    """An index, or number, that is a multiple of n; Misuse if it is not."""
    _, (values,) = meet("`aligned`", (i,))
    bad = values[values % n != 0]
    if bad.size:
        raise Misuse(f"accesses {n} elements at once at offset {int(bad.flat[0])}, which is no multiple of {n}")
    return i


def one_of_chunk(x: Value, vector: int) -> Value:
    """A share's indices or truth values, each of which is the same for all neighbours of a chunk; Misuse if one is not."""
    _, (values,) = meet("`each_chunk`", (x,))
    values = values.reshape(values.shape or ONE)
    chunks = values.reshape(*values.shape[:SHARE], -1, vector) if values.shape[SHARE] % vector == 0 else values
    if np.any(chunks != chunks[..., :1]):
        raise Misuse(f"takes chunks of {vector} neighbours, for all of which it is the same")
    return x


def of_chunks(x: Value, vector: int) -> Value:
    """What a share has for each chunk, for each of the chunk's `vector` neighbours; one value is that of all."""
    values = x.values if isinstance(x, Array) else None
    if not isinstance(x, Array) or values is None or values.shape[SHARE] == 1:
        return x
    return Array(np.repeat(values, vector, axis=SHARE), x.dtype)


def lane_functions(lanes: Lanes) -> dict[str, Function]:
    """What the `means` of lane operators may call, besides all that the `means` of tensor operators may."""
    along = lanes.index_along
    # fmt: off
    functions = (
        declare("group_index(groups: int) -> any", lambda groups: along(GROUPS, groups),
            "The index of the workgroup, of so many.", "counts"),
        declare("local_index(lanes: int) -> any", lambda count: along(LANES, count),
            "The index of the lane in its workgroup, of so many.", "counts"),
        declare("step_index(steps: int) -> any", lambda steps: along(STEPS, steps),
            "The step of the loop that the value lives in, of so many.", "counts"),
        declare("share_index(of: any) -> any", lanes.share_index,
            "0, 1 … over a lane's share: of so many elements, or of as many as a value has.", "counts"),
        declare("unspecified() -> any", lanes.unspecified, "Any number: nothing may depend on which."),
        declare("total(xs: list) -> any", total, "The sum of a list of indices."),
        declare("aligned(i: any, n: int) -> any", aligned_to, "The index itself, which has to be a multiple of n."),
        declare("each_chunk(x: any, vector: int) -> any", one_of_chunk,
            "A share's indices or truth values themselves, each the same for all neighbours of a chunk."),
        declare("of_chunks(x: any, vector: int) -> any", of_chunks,
            "What a share has for each chunk, for each of its neighbours."),
        declare("element(x: any, i: any, fill: any?) -> any", lanes.element,
            "The element of that number, counted along the tensor's rows; `fill` where the number is -1."),
        declare("at_offset(x: any, i: any, ok: any?, fill: any?) -> any", lanes.at_offset,
            "The element at an offset in memory; `fill` where not `ok`, without touching memory."),
        declare("set_element(z: any, i: any, v: any) -> any", lanes.set_element,
            "Writes the element of that number; nothing where the number is -1."),
        declare("set_offset(z: any, i: any, v: any, ok: any?) -> any", lanes.set_offset,
            "Writes the element at an offset in memory; nothing where not `ok`."),
        declare("identity(op: string, dtype: string) -> any", lanes.identity, "What a fold starts from."),
        declare("fold_element(op: string, x: any, k: any) -> any", lanes.fold_element,
            "A monoid's accumulator of one element, at position k of its row."),
        declare("fold_finish(op: string, x: any, n: int) -> any", lanes.fold_finish,
            "The result of a fold over n elements, from the accumulator."),
        declare("share_reduce(op: string, x: any) -> any", lanes.share_reduce,
            "A lane's elements folded, over its share and over all steps of its loop."),
        declare("own_reduce(op: string, x: any) -> any", lanes.own_reduce,
            "A lane's elements of each step folded."),
        declare("step_reduce(op: string, x: any) -> any", lanes.step_reduce,
            "Each of a lane's elements folded over all steps of its loop."),
        declare("wave_reduce(op: string, x: any, lanes: int) -> any", lanes.wave_reduce,
            "One value of each of so many neighbouring lanes folded; all of them get the result."),
        declare("block_reduce(op: string, x: any, waves: int) -> any", lanes.block_reduce,
            "One value of each of the workgroup's waves folded; all lanes get the result."),
        declare("team_turn(x: any, team: int, before: int, unit: int) -> any", lanes.team_turn,
            "What lanes hold, numbered by rest, team, before and unit, turned within each team: lane t of a team gets the parts t of all lanes of its team."),
        declare("parts_reduce(op: string, x: any, parts: int) -> any", lanes.parts_reduce,
            "Each element of so many lanes, which stand equally far apart, folded; all of them get the result."),
    )
    # fmt: on
    return {function.name: function for function in functions} | MATRIX_FUNCTIONS | WEIGHTED_FUNCTIONS
