"""What lowering did, noted as it goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genrw.engine.egraph.guard_evaluation import RuleUse
from genrw.engine.egraph.stage import EGraphSnapshot
from genrw.engine.fusion.search import Plan
from genrw.engine.ir.nodes import Module


@dataclass
class Trace:
    """What lowering did: how guards decided, the modules in which rules made a value of the result, the schedules rated,
    the plans by which programs were cut into kernels.

    Of watched rules also the modules in which they fired, the seconds that they took, and how many terms they made.
    Rules go by key, modules by name.
    """

    uses: dict[str, RuleUse] = field(default_factory=dict)
    fired: dict[str, set[str]] = field(default_factory=dict)
    survived: dict[str, set[str]] = field(default_factory=dict)
    schedules: dict[str, list[tuple[float, Mapping[str, Any], tuple[str, ...]]]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    grown: dict[str, int] = field(default_factory=dict)

    def add(self, other: Trace) -> None:
        """Take over what another call noted."""
        self._count(other.uses)
        self._weigh(other.seconds, other.grown)
        for mine, theirs in ((self.fired, other.fired), (self.survived, other.survived)):
            for key, names in theirs.items():
                mine.setdefault(key, set()).update(names)
        self.schedules |= other.schedules
        self.plans |= other.plans

    def add_all(self, others: Iterable[Trace]) -> None:
        """Take over what other calls noted, once for what was lowered together."""
        for made in {id(other): other for other in others}.values():
            self.add(made)

    def note(self, graph: EGraphSnapshot, modules: Sequence[Module]) -> None:
        """Note what the rules of a stage did."""
        self._count(graph.answered.uses)
        self._weigh(graph.answered.seconds, graph.growth() if graph.answered.seconds else {})
        for key, numbers in graph.fired.items():
            self.fired.setdefault(key, set()).update(modules[i].name for i in numbers)

    def note_survivors(self, keys: Iterable[str], module: Module) -> None:
        """Note the rules that made a value of a module's result."""
        for key in keys:
            self.survived.setdefault(key, set()).add(module.name)

    def take_over(self, tried: Trace, parts: Iterable[tuple[str, str]]) -> None:
        """Take over what was noted of an attempt's modules, each as that of a program or kernel that it became a part of."""
        wholes: dict[str, set[str]] = {}
        for part, whole in parts:
            wholes.setdefault(part, set()).add(whole)
        self._count(tried.uses)
        self._weigh(tried.seconds, tried.grown)
        for mine, theirs in ((self.fired, tried.fired), (self.survived, tried.survived)):
            for key, names in theirs.items():
                if noted := {whole for name in names for whole in wholes.get(name, ())}:
                    mine.setdefault(key, set()).update(noted)

    def take_over_all(self, parts: Iterable[tuple[Trace, str, str]]) -> None:
        """Take over what was noted of parts, each given with its trace, its name there and the name of its whole. Traces
        that several parts share count once."""
        shared: dict[int, tuple[Trace, list[tuple[str, str]]]] = {}
        for tried, part, whole in parts:
            shared.setdefault(id(tried), (tried, []))[1].append((part, whole))
        for tried, named in shared.values():
            self.take_over(tried, named)

    def _weigh(self, seconds: Mapping[str, float], grown: Mapping[str, int]) -> None:
        for key, spent in seconds.items():
            self.seconds[key] = self.seconds.get(key, 0.0) + spent
        for key, count in grown.items():
            self.grown[key] = self.grown.get(key, 0) + count

    def _count(self, uses: Mapping[str, RuleUse]) -> None:
        for key, use in uses.items():
            total = self.uses.setdefault(key, RuleUse())
            total.taken += use.taken
            total.refused += use.refused
