"""Random programs and random plans of them: cut in ways that no search would take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random

from folded_programs import program
from support import differences, inputs_and_reference, load

from genrw.engine.fusion.body import Kernel, body_of
from genrw.engine.fusion.graph import FusionGraph
from genrw.engine.fusion.modules import unit_of
from genrw.engine.fusion.search import Plan
from genrw.engine.ir.nodes import Unit
from genrw.engine.library.library import Library

PLANS_OF_EACH = 4


def text_of(seed: int) -> str:
    """A random program that may need several kernels."""
    random = Random(seed)
    rank, depth, folds = random.choice((1, 2, 2, 3, 3, 4)), random.choice((1, 2, 3)), random.randint(0, 3)
    return program(seed * 7919 + 1, rank, depth, folds)


def graph_of(text: str) -> FusionGraph:
    """What the search sees of a program."""
    (plan,) = load(text).lower("fuse").trace.plans.values()
    graph: FusionGraph = plan.graph
    return graph


def random_plan(graph: FusionGraph, random: Random) -> Plan | None:
    """Kernels of one value each: results, what is stored at random, and what these cannot make. None if one of them is
    no kernel."""
    stored = {*graph.results} | {i for i, given in enumerate(graph.given) if not given and random.random() < 0.4}
    kernels: dict[int, Kernel] = {}
    while len(kernels) < len(stored):
        i = max(stored - kernels.keys())
        spaces = [s for s in range(-1, len(graph.spaces)) if graph.homes(i, s, graph.elements[i])]
        random.shuffle(spaces)
        for space in spaces:
            body = body_of(graph, Kernel(space, (i,)), {*stored})
            if all(value != i for value, _ in body.missing):
                break
        kernels[i] = Kernel(space, (i,))
        stored |= {value for value, _ in body.missing}
    plan = Plan(graph)
    plan.begin([body_of(graph, kernels[i], stored) for i in sorted(kernels)])
    return plan if all(body.legal for body in plan.bodies.values()) else None


def plans(seeds: Iterable[int]) -> Iterator[tuple[str, FusionGraph, Plan]]:
    """Random programs, each with some random plans."""
    for seed in seeds:
        text = text_of(seed)
        graph = graph_of(text)
        for number in range(PLANS_OF_EACH):
            plan = random_plan(graph, Random(seed * PLANS_OF_EACH + number))
            if plan is not None:
                yield text, graph, plan


@dataclass(frozen=True)
class Checked:
    """How many plans and kernels were run, and what was wrong with them."""

    plans: int
    kernels: int
    problems: list[str]


def check(cut: Iterable[tuple[str, FusionGraph, Plan]], library: Library) -> Checked:
    """Lower plans to the last stage, all in one call, and compare what each computes with its program."""
    texts, units = [], list[Unit]()
    for text, graph, plan in cut:
        graph.module = replace(graph.module, name=f"p{len(texts)}")
        units.append(unit_of(plan, library, ()))
        texts.append(text)
    lowered = load(texts[0], library=library).with_units(tuple(units)).lower(library.stages[-1])
    problems = []
    for text, unit, before in zip(texts, lowered.units, units, strict=True):
        inputs, want = inputs_and_reference(text)
        one = replace(load(text, library=library), units=(unit,))
        wrong = differences(one, one.run(inputs, "interpret"), want)
        if wrong:
            problems.append(f"{wrong}\n{text}\n{one.with_units((before,))}")
    return Checked(len(texts), sum(len(unit.kernels) for unit in units), problems)
