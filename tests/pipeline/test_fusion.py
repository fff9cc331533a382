"""Which kernels programs become, and why: what shares a kernel, what is stored, what is made again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fused import kernels_of, plan_of, stored_because
from support import check_every_stage, check_last_stage, differences, inputs_and_reference, load, shipped

from genrw.authoring.rulesets import load_library
from genrw.engine.egraph.stage import EGraphSnapshot, StageEngine
from genrw.engine.ir.nodes import Module
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw_tree import RuleDecl
from genrw.program import Program


def test_a_chain_of_pointwise_operators_is_one_kernel() -> None:
    assert kernels_of(
        """
        x = @param:x -> float{64, 64}
        y = @param:y -> float{64}
        a = exp(x)
        b = add(a, y)
        c = relu(b)
        d = mul(c, x)
        @return(d)
        """
    ) == ["d"]


def test_producers_and_consumers_of_a_reduction_are_in_its_kernel() -> None:
    """Softmax of scaled, masked scores, scaled again."""
    text = """
        s = @param:s -> half{4, 32, 100}
        mask = @param:mask -> half{1, 32, 100}
        a = mul(s, 0.125)
        b = add(a, mask)
        m = reduce_max[axes={2}](b)
        d = sub(b, m)
        e = exp(d)
        z = reduce_sum[axes={2}](e)
        p = div(e, z)
        y = mul(p, 2.0)
        @return(y)
        """
    assert kernels_of(text) == ["y"]
    check_every_stage(text)


@pytest.mark.parametrize(
    "move",
    [
        "transpose[permutation={2, 0, 1}](a)",
        "pad[pads={1, 0, 2, 0, 3, 0}](a)",
        "slice[axes={0, 2}, starts={1, 0}, ends={3, 6}](a)",
        "reverse[axes={0, 1}](a)",
        "concat[axis=1](a, b, a)",
        "gather[axis=1](a, i)",
    ],
)
@pytest.mark.parametrize("computed", ["mul(m, 0.5)", "exp(m)"])
def test_index_maps_of_any_rank_are_in_the_kernel_of_what_reads_them(move: str, computed: str) -> None:
    """A reduction reads elements that are computed and then moved; its rows are moved too, in the kernel behind it."""
    text = f"""
        x = @param:x -> float{{4, 5, 6}}
        b = @param:b -> float{{4, 5, 6}}
        i = @param:i -> int32{{3}}
        a = exp(x)
        m = {move}
        c = {computed}
        s = reduce_sum[axes={{2}}](c)
        y = sub(c, s)
        @return(y)
        """
    assert kernels_of(text) == ["y"]


def test_a_concatenation_of_computed_values_is_one_kernel() -> None:
    assert kernels_of(
        """
        x = @param:x -> float{8, 100}
        y = @param:y -> float{8, 60}
        a = exp(x)
        b = neg(y)
        c = concat[axis=1](a, b)
        d = relu(c)
        @return(d)
        """
    ) == ["d"]


CHEAP = """
    x = @param:x -> float{16384, 16384}
    a = add(x, 1.0)
    r = reduce_sum[axes={1}](a)
    c = reduce_sum[axes={0}](a)
    @return(r, c)
    """


def test_a_cheap_value_that_two_kernels_read_is_made_twice() -> None:
    assert kernels_of(CHEAP) == ["r", "c"]


COSTLY = """
    x = @param:x -> float{16384, 16384}
    y = @param:y -> float{16384, 16384}
    z = @param:z -> float{16384, 16384}
    w = @param:w -> float{16384, 16384}
    a = add(x, y)
    b = mul(a, z)
    d = max(b, w)
    r = reduce_sum[axes={1}](d)
    c = reduce_sum[axes={0}](d)
    @return(r, c)
    """


def test_a_costly_value_that_two_kernels_read_is_stored_by_one_of_them() -> None:
    """Four tensors to load against one: the kernel of the first sum stores what it makes anyway."""
    plan = plan_of(COSTLY)
    assert [k.outputs for k in plan.kernels] == [("d", "r"), ("c",)]
    assert [k.loads for k in plan.kernels] == [("x", "y", "z", "w"), ("d",)]
    assert stored_because(plan, "d").startswith("making it again where it is read costs ")


def test_what_reads_the_same_input_is_one_kernel_of_several_results() -> None:
    text = """
        x = @param:x -> float{64, 100}
        s = reduce_sum[axes={1}](x)
        m = reduce_max[axes={1}](x)
        e = exp(x)
        @return(s, m, e)
        """
    assert kernels_of(text) == ["s m e"]
    check_every_stage(text)


TWO_SPACES = """
    x = @param:x -> float{30, 40}
    c = reduce_sum[axes={0}](x)
    d = sub(x, c)
    e = exp(d)
    s = reduce_sum[axes={1}](e)
    y = div(e, s)
    @return(y)
    """


def test_a_reduction_whose_result_feeds_rows_of_another_kind_is_stored() -> None:
    plan = plan_of(TWO_SPACES)
    assert [k.outputs for k in plan.kernels] == [("c",), ("y",)]
    assert [k.axes for k in plan.kernels] == [(0,), (1,)]
    assert stored_because(plan, "c") == (
        "the kernel of `y` folds the rows of {30, 40} along axis 1, and `c` folds the rows of {30, 40} along axis 0"
    )
    check_every_stage(TWO_SPACES)


def test_a_residual_block_is_one_kernel_that_returns_the_sum_too() -> None:
    """The residual sum is a result, the norm of it another."""
    text = """
        x = @param:x -> half{16, 64}
        r = @param:r -> half{16, 64}
        g = @param:g -> half{64}
        h = add(x, r)
        m = reduce_mean[axes={1}](h)
        d = sub(h, m)
        q = mul(d, d)
        v = reduce_mean[axes={1}](q)
        w = add(v, 0.00001)
        i = rsqrt(w)
        n = mul(d, i)
        y = mul(n, g)
        @return(h, y)
        """
    assert kernels_of(text) == ["h y"]


def test_rows_written_in_two_ways_are_one_space() -> None:
    text = """
        x = @param:x -> float{8, 6, 10}
        f = reshape[dims={48, 10}](x)
        a = reduce_sum[axes={2}](x)
        b = reduce_max[axes={1}](f)
        @return(a, b)
        """
    assert kernels_of(text) == ["a b"]
    check_every_stage(text)


def test_equal_kernels_are_one_module_called_twice() -> None:
    text = """
        x = @param:x -> float{30, 40}
        a = reduce_sum[axes={0}](x)
        b = sub(x, a)
        c = reduce_max[axes={1}](b)
        d = sub(b, c)
        e = reduce_sum[axes={0}](d)
        f = sub(d, e)
        g = reduce_max[axes={1}](f)
        y = sub(f, g)
        @return(b, d, f, y)
        """
    (unit,) = load(text).lower("fuse").units
    assert unit.main is not None
    calls = [(call.kernel, call.operands, call.results) for call in unit.main.calls]
    assert calls == [
        ("k0", ("x",), ("b",)),
        ("k1", ("b",), ("d",)),
        ("k0", ("d",), ("f",)),
        ("k1", ("f",), ("y",)),
    ]
    check_every_stage(text)


MOVED = {
    "transposed": "t = transpose[permutation={1, 0}](s)",
    "reversed": "t = reverse[axes={0}](s)",
    "padded": "t = pad[pads={2, 0, 0, 0}](s)",
    "repeated as columns": "u = reshape[dims={1, 30}](s)\n    t = multibroadcast[out_lens={30, 30}](u)",
}


@pytest.mark.parametrize("move", MOVED)
def test_a_reduction_is_never_made_elsewhere_than_in_its_row(move: str) -> None:
    """A kernel has each row's sum in that row only: whoever takes it from another row reads it from memory."""
    text = f"""
    x = @param:x -> float{{30, 30}}
    s = reduce_sum[axes={{1}}](x)
    {MOVED[move]}
    y = exp(t)
    @return(y)
    """
    plan = plan_of(text)
    if move == "transposed":
        # Nothing moves in memory: one row of 30 is 30 rows of one.
        assert [k.outputs for k in plan.kernels] == [("y",)]
    else:
        assert [k.outputs for k in plan.kernels] == [("s",), ("y",)]
        assert stored_because(plan, "s").startswith("the kernel of `y` has no rows, and `s` folds")
    check_every_stage(text)


def test_a_row_kernel_reads_sums_of_other_rows_from_memory() -> None:
    text = """
        x = @param:x -> float{30, 40}
        s = reduce_sum[axes={1}](x)
        t = reverse[axes={0}](s)
        a = sub(x, t)
        m = reduce_max[axes={1}](a)
        y = sub(a, m)
        @return(y)
        """
    plan = plan_of(text)
    assert [k.outputs for k in plan.kernels] == [("s",), ("y",)]
    assert stored_because(plan, "s") == "`t` takes `s` elsewhere, and a kernel has it in its own row only"
    check_every_stage(text)


def test_a_main_module_reads_back() -> None:
    """Lowered stage by stage through text, a program of several kernels is what it is at once."""
    text = TWO_SPACES
    for stage in load(TWO_SPACES).stages:
        at_once = str(load(TWO_SPACES).lower(stage))
        text = str(load(text).lower(stage))
        assert text == at_once


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("(x, c)", "(x)"), "`k1` takes 2 operands, not 1"),
        (("(x, c)", "(c, x)"), "`c` is float{1, 40}, but the kernel takes float{30, 40}"),
        (("(x, c)", "(x, d)"), "`d` is not defined"),
        (("y = call", "y, z = call"), "`k1` makes 1 values, not 2"),
        (("module=k1", "module=k7"), "module `k7` is not in this file"),
        (("@return(y)\n\n@module k0", "@return(x)\n\n@module k0"), "no kernel makes `x`"),
    ],
)
def test_a_main_module_is_checked(change: tuple[str, str], message: str) -> None:
    text = str(load(TWO_SPACES).lower("fuse"))
    assert change[0] in text
    with pytest.raises(GenrwError) as caught:
        load(text.replace(*change, 1))
    assert message in caught.value.diagnostics[0].message


# ---- reductions of few rows

COLUMNS = """
    x = @param:x -> half{65536, 256}
    f = convert[target_type=float](x)
    s = reduce_sum[axes={0}](f)
    @return(s)
    """


def test_a_column_sum_is_split_over_the_grid() -> None:
    """The sum of 65536 halves in each of 256 columns: parts of 256 first, then the 256 parts."""
    plan = plan_of(COLUMNS)
    assert [(k.lens, k.axes) for k in plan.kernels] == [((256, 256, 256), (1,)), ((256, 256), (0,))]
    assert [k.loads for k in plan.kernels] == [("x",), ("reduce_sum",)]
    assert stored_because(plan, "reduce_sum") == (
        "the kernel of `s` folds the rows of {256, 256} along axis 0, "
        "and `reduce_sum` folds the rows of {256, 256, 256} along axis 1"
    )


def test_columns_are_split_though_each_workgroup_has_many() -> None:
    """A lane reads several columns at a time, so the lanes of 3072 columns are few."""
    assert len(plan_of(COLUMNS.replace("{65536, 256}", "{16384, 3072}")).kernels) == 2


def test_one_row_is_split_though_all_lanes_would_soon_have_read_it() -> None:
    """One workgroup reads at a small part of the memory's speed."""
    row = "x = @param:x -> float{{{}}}\na = argmax[axis=0](x)\n@return(a)\n"
    assert [(k.lens, k.axes) for k in plan_of(row.format(315846)).kernels] == [((62, 5120), (1,)), ((62,), (0,))]
    assert len(plan_of(row.format(4096)).kernels) == 1


def test_no_row_is_split_whose_parts_cannot_have_the_schedule_that_is_asked_for() -> None:
    text = "x = @param:x -> float{3, 70001}\ns = reduce_sum[axes={1}](x)\ny = sub(x, s)\n@return(y)\n"
    assert len(load(text, "gfx942").lower("schedule").units[0].kernels) > 1
    (kernel,) = load(text, "gfx942", schedule={"algo": "aligned"}).lower("schedule").units[0].kernels
    assert kernel.schedule["algo"] == "aligned"


def test_a_mean_and_a_variance_of_few_long_rows_read_them_once() -> None:
    """Parts of squares are joined by their means, which no pass before has to find."""
    text = """
        x = @param:x -> half{64, 4, 56, 56}
        f = convert[target_type=float](x)
        m = reduce_mean[axes={0, 2, 3}](f)
        d = sub(f, m)
        q = mul(d, d)
        v = reduce_mean[axes={0, 2, 3}](q)
        @return(m, v)
    """
    assert [k.loads for k in plan_of(text).kernels if "x" in k.loads] == [("x",)]


def test_columns_that_fill_the_gpu_are_not_split() -> None:
    """The lanes of a workgroup share columns: 50256 of them are enough for all its lanes."""
    assert kernels_of(COLUMNS.replace("{65536, 256}", "{8192, 50256}")) == ["s"]


def test_misaligned_columns_are_folded_by_residue() -> None:
    """Every eighth row of 50257 halves begins at a multiple of 16 bytes: eight rows together are an aligned one."""
    plan = plan_of(COLUMNS.replace("{65536, 256}", "{8192, 50257}"))
    assert [(k.lens, k.axes) for k in plan.kernels] == [((1024, 402056), (0,)), ((8, 50257), (0,))]
    (kernel, _) = load(COLUMNS.replace("{65536, 256}", "{8192, 50257}")).lower("schedule").modules
    assert (kernel.schedule["algo"], kernel.schedule["vector"]) == ("columns", 8)


def test_the_cpu_folds_rows_whole() -> None:
    assert len(plan_of(COLUMNS, "host").kernels) == 1


SMALL_GPU = """
/// So slow at reading, and with launches so cheap, that a few hundred elements in a row are worth two kernels; with so few units
/// that these rows keep them busy.
target small : cdna
  compute_units 8
  bandwidth_gbs 0.01
  gflops 100
  launch_us 0.1

/// With workgroups so small, and launches so cheap, that rows of a few hundred elements are worth two kernels.
target narrow : cdna
  block_sizes [64]
  default_block 64
  register_elements 4
  compute_units 64
  bandwidth_gbs 1000
  gflops 100
  latency_us 10
  launch_us 0.001
"""
INTEGERS = tuple(f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32, 64))
SPLIT_SHAPES = [((8192, 3), "0"), ((1033, 2), "0"), ((5, 263, 2), "0, 1"), ((3, 2, 263, 2), "0, 2")]
"""Shapes, and the axes of long rows in them."""
NUMBERS = ("sum", "prod", "max", "min", "argmax", "argmin", "mean")


@pytest.fixture(scope="module")
def small_gpu(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("target")
    (folder / "small.rw").write_text(SMALL_GPU)
    return load_library([folder])


@pytest.mark.parametrize("dtype", [*INTEGERS, "half", "bf16", "float", "double", "bool"])
def test_every_fold_of_every_type_is_split(small_gpu: Library, dtype: str) -> None:
    """Parts that come out even, and parts that do not: two kernels, of parts and then of what they gave."""
    folds = ("any", "all", "max", "argmax", "argmin") if dtype == "bool" else NUMBERS
    for lens, axes in SPLIT_SHAPES[len(dtype) % 2 :: 2]:
        shown = ", ".join(map(str, lens))
        chosen = [op for op in folds if "," not in axes or not op.startswith("arg")]
        lines = [f"v{n} = reduce_{op}[axes={{{axes}}}](x)" for n, op in enumerate(chosen)]
        returned = ", ".join(f"v{n}" for n in range(len(chosen)))
        text = "\n".join([f"x = @param:x -> {dtype}{{{shown}}}", *lines, f"@return({returned})"]) + "\n"
        program = load(text, "narrow", small_gpu)
        (plan,) = program.lower("fuse").trace.plans.values()
        rows = [plan.graph.spaces[plan.kernel(k).space].rows for k in plan.order()]
        kept = prod(n for d, n in enumerate(lens) if str(d) not in axes)
        assert min(rows) == kept, text
        assert max(rows) > kept, text
        inputs, want = inputs_and_reference(text)
        assert not differences(program, program.lower("final").run(inputs, "interpret"), want), text


@pytest.mark.parametrize(
    ("dtype", "tail", "classes"),
    [("half", 521, 8), ("bf16", 522, 4), ("half", 524, 2), ("int8", 521, 16), ("uint8", 520, 2)],
)
@pytest.mark.parametrize("op", ["sum", "max"])
def test_residues_of_columns(small_gpu: Library, op: str, dtype: str, tail: int, classes: int) -> None:
    """As many classes of rows as there are places in an access at which they begin."""
    text = f"""
        x = @param:x -> {dtype}{{1040, {tail}}}
        f = convert[target_type=float](x)
        s = reduce_{op}[axes={{0}}](f)
        @return(s)
        """
    program = load(text, "small", small_gpu)
    (plan,) = program.lower("fuse").trace.plans.values()
    assert [plan.graph.spaces[plan.kernel(k).space].rows for k in plan.order()] == [classes * tail, tail]
    inputs, want = inputs_and_reference(text)
    assert not differences(program, program.lower("final").run(inputs, "interpret"), want)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("same", [0.0, float("inf"), float("-inf"), float("nan")])
def test_the_first_of_equal_elements_is_found_in_parts(small_gpu: Library, op: str, same: float) -> None:
    """Also where what fills up the last part is as large as the elements."""
    text = f"x = @param:x -> float{{1033, 2}}\na = {op}[axis=0](x)\n@return(a)\n"
    program = load(text, "narrow", small_gpu).lower("final")
    assert program.units[0].main is not None
    x = np.full((1033, 2), same, np.float32)
    x[:300, 1] = {"argmax": -1e30, "argmin": 1e30}[op]
    (got,) = program.run({"x": x}, "interpret").values()
    (want,) = load(text).run({"x": x}, "interpret").values()
    assert got.tolist() == want.tolist()


@lru_cache(maxsize=1)
def without_alternatives() -> Library:
    """The shipped rules but for alternatives."""
    files = [
        replace(f, declarations=tuple(d for d in f.declarations if not (isinstance(d, RuleDecl) and d.alternative)))
        for f in shipped().files
    ]
    return build_library(files)


def predicted(program: Program) -> float:
    """The microseconds that a program's kernels and their launches are said to take."""
    scheduled = program.lower("schedule")
    kernels = scheduled.units[0].kernels
    launch = float(program.library.target(program.options.target).values["launch_us"])
    return sum(launch + scheduled.trace.schedules[kernel.name][0][0] for kernel in kernels)


OWN_ALTERNATIVE = """
stage fuse

/// What is negated is folded first, for nothing.
rule negated_in_two
  neg(x) when x.lens[0] > 4
  => mul(reshape[dims=x.lens](reduce_sum[axes=[x.rank]](reshape[dims=concat(x.lens, [1])](x))), -1)
  alternative
"""


def test_an_alternative_that_takes_longer_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "own.rw").write_text(OWN_ALTERNATIVE)
    library = load_library([tmp_path])
    text = "x = @param:x -> float{8}\ny = exp(x)\nz = neg(y)\n@return(z)\n"
    plain, own = (load(text, library=each).lower("final") for each in (None, library))
    assert str(own) == str(plain)


def test_alternatives_are_tried_on_kernels_that_have_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that no alternative could match goes into no e-graph for it."""
    tried: list[frozenset[str]] = []
    run = StageEngine.run

    def noted(engine: StageEngine, modules: Sequence[Module], *rest: Any) -> EGraphSnapshot:
        if engine.stage == "fuse" and any(m.name.startswith("alternative") for m in modules):
            tried.extend(frozenset(node.op for node in m.nodes) for m in modules)
        return run(engine, modules, *rest)

    monkeypatch.setattr(StageEngine, "run", noted)
    text = (
        "x = @param:x -> float{64, 1000}\ny = @param:y -> float{7, 9}\n"
        "s = reduce_sum[axes={1}](x)\nz = exp(y)\n@return(s, z)\n"
    )
    load(text, library=build_library(shipped().files)).lower("fuse")
    assert ["reduce_sum" in operators for operators in tried] == [True]


@pytest.mark.parametrize("lens", ["{65536, 1000}", "{1048576, 64}", "{3, 262144}", "{16, 8192, 16}"])
@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100"])
def test_the_plan_with_the_least_predicted_time_is_taken(target: str, lens: str) -> None:
    """What costs say of both plans, each by itself, decides."""
    rank = lens.count(",") + 1
    text = f"x = @param:x -> float{lens}\ns = reduce_sum[axes={{{rank - 2}}}](x)\n@return(s)\n"
    split = predicted(load(text, target))
    plain = predicted(load(text, target, library=without_alternatives()))
    assert split <= plain
    if split < plain:
        assert split < 0.9 * plain


@pytest.mark.parametrize("type_", ["float{8192, 4096}", "half{16384, 16384}", "half{1048576, 136}"])
def test_rows_that_fill_the_gpu_are_folded_whole(type_: str) -> None:
    assert kernels_of(f"x = @param:x -> {type_}\ns = reduce_max[axes={{1}}](x)\n@return(s)\n") == ["s"]


# ---- moves that cost nothing


def simplified(text: str) -> list[str]:
    """The operators of a program that is one kernel, in order."""
    (module,) = load(text).lower("fuse").modules
    return [node.op for node in module.nodes if node.operands][:-1]


def test_a_softmax_of_columns_needs_no_transpose() -> None:
    """Transposed before and back after: the rows of the one are the columns of the other."""
    text = """
        x = @param:x -> float{40, 30}
        t = transpose[permutation={1, 0}](x)
        m = reduce_max[axes={1}](t)
        d = sub(t, m)
        e = exp(d)
        s = reduce_sum[axes={1}](e)
        p = div(e, s)
        y = transpose[permutation={1, 0}](p)
        @return(y)
        """
    assert kernels_of(text) == ["y"]
    assert "transpose" not in simplified(text)
    check_every_stage(text)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("t = transpose[permutation={1, 0}](x)\ne = exp(t)\ny = transpose[permutation={1, 0}](e)", ["exp"]),
        ("r = reshape[dims={80, 3}](x)\ns = reshape[dims={10, 4, 6}](r)\ny = reshape[dims={8, 30}](s)", []),
        ("a = add(x, x)\nb = multibroadcast[out_lens={4, 8, 30}](a)\ny = multibroadcast[out_lens={4, 8, 30}](b)",
         ["add", "multibroadcast"]),
        ("t = transpose[permutation={1, 0}](x)\ns = reduce_sum[axes={0}](t)\ny = reshape[dims={8}](s)",
         ["reduce_sum", "reshape"]),
    ],
)  # fmt: skip
def test_moves_are_joined_and_absorbed(body: str, left: list[str]) -> None:
    text = f"x = @param:x -> float{{8, 30}}\n{body}\n@return(y)\n"
    assert simplified(text) == left


def test_axes_of_one_do_not_multiply() -> None:
    """Transposes of axes of length 1 are equal in many ways, which must not all be tried."""
    text = """
        x = @param:x -> float{1, 1, 33, 65}
        t = transpose[permutation={2, 3, 0, 1}](x)
        a = reduce_mean[axes={2, 3}](t)
        b = mul(a, t)
        c = reduce_sum[axes={2}](b)
        y = min(b, c)
        @return(y)
        """
    assert len(kernels_of(text)) == 1
    assert len(simplified(text)) <= 3


def test_reshapes_between_a_reduction_and_what_it_reads_move_nothing() -> None:
    """Elements keep their numbers: every load is at the kernel's own element."""
    text = """
        x = @param:x -> float{4, 6, 10}
        r = reshape[dims={24, 10}](x)
        e = exp(r)
        s = reduce_sum[axes={1}](e)
        y = reshape[dims={4, 6}](s)
        @return(y)
        """
    assert kernels_of(text) == ["y"]
    (module,) = load(text).lower("lanewise").modules
    assert not [n.op for n in module.nodes if n.op.endswith("_index") and n.op not in ("rows_index", "strided_index")]


# ---- names and schedules of several kernels


@pytest.mark.parametrize("name", ["x", "c"])
def test_values_between_kernels_may_be_called_as_an_output(name: str) -> None:
    """An input, and a value that one kernel stores and another reads."""
    text = re.sub(rf"\b{name}\b", "z_output", TWO_SPACES)
    lowered = check_last_stage(text)
    assert len(lowered.modules) == 2
    for module in lowered.modules:
        names = [p.attribute("name") for p in module.parameters]
        assert len(set(names)) == len(names)


def test_a_pinned_schedule_is_for_the_kernels_that_can_have_it() -> None:
    text = TWO_SPACES.replace("{30, 40}", "{64, 1000}")
    pinned = load(text, schedule={"algo": "block"}).lower("schedule")
    assert [m.schedule["algo"] for m in pinned.modules] == ["subwave", "block"]
    both = load(text, schedule={"algo": "wave"}).lower("schedule")
    assert [m.schedule["algo"] for m in both.modules] == ["wave", "wave"]
    with pytest.raises(GenrwError) as caught:
        load(text, schedule={"algo": "flat"}).lower("schedule")
    assert "no legal schedule of module `k0` has algo=flat" in caught.value.diagnostics[0].message


def residual_blocks(seed: int) -> str:
    """Halves through products, biases, activations, turned heads, sums with what came before and norms, in any order."""
    draw = Random(seed)
    lines = ["x = @param:x -> half{2, 48, 64}"]
    value, kept = "x", "x"
    for i in range(draw.randint(3, 6)):
        step = draw.choice(["product", "product", "norm", "residual", "activation", "heads"])
        if step == "product":
            lines += [f"w{i} = @param:w{i} -> half{{64, 64}}", f"b{i} = @param:b{i} -> half{{64}}"]
            lines += [f"d{i} = dot({value}, w{i})", f"v{i} = add(d{i}, b{i})"]
        elif step == "norm":
            lines.append(f"v{i} = layernorm[axes={{2}}]({value})")
        elif step == "residual":
            lines.append(f"v{i} = add({value}, {kept})")
        elif step == "activation":
            lines.append(f"v{i} = {draw.choice(['relu', 'tanh', 'gelu_erf'])}({value})")
        else:
            lines += [
                f"h{i} = reshape[dims={{2, 48, 4, 16}}]({value})",
                f"t{i} = transpose[permutation={{0, 2, 1, 3}}](h{i})",
            ]
            lines += [f"e{i} = exp(t{i})", f"u{i} = transpose[permutation={{0, 2, 1, 3}}](e{i})"]
            lines.append(f"v{i} = reshape[dims={{2, 48, 64}}](u{i})")
        value, kept = f"v{i}", draw.choice([kept, f"v{i}"])
    return "\n".join([*lines, f"y = neg({value})", "@return(y)\n"])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_tensors_between_kernels_are_of_the_programs_type(seed: int, target: str) -> None:
    """What has as many elements as the program's tensors is stored in halves, as the program rounds it; and it is read."""
    program = load(residual_blocks(seed), target).lower("fuse")
    wide = [
        p for m in program.modules for p in m.parameters if p.type.dtype == "float" and p.type.elements >= 2 * 48 * 64
    ]
    assert not wide, program
    for plan in program.trace.plans.values():
        read = {i for body in plan.bodies.values() for i in body.loads}
        assert set(plan.owner) <= read | set(plan.graph.results), program


@pytest.mark.parametrize("seed", range(4))
def test_roundings_between_kernels_change_nothing_else(seed: int) -> None:
    check_every_stage(residual_blocks(seed), "sm_90")
