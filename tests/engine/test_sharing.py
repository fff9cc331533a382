"""Whole programs are compared where a value may be shared."""

from __future__ import annotations

from random import Random

import pytest

from genrw.engine.egraph.sharing import Sharing
from genrw.engine.ir.enode import ENode

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


def total(root: int, program: dict[int, ENode]) -> float | None:
    """What all that a root needs costs, by plain recursion; None if something needs itself."""
    found: dict[int, float] = {}

    def visit(number: int, above: tuple[int, ...]) -> bool:
        if number in above:
            return False
        if number not in found:
            if not all(visit(o, (*above, number)) for o in program[number].operands):
                return False
            found[number] = COSTS[program[number].op]
        return True

    return sum(found.values()) if visit(root, ()) else None


@pytest.mark.parametrize("seed", range(60))
def test_no_single_exchange_is_left_that_pays(seed: int) -> None:
    """Random graphs, of classes that may be reached in circles."""
    random = Random(seed)
    size = random.randint(3, 14)
    best = {
        n: node(random.choice([*COSTS]), *random.sample(range(n), min(n, random.randint(0, 3)))) for n in range(size)
    }
    others = {
        n: [node(random.choice([*COSTS]), *random.choices(range(size), k=random.randint(0, 2))) for _ in range(2)]
        for n in best
    }
    classes = {n: [best[n], *(others[n] if random.random() < 0.5 else [])] for n in best}
    root = size - 1
    sharing = Sharing(root, classes, best, lambda n: COSTS.get(n.op))
    program = sharing.improved()
    left = total(root, program)
    assert left is not None
    before = total(root, best)
    assert before is not None
    assert left <= before
    for number in program:
        for other in classes[number]:
            changed = total(root, {**best, **program, number: other})
            assert changed is None or changed > left - 1e-6 or not all(o in program for o in other.operands)
