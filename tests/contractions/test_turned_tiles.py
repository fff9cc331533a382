"""Tiles of which neighbours lie across the depth, where instructions take rows: lanes turn them in registers, and write the depths
of each row together, to banks that no other lane asks for at the time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from breadth import spread
from support import check_host_schedules, load, shipped
from tiled_cases import Product, tiled_schedules

pytestmark = pytest.mark.few(2)

BANKS, BANK_BYTES, ACCESS_BYTES, HALF_BYTES = 32, 4, 128, 2
"""Banks of workgroup memory, the bytes that each gives at a time, what lanes access at a time, and an element."""
WAYS = {"first": (True, False), "second": (False, True), "both": (True, True)}
"""Which operands lie across the depth."""
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90")
STORE = re.compile(r"gen::turned_store<\d+, (\d+), \d+>\(lds, (.*), \w+\);")


def of_rows(target: str) -> dict[str, list[str]]:
    """The instructions of a target whose lanes hold rows, by the types that they multiply."""
    found: dict[str, list[str]] = {}
    for name in shipped().targets[target].values["matrices"]:
        instruction = shipped().instructions[name]
        if instruction.values["memory"] == 0 and instruction.values["lanes"] > 1 and not any(instruction.rows_together):
            found.setdefault(instruction.values["operand"], []).append(name)
    return found


PAIRS = [(dtype, target) for target in TARGETS for dtype in of_rows(target)]


def product(m: int, k: int, n: int, way: str, dtype: str) -> str:
    first, second = WAYS[way]
    return Product(m, k, n, turned=(first, not second)).case(np.random.default_rng(0), dtype).text


def tiled(text: str, dtype: str, target: str) -> list[Mapping[str, Any]]:
    """The schedules of a product by such instructions."""
    return [s for s in tiled_schedules(load(text, target)) if s["instruction"] in of_rows(target)[dtype]]


def places(text: str, lanes: int) -> list[tuple[int, list[int]]]:
    """Of each store of turned rows in a kernel of one step: how many depths are written together, and where the first workgroup's lanes
    write their first row."""
    found = []
    for lane in range(lanes):
        known: dict[str, int] = {}
        for line in text.splitlines():
            made, store = re.match(r"    const int (\w+) = (.*);$", line), STORE.search(line)
            said = made[2] if made else store[2] if store else None
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
                found.append((int(store[1]), value))
    stores = len(found) // lanes
    assert stores * lanes == len(found)
    return [(found[i][0], [value for _, value in found[i::stores]]) for i in range(stores)]


def ways_of_banks(starts: list[int], depths: int) -> int:
    """How many of the lanes that access workgroup memory together ask one bank for different places."""
    width = min(16, depths * HALF_BYTES)
    most = 0
    for first in range(0, len(starts), ACCESS_BYTES // width):
        asked: dict[int, set[int]] = {}
        for start in starts[first : first + ACCESS_BYTES // width]:
            for word in range(start * HALF_BYTES // BANK_BYTES, (start * HALF_BYTES + width - 1) // BANK_BYTES + 1):
                asked.setdefault(word % BANKS, set()).add(word)
        most = max(most, *map(len, asked.values()))
    return most


@pytest.mark.parametrize(("way", "pair"), spread([*WAYS], PAIRS))
def test_kernels_compute_the_same_on_the_cpu(way: str, pair: tuple[str, str]) -> None:
    dtype, target = pair
    draw = Random(f"{way}/{dtype}/{target}")
    text = product(draw.choice((45, 64, 97)), draw.choice((24, 70, 200)), draw.choice((33, 64, 130)), way, dtype)
    schedules = tiled(text, dtype, target)
    assert schedules
    check_host_schedules(text, draw.sample(schedules, min(3, len(schedules))), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", WAYS)
def test_rows_of_halves_are_written_to_different_banks(way: str, target: str) -> None:
    """Whole accesses meet no bank twice, but for sides of so few rows that lanes go on in the depth; narrower ones, of more lanes, as
    often as these are more."""
    text = product(256, 32, 256, way, "half")
    of_one_step = [s for s in tiled(text, "half", target) if s["steps"] == 1]
    assert of_one_step
    for schedule in Random(f"{way}/{target}").sample(of_one_step, min(4, len(of_one_step))):
        (kernel,) = load(text, target, schedule=schedule).kernels()
        written = places(kernel.text, schedule["block_size"])
        assert len(written) == sum(WAYS[way]), kernel.text
        for depths, starts in written:
            more = max(1, 16 // (HALF_BYTES * depths)) * (2 if min(schedule["tile"][:2]) < 64 else 1)
            assert ways_of_banks(starts, depths) <= more, (schedule, kernel.text)
