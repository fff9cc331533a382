"""Along which axes operands of rows lie that do not lie along these, against the strides of inputs."""

from __future__ import annotations

from math import prod
from random import Random

import pytest
from support import load, strides_in_order

from genrw.engine.programs.space import space_record, with_space


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _text(lens: list[int], orders: list[list[int]], axis: int) -> str:
    """The sums along an axis of inputs that lie in memory in these orders of their axes."""
    inputs = [
        f"x{k} = @param:x{k} -> float{{{_listed(lens)}}}, {{{_listed(strides_in_order(lens, order))}}}"
        for k, order in enumerate(orders)
    ]
    sums = ["s0 = neg(x0)", *(f"s{k} = add(s{k - 1}, x{k})" for k in range(1, len(orders)))]
    return "\n".join([*inputs, *sums, f"y = reduce_sum[axes={{{axis}}}](s{len(orders) - 1})", "@return(y)", ""])


def _run(order: list[int], axis: int) -> tuple[int, ...]:
    """The axes beside one another that follow one another in memory, up to the last in an order; none where that is folded."""
    run = [order[-1]] if order[-1] != axis else []
    for d in reversed(order[:-1]):
        if not run or d == axis or d != run[0] - 1:
            break
        run.insert(0, d)
    return tuple(run)


@pytest.mark.parametrize("seed", range(60))
def test_axes_along_which_operands_lie(seed: int) -> None:
    random = Random(seed)
    lens = random.sample((4, 8, 12, 20), random.choice((2, 3, 4)))
    axis = random.randrange(len(lens))
    orders = [random.sample(range(len(lens)), len(lens)) for _ in range(random.choice((2, 3)))]
    program = load(_text(lens, orders, axis), target="sm_90")
    (module,) = program.lower("simplify").modules
    space = space_record(with_space(module, program.library), program.library)
    # the space may have its axes in an order of its own; lengths tell them apart
    orders = [[space["lens"].index(lens[d]) for d in order] for order in orders]
    axis = space["lens"].index(lens[axis])
    runs = [_run(order, axis) for order in orders]
    wanted = max(runs, key=lambda run: (prod(space["lens"][d] for d in run), run))
    if () not in runs or not wanted:
        assert (space["down"], space["turned"]) == ((), 0)
        return
    assert space["down"] == wanted
    # inputs that lie alike may be turned as one, after they are added
    turned = [tuple(order) for order, run in zip(orders, runs, strict=True) if run[-1:] == wanted[-1:]]
    assert len(set(turned)) <= space["turned"] <= len(turned)
