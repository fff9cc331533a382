"""`genrw lower` and `genrw emit`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import SOFTMAX, Command

STAGES = ("simplify", "fuse", "schedule", "gridwise", "blockwise", "lanewise", "final")


def test_the_last_stage_is_printed_unless_another_is_asked_for(genrw: Command, softmax: Path) -> None:
    last = genrw("lower", softmax)
    assert last.status == 0
    assert last.out.startswith("@module main [stage=final, target=gfx942, ")
    assert last.out == genrw("lower", softmax, "--stage", "final").out
    assert genrw("lower", softmax, "--stage", "gridwise").out.startswith("@module main [stage=gridwise")


def test_all_stages(genrw: Command, softmax: Path) -> None:
    out = genrw("lower", softmax, "--stage", "all").out
    assert re.findall("^# (.*)", out, re.MULTILINE) == list(STAGES)
    parts = dict(zip(STAGES, re.split("^# .*\n", out, flags=re.MULTILINE)[1:], strict=True))
    for stage, text in parts.items():
        assert text.rstrip("\n") + "\n" == genrw("lower", softmax, "--stage", stage).out


def test_each_stage_is_input_for_the_next(genrw: Command, softmax: Path) -> None:
    text = SOFTMAX
    for stage in STAGES:
        text = genrw("lower", "-", "--stage", stage, stdin=text).out
    assert text == genrw("lower", softmax).out


def test_all_stages_of_a_program_that_is_on_its_way(genrw: Command, softmax: Path) -> None:
    text = genrw("lower", softmax, "--stage", "blockwise").out
    out = genrw("lower", "-", "--stage", "all", stdin=text).out
    assert re.findall("^# (.*)", out, re.MULTILINE) == ["lanewise", "final"]


def test_output_to_a_file(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    result = genrw("lower", softmax, "-o", tmp_path / "out.gen")
    assert (result.status, result.out) == (0, "")
    assert (tmp_path / "out.gen").read_text() == genrw("lower", softmax).out


def test_target(genrw: Command, softmax: Path) -> None:
    assert "target=gfx1100" in genrw("lower", softmax, "--target", "gfx1100").out


def test_a_header_decides_what_the_call_leaves_open(genrw: Command) -> None:
    text = f"@module k [target=gfx90a]\n{SOFTMAX}"
    assert "target=gfx90a" in genrw("lower", "-", stdin=text).out
    contradiction = genrw("lower", "-", "--target", "gfx942", stdin=text)
    assert contradiction.status == 2
    assert "is for target gfx90a, not gfx942" in contradiction.err


def test_a_pinned_schedule(genrw: Command, softmax: Path) -> None:
    pins = ("--schedule", "algo=block,block_size=256")
    out = genrw("lower", softmax, "--stage", "schedule", *pins).out
    apart = ("--schedule", "algo=block", "--schedule", "block_size=256")
    assert genrw("lower", softmax, "--stage", "schedule", *apart).out == out
    assert "algo=block, block_size=256" in out


def test_a_policy(genrw: Command, softmax: Path) -> None:
    by_cost = genrw("lower", softmax, "--stage", "schedule").out
    classic = genrw("lower", softmax, "--stage", "schedule", "--schedule", "policy=classic").out
    assert "schedule={" in classic
    assert classic != by_cost


def test_strict_keeps_what_only_approximate_rules_drop(genrw: Command) -> None:
    text = "x = @param:x -> half{64}\na = exp(x)\ny = exp(a)\n@return(y)\n"
    assert genrw("lower", "-", stdin=text).out.count("target_type=half") == 1
    assert genrw("lower", "-", "--strict", stdin=text).out.count("target_type=half") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stage", "nowhere"], "there is no stage `nowhere`"),
        (["--target", "gfx9"], "unknown target `gfx9`"),
        (["--schedule", "algo"], "the schedule entry 'algo' has no value"),
        (["--schedule", "algo=block,algo=wave"], "the schedule gives `algo` twice"),
        (["--schedule", "tile={8, 8"], "the list of the schedule entry `tile` has no end"),
        (["--schedule", "tile=[8, 8],vector=1"], "write `tile={8, 8}`"),
        (["--schedule", "tile=(8, 8)"], "the list of the schedule entry `tile` stands in no braces"),
        (["--schedule", "tile=[8"], "the list of the schedule entry `tile` has no end"),
        (["--schedule", "{algo=block, vector=1}"], "the schedule entry '{algo' is called by no name"),
        (["--schedule", "tile={8, 8}, algo=wave"], "no legal schedule of module `main` has tile={8, 8}, algo=wave"),
        (["--schedule", "speed=3"], "a schedule has no `speed`"),
        (["--schedule", "block_size=3"], "no legal schedule of module `main` has block_size=3"),
        (["--no-shipped-rules"], ""),
        (["--rules", "/nowhere"], "there is no folder `/nowhere`"),
        (["--frobnicate"], "no such option: --frobnicate"),
        (["and", "more"], "unexpected extra argument"),
    ],
)
def test_calls_at_fault(genrw: Command, softmax: Path, arguments: list[str], said: str) -> None:
    result = genrw("lower", softmax, *arguments)
    assert (result.status, result.out) == (2, "")
    assert said in result.err
    assert "error: " in result.err
    assert "Traceback" not in result.err


def test_no_command_shows_the_help(genrw: Command) -> None:
    result = genrw()
    assert result.status == 0
    assert "Commands:" in result.out


@pytest.mark.parametrize(
    ("policy", "help_"), [("clasic", "did you mean `classic`?"), ("quickest", "there are cost, classic")]
)
def test_a_policy_that_no_rule_asks_for(genrw: Command, policy: str, help_: str) -> None:
    result = genrw(
        "lower", "-", "--schedule", f"policy={policy}", stdin="x = @param:x -> {4}\ny = relu(x)\n@return(y)\n"
    )
    assert (result.status, result.out) == (2, "")
    assert result.err == f"error: there is no policy `{policy}`\n  help: {help_}\n"


def test_unknown_command(genrw: Command) -> None:
    result = genrw("lowr", "x.gen")
    assert result.status == 2
    assert result.err.startswith("error: no such command 'lowr'")


def test_emit(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    result = genrw("emit", softmax, "--target", "gfx1100")
    assert result.status == 0
    assert result.out.startswith("// softmax: printed by genrw for gfx1100")
    assert "// s = reduce_sum[axes={1}](e)\n" in result.out
    assert "GEN_KERNEL(" in result.out
    genrw("emit", softmax, "--target", "gfx1100", "-o", tmp_path / "k.hip")
    assert (tmp_path / "k.hip").read_text() == result.out


def test_emit_the_ir(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    result = genrw("emit", softmax, "--target", "gfx1100", "--ir")
    assert result.status == 0
    functions, kernel, _ = result.out.partition("kernel softmax: ")
    assert kernel
    assert functions.startswith("function exp_short(x: float): float\n")
    assert ", in waves of 32, for gfx1100\n" in result.out
    genrw("emit", softmax, "--target", "gfx1100", "--ir", "-o", tmp_path / "k.ir")
    assert (tmp_path / "k.ir").read_text() == result.out


def test_comments_of_a_program_stay_comments_in_its_kernel(genrw: Command) -> None:
    text = "x = @param:x -> float{4} # \\\ny = exp(x) // \\\\\n@return(y) # \\"
    result = genrw("emit", "-", stdin=text)
    assert not [line for line in result.out.splitlines() if line.startswith("//") and line.endswith("\\")]


def test_of_a_listing_of_all_stages_one_is_kept(genrw: Command, softmax: Path) -> None:
    listing = genrw("lower", softmax, "--stage", "all").out
    result = genrw("lower", "-", stdin=listing)
    assert result.status == 2
    assert "help: keep the modules of one stage" in result.err
