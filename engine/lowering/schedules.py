"""The schedules that a kernel can have: rated, and one of them chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from genrw.engine.egraph.extract import Extractor
from genrw.engine.ir.nodes import Module
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.trace import Trace
from genrw.engine.programs.text import written_value
from genrw.grammar.diagnostics import error
from genrw.grammar.gen_print import print_value

_MOST_VALUES = 8
"""How many values of an entry a remedy lists."""


@dataclass(frozen=True)
class RatedSchedule:
    """A legal schedule with all its entries, the microseconds predicted for it, and the rules that computed its entries."""

    cost: float
    entries: Mapping[str, Any]
    openers: tuple[str, ...]


@dataclass(frozen=True)
class RatedKernel:
    """A kernel's legal schedules, the cheapest first, and what was noted when they were rated, under the name that the
    kernel had then. There are none where kernels have no schedules."""

    schedules: tuple[RatedSchedule, ...]
    name: str
    noted: Trace

    @property
    def least(self) -> float:
        """What the cheapest schedule costs; 0 without schedules."""
        return self.schedules[0].cost if self.schedules else 0.0

    def has(self, pinned: Mapping[str, Any]) -> bool:
        """Do the entries `pinned` hold in one of the schedules?"""
        return any(pinned.items() <= rated.entries.items() for rated in self.schedules)


def rated_kernel(library: Library, extractor: Extractor, module: Module, noted: Trace) -> RatedKernel:
    """The schedules among what a stage's rules made of a module."""
    graph = extractor.graph
    root = graph.class_of[graph.ids[id(module.root)]]
    found = [(c, node) for c, node in extractor.alternatives(module) if library.role(node.op) == "kernel"]
    schedules = tuple(
        RatedSchedule(cost, dict(graph.interner.attributes(node.attributes)), graph.openers(root, node))
        for cost, node in found
    )
    return RatedKernel(schedules, module.name, noted)


def own_options(kernels: Sequence[RatedKernel], options: Options) -> list[Options]:
    """The options of each of several kernels. The call's schedule holds for those that can have it; if none can, for all,
    and that is an error."""
    able = [rated.has(options.schedule) for rated in kernels] if options.schedule and len(kernels) > 1 else []
    if not any(able):
        return [options] * len(kernels)
    return [options if can else replace(options, schedule={}) for can in able]


def scheduled(module: Module, kernel: RatedKernel, library: Library, options: Options, trace: Trace) -> Module:
    """The module with the preferred schedule, else the cheapest, among those that agree with what is pinned; GenrwError
    if there is none."""
    pinned = {**module.schedule, **options.schedule}
    for rated in kernel.schedules:
        unknown = [k for k in pinned if k not in rated.entries]
        if unknown:
            raise error(f"a schedule has no `{unknown[0]}`", module.span, f"it has {', '.join(rated.entries)}")
    legal = [rated for rated in kernel.schedules if pinned.items() <= rated.entries.items()]
    if not legal:
        shown = ", ".join(f"{k}={_shown(v)}" for k, v in pinned.items())
        remedy = _values_instead(pinned, [rated.entries for rated in kernel.schedules])
        raise error(f"no legal schedule of module `{module.name}` has {shown}", module.span, remedy)
    target = library.target(module.target)
    told: list[tuple[float, Mapping[str, Any], tuple[str, ...]]] = [
        (rated.cost, library.told_schedule(rated.entries, target), rated.openers) for rated in legal
    ]
    trace.schedules[module.name] = told
    preferred = options.preferences.schedule(module) if options.preferences is not None and not pinned else None
    _, chosen, openers = next((r for r in told if r[1] == preferred), told[0])
    trace.note_survivors(openers, module)
    return replace(module, schedule=chosen)


def _values_instead(pinned: Mapping[str, Any], legal: Sequence[Mapping[str, Any]]) -> str:
    """The values that each pinned entry may have beside the other ones; if no schedule agrees with all but one, those that
    it has in any."""
    near = {
        k: [s[k] for s in legal if all(s[other] == pinned[other] for other in pinned if other != k)] for k in pinned
    }
    found = {k: values for k, values in near.items() if values} or {k: [s[k] for s in legal] for k in pinned}
    return "; ".join(f"`{k}` may be {_some(values)}" for k, values in found.items())


def _some(values: Iterable[Any]) -> str:
    """The first values, each once, and how many more there are."""
    distinct = [_shown(value) for value in dict.fromkeys(values)]
    more = len(distinct) - _MOST_VALUES
    return ", ".join(distinct[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def _shown(value: Any) -> str:
    return print_value(written_value(value))
