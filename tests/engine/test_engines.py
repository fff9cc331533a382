"""What engines declare, and which programs share one."""

from __future__ import annotations

import gc

import pytest
from support import WAVE64, load

from genrw.engine.garbage import uncollected
from genrw.engine.library import Library
from genrw.engine.pipeline import Pipeline
from genrw.engine.stage import StageEngine
from genrw.engine.variants import term_arities
from genrw.grammar.rw import parse_rw

UNARY = "x = @param:x -> float{{4, 5}}\ny = {}(x)\n@return(y)\n"


def engine(pipeline: Pipeline, stage: str, text: str) -> StageEngine:
    return pipeline.engine(stage, False, load(text, WAVE64, pipeline.library).modules)


def test_programs_of_the_same_rules_share_an_engine(library: Library) -> None:
    pipeline = Pipeline(library)
    first, second = (engine(pipeline, "schedule", UNARY.format(name)) for name in ("exp", "neg"))
    assert first is second
    third, fourth = (engine(pipeline, "simplify", UNARY.format(call)) for call in ("exp", "reduce_mean[axes={1}]"))
    assert third is not fourth


def test_an_engine_has_the_numbers_of_operands_that_terms_have(library: Library) -> None:
    """A result of nine values needs no rules for one of eight."""
    names = [f"x{i}" for i in range(9)]
    inputs = "".join(f"{name} = @param:{name} -> float{{4}}\n" for name in names)
    program = load(f"{inputs}@return({', '.join(names)})\n", WAVE64, library).lower("schedule")
    pipeline = Pipeline(library)
    made = pipeline.engine("gridwise", False, program.modules)
    made.run(program.modules, [pipeline.context(m, program.options) for m in program.modules])
    assert 9 in made.arities
    assert 8 not in made.arities


@pytest.mark.parametrize(
    ("rule", "present", "more"),
    [
        ("concat(xs...) => neg(x)", {7, 9}, {7, 9}),
        ("concat(x, xs...) => concat(xs...)", {7}, {5, 6, 7}),
        ("concat(xs...) => concat(a, xs..., b)", {7}, {5, 6, 7, 8}),
        ("concat(xs...) => rows(neg(xs)..., a)", {6}, {5, 6, 7, 8}),
    ],
)
def test_rules_make_terms_of_other_numbers_of_operands(rule: str, present: set[int], more: set[int]) -> None:
    """Up to a few operands, any number; beyond these what is there and what rules make of it, up to a power of two."""
    (declared,) = parse_rw(f"rule r\n  {rule}\n", "test.rw").declarations
    assert {n for n in term_arities([declared], frozenset(present)) if n > 4} == more


def test_collection_goes_on_after_an_error() -> None:
    within = []

    def fails() -> None:
        with uncollected():
            within.append(gc.isenabled())
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fails()
    assert [*within, gc.isenabled()] == [False, True]
