"""`genrw rules cover`: which rules matter to programs, and which guards were seen both ways.

A rule *fires* in a program if its left side matches there and its guard holds. It *survives* if the program that some
stage gives would be another one without it: that can be asked of every rule, also of one that makes nothing of its own
or only what others go on to rewrite.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from genrw.engine.answers import RuleUse
from genrw.engine.examples import example_graphs
from genrw.engine.ir import Module, Unit, unshared, walk
from genrw.engine.library import Library
from genrw.engine.pipeline import Options, Pipeline, Trace
from genrw.engine.structure import structure_key, unit_key
from genrw.explain import place
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import RuleDecl
from genrw.program import Program
from genrw.rulesets import load_library
from genrw.settings import Settings
from genrw.terminal import write, write_table

_T = TypeVar("_T")

_TRIES = 64
"""In how many programs a rule is left out before it counts as one that never survives."""

_BATCH = 64
"""How many programs share an e-graph."""


@dataclass(frozen=True)
class Row:
    """What was seen of one rule in one direction. `refused` is None for a rule without guard."""

    rule: RuleDecl
    direction: str
    fired: bool
    survived: bool
    taken: int | None
    refused: int | None

    @property
    def gaps(self) -> list[str]:
        """What is still to be seen, in words."""
        missing = ["never fired"] if not self.fired else [] if self.survived else ["never survived"]
        if self.refused is not None:
            missing += [] if self.taken else ["guard never taken"]
            missing += [] if self.refused else ["guard never refused"]
        return missing


@dataclass(frozen=True, eq=False)
class Step:
    """One module taken through one stage; `made` are the rules that made values of the result."""

    before: Module
    after: Module
    stage: str
    options: Options
    made: frozenset[str]
    size: int


@dataclass(frozen=True, eq=False)
class Cut:
    """One program cut into kernels."""

    before: Unit
    after: Unit
    options: Options


@dataclass
class Coverage:
    """Collects what rules do in the programs that are added to it."""

    library: Library
    uses: dict[str, RuleUse] = field(default_factory=dict)
    steps: dict[str, list[Step]] = field(default_factory=dict)
    cuts: dict[str, list[Cut]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self.library, watched=True)

    def add(self, programs: Sequence[Program]) -> None:
        """Lower programs to the last stage; those with the same options together."""
        by_options: dict[Any, list[Program]] = {}
        for program in programs:
            by_options.setdefault(program.options.key, []).append(program)
        for alike in by_options.values():
            modules = [m for program in alike for m in program.modules]
            for batch in _batches(modules):
                self._lower(batch, alike[0].options)

    def _lower(self, modules: Sequence[Module], options: Options) -> None:
        """Lower modules stage by stage, and note what rules did."""
        current = [Unit((replace(m, name=f"m{i}", target=options.target),)) for i, m in enumerate(modules)]
        for i, stage in enumerate(self.library.stages):
            todo = [unit for unit in current if self.pipeline.done(unit) < i]
            trace = Trace()
            lowered = dict(zip((u.name for u in todo), self.pipeline.lower(todo, stage, options, trace), strict=True))
            if stage == self.library.fusing_stage:
                self._note_cuts(todo, lowered, options, trace)
            else:
                after = {m.name: m for unit in lowered.values() for m in unit.kernels}
                self._note([m for unit in todo for m in unit.kernels], after, stage, options, trace)
            current = [lowered.get(unit.name, unit) for unit in current]

    def _note_cuts(self, units: Iterable[Unit], lowered: Mapping[str, Unit], options: Options, trace: Trace) -> None:
        """Note the rules by which the kernels of programs make their values."""
        self._count(trace.uses)
        for unit in units:
            for key, names in trace.survived.items():
                if unit.name in names:
                    self.cuts.setdefault(key, []).append(Cut(unit, lowered[unit.name], options))

    def _note(
        self, modules: Iterable[Module], lowered: Mapping[str, Module], stage: str, options: Options, trace: Trace
    ) -> None:
        self._count(trace.uses)
        for module in modules:
            made = frozenset(key for key, names in trace.survived.items() if module.name in names)
            size = sum(1 for _ in walk(module.root))
            step = Step(module, lowered[module.name], stage, options, made, size)
            for key, names in trace.fired.items():
                if module.name in names:
                    self.steps.setdefault(key, []).append(step)

    def _count(self, uses: Mapping[str, RuleUse]) -> None:
        for key, use in uses.items():
            total = self.uses.setdefault(key, RuleUse())
            total.taken += use.taken
            total.refused += use.refused

    def add_examples(self) -> list[Diagnostic]:
        """Ask guards that programs left open in the rules' own examples, each rule alone; gives the problems met."""
        problems: list[Diagnostic] = []
        for rule in self.library.rules:
            for example in rule.examples if self._guard_is_open(rule) else ():
                try:
                    for graph in example_graphs(self.library, rule, example):
                        self._count(graph.answered.uses)
                except GenrwError as problem:
                    problems += problem.diagnostics
        return problems

    def _guard_is_open(self, rule: RuleDecl) -> bool:
        uses = [self.uses.get(key, RuleUse()) for key in _directions(rule)]
        return rule.guard is not None and not all(use.taken and use.refused for use in uses)

    def rows(self) -> list[Row]:
        """What was seen of each rule, both directions of those that have two."""
        survivors = self._survivors() | {key for key, cuts in self.cuts.items() if self._cuts_differ(key, cuts)}
        return [self._row(rule, key, key in survivors) for rule in self.library.rules for key in _directions(rule)]

    def _row(self, rule: RuleDecl, key: str, survived: bool) -> Row:
        use = self.uses.get(key, RuleUse())
        counts = (use.taken, use.refused) if rule.guard is not None else (None, None)
        return Row(rule, key, key in self.steps or key in self.cuts, survived, *counts)

    # ---- leaving rules out

    def _cuts_differ(self, key: str, cuts: Sequence[Cut]) -> bool:
        """Would a program be cut in another way, or not at all, without a rule?"""
        pipeline = Pipeline(replace(self.library, rules=tuple(r for r in self.library.rules if r.name != key)))
        return any(_cut_differs(cut, pipeline) for cut in cuts[:_TRIES])

    def _survivors(self) -> set[str]:
        """The rules that survive, found by leaving each out: first where it made a value, and in small programs."""
        waiting = {
            key: iter(sorted(steps, key=lambda step: (key not in step.made, step.size))[:_TRIES])
            for key, steps in self.steps.items()
        }
        found: set[str] = set()
        while waiting:
            probes = [(key, step) for key, steps in waiting.items() if (step := next(steps, None)) is not None]
            found.update(self._changing(probes))
            tried = {key for key, _ in probes}
            waiting = {key: steps for key, steps in waiting.items() if key in tried - found}
        return found

    def _changing(self, probes: Iterable[tuple[str, Step]]) -> Iterator[str]:
        """The rules without which their step gives something else."""
        alike: dict[Any, list[tuple[str, Step]]] = {}
        for key, step in probes:
            alike.setdefault((step.stage, step.options.key), []).append((key, step))
        for group in alike.values():
            for batch in _batches(group):
                for (key, step), outcome in zip(batch, self._without(batch), strict=True):
                    if _differs(key, step, outcome):
                        yield key

    def _without(self, probes: Sequence[tuple[str, Step]]) -> list[Module | None]:
        """What steps of one stage give, each without its rule; None if nothing."""
        stage, options = probes[0][1].stage, probes[0][1].options
        modules = unshared([step.before for _, step in probes])
        try:
            return self.pipeline.step_without(modules, stage, options, [key for key, _ in probes])
        except GenrwError:
            # Without some rule the others make no end, or nonsense: each on its own shows which.
            return [None] if len(probes) == 1 else [o for probe in probes for o in self._without([probe])]


def _directions(rule: RuleDecl) -> tuple[str, ...]:
    """The keys of a rule's directions."""
    return (rule.name, f"{rule.name}/reverse") if rule.both_ways else (rule.name,)


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


def cover_files(programs: Sequence[Program], settings: Settings, as_json: bool) -> int:
    """Lower programs, ask guards in the rules' examples and print what was seen; 1 if something is still to be seen."""
    coverage = Coverage(load_library(settings.rules, shipped=settings.shipped))
    coverage.add(programs)
    problems = coverage.add_examples()
    if problems:
        raise GenrwError(problems)
    return show(coverage.rows(), as_json)


# ---- as text


def show(rows: Iterable[Row], as_json: bool) -> int:
    """Print what was seen; 1 if something is still to be seen."""
    rows = list(rows)
    if as_json:
        write(json.dumps([_entry(row) for row in rows], indent=2))
    else:
        headings = ["rule", "stage", "declared at", "fired", "survived", "taken", "refused", "to be seen"]
        write_table(headings, [_cells(row) for row in rows])
        open_rows = sum(bool(row.gaps) for row in rows)
        write(f"{len(rows) - open_rows} of {len(rows)} rules are covered")
    return int(any(row.gaps for row in rows))


def _entry(row: Row) -> dict[str, Any]:
    return {
        "name": row.direction,
        "stage": row.rule.stage or "",
        "declared_at": place(row.rule),
        "fired": row.fired,
        "survived": row.survived,
        "guard": None if row.refused is None else {"taken": row.taken, "refused": row.refused},
        "gaps": row.gaps,
    }


def _cells(row: Row) -> list[str]:
    def count(number: int | None) -> str:
        return "" if number is None else str(number)

    seen = ["yes" if yes else "no" for yes in (row.fired, row.survived)]
    guard = [count(row.taken), count(row.refused)]
    return [row.direction, row.rule.stage or "", place(row.rule), *seen, *guard, ", ".join(row.gaps)]
