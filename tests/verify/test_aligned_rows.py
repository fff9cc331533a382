"""Rows that begin anywhere in a vector, in chunks that are aligned: no access outside memory, no element lost."""

from __future__ import annotations

from typing import Any

import pytest
from breadth import first_quick, spread
from programs import softmax_program
from support import (
    AMD_TARGETS,
    WAVE32,
    WAVE64,
    check_compiles,
    check_every_stage,
    check_host,
    check_schedules,
    differences,
    inputs_and_reference,
    load,
    lower_each,
    schedules,
)

from genrw.codegen.runtime.devices import HostDevice

EXTENTS = (1, 2, 3, 7, 9, 33, 63, 65, 127, 129, 255, 257, 1023, 1025)
ROWS = 17
TYPES = ("half", "bf16", "float", "int8", "double")
WIDE = softmax_program("half", (4096, 50257), 1)


def two_folds(dtype: str, n: int) -> str:
    """A fold above another, a position, a result of each form; 17 rows begin at all places of a vector."""
    return f"""
        x = @param:x -> {dtype}{{{ROWS}, {n}}}
        m = reduce_max[axes={{1}}](x)
        d = sub(x, m)
        at = argmax[axis=1](x)
        s = reduce_sum[axes={{1}}](d)
        y = add(d, s)
        @return(y, at)"""


def many_operands(n: int) -> str:
    """Operands of other layouts beside one in step with the rows: repeated, strided, padded, transposed."""
    return f"""
        x = @param:x -> half{{{ROWS}, {n}}}
        w = @param:w -> half{{{n}}}
        b = @param:b -> float{{{ROWS}, 1}}
        a = @param:a -> half{{{ROWS}, {n}}}, {{{n + 3}, 1}}
        p = @param:p -> half{{{ROWS}, {n - 2}}}
        t = @param:t -> half{{{n}, {ROWS}}}
        padded = pad[pads={{0, 1, 0, 1}}](p)
        turned = transpose[permutation={{1, 0}}](t)
        u = add(x, w)
        v = add(a, padded)
        c = convert[target_type=float](u)
        e = convert[target_type=float](v)
        f = convert[target_type=float](turned)
        h = add(c, e)
        k = add(f, b)
        g = add(h, k)
        m = reduce_mean[axes={{1}}](g)
        y = sub(g, m)
        z = convert[target_type=half](y)
        repeated = multibroadcast[out_lens={{{ROWS}, {n}}}](m)
        @return(y, z, repeated)"""


def of_aligned(text: str, target: str) -> list[dict[str, Any]]:
    """The schedules of a program that read rows in aligned chunks."""
    return [s for s in schedules(text, target) if s["algo"] == "aligned"]


def form(n: int, item: int, block: int, chunks: int) -> dict[str, Any]:
    """A schedule of rows of n elements in aligned chunks, whatever rules would open."""
    vector = 16 // item
    share = chunks * vector
    steps = -(-(n + vector - 1) // (block * share))
    return {
        "algo": "aligned",
        "block_size": block,
        "lanes": block,
        "vector": vector,
        "share": share,
        "steps": steps,
        "grid": ROWS,
    }


@pytest.mark.parametrize(("n", "dtype", "target"), spread(EXTENTS, TYPES, (WAVE64, WAVE32)))
def test_rows_of_any_length(n: int, dtype: str, target: str) -> None:
    """Under every such schedule that rules open, and under others, for rows shorter than a vector too."""
    text = two_folds(dtype, n)
    item = {"half": 2, "bf16": 2, "float": 4, "int8": 1, "double": 8}[dtype]
    wave = 64 if target == WAVE64 else 32
    check_schedules(text, [*of_aligned(text, target), form(n, item, wave, 1), form(n, item, 2 * wave, 2)], target)


@pytest.mark.parametrize(("n", "target"), spread([65, 257, 1023], [WAVE64, WAVE32]))
def test_operands_of_other_layouts(n: int, target: str) -> None:
    text = many_operands(n)
    check_schedules(text, [*of_aligned(text, target), form(n, 2, 64, 1), form(n, 2, 128, 2)], target)


def test_every_stage() -> None:
    text = many_operands(1023)
    check_every_stage(text, WAVE64, schedule=of_aligned(text, WAVE64)[0])


@pytest.mark.parametrize(("dtype", "n"), spread(TYPES, [1025, 2051]))
def test_printed_kernels(n: int, dtype: str) -> None:
    text = two_folds(dtype, n)
    found = of_aligned(text, WAVE64)
    assert found
    check_host(text, WAVE64, schedule=found[0])


@pytest.mark.parametrize("n", first_quick([1, 2, 3, 7, 9, 63, 129]))
def test_printed_kernels_of_short_rows(n: int) -> None:
    """The memory ends in a row's first chunk, and a chunk holds several rows."""
    text = two_folds("half", n)
    inputs, want = inputs_and_reference(text)
    program = lower_each(text, [form(n, 2, 64, 2)], WAVE64)
    run = HostDevice().load(program, program.kernels())
    for order in (0, 1):
        assert not differences(program, run(inputs, threads=1, order=order), want)


def test_printed_kernels_of_other_layouts() -> None:
    text = many_operands(1029)
    check_host(text, WAVE32, schedule=of_aligned(text, WAVE32)[0])


def test_rows_walked_in_steps() -> None:
    """Rows that registers do not hold: the last step's chunks end past the row, some begin past it."""
    text = softmax_program("half", (5, 20001), 1)
    found = [s for s in of_aligned(text, WAVE64) if s["steps"] > 1]
    assert found
    check_schedules(text, found, WAVE64)
    check_host(text, WAVE64, schedule=found[0])


def test_rows_of_which_registers_hold_a_part() -> None:
    """The CPU's kernels hold all of a lane's elements, and compute again what the GPU's do."""
    text = softmax_program("half", (ROWS, 4091), 1)
    schedule = form(4091, 2, 64, 9) | {"resident": 2, "held": 16}
    check_schedules(text, [schedule], WAVE64)
    inputs, want = inputs_and_reference(text)
    program = lower_each(text, [schedule], WAVE64)
    (kernel,) = program.kernels()
    assert "gen::row_load<72, 512, 8, 7, 16, 64>" in kernel.text
    assert not differences(program, HostDevice().load(program, [kernel])(inputs), want)


def test_value_of_a_row_in_all_its_places() -> None:
    """One value is stored in every chunk, where nothing else is computed element by element."""
    text = f"""
        x = @param:x -> float{{{ROWS}, 259}}
        s = reduce_sum[axes={{1}}](x)
        y = multibroadcast[out_lens={{{ROWS}, 259}}](s)
        @return(y)"""
    found = of_aligned(text, WAVE64)
    check_schedules(text, found, WAVE64)
    check_host(text, WAVE64, schedule=found[0])


@pytest.mark.parametrize("lens", ["5, 3, 7, 31", "5, 1, 651, 1"])
def test_rows_of_several_axes(lens: str) -> None:
    text = f"""
        x = @param:x -> half{{{lens}}}
        s = reduce_sum[axes={{1, 2, 3}}](x)
        y = sub(x, s)
        @return(y)"""
    found = of_aligned(text, WAVE64)
    assert found
    check_schedules(text, found, WAVE64)
    check_host(text, WAVE64, schedule=found[0])


def test_not_where_vectors_make_up_rows_or_rows_are_apart() -> None:
    assert not of_aligned(softmax_program("half", (ROWS, 1024), 1), WAVE64)
    assert not of_aligned(softmax_program("half", (1023, ROWS), 0), WAVE64)
    assert not of_aligned(softmax_program("half", (3, 1023, 5), 1), WAVE64)


@pytest.mark.parametrize(
    ("target", "reads", "writes"),
    [
        (WAVE64, "gen::row_load<104, 4096, 8, 12>", "gen::row_store<4096, 8, 12>"),
        ("sm_90", "gen::row_load<200, 2048, 8, 24, 176, 256>", "gen::row_store<2048, 8, 24>"),
    ],
)
def test_taken_for_wide_rows(target: str, reads: str, writes: str) -> None:
    """The cheapest for half 4096 x 50257; whole vectors are read and written, and rows are kept: in registers, or all but
    the last elements of a lane, so that a unit has room for two rows."""
    best = schedules(WIDE, target)[0]
    assert (best["algo"], best["steps"], best["vector"]) == ("aligned", 1, 8)
    text = load(WIDE, target).kernels()[0].text
    assert reads in text
    assert writes in text


@pytest.mark.parametrize("target", first_quick(AMD_TARGETS))
def test_wide_rows_need_no_scratch(target: str) -> None:
    check_compiles(WIDE, target)
