"""Products, convolutions and pools in numpy: written by what they mean, without the views that rules make of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Values = np.ndarray[Any, Any]


def _wide(x: Values) -> Values:
    """Integers as int64, all else as double: sums of small whole numbers are exact."""
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


def _befores_afters(padding: Sequence[int], n: int) -> list[tuple[int, int]]:
    both = [*padding, *padding] if len(padding) == n else [*padding]
    return list(zip(both[:n], both[n:], strict=True))


def _padded(x: Values, padding: Sequence[int], fill: float = 0) -> Values:
    return np.pad(x, [(0, 0), (0, 0), *_befores_afters(padding, x.ndim - 2)], constant_values=fill)


def _windows(x: Values, lengths: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Values:
    """{samples, channels, places …, in a window …}."""
    n = len(lengths)
    reaches = [(k - 1) * d + 1 for k, d in zip(lengths, dilation, strict=True)]
    found = sliding_window_view(x, reaches, axis=tuple(range(2, 2 + n)))
    return found[
        (slice(None), slice(None), *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    ]


def _groups(x: Values, axis: int, group: int) -> Values:
    return x.reshape(*x.shape[:axis], group, x.shape[axis] // group, *x.shape[axis + 1 :])


def dot(x: Values, y: Values) -> Values:
    return np.matmul(_wide(x), _wide(y))


def convolution(
    x: Values, w: Values, padding: Sequence[int], stride: Sequence[int], dilation: Sequence[int], group: int
) -> Values:
    n = x.ndim - 2
    seen = _groups(_windows(_padded(_wide(x), padding), w.shape[2:], stride, dilation), 1, group)
    out, inside = [*range(10, 10 + n)], [*range(20, 20 + n)]
    found = np.einsum(seen, [0, 1, 2, *out, *inside], _groups(_wide(w), 0, group), [1, 3, 2, *inside], [0, 1, 3, *out])
    return found.reshape(x.shape[0], w.shape[0], *found.shape[3:])


def backwards_data(
    x: Values,
    w: Values,
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
    more: Sequence[int],
) -> Values:
    """Every element is added to all places that its window covers; pads are cut off in the end."""
    n = x.ndim - 2
    given, weights = _groups(_wide(x), 1, group), _groups(_wide(w), 0, group)
    spatial = range(n)
    reaches = [(x.shape[2 + d] - 1) * stride[d] + (w.shape[2 + d] - 1) * dilation[d] + 1 + more[d] for d in spatial]
    pads = _befores_afters(padding, n)
    full = np.zeros((x.shape[0], group, w.shape[1], *(max(r, 0) for r in reaches)), given.dtype)
    for place in product(*(range(k) for k in w.shape[2:])):
        part = np.einsum("ngi...,gio->ngo...", given, weights[(slice(None), slice(None), slice(None), *place)])
        starts = [p * d for p, d in zip(place, dilation, strict=True)]
        into = tuple(slice(starts[d], starts[d] + (x.shape[2 + d] - 1) * stride[d] + 1, stride[d]) for d in spatial)
        full[(slice(None), slice(None), slice(None), *into)] += part
    cut = tuple(slice(before, full.shape[3 + d] - after) for d, (before, after) in enumerate(pads))
    return full.reshape(x.shape[0], group * w.shape[1], *full.shape[3:])[(slice(None), slice(None), *cut)]


def backwards_weights(
    x: Values,
    y: Values,
    lengths: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
) -> Values:
    n = x.ndim - 2
    seen = _groups(_windows(_padded(_wide(x), padding), lengths, stride, dilation), 1, group)
    out, inside = [*range(10, 10 + n)], [*range(20, 20 + n)]
    found = np.einsum(seen, [0, 1, 2, *out, *inside], _groups(_wide(y), 1, group), [0, 1, 3, *out], [1, 3, 2, *inside])
    return found.reshape(y.shape[1], x.shape[1] // group, *lengths)


def pooling(
    x: Values,
    mode: str,
    lengths: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    order: int,
) -> Values:
    n = x.ndim - 2
    pads = _befores_afters(padding, n)
    beyond = []
    for d in range(n):
        length, (before, after) = x.shape[2 + d], pads[d]
        reach = (lengths[d] - 1) * dilation[d] + 1
        starts = [s for s in range(0, length + before + after, stride[d]) if s + reach <= length + before + after]
        if ceil_mode and starts[-1] + reach < length + before + after and starts[-1] + stride[d] < length + before:
            starts.append(starts[-1] + stride[d])
        beyond.append((0, max(0, starts[-1] + reach - (length + before + after))))
    none = [(0, 0), (0, 0)]

    def seen(values: Values, around: float, outside: float) -> Values:
        values = np.pad(values, [*none, *pads], constant_values=around)
        values = np.pad(values, [*none, *beyond], constant_values=outside)
        return _windows(values, lengths, stride, dilation)

    within = tuple(range(2 + n, 2 + 2 * n))
    values = _wide(x)
    if mode == "max":
        low = -np.inf if values.dtype.kind == "f" else np.iinfo(x.dtype).min
        return seen(values, low, low).max(within)
    if mode == "lpnorm":
        return (seen(np.abs(values), 0, 0) ** order).sum(within) ** (1 / order)
    counts = seen(np.ones_like(values), 1 if count_include_pad else 0, 0).sum(within)
    with np.errstate(all="ignore"):
        return seen(values, 0, 0).sum(within) / counts
