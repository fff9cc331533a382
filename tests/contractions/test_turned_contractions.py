"""Contractions of operands that are transposed once or twice, or so that nothing moves: as every stage and as kernels on the CPU."""

from __future__ import annotations

from functools import partial
from itertools import count
from random import Random

import numpy as np
import pytest
from breadth import spread
from cases import Case, Values, backwards_data, backwards_weights, convolution
from support import listed
from together import compile_together, lower_together

KINDS = {"forward": convolution, "data": backwards_data, "weights": backwards_weights}
TARGETS = ("sm_90", "gfx942", "host")
CASES = 6


def turned(
    random: Random,
    operands: dict[str, tuple[str, Values]],
    call: str,
    result: Values,
    dtype: str,
    tolerance: float = 0.0,
) -> Case:
    """A call on operands, and its result, that transposes lead to from others."""
    numbers, lines, inputs = count(), [], {}

    def transposes(of: str, rank: int, made: str) -> tuple[int, ...]:
        """Write transposes one after the other, and say where each axis of the last one comes from."""
        axes, chosen = tuple(range(rank)), [_order(random, rank) for _ in range(random.choice((1, 1, 2)))]
        if random.random() < 0.3:
            chosen.append(tuple(int(d) for d in np.argsort(chosen[-1])))  # there and back
        for i, order in enumerate(chosen):
            name = made if i == len(chosen) - 1 else f"t{next(numbers)}"
            lines.append(f"{name} = transpose[permutation={listed(order)}]({of})")
            of, axes = name, tuple(axes[d] for d in order)
        return axes

    for name, (of_type, array) in operands.items():
        place = len(lines)
        axes = transposes(f"{name}_in", array.ndim, name)
        inputs[f"{name}_in"] = np.ascontiguousarray(array.transpose(np.argsort(axes)))
        lines.insert(place, f"{name}_in = @param:{name}_in -> {of_type}{listed(inputs[f'{name}_in'].shape)}")
    lines.append(f"r = {call}")
    axes = transposes("r", result.ndim, "z")
    return Case("\n".join([*lines, "@return(z)"]) + "\n", inputs, result.transpose(axes), dtype, tolerance)


def _order(random: Random, rank: int) -> tuple[int, ...]:
    return tuple(range(rank)) if random.random() < 0.4 else tuple(random.sample(range(rank), rank))


@pytest.mark.parametrize(("kind", "target"), spread([*KINDS], TARGETS))
def test_what_transposes_lead_to_is_as_it_was(kind: str, target: str) -> None:
    found = []
    for seed in range(CASES):
        random = Random(f"{kind} {target} {seed}")
        found.append(KINDS[kind](random, np.random.default_rng(seed), partial(turned, random)))
    programs = lower_together([case.text for case in found], target)
    for case, program in zip(found, programs, strict=True):
        for _, lowered in program.each_stage():
            case.check(lowered.run(case.inputs, "interpret")["z"])
    compile_together(programs)
    for case, program in zip(found, programs, strict=True):
        case.check(program.on_the_host(case.inputs, threads=1)["z"])
