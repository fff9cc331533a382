"""Programs evaluated in numpy: every stage's output means what the program means, and wrong programs are caught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from genrw.engine import lane_program
from genrw.engine.build import build_file
from genrw.engine.compare import compare
from genrw.engine.dtypes import dtype_name
from genrw.engine.inputs import random_inputs
from genrw.engine.interpret import interpret
from genrw.engine.ir import Module
from genrw.engine.library import Library, build_library
from genrw.engine.pipeline import Options, Pipeline, Trace
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
  combine value = max(a.value, b.value), index = a.index if a.value > b.value or (a.value == b.value and a.index < b.index) else b.index
  finish index
  result int64

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
    (module,) = build_file(parse_gen(text), library, target).values()
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
        x = @param:x -> {t}{{6, {n}}}, {{1, 6}}
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
    pipeline.lower([module], "schedule", options, trace)
    return [schedule for _, schedule, _ in trace.schedules[module.name]]


def _check(
    module: Module,
    want: Mapping[str, Any],
    inputs: Mapping[str, Any],
    pipeline: Pipeline,
    options: Options,
) -> None:
    got = interpret(module, pipeline.library, pipeline.context(module, options), inputs)
    assert list(got) == list(want)
    for name, right in want.items():
        dtype = dtype_name(got[name].dtype)
        assert dtype is not None
        wrong = compare(got[name], right, dtype)
        assert wrong is None, f"{name} {wrong} at stage {module.stage} with {dict(module.schedule)}"


def _check_all_stages(text: str, pipeline: Pipeline, target: str = "gfx942", every: int = 1) -> None:
    """Each stage of each (or of one in `every`) legal schedule against the reference."""
    options = Options(target)
    module = _module(pipeline.library, text, target)
    inputs = random_inputs(module, pipeline.library, 1)
    want = interpret(module, pipeline.library, {}, inputs, precise=True)
    schedules = _schedules(module, pipeline, options)[::every]
    modules = [
        replace(_module(pipeline.library, text, target), name=f"k{i}", schedule=schedule)
        for i, schedule in enumerate(schedules)
    ]
    for stage in pipeline.stages:
        modules = pipeline.lower(modules, stage, options)
        for lowered in modules:
            _check(lowered, want, inputs, pipeline, options)


EXTENTS = (1, 2, 3, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025)


@pytest.mark.parametrize("n", EXTENTS)
@pytest.mark.parametrize("name", ["softmax", "rows", "columns", "pointwise"])
def test_stages_mean_the_program(name: str, n: int, pipeline: Pipeline) -> None:
    _check_all_stages(_program(name, n), pipeline)
