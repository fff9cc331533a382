"""Lowering: stage after stage, all kernels of a call together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from genrw.engine.egraph.encodings import Encodings
from genrw.engine.egraph.extract import Extractor, written_nodes
from genrw.engine.egraph.stage import EGraphSnapshot, StageEngine
from genrw.engine.egraph.too_large import TooLarge, first_too_large
from genrw.engine.fusion.compute_locations import OperandLocations, Places
from genrw.engine.fusion.stage import Fused, fuse
from genrw.engine.ir.nodes import Module, Node, Unit, unshared, walk
from genrw.engine.ir.structure import nameless_key, structure_key, unit_key
from genrw.engine.language.expr_walk import did_you_mean
from genrw.engine.library.library import Library
from genrw.engine.lowering.alternatives import Alternatives
from genrw.engine.lowering.engines import Engines
from genrw.engine.lowering.garbage import uncollected
from genrw.engine.lowering.options import DEFAULT_POLICY, Options
from genrw.engine.lowering.schedules import RatedKernel, own_options, rated_kernel, scheduled
from genrw.engine.lowering.trace import Trace
from genrw.engine.programs.signature import parameter_names
from genrw.engine.programs.space import space_record, with_space
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.moved import told_again
from genrw.grammar.rw_tree import RuleDecl

_LOWERED_KEPT = 1024
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
NO_ALTERNATIVES: frozenset[str] = frozenset()
"""Of rules that are alternatives, none."""


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
        self._engines = Engines(library, self._encodings)
        self._lowered: dict[Any, tuple[Unit, Trace]] = {}
        self._staged: dict[Any, tuple[Unit, Trace]] = {}
        self._lowered_kernels: dict[Any, tuple[Module, Trace]] = {}
        self._answers: dict[tuple[str, bool], dict[Any, OperandLocations | None]] = {}
        self._stage_rules: dict[tuple[str, bool, frozenset[str] | None], tuple[RuleDecl, ...]] = {}
        self._rated: dict[Any, RatedKernel] = {}
        self._able: dict[tuple[bool, frozenset[str]], frozenset[str]] = {}
        if before is not None:
            self._take_over(before)

    def _take_over(self, before: Pipeline) -> None:
        """Keep engines, and what was found at stages whose rules are the same."""
        if before.library.fusing_stage != self.library.fusing_stage:
            return
        same = {stage for stage in self.stages if self._same_rules(before, stage)}
        self._engines.take_over(before._engines, same)
        self._staged = {key: found for key, found in before._staged.items() if key[0] in same}
        self._lowered_kernels = {key: found for key, found in before._lowered_kernels.items() if key[0] in same}
        if self.library.fusing_stage in same:
            self._answers = before._answers

    def _same_rules(self, before: Pipeline, stage: str) -> bool:
        """Has a stage the same rules as before, with the same encodings?"""
        some, others = self.rules(stage, False), before.rules(stage, False)
        return len(some) == len(others) and all(
            self._encodings.origin(a) is before._encodings.origin(b) for a, b in zip(some, others, strict=True)
        )

    @property
    def stages(self) -> tuple[str, ...]:
        return self.library.stages

    def engine(
        self, stage: str, strict: bool, modules: Sequence[Module], *, alternatives: frozenset[str] | None = None
    ) -> StageEngine:
        """The engine of a stage for modules, with those rules that are `alternatives`, None for all."""
        asked = stage, strict, alternatives
        return self._engines.engine(asked, self.rules(*asked), modules)

    def prepare(self) -> None:
        """Clear away what the last programs left in the engines: to be called when there is time."""
        self._engines.prepare()

    def rules(self, stage: str, strict: bool, alternatives: frozenset[str] | None = None) -> tuple[RuleDecl, ...]:
        """The rules that run at a stage; of those that are alternatives the given ones, None for all."""
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
        self._check_policy(options.policy)
        names = tuple(unit.name for unit in units)
        keys = [(unit_key(unit), names, stage, options.key) for unit in units]
        make = _noting(lambda new, made: self._lower(new, names, stage, options, made))
        found = _remembered(self._lowered, keys, units, make)
        if trace is not None:
            trace.add_all(made for _, made in found)
        return [unit for unit, _ in found]

    def _check_policy(self, policy: str) -> None:
        """GenrwError for a policy that no rule asks for."""
        if policy != DEFAULT_POLICY and policy not in self.library.policies:
            known = [*dict.fromkeys((DEFAULT_POLICY, *self.library.policies))]
            remedy = did_you_mean(policy, known) or f"there are {', '.join(known)}"
            raise error(f"there is no policy `{policy}`", remedy=remedy)

    @uncollected()
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
        if self.index(stage) > self.index(self.library.scheduling_stage or self.stages[-1]):
            return self._stage_by_kernel(units, stage, options, trace)
        # Other stages do not ask which schedules are preferred.
        asked = options if stage == self.library.scheduling_stage else replace(options, preferences=None)
        keys = [(stage, unit_key(unit), _made_by(unit), names, asked.key) for unit in units]
        make = _noting(lambda new, made: self._run_stage(new, names, stage, options, made))
        found = _remembered(self._staged, keys, units, make)
        trace.add_all(made for _, made in found)
        return [unit for unit, _ in found]

    def _stage_by_kernel(self, units: Sequence[Unit], stage: str, options: Options, trace: Trace) -> list[Unit]:
        """The same once kernels have their schedules: each is remembered by itself, whatever program it is from."""
        asked = replace(options, preferences=None)
        kernels = [kernel for unit in units for kernel in unit.kernels]
        keys = [(stage, structure_key(kernel), _rules_of(kernel), asked.key) for kernel in kernels]
        make = _noting(lambda new, made: self.step(new, stage, options, made, alternatives=NO_ALTERNATIVES))
        found = _remembered(self._lowered_kernels, keys, kernels, make)
        trace.take_over_all((made, kernel.name, kernel.name) for kernel, made in found)
        lowered = iter([kernel for kernel, _ in found])
        return [self._regrouped(unit, lowered, options) for unit in units]

    def _run_stage(
        self, units: Sequence[Unit], names: Sequence[str], stage: str, options: Options, trace: Trace
    ) -> list[Unit]:
        fusing = stage == self.library.fusing_stage
        modules = [m for unit in units for m in unit.kernels]
        if stage == self.library.scheduling_stage:
            kernels = iter(self._scheduled(modules, options, trace))
        else:
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
        plans = self.cut(modules, names, options, trace)
        plans = Alternatives(self, self._able).better(plans, modules, names, options, trace)
        found = dict(zip(map(id, modules), plans, strict=True))
        for module in modules:
            trace.plans[module.name] = found[id(module)].plan
            trace.note_survivors(found[id(module)].rules, module)
        return [found[id(unit.kernels[0])].unit if id(unit.kernels[0]) in found else unit for unit in units]

    def cut(
        self,
        modules: Sequence[Module],
        names: Iterable[str],
        options: Options,
        trace: Trace,
        apart: Collection[int] = (),
    ) -> list[Fused]:
        """Programs cut into kernels, named apart from the modules `names`: where kernels make values the rules say, those `apart` by
        themselves."""
        answers = self._answers.setdefault((options.target, options.strict), {})
        places = Places(self.library, options.target, lambda asked: self._asked(asked, options, trace), answers)
        return list(fuse(modules, self.library, places, names, options.plan, apart))

    def _asked(self, modules: Sequence[Module], options: Options, trace: Trace) -> EGraphSnapshot:
        """What the rules of the fusing stage make of modules: questions about those of the same names."""
        engine = self.engine(self.library.fusing_stage or "", options.strict, modules, alternatives=NO_ALTERNATIVES)
        graph = self._saturated(engine, modules, [self.context(m, options) for m in modules])
        trace.note(graph, modules)
        return graph

    # ---- schedules

    def _scheduled(self, modules: Sequence[Module], options: Options, trace: Trace) -> list[Module]:
        """Kernels with their schedules; what can have none is taken through the stage as through any other."""
        stage = self.library.scheduling_stage or ""
        rated = self.rated(modules, options)
        plain = [module for module, kernel in zip(modules, rated, strict=True) if not kernel.schedules]
        stepped = iter(self.step(plain, stage, options, trace, alternatives=NO_ALTERNATIVES))
        trace.take_over_all((k.noted, k.name, m.name) for m, k in zip(modules, rated, strict=True) if k.schedules)
        return [
            replace(scheduled(self.spaced(module, stage), kernel, self.library, own, trace), stage=stage)
            if kernel.schedules
            else next(stepped)
            for module, kernel, own in zip(modules, rated, own_options(rated, options), strict=True)
        ]

    def rated(self, kernels: Sequence[Module], options: Options) -> list[RatedKernel]:
        """The schedules of kernels at the stage before they get them. Those of the same structure are remembered."""
        stage = self.library.scheduling_stage or ""
        modules = [self.spaced(kernel, stage) for kernel in kernels]
        keys = [_rating_key(module, options) for module in modules]
        return _remembered(self._rated, keys, modules, lambda new: self._rate(new, stage, options))

    def _rate(self, modules: Sequence[Module], stage: str, options: Options) -> list[RatedKernel]:
        batch, noted = self.batch(modules, stage, options, alternatives=NO_ALTERNATIVES), Trace()
        noted.note(batch.graph, batch.modules)
        return [rated_kernel(self.library, batch.extractor, module, noted) for module in modules]

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
        target = self.library.target(module.target)
        return {
            "target": target,
            "schedule": self.library.schedule_record(module.schedule, target, listing),
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

    def makers(
        self,
        modules: Sequence[Module],
        stage: str,
        options: Options,
        trace: Trace,
        *,
        alternatives: frozenset[str] | None = None,
    ) -> set[str]:
        """The names of the rules that make something of modules, as a stage takes them."""
        graph = self.batch(modules, stage, options, alternatives=alternatives).graph
        trace.note(graph, modules)
        return {graph.rules[rule].partition("/")[0] for rules in graph.why.values() for rule in rules}

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
        *,
        alternatives: frozenset[str] | None = None,
    ) -> Batch:
        """The e-graph of modules, as a stage takes them, after its rules: of those that are `alternatives` the given ones,
        None for all."""
        engine = self.engine(stage, options.strict, modules, alternatives=alternatives)
        return self._batch(engine, modules, options, without)

    def _batch(
        self, engine: StageEngine, modules: Sequence[Module], options: Options, without: Sequence[str] = ()
    ) -> Batch:
        contexts = [self.context(m, options) for m in modules]
        graph = self._saturated(engine, modules, contexts, without)
        names = written_nodes(graph, modules, self.library)
        return Batch(modules, contexts, Extractor(self.library, engine.stage, graph, modules), names)

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
        except TooLarge as problem:
            raise self._told_of_program(problem, engine, modules, contexts) from None
        except GenrwError as problem:
            raise told_again(problem, self.library.files) from None

    def _told_of_program(
        self, problem: TooLarge, engine: StageEngine, modules: Sequence[Module], contexts: Sequence[Mapping[str, Any]]
    ) -> GenrwError:
        """What to tell of a rule that builds too much: if it came with genrw, of the program that asks for it."""
        result = self.library.boundary("result").name
        own = problem.rule in self.library.foreign_rules
        for module, context in zip(modules, contexts, strict=True) if not own else ():
            node = (
                first_too_large(module, partial(_builds_too_much, engine, context))
                if module.root.op == result
                else None
            )
            if node is not None:
                return problem.told_of(node)
        return told_again(problem, self.library.files)

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
        batch = self._batch(engine, modules, options, without)
        trace.note(batch.graph, batch.modules)
        extractor, names = batch.extractor, batch.names
        rated = [rated_kernel(self.library, extractor, module, trace) for module in batch.modules]
        return [
            partial(self._finish, module, stage, extractor, context, names, kernel, own, trace)
            for module, context, kernel, own in zip(
                batch.modules, batch.contexts, rated, own_options(rated, options), strict=True
            )
        ]

    def _finish(
        self,
        module: Module,
        stage: str,
        extractor: Extractor,
        context: Mapping[str, Any],
        names: Mapping[int, Node],
        kernel: RatedKernel,
        options: Options,
        trace: Trace,
    ) -> Module:
        if kernel.schedules:
            return replace(scheduled(module, kernel, self.library, options, trace), stage=stage)
        root = extractor.extract(module, context, names)
        trace.note_survivors({key for node in walk(root) for key in node.rules}, module)
        return self.with_root(module, root, stage)

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


def _builds_too_much(engine: StageEngine, context: Mapping[str, Any], module: Module) -> bool:
    """Do an engine's rules build more of a program than a tensor may have?"""
    try:
        engine.run([module], [context])
    except TooLarge:
        return True
    except GenrwError:
        return False
    return False


def _made_by(unit: Unit) -> tuple[tuple[str, ...], ...]:
    """The rules that made each value of a program: stages hand them on with values that stay."""
    return tuple(rules for kernel in unit.kernels for rules in _rules_of(kernel))


def _rules_of(kernel: Module) -> tuple[tuple[str, ...], ...]:
    return tuple(node.rules for node in kernel.nodes)


def _rating_key(kernel: Module, options: Options) -> tuple[Any, ...]:
    """What the schedules of a kernel, with its space, depend on: not on the order in which it takes its parameters."""
    given = set(map(id, kernel.parameters))
    met = replace(kernel, parameters=tuple(node for node in kernel.nodes if id(node) in given))
    pinned = tuple(sorted(kernel.schedule.items()))
    return (kernel.target, options.strict, options.policy, pinned, nameless_key(met))


def _remembered(
    memory: dict[Any, _Made],
    keys: Sequence[Any],
    items: Iterable[_Item],
    make: Callable[[list[_Item]], Iterable[_Made]],
) -> list[_Made]:
    """What was made of items of the same keys; `make` makes it of all new ones together, of one item for each key."""
    new = {key: item for key, item in zip(keys, items, strict=True) if key not in memory}
    if new:
        memory.update(zip(new, make(list(new.values())), strict=True))
    # Only then is anything forgotten: what this call needs may be the oldest.
    found = [memory[key] for key in keys]
    _forget(memory)
    return found


def _noting(
    make: Callable[[list[_Item], Trace], list[_Item]],
) -> Callable[[list[_Item]], list[tuple[_Item, Trace]]]:
    """The same function, which gives each result with the trace of the call that made it."""

    def noted(items: list[_Item]) -> list[tuple[_Item, Trace]]:
        made = Trace()
        return [(item, made) for item in make(items, made)]

    return noted


def _forget(memory: dict[Any, Any]) -> None:
    """Drop what was remembered first, of too much."""
    while len(memory) > _LOWERED_KEPT:
        del memory[next(iter(memory))]


def stage_rules(library: Library, stage: str) -> list[RuleDecl]:
    """The rules that run at a stage."""
    return [rule for rule in library.rules if stage in rule.stages]


def require_stage(library: Library, rule: RuleDecl) -> None:
    """GenrwError if a rule belongs to no stage of the pipeline."""
    if not rule.stages or any(stage not in library.stages for stage in rule.stages):
        raise GenrwError(error(f"rule `{rule.name}` is in no stage of the pipeline", rule.name_span).diagnostics)
