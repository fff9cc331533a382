"""`genrw explain`: for each kernel its legal schedules, what they should cost, and the rules that made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from genrw.engine.ir import Module
from genrw.engine.library import Library
from genrw.engine.pipeline import Trace, stage_rules
from genrw.grammar.rw_tree import RuleDecl
from genrw.program import Program
from genrw.terminal import write, write_table


@dataclass(frozen=True)
class Schedule:
    """One way to run a kernel: what it should cost, its entries and the rules that opened it."""

    cost: float
    entries: Mapping[str, Any]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """A kernel: its space, the legal schedules, the cheapest first, and the values that each rule made."""

    module: Module
    schedules: tuple[Schedule, ...]
    values: Mapping[tuple[str, str], tuple[str, ...]]


def explain(program: Program) -> list[Explanation]:
    """Lower each module on its own, stage by stage, and note what rules did."""
    return [_explain(program.with_modules((module,))) for module in program.modules]


def _explain(program: Program) -> Explanation:
    schedules: list[Schedule] = []
    values: dict[tuple[str, str], list[str]] = {}
    done = program.modules[0].stage
    for stage in program.stages[program.stages.index(done) + 1 if done else 0 :]:
        program = program.lower(stage)
        schedules += _schedules(program.trace)
        module = program.modules[0]
        rules = {rule.name for rule in stage_rules(program.library, stage)}
        for node in module.nodes:
            for rule in rules.intersection(key.split("/")[0] for key in node.rules):
                values.setdefault((stage, rule), []).append(node.name or node.op)
    return Explanation(program.modules[0], tuple(schedules), {k: tuple(v) for k, v in values.items()})


def _schedules(trace: Trace) -> Iterable[Schedule]:
    for rated in trace.schedules.values():
        for cost, entries, rules in rated:
            yield Schedule(cost, entries, rules)


def place(rule: RuleDecl) -> str:
    """Where a rule stands: file and line."""
    return f"{rule.name_span.source.name}:{rule.name_span.line}"


# ---- as text


def show(program: Program) -> None:
    """Print the explanation of each kernel."""
    for i, explanation in enumerate(explain(program)):
        if i:
            write("")
        _show(explanation, program.library)


def _show(explanation: Explanation, library: Library) -> None:
    module = explanation.module
    write(f"kernel {module.name}, target {module.target}: {_space_text(module)}")
    if explanation.schedules:
        count = len(explanation.schedules)
        write(f"\n{count} {'schedules' if count > 1 else 'schedule'}, the cheapest first; it was taken:")
        _show_schedules(explanation.schedules, library)
    if explanation.values:
        write("\nrules that made its values:")
        _show_rules(explanation.values, library)


def _space_text(module: Module) -> str:
    lens = "{" + ", ".join(map(str, module.space or ())) + "}"
    if not module.axes:
        return f"the elements of {lens}"
    axes = ", ".join(map(str, module.axes))
    return f"the rows of {lens} along {'axis' if len(module.axes) == 1 else 'axes'} {axes}"


def _show_schedules(schedules: Iterable[Schedule], library: Library) -> None:
    schedules = list(schedules)
    entries = list(schedules[0].entries)
    places = {rule.name: place(rule) for rule in library.rules}
    rows = [
        [
            f"{s.cost:.2f}",
            *(str(s.entries.get(name, "")) for name in entries),
            ", ".join(f"{r} ({places.get(r, '')})" for r in s.rules),
        ]
        for s in schedules
    ]
    write_table(["cost", *entries, "opened by"], rows)


def _show_rules(values: Mapping[tuple[str, str], tuple[str, ...]], library: Library) -> None:
    places = {rule.name: place(rule) for rule in library.rules}
    order = {name: i for i, name in enumerate(places)}
    stages = {stage: i for i, stage in enumerate(library.stages)}
    keys = sorted(values, key=lambda key: (stages[key[0]], order[key[1]]))
    rows = [[stage, rule, places[rule], " ".join(dict.fromkeys(values[stage, rule]))] for stage, rule in keys]
    write_table(["stage", "rule", "declared at", "values"], rows)
