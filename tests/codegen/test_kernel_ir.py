"""The kernel IR: what the builder makes of programs, what passes make of it, and its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support import load
from written_kernels import BARRIER, loop, plain, resolved, value

from genrw.codegen.kernel_ir.build import build_kernel
from genrw.codegen.kernel_ir.inlining import inlined
from genrw.codegen.kernel_ir.kernel import (
    Accumulate,
    Apply,
    Assign,
    Declare,
    Folded,
    IfStep,
    Inline,
    Kernel,
    LaterStep,
    Let,
    Loop,
    Meeting,
    Start,
    Statement,
    Step,
    Update,
    Use,
    Walk,
    walk,
)
from genrw.codegen.kernel_ir.regions import Around, Region, kept, parts_of
from genrw.codegen.kernel_ir.text import ir_text, kernel_text
from genrw.codegen.kernel_ir.verifier import verify
from genrw.grammar.diagnostics import GenrwError

ADD = "x = @param:x -> {256}\ny = @param:y -> {256}\ns = add(x, y)\nr = mul(s, s)\n@return(r)"
SUM = "x = @param:x -> {64, 8192}\ns = reduce_sum[axes={1}](x)\n@return(s)"
SOFTMAX = "x = @param:x -> half{64, 512}\ny = softmax[axis=1](x)\n@return(y)"
PRODUCT = "x = @param:x -> half{128, 128}\nw = @param:w -> half{128, 128}\nz = dot(x, w)\n@return(z)"


def built(text: str, target: str = "gfx942", **options: Any) -> Kernel:
    """The one kernel of a program."""
    program = load(text, target, **options)
    (module,) = (lowered := program.lower(program.stages[-1])).modules
    return build_kernel(module, program.library, lowered.context(module))


def of_kind(kernel: Kernel, kind: type[Statement]) -> list[Any]:
    return [s for s in walk(kernel.body) if isinstance(s, kind)]


def loops_over(kernel: Kernel, over: Walk) -> list[Loop]:
    return [s for s in of_kind(kernel, Loop) if s.walk is over]


def written(kernel: Kernel) -> list[str]:
    """The lines of a kernel's body."""
    return [line.strip() for line in kernel_text(kernel, "test").splitlines()[1:]]


# ---- what holds of all kernels


def test_what_is_named_before_it_is_declared_is_a_fault() -> None:
    kernel = built(SUM, schedule={"algo": "block", "steps": 8})
    verify(kernel)
    with pytest.raises(GenrwError, match=r"names `.*` before it is declared"):
        verify(replace(kernel, body=kernel.body[::-1]))
    inside = next(i for i, s in enumerate(kernel.body) if isinstance(s, Loop))
    loop = kernel.body[inside]
    turned = replace(loop, body=loop.statements[::-1])
    with pytest.raises(GenrwError, match="before it is declared"):
        verify(replace(kernel, body=(*kernel.body[:inside], turned, *kernel.body[inside + 1 :])))


# ---- the builder


def test_each_value_has_a_variable() -> None:
    kernel = built(ADD, schedule={"algo": "flat", "vector": 1, "share": 1})
    lets = {let.variable.name: let for let in of_kind(kernel, Let)}
    assert lets["s"].inline is Inline.NO, "the program names it"
    assert [type(o) for o in lets["r"].value.operands] == [Use, Use]
    assert {o.variable for o in lets["r"].value.operands} == {lets["s"].variable}
    assert (kernel.grid, kernel.block, kernel.wave) == (1, 256, 64)


def test_a_load_is_called_after_the_memory() -> None:
    kernel = built(ADD, schedule={"algo": "flat", "vector": 1, "share": 1})
    loads = [let.variable for let in of_kind(kernel, Let) if let.variable.suffix == "in"]
    assert [load.base for load in loads] == [a.variable for a in kernel.arguments if not a.written]
    assert [a.written for a in kernel.arguments] == [False, False, True]


def test_a_walked_row_has_accumulators() -> None:
    kernel = built(SUM, schedule={"algo": "block", "steps": 8})
    (steps,) = loops_over(kernel, Walk.STEPS)
    (start,) = of_kind(kernel, Start)
    assert steps.extent == 8
    assert kernel.body.index(start) == kernel.body.index(steps) - 1
    adds = [s for s in walk(steps.body) if isinstance(s, Accumulate)]
    assert [s.variable for s in adds] == [start.variable]
    assert start.monoid == adds[0].monoid
    after = kernel.body[kernel.body.index(steps) + 1]
    assert isinstance(after, Let)
    assert start.variable in set(after.value.variables)


def test_arrays_that_other_loops_need_are_declared_before_theirs() -> None:
    kernel = built(SOFTMAX)
    for declare in of_kind(kernel, Declare):
        made = kernel.body[kernel.body.index(declare) + 1]
        while isinstance(made, Declare):
            made = kernel.body[kernel.body.index(made) + 1]
        assert isinstance(made, Loop)
        assert made.walk is Walk.SHARE
        assert declare.variable in {s.variable for s in made.body if isinstance(s, Assign)}


def test_lanes_meet_in_statements_of_the_body_alone() -> None:
    kernel = built(SOFTMAX, schedule={"algo": "block", "block_size": 256})
    meetings = [s for s in walk(kernel.body) if s.meeting is not Meeting.NOBODY]
    assert {s.meeting for s in meetings} == {Meeting.WAVE, Meeting.BLOCK}
    assert all(s in kernel.body for s in meetings)
    assert kernel.meets


def test_memory_lies_one_behind_the_other() -> None:
    kernel = built(SOFTMAX, schedule={"algo": "block", "block_size": 256})
    first, second = kernel.buffers
    assert (first.offset, second.offset) == (0, first.bytes)
    assert first.bytes == first.elements * 4


# ---- loops that work ahead


def working_ahead(**pins: object) -> Kernel:
    return built(PRODUCT, schedule={"algo": "matrix", **pins})


def test_a_loop_that_works_ahead_begins_before() -> None:
    kernel = working_ahead()
    (first,), (steps,) = loops_over(kernel, Walk.FIRST_STEPS), loops_over(kernel, Walk.STEPS)
    assert kernel.body.index(first) < kernel.body.index(steps)
    step, *_, written_later = steps.body
    assert isinstance(step, Let)
    assert isinstance(step.value, LaterStep)
    assert (step.value.counter, step.value.last) == (steps.counter, steps.extent - 1)
    assert isinstance(written_later, IfStep)
    assert isinstance(written_later.end, Step)
    assert (written_later.step.counter, written_later.end.number) == (steps.counter, steps.extent)


def test_values_of_a_later_step_have_variables_of_their_own() -> None:
    kernel = working_ahead()
    (first,), (steps,) = loops_over(kernel, Walk.FIRST_STEPS), loops_over(kernel, Walk.STEPS)
    early = {s.declared for s in walk(first.body) if s.declared is not None and s.declared.suffix == "early"}
    later = {s.declared for s in walk(steps.body) if s.declared is not None and s.declared.suffix == "next"}
    assert early
    assert {v.base for v in early} == {v.base for v in later}


def test_what_waits_for_a_later_step_is_not_written_into_its_user() -> None:
    (steps,) = loops_over(working_ahead(), Walk.STEPS)
    waiting = {
        v for s in steps.body if isinstance(s, IfStep) for t in walk(s.body) for e in t.expressions for v in e.variables
    }
    lets = [s for s in steps.body if isinstance(s, Let) and s.variable in waiting and s.variable.suffix == "next"]
    loads = [s for s in lets if s.variable.type.size]
    assert loads
    assert all(s.inline is Inline.NO for s in loads)


def test_tiles_in_turn_do_nothing_ahead() -> None:
    kernel = working_ahead(stages=1)
    assert not loops_over(kernel, Walk.FIRST_STEPS)
    assert not of_kind(kernel, IfStep)


def test_a_fold_in_place_is_declared_so() -> None:
    """Its operator gives the accumulator's new value; no monoid combines."""
    (update,) = of_kind(working_ahead(), Update)
    (start,) = of_kind(working_ahead(), Start)
    assert isinstance(update.value, Apply)
    assert update.value.result is update.variable
    assert update.meeting is Meeting.WAVE
    assert start.elements == update.variable.type.size


# ---- passes


def names_left(kernel: Kernel, fits: bool) -> list[str | None]:
    return [s.variable.name for s in of_kind(inlined(kernel, lambda _: fits), Let)]


def test_short_values_of_one_user_are_written_there() -> None:
    kernel = built(ADD, schedule={"algo": "flat", "vector": 1, "share": 1})
    assert {"s", "r"} <= set(names_left(kernel, True)), "the program's own names stay"
    product = working_ahead()
    assert len(names_left(product, True)) < len(names_left(product, False))


def test_where_a_lane_stands_is_written_whatever_its_length() -> None:
    kernel = built(ADD, schedule={"algo": "flat", "vector": 1, "share": 1})
    leaves = [s.variable for s in of_kind(kernel, Let) if s.inline is Inline.ALWAYS]
    assert leaves
    left = inlined(kernel, lambda _: False)
    assert not {v for s in walk(left.body) for e in s.expressions for v in e.variables} & set(leaves)


def test_an_inlined_value_is_the_same_for_all_steps() -> None:
    """A value is measured once: the first steps and the later ones are written alike."""
    kernel = working_ahead()
    asked: list[int] = []

    def fits(expression: Any) -> bool:
        asked.append(id(expression.node))
        return len(asked) % 2 == 0

    inlined(kernel, fits)
    assert len(asked) == len(set(asked))


# ---- regions


def regions(parts: Any) -> Iterator[Region]:
    for part in parts:
        if isinstance(part, Region):
            yield part
        elif isinstance(part, Around):
            yield from regions(part.parts)


def test_a_body_is_cut_where_lanes_meet() -> None:
    body = resolved([value("float", "v", "x[0]"), BARRIER, loop("i", 2, plain("f(v);"), BARRIER), plain("g();")])
    parts = parts_of(body)
    assert [type(part).__name__ for part in parts] == ["Region", "Effect", "Around", "Region"]
    assert [variable.name for variable in kept(parts)] == ["v"]


def test_what_one_region_uses_alone_is_not_kept() -> None:
    body = resolved([value("float", "v", "x[0]"), plain("f(v);"), BARRIER, plain("g();")])
    assert not kept(parts_of(body))


def test_what_a_meeting_makes_is_kept() -> None:
    body = resolved([value("float", "v", "x[0]"), value("float", "w", "all(v)", "wave")])
    assert [variable.name for variable in kept(parts_of(body))] == ["w", "v"]


def test_elements_of_a_share_are_of_their_loop() -> None:
    """Two loops may compute an index anew, each for itself."""
    kernel = built(SOFTMAX.replace("512", "509"))
    own = {s.variable for s in of_kind(kernel, Let) if s.element}
    assert own
    assert not own & set(kept(parts_of(kernel.body)))


# ---- text


def test_text() -> None:
    rows = SUM.replace("8192", "16384")
    text = ir_text(load(rows, schedule={"algo": "block", "block_size": 128, "steps": 8}))
    head, *lines = [line.strip() for line in text.splitlines()]
    assert head == "kernel test: 64 workgroups of 128 lanes, in waves of 64, for gfx942"
    assert lines[:2] == ["reads x: float{64, 16384}", "writes z_output: float{64, 1}"]
    assert any(line.startswith("for step in 8 steps") for line in lines)
    assert any(line.startswith("wave: let wave_sum: float = dpp_reduce[") for line in lines)
    assert any(line.startswith("block: let s: float = reduce_waves[") for line in lines)


def test_a_block_of_one_wave_meets_in_registers() -> None:
    text = ir_text(load(SUM, schedule={"algo": "block", "block_size": 64, "steps": 8}))
    assert "wave: let s: float = dpp_reduce[" in text
    assert "reduce_waves" not in text


@pytest.mark.parametrize("text", [ADD, SUM, SOFTMAX, PRODUCT])
@pytest.mark.parametrize("target", ["host", "gfx1100", "sm_90"])
def test_all_that_is_named_is_declared(text: str, target: str) -> None:
    """Each variable of an expression is an argument, a table, memory, or declared before."""
    kernel = built(text, target)
    known = {a.variable for a in kernel.arguments} | {t.variable for t in kernel.tables}
    known |= {b.variable for b in kernel.buffers} | {s.memory for s in kernel.spills.values()}
    for statement in walk(kernel.body):
        if isinstance(statement, Loop) and statement.counter is not None:
            known.add(statement.counter)
        for expression in statement.expressions:
            for variable in expression.variables:
                assert variable in known, written(kernel)
        if statement.declared is not None:
            known.add(statement.declared)
    assert not {v for v in known if v not in kernel.variables}


def test_folded_rows_end_in_their_accumulator() -> None:
    kernel = built(SUM, "host")
    values = [s.value for s in of_kind(kernel, Let)]
    starts = {s.variable for s in of_kind(kernel, Start)}
    assert {v.accumulator for v in values if isinstance(v, Folded)} <= starts


RESIDUAL = """\
x = @param:x -> half{512, 768}
w = @param:w -> half{768, 768}
bias = @param:bias -> half{768}
residual = @param:residual -> half{512, 768}
d = dot(x, w)
s = add(d, bias)
y = add(s, residual)
@return(y)
"""


@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100"])
@pytest.mark.parametrize("staged", [0, 1])
def test_what_a_loop_does_not_need_is_loaded_behind_it(target: str, staged: int) -> None:
    """Registers would hold a share of the residual all through the loop."""
    for kernel in load(RESIDUAL, target, schedule={"algo": "matrix", "staged": staged}).kernels():
        body = kernel.text[kernel.text.rindex("z_output)") :] if "z_output)" in kernel.text else kernel.text
        loads = [found.start() for found in re.finditer(r"\bresidual[,\[]", body)]
        assert loads
        assert min(loads) > body.rindex("for (int step = 0")
