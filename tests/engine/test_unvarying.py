"""Which terms may stand for values that do not vary in a loop."""

from __future__ import annotations

from genrw.engine.egraph.unvarying import unvarying
from genrw.engine.ir.enode import ENode

COUNTERS = frozenset({"step"})


def node(op: str, *operands: int) -> ENode:
    return ENode(op, 0, operands)


STEP, LANE = node("step"), node("lane")


def legal(found: ENode) -> bool:
    return found.op != "unlowered"


def kept(classes: dict[int, list[ENode]], number: int) -> list[ENode]:
    return list(unvarying(classes, COUNTERS, legal)[number])


def test_a_term_without_the_counter_is_the_only_one() -> None:
    inside, outside = node("imod", 2), node("imod", 1)
    classes = {0: [STEP], 1: [LANE], 2: [node("iadd", 0, 1)], 3: [inside, outside], 4: [node("iadd", 3, 0)]}
    assert kept(classes, 3) == [outside]
    assert kept(classes, 2) == classes[2]
    assert kept(classes, 4) == classes[4]


def test_a_term_that_no_stage_may_give_is_none() -> None:
    inside = node("imod", 0)
    for outside in (node("unlowered"), node("imod", 1)):
        classes = {0: [STEP], 1: [node("unlowered")], 2: [inside, outside]}
        assert kept(classes, 2) == [inside, outside]


def test_terms_in_a_circle_are_made_of_nothing() -> None:
    inside, circle = node("iadd", 0), node("neg", 1)
    classes = {0: [STEP], 1: [inside, circle]}
    assert kept(classes, 1) == [inside, circle]


def test_programs_without_loops_stay_as_they_are() -> None:
    classes = {1: [LANE, node("unlowered")]}
    assert unvarying(classes, COUNTERS, legal) is classes
