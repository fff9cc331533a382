"""Random contractions: programs, whole numbers as inputs, and what has to come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import references
from support import listed

EXTENTS = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65)
TYPES = ("float", "half", "bf16", "double", "int8", "int32")
FLOATS = ("float", "half", "bf16", "double")
_NUMPY = {
    **{"float": np.float32, "half": np.float16, "bf16": ml_dtypes.bfloat16, "double": np.float64},
    **{"int8": np.int8, "uint8": np.uint8, "int32": np.int32, "int64": np.int64},
}
_MOST_PRODUCTS = 60_000
"""Products of a case: the interpreter computes each at every stage."""

Values = np.ndarray[Any, Any]


@dataclass
class Case:
    """A program, its inputs, its result as numbers that are exact, and how many kernels it becomes."""

    text: str
    inputs: dict[str, Values]
    result: Values
    dtype: str
    tolerance: float = 0.0
    kernels: int = 1

    def __repr__(self) -> str:
        return "\n" + self.text

    @property
    def wanted(self) -> Values:
        """What has to come out, in the result's type."""
        with np.errstate(all="ignore"):
            return self.result.astype(_NUMPY[self.dtype])

    def check(self, got: Values) -> None:
        """Is a result what it has to be?"""
        wanted = self.wanted
        assert got.shape == wanted.shape
        assert got.dtype == wanted.dtype
        if self.tolerance:
            np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=self.tolerance)
        else:
            np.testing.assert_array_equal(got.astype(float), wanted.astype(float))


def whole(rng: np.random.Generator, dtype: str, lens: tuple[int, ...]) -> Values:
    """Small whole numbers."""
    low = 0 if dtype.startswith("u") else -3
    return rng.integers(low, 4, lens).astype(_NUMPY[dtype])


def program(operands: dict[str, tuple[str, Values]], call: str) -> str:
    lines = [f"{name} = @param:{name} -> {dtype}{listed(array.shape)}" for name, (dtype, array) in operands.items()]
    return "\n".join([*lines, f"z = {call}", "@return(z)"]) + "\n"


def case(
    operands: dict[str, tuple[str, Values]], call: str, result: Values, dtype: str, tolerance: float = 0.0
) -> Case:
    inputs = {name: array for name, (_, array) in operands.items()}
    return Case(program(operands, call), inputs, result, dtype, tolerance)


def case_of_last(operands: dict[str, tuple[str, Values]], call: str, result: Values, dtype: str) -> Case:
    """The same where the second axis of all arrays lies last in memory."""
    lying = {name: np.ascontiguousarray(np.moveaxis(array, 1, -1)) for name, (_, array) in operands.items()}
    lines = []
    for name, (dtype_of, array) in operands.items():
        lines.append(f"{name}_last = @param:{name} -> {dtype_of}{listed(lying[name].shape)}")
        order = [0, array.ndim - 1, *range(1, array.ndim - 1)]
        lines.append(f"{name} = transpose[permutation={listed(order)}]({name}_last)")
    order = [0, *range(2, result.ndim), 1]
    lines += [f"z_first = {call}", f"z = transpose[permutation={listed(order)}](z_first)", "@return(z)"]
    return Case("\n".join(lines) + "\n", lying, np.moveaxis(result, 1, -1), dtype)


Made = Callable[[dict[str, tuple[str, Values]], str, Values, str], Case]
"""What makes a case of operands, a call and what it gives."""


def _extents(random: Random, count: int, most: int) -> list[int]:
    """Extents whose product is not above `most`."""
    while True:
        found = [random.choice(EXTENTS) for _ in range(count)]
        if prod(found) <= most:
            return found


# ---- products


def dot(random: Random, rng: np.random.Generator) -> Case:
    dtype = random.choice(TYPES)
    m, n, k = _extents(random, 3, _MOST_PRODUCTS)
    batch = [random.choice((1, 2, 3)) for _ in range(random.choice((0, 0, 1, 2)))]
    first = [b if random.random() < 0.7 else 1 for b in batch]
    second = [b if random.random() < 0.7 or a == 1 else 1 for a, b in zip(first, batch, strict=True)]
    x = whole(rng, dtype, (*first, m, k))
    y = whole(rng, dtype, (*second[random.choice((0, 0, len(second))) :], k, n))
    return case({"x": (dtype, x), "y": (dtype, y)}, "dot(x, y)", references.dot(x, y), dtype)


def dot_of_turned(random: Random, rng: np.random.Generator) -> Case:
    """Operands that lie turned around in memory."""
    dtype = random.choice(FLOATS)
    m, n, k = _extents(random, 3, _MOST_PRODUCTS)
    first, second = random.choice(((True, False), (False, True), (True, True)))
    x, y = whole(rng, dtype, (2, k, m) if first else (2, m, k)), whole(rng, dtype, (n, k) if second else (k, n))
    text = [f"x = @param:x -> {dtype}{listed(x.shape)}", f"y = @param:y -> {dtype}{listed(y.shape)}"]
    text += ["a = transpose[permutation={0, 2, 1}](x)"] * first + ["b = transpose[permutation={1, 0}](y)"] * second
    text += [f"z = dot({'a' if first else 'x'}, {'b' if second else 'y'})", "@return(z)"]
    a, b = x.swapaxes(1, 2) if first else x, y.T if second else y
    return Case("\n".join(text) + "\n", {"x": x, "y": y}, references.dot(a, b), dtype)


def quant_dot(random: Random, rng: np.random.Generator) -> Case:
    m, n, k = _extents(random, 3, _MOST_PRODUCTS)
    types = random.choice(("int8", "uint8")), random.choice(("int8", "uint8"))
    x, y = whole(rng, types[0], (m, k)) * 40, whole(rng, types[1], (k, n)) * 40
    operands = {"x": (types[0], x), "y": (types[1], y)}
    return case(operands, "quant_dot(x, y)", references.dot(x, y), "int32")


# ---- convolutions


@dataclass
class Geometry:
    """How windows move: numbers for each axis behind the channels."""

    lens: list[int]
    lengths: list[int]
    padding: list[int]
    stride: list[int]
    dilation: list[int]

    @property
    def places(self) -> list[int]:
        n = len(self.lens)
        both = self.padding if len(self.padding) == 2 * n else [*self.padding, *self.padding]
        padded = [self.lens[d] + both[d] + both[n + d] for d in range(n)]
        return [(padded[d] - (self.lengths[d] - 1) * self.dilation[d] - 1) // self.stride[d] + 1 for d in range(n)]

    @property
    def text(self) -> str:
        return f"padding={listed(self.padding)}, stride={listed(self.stride)}, dilation={listed(self.dilation)}"

    @property
    def numbers(self) -> tuple[list[int], list[int], list[int]]:
        return self.padding, self.stride, self.dilation


def geometry(random: Random) -> Geometry:
    """Windows that fit; strides above the windows' lengths, dilations, pads of one or of both ends among them."""
    n = random.choice((1, 2, 2, 2, 3))
    while True:
        lens = [random.choice(EXTENTS if n == 1 else EXTENTS[:7] if n == 2 else EXTENTS[:4]) for _ in range(n)]
        lengths = [random.choice((1, 1, 2, 3, 3, 5)) for _ in range(n)]
        padding = [random.choice((0, 0, 1, 2)) for _ in range(random.choice((n, 2 * n)))]
        stride = [random.choice((1, 1, 2, 3, 4)) for _ in range(n)]
        dilation = [random.choice((1, 1, 1, 2, 3)) for _ in range(n)]
        found = Geometry(lens, lengths, padding, stride, dilation)
        if min(found.places) > 0:
            return found


def _channels(random: Random) -> tuple[int, int, int, int]:
    """Samples, groups, and channels in and out: depthwise now and then."""
    group = random.choice((1, 1, 2, 3))
    inside, out = random.choice(((1, 1), (1, 2), (2, 1), (3, 2), (7, 3), (3, 16)))
    return random.choice((1, 2)), group, group * inside, group * out


def _affordable(random: Random) -> tuple[Geometry, int, int, int, int]:
    while True:
        where, (samples, group, inside, out) = geometry(random), _channels(random)
        products = samples * inside * out // group * prod(where.lengths) * max(prod(where.places), prod(where.lens))
        if products <= _MOST_PRODUCTS:
            return where, samples, group, inside, out


def convolution(random: Random, rng: np.random.Generator, made: Made = case) -> Case:
    dtype = random.choice(TYPES)
    where, samples, group, inside, out = _affordable(random)
    x, w = whole(rng, dtype, (samples, inside, *where.lens)), whole(rng, dtype, (out, inside // group, *where.lengths))
    result = references.convolution(x, w, *where.numbers, group)
    return made({"x": (dtype, x), "w": (dtype, w)}, f"convolution[{where.text}, group={group}](x, w)", result, dtype)


def quant_convolution(random: Random, rng: np.random.Generator) -> Case:
    where, samples, group, inside, out = _affordable(random)
    x, w = (
        whole(rng, "uint8", (samples, inside, *where.lens)),
        whole(rng, "int8", (out, inside // group, *where.lengths)),
    )
    x, w = x * 40, w * 40
    result = references.convolution(x, w, *where.numbers, group)
    call = f"quant_convolution[{where.text}, group={group}](x, w)"
    return case({"x": ("uint8", x), "w": ("int8", w)}, call, result, "int32")


def backwards_data(random: Random, rng: np.random.Generator, made: Made = case) -> Case:
    dtype = random.choice(TYPES)
    while True:
        where, samples, group, inside, out = _affordable(random)
        more = [random.choice((0, 0, 1, s - 1)) for s in where.stride]
        x, w = (
            whole(rng, dtype, (samples, inside, *where.places)),
            whole(rng, dtype, (inside, out // group, *where.lengths)),
        )
        result = references.backwards_data(x, w, *where.numbers, group, more)
        if result.size and prod(where.stride) * result.size * w.size // w.shape[1] <= 4 * _MOST_PRODUCTS:
            break
    call = f"convolution_backwards_data[{where.text}, group={group}, output_padding={listed(more)}](x, w)"
    found = made({"x": (dtype, x), "w": (dtype, w)}, call, result, dtype)
    spread = result.shape[2:] != x.shape[2:] and not any(where.padding)
    if spread and prod(where.lengths) == 1 and inside > group:
        found.kernels = 2  # sums are put between zeros
    return found


def backwards_weights(random: Random, rng: np.random.Generator, made: Made = case) -> Case:
    dtype = random.choice(TYPES)
    where, samples, group, inside, out = _affordable(random)
    x, y = whole(rng, dtype, (samples, inside, *where.lens)), whole(rng, dtype, (samples, out, *where.places))
    result = references.backwards_weights(x, y, where.lengths, *where.numbers, group)
    call = f"convolution_backwards_weights[lengths={listed(where.lengths)}, {where.text}, group={group}](x, y)"
    found = made({"x": (dtype, x), "y": (dtype, y)}, call, result, dtype)
    if made is case_of_last and group == inside > 1 and prod(where.lengths) > 1 and y.size > out:
        found.kernels = 2  # sums of channels that lie side by side are turned
    return found


# ---- pools


def pooling(random: Random, rng: np.random.Generator) -> Case:
    """Pools without windows of nothing but pads, whose mean is no number."""
    mode = random.choice(("max", "average", "lpnorm"))
    dtype = random.choice(FLOATS if mode != "max" else TYPES)
    while True:
        where = geometry(random)
        ceil_mode, counted, order = random.random() < 0.5, random.random() < 0.5, random.choice((1, 2, 3))
        x = whole(rng, dtype, (2, random.choice((1, 3, 7)), *where.lens))
        result = references.pooling(x, mode, where.lengths, *where.numbers, ceil_mode, counted, order)
        if np.all(np.isfinite(result)) and result.size * prod(where.lengths) < _MOST_PRODUCTS:
            break
    attributes = f"mode={mode}, lengths={listed(where.lengths)}, {where.text}, lp_order={order}"
    attributes += f", ceil_mode={str(ceil_mode).lower()}, count_include_pad={str(counted).lower()}"
    inexact = {"float": 2e-6, "half": 2e-3, "bf16": 1e-2, "double": 1e-12}[dtype] if mode != "max" else 0.0
    return case({"x": (dtype, x)}, f"pooling[{attributes}](x)", result, dtype, inexact)


KINDS: dict[str, Callable[[Random, np.random.Generator], Case]] = {
    **{"dot": dot, "dot_of_turned": dot_of_turned, "quant_dot": quant_dot},
    **{"convolution": convolution, "quant_convolution": quant_convolution, "pooling": pooling},
    **{"backwards_data": backwards_data, "backwards_weights": backwards_weights},
    "convolution_of_last": partial(convolution, made=case_of_last),
    "backwards_data_of_last": partial(backwards_data, made=case_of_last),
    "backwards_weights_of_last": partial(backwards_weights, made=case_of_last),
}


def random_case(kind: str, seed: int) -> Case:
    """The case of a kind and a seed."""
    return KINDS[kind](Random(f"{kind}/{seed}"), np.random.default_rng(seed))
