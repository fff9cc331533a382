"""Folds that are split over the grid: of any monoid, over any axes, by way of the fields of its accumulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from breadth import spread
from support import differences

import genrw
from genrw.engine.interpret.inputs import random_inputs
from genrw.main import execute

pytestmark = pytest.mark.few(1)

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

/// A field of a type that has no elements of its own kind: those that are no numbers.
monoid nans where T: real
  carry c: int32
  element c = 1 if isnan(x) else 0
  identity c = 0
  combine c = a.c + b.c
  finish c
  result int32

/// The same of truth values: are there numbers of both signs?
monoid alternating where T: number
  carry above: bool, below: bool
  element above = x > 0, below = x < 0
  identity above = false, below = false
  combine above = a.above or b.above, below = a.below or b.below
  finish above and below
  result bool

/// Fields of several types, and positions.
monoid summary
  carry count: int64, last: int32, any: bool, sum: T
  element count = 1, last = k, any = x > 2, sum = x
  identity count = 0, last = -1, any = false, sum = 0
  combine count = a.count + b.count, last = max(a.last, b.last), any = a.any or b.any, sum = a.sum + b.sum
  finish (sum / convert(count, "float") + (1 if any else 0)) + convert(last, "float") * 0.001
  accumulate float for half, bf16
"""


CLAUSES = {
    "alone": "identity 0\ncombine a + b",
    "finished": "identity 0\ncombine a + b\nfinish a * 2 + n",
    "typed": "identity 0\ncombine a + b\nfinish a * 2\nresult double",
    "mapped": "element x * (k % 3)\nidentity 0\ncombine a + b",
    "mapped_largest": "element k if x > 1 else -1\nidentity -1\ncombine max(a, b)",
    "mapped_finished": "element x * x\nidentity 0\ncombine a + b\nfinish a / n",
    "mapped_typed": "element abs(x)\nidentity 0\ncombine a + b\nfinish a + n\nresult double",
    "field": "carry s: T\nelement s = x * (k % 3)\nidentity s = 0\ncombine s = a.s + b.s\nfinish s * 2",
    "field_typed": "carry c: int64\nelement c = 1 if x > 0 else 0\nidentity c = 0\ncombine c = a.c + b.c\nfinish c\nresult int64",
    "fields": "carry c: int32, s: T\nelement c = k % 2, s = x\nidentity c = 0, s = 0\n"
    "combine c = a.c + b.c, s = a.s + b.s\nfinish s + c",
    "fields_typed": "carry c: int32, s: T\nelement c = k % 2, s = x\nidentity c = 0, s = 0\n"
    "combine c = a.c + b.c, s = a.s + b.s\nfinish s + c\nresult double",
    "fields_mixed": "carry c: int32, s: T, m: double\n"
    "element c = 1 if x > 0.5 else 0, s = k % 3, m = k * 0.25\nidentity c = 0, s = 0, m = 0\n"
    "combine c = a.c + b.c, s = a.s + b.s, m = a.m + b.m\nfinish (s + c) * 0.5 + m / n + max(n, m)\nresult double",
}
"""A monoid of each kind: of one value or of fields, elements mapped to it or not, a result of its own or not."""
SHAPES = {
    "even": ("float{3, 16384}", "{1}"),
    "odd": ("half{2, 20001}", "{1}"),
    "columns": ("int32{9001, 3}", "{0}"),
    "odd_axes": ("double{5, 31, 133}", "{0, 1, 2}"),
}


def monoids() -> str:
    """The text of the monoids of each kind."""
    lines = []
    for name, clauses in CLAUSES.items():
        lines += [f"/// Made of `{name}`.", f"monoid {name}", *(f"  {line}" for line in clauses.split("\n"))]
        lines += ["  accumulate float for half, bf16", ""]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules of one folder are one library, and what they need is set up once."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "mine.rw").write_text(RULES + monoids())
    return folder


def program(folder: Path, op: str, type_: str, axes: str) -> Path:
    """A program in a file that the next one overwrites."""
    path = folder / "p.gen"
    path.write_text(f"x = @param:x -> {type_}\ny = reduce_{op}[axes={axes}](x)\n@return(y)\n")
    return path


@pytest.mark.parametrize(("op", "shape"), spread([*CLAUSES], [*SHAPES], quick=3))
def test_each_kind_of_monoid_is_split_where_a_sum_is(folder: Path, op: str, shape: str) -> None:
    kernels = {}
    for name in ("sum", op):
        path = program(folder, name, *SHAPES[shape])
        split = genrw.load(path, rules=[folder], target="slow").lower("fuse")
        kernels[name] = len(split.modules)
    assert kernels["sum"] == kernels[op] == 2
    written = genrw.load(path, rules=[folder], target="slow")
    inputs = random_inputs(written.modules[0], written.library, 0)
    want = written.run(inputs, "interpret", precise=True)
    for stage in written.stages:
        lowered = written.lower(stage)
        assert differences(lowered, lowered.run(inputs, "interpret"), want) == {}, stage
    assert differences(lowered, lowered.run(inputs), want) == {}


@pytest.mark.parametrize("op", ["logsumexp", "average", "summary", "nans", "alternating", "argmax", "argmin"])
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
