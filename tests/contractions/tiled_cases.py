"""Contractions of lengths at and beside powers of two, for schedules of tiles: products of matrices with what may stand before
and after them, and convolutions."""

from __future__ import annotations

from random import Random

import numpy as np
import references
from cases import Case, whole

LENGTHS = (17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
"""Lengths of the sides of products."""


def tiled_product(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """A product {batch …, m, k} times {batch …, k, n} of whole numbers; either matrix may lie turned around."""
    batch = random.choice(((), (), (2,), (2, 3)))
    m, k, n = (random.choice(LENGTHS) for _ in range(3))
    x, w = whole(rng, dtype, (*batch, m, k)), whole(rng, dtype, (*batch, k, n))
    b = whole(rng, dtype, (n,))
    lines, inputs = [], {"b": b}
    for name, value in (("x", x), ("w", w)):
        if random.random() < 0.5:
            lines.append(f"{name} = @param:{name} -> {_type(dtype, value.shape)}")
            inputs[name] = value
        else:
            turned = np.ascontiguousarray(value.swapaxes(-1, -2))
            order = [*range(len(batch)), len(batch) + 1, len(batch)]
            lines.append(f"{name}_turned = @param:{name}_turned -> {_type(dtype, turned.shape)}")
            lines.append(f"{name} = transpose[permutation={_list(order)}]({name}_turned)")
            inputs[f"{name}_turned"] = turned
    first, result = "x", references.dot(x, w)
    if random.random() < 0.5:
        lines.append("r = relu(x)")
        first, result = "r", references.dot(np.maximum(x, 0), w)
    lines.append(f"b = @param:b -> {_type(dtype, b.shape)}")
    lines.append(f"d = dot({first}, w)")
    if random.random() < 0.5:
        lines += ["a = add(d, b)", "z = relu(a)"]
        result = np.maximum(result + b.astype(result.dtype), 0)
    else:
        lines.append("z = sub(d, b)")
        result = result - b.astype(result.dtype)
    return Case("\n".join([*lines, "@return(z)"]), inputs, result, dtype)


def tiled_convolution(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """A convolution of images whose channels and places fill tiles, or do not."""
    group = random.choice((1, 1, 2))
    inner, outer = group * random.choice((3, 8, 20)), group * random.choice((9, 16, 33))
    window, size = random.choice(((1, 1), (3, 3), (1, 3))), (random.choice((7, 8)), random.choice((8, 9)))
    padding, stride, dilation = ([random.choice(c) for _ in range(2)] for c in ((0, 1), (1, 1, 2), (1, 1, 2)))
    x = whole(rng, dtype, (random.choice((1, 3)), inner, *size))
    w = whole(rng, dtype, (outer, inner // group, *window))
    lists = f"padding={_list(padding)}, stride={_list(stride)}, dilation={_list(dilation)}, group={group}"
    lines = [
        f"x = @param:x -> {_type(dtype, x.shape)}",
        f"w = @param:w -> {_type(dtype, w.shape)}",
        f"z = convolution[{lists}](x, w)",
        "@return(z)",
    ]
    result = references.convolution(x, w, padding, stride, dilation, group)
    return Case("\n".join(lines), {"x": x, "w": w}, result, dtype)


def _type(dtype: str, lens: tuple[int, ...]) -> str:
    return f"{dtype}{_list(lens)}"


def _list(numbers: object) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"  # type: ignore[call-overload]
