"""Lowering: stage after stage, all kernels of a call together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from genrw.engine.egraph.encode import Encoded
from genrw.engine.egraph.encodings import Encodings
from genrw.engine.egraph.extract import Extractor, written_nodes
from genrw.engine.egraph.guard_evaluation import RuleUse
from genrw.engine.egraph.relevance import relevant_rules
from genrw.engine.egraph.stage import EGraphSnapshot, StageEngine
from genrw.engine.fusion.alternatives import planned_kernels, rewritten
from genrw.engine.fusion.compute_locations import OperandLocations, Places
from genrw.engine.fusion.graph import PlanCosts
from genrw.engine.fusion.search import Plan
from genrw.engine.fusion.stage import SEARCH, Fused, fuse
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Module, Node, Unit, unshared, walk
from genrw.engine.ir.structure import nameless_key, unit_key
from genrw.engine.library.arities import Arities, program_arities, term_arities
from genrw.engine.library.library import Library
from genrw.engine.lowering.garbage import uncollected
from genrw.engine.programs.signature import parameter_names
from genrw.engine.programs.space import space_record, with_space
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.moved import told_again
from genrw.grammar.rw_tree import RuleDecl

DEFAULT_POLICY = "cost"
_ENGINES_KEPT = 64
_SPARE = 1.25
"""An engine serves programs of the same stage that need less than it has, if it has no more than so many times as much: rules
that never match cost little, an e-graph that is made anew a tenth of a second."""
_EngineKey = tuple[str, frozenset[int], tuple[Encoded, ...]]
_Asked = tuple[str, bool, frozenset[str] | None, frozenset[str], Hashable]
_LOWERED_KEPT = 1024
NO_ALTERNATIVES: frozenset[str] = frozenset()
"""Of rules that are alternatives, none."""
_FURTHER = "_further"
"""How the name ends of what alternatives make of what another one made."""
_WORTH = 0.9
"""The share of a kernel's predicted time that its alternative has to stay below: predictions are hardly better."""


class Preferences(Protocol):
    """Schedules to take in place of the cheapest. `key` tells preferences apart."""

    @property
    def key(self) -> Hashable: ...

    def schedule(self, module: Module) -> Mapping[str, Any] | None:
        """The schedule of a kernel, None where none is preferred."""


@dataclass(frozen=True)
class Options:
    """What a call asks for besides the program: target, only exact rules, pinned schedule entries, policy, how kernels
    are formed, and what is preferred where nothing is pinned."""

    target: str
    strict: bool = False
    schedule: Mapping[str, Any] = field(default_factory=dict)
    policy: str = DEFAULT_POLICY
    plan: str = SEARCH
    preferences: Preferences | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells calls apart."""
        preferred = self.preferences.key if self.preferences is not None else None
        pinned = tuple(sorted(self.schedule.items()))
        return (self.target, self.strict, pinned, self.policy, self.plan, preferred)


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

    def take_over(self, tried: Trace, names: Iterable[str], name: str) -> None:
        """Take over what was noted of an attempt's modules, as that of the program that they became a part of."""
        wanted = set(names)
        self._count(tried.uses)
        self._weigh(tried.seconds, tried.grown)
        for mine, theirs in ((self.fired, tried.fired), (self.survived, tried.survived)):
            for key, found in theirs.items():
                if found & wanted:
                    mine.setdefault(key, set()).add(name)

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


@dataclass(frozen=True)
class Batch:
    """Modules as a stage took them, what their rules may ask about, and the e-graph that the stage's rules made.

    `names` are the written nodes of the classes that have one.
    """

    modules: Sequence[Module]
    contexts: Sequence[Mapping[str, Any]]
    extractor: Extractor
    names: Mapping[int, Node]

    @property
    def graph(self) -> EGraphSnapshot:
        return self.extractor.graph


class Pipeline:
    """Lowers modules with a library's rules. Holds one engine per stage; use it from one thread."""

    def __init__(
        self, library: Library, *, watched: bool = False, recorded: bool = False, before: Pipeline | None = None
    ) -> None:
        """`watched` has the trace say of every guard what it decided and steps leave out rules, `recorded` has e-graphs
        keep what each rule did: both at the price of speed.

        `before` is a pipeline, used in the same thread and neither watched nor recorded, of a library that shares all but
        rules with this one: what follows from unchanged rules is taken over from it.
        """
        self.library = library
        encodings = before._encodings if before is not None else None
        self._encodings: Encodings = Encodings(library, watched, recorded, encodings)
        self._engines: dict[_EngineKey, StageEngine] = {}
        self._engine_keys: dict[_Asked, _EngineKey] = {}
        self._lowered: dict[Any, tuple[Unit, Trace]] = {}
        self._staged: dict[Any, tuple[Unit, Trace]] = {}
        self._answers: dict[tuple[str, bool], dict[Any, OperandLocations | None]] = {}
        self._stage_rules: dict[tuple[str, bool, frozenset[str] | None], tuple[RuleDecl, ...]] = {}
        self._alternatives: dict[tuple[bool, frozenset[str]], tuple[str, ...]] = {}
        if before is not None:
            self._take_over(before)

    def _take_over(self, before: Pipeline) -> None:
        """Keep engines, and what was found at stages whose rules are the same."""
        if before.library.fusing_stage != self.library.fusing_stage:
            return
        same = {stage for stage in self.stages if self._same_rules(before, stage)}
        self._engines = before._engines
        self._engine_keys = {asked: key for asked, key in before._engine_keys.items() if asked[0] in same}
        self._staged = {key: found for key, found in before._staged.items() if key[0] in same}
        if self.library.fusing_stage in same:
            self._answers = before._answers

    def _same_rules(self, before: Pipeline, stage: str) -> bool:
        """Has a stage the same rules as before, with the same encodings?"""
        some, others = self._rules(stage, False), before._rules(stage, False)
        return len(some) == len(others) and all(
            self._encodings.origin(a) is before._encodings.origin(b) for a, b in zip(some, others, strict=True)
        )

    @property
    def stages(self) -> tuple[str, ...]:
        return self.library.stages

    def engine(
        self, stage: str, strict: bool, modules: Sequence[Module], *, alternatives: frozenset[str] | None = None
    ) -> StageEngine:
        """The engine of a stage for modules, with those rules that are `alternatives`, None for all; the ones used last are
        kept, and serve all programs of the same rules."""
        operators = frozenset(node.op for module in modules for node in module.nodes)
        present = program_arities(modules, self.library)
        asked = (stage, strict, alternatives, operators, present.key)
        key = self._engine_keys.get(asked)
        engine = self._engines.pop(key, None) if key is not None else None
        if key is None or engine is None:
            possible = self._rules(stage, strict, alternatives)
            key, rules, reachable = self._needed(possible, stage, operators, present)
            key = self._serving(key, possible)
            self._engine_keys[asked] = key
            engine = self._engines.pop(key, None) or self._made_engine(key, rules, reachable)
        self._engines[key] = engine
        while len(self._engines) > _ENGINES_KEPT:
            del self._engines[next(iter(self._engines))]
        return engine

    def prepare(self) -> None:
        """Clear away what the last programs left in the engines: to be called when there is time."""
        for engine in self._engines.values():
            engine.prepare()

    def _needed(
        self, possible: tuple[RuleDecl, ...], stage: str, operators: frozenset[str], present: Arities
    ) -> tuple[_EngineKey, list[RuleDecl], frozenset[str]]:
        """What tells an engine apart, its encoded rules above all; these rules, and the operators that can appear."""
        rules, reachable = relevant_rules(self.library, possible, operators)
        needed = self._encodings.needed(rules, reachable, term_arities(self.library, rules, present))
        return (stage, needed.arities, needed.encoded), [self._encodings.origin(rule) for rule in rules], reachable

    def _serving(self, key: _EngineKey, possible: Sequence[RuleDecl]) -> _EngineKey:
        """The engine, of those that there are, that has what one with this key would have, and least besides; this key, if there
        is none. It has no rules but `possible` ones."""
        stage, arities, encoded = key
        if key in self._engines or not encoded:
            return key
        allowed, wanted = {id(self._encodings.origin(rule)) for rule in possible}, set(encoded)

        def serves(other: _EngineKey, engine: StageEngine) -> bool:
            few = other[0] == stage and len(other[2]) <= _SPARE * len(encoded)
            return (
                few and other[1] >= arities and wanted.issubset(other[2]) and allowed.issuperset(map(id, engine.rules))
            )

        found = [other for other, engine in self._engines.items() if serves(other, engine)]
        return min(found, key=lambda other: len(other[2]), default=key)

    def _made_engine(self, key: _EngineKey, rules: Sequence[RuleDecl], reachable: frozenset[str]) -> StageEngine:
        found = self._outdated(key)
        outdated = self._engines.pop(found) if found is not None else None
        return StageEngine(self.library, key[0], rules, reachable, encodings=self._encodings, outdated=outdated)

    def _outdated(self, key: _EngineKey) -> _EngineKey | None:
        """The engine of a stage that has most in common with a new one, of those with rules that have been edited."""
        if not self._encodings.edited:
            return None
        current, wanted = self._encodings.current(), set(key[2])
        found = [k for k in self._engines if k[0] == key[0] and not current.issuperset(k[2])]
        return max(found, key=lambda k: len(wanted.intersection(k[2])), default=None)

    def _rules(self, stage: str, strict: bool, alternatives: frozenset[str] | None = None) -> tuple[RuleDecl, ...]:
        key = (stage, strict, alternatives)
        if key not in self._stage_rules:
            every = stage_rules(self.library, stage)
            rules = [r for r in every if not r.alternative or alternatives is None or r.name in alternatives]
            self._stage_rules[key] = tuple(r for r in rules if not strict or r.contract == "exact")
        return self._stage_rules[key]

    def lower(self, units: Sequence[Unit], stage: str, options: Options, trace: Trace | None = None) -> list[Unit]:
        """The programs at a stage (its name, one of `stages`); GenrwError if they cannot be lowered.

        Programs lowered before are remembered by structure; all others go through the stages together.
        """
        names = tuple(unit.name for unit in units)
        keys = [(unit_key(unit), names, stage, options.key) for unit in units]
        new = {key: unit for key, unit in zip(keys, units, strict=True) if key not in self._lowered}
        if new:
            made = Trace()
            with uncollected():
                lowered = self._lower(list(new.values()), names, stage, options, made)
            self._lowered.update((key, (unit, made)) for key, unit in zip(new, lowered, strict=True))
        found = [self._lowered[key] for key in keys]
        _forget(self._lowered)
        if trace is not None:
            _add_all(trace, found)
        return [unit for unit, _ in found]

    def _lower(
        self, units: Sequence[Unit], names: Sequence[str], stage: str, options: Options, trace: Trace
    ) -> list[Unit]:
        last = self.index(stage)
        kernels = iter(unshared([self._begin(m, options) for unit in units for m in unit.kernels]))
        current = [self._regrouped(unit, kernels, options) for unit in units]
        for unit in current:
            if self.done(unit) > last:
                raise error(
                    f"module `{unit.name}` is already at stage `{unit.stage}`",
                    unit.kernels[0].span,
                    f"ask for {' or '.join(self.stages[self.done(unit) :])}",
                )
        for i in range(last + 1):
            todo = [k for k, unit in enumerate(current) if self.done(unit) < i]
            if todo:
                done = self._stage([current[k] for k in todo], names, self.stages[i], options, trace)
                for k, unit in zip(todo, done, strict=True):
                    current[k] = unit
        return current

    def _stage(
        self, units: Sequence[Unit], names: Sequence[str], stage: str, options: Options, trace: Trace
    ) -> list[Unit]:
        """Run one stage on programs, all their kernels together but for those that are remembered."""
        keys = [(stage, unit_key(unit), _made_by(unit), names, options.key) for unit in units]
        new = {key: unit for key, unit in zip(keys, units, strict=True) if key not in self._staged}
        if new:
            made = Trace()
            done = self._run_stage(list(new.values()), names, stage, options, made)
            self._staged.update((key, (unit, made)) for key, unit in zip(new, done, strict=True))
        found = [self._staged[key] for key in keys]
        _forget(self._staged)
        _add_all(trace, found)
        return [unit for unit, _ in found]

    def _run_stage(
        self, units: Sequence[Unit], names: Sequence[str], stage: str, options: Options, trace: Trace
    ) -> list[Unit]:
        fusing = stage == self.library.fusing_stage
        modules = [m for unit in units for m in unit.kernels]
        kernels = iter(self.step(modules, stage, options, trace, alternatives=NO_ALTERNATIVES))
        stepped = [self._regrouped(unit, kernels, options) for unit in units]
        return self._fused(stepped, names, options, trace) if fusing else stepped

    def _regrouped(self, unit: Unit, kernels: Iterator[Module], options: Options) -> Unit:
        """The program with new kernels, taken in order."""
        taken = tuple(next(kernels) for _ in unit.kernels)
        main = unit.main
        if main is not None:
            main = replace(main, stage=taken[0].stage, target=options.target)
        return Unit(taken, main)

    def _fused(self, units: Sequence[Unit], names: Sequence[str], options: Options, trace: Trace) -> list[Unit]:
        """Programs cut into kernels; those that are no tensor programs any more stay as they are."""
        result = self.library.boundary("result").name
        modules = [module for unit in units for module in unit.kernels if module.root.op == result]
        places = self._places(options, trace)
        plans = list(fuse(modules, self.library, places, names, options.plan))
        better = self._better(plans, modules, options, trace)
        changed = [k for k, module in enumerate(better) if module is not modules[k]]
        again = fuse([better[k] for k in changed], self.library, places, names, options.plan)
        for k, fused in zip(changed, again, strict=True):
            plans[k] = fused
        found = dict(zip(map(id, modules), plans, strict=True))
        for module in modules:
            trace.plans[module.name] = found[id(module)].plan
            trace.note_survivors(found[id(module)].rules, module)
        return [found[id(unit.kernels[0])].unit if id(unit.kernels[0]) in found else unit for unit in units]

    # ---- alternatives to kernels

    def _better(
        self, plans: Sequence[Fused], modules: Sequence[Module], options: Options, trace: Trace
    ) -> list[Module]:
        """The programs, with alternatives in place of kernels where these are predicted to take less time."""
        kernels = [
            [
                kernel
                for kernel in planned_kernels(fused.plan, self.library)
                if self._alternatives_of(kernel.module, options)
            ]
            for fused in plans
        ]
        distinct = {kernel.key: kernel.module for planned in kernels for kernel in planned}
        if not distinct:
            return list(modules)
        tried = Trace()
        others = self._cheaper(distinct, options, tried)
        better = list(modules)
        for k, planned in enumerate(kernels):
            taken = [others[kernel.key] for kernel in planned if kernel.key in others]
            if taken:
                better[k] = rewritten(plans[k].plan, planned, others)
                names = [name for m in taken for name in (m.name, m.name.removesuffix(_FURTHER))]
                trace.take_over(tried, names, modules[k].name)
        return better

    def _alternatives_of(self, kernel: Module, options: Options) -> tuple[str, ...]:
        """The rules that are alternatives and could apply to a kernel."""
        operators = frozenset(node.op for node in kernel.nodes)
        asked = (options.strict, operators)
        if asked not in self._alternatives:
            stage = self.library.fusing_stage or ""
            names = [rule.name for rule in stage_rules(self.library, stage) if rule.alternative]
            possible = {name: self._rules(stage, options.strict, frozenset({name})) for name in names}
            able = {n: relevant_rules(self.library, rules, operators)[0] for n, rules in possible.items()}
            self._alternatives[asked] = tuple(n for n, rules in able.items() if any(rule.alternative for rule in rules))
        return self._alternatives[asked]

    def _cheaper(self, kernels: Mapping[Any, Module], options: Options, trace: Trace) -> dict[Any, Module]:
        """Of kernels at the fusing stage, by key, those that alternatives are better than: what the best of these makes of
        them."""
        named = {key: replace(module, name=f"alternative{n}") for n, (key, module) in enumerate(kernels.items())}
        made = self._made_of(named, options, trace)
        if not made:
            return {}
        places = self._places(options, trace)
        plans = fuse([module for _, module in made], self.library, places, (), options.plan)
        parts = [list(fused.unit.kernels) for fused in plans]
        changed = list(dict.fromkeys(key for key, _ in made))
        times = self._predicted([[named[key]] for key in changed] + parts, options)
        before, after = times[: len(changed)], times[len(changed) :]
        least = {key: _WORTH * old for key, old in zip(changed, before, strict=True)}
        best: dict[Any, Module] = {}
        for (key, module), new in zip(made, after, strict=True):
            if new < least[key]:
                least[key], best[key] = new, module
        return best

    def _made_of(self, kernels: Mapping[Any, Module], options: Options, trace: Trace) -> list[tuple[Any, Module]]:
        """What alternatives make of kernels, by key. If several apply, each is tried by itself, and then all others on what it
        made."""
        able = frozenset(rule for kernel in kernels.values() for rule in self._alternatives_of(kernel, options))
        noted = Trace()
        together = self._tried(able, kernels, options, noted)
        applied = [rule for rule in able if rule not in noted.uses or noted.uses[rule].taken]
        if len(applied) < 2:
            trace.add(noted)
            return list(together.items())
        made: list[tuple[Any, Module]] = []
        for rule in sorted(applied):
            named = {k: replace(module, name=f"{module.name}_{rule}") for k, module in kernels.items()}
            alone = self._tried(frozenset({rule}), named, options, trace)
            further = {k: replace(module, name=module.name + _FURTHER) for k, module in alone.items()}
            made += [*alone.items(), *self._tried(frozenset(applied) - {rule}, further, options, trace).items()]
        return made

    def _tried(
        self, rules: frozenset[str], kernels: Mapping[Any, Module], options: Options, trace: Trace
    ) -> dict[Any, Module]:
        """What alternatives make of kernels that they change, by key."""
        if not kernels:
            return {}
        modules = unshared(kernels.values())
        made = self.step(modules, self.library.fusing_stage or "", options, trace, alternatives=rules)
        changed = zip(kernels.items(), made, strict=True)
        return {key: new for (key, old), new in changed if nameless_key(new) != nameless_key(old)}

    def _predicted(self, programs: Sequence[Sequence[Module]], options: Options) -> list[float]:
        """The microseconds that the kernels of each program take with their cheapest schedules; 0 without schedules."""
        following = self.stages[self.index(self.library.fusing_stage or "") + 1]
        kernels = unshared(self.spaced(module, following) for modules in programs for module in modules)
        batch = self.batch(kernels, following, options)
        costs = [min((cost for cost, _ in self._kernels(batch.extractor, m)), default=0.0) for m in kernels]
        launch = PlanCosts.of(self.library.target(options.target).values).launch
        each = iter(costs)
        return [sum(launch + next(each) for _ in modules) for modules in programs]

    def _places(self, options: Options, trace: Trace) -> Places:
        """What the rules say of where kernels make values."""
        answers = self._answers.setdefault((options.target, options.strict), {})
        return Places(self.library, options.target, lambda asked: self._asked(asked, options, trace), answers)

    def _asked(self, modules: Sequence[Module], options: Options, trace: Trace) -> EGraphSnapshot:
        """What the rules of the fusing stage make of modules: questions about those of the same names."""
        engine = self.engine(self.library.fusing_stage or "", options.strict, modules, alternatives=NO_ALTERNATIVES)
        graph = self._saturated(engine, modules, [self.context(m, options) for m in modules])
        trace.note(graph, modules)
        return graph

    def index(self, stage: str) -> int:
        """The place of a stage in the pipeline; GenrwError if there is none of that name."""
        if stage not in self.stages:
            raise error(f"there is no stage `{stage}`", remedy=f"stages are {', '.join(self.stages)}")
        return self.stages.index(stage)

    def done(self, unit: Unit) -> int:
        """The place of the last stage that ran, -1 for a program as written."""
        return self.stages.index(unit.stage) if unit.stage else -1

    def _begin(self, module: Module, options: Options) -> Module:
        """The module with the call's target; a header that contradicts the call is an error."""
        if module.target and module.target != options.target:
            raise error(
                f"module `{module.name}` is for target {module.target}, not {options.target}",
                module.span,
                f"leave out the target or ask for {module.target}",
            )
        for key, value in options.schedule.items():
            if key in module.schedule and module.schedule[key] != value:
                raise error(
                    f"module `{module.name}` has {key}={module.schedule[key]} in its schedule, not {value}",
                    module.span,
                    "leave it out of the call",
                )
        return replace(module, target=options.target)

    def context(self, module: Module, options: Options) -> dict[str, Any]:
        """What rules may ask about a module's surroundings."""
        listing = module.span if self.library.is_scheduled(module.stage) else None
        return {
            "target": self.library.target(module.target),
            "schedule": self.library.schedule_record(module.schedule, listing),
            "space": space_record(module, self.library),
            "policy": options.policy,
            "parameters": parameter_names(module),
        }

    def step(
        self,
        modules: Sequence[Module],
        stage: str,
        options: Options,
        trace: Trace,
        *,
        alternatives: frozenset[str] | None = None,
    ) -> list[Module]:
        """Run one stage on a batch, with those rules that are `alternatives`, None for all."""
        return [lowered() for lowered in self._run(modules, stage, options, trace, alternatives=alternatives)]

    def step_without(
        self, modules: Sequence[Module], stage: str, options: Options, without: Sequence[str]
    ) -> list[Module | None]:
        """Run one stage on a batch, each module without one watched rule; None if that cannot be lowered."""

        def attempt(lowered: Callable[[], Module]) -> Module | None:
            try:
                return lowered()
            except GenrwError:
                return None

        return [attempt(lowered) for lowered in self._run(modules, stage, options, Trace(), without)]

    def batch(
        self,
        modules: Sequence[Module],
        stage: str,
        options: Options,
        without: Sequence[str] = (),
        engine: StageEngine | None = None,
    ) -> Batch:
        """The e-graph of modules, as a stage takes them, after all its rules; `engine` is theirs, if it is known."""
        contexts = [self.context(m, options) for m in modules]
        engine = engine or self.engine(stage, options.strict, modules)
        graph = self._saturated(engine, modules, contexts, without)
        names = written_nodes(graph, modules, self.library)
        return Batch(modules, contexts, Extractor(self.library, stage, graph, modules), names)

    def _saturated(
        self,
        engine: StageEngine,
        modules: Sequence[Module],
        contexts: Sequence[Mapping[str, Any]],
        without: Sequence[str] = (),
    ) -> EGraphSnapshot:
        """Run an engine, whose rules may have stood elsewhere when they were encoded."""
        try:
            return engine.run(modules, contexts, dict(enumerate(without)))
        except GenrwError as problem:
            raise told_again(problem, self.library.files) from None

    def spaced(self, module: Module, stage: str) -> Module:
        """The module as a stage takes it: with its space once programs are cut into kernels."""
        is_kernel = self.index(stage) > self.index(self.library.fusing_stage or self.stages[0])
        return with_space(module, self.library) if is_kernel else module

    def _run(
        self,
        modules: Sequence[Module],
        stage: str,
        options: Options,
        trace: Trace,
        without: Sequence[str] = (),
        alternatives: frozenset[str] | None = None,
    ) -> list[Callable[[], Module]]:
        """Run a stage's rules on a batch; gives for each module what makes its result."""
        modules = [self.spaced(m, stage) for m in modules]
        engine = self.engine(stage, options.strict, modules, alternatives=alternatives)
        if not engine.rules:
            return [partial(replace, m, stage=stage) for m in modules]
        batch = self.batch(modules, stage, options, without, engine)
        trace.note(batch.graph, batch.modules)
        extractor, names = batch.extractor, batch.names
        pinned = self._pinned(batch.modules, extractor, options)
        return [
            partial(self._finish, module, stage, extractor, context, names, own, trace)
            for module, context, own in zip(batch.modules, batch.contexts, pinned, strict=True)
        ]

    def _pinned(self, modules: Sequence[Module], extractor: Extractor, options: Options) -> list[Options]:
        """The options of each module of a batch. The call's schedule holds for those that can have it; if none can, for
        all, and that is an error."""
        wanted = options.schedule.items()
        able = (
            [
                any(
                    wanted <= dict(extractor.graph.interner.attributes(n.attributes)).items()
                    for _, n in self._kernels(extractor, m)
                )
                for m in modules
            ]
            if wanted and len(modules) > 1
            else []
        )
        if not any(able):
            return [options] * len(modules)
        return [options if can else replace(options, schedule={}) for can in able]

    def _kernels(self, extractor: Extractor, module: Module) -> list[tuple[float, ENode]]:
        """The schedules among a module's alternatives, the cheapest first."""
        return [(c, node) for c, node in extractor.alternatives(module) if self.library.role(node.op) == "kernel"]

    def _finish(
        self,
        module: Module,
        stage: str,
        extractor: Extractor,
        context: Mapping[str, Any],
        names: Mapping[int, Node],
        options: Options,
        trace: Trace,
    ) -> Module:
        kernels = self._kernels(extractor, module)
        if kernels:
            return self._choose(module, stage, extractor.graph, kernels, options, trace)
        root = extractor.extract(module, context, names)
        trace.note_survivors({key for node in walk(root) for key in node.rules}, module)
        return self.with_root(module, root, stage)

    def _choose(
        self,
        module: Module,
        stage: str,
        graph: EGraphSnapshot,
        kernels: Sequence[tuple[float, Any]],
        options: Options,
        trace: Trace,
    ) -> Module:
        """Take the preferred schedule, else the cheapest, among those that agree with what is pinned."""
        pinned = {**module.schedule, **options.schedule}
        root = graph.class_of[graph.ids[id(module.root)]]
        rated: list[tuple[float, Mapping[str, Any], tuple[str, ...]]] = []
        for cost, node in kernels:
            schedule = dict(graph.interner.attributes(node.attributes))
            unknown = [k for k in pinned if k not in schedule]
            if unknown:
                raise error(f"a schedule has no `{unknown[0]}`", module.span, f"it has {', '.join(schedule)}")
            if all(schedule[k] == v for k, v in pinned.items()):
                rated.append((cost, self.library.told_schedule(schedule), graph.openers(root, node)))
        if not rated:
            shown = ", ".join(f"{k}={v}" for k, v in pinned.items())
            found = [dict(graph.interner.attributes(node.attributes)) for _, node in kernels]
            values = {k: ", ".join(map(str, dict.fromkeys(schedule[k] for schedule in found))) for k in pinned}
            remedy = "; ".join(f"`{k}` may be {legal}" for k, legal in values.items())
            raise error(f"no legal schedule of module `{module.name}` has {shown}", module.span, remedy)
        trace.schedules[module.name] = rated
        preferred = options.preferences.schedule(module) if options.preferences is not None and not pinned else None
        _, chosen, openers = next((r for r in rated if r[1] == preferred), rated[0])
        trace.note_survivors(openers, module)
        return replace(module, schedule=chosen, stage=stage)

    def with_root(self, module: Module, root: Node, stage: str) -> Module:
        """The module with a new root; parameters that the stage added follow the old ones."""
        if module.root.op == self.library.boundary("result").name != root.op:
            self._check_written(module, root)
        input_op = self.library.boundary("input").name
        known = {p.attribute("name"): p for p in module.parameters}
        parameters = list(module.parameters)
        found = {n.attribute("name"): n for n in walk(root) if n.op == input_op}
        parameters = [found.get(p.attribute("name"), p) for p in parameters]
        added = [n for name, n in found.items() if name not in known]
        outputs = dict(module.outputs)
        if added:
            outputs.update(zip((n.attribute("name") for n in added), module.results, strict=False))
        return replace(module, root=root, parameters=tuple(parameters + added), stage=stage, outputs=outputs)

    def _check_written(self, module: Module, root: Node) -> None:
        """GenrwError if rules gave a result a parameter of the program to be written to."""
        taken = parameter_names(module)
        for node in walk(root):
            if self.library.role(node.op) == "write":
                name = dict(node.operands[self.library.part(node.op, 0)].attributes).get("name")
                if name in taken:
                    remedy = "rename the parameter, or have the rule choose a name with `unused(…, parameters)`"
                    raise error(
                        f"a result of `{module.name}` is written to its parameter `{name}`", module.span, remedy
                    )


def _made_by(unit: Unit) -> tuple[tuple[str, ...], ...]:
    """The rules that made each value of a program: stages hand them on with values that stay."""
    return tuple(node.rules for module in unit.kernels for node in module.nodes)


def _forget(memory: dict[Any, tuple[Unit, Trace]]) -> None:
    """Drop the oldest of too many programs."""
    while len(memory) > _LOWERED_KEPT:
        del memory[next(iter(memory))]


def _add_all(trace: Trace, found: Iterable[tuple[Unit, Trace]]) -> None:
    """Note what was done for programs, once for those that were lowered together."""
    for made in {id(t): t for _, t in found}.values():
        trace.add(made)


def stage_rules(library: Library, stage: str) -> list[RuleDecl]:
    """The rules that run at a stage."""
    return [rule for rule in library.rules if stage in rule.stages]


def require_stage(library: Library, rule: RuleDecl) -> None:
    """GenrwError if a rule belongs to no stage of the pipeline."""
    if not rule.stages or any(stage not in library.stages for stage in rule.stages):
        raise GenrwError(error(f"rule `{rule.name}` is in no stage of the pipeline", rule.name_span).diagnostics)
