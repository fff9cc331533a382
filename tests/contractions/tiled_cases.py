"""Contractions of lengths at and beside powers of two, for schedules of tiles: products of matrices with what may stand before
and after them, and convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import references
from cases import Case, case, case_of_last, whole
from support import listed

from genrw.program import Program

SUMS = {"int8": "int32", "uint8": "int32"}
"""What products of narrow integers are added up in: the results of operators of their own."""
LENGTHS = (17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 192, 200)
"""Lengths of the sides of products."""


@dataclass(frozen=True)
class Product:
    """A product {batch …, m, k} times {batch …, k, n}: which matrices lie turned around, whether there is work before it, and
    whether a bias is added to it and its negative elements are cut off, or the bias is taken away."""

    m: int
    k: int
    n: int
    batch: tuple[int, ...] = ()
    turned: tuple[bool, bool] = (False, False)
    before: bool = False
    after: bool = False

    def case(self, rng: np.random.Generator, dtype: str) -> Case:
        x, w = whole(rng, dtype, (*self.batch, self.m, self.k)), whole(rng, dtype, (*self.batch, self.k, self.n))
        b = whole(rng, SUMS.get(dtype, dtype), (self.n,))
        lines, inputs = [], {"b": b}
        for name, value, turned in (("x", x, self.turned[0]), ("w", w, self.turned[1])):
            if turned:
                inputs[f"{name}_turned"] = np.ascontiguousarray(value.swapaxes(-1, -2))
                order = [*range(len(self.batch)), len(self.batch) + 1, len(self.batch)]
                lines.append(f"{name}_turned = @param:{name}_turned -> {_type(dtype, inputs[f'{name}_turned'].shape)}")
                lines.append(f"{name} = transpose[permutation={listed(order)}]({name}_turned)")
            else:
                inputs[name] = value
                lines.append(f"{name} = @param:{name} -> {_type(dtype, value.shape)}")
        if self.before:
            lines.append("r = relu(x)")
        lines += [f"b = @param:b -> {_type(SUMS.get(dtype, dtype), b.shape)}"]
        lines += [f"d = {_named('dot', dtype)}({'r' if self.before else 'x'}, w)"]
        lines += ["a = add(d, b)", "z = relu(a)"] if self.after else ["z = sub(d, b)"]
        result = references.dot(np.maximum(x, 0) if self.before else x, w)
        bias = b.astype(result.dtype)
        result = np.maximum(result + bias, 0) if self.after else result - bias
        return Case("\n".join([*lines, "@return(z)"]), inputs, result, SUMS.get(dtype, dtype))


@dataclass(frozen=True)
class Convolution:
    """A convolution of images: samples, groups, channels of a group in and out, their size, how windows move, and whether
    channels lie last."""

    samples: int
    group: int
    channels: tuple[int, int]
    size: tuple[int, int]
    window: tuple[int, int]
    padding: tuple[int, int] = (0, 0)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    last: bool = False

    def case(self, rng: np.random.Generator, dtype: str) -> Case:
        inner, outer = self.channels
        x = whole(rng, dtype, (self.samples, self.group * inner, *self.size))
        w = whole(rng, dtype, (self.group * outer, inner, *self.window))
        lists = f"padding={listed(self.padding)}, stride={listed(self.stride)}, dilation={listed(self.dilation)}"
        result = references.convolution(x, w, self.padding, self.stride, self.dilation, self.group)
        call = f"{_named('convolution', dtype)}[{lists}, group={self.group}]"
        operands = {"x": (dtype, x), "w": (dtype, w)}
        return (case_of_last if self.last else case)(operands, f"{call}(x, w)", result, SUMS.get(dtype, dtype))


FORMS: Mapping[str, Product | Convolution] = {
    "multiples": Product(64, 128, 128),
    "odd rows": Product(37, 128, 64),
    "odd columns": Product(64, 128, 43),
    "odd depth": Product(64, 77, 64),
    "odd throughout": Product(67, 75, 35),
    "batches": Product(33, 72, 40, batch=(2, 2)),
    "first turned": Product(40, 80, 48, turned=(True, False)),
    "second turned": Product(35, 80, 41, turned=(False, True)),
    "both turned": Product(33, 67, 72, turned=(True, True)),
    "work before and after": Product(48, 96, 56, before=True, after=True),
    "convolution": Convolution(2, 1, (16, 24), (9, 8), (3, 3), padding=(1, 1)),
    "strided convolution of groups": Convolution(
        2, 2, (9, 33), (12, 11), (3, 2), padding=(1, 0), stride=(2, 1), dilation=(1, 2)
    ),
    "channels last": Convolution(2, 1, (16, 24), (9, 8), (3, 3), padding=(1, 1), last=True),
}
"""Contractions by what is particular about them: all but the last have tiles of every instruction."""


def tiled_product(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """A product of whole numbers; either matrix may lie turned around."""
    m, k, n = (random.choice(LENGTHS) for _ in range(3))
    batch = random.choice(((), (), (2,), (2, 3)))
    first, second, before, after = (random.random() < 0.5 for _ in range(4))
    return Product(m, k, n, batch, (first, second), before, after).case(rng, dtype)


def tiled_convolution(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """A convolution of images whose channels and places fill tiles, or do not."""
    group, samples = random.choice((1, 1, 2)), random.choice((1, 3))
    channels = random.choice((3, 8, 20)), random.choice((9, 16, 33))
    window, size = random.choice(((1, 1), (3, 3), (1, 3))), (random.choice((7, 8)), random.choice((8, 9)))
    padding, stride, dilation = ((random.choice(c), random.choice(c)) for c in ((0, 1), (1, 1, 2), (1, 1, 2)))
    last = random.random() < 0.5
    return Convolution(samples, group, channels, size, window, padding, stride, dilation, last).case(rng, dtype)


def tiled_patches(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """A convolution whose windows lie side by side, each a power of two long, as in networks that cut images into patches."""
    samples, side = random.choice((1, 2)), random.choice((2, 4, 8, 16))
    places = random.choice((2, 3)), random.choice((2, 5))
    size = side * places[0], side * places[1]
    channels = random.choice((1, 3)), random.choice((16, 24))
    return Convolution(samples, 1, channels, size, (side, side), stride=(side, side), last=random.random() < 0.3).case(
        rng, dtype
    )


def tiled_schedules(program: Program, instruction: str | None = None) -> list[Mapping[str, Any]]:
    """The schedules of a program of one kernel that make tiles, by any instruction or by one, the cheapest first. It may have
    one already, which was chosen from all."""
    scheduled = program if program.trace.schedules else program.lower("schedule")
    rated = next(iter(scheduled.trace.schedules.values()), ())
    tiled = [schedule for _, schedule, _ in rated if schedule["algo"] == "matrix"]
    return [s for s in tiled if instruction in (None, s["instruction"])]


def _named(operator: str, dtype: str) -> str:
    return f"quant_{operator}" if dtype in SUMS else operator


def _type(dtype: str, lens: tuple[int, ...]) -> str:
    return f"{dtype}{listed(lens)}"
