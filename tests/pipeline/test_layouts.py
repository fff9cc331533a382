"""Arrangements of lanes are numbers: what lanes make of rows is right for any of them, without a rule that knows its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from alternatives_taken import take_only
from breadth import first_quick
from support import (
    check_host_schedules,
    check_schedules,
    differences,
    inputs_and_reference,
    load,
    lower_each,
    schedules,
)

import genrw
from genrw.grammar.diagnostics import GenrwError

EXTENTS = (2, 3, 7, 16, 33, 64, 70, 128, 257)
PROGRAMS = (
    "y = reduce_sum[axes={{{axis}}}](x)\n@return(y)",
    "y = softmax[axis={axis}](x)\n@return(y)",
    "y = argmax[axis={axis}](x)\n@return(y)",
    "m = reduce_max[axes={{{axis}}}](x)\ny = sub(x, m)\n@return(y, m)",
    "b = @param:b -> float{{1, 1}}\nc = multibroadcast[out_lens={{{lens}}}](b)\ny = reduce_sum[axes={{{axis}}}](c)\n@return(y)",
    "m = reduce_mean[axes={{{axis}}}](x)\nd = sub(x, m)\ns = reduce_max[axes={{{axis}}}](d)\n@return(s, d)",
)
TARGETS = ("gfx942", "gfx1100", "sm_90")


def layout(draw: Random, rows: int, n: int, wave: int) -> dict[str, Any]:
    """Lanes of a workgroup and of a row, side by side or apart; a share along a row or across rows; as many steps as it takes."""
    block = draw.choice([64, 256])
    lanes = draw.choice([k for k in (1, 2, 16, wave, 256) if k <= block])
    vector = draw.choice([1, 2, 4])
    apart = lanes == block or (lanes > 1 and draw.random() < 0.5)
    stride = block // lanes if apart else 1
    if draw.random() < 0.4 and (apart or lanes == 1):
        share = abreast = vector if apart else vector * draw.choice([1, 4])
    else:
        share, abreast = vector * draw.choice([1, 4]), 1
    steps = -(-n // (lanes * (share // abreast)))
    grid = -(-rows // (block // lanes * abreast))
    numbers = {"block_size": block, "lanes": lanes, "vector": vector, "share": share, "steps": steps, "grid": grid}
    return {"algo": "own", **numbers, "abreast": abreast, "lane_stride": stride}


def arranged(seed: int) -> tuple[str, list[dict[str, Any]], str]:
    """A program, some arrangements for its rows, and a target."""
    draw = Random(seed)
    lens, axis = [draw.choice(EXTENTS), draw.choice(EXTENTS)], draw.randrange(2)
    said = PROGRAMS[seed % len(PROGRAMS)].format(axis=axis, lens=f"{lens[0]}, {lens[1]}")
    target = draw.choice(TARGETS)
    wave = 64 if target == "gfx942" else 32
    found = [layout(draw, lens[1 - axis], lens[axis], wave) for _ in range(6)]
    return f"x = @param:x -> float{{{lens[0]}, {lens[1]}}}\n{said}", found, target


@pytest.mark.parametrize("seed", first_quick(range(120), quick=3, usual=24))
def test_any_arrangement_means_what_the_program_means(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay rows, however few elements they have: what is written out has none to arrange."""
    take_only(monkeypatch)
    check_schedules(*arranged(seed))


@pytest.mark.parametrize("seed", first_quick(range(120), quick=2, usual=12))
def test_kernels_of_any_arrangement_give_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch)
    check_host_schedules(*arranged(seed))


def test_families_are_names_for_numbers() -> None:
    """An arrangement that has a family's numbers, and another name, gives the family's kernel."""
    text = "x = @param:x -> float{300, 192}\ny = reduce_sum[axes={0}](x)\n@return(y)"
    numbers = {"block_size": 256, "lanes": 16, "vector": 4, "share": 4, "steps": 19, "grid": 3}
    own = {"algo": "own", **numbers, "abreast": 4, "lane_stride": 16}
    family, other = str(lower_each(text, [{"algo": "columns", **numbers}, own])).split("@module k1")
    assert family.split("\n", 1)[1].strip() == other.split("\n", 1)[1].strip()


# ---- arrangements that rules open

OWN = """
stage schedule

/// An arrangement.
rule own_arrangement
  return(xs...)
  when is_rows(space, policy) and target.wave_size > 1
  => scheduled[algo="own", block_size=256, {numbers}, steps=ceil_div(space.n, 16)](xs...)
"""
ROWS = "x = @param:x -> float{64, 48}\ny = reduce_sum[axes={1}](x)\n@return(y)\n"


def opened(folder: Path, numbers: str) -> str:
    (folder / "own.rw").write_text(OWN.format(numbers=numbers))
    return str(genrw.load(ROWS, target="gfx942", rules=[folder], schedule={"algo": "own"}).lower("gridwise"))


def test_a_rule_of_one_line_opens_an_arrangement(tmp_path: Path) -> None:
    lowered = opened(tmp_path, "lanes=16, vector=1, share=1, lane_stride=16")
    assert "steps=3, lane_stride=16, grid=4}" in lowered
    assert "gridwise_reduce[op=sum, algo=columns" in lowered


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (
            "lanes=1, vector=2, share=8, abreast=2",
            "a lane's share of 8 lies along one row or across as many, not across 2",
        ),
        (
            "lanes=16, vector=1, share=1, lane_stride=4",
            "lanes that share rows side by side stand 256 / 16 apart, not 4",
        ),
        (
            "lanes=128, vector=1, share=1",
            "128 neighbouring lanes of a row are no part of a wave, nor the whole workgroup",
        ),
        (
            "lanes=16, vector=1, share=4, abreast=4, lane_stride=16",
            "lanes that share rows have a vector of these, not 4",
        ),
        ("lanes=512, vector=1, share=1", "256 lanes of a workgroup are no whole number of rows of 512"),
        (
            "lanes=0, vector=1, share=1",
            "a kernel has at least one of lanes, elements, steps and workgroups",
        ),
        (
            "lanes=256, vector=1, share=1, abreast=0",
            "a kernel has at least one of lanes, elements, steps and workgroups",
        ),
        (
            "lanes=16, vector=1, share=1, held=99",
            "a part of a lane's share of 1 in vectors of 1, or 0 for all of it, not 99",
        ),
        ("lanes=16, vector=1, share=1, launched=0 - 1", "-1 workgroups do not take the work of 4 in turn"),
        ("lanes=16, vector=1, share=100000", "a lane has no registers for 100000 elements at a time"),
        ("lanes=16, vector=1, share=100000, held=4096", "a lane has no registers for 100000 elements at a time"),
        ("lanes=16, vector=1, share=1, resident=9", "a unit has no room for 9 workgroups of 256 lanes"),
        ("lanes=16, vector=1, share=1, from_aligned=2", "`down` and `turns` are 0 or 1, not 2, 0 and 0"),
    ],
)
def test_what_is_no_arrangement_is_refused(tmp_path: Path, numbers: str, message: str) -> None:
    with pytest.raises(GenrwError) as refused:
        opened(tmp_path, numbers)
    assert message in str(refused.value)
    assert "own.rw" in str(refused.value)


LISTING = """\
@module main [stage=gridwise, target=gfx942, schedule={{algo=own, block_size=256, {numbers}, steps=3, grid=4}}, space={{64, 48}}, axes={{1}}]
x = @param:x -> float{{64, 48}}
z = @param:z -> float{{64, 1}}
y = gridwise_reduce[op=sum, algo=subwave, reduce_elements=48](x)
copy = copy(y, z)
@return(copy)
"""


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (
            "lanes=16, vector=1, share=1, lane_stride=3",
            "lanes that share rows side by side stand 256 / 16 apart, not 3",
        ),
        ("lanes=48, vector=1, share=1", "the lanes of a row are a power of two, or a workgroup of whole waves, not 48"),
    ],
)
def test_a_header_that_is_no_arrangement_is_refused(numbers: str, message: str) -> None:
    with pytest.raises(GenrwError) as refused:
        genrw.load(LISTING.format(numbers=numbers))
    told = refused.value.diagnostics[0]
    assert told.message == message
    assert told.span is not None
    assert told.span.text.startswith("{algo=own")


def test_a_workgroup_of_parts_of_waves_is_refused() -> None:
    """Its kernel would not compile: lanes meet in waves, and in parts of these that are powers of two."""
    listing = LISTING.format(numbers="lanes=48, vector=1, share=1").replace("block_size=256", "block_size=48")
    with pytest.raises(GenrwError, match="or a workgroup of whole waves, not 48"):
        genrw.load(listing)


def test_a_header_of_an_arrangement_is_taken() -> None:
    lowered = genrw.load(LISTING.format(numbers="lanes=16, vector=1, share=1")).lower("final")
    assert "dpp_reduce[op=sum, lanes=16]" in str(lowered)


# ---- headers whose numbers were changed

KERNELS = (
    "x = @param:x -> float{37, 70}\ny = exp(x)\n@return(y)",
    "x = @param:x -> half{96, 130}\nt = transpose[permutation={1, 0}](x)\ny = relu(t)\n@return(y)",
    "x = @param:x -> float{19, 264}\ny = softmax[axis=1](x)\n@return(y)",
    "x = @param:x -> half{9, 1023}\ny = reduce_sum[axes={1}](x)\n@return(y)",
    "x = @param:x -> half{300, 64}\ny = reduce_max[axes={0}](x)\n@return(y)",
    "x = @param:x -> half{64, 96}\nw = @param:w -> half{96, 64}\ny = dot(x, w)\n@return(y)",
)


def changed_listing(seed: int) -> tuple[str, str]:
    """A program, and a listing of it under one of its schedules, one number of which was changed."""
    draw = Random(f"changed {seed}")
    program, target = KERNELS[seed % len(KERNELS)], draw.choice(TARGETS)
    by_family: dict[str, list[dict[str, Any]]] = {}
    for schedule in schedules(program, target):
        by_family.setdefault(schedule["algo"], []).append(schedule)
    schedule = dict(draw.choice(by_family[draw.choice(sorted(by_family))]))
    name = draw.choice([key for key, value in schedule.items() if isinstance(value, int)])
    value = schedule[name]
    schedule[name] = draw.choice([0, -value, value + 1, value - 1, value + 3, 2 * value, value // 2, 4 * value])
    lowered = load(program, target).lower("schedule")
    (module,) = lowered.modules
    return program, str(lowered.with_modules((replace(module, schedule=schedule),)))


@pytest.mark.parametrize("seed", first_quick(range(240), quick=6, usual=48))
def test_a_header_whose_numbers_were_changed_is_refused_or_right(seed: int) -> None:
    program, listing = changed_listing(seed)
    try:
        loaded = genrw.load(listing)
    except GenrwError as refused:
        told = refused.diagnostics[0]
        assert told.span is not None, listing
        assert told.span.source.text == listing, f"{refused}\n{listing}"
        return
    inputs, want = inputs_and_reference(program)
    lowered = loaded.lower("final")
    problems = differences(lowered, lowered.run(inputs, "interpret"), want)
    assert not problems, f"{problems}\n{listing}"
