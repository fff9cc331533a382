"""Elements whose places depend on binary digits of their numbers: pairs, blocks and repeats, taken apart and put together."""

from __future__ import annotations

import random
import re
from math import prod
from typing import Any

import pytest
from support import check_host
from together import made

TARGETS = ("gfx942", "gfx1100", "sm_90", "host")

ROTATION = """
    x = @param:x -> {dtype}{{{lens}, {width}}}
    c = @param:c -> {dtype}{{{pairs}, 1}}
    s = @param:s -> {dtype}{{{pairs}, 1}}
    v = reshape[dims={{{lens}, {pairs}, 2}}](x)
    a = slice[axes={{{axis}}}, starts={{0}}, ends={{1}}](v)
    b = slice[axes={{{axis}}}, starts={{1}}, ends={{2}}](v)
    ac = mul(a, c)
    bs = mul(b, s)
    bc = mul(b, c)
    as = mul(a, s)
    l = sub(ac, bs)
    r = add(bc, as)
    j = concat[axis={axis}](l, r)
    y = reshape[dims={{{lens}, {width}}}](j)
    @return(y)
"""

NIBBLES = """
    x = @param:x -> uint8{48, 64}
    l = bitwise_and(x, 15)
    h = shift_right(x, 4)
    a = unsqueeze[axes={2}](l)
    b = unsqueeze[axes={2}](h)
    j = concat[axis=2](a, b)
    f = convert[target_type=half](j)
    y = reshape[dims={48, 128}](f)
    @return(y)
"""

POOL = """
    x = @param:x -> half{4, 3, 16, 32}
    r = reshape[dims={4, 3, 8, 2, 16, 2}](x)
    m = reduce_max[axes={3, 5}](r)
    y = reshape[dims={4, 3, 8, 16}](m)
    @return(y)
"""


def rotation(lens: tuple[int, ...], width: int, dtype: str = "half") -> str:
    return ROTATION.format(
        lens=", ".join(map(str, lens)), width=width, pairs=width // 2, axis=len(lens) + 1, dtype=dtype
    )


def single_reads(text: str, target: str, **options: Any) -> list[str]:
    """Elements of parameters that the kernel reads one by one."""
    return re.findall(r"\b[xcs]\[", made(text, target, **options).kernels[0].text)


def moves(seed: int) -> str:
    """A program that moves digits of elements' numbers: of blocks within rows, and of repeats."""
    rng = random.Random(seed)
    block, outer, inner = rng.choice((2, 2, 4, 8)), rng.choice((1, 3, 5)), rng.choice((8, 16, 48))
    rows = rng.choice((2, 6, 16))
    dtype = rng.choice(("half", "float", "int8", "bf16"))
    lens = (outer, rows, block, inner, block)
    order = rng.sample(range(5), 5)
    kind = rng.choice(("transpose", "slice", "repeat"))
    total = prod(lens)
    lines = [f"x = @param:x -> {dtype}{{{total}}}", f"v = reshape[dims={braces(lens)}](x)"]
    if kind == "transpose":
        lines.append(f"t = transpose[permutation={braces(order)}](v)")
    elif kind == "slice":
        start = rng.randrange(block)
        lines.append(f"t = slice[axes={{4}}, starts={{{start}}}, ends={{{start + 1}}}](v)")
        total //= block
    else:
        lines += [
            f"u = reshape[dims={braces((*lens[:3], inner, 1, block))}](v)",
            f"t = multibroadcast[out_lens={braces((*lens[:3], inner, 4, block))}](u)",
        ]
        total *= 4
    return "\n".join([*lines, f"y = reshape[dims={{{total}}}](t)", "@return(y)"])


def braces(numbers: object) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"  # type: ignore[call-overload]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("lens", "width"), [((2, 3, 16), 128), ((3, 7), 40), ((5,), 6), ((2, 5), 1000)])
def test_pairs_are_rotated(lens: tuple[int, ...], width: int, target: str) -> None:
    check_host(rotation(lens, width), target)


@pytest.mark.parametrize("dtype", ["half", "float", "bf16"])
@pytest.mark.parametrize("target", TARGETS[:3])
def test_rotated_pairs_are_read_together(dtype: str, target: str) -> None:
    text, schedule = rotation((2, 4, 32), 128, dtype), {"vector": 4, "share": 8}
    assert not single_reads(text, target, schedule=schedule)
    check_host(text, target, schedule=schedule)


@pytest.mark.parametrize("target", TARGETS[:3])
@pytest.mark.parametrize("text", [NIBBLES, POOL], ids=["nibbles", "pool"])
def test_bytes_and_windows(text: str, target: str) -> None:
    schedule = {"vector": 4, "share": 4} if text == NIBBLES else {"algo": "lane", "vector": 4, "share": 4}
    assert not single_reads(text, target, schedule=schedule)
    check_host(text, target, schedule=schedule)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(12))
def test_moved_digits(seed: int, target: str) -> None:
    check_host(moves(seed), target)
