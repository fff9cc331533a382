"""Where views of a parameter lie in memory, against the addresses that the program takes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from genrw.api import load
from genrw.engine.interpret.reference import interpret
from genrw.engine.programs.views import layout_in_memory, run_in_memory

NOT_THERE = -1.0


def listed(numbers: list[int]) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"


def drawn(seed: int) -> str:
    """A parameter of some layout that is transposed, padded and given other shapes, in an order drawn by a seed."""
    rng = Random(seed)
    lens = [rng.choice([2, 3, 4, 6, 8, 12, 16]) for _ in range(rng.choice([2, 3]))]
    strides = [1] * len(lens)
    for d in reversed(range(len(lens) - 1)):
        strides[d] = strides[d + 1] * lens[d + 1] + rng.choice([0, 0, 1, 4])
    lines = [f"x0 = @param:x0 -> float{listed(lens)}, {listed(strides)}"]
    for k in range(rng.choice([1, 2, 3, 4])):
        kind = rng.choice(["transpose", "pad", "pad", "cut"])
        if kind == "transpose":
            order = rng.sample(range(len(lens)), len(lens))
            lens, term = [lens[d] for d in order], f"transpose[permutation={listed(order)}]"
        elif kind == "pad":
            pads = [rng.choice([0, 0, 0, 1, 2, 4, 8]) for _ in range(2 * len(lens))]
            lens = [n + pads[d] + pads[d + len(lens)] for d, n in enumerate(lens)]
            term = f"pad[pads={listed(pads)}, value={NOT_THERE}]"
        else:
            d = rng.randrange(len(lens))
            part = rng.choice([n for n in range(1, lens[d] + 1) if lens[d] % n == 0])
            lens = [*lens[:d], lens[d] // part, part, *lens[d + 1 :]]
            term = f"reshape[dims={listed(lens)}]"
        lines.append(f"x{k + 1} = {term}(x{k})")
    return "\n".join([*lines, f"@return(x{k + 1})", ""])


@pytest.mark.parametrize("seed", range(60))
def test_elements_lie_where_strides_say(seed: int) -> None:
    program = load(drawn(seed), target="sm_90")
    (module,) = program.modules
    (x,) = module.parameters
    (view,) = module.root.operands
    numbers = sum(
        np.arange(n).reshape([-1] + [1] * (len(x.type.lens) - d - 1)) * s
        for d, (n, s) in enumerate(zip(x.type.lens, x.type.layout, strict=True))
    )
    (found,) = interpret(
        module, program.library, program.context(module), {"x0": np.asarray(numbers, np.float32)}
    ).values()
    places = np.asarray(found).reshape(-1)
    there = places != NOT_THERE
    layout = layout_in_memory(view, program.library, padded=True)
    if not layout:
        assert "pad" in drawn(seed)
        return
    lens, strides = layout
    said = sum(c * s for c, s in zip(np.unravel_index(np.arange(len(places)), lens), strides, strict=True))
    assert len(set((places - said)[there])) <= 1
    assert layout_in_memory(view, program.library) == (layout if "pad[" not in drawn(seed) else ())
    _check_run(there, lens, strides, run_in_memory(view, program.library))


def _check_run(there: np.ndarray, lens: tuple[int, ...], strides: tuple[int, ...], run: int) -> None:
    """Blocks of neighbours along the axis that lies side by side in memory are there, or are not, together."""
    beside = [d for d, s in enumerate(strides) if s == 1 and lens[d] > 1]
    if len(beside) == 1 and lens[beside[0]] % run == 0:
        blocks = np.moveaxis(there.reshape(lens), beside[0], -1).reshape(-1, run)
        assert (blocks.all(axis=1) | ~blocks.any(axis=1)).all()
