"""A monoid, a pointwise operator, a reduce algorithm and a target are added as rules alone, and work at every level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import genrw
from genrw.codegen.runtime.amd import compile_amd
from genrw.codegen.runtime.devices import find_device
from genrw.engine.interpret.compare import compare
from genrw.engine.interpret.inputs import random_inputs

RULES = """\
/// log(sum(exp(x))), carried as the largest element and the sum in terms of its exponential.
monoid logsumexp
  carry m: T, s: T
  element m = x, s = 1
  identity m = lowest(type), s = 0
  combine m = max(a.m, b.m),
          s = (a.s * exp(a.m - max(a.m, b.m)) if a.s > 0 else 0) + (b.s * exp(b.m - max(a.m, b.m)) if b.s > 0 else 0)
  finish m + log(s)
  accumulate float for half, bf16

/// log(1 + exp(x)).
op logplus(x: T) -> T where T: real
  role pointwise
  means log(1 + exp(x))

/// A GPU that nobody makes: few units, waves of 32.
target toy : rdna
  arch "gfx1100"
  compute_units 4
  bandwidth_gbs 100
  gflops 1000

stage schedule

/// A wave on each row, each of its lanes on a strip of neighbours.
rule row_a_strip
  return(xs...)
  when is_rows(space, policy) and target.wave_size > 1 and space.n <= 8 * target.wave_size
  => scheduled[algo="strip", block_size=target.wave_size, lanes=target.wave_size, vector=1,
               share=ceil_div(space.n, target.wave_size), steps=1](xs...)

stage lanewise

/// The wave's row.
rule row_of_strip
  row[..]() when schedule.algo == "strip"
  => workgroup_id()

let strips_cover(space, schedule) = space.n % (schedule.lanes * schedule.share) == 0

/// The lane's strip.
rule position_in_strip
  position[..]() when schedule.algo == "strip" and strips_cover(space, schedule)
  => strided_index[size=schedule.share, stride=1](lane_id() * {schedule.share})

/// The last strips end with the row.
rule position_in_strip_tail
  position[..]() when schedule.algo == "strip" and not strips_cover(space, schedule)
  => bound[limit=space.n](strided_index[size=schedule.share, stride=1](lane_id() * {schedule.share}))

/// The lanes of the wave meet.
rule fold_strip
  row_fold[op, algo="strip"](x)
  => dpp_reduce[op](lane_reduce[op](share[op](x)))
"""

PROGRAM = """\
x = @param:x -> {type}{{6, {n}}}
s = logplus(x)
l = reduce_logsumexp[axes={{1}}](s)
y = sub(x, l)
@return(y, l)
"""

STRIP = {"algo": "strip"}
LENGTHS = (64, 100, 7)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the additions, and nothing else."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "more.rw").write_text(RULES)
    return folder


def load(rules: Path, n: int, target: str, schedule: dict[str, object], dtype: str = "float") -> genrw.Program:
    text = PROGRAM.format(type=dtype, n=n)
    return genrw.load(text, rules=[rules], target=target, schedule=schedule)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(
    ("target", "schedule"),
    [("toy", STRIP), ("gfx942", STRIP), ("toy", {"algo": "block"}), ("toy", {}), ("host", {})],
)
def test_every_stage(rules: Path, n: int, target: str, schedule: dict[str, object]) -> None:
    program = load(rules, n, target, {} if schedule.get("algo") == "block" and n <= 32 else schedule)
    inputs = random_inputs(program.modules[0], program.library, 0)
    want = program.run(inputs, "interpret", precise=True)
    for stage, lowered in program.remaining_stages():
        got = lowered.run(inputs, "interpret")
        for name in want:
            assert compare(got[name], want[name], "float") is None, f"{stage}: {name}"


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize(("target", "schedule"), [("toy", STRIP), ("gfx942", STRIP), ("toy", {}), ("host", {})])
def test_on_the_host(rules: Path, n: int, dtype: str, target: str, schedule: dict[str, object]) -> None:
    program = load(rules, n, target, schedule, dtype)
    inputs = random_inputs(program.modules[0], program.library, 1)
    want = program.run(inputs, "interpret", precise=True)
    run = find_device("host").prepare(program)
    for order in (0, 1, 2):
        got = run(inputs, order=order)
        for name in want:
            assert compare(got[name], want[name], dtype) is None, name


def test_on_the_host_through_workgroup_memory(rules: Path) -> None:
    program = load(rules, 100, "toy", {"algo": "block", "block_size": 64})
    inputs = random_inputs(program.modules[0], program.library, 1)
    want = program.run(inputs, "interpret", precise=True)
    got = program.run(inputs, order=3)
    assert compare(got["y"], want["y"], "float") is None


def test_the_result_is_what_numpy_says(rules: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6, 100)).astype(np.float32)
    y, total = genrw.compile(PROGRAM.format(type="float", n=100), rules=[rules])(x)
    np.testing.assert_allclose(total[:, 0], np.log(np.sum(1 + np.exp(x.astype(float)), axis=1)), rtol=1e-5)
    np.testing.assert_allclose(y, x - total, rtol=1e-5)


@pytest.mark.parametrize("target", ["toy", "gfx90a", "gfx942", "gfx1201"])
def test_code_objects(rules: Path, target: str) -> None:
    program = load(rules, 100, target, STRIP)
    arch = program.library.target(target).values.get("arch", target)
    for kernel in program.kernels():
        report = compile_amd(kernel.text, str(arch), kernel.wave_size, kernel.name).kernels[kernel.name]
        assert report.scratch_bytes == 0
