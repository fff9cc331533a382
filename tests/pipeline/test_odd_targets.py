"""Targets unlike the shipped ones: waves of few lanes, workgroups that are no power of two, or all of one size."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import differences, inputs_and_reference, load

from genrw.authoring.rulesets import load_library
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError

ODD = """\
target odd_wave4 : amd
  wave_size 4
  block_sizes [12]
  default_block 12
  lanes_per_unit 4
  resident_lanes 64
  registers 4096
  lane_registers 64
  register_elements 1
  matrices []
  clock_ghz 1
  latency_us 0.5
  line_cycles 1
  compute_units 1
  bandwidth_gbs 100
  gflops 10

target odd_wave8 : odd_wave4
  wave_size 8
  block_sizes [24, 40]
  default_block 24
  lanes_per_unit 8

target odd_wave128 : odd_wave4
  wave_size 128
  block_sizes [128, 640]
  default_block 640
  lanes_per_unit 128
  resident_lanes 1024
  registers 65536

target odd_wave64 : odd_wave128
  wave_size 64
  block_sizes [64]
  default_block 64

target odd_host : host
  block_sizes [4]
  default_block 4
  resident_lanes 4
"""

PROGRAMS = {
    "columns": "x = @param:x -> float{300, 64}\ny = reduce_sum[axes={0}](x)\n@return(y)",
    "convolution": "x = @param:x -> float{2, 3, 9, 9}\nw = @param:w -> float{4, 3, 3, 3}\ny = convolution(x, w)\n@return(y)",
    "windows": "x = @param:x -> half{66, 64}\nw = windows[axes={0}, lengths={64}](x)\nr = reshape[dims={64, 3, 64}](w)\ny = reduce_sum[axes={0}](r)\n@return(y)",
    "turned": "x = @param:x -> float{40, 50}\nt = transpose[permutation={1, 0}](x)\nz = @param:z -> float{50, 40}\nm = mul(t, z)\ny = reduce_sum[axes={1}](m)\n@return(y)",
    "transposed": "x = @param:x -> half{33, 100}\nt = transpose[permutation={1, 0}](x)\ny = add(t, t)\n@return(y)",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.rw").write_text(ODD)
    return load_library([folder])


@pytest.mark.parametrize("target", ["odd_wave4", "odd_wave8", "odd_wave64", "odd_wave128", "odd_host"])
def test_workgroups_are_such_as_the_target_has(target: str, odd: Library) -> None:
    """They are of whole waves, no larger than those that are tried, and of whole rows of as many lanes as can meet."""
    machine = odd.target(target)
    programs = load("\n\n".join(f"@module {name}\n{text}" for name, text in PROGRAMS.items()), target, odd)
    for schedule in (dict(s) for rated in programs.lower("schedule").trace.schedules.values() for _, s, _ in rated):
        block, lanes = schedule["block_size"], schedule["lanes"]
        assert block <= max(machine.member("block_sizes")), schedule
        assert block % machine.member("wave_size") == 0, schedule
        assert block % lanes == 0, schedule
        assert lanes & (lanes - 1) == 0 or lanes == block, schedule
        assert schedule["algo"] != "columns" or lanes == 1 or block & (block - 1) == 0, schedule


@pytest.mark.parametrize("target", ["odd_wave8", "odd_host"])
def test_lanes_of_a_workgroup_have_elements_of_their_own(target: str, odd: Library) -> None:
    text = PROGRAMS["transposed"]
    inputs, want = inputs_and_reference(text)
    lowered = load(text, target, odd).lower("final")
    assert not differences(lowered, lowered.run(inputs, "interpret"), want)


SMALL = """\
target small_waves : gfx942
  arch "gfx942"
  default false
  block_sizes [64, 128]
  default_block 64

target small_warps : sm_90
  arch "sm_90"
  block_sizes [64, 128]
  default_block 64
"""

PRODUCTS = {
    "product": "x = @param:x -> half{256, 256}\nw = @param:w -> half{256, 256}\ny = dot(x, w)\n@return(y)",
    "attention": """\
q = @param:q -> half{2, 128, 64}
k = @param:k -> half{2, 64, 128}
v = @param:v -> half{2, 128, 64}
s = dot(q, k)
p = softmax[axis=2](s)
y = dot(p, v)
@return(y)""",
}


@pytest.mark.parametrize("target", ["small_waves", "small_warps"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_waves_that_multiply_and_those_that_copy_are_no_more_than_a_workgroup_has(
    name: str, target: str, tmp_path: Path
) -> None:
    (tmp_path / "small.rw").write_text(SMALL)
    program = load(PRODUCTS[name], target, load_library([tmp_path]))
    rated = program.lower("schedule").trace.schedules
    schedules = [dict(schedule) for kernel in rated.values() for _, schedule, _ in kernel]
    assert any(schedule["algo"] == "matrix" for schedule in schedules)
    assert max(schedule["block_size"] for schedule in schedules) <= 128
    assert max(kernel.launched for kernel in program.kernels()) <= 128


CROWDED = """\
stage schedule

/// As many lanes on a workgroup's rows as a launch has not.
rule crowded_rows
  return(xs...)
  when is_rows(space, policy) and target.wave_size > 1
  => scheduled[algo="crowded", block_size=4096, lanes=32, vector=4, share=8, steps=1](xs...)
"""


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_schedules_of_more_lanes_than_a_workgroup_has_are_refused(target: str, tmp_path: Path) -> None:
    """A compiler takes their kernels, and a GPU does not launch these."""
    (tmp_path / "own.rw").write_text(CROWDED)
    text = "x = @param:x -> float{512, 256}\ny = reduce_sum[axes={1}](x)\n@return(y)"
    with pytest.raises(GenrwError, match="4096 lanes are more than a workgroup of the target has"):
        load(text, target, load_library([tmp_path])).lower("schedule")
