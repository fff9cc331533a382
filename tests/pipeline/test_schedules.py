"""Which schedules kernels can have: how often they are rated, and what is noted of it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
from support import load, shipped

from genrw.engine.egraph.stage import EGraphSnapshot, StageEngine
from genrw.engine.ir.nodes import Module
from genrw.engine.lowering.pipeline import Pipeline, stage_rules
from genrw.engine.lowering.trace import Trace

CONVOLUTION = """
x = @param:x -> half{8, 64, 30, 30}
w = @param:w -> half{64, 64, 3, 3}
z = convolution[padding={1, 1}](x, w)
@return(z)
"""
ROWS = "x = @param:x -> float{{64, {}}}\ny = softmax[axis=1](x)\n@return(y)\n"


@pytest.fixture
def rated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that went through the stage at which kernels get their schedules, as they did."""
    seen: list[str] = []
    run = StageEngine.run

    def watched(self: StageEngine, modules: Sequence[Module], *others: Any) -> EGraphSnapshot:
        if self.stage == shipped().scheduling_stage:
            seen.extend(module.name for module in modules)
        return run(self, modules, *others)

    monkeypatch.setattr(StageEngine, "run", watched)
    return seen


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_what_alternatives_were_weighed_by_is_not_rated_again(target: str, rated: list[str]) -> None:
    program = load(CONVOLUTION, target)
    lowered = Pipeline(shipped()).lower(program.units, "schedule", program.options)
    assert any(name.startswith("alternative0_") for name in rated)
    assert not {module.name for unit in lowered for module in unit.kernels}.intersection(rated)
    assert all(module.schedule for unit in lowered for module in unit.kernels)


def test_kernels_that_differ_in_names_only_are_rated_once(rated: list[str]) -> None:
    """Notes of the second one are as if it had been rated itself."""
    first, second = (f"@module {name}\n{ROWS.format(512)}" for name in ("first", "second"))
    pipeline, alone = Pipeline(shipped(), watched=True), Pipeline(shipped(), watched=True)
    noted = Trace()
    for text, trace in ((first, Trace()), (second, noted)):
        program = load(text, "gfx942")
        (unit,) = pipeline.lower(program.units, "schedule", program.options, trace)
    assert rated == ["first"]
    wanted = Trace()
    (other,) = alone.lower(program.units, "schedule", program.options, wanted)
    assert [(m.name, m.schedule) for m in unit.kernels] == [(m.name, m.schedule) for m in other.kernels]
    assert noted.schedules == wanted.schedules
    names = {rule.name for rule in stage_rules(shipped(), "schedule")}
    for ours, theirs in (
        (noted.fired, wanted.fired),
        (noted.survived, wanted.survived),
        (noted.uses, wanted.uses),
    ):
        of_schedules = [{k: v for k, v in found.items() if k.partition("/")[0] in names} for found in (ours, theirs)]
        assert of_schedules[0] == of_schedules[1] != {}


def test_other_structures_are_rated_by_themselves(rated: list[str]) -> None:
    pipeline = Pipeline(shipped())
    for columns in (512, 4096):
        program = load(ROWS.format(columns), "gfx942")
        pipeline.lower(program.units, "schedule", program.options)
    program = load(ROWS.format(512), "gfx90a")
    pipeline.lower(program.units, "schedule", program.options)
    assert len(rated) == 3


def test_pipelines_go_with_what_holds_them() -> None:
    """They hold a hundred megabytes, and the collector of cycles comes late."""
    program, pipeline = load(CONVOLUTION, "sm_90"), Pipeline(shipped())
    enabled = gc.isenabled()
    gc.disable()
    try:
        pipeline.lower(program.units, "final", program.options)
        kept = weakref.ref(pipeline)
        del pipeline
        assert kept() is None
    finally:
        if enabled:
            gc.enable()
