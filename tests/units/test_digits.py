"""Elements whose places depend on binary digits of their numbers: pairs, blocks and repeats, taken apart and put together."""

from __future__ import annotations

import random
import re
from math import prod
from typing import Any

import pytest
from rule_programs import NIBBLES, POOL, rotation
from support import check_host
from together import made

TARGETS = ("gfx942", "gfx1100", "sm_90", "host")


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
@pytest.mark.parametrize(
    ("text", "schedule"),
    [(NIBBLES.format(rows=48), {"vector": 4, "share": 4}), (POOL, {"algo": "lane", "vector": 4, "share": 4})],
    ids=["nibbles", "pool"],
)
def test_bytes_and_windows(text: str, schedule: dict[str, Any], target: str) -> None:
    assert not single_reads(text, target, schedule=schedule)
    check_host(text, target, schedule=schedule)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(12))
def test_moved_digits(seed: int, target: str) -> None:
    check_host(moves(seed), target)
