"""The plan search beside the best plans there are, and plans made at random: all of them compute the program.

pytest tests/verify/test_plans.py --all-plans -s     a thousand random plans, and three hundred programs' best ones
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from itertools import islice
from pathlib import Path

import pytest
from plans import check, graph_of, plans, text_of
from support import differences, inputs_and_reference, load

from genrw.authoring.rulesets import load_library
from genrw.engine.fusion.body import Kernel, body_of
from genrw.engine.fusion.exact import exact
from genrw.engine.fusion.graph import FusionGraph, PlanCosts
from genrw.engine.fusion.search import search
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError

# Launches dear, memory dear, operations dear, all cheap.
MACHINES = [PlanCosts(4.0, 5.3e6, 81.7e6), PlanCosts(4.0, 3e3, 1e4), PlanCosts(1.0, 3e3, 1e5), PlanCosts(0.2, 1e3, 3e3)]
BATCH = 10
"""Programs whose plans are lowered in one call."""
FEW = 40
"""Random plans that are checked where not all are asked for."""


def small_graphs(number: int, most_nodes: int) -> list[FusionGraph]:
    """Random programs of few values, for machines in turn."""
    found: list[FusionGraph] = []
    seed = 0
    while len(found) < number:
        graph = graph_of(text_of(seed))
        if len(graph.nodes) <= most_nodes:
            graph.machine = MACHINES[len(found) % len(MACHINES)]
            found.append(graph)
        seed += 1
    return found


@pytest.mark.slow
def test_the_search_finds_plans_near_the_best(all_plans: bool) -> None:
    pytest.importorskip("scipy")
    ratios = []
    for graph in small_graphs(300, 22) if all_plans else small_graphs(16, 14):
        best, found = exact(graph).time, search(graph).time
        assert found > best * (1 - 1e-6), f"the best plan is not the best\n{graph.module}"
        ratios.append(found / best)
    mean, worst, same = sum(ratios) / len(ratios), max(ratios), sum(r < 1 + 1e-6 for r in ratios)
    print(
        f"\n{len(ratios)} programs: {same} plans are the best; {mean - 1:.2%} over it in the mean, {worst - 1:.1%} at most"
    )
    assert mean < 1.005
    assert worst < 1.1


def test_an_exact_plan_is_asked_for_by_name() -> None:
    pytest.importorskip("scipy")
    text = text_of(7)
    inputs, want = inputs_and_reference(text)
    lowered = load(text, plan="exact").lower("fuse")
    assert not differences(lowered, lowered.run(inputs, "interpret"), want)


def test_an_exact_plan_makes_nothing_anew_that_another_kernel_stores() -> None:
    """Two kernels that could each make what the other one stores: loaded on both sides, neither could run first."""
    pytest.importorskip("scipy")
    text = """
        x = @param:x -> uint8{7, 3, 1, 4, 32}
        y = @param:y -> uint8{1, 3, 1, 32, 32}
        z = @param:z -> double{7, 3, 1, 4, 32}
        c = @param:c -> bool{7, 3, 1, 4, 32}
        d = quant_dot(x, y)
        m = reduce_max[axes={0, 2, 3, 4}](z)
        n = logical_xor(c, false)
        a = reduce_any[axes={0, 2, 3, 4}](n)
        @return(m, d, a, n)"""
    graph = graph_of(text)
    plan = exact(graph)
    TopologicalSorter({k: [*plan.before(k)] for k in plan.bodies}).prepare()
    assert plan.time <= search(graph).time * (1 + 1e-6)
    inputs, want = inputs_and_reference(text)
    lowered = load(text, plan="exact").lower("fuse")
    assert not differences(lowered, lowered.run(inputs, "interpret"), want)


@pytest.mark.slow
def test_random_plans_compute_the_program(all_plans: bool, library: Library) -> None:
    """Cut at random and lowered to the last stage, a program is what it was."""
    seed, run, kernels = 0, 0, 0
    while run < (1000 if all_plans else FEW):
        checked = check(islice(plans(range(seed, seed + BATCH)), None if all_plans else FEW), library)
        assert not checked.problems, "\n".join(checked.problems)
        seed, run, kernels = seed + BATCH, run + checked.plans, kernels + checked.kernels
    print(f"\n{run} plans of {seed} programs, {kernels} kernels: all are right")


# ---- what has to be caught

MOVES = {
    "reverse": "t = reverse[axes={0}](s)",
    "pad": "t = pad[pads={2, 0, 0, 0}](s)",
    "slice": "t = slice[axes={0}, starts={7}, ends={16}](s)",
    "multibroadcast": "u = reshape[dims={1, 30}](s)\nt = multibroadcast[out_lens={30, 30}](u)",
}


def moved_sum(move: str) -> str:
    """A sum of each row, taken by a move from other rows than its own."""
    return f"x = @param:x -> float{{30, 30}}\ns = reduce_sum[axes={{1}}](x)\n{MOVES[move]}\ny = exp(t)\n@return(y)\n"


@pytest.mark.parametrize("move", MOVES)
def test_no_rule_makes_a_reduction_in_the_wrong_place(move: str) -> None:
    """Forced into the kernel of its reader, a sum that is taken from other rows is legal in no way, and never lowered."""
    graph = graph_of(moved_sum(move))
    for space in range(-1, len(graph.spaces)):
        assert not body_of(graph, Kernel(space, graph.results), ()).legal
    forced = load(moved_sum(move)).with_modules((graph.module,))
    with pytest.raises(GenrwError):
        forced.lower("final")


WRONG = """
stage fuse
rule wrong_place
  made(reverse[axes](x), i)
  => reverse[axes](made(x, i))

stage lanewise
rule wrong_element
  comp(reverse[..](x), i)
  => comp(x, i)
"""


def test_a_reduction_inlined_at_the_wrong_index_is_seen(tmp_path: Path) -> None:
    """With rules that forget that a reversed row is another one, the program is one kernel, and the check says so."""
    (tmp_path / "wrong.rw").write_text(WRONG)
    library = load_library([tmp_path])
    text = moved_sum("reverse").replace("y = exp(t)", "b = multibroadcast[out_lens={30, 30}](t)\ny = add(x, b)")
    graphs = [next(iter(load(text, library=lib).lower("fuse").trace.plans.values())) for lib in (None, library)]
    assert [len(plan.bodies) for plan in graphs] == [2, 1]
    (right,) = [check([(text, graphs[0].graph, graphs[0])], load_library())]
    assert not right.problems
    (wrong,) = [check([(text, graphs[1].graph, graphs[1])], library)]
    assert len(wrong.problems) == 1


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("_SECONDS", 0.0, "no best plan of module `main` was found within 0 seconds"),
        ("MOST_NEEDS", 3, "module `main` is too large for an exact plan"),
    ],
)
def test_no_exact_plan_is_told(monkeypatch: pytest.MonkeyPatch, limit: str, value: float, said: str) -> None:
    pytest.importorskip("scipy")
    monkeypatch.setattr(f"genrw.engine.fusion.exact.{limit}", value)
    steps = "".join(f"a{i} = reduce_sum[axes={{1}}](b{i})\nb{i + 1} = mul(b{i}, a{i})\n" for i in range(4))
    text = f"b0 = @param:x -> float{{64, 100}}\n{steps}@return(b4)\n"
    with pytest.raises(GenrwError, match=rf":1:1: error: {said}\n(.*\n)*  help: leave out `--plan exact`"):
        load(text, plan="exact").lower("fuse")
