"""What shapes become: axes, strides, and the lens of the results of broadcasting, slicing, padding and the like."""

from __future__ import annotations

import math
from itertools import accumulate

from genrw.engine.language.functions import Misuse, bounded, joined, shown
from genrw.engine.language.values import dot, product


def normalise_axis(axis: int, rank: int) -> int:
    """An axis counted from the first; negative ones count from the last."""
    if not -rank <= axis < rank:
        reach = f"axes run from {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        raise Misuse(f"axis {axis} is out of range for rank {rank}: {reach}")
    return axis % rank


def normalise_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Distinct axes counted from the first, in order as given."""
    result = tuple(normalise_axis(axis, rank) for axis in axes)
    if len(set(result)) != len(result):
        raise Misuse(f"the axes {shown(axes)} name one axis twice")
    return result


def strides_of(lens: tuple[int, ...]) -> tuple[int, ...]:
    """The row-major strides of a shape: the product of all later lens."""
    return tuple(accumulate(lens[:0:-1], lambda a, b: bounded(a * b), initial=1))[::-1] if lens else ()


def ravel(index: tuple[int, ...], lens: tuple[int, ...]) -> int:
    """The row-major linear index of a multi-index."""
    return int(dot(index, strides_of(lens)))


def unravel(index: int, lens: tuple[int, ...]) -> tuple[int, ...]:
    """The multi-index of a row-major linear index."""
    if not 0 <= index < math.prod(lens[:64]):
        raise Misuse(f"index {index} is out of range for lens {shown(lens)}")
    return tuple(index // stride % n for stride, n in zip(strides_of(lens), lens, strict=True))


def broadcast_lens(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to: aligned at the last axis, an extent of 1 stretches."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(lens)) + lens for lens in shapes]
    result = []
    for axis, extents in enumerate(zip(*padded, strict=True)):
        wide = set(extents) - {1}
        if len(wide) > 1:
            all_lens = joined([shown(lens) for lens in shapes])
            raise Misuse(f"lens {all_lens} do not broadcast: axis {axis} has {joined(sorted(wide))}")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def broadcasts_to(lens: tuple[int, ...], out_lens: tuple[int, ...]) -> bool:
    """Whether a shape stretches to out_lens."""
    tail = out_lens[len(out_lens) - len(lens) :]
    return len(lens) <= len(out_lens) and all(n in (1, m) for n, m in zip(lens, tail, strict=True))


def reduce_lens(lens: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the axes of a reduction made 1."""
    reduced = normalise_axes(axes, len(lens))
    return tuple(1 if i in reduced else n for i, n in enumerate(lens))


def pad_lens(lens: tuple[int, ...], pads: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after padding; pads holds all befores, then all afters, and negative ones crop."""
    rank = len(lens)
    if len(pads) != 2 * rank:
        raise Misuse(f"pads of a tensor of rank {rank} hold {2 * rank} numbers, not {len(pads)}")
    result = tuple(n + pads[i] + pads[i + rank] for i, n in enumerate(lens))
    if any(n < 0 for n in result):
        raise Misuse(f"the pads {shown(pads)} crop more than lens {shown(lens)} have")
    return result


def gather_lens(lens: tuple[int, ...], indices_lens: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of a gather: the indices' shape stands in for the axis."""
    axis = normalise_axis(axis, len(lens))
    return lens[:axis] + indices_lens + lens[axis + 1 :]


def slice_lens(lens: tuple[int, ...], axes: tuple[int, ...], *bounds: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a slice; starts and ends count from the end where negative and are clamped."""
    result = list(lens)
    for axis, (start, stop, step) in slice_bounds(lens, axes, *bounds).items():
        result[axis] = len(range(start, stop, step))
    return tuple(result)


def slice_starts(lens: tuple[int, ...], axes: tuple[int, ...], *bounds: tuple[int, ...]) -> tuple[int, ...]:
    """The first index a slice takes, for every axis of the tensor (0 where it does not slice)."""
    sliced = slice_bounds(lens, axes, *bounds)
    return tuple(sliced[i][0] if i in sliced else 0 for i in range(len(lens)))


def slice_bounds(
    lens: tuple[int, ...],
    axes: tuple[int, ...],
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    steps: tuple[int, ...] | None = None,
) -> dict[int, tuple[int, int, int]]:
    """Per sliced axis the (start, stop, step) in which negative numbers no longer count from the end."""
    steps = (1,) * len(axes) if steps is None else steps
    if not len(axes) == len(starts) == len(ends) == len(steps):
        raise Misuse("axes, starts, ends and steps of a slice must be of equal length")
    if 0 in steps:
        raise Misuse("the step of a slice must not be 0")
    places = normalise_axes(axes, len(lens))
    bounds = zip(places, starts, ends, steps, strict=True)
    return {axis: slice(start, end, step).indices(lens[axis]) for axis, start, end, step in bounds}


def concat_lens(axis: int, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The shape of tensors joined along an axis; their other extents must agree."""
    if not shapes:
        raise Misuse("concat takes at least one tensor")
    axis = normalise_axis(axis, len(shapes[0]))
    rest = {(len(lens), lens[:axis], lens[axis + 1 :]) for lens in shapes}
    if len(rest) > 1:
        all_lens = joined([shown(lens) for lens in shapes])
        raise Misuse(f"lens {all_lens} differ in more than axis {axis}")
    total = bounded(sum(lens[axis] for lens in shapes))
    return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])


def reshape_lens(lens: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a reshape: dims, in which one -1 stands for what is left over."""
    elements = product(lens)
    known = product(tuple(n for n in dims if n != -1))
    if dims.count(-1) == 1 and known > 0 and elements % known == 0:
        dims = tuple(elements // known if n == -1 else n for n in dims)
    if any(n < 0 for n in dims) or product(dims) != elements:
        raise Misuse(f"lens {shown(lens)} with {elements} elements do not reshape to {shown(dims)}")
    return dims


def squeeze_lens(lens: tuple[int, ...], axes: tuple[int, ...] = ()) -> tuple[int, ...]:
    """The shape without the given axes of extent 1; without all of them where no axes are given."""
    dropped = normalise_axes(axes, len(lens))
    for axis in dropped:
        if lens[axis] != 1:
            raise Misuse(f"axis {axis} of lens {shown(lens)} has extent {lens[axis]}: only 1 can be squeezed")
    return tuple(n for i, n in enumerate(lens) if (i not in dropped if axes else n != 1))


def unsqueeze_lens(lens: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with axes of extent 1 put in; axes count in the result."""
    rank = len(lens) + len(axes)
    added = normalise_axes(axes, rank)
    rest = iter(lens)
    return tuple(1 if i in added else next(rest) for i in range(rank))
