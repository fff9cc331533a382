"""Attention on a GPU, beside the fastest of PyTorch's scaled_dot_product_attention in the same process.

    python bench/attention.py                    the shapes below, plain and causal
    python bench/attention.py 8x16x2048x64       shapes [samples]x[heads]x[queries and keys]x[width]
    python bench/attention.py 64x32x1x128x8192   a last number are keys, where they are more than queries

Prints both times, TFLOP/s and the ratio of the times (torch / genrw: above 1 is sooner).
"""

from __future__ import annotations

import argparse
from functools import partial

import torch
from beside_torch import TYPES, Case, drawn, main

SHAPES = ["8x16x2048x64", "8x16x2048x128", "8x12x512x64", "32x12x197x64", "2x8x4096x40", "64x32x1x128x8192"]


def program(shape: tuple[int, ...], causal: bool, dtype: str) -> str:
    """Softmax of scaled scores times values; with a mask of what comes later if it is causal."""
    samples, heads, queries, width, *keys = shape
    length = keys[0] if keys else queries
    scores = f"{samples}, {heads}, {queries}, {length}"
    mask = f"""\
rows = iota[lens={{{scores}}}, axis=2]()
columns = iota[lens={{{scores}}}, axis=3]()
later = greater(columns, rows)
masked = where(later, -inf, scaled)
"""
    return f"""\
q = @param:q -> {dtype}{{{samples}, {heads}, {queries}, {width}}}
k = @param:k -> {dtype}{{{samples}, {heads}, {length}, {width}}}
v = @param:v -> {dtype}{{{samples}, {heads}, {length}, {width}}}
t = transpose[permutation={{0, 1, 3, 2}}](k)
d = dot(q, t)
scaled = mul(d, {width**-0.5})
{mask if causal else ""}p = softmax[axis=3]({"masked" if causal else "scaled"})
y = dot(p, v)
@return(y)
"""


def made(shape: tuple[int, ...], causal: bool, dtype: str) -> tuple:
    """Queries, keys and values, PyTorch's call on them, and what is expected."""
    samples, heads, queries, width, *keys = shape
    length = keys[0] if keys else queries
    q, k, v = (drawn((samples, heads, n, width), dtype) for n in (queries, length, length))

    def call(*given: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal)

    return [q, k, v], lambda: call(q, k, v), call(q[:1].float(), k[:1].float(), v[:1].float())


def cases(given: argparse.Namespace) -> list[Case]:
    """Each shape, plain, and causal where there are as many queries as keys."""
    found = []
    for name in given.shapes:
        shape = tuple(map(int, name.split("x")))
        samples, heads, queries, width, *keys = shape
        for causal in (False, True) if not keys else (False,):
            operations = 4.0 * samples * heads * queries * width * (keys[0] if keys else queries) / (2 if causal else 1)
            text = program(shape, causal, given.type)
            found.append(
                Case(f"{name}{' causal' if causal else ''}", text, operations, partial(made, shape, causal, given.type))
            )
    return found


if __name__ == "__main__":
    options = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shapes", nargs="*", default=SHAPES)
    options.add_argument("--type", default="half", choices=TYPES)
    main(__doc__ or "", cases, options)
