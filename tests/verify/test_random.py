"""Random programs of all that users can write mean the same at every stage and as printed kernels.

python tests/verify/find_faults.py --count 2000      tries more of them, and makes those that fail smaller
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
from breadth import first_quick
from find_faults import check_operators, trial_of
from random_contractions import random_contraction
from random_networks import random_network
from random_programs import Line, RandomProgram, parameter, random_program, random_programs, writable
from random_trials import TOGETHER, Fault, Lowered, Trial, compiled, host_fault, lowered_trials
from shrinking import shrunk
from support import WAVE64, check_every_stage, check_host, load
from sure_elements import Rejected, reference

from genrw.authoring.rulesets import load_library
from genrw.engine.ir.types import Type
from genrw.engine.library.library import Library
from genrw.engine.verify.attributes import AttributeDraw
from genrw.engine.verify.fitting import Fitting, Taken
from genrw.grammar.diagnostics import GenrwError

SEED, PROGRAMS, SHARING, USUAL = 0, 100, 20, 40
"""How many programs are tried, by how many a call of the compiler is shared, and how many are usual."""


@pytest.mark.parametrize("first", first_quick(range(0, PROGRAMS, SHARING), quick=0, usual=USUAL // SHARING))
def test_random_programs(first: int, library: Library) -> None:
    check_programs(first, library)


@pytest.mark.parametrize("first", first_quick(range(0, PROGRAMS, SHARING), quick=0, usual=1))
def test_random_programs_around_contractions(first: int, library: Library) -> None:
    check_programs(first, library, contractions=True)


def check_programs(first: int, library: Library, *, contractions: bool = False) -> None:
    """Are so many programs from a number on right?"""
    numbers = range(first, first + SHARING)
    trials = [trial_of(library, SEED, number, contractions=contractions) for number in numbers]
    results = [
        result for i in range(0, SHARING, TOGETHER) for result in lowered_trials(trials[i : i + TOGETHER], library)
    ]
    faults = {number: r for number, r in zip(numbers, results, strict=True) if isinstance(r, Fault)}
    found = {id(r): number for number, r in zip(numbers, results, strict=True) if isinstance(r, Lowered)}
    for lowered, kernels in compiled([r for r in results if isinstance(r, Lowered)], cache=True):
        fault = kernels if isinstance(kernels, Fault) else host_fault(lowered, kernels)
        if fault is not None:
            faults[found[id(lowered)]] = fault
    kind = "--contractions " if contractions else ""
    again = f"python tests/verify/find_faults.py {kind}--seed {SEED} --only {' '.join(map(str, faults))}"
    assert not faults, f"{faults}\nfor small programs: {again}"
    assert len(found) > 0.8 * SHARING


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sofmax", "there is no operator `sofmax`\n  help: did you mean `softmax`?"),
        ("no_such_thing", "there is no operator `no_such_thing`\n  help: docs/operators.md lists the operators"),
        ("workgroup_id", "random programs have no `workgroup_id`\n  help: "),
    ],
)
def test_operators_that_programs_cannot_hold_are_told(name: str, said: str, library: Library) -> None:
    check_operators(library, ["softmax"])
    with pytest.raises(GenrwError) as told:
        check_operators(library, ["softmax", name])
    assert str(told.value).startswith(f"error: {said}")


def test_every_contraction_is_among_random_programs(library: Library) -> None:
    made = {op for n in range(200) for op in random_contraction(library, (SEED, n)).operators}
    assert made >= {
        *("dot", "quant_dot", "convolution", "quant_convolution", "softmax"),
        *("convolution_backwards_data", "convolution_backwards_weights", "pooling", "global_pooling"),
    }


def test_parts_of_networks_are_among_random_programs(library: Library) -> None:
    """Contractions come several to a program, and before what networks have behind them."""
    programs = [random_network(library, (SEED, n)) for n in range(200)]
    made = {op for program in programs for op in program.operators}
    assert made >= {"argmax", "argmin", "quant_dot", "round", "rmsnorm", "instance_norm", "pooling", "global_pooling"}
    several = [p for p in programs if sum(line.op == "dot" for line in p.lines) > 1]
    assert len(several) > 60
    taken = [{o for line in p.lines if line.op == "dot" for o in line.operands} for p in programs]
    assert sum(not names.isdisjoint(p.results) for names, p in zip(taken, programs, strict=True)) >= 5


def test_every_operator_is_among_random_programs(library: Library) -> None:
    """All that are declared for programs come in turn, and can be written."""
    names = {name for named in writable(library).values() for name in named}
    made = {op for program in islice(random_programs(library, SEED), 2 * len(names)) for op in program.operators}
    assert made >= names


@pytest.mark.parametrize(
    "name",
    [
        *("dot", "quant_dot", "convolution", "quant_convolution"),
        *("convolution_backwards_data", "convolution_backwards_weights", "pooling", "global_pooling", "windows"),
    ],
)
def test_operands_are_made_to_fit(name: str, library: Library) -> None:
    """Operators whose requirements shapes drawn by chance hardly meet are written wherever they are wanted, almost."""
    programs = [random_program(library, (SEED, n), [name]) for n in range(20)]
    assert sum(name in program.operators for program in programs) >= 16


def test_an_operator_that_is_added_is_among_random_programs(tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(
        "/// Twice.\nop twice_of[by: int = 2](x: T tensor) -> tensor(T, x.lens) where T: number\n"
        '  at nowhere\n  requires x.rank == 2 "two axes"\n  means x * by\n'
    )
    library = load_library([tmp_path])
    assert "twice_of" in writable(library)[None]
    made = islice(random_programs(library, SEED), len(library.names))
    assert any("twice_of" in program.operators for program in made)


def test_operators_of_later_stages_are_not_among_random_programs(library: Library) -> None:
    """`in_parts` is made by a rule and taken apart by others of a later stage; what the first stage takes apart stays."""
    names = {name for named in writable(library).values() for name in named}
    assert "in_parts" not in names
    assert {"tile", "dot", "argmax"} <= names


@pytest.mark.parametrize(
    "asked", ["len(sizes) == 1000000000000", "x.rank == 1000000000000", "len(sizes) == x.elements"]
)
def test_lists_that_are_too_long_for_a_program_are_not_made(asked: str, tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(
        "/// Of many.\nop of_many[sizes: ints](x: T tensor) -> tensor(T, x.lens) where T: number\n"
        f'  at nowhere\n  requires {asked} "many"\n  means x\n'
    )
    library = load_library([tmp_path])
    draw = AttributeDraw(library, Random(0), (4,), "float", {})
    fitting = Fitting(library.operator("of_many"), None, draw, {"sizes", 0} if "rank" in asked else {"sizes"}, {})
    wide = Type("tensor", "float", (100_000, 100_000, 100))
    assert fitting.fitted(Taken((wide,), {"sizes": (1,)})) is None


def test_a_program_without_an_exact_plan_is_no_fault_of_those_beside_it(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genrw.engine.fusion.exact.MOST_NEEDS", 12)
    x, relu = (
        parameter("x", Type("tensor", "float", (4,))),
        Line("y", "relu", ("x",), Type("tensor", "float", (4,)), "relu"),
    )
    more = Line("z", "exp", ("y",), relu.type, "exp")
    programs = [RandomProgram((x, relu), ("y",)), RandomProgram((x, relu, more), ("y", "z"))]
    small, large = lowered_trials([Trial(p, WAVE64, plan="exact") for p in programs], library)
    assert isinstance(small, Lowered)
    assert isinstance(large, Rejected)


@pytest.mark.parametrize("function", ["softplus", "exp", "tanh", "sigmoid"])
@pytest.mark.parametrize("dtype", ["double", "float"])
def test_the_bits_of_what_is_rounded_are_not_sure(function: str, dtype: str) -> None:
    """Errors of an operand and of the result may cancel out; some of the bits looked sure."""
    bits = {"double": "int64", "float": "int32"}[dtype]
    program = load(
        f"x = @param:x -> {dtype}{{4000}}\ny = {function}(x)\nz = bitcast[target_type={bits}](y)\n@return(y, z)"
    )
    _, wanted, sure = reference(program, 3, special=False)
    assert sure["y"].all()
    rounded = wanted["y"].astype(np.float32).astype(np.float64) != wanted["y"]
    assert not sure["z"][rounded].any()


def test_whether_what_is_left_of_equal_elements_is_zero_is_not_sure() -> None:
    """Small errors of doubles have few values, so that an element was the mean of all in each of few runs."""
    constant = "x = @literal{0.5} -> double{40, 62}\na = asinh(x)\nb = layernorm[axes={1}](a)\n"
    _, _, sure = reference(load(f"{constant}c = not_equal(b, 0.0)\n@return(c)"), 94, special=False)
    (found,) = sure.values()
    assert found.mean() < 0.001


@pytest.mark.parametrize(("function", "are_sure"), [("div_near", False), ("div", True)])
def test_exact_results_of_what_is_only_near_are_not_sure(function: str, are_sure: bool) -> None:
    text = f"x = @param:x -> float{{64}}\nq = {function}(x, x)\ny = floor(q)\n@return(y)\n"
    _, wanted, sure = reference(load(text), 7, special=False)
    assert np.all(wanted["y"] == 1)
    assert np.all(sure["y"]) if are_sure else not np.all(sure["y"])


def test_failing_programs_are_made_small(library: Library) -> None:
    """Whatever has a certain operator in it is said to fail: nothing but that stays."""
    trial = next(t for t in (trial_of(library, 5, n) for n in range(200)) if "softmax" in t.program.operators)
    fault = Fault("refused", "because")
    trial, _ = shrunk(trial, fault, lambda t: fault if "softmax" in t.program.text else None, 20)
    assert len(trial.program.text.splitlines()) == 3
    assert trial.schedule is None
    check_every_stage(trial.program.text)


def test_a_trial_tells_the_schedule_that_was_taken(library: Library) -> None:
    """A smaller program may not have the schedule of the one that failed: what is printed to try it again is one that it has."""
    x = parameter("x", Type("tensor", "half", (64, 100)))
    program = RandomProgram((x, Line("y", "softmax[axis=1]", ("x",), x.type, "softmax")), ("y",))
    wanted = {"algo": "columns", "block_size": 512, "vector": 16}
    (found,) = lowered_trials([Trial(program, WAVE64, schedule=wanted)], library)
    assert isinstance(found, Lowered)
    taken = found.trial.schedule
    assert taken is not None
    assert taken != wanted
    load(program.text, WAVE64, schedule=taken).lower("final")


@pytest.mark.parametrize(
    "text",
    [
        "x = @param:x -> {4, 5}\na = reduce_sum[axes={1}](x)\nb = reduce_sum[axes={0}](x)\n@return(a, b)\n",
        "x = @param:x -> {4, 5}\na = reduce_max[axes={1}](x)\nb = reduce_sum[axes={0}](a)\n@return(b)\n",
        "x = @param:x -> {4, 5}\ny = @param:y -> {7}\na = relu(x)\nb = relu(y)\n@return(a, b)\n",
    ],
)
def test_several_kernels_are_launched_in_order(text: str) -> None:
    assert len(check_every_stage(text).modules) == 2
    check_host(text, WAVE64)


def test_a_kernel_that_is_several_is_refused_in_words() -> None:
    """A module that says of itself that it was cut into kernels already."""
    text = "x = @param:x -> {4, 5}\na = reduce_sum[axes={1}](x)\nb = reduce_sum[axes={0}](x)\n@return(a, b)\n"
    with pytest.raises(GenrwError, match="needs several kernels"):
        load(f"@module main [stage=fuse, target=gfx942]\n{text}").lower("final")
