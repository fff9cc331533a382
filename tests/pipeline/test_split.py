"""Folds that are split over the grid: of any monoid, over any axes, by way of the fields of its accumulator."""

from __future__ import annotations

from pathlib import Path

import pytest

import genrw
from genrw.main import execute

RULES = """
/// Workgroups so small, and launches so cheap, that small rows are worth two kernels.
target slow : cdna
  arch "gfx942"
  block_sizes [64]
  default_block 64
  register_elements 4
  compute_units 64
  bandwidth_gbs 1000
  gflops 100000
  latency_us 10
  launch_us 0.001

/// Two fields, the result of both.
monoid logsumexp
  carry largest: T, sum: T
  element largest = x, sum = 1
  identity largest = lowest(type), sum = 0
  combine largest = max(a.largest, b.largest),
          sum = (a.sum + b.sum if a.largest == b.largest
                 else a.sum + b.sum * exp(b.largest - a.largest) if a.largest > b.largest
                 else a.sum * exp(a.largest - b.largest) + b.sum)
  finish largest + log(sum)
  accumulate float for half, bf16

/// One value, of which a result is read off.
monoid average
  identity 0
  combine a + b
  finish a / n
  accumulate float for half, bf16

/// Fields of several types, and positions.
monoid summary
  carry count: int64, last: int32, any: bool, sum: T
  element count = 1, last = k, any = x > 2, sum = x
  identity count = 0, last = -1, any = false, sum = 0
  combine count = a.count + b.count, last = max(a.last, b.last), any = a.any or b.any, sum = a.sum + b.sum
  finish (sum / convert(count, "float") + (1 if any else 0)) + convert(last, "float") * 0.001
  accumulate float for half, bf16
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.rw").write_text(RULES)
    return tmp_path


def program(folder: Path, op: str, type_: str, axes: str) -> Path:
    path = folder / "p.gen"
    path.write_text(f"x = @param:x -> {type_}\ny = reduce_{op}[axes={axes}](x)\n@return(y)\n")
    return path


@pytest.mark.parametrize("op", ["logsumexp", "average", "summary", "argmax", "argmin"])
@pytest.mark.parametrize(
    ("type_", "axes"),
    [
        ("float{3, 16384}", "{1}"),
        ("half{2, 20001}", "{1}"),
        ("float{20, 16, 101}", "{0, 1, 2}"),
        ("float{9000, 3}", "{0}"),
    ],
)
def test_folds_of_few_rows_are_two_kernels(folder: Path, op: str, type_: str, axes: str) -> None:
    path = program(folder, op, type_, axes)
    fused = genrw.load(path, rules=[folder], target="slow").lower("fuse")
    assert len(fused.modules) >= 2, "the first kernel folds parts of the rows"
    arguments = ["run", str(path), "--rules", str(folder), "--target", "slow", "--check"]
    assert execute(arguments) == 0
    assert execute([*arguments, "--device", "interpret", "--stage", "fuse"]) == 0


@pytest.mark.parametrize("stage", ["gridwise", "lanewise", "final"])
def test_every_stage_means_the_same(folder: Path, stage: str) -> None:
    path = program(folder, "summary", "float{2, 9001}", "{1}")
    run = ["run", str(path), "--rules", str(folder), "--target", "slow", "--check", "--device", "interpret"]
    assert execute([*run, "--stage", stage]) == 0


def test_accumulators_of_several_fields_are_not_stored(folder: Path) -> None:
    path = program(folder, "summary", "float{3, 20001}", "{1}")
    fused = genrw.load(path, rules=[folder], target="slow").lower("fuse")
    stored = [node.type.dtype for module in fused.modules for node in module.parameters]
    assert sorted(stored) == ["bool", "float", "float", "int32", "int64"]


def test_many_rows_stay_one_kernel(folder: Path) -> None:
    path = program(folder, "logsumexp", "float{200000, 64}", "{1}")
    fused = genrw.load(path, rules=[folder], target="slow").lower("fuse")
    assert len(fused.modules) == 1


def test_the_work_of_two_kernels_is_predicted_to_take_less_than_that_of_one(folder: Path) -> None:
    path = program(folder, "logsumexp", "float{4, 4194304}", "{1}")
    split = genrw.load(path, rules=[folder], target="gfx942")
    assert len(split.lower("fuse").modules) == 2


@pytest.mark.parametrize("op", ["logsumexp", "summary", "argmax", "average"])
@pytest.mark.parametrize(
    "after", ["pad[pads={2, 1, 1, 0}](y)", "transpose[permutation={1, 0}](y)", "reverse[axes={0}](y)"]
)
def test_what_moves_a_split_fold_reads_its_result(folder: Path, op: str, after: str) -> None:
    """Accumulators are in no memory that another kernel could read them from."""
    path = folder / "p.gen"
    path.write_text(
        f"x = @param:x -> float{{3, 16384}}\nf = reduce_{op}[axes={{1}}](x)\ny = abs(f)\nz = {after}\n@return(z)\n"
    )
    fused = genrw.load(path, rules=[folder], target="slow").lower("fuse")
    assert len(fused.modules) >= 2
    assert execute(["run", str(path), "--rules", str(folder), "--target", "slow", "--check"]) == 0
