"""Functions that move data, on numpy arrays: what padding, gathering, slicing and the like mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.engine.ir.dtypes import in_range
from genrw.engine.language.functions import Misuse, shown
from genrw.engine.language.shapes import (
    broadcasts_to,
    concat_lens,
    normalise_axes,
    normalise_axis,
    pad_lens,
    reshape_lens,
    slice_bounds,
    squeeze_lens,
    unsqueeze_lens,
)

Values = npt.NDArray[Any]
Lens = tuple[int, ...]

ELEMENT_LIMIT = 1 << 31


def affordable(lens: Lens) -> Lens:
    """A shape for a new array, unless that would be absurdly large or no shape at all."""
    if any(n < 0 for n in lens):
        raise Misuse(f"an extent must not be negative, as in {shown(lens)}")
    if math.prod(lens) > ELEMENT_LIMIT:
        raise Misuse(f"a tensor of lens {shown(lens)} is too large to be computed here")
    return lens


# ---- padding


def pad(x: Values, pads: Lens, mode: str = "constant", value: float = 0, dtype: str = "float") -> Values:
    """Elements put around a tensor, or taken from it where a pad is negative; `pads` is befores, then afters.

    Mode `constant` puts in a value (in terms of `dtype`), `edge` the nearest element, `reflect` the mirror
    image about the outermost elements, back and forth as often as it takes.
    """
    lens = affordable(pad_lens(x.shape, pads))
    before = pads[: x.ndim]
    if mode == "constant":
        return _pad_constant(x, lens, before, in_range(value, dtype))
    if mode not in _SOURCES:
        raise Misuse(f'the mode of a pad is "constant", "edge" or "reflect", not "{mode}"')
    for axis, n in enumerate(lens):
        if x.shape[axis] == 0 and n > 0:
            raise Misuse(f"axis {axis} has no elements to pad with in mode {mode}")
        if n != x.shape[axis] or before[axis]:
            x = np.take(x, _SOURCES[mode](np.arange(n) - before[axis], x.shape[axis]), axis)
    return x


def _pad_constant(x: Values, lens: Lens, before: Lens, fill: float) -> Values:
    result = np.full(lens, fill, x.dtype)
    sources, targets = [], []
    for n, out, low in zip(x.shape, lens, before, strict=True):
        first, last = max(0, -low), min(n, out - low)
        sources.append(slice(first, max(first, last)))
        targets.append(slice(first + low, max(first, last) + low))
    if all(s.stop > s.start for s in sources):
        result[tuple(targets)] = x[tuple(sources)]
    return result


def _edge(index: Values, n: int) -> Values:
    return np.clip(index, 0, n - 1)


def _reflect(index: Values, n: int) -> Values:
    period = max(1, 2 * (n - 1))
    position = np.abs(index) % period
    return np.where(position < n, position, period - position)


_SOURCES: dict[str, Callable[[Values, int], Values]] = {"edge": _edge, "reflect": _reflect}


# ---- picking


def take(x: Values, indices: Values, axis: int = 0) -> Values:
    """Elements at indices along an axis, whose place their shape takes; negative ones count from the end."""
    axis = normalise_axis(axis, x.ndim)
    if indices.dtype.kind not in "iu":
        raise Misuse("`take` takes integers as indices")
    n = x.shape[axis]
    outside = (indices >= n) | (indices < -n) if indices.dtype.kind == "i" else indices >= n
    if np.any(outside):
        bad = indices[outside].reshape(-1)[0]
        raise Misuse(f"index {bad} is out of range for axis {axis}, which has {n} elements")
    places = indices.astype(np.int64)
    return np.take(x, np.where(places < 0, places + n, places), axis)


def flip(x: Values, axes: Lens) -> Values:
    """The order of the elements turned around along each of the axes."""
    return np.flip(x, normalise_axes(axes, x.ndim))


def slice_(x: Values, axes: Lens, starts: Lens, ends: Lens, steps: Lens | None = None) -> Values:
    """A part of a tensor; starts and ends count from the end where negative and are clamped to it."""
    parts = [slice(None)] * x.ndim
    for axis, (start, stop, step) in slice_bounds(x.shape, axes, starts, ends, steps).items():
        if not range(start, stop, step):
            start = stop = 0
        # a backward slice down to and with element 0 ends at -1, which numpy would take for the last element
        parts[axis] = slice(start, None if stop < 0 else stop, step)
    return x[tuple(parts)]


def windows(x: Values, axes: Lens, lengths: Lens, strides: Lens | None = None, dilations: Lens | None = None) -> Values:
    """The windows over some axes: the places in a window are axes of their own before the first of `axes`."""
    ones = (1,) * len(axes)
    strides, dilations = strides or ones, dilations or ones
    if not axes or list(axes) != sorted(set(axes)) or axes[0] < 0 or axes[-1] >= x.ndim:
        raise Misuse(f"windows lie along axes in ascending order, not along {shown(axes)} of {x.ndim}")
    if not len(axes) == len(lengths) == len(strides) == len(dilations) or min(*lengths, *strides, *dilations) < 1:
        raise Misuse("windows have a length, a stride and a dilation above 0 for each axis")
    lens, steps = list(x.shape), list(x.strides)
    for axis, length, stride, dilation in zip(axes, lengths, strides, dilations, strict=True):
        lens[axis] = (x.shape[axis] - (length - 1) * dilation - 1) // stride + 1
        if lens[axis] < 1:
            raise Misuse(f"windows of {shown(lengths)} are larger than a tensor of lens {shown(x.shape)}")
        steps[axis] *= stride
    inside = [x.strides[axis] * dilation for axis, dilation in zip(axes, dilations, strict=True)]
    first = axes[0]
    shape, jumps = (*lens[:first], *lengths, *lens[first:]), (*steps[:first], *inside, *steps[first:])
    return np.lib.stride_tricks.as_strided(x, shape, jumps, writeable=False)


# ---- products


def sum_of_products(x: Values, y: Values, axes: Lens) -> Values:
    """The products of two tensors that broadcast, summed along axes, which stay with length 1; none of them is stored."""
    rank = max(x.ndim, y.ndim)
    axes = normalise_axes(axes, rank)
    pair = [v.reshape((1,) * (rank - v.ndim) + v.shape) for v in (x, y)]
    lens = np.broadcast_shapes(pair[0].shape, pair[1].shape)
    summed = affordable(tuple(1 if d in axes else n for d, n in enumerate(lens)))
    # what only one operand has along a summed axis is not summed before it is multiplied: infinities would meet
    pair = [np.broadcast_to(v, [lens[d] if d in axes else n for d, n in enumerate(v.shape)]) for v in pair]
    long = [[d for d in range(rank) if v.shape[d] != 1 or lens[d] == 1] for v in pair]
    operands = [v.reshape([v.shape[d] for d in dims]) for v, dims in zip(pair, long, strict=True)]
    kept = [d for d in range(rank) if d not in axes]
    with np.errstate(all="ignore"):
        result = np.einsum(operands[0], long[0], operands[1], long[1], kept, optimize=True)
    return np.asarray(result, x.dtype).reshape(summed)


# ---- joining and shaping


def concat(axis: int, xs: Sequence[Values]) -> Values:
    """Tensors one after the other along an axis."""
    affordable(concat_lens(axis, tuple(x.shape for x in xs)))
    return np.concatenate(xs, axis=axis)


def transpose(x: Values, perm: Lens) -> Values:
    """Axis i of the result is axis perm[i] of the operand."""
    if sorted(perm) != list(range(x.ndim)):
        raise Misuse(f"{shown(perm)} is not a permutation of {x.ndim} axes")
    return np.transpose(x, perm)


def broadcast_to(x: Values, lens: Lens) -> Values:
    """Axes of extent 1, and missing leading ones, repeated to fill a shape."""
    if not broadcasts_to(x.shape, lens):
        raise Misuse(f"lens {shown(x.shape)} do not broadcast to {shown(lens)}")
    return np.broadcast_to(x, affordable(lens))


def broadcast_axis(x: Values, axis: int, out_lens: Lens) -> Values:
    """A tensor repeated over all axes of out_lens but those from `axis` on that it has itself."""
    if not 0 <= axis <= len(out_lens) - x.ndim:
        raise Misuse(f"a tensor of rank {x.ndim} does not fit at axis {axis} of {shown(out_lens)}")
    return broadcast_to(x.reshape(x.shape + (1,) * (len(out_lens) - axis - x.ndim)), out_lens)


def reshape(x: Values, dims: Lens) -> Values:
    """The elements in row-major order in another shape; one extent may be -1."""
    return np.reshape(x, reshape_lens(x.shape, dims))


def squeeze(x: Values, axes: Lens = ()) -> Values:
    """Axes of extent 1 left out: those given, or all."""
    return np.reshape(x, squeeze_lens(x.shape, axes))


def unsqueeze(x: Values, axes: Lens) -> Values:
    """Axes of extent 1 put in; they count in the result."""
    return np.reshape(x, unsqueeze_lens(x.shape, axes))


def iota(lens: Lens, axis: int) -> Values:
    """Each element's index along an axis."""
    axis = normalise_axis(axis, len(lens))
    line = np.arange(affordable(lens)[axis], dtype=np.int64)
    return np.broadcast_to(line.reshape((-1,) + (1,) * (len(lens) - axis - 1)), lens)
