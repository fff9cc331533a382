"""Programs that are written at a later stage: what they leave out, and memory that does not do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Command

import genrw as package

SEED = Path(__file__).parents[1] / "grammar" / "data" / "seed"
SCHEDULE = "schedule={algo=block, block_size=256, lanes=256, vector=1, share=1, steps=1, grid=1}"
WAVES = {"gfx942": 4, "gfx90a": 4, "gfx1100": 8, "gfx1201": 8, "sm_90": 8}

PARAMETERS = "x = @param:x -> {256}\nz_output = @param:z_output -> {1}\n"
BODIES = {
    "blockwise": "g = gridwise_reduce[op=sum, algo=block, reduce_elements=256, block_size=256](x, lds)\ns = copy(g, z_output)\n",
    "lanewise": "i = local_id()\nv = load(x, i)\nd = dpp_reduce[op=sum](v)\n"
    "r = reduce_waves[op=sum](d, lds)\nw = workgroup_id()\ns = store(z_output, w, r)\n",
    "final": "i = local_id()\nv = read(x, i)\nd = dpp_reduce[op=sum](v)\n"
    "r = reduce_waves[op=sum](d, lds)\nw = workgroup_id()\ns = write(z_output, w, r)\n",
}


def listing(stage: str, target: str, elements: int) -> str:
    """A block's sum, through so many elements of workgroup memory."""
    header = (
        f"@module m [stage={stage}, target={target}, {SCHEDULE}, space={{256}}, axes={{0}}, outputs={{z_output=y}}]\n"
    )
    memory = f"lds = lds_allocate[shape={{float, {{{elements}}}}}]\n"
    return header + PARAMETERS + memory + BODIES[stage] + "@return(s)\n"


@pytest.mark.parametrize("target", WAVES)
@pytest.mark.parametrize("stage", BODIES)
def test_memory_has_an_element_for_each_wave(genrw: Command, stage: str, target: str) -> None:
    waves = WAVES[target]
    assert genrw("lower", "-", stdin=listing(stage, target, waves)).status == 0
    for elements in (waves // 2, waves - 1, waves + 1, waves * 2):
        result = genrw("lower", "-", stdin=listing(stage, target, elements))
        assert (result.status, result.out) == (2, "")
        assert "one element for each" in result.err
        assert result.err.startswith("<stdin>:"), result.err
        assert "^^^" in result.err


def test_memory_for_parts_of_rows_is_large_enough(genrw: Command) -> None:
    text = (
        "@module m [stage=lanewise, target=gfx942, schedule={algo=columns, block_size=256, lanes=16, vector=4, share=4, "
        "steps=1, grid=1}, space={16, 64}, axes={0}, outputs={z_output=y}]\n"
        "x = @param:x -> {16, 64}\nz_output = @param:z_output -> {1, 64}\n"
        "lds = lds_allocate[shape={float, {511}}]\ni = local_id()\nj = imul(i, 4)\n"
        "v = vector_load[size=4](x, j)\nr = reduce_parts[op=sum](v, lds)\ns = vector_store(z_output, j, r)\n@return(s)\n"
    )
    result = genrw("lower", "-", stdin=text)
    assert result.status == 2
    assert "8:5: error: lds of shape {511} is too small for lanes that meet" in result.err


@pytest.mark.parametrize(
    ("name", "entry"), [("gridwise_after", "lanes"), ("lanewise_before", "lanes"), ("lanewise_after", "block_size")]
)
@pytest.mark.parametrize("command", ["lower", "emit", "run"])
def test_a_schedule_that_is_missing_is_asked_for_in_the_listing(
    genrw: Command, name: str, entry: str, command: str
) -> None:
    path = SEED / f"{name}.gen"
    result = genrw(command, path)
    assert (result.status, result.out) == (2, "")
    assert f"{path}:1:1: error: lowering this program takes a schedule with `{entry}`" in result.err
    assert "@module NAME [stage=…, schedule={" in result.err


def test_an_entry_of_a_schedule_that_is_missing(genrw: Command) -> None:
    text = "@module m [stage=lanewise, target=gfx942, schedule={algo=flat, grid=1}]\n" + (
        SEED / "lanewise_after.gen"
    ).read_text(encoding="utf-8")
    result = genrw("lower", "-", stdin=text)
    assert result.status == 2
    assert "<stdin>:1:1: error: lowering this program takes a schedule with `block_size`" in result.err


def test_a_schedule_that_lacks_what_a_rule_builds_with(genrw: Command) -> None:
    """What is missing is told of at the listing, not at the rule that asks for it."""
    schedule = SCHEDULE.replace("vector=1, share=1, ", "")
    result = genrw("lower", "-", stdin=listing("blockwise", "gfx942", 4).replace(SCHEDULE, schedule))
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("<stdin>:1:1: error: lowering this program takes a schedule with `")


def test_a_default_that_the_operands_do_not_have(genrw: Command) -> None:
    text = listing("blockwise", "gfx942", 4).replace("-> {256}", "-> {0}")
    result = genrw("lower", "-", stdin=text)
    assert (result.status, result.out) == (2, "")
    assert (
        "<stdin>:5:5: error: `gridwise_reduce` has no `axes` of its own here: no trailing axes hold 256" in result.err
    )
    assert "  help: " in result.err


TWO = "x = @param:x -> {64, 100}\ns = reduce_sum[axes={1}](x)\ny = sub(x, s)\nz = exp(y)\n@return(y, z)\n"


@pytest.mark.parametrize(
    ("stage", "written", "instead", "message"),
    [
        (
            "gridwise",
            "{64, 100}, axes",
            "{64, 10}, axes",
            "runs over the rows of {64, 100} along {1}, not over the rows",
        ),
        ("gridwise", ", axes={1}", "", "runs over the rows of {64, 100} along {1}, not over {64, 100}"),
        ("schedule", "{64, 100}, axes", "{100, 64}, axes", "not over the rows of {100, 64} along {1}"),
        *(
            (
                stage,
                "{64, 100}, axes",
                "{64, 10}, axes",
                "lanes store 6400 elements into `z_output`, and the space has 640 in 64 rows",
            )
            for stage in ("lanewise", "final")
        ),
        (
            "final",
            "{64, 100}, axes={1}",
            "{64, 101}",
            "lanes store 6400 elements into `z_output`, and the space has 6464",
        ),
        ("final", "{z_output=y", "{out=y", "the program writes no parameter `out`"),
        ("final", "{z_output=y", "{x=y", "the program writes no parameter `x`"),
        ("gridwise", "{z_output=y", '{z_output="../y"', "the header's `outputs` is a map of names"),
    ],
)
def test_a_header_says_what_its_program_does(
    genrw: Command, stage: str, written: str, instead: str, message: str
) -> None:
    lowered = genrw("lower", "-", "--stage", stage, stdin=TWO).out
    assert genrw("lower", "-", stdin=lowered).status == 0
    header, rest = lowered.split("\n", 1)
    assert written in header
    result = genrw("lower", "-", stdin=header.replace(written, instead) + "\n" + rest)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.startswith("<stdin>:1:")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("{a}", "the program returns 2 results, and its header names 1"),
        ("{a, b, c}", "the program returns 2 results, and its header names 3"),
        ('{a, "../b"}', "the header's `results` is a list of names"),
    ],
)
def test_results_that_a_header_names(genrw: Command, tmp_path: Path, names: str, message: str) -> None:
    text = f"@module main [results={names}]\n{TWO}"
    result = genrw("run", "-", "--save", tmp_path / "saved", stdin=text)
    assert (result.status, result.out) == (2, "")
    assert message in result.err


@pytest.mark.parametrize("stage", ["lanewise", "final"])
def test_a_constant_of_lanes_stays_one(stage: str) -> None:
    """A tensor of rank 0 has braces in its type, what each lane has for itself has none."""
    text = "x = @param:x -> float{3}\ni = @literal{2} -> uint8{}\ny = gather[axis=0](x, i)\n@return(y)\n"
    listed = package.lower(text, stage)
    assert "@literal{2} -> uint8\n" in listed
    program = package.load(listed)
    assert package.lower(program, stage) == listed
    assert program.run({"x": np.arange(3, dtype=np.float32)})["y"].tolist() == 2


LISTED = "x = @param:x -> float{16, 64}\nm = reduce_max[axes={1}](x)\nt = transpose[permutation={1, 0}](x)\ny = mul(t, 2.0)\n@return(m, y)\n"
STAGES = ("simplify", "fuse", "schedule", "gridwise", "blockwise", "lanewise", "final")


@pytest.mark.parametrize("stage", STAGES)
def test_a_listing_of_any_stage_is_explained(genrw: Command, stage: str, tmp_path: Path) -> None:
    """Of what is left to be done, which is nothing behind the last stage."""
    path = tmp_path / "listed.gen"
    path.write_text(genrw("lower", "-", "--stage", stage, stdin=LISTED).out)
    for options in (["explain"], ["explain", "--annotate"], ["view", "-o", str(tmp_path / "page.html")]):
        result = genrw(*options, path)
        assert (result.status, result.err) == (0, ""), options
    wrong = genrw("explain", path, "--schedule", "algo=nothing")
    assert wrong.status == 2
    assert "algo" in wrong.err
