"""Parameters that lie in memory in any order, with gaps or repeats: what is done to them is right at every stage, and kernels
read their memory in order."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from breadth import spread
from support import check_every_stage, check_host, load
from together import made

TARGETS = ["gfx942", "gfx1100", "sm_90", "host"]
MOVES = [
    "relu(x)",
    "add(x, b)",
    "sub(b, x)",
    "slice[axes={{{last}}}, starts={{1}}, ends={{3}}](x)",
    "pad[pads={{{pads}}}](x)",
    "reverse[axes={{0, {last}}}](x)",
    "gather[axis=0](x, i)",
    "transpose[permutation={{{turned}}}](x)",
    "reduce_sum[axes={{0}}](x)",
    "reduce_max[axes={{{last}}}](x)",
    "softmax[axis={last}](x)",
    "argmax[axis={last}](x)",
    "concat[axis=0](x, x)",
]


def strided(random: Random) -> tuple[list[int], list[int]]:
    """Lengths with strides in any order: some axes have gaps behind them, some repeat."""
    lens = [random.choice((1, 3, 4, 8, 16, 33, 70)) for _ in range(random.randint(1, 3))]
    lens.append(random.choice((4, 5, 8, 33)))
    strides, step = [0] * len(lens), 1
    for d in random.sample(range(len(lens)), len(lens)):
        if random.random() < 0.85:
            strides[d] = step
            step *= lens[d] + random.choice((0, 0, 0, 1, 8))
    return lens, strides


def program(seed: int) -> str:
    """A parameter with strides, and a few operations on it."""
    random = Random(seed)
    lens, strides = strided(random)
    rank, dtype = len(lens), random.choice(("float", "half", "int32"))
    moves = [move for move in MOVES if dtype != "int32" or "softmax" not in move]
    move = random.choice(moves).format(
        last=rank - 1,
        pads=_shown([random.randint(0, 2) for _ in range(2 * rank)]),
        turned=_shown(random.sample(range(rank), rank)),
    )
    beside = [n if random.random() < 0.5 else 1 for n in lens]
    return (
        f"x = @param:x -> {dtype}{{{_shown(lens)}}}, {{{_shown(strides)}}}\n"
        f"b = @param:b -> {dtype}{{{_shown(beside)}}}\n"
        "i = @param:i -> int64{5}\n"
        f"y = {move}\nz = {random.choice(('abs(y)', 'neg(y)', 'mul(y, 2)'))}\n@return(z)\n"
    )


def _shown(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


@pytest.mark.parametrize(("seed", "target"), spread(range(60), TARGETS, quick=8))
def test_any_strides_mean_the_same_at_every_stage(seed: int, target: str) -> None:
    check_every_stage(program(seed), target, seed)


@pytest.mark.parametrize(("seed", "target"), spread(range(100, 116), TARGETS, quick=4))
def test_any_strides_on_the_host(seed: int, target: str) -> None:
    check_host(program(seed), target, seed)


def printed(text: str, **schedule: object) -> str:
    """The text of a program's kernels."""
    return "\n".join(kernel.text for kernel in made(text, "sm_90", schedule=schedule).kernels)


def test_rows_across_memory_are_columns_along_it() -> None:
    text = "x = @param:x -> half{512, 4096}, {1, 512}\ny = reduce_max[axes={1}](x)\n@return(y)\n"
    assert "gen::reduce_parts<max_float" in printed(text, algo="columns")


def test_what_lies_across_memory_is_turned_in_workgroup_memory() -> None:
    text = "x = @param:x -> float{2048, 1024}, {1, 2048}\ny = relu(x)\n@return(y)\n"
    assert "GEN_LDS(float" in printed(text)


def test_what_repeats_is_a_broadcast() -> None:
    text = "x = @param:x -> float{4096, 8}, {8, 0}\ny = reduce_sum[axes={0}](x)\n@return(y)\n"
    stages = {stage: str(lowered) for stage, lowered in made(text, "sm_90").each_stage()}
    assert "float{4096, 1}, {8, 0}" in stages["simplify"]


def test_padded_rows_stay_as_they_are() -> None:
    text = "x = @param:x -> float{2048, 1000}, {1024, 1}\ny = relu(x)\n@return(y)\n"
    stages = {stage: str(lowered) for stage, lowered in made(text, "sm_90").each_stage()}
    assert "transpose" not in stages["simplify"]


@pytest.mark.parametrize("strides", ["{1, 2}", "{3, 1}", "{0, 1}", "{1, 1}", "{9, 4}"])
def test_constants_are_packed(strides: str) -> None:
    """Their elements are written row by row, whatever strides their type is written with."""
    text = f"c = @literal{{1, 2, 3, 4, 5, 6}} -> int32{{2, 3}}, {strides}\ny = add(c, c)\n@return(y, c)\n"
    twice, itself = load(text, "gfx942").run({}).values()
    assert twice.tolist() == [[2, 4, 6], [8, 10, 12]]
    assert itself.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("target", ["gfx942", "host"])
@pytest.mark.parametrize(
    ("lens", "strides"),
    [((3, 4), (1 << 30, 1)), ((2, 4), (3_000_000_000, 1)), ((8, 4), (1 << 29, 1)), ((4, 8), (1, 1 << 29))],
)  # fmt: skip
def test_rows_further_apart_than_32_bits_count(lens: tuple[int, int], strides: tuple[int, int], target: str) -> None:
    """The memory between them is never touched, so it takes none."""
    memory = np.zeros(1 + sum((n - 1) * s for n, s in zip(lens, strides, strict=True)), np.int8)
    x = np.lib.stride_tricks.as_strided(memory, lens, strides)
    x[...] = np.arange(32, dtype=np.int8)[: x.size].reshape(lens)
    described = ", ".join("{" + ", ".join(map(str, numbers)) + "}" for numbers in (lens, strides))
    y = load(f"x = @param:x -> int8{described}\ny = add(x, 1)\n@return(y)\n", target).run({"x": x})["y"]
    np.testing.assert_array_equal(y, x + 1)
