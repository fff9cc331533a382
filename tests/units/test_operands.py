"""How a kernel's space says that its operands lie in memory, against the addresses that the program takes."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from support import listed

from genrw.api import load
from genrw.engine.interpret.reference import interpret
from genrw.engine.ir.nodes import Module
from genrw.engine.language.members import Members
from genrw.engine.programs.space import space_record, with_space
from genrw.program import Program

PROGRAMS = {
    "packed": ("float{6, 8}", "relu(x)"),
    "rows apart": ("float{6, 8}, {12, 1}", "relu(x)"),
    "rows apart by an odd number": ("float{6, 8}, {13, 1}", "relu(x)"),
    "strided": ("float{6, 8}, {24, 3}", "relu(x)"),
    "transposed": ("float{8, 12}", "transpose[permutation={1, 0}](x)"),
    "outer axes exchanged": ("float{4, 6, 8}", "transpose[permutation={1, 0, 2}](x)"),
    "reversed rows": ("float{6, 8}", "reverse[axes={0}](x)"),
    "reversed columns": ("float{6, 8}", "reverse[axes={1}](x)"),
    "first rows": ("float{6, 8}", "slice[axes={0}, starts={2}, ends={5}](x)"),
    "first columns": ("float{6, 8}", "slice[axes={1}, starts={0}, ends={6}](x)"),
    "rows behind one another": ("float{6, 8}", "concat[axis=0](x, x)"),
    "columns behind one another": ("float{6, 12}", "concat[axis=1](x, x)"),
    "rows taken": ("float{6, 8}", "gather[axis=0](x, i)"),
    "columns taken": ("float{6, 8}", "gather[axis=1](x, i)"),
    "in another shape": ("float{6, 8}", "reshape[dims={4, 12}](x)"),
    "three times, behind one another": ("float{8, 12}, {1, 8}", "concat[axis=0](x, x, x)"),
    "turned rows with something around": ("float{6, 8}, {1, 6}", "pad[pads={2, 3, 2, 3}](x)"),
    "rows with something around": ("float{6, 8}", "pad[pads={1, 0, 0, 2}](x)"),
}


def _space(declared: str, term: str) -> tuple[Program, Module, Members]:
    text = f"x = @param:x -> {declared}\ni = @param:i -> int64{{3}}\ny = {term}\n@return(y)\n"
    program = load(text if "(x, i)" in term else text.replace("i = @param:i -> int64{3}\n", ""), target="sm_90")
    (module,) = program.modules
    module = with_space(module, program.library)
    return program, module, space_record(module, program.library)


def _read(space: Members) -> Any:
    return next(o for o in space["operands"] if not o["is_stored"])


def _places(name: str) -> tuple[Any, Module, np.ndarray]:
    """What the space says of the operand of a program, and the addresses of its elements, -5 where there are none."""
    declared, term = PROGRAMS[name]
    program, module, space = _space(declared, term.replace("](x)", ", value=-5.0](x)") if "pad" in term else term)
    (x, *others) = module.parameters
    lens, strides = x.type.lens, x.type.layout
    places = sum(
        np.arange(n).reshape([-1] + [1] * (len(lens) - d - 1)) * s
        for d, (n, s) in enumerate(zip(lens, strides, strict=True))
    )
    inputs = {"x": np.asarray(np.broadcast_to(places, lens), np.float32)}
    inputs |= {"i": np.array([4, 1, 3])} if others else {}
    (found,) = interpret(program.modules[0], program.library, program.context(module), inputs).values()
    return _read(space), module, np.asarray(found).reshape(-1)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "around" not in n])
def test_neighbours_that_are_said_to_lie_together_have_consecutive_addresses(name: str) -> None:
    read, module, places = _places(name)
    together = read["together"]
    blocks = places[: prod(module.space) // together * together].reshape(-1, together)
    assert (np.diff(blocks, axis=1) == 1).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_are_as_long_as_consecutive_addresses(name: str) -> None:
    """No run is longer than is said, but where one happens to go on where another ends."""
    read, module, places = _places(name)
    run = read["run"]
    ends = np.flatnonzero(np.diff(places) != 1)
    lengths = np.diff(np.concatenate([[-1], ends, [len(places) - 1]]))
    assert max(lengths) % run == 0
    assert (run < prod(module.space)) == (len(ends) > 0)


def test_an_index_that_elements_share_says_where_they_are() -> None:
    _, _, taken = _space("float{6, 8}", "gather[axis=1](x, i)")
    _, _, packed = _space("float{6, 8}", "relu(x)")
    assert (_read(taken)["places"], _read(taken)["run"]) == (8, 1)
    assert (_read(packed)["places"], _read(packed)["run"]) == (0, 48)


def test_what_lies_between_gaps_comes_too() -> None:
    _, _, packed = _space("half{4096, 3}", "relu(x)")
    _, _, apart = _space("half{4096, 3}, {67, 1}", "relu(x)")
    assert (_read(packed)["spread"], _read(packed)["gaps"]) == (1, 1)
    assert _read(apart)["spread"] == pytest.approx(67 / 3, rel=0.01)
    assert _read(apart)["gaps"] == pytest.approx((6 + 64) / 6)


def test_the_result_of_rows_counts_as_stored() -> None:
    _, _, space = _space("int8{75, 2, 64}", "argmax[axis=1](x)")
    (stored,) = [o for o in space["operands"] if o["is_stored"]]
    assert (stored["elements"], stored["item"]) == (75 * 64, 8)


@pytest.mark.parametrize(("n", "columns"), [(512, 77), (1000, 3), (37, 6272), (3136, 3), (77, 320), (225, 49)])
@pytest.mark.parametrize(("dtype", "fold"), [("int8", "argmax[axis=1]"), ("half", "reduce_sum[axes={1}]")])
def test_a_kernel_over_columns_keeps_most_units_busy(n: int, columns: int, dtype: str, fold: str) -> None:
    rows = 132 * 256 // columns + 1
    program = load(f"x = @param:x -> {dtype}{{{rows}, {n}, {columns}}}\ny = {fold}(x)\n@return(y)\n", target="sm_90")
    schedules = [kernel.schedule for unit in program.lower("schedule").units for kernel in unit.kernels]
    assert max(schedule["grid"] for schedule in schedules) >= 66


@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100", "host"])
@pytest.mark.parametrize("lens", [(0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1), (0, 0, 0)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_spaces_without_elements_have_schedules(target: str, lens: tuple[int, ...], axis: int) -> None:
    """Nothing is divided by what there is none of."""
    shape = ", ".join(map(str, lens))
    text = f"x = @param:x -> half{{{shape}}}\nt = transpose[permutation={{2, 0, 1}}](x)\ny = reduce_sum[axes={{{axis}}}](t)\n@return(y)\n"
    assert load(text, target=target).kernels()


def _moved(seed: int) -> str:
    """A parameter that is transposed, and padded, cut, turned around and transposed again, in an order drawn by a seed."""
    rng = Random(seed)
    lens = [rng.choice([4, 6, 8]) for _ in range(3)]
    lines = [f"x = @param:x -> float{listed(lens)}", "y0 = relu(x)"]
    for k, kind in enumerate(["transpose", *rng.choices(["pad", "slice", "reverse", "transpose", "relu"], k=3)]):
        if kind == "transpose":
            order = rng.sample(range(3), 3)
            lens, term = [lens[d] for d in order], f"transpose[permutation={listed(order)}]"
        elif kind == "pad":
            pads = [rng.choice([0, 1, 2]) for _ in range(6)]
            lens, term = (
                [n + pads[d] + pads[d + 3] for d, n in enumerate(lens)],
                f"pad[pads={listed(pads)}, value=-5.0]",
            )
        elif kind == "slice":
            d = rng.randrange(3)
            term = f"slice[axes={{{d}}}, starts={{1}}, ends={{{lens[d]}}}]"
            lens[d] -= 1
        else:
            term = "relu" if kind == "relu" and k == 0 else "reverse[axes={1}]"
        lines.append(f"y{k + 1} = {term}(y{k})")
    return "\n".join([*lines, f"@return(y{k + 1})", ""])


@pytest.mark.parametrize("seed", range(60))
def test_neighbours_along_a_row_lie_as_far_apart_as_is_said(seed: int) -> None:
    program = load(_moved(seed), target="sm_90")
    (module,) = program.modules
    (x,) = module.parameters
    inputs = {"x": np.arange(x.type.elements, dtype=np.float32).reshape(x.type.lens)}
    (found,) = interpret(module, program.library, program.context(module), inputs).values()
    places = np.asarray(found)
    apart = np.abs(np.diff(places, axis=-1))[(places[..., 1:] >= 0) & (places[..., :-1] >= 0)]
    space = space_record(with_space(module, program.library), program.library)
    assert set(apart.tolist()) == {_read(space)["step_by_row"]}


def test_each_move_of_a_parameter_takes_its_own_part() -> None:
    text = """
        x = @param:x -> float{64, 3, 256}
        a = slice[axes={1}, starts={0}, ends={1}](x)
        b = slice[axes={1}, starts={1}, ends={2}](x)
        c = add(a, b)
        @return(c)"""
    program = load(text, target="sm_90")
    space = space_record(with_space(program.modules[0], program.library), program.library)
    assert [o["elements"] for o in space["operands"] if not o["is_stored"]] == [64 * 256, 64 * 256]


@pytest.mark.parametrize(
    ("term", "digits"),
    [
        ("relu(x)", 1),
        ("pad[pads={1, 0, 0, 0, 0, 0, 0, 0}](x)", 2),
        ("pad[pads={0, 1, 0, 0, 0, 0, 0, 0}](x)", 3),
        ("pad[pads={0, 1, 0, 2, 0, 0, 0, 1}](x)", 4),
        ("slice[axes={0}, starts={1}, ends={4}](x)", 2),
        ("reverse[axes={3}](x)", 2),
        ("concat[axis=2](x, x)", 3),
        ("transpose[permutation={0, 1, 3, 2}](x)", 3),
        ("reshape[dims={24, 56}](x)", 1),
    ],
)
def test_digits_are_those_that_moves_tell_apart(term: str, digits: int) -> None:
    _, _, space = _space("float{4, 6, 7, 8}", term)
    assert _read(space)["digits"] == digits
