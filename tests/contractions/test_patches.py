"""Folds whose rows share what they read, by lanes that take patches of rows: at every stage, and as kernels on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
import references
from breadth import spread
from cases import Case, Made, case, case_of_last, whole
from rule_programs import PATCHES
from support import check_built, check_every_stage, check_host, listed, load
from together import compile_together
from together import made as made_of

pytestmark = pytest.mark.few(1)

TARGETS = ("sm_90", "gfx942", "gfx1100")
TYPES = ("half", "bf16", "float", "int8")
ORDERS = (0, 1, 7)
"""Of groups and waves: in turn, and shuffled."""
AT_STAGES, AS_KERNELS = 2, 2
"""Cases of a target and a kind."""


def patched_schedules(text: str, target: str) -> list[Mapping[str, Any]]:
    """The schedules whose lanes take patches, in a fixed order; none of a program of several kernels."""
    rated, *others = [*load(text, target).lower("schedule").trace.schedules.values(), ()]
    if len(others) > 1:
        return []
    return sorted((schedule for _, schedule, _ in rated if schedule.get("patch", 0)), key=str)


def _sizes(random: Random) -> tuple[list[int], list[int]]:
    """Places and lengths of windows: places that patches fill, and rows that are shorter than workgroups and longer."""
    places = [random.choice((2, 4, 7, 8, 14, 18)), random.choice((4, 7, 8, 9, 12, 22))]
    return places, [random.choice((1, 2, 3, 5)), random.choice((2, 3, 3, 5))]


def _moving(random: Random) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Sizes, lengths, padding of both ends, strides and dilations of windows that give the places asked for."""
    while True:
        places, lengths = _sizes(random)
        stride, dilation = ([random.choice(c) for _ in range(2)] for c in ((1, 1, 2), (1, 1, 2)))
        padding = [random.choice((0, 1, 1, 2)) for _ in range(4)]
        lens = [
            (places[d] - 1) * stride[d] + (lengths[d] - 1) * dilation[d] + 1 - padding[d] - padding[d + 2]
            for d in range(2)
        ]
        if min(lens) > 0:
            return lens, lengths, padding, stride, dilation


def depthwise(random: Random, rng: np.random.Generator, dtype: str, made: Made = case) -> Case:
    """A convolution whose channels stay apart."""
    lens, lengths, padding, stride, dilation = _moving(random)
    channels = random.choice((1, 3, 4, 8, 24))
    x, w = whole(rng, dtype, (2, channels, *lens)), whole(rng, dtype, (channels, 1, *lengths))
    moves = f"padding={listed(padding)}, stride={listed(stride)}, dilation={listed(dilation)}"
    result = references.convolution(x, w, padding, stride, dilation, channels)
    return made({"x": (dtype, x), "w": (dtype, w)}, f"convolution[{moves}, group={channels}](x, w)", result, dtype)


def depthwise_of_last(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    return depthwise(random, rng, dtype, case_of_last)


def gradient(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """The gradient to the data of such a convolution."""
    while True:
        places, lengths = _sizes(random)
        padding, stride = ([random.choice(c) for _ in range(2)] for c in ((0, 1), (1, 1, 2)))
        if all((places[d] - 1) * stride[d] + lengths[d] > 2 * padding[d] for d in range(2)):
            break
    channels, made = random.choice((3, 4, 8)), random.choice((case, case_of_last))
    x, w = whole(rng, dtype, (2, channels, *places)), whole(rng, dtype, (channels, 1, *lengths))
    moves = f"padding={listed(padding)}, stride={listed(stride)}, group={channels}"
    result = references.backwards_data(x, w, padding, stride, [1, 1], channels, [0, 0])
    return made({"x": (dtype, x), "w": (dtype, w)}, f"convolution_backwards_data[{moves}](x, w)", result, dtype)


def weights(random: Random, rng: np.random.Generator, dtype: str, made: Made = case) -> Case:
    """The gradient to the weights of such a convolution."""
    while True:
        lens, lengths = ([random.choice(c) for c in cs] for cs in (((8, 9, 12), (8, 11, 16)), ((1, 3), (2, 3, 4))))
        padding, stride, dilation = ([random.choice(c) for _ in range(2)] for c in ((0, 1), (1, 1, 2), (1, 1, 2)))
        reaches = [lens[d] + 2 * padding[d] - (lengths[d] - 1) * dilation[d] for d in range(2)]
        if min(reaches) > 0:
            break
    channels, several = random.choice((4, 8, 24, 40)), random.choice((1, 1, 2))
    places = [(reach - 1) // step + 1 for reach, step in zip(reaches, stride, strict=True)]
    x, y = whole(rng, dtype, (3, channels, *lens)), whole(rng, dtype, (3, channels * several, *places))
    result = references.backwards_weights(x, y, lengths, padding, stride, dilation, channels)
    moves = f"padding={listed(padding)}, stride={listed(stride)}, dilation={listed(dilation)}, group={channels}"
    call = f"convolution_backwards_weights[lengths={listed(lengths)}, {moves}](x, y)"
    return made({"x": (dtype, x), "y": (dtype, y)}, call, result, dtype)


def weights_of_last(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """The same of channels last, as it lies in memory then: windows lie in front of the channels."""
    found = weights(random, rng, dtype, case_of_last)
    found.text = found.text.replace("permutation={0, 2, 3, 1}", "permutation={2, 3, 0, 1}")
    found.result = np.moveaxis(found.result, -1, 1).transpose(2, 3, 0, 1)
    return found


def pool(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """The largest or the mean of overlapping windows."""
    lens, lengths, padding, stride, dilation = _moving(random)
    padding = [min(p, n - 1) for p, n in zip(padding, (*lengths, *lengths), strict=True)]
    lens = [max(n, (m - 1) * d + 1) for n, m, d in zip(lens, lengths, dilation, strict=True)]
    mode, made = random.choice(("max",) if dtype == "int8" else ("max", "average")), random.choice((case, case_of_last))
    x = whole(rng, dtype, (2, random.choice((3, 4, 16)), *lens))
    result = references.pooling(x, mode, lengths, padding, stride, dilation, False, True, 1)
    moves = f"mode={mode}, lengths={listed(lengths)}, padding={listed(padding)}, stride={listed(stride)}"
    call = f"pooling[{moves}, dilation={listed(dilation)}, count_include_pad=true](x)"
    found = made({"x": (dtype, x)}, call, result, dtype)
    found.tolerance = {"max": 0.0, "average": {"float": 2e-6, "half": 2e-3, "bf16": 1e-2}.get(dtype, 0.0)}[mode]
    return found


def summed(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """Sums over overlapping windows along one axis or two, that a program takes itself."""
    lens = [random.choice((5, 6, 9, 10)), random.choice((5, 8, 9)), random.choice((1, 4, 6, 33))]
    axes = random.choice(([1], [0, 1]))
    lengths, dilations = ([random.choice(c) for _ in axes] for c in ((2, 3), (1, 2)))
    x = whole(rng, dtype, tuple(lens))
    reaches = [(n - 1) * d + 1 for n, d in zip(lengths, dilations, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x.astype(float), reaches, axis=axes)
    seen = seen[(..., *(slice(None, None, d) for d in dilations))]
    result = seen.sum(tuple(range(3, seen.ndim)))
    moves = f"axes={listed(axes)}, lengths={listed(lengths)}, dilations={listed(dilations)}"
    lines = [
        f"x = @param:x -> {dtype}{listed(lens)}",
        f"w = windows[{moves}](x)",
        f"s = reduce_sum[axes={listed(axes)}](w)",
    ]
    lines += [f"z = reshape[dims={listed(result.shape)}](s)", "@return(z)"]
    return Case("\n".join(lines) + "\n", {"x": x}, result, dtype)


def worked(random: Random, rng: np.random.Generator, dtype: str) -> Case:
    """A convolution of work on the images, with work on what it gives."""
    found = depthwise(random, rng, dtype)
    found.text = found.text.replace("](x, w)", "](r, w)").replace("z = ", "r = neg(x)\nc = ")
    found.text = found.text.replace("@return(z)", "z = relu(c)\n@return(z)")
    found.result = np.maximum(-found.result, 0)
    return found


KINDS: dict[str, Callable[[Random, np.random.Generator, str], Case]] = {
    f.__name__: f for f in (depthwise, depthwise_of_last, gradient, weights, weights_of_last, pool, summed, worked)
}


def patched_case(kind: str, target: str, seed: int) -> tuple[Case, Mapping[str, Any]]:
    """A case whose lanes may take patches, and one of its schedules that say so."""
    random, rng = Random(f"{kind}/{target}/{seed}"), np.random.default_rng(seed)
    while True:
        made = KINDS[kind](random, rng, random.choice(TYPES))
        if made.result.size < 6000 and (found := patched_schedules(made.text, target)):
            return made, random.choice(found)


@pytest.mark.parametrize(("kind", "target"), spread([*KINDS], TARGETS))
def test_every_stage_computes_the_same(kind: str, target: str) -> None:
    for seed in range(AT_STAGES):
        made, schedule = patched_case(kind, target, seed)
        for stage, lowered in load(made.text, target, schedule=schedule).remaining_stages():
            assert len(lowered.modules) == 1, f"{stage}: {made}"
            made.check(lowered.run(made.inputs, "interpret")["z"])


@pytest.mark.parametrize(("kind", "target"), spread([*KINDS], TARGETS[::-1]))
def test_kernels_compute_the_same_on_the_cpu(kind: str, target: str) -> None:
    cases = [patched_case(kind, target, seed) for seed in range(100, 100 + AS_KERNELS)]
    kernels = [made_of(made.text, target, schedule=schedule) for made, schedule in cases]
    compile_together(kernels)
    for (made, _), kernel in zip(cases, kernels, strict=True):
        assert len(kernel.kernels) == 1, made
        for order in ORDERS:
            made.check(kernel.on_the_host(made.inputs, threads=1, order=order)["z"])


@pytest.mark.parametrize("name", PATCHES)
def test_programs_for_rules_mean_what_they_say(name: str) -> None:
    text, target, schedule = PATCHES[name]
    check_every_stage(text, target, schedule=schedule)
    check_host(text, target, schedule=schedule)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("kind", ["depthwise", "depthwise_of_last", "pool"])
def test_kernels_compile_for_amd(kind: str, target: str) -> None:
    made, schedule = patched_case(kind, target, 100)
    check_built(made_of(made.text, target, schedule=schedule))


# ---- how patches read


def _printed(text: str, target: str, patch: bool) -> str:
    """A program's kernel by the cheapest of its schedules with patches, or of those without."""
    rated = next(iter(load(text, target).lower("schedule").trace.schedules.values()))
    schedule = next(s for _, s, _ in rated if (s.get("patch", 0) > 0) == patch)
    (kernel,) = load(text, target, schedule=schedule).kernels()
    return kernel.text


IMAGES = """
    x = @param:x -> half{{{x}}}
    w = @param:w -> half{{24, 1, 3, 3}}
    v = transpose[permutation={{{turn}}}](x)
    z = convolution[padding={{1, 1}}, group=24](v, w)
    y = transpose[permutation={{{back}}}](z)
    @return(y)"""
FIRST = IMAGES.format(x="2, 24, 14, 16", turn="0, 1, 2, 3", back="0, 1, 2, 3")
LAST = IMAGES.format(x="2, 14, 16, 24", turn="0, 3, 1, 2", back="0, 2, 3, 1")


@pytest.mark.parametrize("target", TARGETS)
def test_no_branch_is_around_a_read(target: str) -> None:
    """Where pads hide elements one by one; channels that lie last exist as a whole."""
    assert "gen::read_if(" in _printed(FIRST, target, patch=True)
    assert "gen::read_if(" not in _printed(FIRST, target, patch=False)
    of_last = _printed(LAST, target, patch=True)
    assert "gen::chunks_load<" in of_last
    assert "gen::read_if(" not in of_last


@pytest.mark.parametrize(("high", "wide"), [(5, 16), (14, 15)])
def test_rows_that_fill_no_patches_have_none(high: int, wide: int) -> None:
    text = FIRST.replace("14, 16", f"{high}, {wide}")
    assert not patched_schedules(text, "sm_90")
