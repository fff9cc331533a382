"""The stage that cuts a program into kernels: the rules say what a kernel can make, a search what is best."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from genrw.engine.fusion.compute_locations import Places
from genrw.engine.fusion.exact import exact
from genrw.engine.fusion.graph import FusionGraph, PlanCosts
from genrw.engine.fusion.modules import unit_of
from genrw.engine.fusion.search import Plan, search
from genrw.engine.ir.nodes import Module, Unit
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import error

SEARCH, EXACT = "search", "exact"


def plan_named(name: str) -> str:
    """The way of finding a plan of a name; GenrwError if there is none."""
    if name not in (SEARCH, EXACT):
        raise error(f"there is no plan `{name}`", remedy=f"plans are {SEARCH} and {EXACT}")
    return name


@dataclass(frozen=True)
class Fused:
    """A program cut into kernels, its plan, and the rules by which these make their values."""

    unit: Unit
    plan: Plan
    rules: frozenset[str]


def fuse(
    modules: Sequence[Module],
    library: Library,
    places: Places,
    taken: Iterable[str],
    by: str = SEARCH,
    apart: Collection[int] = (),
) -> Iterator[Fused]:
    """Cut programs into kernels, named apart from the modules `taken`; GenrwError if no kernel can make a value.

    The rules are asked about all programs together. `by` says how plans are found: by a search, or exactly, which takes
    long for all but small programs. A value whose identity is in `apart` is stored by a kernel that stores nothing else.
    """
    graphs = [FusionGraph(m, library, PlanCosts.of(library.target(m.target).values), apart) for m in modules]
    asked = [graph.questions() for graph in graphs]
    answers = iter(places.ask([question for questions in asked for question in questions]))
    for graph, questions in zip(graphs, asked, strict=True):
        graph.answer(list(islice(answers, len(questions))))
        plan = search(graph) if by == SEARCH else exact(graph)
        yield Fused(unit_of(plan, library, taken), plan, frozenset(_rules(plan)))


def _rules(plan: Plan) -> Iterator[str]:
    for body in plan.bodies.values():
        for i, place in body.made:
            answer = plan.graph.answers.get(plan.graph.asked_about(body.kernel.space, i, place))
            if answer is not None:
                yield from answer.rules
