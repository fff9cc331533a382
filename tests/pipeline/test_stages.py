"""Lowering stage by stage, through text, gives what lowering at once gives; golden files hold every stage."""

from __future__ import annotations

from pathlib import Path

import pytest
from breadth import spread

from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.grammar.source import Source
from genrw.program import Program

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.gen"))
SEED = {
    "add": "x = @param:x -> {16}\ny = @param:y -> {16}\nadd(x, y) -> {16}\n@return(add)\n",
    "reduce_256": "x = @param:x -> {256}\nreduce_sum[axes={0}](x) -> {1}\n@return(reduce_sum)\n",
    "reduce_64": "x = @param:x -> {8, 64}\nreduce_sum[axes={1}](x) -> {8, 1}\n@return(reduce_sum)\n",
    "reduce_strided": "x = @param:x -> {64, 300}\nreduce_max[axes={0}](x) -> {1, 300}\n@return(reduce_max)\n",
    "reduce_1000": "x = @param:x -> {1000}\nreduce_sum[axes={0}](x) -> {1}\n@return(reduce_sum)\n",
}


def program(text: str, library: Library, target: str = "gfx942", policy: str = "cost") -> Program:
    return Program.parse(Source("test.gen", text), library, Options(target=target, policy=policy))


@pytest.mark.parametrize(
    ("path", "target"), spread(EXAMPLES, ["gfx942", "gfx1100", "host"]), ids=lambda p: getattr(p, "stem", p)
)
def test_stage_by_stage_equals_at_once(path: Path, target: str, library: Library) -> None:
    text = path.read_text()
    at_once = {stage: str(program(text, library, target).lower(stage)) for stage in library.stages}
    for stage in library.stages:
        text = str(program(text, library, target).lower(stage))
        assert text == at_once[stage], stage


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_golden_examples(path: Path, library: Library, golden) -> None:  # type: ignore[no-untyped-def]
    written = program(path.read_text(), library)
    for stage in library.stages:
        golden.check(f"{path.stem}/{stage}.gen", str(written.lower(stage)))
    golden.check(f"{path.stem}/kernel.hip", written.kernels()[0].text)


@pytest.mark.parametrize("name", SEED)
def test_golden_seed_listings(name: str, library: Library, golden) -> None:  # type: ignore[no-untyped-def]
    written = program(SEED[name], library, policy="classic")
    for stage in library.stages:
        golden.check(f"seed_{name}/{stage}.gen", str(written.lower(stage)))


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("reduce_256", "block"), ("reduce_64", "wave"), ("reduce_strided", "lane"), ("reduce_1000", "block")],
)
def test_classic_policy_chooses_as_the_seed_does(name: str, algorithm: str, library: Library) -> None:
    lowered = program(SEED[name], library, policy="classic").lower("schedule")
    assert lowered.modules[0].schedule["algo"] == algorithm


def test_block_reduction_of_256_has_one_element_of_memory_a_wave(library: Library) -> None:
    text = str(program(SEED["reduce_256"], library, policy="classic").lower("blockwise"))
    assert "lds_allocate[shape={float, {4}}]" in text
    assert "gridwise_reduce[op=sum, algo=block, reduce_elements=256, block_size=256]" in text
