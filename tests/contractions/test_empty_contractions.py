"""Convolutions and pools of which something is empty: samples, channels, or axes that windows move along.

What has no elements makes nothing of nothing, and sums of nothing are zeros: only windows without elements, and ones that
are larger than what is there, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from cases import program, whole
from support import listed, load

from genrw.grammar.diagnostics import GenrwError

Values = np.ndarray[Any, Any]

EXTENTS = (0, 0, 1, 2, 3, 5)
COUNT = 16
"""Programs of each operator."""


def places(lens: Sequence[int], lengths: Sequence[int], given: dict[str, Any]) -> tuple[int, ...]:
    """How many windows lie along each axis; -1 where they are larger than an axis that has elements."""
    n = len(lens)
    found = []
    for d in range(n):
        room = lens[d] + given["padding"][d] + given["padding"][n + d]
        reach = (lengths[d] - 1) * given["dilation"][d] + 1
        fits = room >= reach
        found.append((room - reach) // given["stride"][d] + 1 if fits else 0 if lens[d] == 0 else -1)
    return tuple(found)


def within(out: Sequence[int], place: Sequence[int], given: dict[str, Any]) -> tuple[int, ...]:
    """Where a place of a window lies in the tensor, pads left out."""
    numbers = zip(out, place, given["stride"], given["dilation"], given["padding"], strict=False)
    return tuple(o * s + p * d - before for o, p, s, d, before in numbers)


def covered(
    windows: Sequence[int], lengths: Sequence[int], lens: Sequence[int], given: dict[str, Any]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """All windows, places in them, and the elements there that are no pads."""
    for out in np.ndindex(*windows):
        for place in np.ndindex(*lengths):
            at = within(out, place, given)
            if all(0 <= i < n for i, n in zip(at, lens, strict=True)):
                yield out, place, at


def settings(random: Random, n: int) -> dict[str, Any]:
    return {
        "padding": [random.choice((0, 0, 1, 2)) for _ in range(2 * n)],
        "stride": [random.choice((1, 1, 2, 3)) for _ in range(n)],
        "dilation": [random.choice((1, 1, 2)) for _ in range(n)],
    }


def written(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={listed(v) if isinstance(v, list) else v}" for name, v in given.items())


Drawn = tuple[dict[str, Values], str, Values | None]
"""Operands, a call, and what it gives; nothing where windows are larger than what is there."""


def drawn_shapes(random: Random) -> tuple[int, int, int, int, tuple[int, ...], tuple[int, ...]]:
    group = random.choice((1, 1, 2))
    samples, first, second = (random.choice((0, 1, 2)) for _ in range(3))
    n = random.choice((1, 2))
    spatial, lengths = (tuple(random.choice(of) for _ in range(n)) for of in (EXTENTS, (1, 2, 3)))
    return group, samples, first * group, second * group, spatial, lengths


def convolution(random: Random, rng: np.random.Generator) -> Drawn:
    group, samples, first, second, spatial, lengths = drawn_shapes(random)
    given = settings(random, len(spatial))
    x, w = whole(rng, "float", (samples, first, *spatial)), whole(rng, "float", (second, first // group, *lengths))
    windows = places(spatial, lengths, given)
    call = f"convolution[{written(given)}, group={group}](x, w)"
    if min(windows) < 0:
        return {"x": x, "w": w}, call, None
    z = np.zeros((samples, second, *windows))
    for out, place, at in covered(windows, lengths, spatial, given):
        for o in range(second):
            of = slice(o // (second // group) * (first // group), (o // (second // group) + 1) * (first // group))
            z[(slice(None), o, *out)] += x[(slice(None), of, *at)] @ w[(o, slice(None), *place)]
    return {"x": x, "w": w}, call, z


def backwards_weights(random: Random, rng: np.random.Generator) -> Drawn:
    group, samples, first, second, spatial, lengths = drawn_shapes(random)
    given = settings(random, len(spatial))
    windows = places(spatial, lengths, given)
    x = whole(rng, "float", (samples, first, *spatial))
    y = whole(rng, "float", (samples, second, *(max(0, k) for k in windows)))
    call = f"convolution_backwards_weights[lengths={listed(lengths)}, {written(given)}, group={group}](x, y)"
    if min(windows) < 0:
        return {"x": x, "y": y}, call, None
    z = np.zeros((second, first // group, *lengths))
    for out, place, at in covered(windows, lengths, spatial, given):
        for o in range(second):
            of = slice(o // (second // group) * (first // group), (o // (second // group) + 1) * (first // group))
            z[(o, slice(None), *place)] += y[(slice(None), o, *out)] @ x[(slice(None), of, *at)]
    return {"x": x, "y": y}, call, z


def backwards_data(random: Random, rng: np.random.Generator) -> Drawn:
    group, samples, first, second, spatial, lengths = drawn_shapes(random)
    given = settings(random, len(spatial)) | {"output_padding": [random.choice((0, 0, 1)) for _ in spatial]}
    n = len(spatial)
    x, w = whole(rng, "float", (samples, first, *spatial)), whole(rng, "float", (first, second // group, *lengths))
    lens = [
        (spatial[d] - 1) * given["stride"][d]
        + (lengths[d] - 1) * given["dilation"][d]
        + 1
        + given["output_padding"][d]
        - given["padding"][d]
        - given["padding"][n + d]
        for d in range(n)
    ]
    call = f"convolution_backwards_data[{written(given)}, group={group}](x, w)"
    if any(length < 0 < n for length, n in zip(lens, spatial, strict=True)):
        return {"x": x, "w": w}, call, None
    z = np.zeros((samples, second, *(max(0, n) for n in lens)))
    for out, place, at in covered(spatial, lengths, z.shape[2:], given):
        for c in range(first):
            of = slice(c // (first // group) * (second // group), (c // (first // group) + 1) * (second // group))
            z[(slice(None), of, *at)] += np.outer(x[(slice(None), c, *out)], w[(c, slice(None), *place)])
    return {"x": x, "w": w}, call, z


def pooling(random: Random, rng: np.random.Generator) -> Drawn:
    _, samples, first, _, spatial, lengths = drawn_shapes(random)
    given = settings(random, len(spatial))
    mode, counted = random.choice(("max", "average", "lpnorm")), random.choice((True, False))
    x = whole(rng, "float", (samples, first, *spatial))
    windows = places(spatial, lengths, given)
    more = f", count_include_pad={str(counted).lower()}"
    call = f"pooling[mode={mode}, lengths={listed(lengths)}, {written(given)}{more}](x)"
    if min(windows) < 0:
        return {"x": x}, call, None
    z = np.full((samples, first, *windows), -np.inf if mode == "max" else 0.0)
    counts = np.full(windows, float(np.prod(lengths)) if counted else 0.0)
    for out, _, at in covered(windows, lengths, spatial, given):
        into, element = (slice(None), slice(None), *out), x[(slice(None), slice(None), *at)]
        z[into] = np.maximum(z[into], element) if mode == "max" else z[into] + element ** (2 if mode == "lpnorm" else 1)
        counts[out] += 0 if counted else 1
    with np.errstate(all="ignore"):
        return {"x": x}, call, z if mode == "max" else np.sqrt(z) if mode == "lpnorm" else z / counts


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(COUNT))
@pytest.mark.parametrize("draw", [convolution, backwards_weights, backwards_data, pooling])
def test_nothing_is_made_of_nothing(draw: Callable[[Random, np.random.Generator], Drawn], seed: int) -> None:
    operands, call, wanted = draw(Random(seed), np.random.default_rng(seed))
    text = program({name: ("float", array) for name, array in operands.items()}, call)
    if wanted is None:
        with pytest.raises(GenrwError, match=r"larger than|takes away all"):
            load(text)
        return
    loaded = load(text)
    inputs = {name: array for name, array in operands.items() if name in loaded.inputs}
    for one in (loaded, loaded.lower(loaded.stages[-1])):
        (got,) = one.run(inputs, "interpret").values()
        assert got.shape == wanted.shape, text
        np.testing.assert_allclose(got, wanted, rtol=1e-6, err_msg=text)


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        ("global_pooling[mode=max](x)", (0, 3, 0)),
        ("reduce_max[axes={1}](x)", (0, 0)),
        ("reduce_mean[axes={0}](x)", (0, 3, 0)),
        ("argmin[axis=1](x)", (0, 0)),
    ],
)
def test_folds_of_nothing_to_nothing(call: str, shape: tuple[int, ...]) -> None:
    loaded = load(program({"x": ("float", np.zeros(shape, np.float32))}, call))
    for one in (loaded, loaded.lower(loaded.stages[-1])):
        (got,) = one.run({"x": np.zeros(shape, np.float32)}, "interpret").values()
        assert got.size == 0


@pytest.mark.parametrize("call", ["global_pooling[mode=max](x)", "reduce_max[axes={2}](x)", "argmax[axis=2](x)"])
def test_elements_of_nothing_are_refused(call: str) -> None:
    with pytest.raises(GenrwError, match=r"no elements|without elements"):
        load(program({"x": ("float", np.zeros((2, 3, 0), np.float32))}, call))
