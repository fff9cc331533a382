"""Alternatives to kernels: what rules of the kind make of a kernel is taken where it is predicted to take less time."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from genrw.engine.egraph.relevance import relevant_rules
from genrw.engine.fusion.alternatives import PlannedKernel, planned_kernels, rewritten
from genrw.engine.fusion.graph import PlanCosts
from genrw.engine.fusion.search import Plan
from genrw.engine.fusion.stage import Fused
from genrw.engine.ir.nodes import Module, unshared
from genrw.engine.ir.structure import nameless_key
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.schedules import RatedKernel
from genrw.engine.lowering.trace import Trace
from genrw.grammar.rw_tree import RuleDecl

_WORTH = 0.9
"""The share of a kernel's predicted time that its alternative has to stay below: predictions are hardly better."""

_TOGETHER = 3
"""How many alternatives are applied to a kernel, one after the other."""


class Lowering(Protocol):
    """What alternatives need of a pipeline. `alternatives` are the rules of the kind that run, None for all."""

    library: Library

    def rules(self, stage: str, strict: bool, alternatives: frozenset[str] | None = None) -> tuple[RuleDecl, ...]: ...

    def step(
        self,
        modules: Sequence[Module],
        stage: str,
        options: Options,
        trace: Trace,
        *,
        alternatives: frozenset[str] | None = None,
    ) -> list[Module]: ...

    def makers(
        self,
        modules: Sequence[Module],
        stage: str,
        options: Options,
        trace: Trace,
        *,
        alternatives: frozenset[str] | None = None,
    ) -> set[str]: ...

    def cut(
        self,
        modules: Sequence[Module],
        names: Iterable[str],
        options: Options,
        trace: Trace,
        apart: Collection[int] = (),
    ) -> list[Fused]: ...

    def rated(self, kernels: Sequence[Module], options: Options) -> list[RatedKernel]: ...


def _stored(plan: Plan) -> set[int]:
    """What kernels store, by identity."""
    return {id(plan.graph.nodes[i]) for k in plan.order() for i in plan.kernel(k).outputs}


@dataclass(frozen=True)
class _Attempt:
    """What the alternatives `rules` made of the kernel with a key, and the names of the modules that they made it of, one after
    the other."""

    key: Any
    module: Module
    rules: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Alternatives:
    """Tries alternatives on kernels of a library. Use it from one thread.

    Made for one call: a pipeline that kept it would be part of a cycle, and stay in memory. What the pipeline keeps is `able`, the
    alternatives that could apply to kernels of the same operators.
    """

    def __init__(self, lowering: Lowering, able: dict[tuple[bool, frozenset[str]], frozenset[str]]) -> None:
        self._lowering = lowering
        self._able = able

    def better(
        self, plans: Sequence[Fused], modules: Sequence[Module], names: Iterable[str], options: Options, trace: Trace
    ) -> list[Fused]:
        """The plans of programs, with alternatives in place of kernels where these are predicted to take less time."""
        library, better = self._lowering.library, list(plans)
        if not library.schedules_follow_fusing:
            return better
        kernels = [
            [kernel for kernel in planned_kernels(fused.plan, library) if self._able_on(kernel.module, options)]
            for fused in plans
        ]
        tried = Trace()
        best = self._cheaper([kernel for planned in kernels for kernel in planned], options, tried)
        others = {key: attempt.module for key, attempt in best.items()}
        changed: dict[int, tuple[Module, frozenset[int]]] = {}
        for k, planned in enumerate(kernels):
            taken = [best[kernel.key] for kernel in planned if kernel.key in best]
            if taken:
                changed[k] = rewritten(plans[k].plan, planned, others)
                trace.take_over(tried, [(name, modules[k].name) for attempt in taken for name in attempt.names])
        for k, fused in zip(changed, self._cut_again(changed, names, options, trace), strict=True):
            better[k] = fused
        return better

    def _cut_again(
        self,
        changed: Mapping[int, tuple[Module, frozenset[int]]],
        names: Iterable[str],
        options: Options,
        trace: Trace,
    ) -> list[Fused]:
        """Changed programs cut into kernels. What alternatives make of a kernel may become one kernel with what uses it, and stays its own
        where both are predicted to take less time so."""
        modules = [module for module, _ in changed.values()]
        found = self._lowering.cut(modules, names, options, trace)
        merged = [n for n, (_, values) in enumerate(changed.values()) if not values <= _stored(found[n].plan)]
        apart = frozenset[int]().union(*(values for _, values in changed.values()))
        alone = self._lowering.cut([modules[n] for n in merged], names, options, trace, apart)
        compared = [fused.unit.kernels for n, other in zip(merged, alone, strict=True) for fused in (found[n], other)]
        times = self._predicted(compared, options)
        for n, fused, together, by_itself in zip(merged, alone, times[::2], times[1::2], strict=True):
            if by_itself < together:
                found[n] = fused
        return found

    def _able_on(self, kernel: Module, options: Options) -> frozenset[str]:
        """The alternatives that could apply to a kernel."""
        operators = frozenset(node.op for node in kernel.nodes)
        asked = (options.strict, operators)
        if asked not in self._able:
            library, stage = self._lowering.library, self._lowering.library.fusing_stage or ""
            names = [rule.name for rule in self._lowering.rules(stage, options.strict) if rule.alternative]
            possible = {name: self._lowering.rules(stage, options.strict, frozenset({name})) for name in names}
            able = {n: relevant_rules(library, rules, operators)[0] for n, rules in possible.items()}
            self._able[asked] = frozenset(n for n, rules in able.items() if any(rule.alternative for rule in rules))
        return self._able[asked]

    def _cheaper(self, kernels: Iterable[PlannedKernel], options: Options, trace: Trace) -> dict[Any, _Attempt]:
        """The best of what alternatives make of kernels, by key, where it is better than the kernel."""
        distinct = {kernel.key: kernel.module for kernel in kernels}
        named = {key: replace(module, name=f"alternative{n}") for n, (key, module) in enumerate(distinct.items())}
        attempts = self._attempts(named, options, trace) if named else []
        if not attempts:
            return {}
        parts = [list(cut.unit.kernels) for cut in self._lowering.cut([a.module for a in attempts], (), options, trace)]
        changed = list(dict.fromkeys(attempt.key for attempt in attempts))
        times = self._predicted([[named[key]] for key in changed] + parts, options)
        least = {key: _WORTH * time for key, time in zip(changed, times, strict=False)}
        best: dict[Any, _Attempt] = {}
        for attempt, time in zip(attempts, times[len(changed) :], strict=True):
            if time < least[attempt.key]:
                least[attempt.key], best[attempt.key] = time, attempt
        return best

    def _attempts(self, kernels: Mapping[Any, Module], options: Options, trace: Trace) -> list[_Attempt]:
        """What alternatives make of kernels: each by itself, and then others on what it made. What two make in either order is
        tried once."""
        made: dict[Any, _Attempt] = {}
        last = [_Attempt(key, module) for key, module in kernels.items()]
        for _ in range(_TOGETHER):
            found = {
                (attempt.key, nameless_key(attempt.module)): attempt for attempt in self._each(last, options, trace)
            }
            new = {key: attempt for key, attempt in found.items() if key not in made}
            made |= new
            last = list(new.values())
        return list(made.values())

    def _each(self, attempts: Sequence[_Attempt], options: Options, trace: Trace) -> list[_Attempt]:
        """What each alternative that is not applied yet makes of attempts."""
        able = frozenset[str]().union(*(self._able_on(attempt.module, options) for attempt in attempts))
        if not able:
            return []
        stage = self._lowering.library.fusing_stage or ""
        modules = unshared(attempt.module for attempt in attempts)
        made: list[_Attempt] = []
        for rule in sorted(able & self._lowering.makers(modules, stage, options, trace, alternatives=able)):
            others = [attempt for attempt in attempts if rule not in attempt.rules]
            made += self._tried(rule, others, options, trace)
        return made

    def _tried(self, rule: str, attempts: Sequence[_Attempt], options: Options, trace: Trace) -> list[_Attempt]:
        """What an alternative makes of those attempts that it changes."""
        if not attempts:
            return []
        stage = self._lowering.library.fusing_stage or ""
        modules = unshared(replace(a.module, name=f"{a.module.name}_{rule}") for a in attempts)
        made = self._lowering.step(modules, stage, options, trace, alternatives=frozenset({rule}))
        return [
            _Attempt(attempt.key, new, (*attempt.rules, rule), (*attempt.names, new.name))
            for attempt, new in zip(attempts, made, strict=True)
            if nameless_key(new) != nameless_key(attempt.module)
        ]

    def _predicted(self, programs: Sequence[Sequence[Module]], options: Options) -> list[float]:
        """The microseconds that the kernels of each program take with their cheapest schedules; no program is fast of which no
        kernel can have the schedule that the call asks for. Kernels that start while the one before ends wait for no launch:
        what they take to begin is part of what schedules are rated at."""
        rated = iter(self._lowering.rated(unshared(m for modules in programs for m in modules), options))
        target = self._lowering.library.target(options.target)
        launch = 0.0 if target.values.get("overlapping_launches") else PlanCosts.of(target.values).launch
        programs_kernels = [[next(rated) for _ in modules] for modules in programs]
        return [
            sum(launch + kernel.least for kernel in kernels)
            if not options.schedule or any(kernel.has(options.schedule) for kernel in kernels)
            else math.inf
            for kernels in programs_kernels
        ]
