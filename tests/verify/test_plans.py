"""The plan search beside the best plans there are, and plans made at random: all of them compute the program."""

from __future__ import annotations

from random import Random

import pytest
from random_programs import program
from support import differences, inputs_and_reference, load

from genrw.engine.fusion_body import Kernel, body_of
from genrw.engine.fusion_exact import exact
from genrw.engine.fusion_graph import FusionGraph, Machine
from genrw.engine.fusion_modules import unit_of
from genrw.engine.fusion_search import Plan, search
from genrw.grammar.diagnostics import GenrwError

# Launches dear, memory dear, operations dear, all cheap.
MACHINES = [Machine(4.0, 5.3e6, 81.7e6), Machine(4.0, 3e3, 1e4), Machine(1.0, 3e3, 1e5), Machine(0.2, 1e3, 3e3)]
GRAPHS = 40
MOST_NODES = 22


def text_of(seed: int) -> str:
    """A random program that may need several kernels."""
    random = Random(seed)
    return program(
        seed * 7919 + 1, random.choice((1, 2, 2, 3, 3, 4)), random.choice((1, 2, 3)), random.randint(0, 3), True
    ).text


def graph_of(text: str) -> FusionGraph:
    """What the search sees of a program."""
    (plan,) = load(text).lower("fuse").trace.plans.values()
    graph: FusionGraph = plan.graph
    return graph


def test_the_search_finds_plans_near_the_best() -> None:
    pytest.importorskip("scipy")
    ratios = []
    for seed in range(GRAPHS):
        graph = graph_of(text_of(seed))
        if len(graph.nodes) > MOST_NODES:
            continue
        graph.machine = MACHINES[seed % len(MACHINES)]
        best, found = exact(graph).time, search(graph).time
        assert found > best * (1 - 1e-6), f"{seed}: the best plan is not the best"
        ratios.append(found / best)
    assert len(ratios) > GRAPHS / 2
    assert sum(ratios) / len(ratios) < 1.005
    assert max(ratios) < 1.1


def test_an_exact_plan_is_asked_for_by_name() -> None:
    pytest.importorskip("scipy")
    text = text_of(7)
    inputs, want = inputs_and_reference(text)
    lowered = load(text, plan="exact").lower("fuse")
    assert not differences(lowered, lowered.run(inputs, "interpret"), want)


def random_plan(graph: FusionGraph, random: Random) -> Plan:
    """Kernels of one value each: results, what is stored at random, and what these cannot make."""
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
        if any(value not in stored for value, _ in body.missing):
            stored |= {value for value, _ in body.missing}
    plan = Plan(graph)
    plan.begin([body_of(graph, kernels[i], stored) for i in sorted(kernels)])
    return plan


@pytest.mark.parametrize("first", range(0, 250, 50))
def test_random_plans_compute_the_program(first: int) -> None:
    """Four plans of each program, cut in ways that no search would take; some of them down to the last stage."""
    for seed in range(first, first + 50):
        text = text_of(seed)
        graph = graph_of(text)
        inputs, want = inputs_and_reference(text)
        for number in range(4):
            plan = random_plan(graph, Random(seed * 4 + number))
            if not all(body.legal for body in plan.bodies.values()):
                continue
            program = load(text)
            cut = program.with_units((unit_of(plan, program.library, ()),))
            lowered = cut.lower("final") if (seed, number) in ((first, 0), (first + 25, 1)) else cut
            problems = differences(lowered, lowered.run(inputs, "interpret"), want)
            assert not problems, f"{seed}, {number}: {problems}\n{cut}"


@pytest.mark.parametrize(
    "move",
    [
        "t = reverse[axes={0}](s)",
        "t = pad[pads={2, 0, 0, 0}](s)",
        "u = reshape[dims={1, 30}](s)\n    t = multibroadcast[out_lens={30, 30}](u)",
    ],
)
def test_a_reduction_in_the_wrong_place_is_caught(move: str) -> None:
    """Forced into the kernel of its reader, a sum that is taken from other rows is legal in no way, and never lowered."""
    text = f"x = @param:x -> float{{30, 30}}\ns = reduce_sum[axes={{1}}](x)\n{move}\ny = exp(t)\n@return(y)\n"
    graph = graph_of(text)
    for space in range(-1, len(graph.spaces)):
        assert not body_of(graph, Kernel(space, graph.results), ()).legal
    forced = load(text).with_modules((graph.module,))
    with pytest.raises(GenrwError):
        forced.lower("final")
