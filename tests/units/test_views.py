"""Where views of a parameter lie in memory, against the addresses that the program takes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support import listed

from genrw.api import load
from genrw.engine.interpret.reference import interpret
from genrw.engine.programs.pictures import picture_of
from genrw.engine.programs.views import layout_in_memory, run_in_memory

NOT_THERE = -1.0


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


def windows_drawn(seed: int) -> str:
    """A parameter with zeros around it, of which windows are taken, parts, and turned ones."""
    rng = Random(seed)
    lens = [rng.choice([1, 2, 3]), rng.choice([4, 5, 8]), rng.choice([4, 6]), rng.choice([2, 8])]
    lines = [f"x0 = @param:x0 -> float{listed(lens)}"]
    pads = [rng.choice([0, 1, 2, -1]) if d in (1, 2) else 0 for d in (0, 1, 2, 3, 0, 1, 2, 3)]
    if rng.random() < 0.8:
        lens = [n + pads[d] + pads[d + 4] for d, n in enumerate(lens)]
        value = rng.choice([0.0, 0.0, 0.0, 5.0]) if max(pads) > 0 else 0.0
        lines.append(f"x1 = pad[pads={listed(pads)}, value={value}](x0)")
    for _ in range(rng.choice([1, 2, 3])):
        kind = rng.choice(["windows", "transpose", "reverse", "slice", "cut"])
        if kind == "windows" and len(lens) == 4 and min(lens[1:3]) >= 2:
            term = f"windows[axes={{1, 2}}, lengths={{2, 2}}, strides={{{rng.choice([1, 2])}, 1}}](x{len(lines) - 1})"
        elif kind == "reverse":
            term = f"reverse[axes={{{rng.randrange(len(lens))}}}](x{len(lines) - 1})"
        elif kind == "slice" and lens[1] > 2:
            term = f"slice[axes={{1}}, starts={{1}}, ends={{{lens[1]}}}](x{len(lines) - 1})"
        elif kind == "cut" and lens[-1] % 2 == 0:
            term = f"reshape[dims={listed([*lens[:-1], lens[-1] // 2, 2])}](x{len(lines) - 1})"
        else:
            term = f"transpose[permutation={listed(rng.sample(range(len(lens)), len(lens)))}](x{len(lines) - 1})"
        lines.append(f"x{len(lines)} = {term}")
        (view,) = load("\n".join([*lines, f"@return(x{len(lines) - 1})", ""]), target="sm_90").modules[0].root.operands
        lens = list(view.type.lens)
    return "\n".join([*lines, f"@return(x{len(lines) - 1})", ""])


@pytest.mark.parametrize("seed", range(40))
def test_elements_lie_in_pictures_as_layouts_say(seed: int) -> None:
    """What a layout says of a parameter with zeros around it is what the program computes."""
    text = windows_drawn(seed)
    program = load(text, target="sm_90")
    (module,) = program.modules
    (x,) = module.parameters
    (view,) = module.root.operands
    found = picture_of(view, program.library)
    if "value=5" in text:
        assert found == ()
        return
    assert found != ()
    lens, strides, offset, shape, memory, pads = found
    assert (shape, memory) == (x.type.lens, x.type.layout)
    values = np.arange(1, 1 + x.type.elements, dtype=np.float32).reshape(shape)
    rank = len(shape)
    around = [(max(0, pads[d]), max(0, pads[d + rank])) for d in range(rank)]
    cut = tuple(slice(max(0, -pads[d]), shape[d] - max(0, -pads[d + rank])) for d in range(rank))
    picture = np.pad(values[cut], around).reshape(-1)
    coordinates = np.unravel_index(np.arange(view.type.elements), lens)
    numbers = offset + sum(c * s for c, s in zip(coordinates, strides, strict=True))
    (wanted,) = interpret(module, program.library, program.context(module), {"x0": values}).values()
    np.testing.assert_array_equal(picture[numbers], np.asarray(wanted).reshape(-1))
