"""Schedules whose kernels spill are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import genrw
from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.offline import usages
from genrw.codegen.runtime.spills import Built, built
from genrw.engine.lowering.program import StagedProgram
from genrw.grammar.diagnostics import GenrwError

TEXT = "x = @param:x -> half{512, 4096}\ny = softmax[axis=1](x)\n@return(y)\n"
SPILLED = 4000


def build(taken: Callable[[KernelSource], int], **settings: object) -> Built[KernelSource]:
    """The program's kernels, each of whose lanes takes as many bytes of memory as are said."""

    def compiled(_: StagedProgram, sources: Sequence[KernelSource]) -> Sequence[KernelSource]:
        return sources

    return built(genrw.load(TEXT, target="sm_90", **settings), compiled, lambda _, source: taken(source))


def rated() -> list[dict[str, object]]:
    (schedules,) = genrw.load(TEXT, target="sm_90").lower("schedule").trace.schedules.values()
    return [dict(schedule) for _, schedule, _ in schedules]


def taken(made: Built[KernelSource]) -> dict[str, object]:
    (module,) = made.program.lower("final").modules
    return dict(module.schedule)


def test_the_next_schedule_is_taken() -> None:
    cheapest, following, *_ = rated()
    made = build(lambda source: SPILLED if source.block == cheapest["block_size"] else 0)
    assert made.refused[0].schedule == cheapest
    assert made.refused[0].scratch_bytes == SPILLED
    assert taken(made) == next(s for s in rated() if s["block_size"] != cheapest["block_size"])
    assert [source.block for source in made.sources] == [taken(made)["block_size"]]
    assert following in rated()


def test_what_targets_allow_is_no_spill() -> None:
    made = build(lambda _: 128)
    assert not made.refused
    assert taken(made) == rated()[0]


def test_where_all_spill_the_least_is_taken() -> None:
    made = build(lambda source: 1000 + source.block)
    assert len(made.refused) > 1
    least = min(made.refused, key=lambda refusal: refusal.scratch_bytes)
    assert taken(made) == least.schedule


def test_what_is_pinned_is_taken() -> None:
    made = build(lambda _: SPILLED, schedule={"block_size": 256})
    assert not made.refused
    assert taken(made)["block_size"] == 256


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_lanes_say_what_they_take(target: str) -> None:
    if target == "sm_90":
        pytest.importorskip("cuda.bindings.nvrtc")
    found = usages(genrw.load(TEXT, target=target))
    assert [usage.registers > 8 for usage in found.kernels] == [True]
    assert not found.refused


def test_hosts_have_no_such_registers() -> None:
    with pytest.raises(GenrwError, match="kernels for host say nothing of registers"):
        usages(genrw.load(TEXT, target="host"))
