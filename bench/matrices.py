"""Products of matrices on a GPU, beside torch.matmul in the same process.

    python bench/matrices.py                     the shapes of real layers, with the schedules that are chosen
    python bench/matrices.py 4096x4096x4096      shapes MxNxK, or BxMxNxK
    python bench/matrices.py 4096x4096x4096 --tried 12
                                                 besides, the dozen schedules that are predicted to be the best, each pinned
    python bench/matrices.py --processes 12      a dozen processes lower and compile; one at a time measures
    python bench/matrices.py --drawn 60 --seed 5 --type half,bf16,float
                                                 drawn products: of any lengths, one type, and matrices turned around or not

Prints for each shape both times in microseconds, TFLOP/s, and the ratio of the times (torch / genrw: above 1 is sooner).
Results are compared with torch's in float; products of int8 with torch._int_mm, which takes two axes. Takes a GPU that CUDA
reaches, and PyTorch.
"""

from __future__ import annotations

import argparse
from functools import partial
from math import prod
from random import Random

import torch
from beside_torch import TYPES, Case, drawn, main

# tokens x features of the projections of BERT-base and -large, GPT-2, Llama 3 8B, ViT-B and -L, Whisper, at some batch sizes;
# products of attention; odd lengths
SHAPES = [
    *(
        "4096x4096x4096",
        "8192x8192x8192",
        "512x768x768",
        "512x3072x768",
        "512x768x3072",
        "4096x768x768",
        "4096x3072x768",
    ),
    *("4096x768x3072", "4096x1024x1024", "4096x4096x1024", "4096x1024x4096", "1024x2304x768", "1024x50257x768"),
    *("2048x4096x4096", "2048x6144x4096", "2048x14336x4096", "2048x4096x14336", "512x14336x4096", "512x4096x14336"),
    *("6304x768x768", "6304x3072x768", "6304x768x3072", "1576x1024x1024", "1500x384x384", "1500x1536x384"),
    *("96x512x512x64", "96x512x64x512", "16x2048x2048x128", "64x197x197x64", "1000x1000x1000", "777x333x555"),
]


def program(shape: tuple[int, ...], kind: str, dtype: str) -> str:
    """The product as a program; `kind` says of both matrices whether they lie as they are written (n) or turned around (t)."""
    *batch, m, n, k = shape
    product = "quant_dot" if dtype == "int8" else "dot"
    lines = [
        *_matrix("x", batch, m, k, kind[0], dtype),
        *_matrix("w", batch, k, n, kind[1], dtype),
        f"y = {product}(x, w)",
    ]
    return "\n".join([*lines, "@return(y)", ""])


def _matrix(name: str, batch: list[int], rows: int, columns: int, lies: str, dtype: str) -> list[str]:
    """A parameter of such a matrix, and its transpose where it lies turned around."""
    outer = "".join(f"{length}, " for length in batch)
    if lies == "n":
        return [f"{name} = @param:{name} -> {dtype}{{{outer}{rows}, {columns}}}"]
    order = ", ".join(map(str, [*range(len(batch)), len(batch) + 1, len(batch)]))
    return [
        f"t{name} = @param:{name} -> {dtype}{{{outer}{columns}, {rows}}}",
        f"{name} = transpose[permutation={{{order}}}](t{name})",
    ]


def made(shape: tuple[int, ...], kind: str, dtype: str) -> tuple:
    """Matrices, torch's product of them, and what is expected."""
    *batch, m, n, k = shape
    given = [
        drawn((*batch, *(lens if lies == "n" else lens[::-1])), dtype)
        for lens, lies in zip(((m, k), (k, n)), kind, strict=True)
    ]
    x, w = (value if lies == "n" else value.transpose(-1, -2) for value, lies in zip(given, kind, strict=True))
    if dtype == "int8":
        return given, lambda: torch._int_mm(x, w), torch.matmul(x.double(), w.double())
    wide = torch.double if dtype == "double" else torch.float
    out = torch.empty(*batch, m, n, device="cuda", dtype=x.dtype)
    return given, lambda: torch.matmul(x, w, out=out), torch.matmul(x.to(wide), w.to(wide))


def cases(given: argparse.Namespace) -> list[Case]:
    """Each shape with its matrices as they are written, and turned around; or products that are drawn."""
    if given.drawn:
        random = Random(given.seed)
        return [drawn_case(random, given.type.split(",")) for _ in range(given.drawn)]
    shapes = [tuple(map(int, shape.split("x"))) for shape in given.shapes]
    return [
        case(shape, kind, dtype)
        for dtype in given.type.split(",")
        for shape in shapes
        for kind in given.kinds.split(",")
        if dtype != "int8" or len(shape) == 3
    ]


def case(shape: tuple[int, ...], kind: str, dtype: str) -> Case:
    """A product of a shape."""
    name = f"{'x'.join(map(str, shape))} {kind} {dtype}"
    return Case(name, program(shape, kind, dtype), 2.0 * prod(shape), partial(made, shape, kind, dtype))


def drawn_case(random: Random, types: list[str]) -> Case:
    """A product of lengths of which a third are any numbers, and the others multiples of 2, 4 or 8."""
    shape = (0, 0, 0)
    while not 1e7 < prod(shape) < 4e10:
        shape = (_length(random), _length(random), _length(random))
    dtype, kind = random.choice(types), random.choice(["nn", "nt", "tn", "tt"])
    taken = shape[0] > 16 and shape[1] % 8 == shape[2] % 8 == 0  # what torch's product of bytes takes
    return case(shape, kind, dtype if dtype != "int8" or taken else "half")


def _length(random: Random) -> int:
    length, multiple = int(2 ** random.uniform(6, 12)), random.random()
    unit = next(unit for below, unit in ((0.35, 1), (0.5, 2), (0.65, 4), (1, 8)) if multiple < below)
    return length // unit * unit


if __name__ == "__main__":
    options = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shapes", nargs="*", default=SHAPES)
    options.add_argument("--kinds", default="nn,nt", help="which of both lie turned around: of nn, nt, tn, tt")
    options.add_argument("--type", default="half", help=f"of {', '.join(TYPES)}; several with commas between")
    options.add_argument("--drawn", type=int, default=0, help="how many products to draw, in place of the shapes")
    options.add_argument("--seed", type=int, default=0)
    main(__doc__ or "", cases, options)
