"""What a plan is, in words: its kernels, what they store, and why each value is stored."""

from __future__ import annotations

from dataclasses import dataclass

from genrw.engine.fusion.body import Kernel, KernelBody, body_of
from genrw.engine.fusion.compute_locations import IterationSpace
from genrw.engine.fusion.graph import FLAT, FusionGraph
from genrw.engine.fusion.search import Plan
from genrw.engine.ir.nodes import Unit
from genrw.engine.language.functions import shown


@dataclass(frozen=True)
class KernelReport:
    """A launch: the kernel's module, its space, the values it reads and stores, microseconds, bytes, operations."""

    name: str
    lens: tuple[int, ...]
    axes: tuple[int, ...]
    loads: tuple[str, ...]
    outputs: tuple[str, ...]
    time: float
    bytes: int
    operations: float


@dataclass(frozen=True)
class Stored:
    """A value in memory, the kernel that stores it, and why."""

    value: str
    kernel: str
    why: str


@dataclass(frozen=True)
class PlanReport:
    """A program's kernels in launch order, their predicted time together, and its stored values."""

    name: str
    time: float
    kernels: tuple[KernelReport, ...]
    stored: tuple[Stored, ...]


def plan_report(name: str, plan: Plan, unit: Unit) -> PlanReport:
    """What a plan made of the program of a unit."""
    order = plan.order()
    names = [call.kernel for call in unit.main.calls] if unit.main is not None else [name] * len(order)
    kernels = tuple(_kernel(shown, plan, k) for shown, k in zip(names, order, strict=True))
    stored = tuple(
        Stored(plan.graph.name(i), shown, why_stored(plan, i))
        for shown, k in zip(names, order, strict=True)
        for i in plan.kernel(k).outputs
    )
    return PlanReport(name, plan.time, kernels, stored)


def _kernel(name: str, plan: Plan, k: int) -> KernelReport:
    graph, kernel, body = plan.graph, plan.kernel(k), plan.bodies[k]
    lens = graph.nodes[kernel.outputs[0]].type.lens
    space = IterationSpace(lens) if kernel.space == FLAT else graph.spaces[kernel.space]
    loads = tuple(graph.name(i) for i in sorted(body.loads))
    outputs = tuple(graph.name(i) for i in kernel.outputs)
    return KernelReport(name, space.lens, space.axes, loads, outputs, body.time, body.bytes, body.operations)


def why_stored(plan: Plan, i: int) -> str:
    """Why a value is stored: it is a result, a reader could not make it, or making it again costs more."""
    graph = plan.graph
    if i in graph.results:
        return "it is a result"
    k = plan.owner[i]
    kernel = plan.kernel(k)
    left = tuple(o for o in kernel.outputs if o != i)
    forced = _needed(plan, i)
    if forced is not None:
        return forced
    saved = plan.gain([k], [Kernel(kernel.space, left)] if left else [])
    if saved is None:
        return "the kernels without it are none that the rules allow"
    return f"making it again where it is read costs {-saved:.2f} µs more"


def _needed(plan: Plan, i: int) -> str | None:
    """Which reader cannot make a value, and what stands in the way; None if all of them can."""
    stored = {o: k for o, k in plan.owner.items() if o != i}
    for k in plan.met[i]:
        if i in plan.bodies[k].loads:
            body = body_of(plan.graph, plan.kernel(k), stored)
            if body.missing:
                return _obstacle(plan.graph, plan.kernel(k), body)
    return None


def _obstacle(graph: FusionGraph, kernel: Kernel, body: KernelBody) -> str:
    value, place = body.missing[0]
    reader = graph.name(kernel.outputs[0])
    if value not in graph.fold_space and graph.below(kernel.space, value, place) is None:
        return f"no rule says how the kernel of `{reader}` makes it"
    if value not in graph.fold_space:
        return f"the kernel of `{reader}` would be too large with it"
    folded = _rows(graph.spaces[graph.fold_space[value]])
    if kernel.space == FLAT:
        return f"the kernel of `{reader}` has no rows, and `{graph.name(value)}` folds {folded}"
    rows = _rows(graph.spaces[kernel.space])
    if graph.fold_space[value] != kernel.space:
        return f"the kernel of `{reader}` folds {rows}, and `{graph.name(value)}` folds {folded}"
    user = next(i for i, at in body.made if (value, place) in (graph.below(kernel.space, i, at) or ()))
    return f"`{graph.name(user)}` takes `{graph.name(value)}` elsewhere, and a kernel has it in its own row only"


def _rows(space: IterationSpace) -> str:
    axes = ", ".join(map(str, space.axes))
    return f"the rows of {shown(space.lens)} along {'axis' if len(space.axes) == 1 else 'axes'} {axes}"
