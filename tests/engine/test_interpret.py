"""Programs evaluated in numpy: every stage means what the program means, and wrong programs are caught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import load

from genrw.engine.interpret import lane_program
from genrw.engine.interpret.compare import compare
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.interpret.reference import interpret
from genrw.engine.ir.dtypes import DTYPES, dtype_name, numpy_dtype
from genrw.engine.ir.nodes import Module, Unit
from genrw.engine.language.arrays import check_repeats
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.lowering.trace import Trace
from genrw.engine.programs.build import build_file
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import parse_gen
from genrw.grammar.rw import parse_rw

RULES = Path(__file__).parents[2] / "rules"

FIRST_HIGHEST = """
/// The place of the first highest element.
monoid first_highest
  carry value: T, index: int64
  element value = x, index = k
  identity value = lowest(type), index = highest(int64)
  combine value = max(a.value, b.value), index = a.index if before(a, b) else b.index
  finish index
  result int64

let before(a, b) = a.value > b.value or (a.value == b.value and a.index < b.index)

/// The mean; half is added up in float.
monoid average
  identity 0
  combine a + b
  finish a / n
  accumulate float for half
"""


def _library(*more: str) -> Library:
    files = [parse_rw(path.read_text(), path.name) for path in sorted(RULES.rglob("*.rw"))]
    return build_library([*files, *(parse_rw(text, "more.rw") for text in more)])


@pytest.fixture(scope="module")
def library() -> Library:
    return _library()


@pytest.fixture(scope="module")
def pipeline(library: Library) -> Pipeline:
    return Pipeline(library)


def _module(library: Library, text: str, target: str = "gfx942") -> Module:
    ((module,),) = (unit.kernels for unit in build_file(parse_gen(text), library, target))
    return replace(module, target=target)


# ---- every stage means what the program means

PROGRAMS = {
    "softmax": """
        x = @param:x -> float{{3, {n}}}
        m = reduce_max[axes={{1}}](x)
        e = exp(sub(x, m))
        s = reduce_sum[axes={{1}}](e)
        y = div(e, s)
        @return(y, s)
    """,
    "rows": "x = @param:x -> {t}{{5, {n}}}\ns = reduce_{op}[axes={{1}}](x)\n@return(s)",
    "columns": "x = @param:x -> {t}{{{n}, 5}}\ns = reduce_{op}[axes={{0}}](x)\n@return(s)",
    "middle": "x = @param:x -> {t}{{2, {n}, 3}}\ns = reduce_{op}[axes={{1}}](x)\ny = sub(x, s)\n@return(y)",
    "two axes": "x = @param:x -> {t}{{2, {n}, 3, 2}}\ns = reduce_{op}[axes={{1, 3}}](x)\n@return(s)",
    "strided": """
        x = @param:x -> {t}{{6, {n}}}, {{2048, 1}}
        s = reduce_{op}[axes={{1}}](x)
        y = sub(x, s)
        @return(s, y)
    """,
    "all": "x = @param:x -> {t}{{{n}, 3}}\ns = reduce_{op}[axes={{0, 1}}](x)\ny = mul(x, s)\n@return(y)",
    "pointwise": """
        x = @param:x -> {t}{{{n}}}
        y = @param:y -> {t}{{{n}}}
        z = relu(add(x, y))
        w = mul(z, 3)
        @return(w, z)
    """,
}


def _inline(text: str) -> str:
    """Nested calls written one a line."""
    return text.replace("e = exp(sub(x, m))", "d = sub(x, m)\ne = exp(d)").replace(
        "z = relu(add(x, y))", "a = add(x, y)\nz = relu(a)"
    )


def _program(name: str, n: int, dtype: str = "float", op: str = "sum") -> str:
    return _inline(PROGRAMS[name]).format(n=n, t=dtype, op=op)


def _schedules(module: Module, pipeline: Pipeline, options: Options) -> list[Mapping[str, Any]]:
    """Every legal schedule of a module."""
    trace = Trace()
    pipeline.lower([Unit((module,))], "schedule", options, trace)
    return [schedule for _, schedule, _ in trace.schedules[module.name]]


def _check(
    module: Module,
    want: Mapping[str, Any],
    inputs: Mapping[str, Any],
    pipeline: Pipeline,
    options: Options,
) -> None:
    got = interpret(module, pipeline.library, pipeline.context(module, options), inputs)
    assert len(got) == len(want)
    for name, found, right in zip(want, got.values(), want.values(), strict=True):
        dtype = dtype_name(found.dtype)
        assert dtype is not None
        wrong = compare(found, right, dtype)
        assert wrong is None, f"{name} {wrong} at stage {module.stage} with {dict(module.schedule)}"


def _check_all_stages(text: str, pipeline: Pipeline, target: str = "gfx942", every: int = 1, first: int = 0) -> None:
    """Each stage of each legal schedule (or of one in `every`) against the reference."""
    options = Options(target)
    module = _module(pipeline.library, text, target)
    inputs = random_inputs(module, pipeline.library, 1)
    want = interpret(module, pipeline.library, {}, inputs, precise=True)
    schedules = _schedules(module, pipeline, options)
    schedules = schedules[first % len(schedules) :: every]
    units = [
        Unit((replace(_module(pipeline.library, text, target), name=f"k{i}", schedule=schedule),))
        for i, schedule in enumerate(schedules)
    ]
    for stage in pipeline.stages:
        units = pipeline.lower(units, stage, options)
        for (lowered,) in (unit.kernels for unit in units):
            _check(lowered, want, inputs, pipeline, options)


EXTENTS = (1, 2, 3, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025)


@pytest.mark.few(3)
@pytest.mark.parametrize("n", EXTENTS)
@pytest.mark.parametrize("name", ["softmax", "rows", "pointwise"])
def test_stages_mean_the_program(name: str, n: int, pipeline: Pipeline) -> None:
    _check_all_stages(_program(name, n), pipeline, every=3, first=n % 3)


@pytest.mark.few(3)
@pytest.mark.parametrize("n", [1, 3, 65, 128, 1025])
@pytest.mark.parametrize("name", ["columns", "middle", "two axes", "strided", "all"])
def test_other_axes_and_strides(name: str, n: int, pipeline: Pipeline) -> None:
    _check_all_stages(_program(name, n), pipeline, every=4, first=n % 2)


NUMBERS = ("float", "half", "bf16", "double", "int8", "uint8", "int32")
FOLDED = [
    *((op, dtype) for op in ("sum", "prod", "max", "min") for dtype in NUMBERS),
    *(("mean", dtype) for dtype in ("float", "half", "int32")),
    ("any", "bool"),
    ("all", "bool"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("op", "dtype"), FOLDED)
def test_every_monoid_and_type(op: str, dtype: str, pipeline: Pipeline) -> None:
    _check_all_stages(_program("rows", 100, dtype, op), pipeline, every=8)


MOVES = {
    "reflected": """
        t = transpose[permutation={1, 0}](x)
        p = pad[pads={1, 2, 0, 3}, mode="reflect"](t)
        q = reverse[axes={0}](p)
        y = slice[axes={0, 1}, starts={1, 1}, ends={60, 8}, steps={3, 2}](q)
        @return(y)
    """,
    "padded rows": """
        p = pad[pads={1, 2, 0, 3}](x)
        m = reduce_max[axes={1}](p)
        y = sub(p, m)
        @return(y)
    """,
    "gathered": """
        i = @param:i -> int32{2, 3}
        y = gather[axis=1](x, i)
        @return(y)
    """,
    "turned in workgroup memory": """
        z = @param:z -> float{64, 32}
        t = transpose[permutation={1, 0}](x)
        y = add(t, z)
        @return(y)
    """,
}


@pytest.mark.parametrize("name", MOVES)
def test_moved_elements(name: str, pipeline: Pipeline) -> None:
    _check_all_stages("x = @param:x -> float{32, 64}\n" + MOVES[name], pipeline, every=4)


@pytest.mark.parametrize("target", ["gfx1100", "sm_90", "host"])
@pytest.mark.parametrize("n", [3, 129])
def test_other_targets(target: str, n: int, pipeline: Pipeline) -> None:
    _check_all_stages(_program("softmax", n), pipeline, target, every=3)


def test_long_rows_walk_in_steps(pipeline: Pipeline) -> None:
    text = _program("softmax", 20011)
    options = Options("gfx942")
    schedules = _schedules(_module(pipeline.library, text), pipeline, options)
    assert any(schedule["steps"] > 1 for schedule in schedules)
    _check_all_stages(text, pipeline, every=max(1, len(schedules) // 4))


def test_workgroups_are_evaluated_some_at_a_time(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_program, "CHUNK", 1 << 10)
    _check_all_stages(_program("softmax", 65), pipeline, every=5)
    _check_all_stages(_program("pointwise", 1025), pipeline)


# ---- what lane programs must not do


HEADER = """
@module k [stage=lanewise, target=gfx942, space={100}, outputs={z_output=y},
           schedule={algo=flat, block_size=64, lanes=64, vector=1, share=1, steps=1, grid=2}]
x = @param:x -> float{100}
z_output = @param:z_output -> float{100}
gid = global_id
"""


def _run(library: Library, text: str, context: Mapping[str, Any] | None = None) -> dict[str, Any]:
    module = _module(library, text)
    pipeline = Pipeline(library)
    inputs = random_inputs(module, library, 3)
    return interpret(module, library, context or pipeline.context(module, Options("gfx942")), inputs)


def _failure(library: Library, text: str) -> str:
    with pytest.raises(GenrwError) as caught:
        _run(library, text)
    return caught.value.diagnostics[0].message


def test_a_lane_program_runs_from_its_text(library: Library) -> None:
    text = HEADER + "b = bound[limit=100](gid)\nv = load(x, b)\ns = store(z_output, b, v)\n@return(s)"
    inputs = random_inputs(_module(library, text), library, 3)
    assert np.array_equal(_run(library, text)["y"], inputs["x"])


def test_reading_outside_a_tensor(library: Library) -> None:
    text = HEADER + "b = bound[limit=100](gid)\nv = load(x, gid)\ns = store(z_output, b, v)\n@return(s)"
    message = _failure(library, text)
    assert "`load` (v): reads offset 100 of x" in message
    assert "group 1, lane 36, step 0, element 0" in message


def test_writing_outside_a_tensor(library: Library) -> None:
    text = HEADER + "b = bound[limit=100](gid)\nv = load(x, b)\ns = store(z_output, gid, v)\n@return(s)"
    assert "`store` (s): writes offset 100 of z_output" in _failure(library, text)


def test_elements_that_nobody_writes(library: Library) -> None:
    text = HEADER + "b = bound[limit=97](gid)\nv = load(x, b)\ns = store(z_output, b, v)\n@return(s)"
    assert "leaves 3 of 100 elements of z_output unwritten, the first at {97}" in _failure(library, text)


def test_lanes_that_write_different_values(library: Library) -> None:
    text = HEADER + "b = bound[limit=100](gid)\nv = load(x, b)\nq = idiv(b, 2)\ns = store(z_output, q, v)\n@return(s)"
    assert "writes different values to offset 0 of z_output" in _failure(library, text)


TURNED = """
@module k [stage=lanewise, target=gfx942, space={{3, 64}}, outputs={{z_output=y}},
           schedule={{algo=flat, block_size=64, lanes=64, vector=1, share=1, steps=1, grid=3}}]
x = @param:x -> float{{192}}
z_output = @param:z_output -> float{{192}}
lds = lds_allocate[shape={{float, {{64}}}}]
gid = global_id
lid = local_id
v = load(x, gid)
w = lds_write(lds, {place}, v)
r = lds_ready(lds, w)
most = imul(lid, 63)
next = iadd(most, 63)
turned = imod(next, 64)
u = lds_read({memory}, turned)
s = store(z_output, gid, u)
@return(s)
"""


def test_workgroup_memory_belongs_to_a_workgroup(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_program, "CHUNK", 128)
    text = TURNED.format(place="lid", memory="r")
    x = random_inputs(_module(library, text), library, 3)["x"]
    assert np.array_equal(_run(library, text)["y"], x.reshape(3, 64)[:, ::-1].ravel())


@pytest.mark.parametrize(
    ("place", "memory", "message"),
    [
        ("lid", "lds", "`lds_read` (u): reads an element of lds that was not written yet"),
        ("gid", "r", "`lds_write` (w): writes offset 64 of lds, outside its memory, in group 1, lane 0"),
        ("0", "r", "`lds_write` (w): writes different values to offset 0 of lds"),
    ],
)
def test_misused_workgroup_memory(place: str, memory: str, message: str, library: Library) -> None:
    assert _failure(library, TURNED.format(place=place, memory=memory)).startswith(message)


def test_values_of_two_loops_do_not_mix(library: Library) -> None:
    text = (
        HEADER
        + """
        s0 = step[pass=0, extent=2]
        s1 = step[pass=1, extent=2]
        i = iadd(s0, s1)
        v = load(x, i)
        s = store(z_output, gid, v)
        @return(s)
    """
    )
    assert "`iadd` (i) mixes the steps of loops 0 and 1" in _failure(library, text)


def test_an_operator_without_meaning() -> None:
    library = _library("op odd(x: T) -> T where T: any\n  role pointwise")
    message = _failure(library, "x = @param:x -> float{2}\ny = odd(x)\n@return(y)")
    assert message == "`odd` has no meaning to evaluate"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "there is no value for the input `x`"),
        ({"x": np.ones(3, np.float32), "y": 1}, "module `main` has no input `y`"),
        ({"x": np.ones(4, np.float32)}, "the input `x` has lens [3], not [4]"),
        ({"x": np.ones(3)}, "the input `x` is of type float, not double"),
    ],
)
def test_inputs_that_do_not_fit(inputs: dict[str, Any], message: str, library: Library) -> None:
    module = _module(library, "x = @param:x -> float{3}\ny = exp(x)\n@return(y)")
    with pytest.raises(GenrwError, match=message.replace("[", r"\[")):
        interpret(module, library, {}, inputs)


def test_results_with_one_name_are_told_apart(library: Library) -> None:
    text = "x = @param:x -> float{3}\nexp(x)\n@return(exp, exp, x)"
    assert list(_run(library, text, {})) == ["exp", "exp_1", "x"]


# ---- folds


def test_a_monoid_with_two_fields() -> None:
    library = _library(FIRST_HIGHEST)
    module = _module(library, "x = @param:x -> float{4, 7}\ny = reduce_first_highest[axes={1}](x)\n@return(y)")
    x = np.random.default_rng(0).integers(0, 3, (4, 7)).astype(np.float32)
    got = interpret(module, library, {}, {"x": x})["y"]
    assert got.dtype == np.int64
    assert np.array_equal(got, np.argmax(x, 1)[:, None])


def test_a_monoid_with_two_fields_over_lanes() -> None:
    library = _library(FIRST_HIGHEST)
    header = HEADER.replace("float{100}\ngid", "int64{1}\ngid").replace("space={100}", "space={100}, axes={0}")
    header = header.replace("share=1, steps=1, grid=2", "share=2, steps=1, grid=1")
    text = (
        header
        + """
        chunks = strided_index[size=2, stride=64](gid)
        k = bound[limit=100](chunks)
        v = load(x, k)
        e = fold_element[op=first_highest](v, k)
        none = identity[op=first_highest, dtype=float]
        filled = or_else(e, k, none)
        lane = lane_reduce[op=first_highest](filled)
        wave = dpp_reduce[op=first_highest](lane)
        y = fold_finish[op=first_highest, n=100](wave)
        i = elect[lanes=64](0)
        s = store(z_output, i, y)
        @return(s)
    """
    )
    module = _module(library, text)
    x = np.random.default_rng(0).integers(0, 30, 100).astype(np.float32)
    context = Pipeline(library).context(module, Options("gfx942"))
    assert interpret(module, library, context, {"x": x})["y"].tolist() == [int(np.argmax(x))]


def test_a_finish_gets_the_number_of_elements() -> None:
    library = _library(FIRST_HIGHEST)
    text = "x = @param:x -> half{3, 5, 2}\ny = reduce_average[axes={0, 2}](x)\n@return(y)"
    module = _module(library, text)
    x = random_inputs(module, library, 0)["x"]
    precise = interpret(module, library, {}, {"x": x}, precise=True)["y"]
    np.testing.assert_allclose(precise, x.astype(np.float64).mean((0, 2), keepdims=True), rtol=1e-14)
    got = interpret(module, library, {}, {"x": x})["y"]
    assert got.dtype == np.float16
    assert np.array_equal(got, precise.astype(np.float16))


def test_the_fold_of_nothing_is_the_identity(pipeline: Pipeline) -> None:
    text = "x = @param:x -> float{3, 0}\ny = reduce_sum[axes={1}](x)\n@return(y)"
    assert _run(pipeline.library, text, {})["y"].tolist() == [[0.0]] * 3


def test_an_infinite_element_decides_a_product_of_small_ones(library: Library) -> None:
    """Their product is 0 in double; times infinity that would be NaN."""
    x = np.random.default_rng(0).uniform(-1, 1, (3, 2000))
    x[0, 1500], x[1, 1900], x[1, 7] = np.inf, -np.inf, 0
    module = _module(library, "x = @param:x -> double{3, 2000}\ny = reduce_prod[axes={1}](x)\n@return(y)")
    got = interpret(module, library, {}, {"x": x})["y"]
    signs = np.prod(np.sign(x), axis=1, keepdims=True)
    np.testing.assert_array_equal(got, [signs[0] * np.inf, [np.nan], signs[2] * 0])


@pytest.mark.parametrize("lens", [(), (3,), (3, 1), (0, 2)])
def test_bits_have_the_shape_of_what_they_are_of(library: Library, lens: tuple[int, ...]) -> None:
    shape = ", ".join(map(str, lens))
    module = _module(library, f"x = @param:x -> float{{{shape}}}\ny = bitcast[target_type=int32](x)\n@return(y)")
    x = np.full(lens, -1.5, np.float32)
    got = interpret(module, library, {}, {"x": x})["y"]
    np.testing.assert_array_equal(got, np.full(lens, -0x40400000, np.int32), strict=True)


INJECTIVE = {"transpose": "transpose[permutation={2, 0, 1}](x)"}


def test_every_injective_operator_is_tried(library: Library) -> None:
    assert {name for name, operator in library.operators.items() if operator.decl.injective} == {*INJECTIVE}


@pytest.mark.parametrize("name", INJECTIVE)
def test_results_of_injective_operators_tell_the_operand(library: Library, name: str) -> None:
    module = _module(library, f"x = @param:x -> float{{2, 3, 4}}\ny = {INJECTIVE[name]}\n@return(y)")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert sorted(interpret(module, library, {}, {"x": x})["y"].flat) == [*range(24)]


# ---- inputs


def test_inputs_are_the_same_for_a_seed(library: Library) -> None:
    module = _module(library, "x = @param:x -> half{9}\nb = @param:b -> bool{50}\n@return(x, b)")
    first, again, other = (random_inputs(module, library, seed) for seed in (1, 1, 2))
    assert np.array_equal(first["x"], again["x"])
    assert not np.array_equal(first["x"], other["x"])
    assert first["x"].dtype == np.float16
    assert first["b"].any()
    assert not first["b"].all()


def test_inputs_lie_in_the_domains() -> None:
    library = _library("""
        op root(x: T) -> T where T: real
          role pointwise
          means sqrt(x)
          domain x >= 0
        op pick[axis: axis](data: T tensor, indices: integer tensor) -> tensor(T, indices.lens) where T: any
          means take(data, indices, axis)
          domain indices >= -data.lens[axis] and indices < data.lens[axis]
    """)
    module = _module(library, """
        x = @param:x -> float{20}
        p = @param:p -> int32{40}
        i = @param:i -> int64{500}
        q = @param:q -> int32{40}
        a = root(x)
        b = multibroadcast[out_lens={3, 40}](q)
        c = div(p, b)
        d = pick[axis=0](x, i)
        @return(a, c, d)
    """)  # fmt: skip
    inputs = random_inputs(module, library, 5)
    assert (inputs["x"] > 0).all()
    assert (inputs["q"] != 0).all()
    assert inputs["i"].min() < 0 < inputs["i"].max() < 20
    interpret(module, library, {}, inputs)


def test_inputs_agree_with_strides(library: Library) -> None:
    module = _module(library, "x = @param:x -> float{4, 3}, {0, 1}\n@return(x)")
    x = random_inputs(module, library, 0)["x"]
    assert (x == x[:1]).all()


# ---- comparing


NEAR = np.linspace(0.5, 1.0, 100)


@pytest.mark.parametrize(
    ("got", "want", "dtype"),
    [
        (NEAR.astype(np.float32), NEAR, "float"),
        (NEAR.astype(np.float16), NEAR, "half"),
        (np.array([np.nan, np.inf], np.float32), np.array([np.nan, 1e300]), "float"),
        (np.array([3, 4]), np.array([3, 4]), "int64"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "double"),
    ],
)
def test_results_that_agree(got: Any, want: Any, dtype: str) -> None:
    assert compare(got, want, dtype) is None


def _with(place: int, value: float) -> Any:
    values = NEAR.astype(np.float32)
    values[place] = value
    return values


def test_results_whose_squares_are_beyond_double_agree() -> None:
    want = NEAR.astype(np.float64) * 1e300
    assert compare(want * (1 + 2.0**-52), want, "double") is None


def test_a_result_is_as_exact_as_what_it_is_computed_in() -> None:
    """A float that is stored as a double has a float's digits, and its range."""
    found = NEAR.astype(np.float32).astype(np.float64)
    assert compare(found, NEAR, "double", "float") is None
    assert "where" in str(compare(found, NEAR, "double"))
    beyond = np.array([1.0, 1e39])
    assert compare(np.array([1.0, np.inf]), beyond, "double", "float") is None
    assert compare(beyond, beyond, "double", "float") is None
    assert "is inf at {1}" in str(compare(np.array([1.0, np.inf]), beyond, "double"))


def test_a_result_is_as_exact_as_its_operators_say_they_are() -> None:
    found = NEAR.astype(np.float32) * np.float32(1 + 2e-5)
    assert compare(found, NEAR, "float", "float", 1.2e-5) is None
    assert "where" in str(compare(found, NEAR, "float", "float", 1e-7))


@pytest.mark.parametrize(
    ("steps", "types"),
    [
        ("y = exp(x)", ("float", "float", 0.0)),
        ("a = exp(x)\ny = convert[target_type=double](a)", ("double", "float", 0.0)),
        ("a = convert[target_type=half](x)\ny = convert[target_type=float](a)", ("float", "half", 0.0)),
        ("a = transpose[permutation={1, 0}](h)\ny = convert[target_type=float](a)", ("float", "float", 0.0)),
        ("a = reduce_sum[axes={1}](h)\ny = convert[target_type=double](a)", ("double", "half", 0.0)),
        ("a = exp(x)\ny = convert[target_type=int32](a)", ("int32", "float", 0.0)),
        ("a = erfc_near(x)\nb = exp_short(a)\ny = exp(b)", ("float", "float", 1.2e-5)),
    ],
)
def test_what_a_result_is_computed_in(steps: str, types: tuple[str, str, float]) -> None:
    text = f"x = @param:x -> float{{4, 3}}\nh = @param:h -> half{{4, 3}}\n{steps}\n@return(y)\n"
    assert load(text).computed_in == {"y": types}


@pytest.mark.parametrize(
    ("got", "want", "dtype", "message"),
    [
        (_with(7, 0.6), NEAR, "float", "is 0.6000000238418579 at {7} where"),
        (_with(7, np.nan), NEAR, "float", "is nan at {7} where"),
        (_with(7, np.inf), NEAR, "float", "is inf at {7} where"),
        (np.array([3, 4]), np.array([3, 5]), "int64", "is 4 at {1} where 5 is right"),
        (np.array([True]), np.array([False]), "bool", "is True at {0} where False is right"),
        (np.zeros(2), np.zeros(3), "double", "has lens [2] where [3] is right"),
        ((NEAR * (1 + 2e-5)).astype(np.float32), NEAR, "float", "the RMS error is"),
        (_with(7, 0.5).astype(np.float64) * 1e300, NEAR.astype(np.float64) * 1e300, "double", "at {7} where"),
    ],
)
def test_results_that_differ(got: Any, want: Any, dtype: str, message: str) -> None:
    found = compare(got, want, dtype)
    assert found is not None
    assert message in found


@pytest.mark.parametrize(("dtype", "end"), [("half", 65520.0), ("bf16", 3.396e38), ("float", 3.40282357e38)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_results_at_the_end_of_a_types_range_may_be_infinite(dtype: str, end: float, sign: float) -> None:
    """One rounding decides there; an infinity is wrong where the reference is far from the end, and the other way round."""
    kind = numpy_dtype(dtype)
    near, far = np.array([sign * end * (1 - DTYPES[dtype].epsilon)]), np.array([sign * end / 2])
    infinite = np.array([sign * np.inf]).astype(kind)
    largest = np.array([sign * end * (1 - 2 * DTYPES[dtype].epsilon)]).astype(kind)
    assert compare(infinite, near, dtype) is None
    assert compare(largest, np.array([sign * end * (1 + DTYPES[dtype].epsilon)]), dtype) is None
    assert "where" in str(compare(infinite, far, dtype))
    assert "where" in str(compare(-infinite, near, dtype))
    assert "where" in str(compare(largest, np.array([sign * end * 2]), dtype))


def test_elements_that_lie_backwards_have_places_of_their_own() -> None:
    array = np.arange(12.0).reshape(3, 4)
    check_repeats("x", array, (-4, -1))
    check_repeats("x", np.subtract.outer(np.arange(3.0), np.arange(4.0)), (1, -1))
    with pytest.raises(GenrwError, match=r"the strides \{1, -1\} of input `x` put its element at \{0, 0\}"):
        check_repeats("x", array, (1, -1))
