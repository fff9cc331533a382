"""Whole programs are compared where a value may be shared."""

from __future__ import annotations

from genrw.engine.sharing import Sharing
from genrw.engine.stage import ENode

COSTS = {"root": 1.0, "cheap": 2.0, "dear": 3.0, "leaf": 4.0, "around": 1.0}


def node(op: str, *operands: int) -> ENode:
    return ENode(op, 0, operands)


def improved(classes: dict[int, list[ENode]], best: dict[int, ENode]) -> dict[int, str]:
    found = Sharing(0, classes, best, lambda n: COSTS.get(n.op)).improved()
    return {number: n.op for number, n in found.items()}


def test_a_dearer_node_over_a_shared_value_is_taken() -> None:
    alone, shared = node("cheap", 2), node("dear", 3)
    classes = {0: [node("root", 1, 3)], 1: [alone, shared], 2: [node("leaf")], 3: [node("leaf")]}
    best = {0: classes[0][0], 1: alone, 2: classes[2][0], 3: classes[3][0]}
    assert improved(classes, best) == {0: "root", 1: "dear", 3: "leaf"}


def test_without_sharing_the_cheaper_node_stays() -> None:
    alone, other = node("cheap", 2), node("dear", 3)
    classes = {0: [node("root", 1)], 1: [alone, other], 2: [node("leaf")], 3: [node("leaf")]}
    best = {0: classes[0][0], 1: alone, 2: classes[2][0], 3: classes[3][0]}
    assert improved(classes, best) == {0: "root", 1: "cheap", 2: "leaf"}


def test_no_exchange_makes_a_value_need_itself() -> None:
    straight, circle = node("dear", 2), node("around", 0)
    classes = {0: [node("root", 1)], 1: [straight, circle], 2: [node("leaf")]}
    best = {0: classes[0][0], 1: straight, 2: classes[2][0]}
    assert improved(classes, best) == {0: "root", 1: "dear", 2: "leaf"}


def test_an_illegal_node_is_not_taken() -> None:
    alone, illegal = node("dear", 2), node("unknown")
    classes = {0: [node("root", 1)], 1: [alone, illegal], 2: [node("leaf")]}
    best = {0: classes[0][0], 1: alone, 2: classes[2][0]}
    assert improved(classes, best) == {0: "root", 1: "dear", 2: "leaf"}
