"""`genrw rules cover`: which rules fire and survive over programs, and which guards were seen both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from genrw.engine.examples import example_graphs
from genrw.engine.ir import Module
from genrw.engine.library import Library
from genrw.engine.pipeline import Options, Pipeline, Trace
from genrw.engine.structure import structure_key
from genrw.explain import place
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import RuleDecl
from genrw.program import Program
from genrw.rulesets import load_library
from genrw.settings import Settings
from genrw.terminal import write, write_table

_STEPS_TRIED = 8


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


@dataclass(frozen=True)
class Step:
    """One module taken through one stage."""

    before: Module
    after: Module
    stage: str
    options: Options


@dataclass
class Coverage:
    """Collects what rules do in the programs that are added to it."""

    library: Library
    trace: Trace = field(default_factory=Trace)
    steps: dict[str, list[Step]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self.library, ask_guards=True)

    def add_program(self, program: Program) -> None:
        """Lower a program to the last stage."""
        for module in program.modules:
            self.add(module, program.stages[-1], program.options)

    def add(self, module: Module, last: str, options: Options) -> None:
        """Lower one module, stage by stage."""
        stages = self.library.stages
        first = stages.index(module.stage) + 1 if module.stage else 0
        for stage in stages[first : stages.index(last) + 1]:
            trace = Trace()
            (lowered,) = self.pipeline.lower([module], stage, options, trace)
            self.trace.add(trace)
            for key in trace.fired - trace.survived:
                self.steps.setdefault(key, []).append(Step(module, lowered, stage, options))
            module = lowered

    def survived(self, key: str) -> bool:
        """Did a rule make a value of some stage's output, or would some output be another without it?

        The second is what can be asked of rules that make nothing of their own or only what others rewrite.
        """
        if key in self.trace.survived:
            return True
        steps = self.steps.get(key, [])
        pipeline = Pipeline(without(self.library, key)) if steps else None
        return pipeline is not None and any(_differs(step, pipeline) for step in steps[:_STEPS_TRIED])

    def add_examples(self) -> list[Diagnostic]:
        """Run the rules' own examples, each rule alone; gives the problems met."""
        problems: list[Diagnostic] = []
        for rule in self.library.rules:
            for example in rule.examples:
                try:
                    for graph in example_graphs(self.library, rule, example):
                        self.trace.note(graph)
                except GenrwError as problem:
                    problems += problem.diagnostics
        return problems

    def rows(self) -> list[Row]:
        """What was seen of each rule, both directions of those that have two."""
        return [
            self._row(rule, key)
            for rule in self.library.rules
            for key in ((rule.name, f"{rule.name}/reverse") if rule.both_ways else (rule.name,))
        ]

    def _row(self, rule: RuleDecl, key: str) -> Row:
        use = self.trace.uses.get(key)
        guarded = rule.guard is not None
        return Row(
            rule,
            key,
            key in self.trace.fired,
            self.survived(key),
            (use.taken if use else 0) if guarded else None,
            (use.refused if use else 0) if guarded else None,
        )


def without(library: Library, key: str) -> Library:
    """The library without a rule, or without one direction of it."""
    name, _, reverse = key.partition("/")

    def kept(rule: RuleDecl) -> RuleDecl | None:
        if rule.name != name:
            return rule
        if not rule.both_ways:
            return None
        left, right = (rule.left, rule.right) if reverse else (rule.right, rule.left)
        return replace(rule, left=left, right=right, both_ways=False)

    rules = tuple(rule for rule in map(kept, library.rules) if rule is not None)
    return replace(library, rules=rules)


def _differs(step: Step, pipeline: Pipeline) -> bool:
    try:
        (lowered,) = pipeline.lower([step.before], step.stage, step.options)
    except GenrwError:
        return True
    return structure_key(lowered) != structure_key(step.after)


def cover_files(programs: Sequence[Program], settings: Settings, as_json: bool) -> int:
    """Lower programs and the rules' examples and print what was seen; 1 if something is still to be seen."""
    library = load_library(settings.rules, shipped=settings.shipped)
    coverage = Coverage(library)
    problems: list[Diagnostic] = []
    for program in programs:
        try:
            coverage.add_program(program)
        except GenrwError as problem:
            problems += problem.diagnostics
    problems += coverage.add_examples()
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
