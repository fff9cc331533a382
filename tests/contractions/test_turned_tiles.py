"""Tiles of which neighbours lie across the depth, where instructions take rows: lanes turn them in registers, and write the depths
of each row together, to banks that no other lane asks for at the time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from breadth import spread
from support import check_host_schedules, load
from tiled_cases import tiled_schedules

pytestmark = pytest.mark.few(2)

BANKS, BANK_BYTES, ACCESS_BYTES = 32, 4, 128
"""Banks of workgroup memory, the bytes that each gives at a time, and what lanes access at a time."""
WAYS = {"first": (True, False), "second": (False, True), "both": (True, True)}
"""Which operands lie across the depth."""
SIZES = {"half": 2, "bf16": 2, "float": 4, "int8": 1, "double": 8}
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90")
STORE = re.compile(r"gen::turned_store<(\d+), (\d+), (\d+)>\(lds, (.*), \w+\);")


def product(m: int, n: int, k: int, way: str, dtype: str) -> str:
    first, second = WAYS[way]
    lines = [
        f"px = @param:px -> {dtype}{{{f'{k}, {m}' if first else f'{m}, {k}'}}}",
        f"py = @param:py -> {dtype}{{{f'{k}, {n}' if second else f'{n}, {k}'}}}",
        f"x = transpose[permutation={'{1, 0}' if first else '{0, 1}'}](px)",
        f"y = transpose[permutation={'{0, 1}' if second else '{1, 0}'}](py)",
        f"z = {'quant_dot' if dtype == 'int8' else 'dot'}(x, y)",
        "@return(z)",
    ]
    return "\n".join(lines) + "\n"


def of_rows(text: str, target: str) -> list[Mapping[str, Any]]:
    """The schedules of a product by instructions whose lanes hold rows."""
    return [s for s in tiled_schedules(load(text, target)) if not s["instruction"].startswith(("wgmma", "fma"))]


def places(text: str, lanes: int) -> list[tuple[int, list[int]]]:
    """Of each store of turned rows in a kernel of one step: how many depths are written together, and where the first workgroup's lanes
    write their first row."""
    found = []
    for lane in range(lanes):
        known: dict[str, int] = {}
        for line in text.splitlines():
            made, store = re.match(r"    const int (\w+) = (.*);$", line), STORE.search(line)
            said = made[2] if made else store[4] if store else None
            if said is None:
                continue
            said = said.replace("gen::local_id()", str(lane)).replace("gen::workgroup_id()", "0").replace("/", "//")
            try:
                value = eval(said, {"__builtins__": {}}, known)
            except (NameError, SyntaxError, AttributeError):
                continue  # of nothing that a place is made of
            if made:
                known[made[1]] = value
            elif store:
                found.append((int(store[2]), lane, value))
    stores = len(found) // lanes
    assert stores * lanes == len(found)
    return [(found[i][0], [value for _, _, value in found[i::stores]]) for i in range(stores)]


def ways_of_banks(starts: list[int], depths: int, size: int) -> int:
    """How many of the lanes that access workgroup memory together ask one bank for different places."""
    width = min(16, depths * size)
    most = 0
    for first in range(0, len(starts), ACCESS_BYTES // width):
        asked: dict[int, set[int]] = {}
        for start in starts[first : first + ACCESS_BYTES // width]:
            for word in range(start * size // BANK_BYTES, (start * size + width - 1) // BANK_BYTES + 1):
                asked.setdefault(word % BANKS, set()).add(word)
        most = max(most, *map(len, asked.values()))
    return most


@pytest.mark.parametrize(("way", "dtype", "target"), spread([*WAYS], [*SIZES], TARGETS))
def test_kernels_compute_the_same_on_the_cpu(way: str, dtype: str, target: str) -> None:
    draw = Random(f"{way}/{dtype}/{target}")
    text = product(draw.choice((45, 64, 97)), draw.choice((33, 64, 130)), draw.choice((24, 70, 200)), way, dtype)
    tiled = of_rows(text, target)
    if tiled:
        check_host_schedules(text, draw.sample(tiled, min(3, len(tiled))), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", WAYS)
def test_rows_of_halves_are_written_to_different_banks(way: str, target: str) -> None:
    """Whole accesses meet no bank twice, but for sides of so few rows that lanes go on in the depth; narrower ones, of more lanes, as
    often as these are more."""
    text = product(256, 256, 32, way, "half")
    tiled = [s for s in of_rows(text, target) if s["steps"] == 1]
    assert tiled
    for schedule in Random(f"{way}/{target}").sample(tiled, min(4, len(tiled))):
        (kernel,) = load(text, target, schedule=schedule).kernels()
        written = places(kernel.text, schedule["block_size"])
        assert len(written) == sum(WAYS[way]), kernel.text
        for depths, starts in written:
            more = max(1, 16 // (2 * depths)) * (2 if min(schedule["tile"][:2]) < 64 else 1)
            assert ways_of_banks(starts, depths, 2) <= more, (schedule, kernel.text)
