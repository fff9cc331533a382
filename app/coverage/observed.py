"""Coverage of rules: which of them matter to programs, and which guards were seen both ways.

A rule *fires* in a program if its left side matches there and its guard holds. It *survives* if the program that some
stage gives would be another one without it: that can be asked of every rule, also of one that makes nothing of its own
or only what others go on to rewrite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

from genrw.engine.egraph.guard_evaluation import RuleUse
from genrw.engine.ir.nodes import Module, Unit, unshared, walk
from genrw.engine.ir.structure import structure_key, unit_key
from genrw.engine.library.library import Library
from genrw.engine.lint.examples import example_graphs
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.lowering.trace import Trace
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import RuleDecl

_T = TypeVar("_T")

_TRIES = 128
"""In how many programs a rule is left out before it counts as one that never survives."""

_TRIES_ALONE = 64
"""In how many programs that are alone it is left out after that."""

_BATCH = 64
"""How many programs share an e-graph."""


@dataclass
class Seen:
    """What was seen of one direction of a rule at one stage: in how many modules it fired, whether it survived, how its
    guard decided, the seconds that it took and how many terms it made."""

    fired: int = 0
    survived: bool = False
    taken: int = 0
    refused: int = 0
    seconds: float = 0.0
    grown: int = 0

    def add(self, other: Seen) -> None:
        """Take over what was seen elsewhere."""
        self.fired += other.fired
        self.survived = self.survived or other.survived
        self.taken += other.taken
        self.refused += other.refused
        self.seconds += other.seconds
        self.grown += other.grown


@dataclass(frozen=True)
class RuleRow:
    """What was seen of one rule in one direction. `refused` is None for a rule without guard.

    `stages` tells the stages of the rule apart. A row is `stale` where only another form of the rule was seen. `programs`
    are those of this run, by their labels, in which the rule made a value of a stage's result, or without it that would be
    another one: the one that showed it first.
    """

    rule: RuleDecl
    direction: str
    fired: bool
    survived: bool
    taken: int | None
    refused: int | None
    stages: Mapping[str, Seen] = field(default_factory=dict)
    stale: bool = False
    programs: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long the rule took."""
        return sum(seen.seconds for seen in self.stages.values())

    @property
    def grown(self) -> int:
        """How many terms it made."""
        return sum(seen.grown for seen in self.stages.values())

    @property
    def gaps(self) -> list[str]:
        """What is still to be seen, in words."""
        if self.stale:
            return ["stale: the rule changed since"]
        if self.rule.defines is not None:
            # what an operator is made of is no rule of an author's; where it is no better, the operator stays
            return [] if self.fired else ["never fired"]
        missing = ["never fired"] if not self.fired else [] if self.survived else ["never survived"]
        if self.refused is not None:
            missing += [] if self.taken else ["guard never taken"]
            missing += [] if self.refused else ["guard never refused"]
        return missing


@dataclass(frozen=True, eq=False)
class Step:
    """One module of a program taken through one stage; `made` are the rules that made values of the result."""

    program: str
    before: Module
    after: Module
    stage: str
    options: Options
    made: frozenset[str]
    size: int


@dataclass(frozen=True, eq=False)
class Cut:
    """One program cut into kernels; `made`: a rule made a value of what came out."""

    program: str
    before: Unit
    after: Unit
    options: Options
    made: bool


@dataclass
class Coverage:
    """Collects what rules do in the programs that are added to it; of the rules of some names, or of all."""

    library: Library
    only: frozenset[str] | None = None
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)
    steps: dict[tuple[str, str], list[Step]] = field(default_factory=dict)
    cuts: dict[tuple[str, str], list[Cut]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self.library, watched=True)

    def add(self, programs: Sequence[StagedProgram], labels: Sequence[str] = ()) -> None:
        """Lower programs to the last stage; those with the same options together. `labels` name them in rows."""
        by_options: dict[Any, list[tuple[str, StagedProgram]]] = {}
        for label, program in zip(labels or [""] * len(programs), programs, strict=True):
            by_options.setdefault(program.options.key, []).append((label, program))
        for alike in by_options.values():
            modules = [(label, m) for label, program in alike for m in program.modules]
            for batch in _batches(modules):
                self._lower(batch, alike[0][1].options)

    def _lower(self, modules: Sequence[tuple[str, Module]], options: Options) -> None:
        """Lower modules stage by stage, and note what rules did."""
        current = [Unit((replace(m, name=f"m{i}", target=options.target),)) for i, (_, m) in enumerate(modules)]
        labels = {unit.name: label for unit, (label, _) in zip(current, modules, strict=True)}
        for i, stage in enumerate(self._stages_asked()):
            todo = [unit for unit in current if self.pipeline.done(unit) < i]
            trace = Trace()
            lowered = dict(zip((u.name for u in todo), self.pipeline.lower(todo, stage, options, trace), strict=True))
            if stage == self.library.fusing_stage:
                self._note_cuts(todo, lowered, labels, options, trace)
            else:
                after = {m.name: m for unit in lowered.values() for m in unit.kernels}
                before = [(labels[unit.name], m) for unit in todo for m in unit.kernels]
                self._note(before, after, stage, options, trace)
            current = [lowered.get(unit.name, unit) for unit in current]
            if stage == self.library.scheduling_stage:
                options = replace(options, schedule={})  # of several kernels, not all have what was asked for

    def _stages_asked(self) -> tuple[str, ...]:
        """The stages up to the last one of a rule that is asked about."""
        named = {stage for rule in self.rules for stage in rule.stages}
        last = max((i for i, stage in enumerate(self.library.stages) if stage in named), default=-1)
        return self.library.stages[: last + 1]

    def _note_cuts(
        self,
        units: Iterable[Unit],
        lowered: Mapping[str, Unit],
        labels: Mapping[str, str],
        options: Options,
        trace: Trace,
    ) -> None:
        """Note the rules that fired where programs were cut into kernels."""
        stage = self.library.fusing_stage or ""
        self._count(trace, stage)
        for unit in units:
            for key, names in trace.fired.items():
                if unit.name in names and self._wanted(key):
                    made = unit.name in trace.survived.get(key, ())
                    cut = Cut(labels[unit.name], unit, lowered[unit.name], options, made)
                    self.cuts.setdefault((key, stage), []).append(cut)

    def _note(
        self,
        modules: Iterable[tuple[str, Module]],
        lowered: Mapping[str, Module],
        stage: str,
        options: Options,
        trace: Trace,
    ) -> None:
        self._count(trace, stage)
        for label, module in modules:
            made = frozenset(key for key, names in trace.survived.items() if module.name in names)
            size = sum(1 for _ in walk(module.root))
            step = Step(label, module, lowered[module.name], stage, options, made, size)
            for key, names in trace.fired.items():
                if module.name in names and self._wanted(key):
                    self.steps.setdefault((key, stage), []).append(step)

    def _count(self, trace: Trace, stage: str) -> None:
        self._count_guards(trace.uses, stage)
        for key, spent in trace.seconds.items():
            self._seen(key, stage).seconds += spent
        for key, count in trace.grown.items():
            self._seen(key, stage).grown += count

    def _count_guards(self, uses: Mapping[str, RuleUse], stage: str) -> None:
        for key, use in uses.items():
            self._seen(key, stage).add(Seen(taken=use.taken, refused=use.refused))

    @property
    def rules(self) -> list[RuleDecl]:
        """The rules that are asked about."""
        return [rule for rule in self.library.rules if self._wanted(rule.name)]

    def _wanted(self, key: str) -> bool:
        return self.only is None or key.split("/")[0] in self.only

    def _seen(self, key: str, stage: str) -> Seen:
        return self.seen.setdefault((key, stage), Seen())

    def add_examples(self) -> list[Diagnostic]:
        """Ask guards that programs left open in the rules' own examples, each rule alone; gives the problems met."""
        problems: list[Diagnostic] = []
        for rule in self.rules:
            for example in rule.examples if self._guard_is_open(rule) else ():
                try:
                    for stage, graph in example_graphs(self.library, rule, example):
                        self._count_guards(graph.answered.uses, stage)
                except GenrwError as problem:
                    problems += problem.diagnostics
        return problems

    def _guard_is_open(self, rule: RuleDecl) -> bool:
        if rule.guard is None:
            return False
        totals = [_total(self._stages(rule, key)) for key in directions_of(rule)]
        return not all(seen.taken and seen.refused for seen in totals)

    def _stages(self, rule: RuleDecl, key: str) -> dict[str, Seen]:
        """What was seen of a direction at each stage of its rule."""
        return {stage: self.seen.get((key, stage), Seen()) for stage in rule.stages}

    def rows(self) -> list[RuleRow]:
        """What was seen of each rule, both directions of those that have two."""
        survived = self._survivors()
        survived |= {where: cut for where, cuts in self.cuts.items() if (cut := self._differing(where[0], cuts))}
        programs: dict[str, dict[str, None]] = {}
        for (key, stage), witness in survived.items():
            self._seen(key, stage).survived = True
            steps = [step for step in self.steps.get((key, stage), ()) if key in step.made]
            programs.setdefault(key, {}).update(dict.fromkeys(s.program for s in (witness, *steps)))
        fired = [(where, len(steps)) for where, steps in self.steps.items()]
        for where, count in (*fired, *((where, len(cuts)) for where, cuts in self.cuts.items())):
            self._seen(*where).fired = count
        return [
            replace(row_of(rule, key, self._stages(rule, key)), programs=tuple(programs.get(key, ())))
            for rule in self.rules
            for key in directions_of(rule)
        ]

    # ---- leaving rules out

    def _differing(self, key: str, cuts: Sequence[Cut]) -> Cut | None:
        """A program that would be cut in another way, or not at all, without a rule; first those where it made a value."""
        pipeline = Pipeline(replace(self.library, rules=tuple(r for r in self.library.rules if r.name != key)))
        likely = sorted(cuts, key=lambda cut: not cut.made)
        return next((cut for cut in likely[:_TRIES] if _cut_differs(cut, pipeline)), None)

    def _survivors(self) -> dict[tuple[str, str], Step | Cut]:
        """The rules that survive at a stage, each with a step that shows it, found by leaving each out: first where it
        made a value, and in small programs."""
        waiting = {
            (key, stage): iter(sorted(steps, key=lambda step: (key not in step.made, step.size))[:_TRIES])
            for (key, stage), steps in self.steps.items()
        }
        found: dict[tuple[str, str], Step | Cut] = {}
        while waiting:
            probes = [(where[0], step) for where, steps in waiting.items() if (step := next(steps, None)) is not None]
            found.update(self._changing(probes))
            tried = {(key, step.stage) for key, step in probes}
            waiting = {where: steps for where, steps in waiting.items() if where in tried and where not in found}
        return found | dict(self._needed_alone(where for where in self.steps if where not in found))

    def _needed_alone(self, open_: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], Step]]:
        """Rules that make values which others make as well when programs share an e-graph, where rounds are more, but not when
        a program is alone."""
        for key, stage in open_:
            likely = sorted(self.steps[key, stage], key=lambda step: (key not in step.made, step.size))
            alone = (found for step in likely[:_TRIES_ALONE] for found in self._changing([(key, step)]))
            yield from islice(alone, 1)

    def _changing(self, probes: Iterable[tuple[str, Step]]) -> Iterator[tuple[tuple[str, str], Step]]:
        """The rules, and their stages, without which their step gives something else, with the step."""
        alike: dict[Any, list[tuple[str, Step]]] = {}
        for key, step in probes:
            alike.setdefault((step.stage, step.options.key), []).append((key, step))
        for group in alike.values():
            for batch in _batches(group):
                for (key, step), outcome in zip(batch, self._without(batch), strict=True):
                    if _differs(key, step, outcome):
                        yield (key, step.stage), step

    def _without(self, probes: Sequence[tuple[str, Step]]) -> list[Module | None]:
        """What steps of one stage give, each without its rule; None if nothing."""
        stage, options = probes[0][1].stage, probes[0][1].options
        modules = unshared([step.before for _, step in probes])
        try:
            return self.pipeline.step_without(modules, stage, options, [key for key, _ in probes])
        except GenrwError:
            # Without some rule the others make no end, or nonsense: each on its own shows which.
            return [None] if len(probes) == 1 else [o for probe in probes for o in self._without([probe])]


def directions_of(rule: RuleDecl) -> tuple[str, ...]:
    """The keys of a rule's directions."""
    return (rule.name, f"{rule.name}/reverse") if rule.both_ways else (rule.name,)


def row_of(rule: RuleDecl, key: str, stages: Mapping[str, Seen], stale: bool = False) -> RuleRow:
    """The row of a direction of a rule, from what was seen of it at each stage."""
    seen = _total(stages)
    taken, refused = (seen.taken, seen.refused) if rule.guard is not None else (None, None)
    return RuleRow(rule, key, seen.fired > 0, seen.survived, taken, refused, stages, stale)


def _total(stages: Mapping[str, Seen]) -> Seen:
    total = Seen()
    for seen in stages.values():
        total.add(seen)
    return total


def _differs(key: str, step: Step, outcome: Module | None) -> bool:
    """Is the outcome without a rule another program?

    Of programs that cost the same, the extractor's choice may hang on any rule. So where the rule made no value of the
    result, other operators must be there or other attributes, not just other connections.
    """
    if outcome is None:
        return True
    if key in step.made:
        return structure_key(outcome) != structure_key(step.after)
    return _parts(outcome) != _parts(step.after)


def _cut_differs(cut: Cut, pipeline: Pipeline) -> bool:
    try:
        (unit,) = pipeline.lower([cut.before], cut.after.stage, cut.options)
    except GenrwError:
        return True
    return unit_key(unit) != unit_key(cut.after)


def _parts(module: Module) -> tuple[Any, Counter[Any]]:
    return module.schedule, Counter((node.op, node.attributes) for node in walk(module.root))


def _batches(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for i in range(0, len(items), _BATCH):
        yield items[i : i + _BATCH]
