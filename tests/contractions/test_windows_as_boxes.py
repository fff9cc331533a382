"""Windows over pictures whose channels lie last: tiles of them are boxes, too, which an engine of the GPU copies."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

import numpy as np
import pytest
import references
from alternatives_taken import take_only
from cases import Case, Geometry, case_of_last, geometry, whole
from support import load
from together import Made, compile_together

ORDERS = (0, 1, 7)
"""Of groups and waves: in turn, and shuffled, where copies arrive as late as they may."""
DRAWN = 14
"""Cases of each direction."""
SUFFIXES = {"half": "f16", "bf16": "bf16"}
Drawn = Callable[[Random, np.random.Generator, str], Case]


def _moves(random: Random) -> tuple[Geometry, int, int, int, int]:
    """How windows move that the engine's numbers can tell; samples, groups, channels of a group, and what is made of them."""
    while True:
        where = geometry(random)
        if max(where.lens) <= 17:
            sizes = random.choice((1, 2, 3)), random.choice((1, 1, 1, 2)), random.choice((64, 128, 192))
            return where, *sizes, random.choice((8, 64, 72, 136))


def forward(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    where, samples, groups, channels, out = _moves(random)
    x = whole(rng, dtype, (samples, groups * channels, *where.lens))
    w = whole(rng, dtype, (groups * out, channels, *where.lengths))
    result = references.convolution(x, w, *where.numbers, groups)
    return case_of_last(
        {"x": (dtype, x), "w": (dtype, w)}, f"convolution[{where.text}, group={groups}](x, w)", result, dtype
    )


def to_the_data(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    while True:
        where, samples, groups, channels, out = _moves(random)
        padding, stride, dilation = where.numbers
        both = padding if len(padding) == 2 * len(where.lens) else [*padding, *padding]
        reach = [(where.lens[d] - 1) * stride[d] + (where.lengths[d] - 1) * dilation[d] + 1 for d in range(len(stride))]
        if all(n > both[d] + both[d + len(reach)] for d, n in enumerate(reach)):
            break
    x = whole(rng, dtype, (samples, groups * channels, *where.lens))
    w = whole(rng, dtype, (groups * channels, out, *where.lengths))
    result = references.backwards_data(x, w, *where.numbers, groups, [0] * len(where.lens))
    call = f"convolution_backwards_data[{where.text}, group={groups}](x, w)"
    return case_of_last({"x": (dtype, x), "w": (dtype, w)}, call, result, dtype)


def to_the_weights(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    while True:
        where, samples, groups, channels, out = _moves(random)
        if samples * prod(where.places) >= 32:  # else no tile is as deep
            break
    x = whole(rng, dtype, (samples, groups * channels, *where.lens))
    y = whole(rng, dtype, (samples, groups * out, *where.places))
    result = references.backwards_weights(x, y, where.lengths, *where.numbers, groups)
    lengths = "{" + ", ".join(map(str, where.lengths)) + "}"
    call = f"convolution_backwards_weights[{where.text}, lengths={lengths}, group={groups}](x, y)"
    return case_of_last({"x": (dtype, x), "y": (dtype, y)}, call, result, dtype)


DIRECTIONS: tuple[Drawn, ...] = (forward, to_the_data, to_the_weights)


def drawn(direction: Drawn, seed: int) -> tuple[Case, Made]:
    """A convolution with a schedule of tiles that instructions read in workgroup memory."""
    random = Random(f"{direction.__name__}/{seed}")
    dtype = random.choice([*SUFFIXES])
    case = direction(random, np.random.default_rng(seed), dtype)
    pins = {"algo": "matrix", "instruction": f"wgmma_m64n64k16_{SUFFIXES[dtype]}"}
    return case, Made(load(case.text, "sm_90", schedule=pins))


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_drawn_convolutions(monkeypatch: pytest.MonkeyPatch, direction: Drawn) -> None:
    """Some have windows that are boxes; what the engine cannot tell is brought by lanes."""
    take_only(monkeypatch)
    cases = [drawn(direction, seed) for seed in range(DRAWN)]
    of_windows = sum("copy_windows" in made.kernels[-1].text for _, made in cases)
    assert of_windows >= DRAWN // 7
    compile_together([made for _, made in cases])
    for case, made in cases:
        for order in ORDERS:
            case.check(made.on_the_host(case.inputs, threads=1, order=order)["z"])


TURNED = """
x_last = @param:x -> half{3, 3, 1, 1, 64}
x = transpose[permutation={0, 4, 1, 2, 3}](x_last)
w_last = @param:w -> half{64, 1, 3, 1, 64}
w = transpose[permutation={0, 4, 1, 2, 3}](w_last)
c = convolution_backwards_data[padding={1, 1, 0}, stride={2, 1, 4}, dilation={2, 1, 1}](x, w)
z = transpose[permutation={0, 2, 3, 4, 1}](c)
@return(z)
"""


def test_chunks_of_which_a_step_has_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which places a window has here depends on the step and on the row: masks of both are known to be the same for all chunks."""
    take_only(monkeypatch)
    rng = np.random.default_rng(3)
    x, w = whole(rng, "half", (3, 3, 1, 1, 64)), whole(rng, "half", (64, 1, 3, 1, 64))
    made = Made(load(TURNED, "sm_90", schedule={"algo": "matrix", "instruction": "wgmma_m64n64k16_f16"}))
    first = [np.moveaxis(a, -1, 1) for a in (x, w)]
    wanted = references.backwards_data(*first, [1, 1, 0], [2, 1, 4], [2, 1, 1], 1, [0, 0, 0])
    got = made.on_the_host({"x": x, "w": w}, threads=1)["z"]
    np.testing.assert_array_equal(got, np.moveaxis(wanted, 1, -1).astype(np.float16))


@pytest.mark.few(1)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_stage_computes_the_same(monkeypatch: pytest.MonkeyPatch, direction: Drawn) -> None:
    take_only(monkeypatch)
    tried = 0
    for seed in range(100, 200):
        case, made = drawn(direction, seed)
        small = sum(x.size for x in case.inputs.values()) < 30_000
        if tried < 2 and small and "copy_windows" in made.kernels[-1].text:
            for _stage, lowered in made.program.remaining_stages():
                case.check(lowered.run(case.inputs, "interpret")["z"])
            tried += 1
    assert tried == 2
