"""`genrw explain`: for each kernel its legal schedules, what they should cost, and the rules that made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genrw.engine.fusion.report import KernelReport, PlanReport, plan_report
from genrw.engine.ir.nodes import Module
from genrw.engine.library.library import Library
from genrw.engine.lowering.pipeline import stage_rules
from genrw.engine.programs.space import with_space
from genrw.program import Program
from genrw.terminal import write, write_table
from genrw.tuned import all_measured, of_schedule


@dataclass(frozen=True)
class Schedule:
    """One way to run a kernel: what it should take, its entries, the rules that opened it, the terms of which its cost
    is made, and what it took if it was measured. Times in microseconds."""

    cost: float
    entries: Mapping[str, Any]
    rules: tuple[str, ...]
    terms: Mapping[str, Any]
    measured: float | None = None


@dataclass(frozen=True)
class Explanation:
    """A kernel: its space, the legal schedules, the cheapest first, and the values that each rule made."""

    module: Module
    schedules: tuple[Schedule, ...]
    values: Mapping[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True)
class Explained:
    """A program: the plan by which it was cut into kernels, if it was, and its kernels.

    `values` are those that the rules made before it was cut.
    """

    plan: PlanReport | None
    values: Mapping[tuple[str, str], tuple[str, ...]]
    kernels: tuple[Explanation, ...]


def explain(program: Program) -> list[Explained]:
    """Lower each program on its own, stage by stage, and note what rules did."""
    return [_explain(program.with_units((unit,))) for unit in program.units]


def _explain(program: Program) -> Explained:
    schedules: dict[str, list[Schedule]] = {}
    values: dict[str, dict[tuple[str, str], list[str]]] = {}
    plan: PlanReport | None = None
    done = program.units[0].stage
    for stage in program.stages[program.stages.index(done) + 1 if done else 0 :]:
        given = {module.name: module for module in program.modules}
        program = program.lower(stage)
        for name, made in program.trace.plans.items():
            plan = plan_report(name, made, program.units[0])
        for name, rated in program.trace.schedules.items():
            schedules[name] = _schedules(rated, given[name], program)
        for module in program.modules:
            _note(values.setdefault(module.name, {}), module, stage, program.library)
    program = program.lower(program.stages[-1])  # What no stage is left for is held to what is asked, too.
    name = program.units[0].name
    cut = plan is not None and program.units[0].main is not None
    kernels = tuple(
        Explanation(m, tuple(schedules.get(m.name, ())), {k: tuple(v) for k, v in values.get(m.name, {}).items()})
        for m in program.modules
    )
    before = {k: tuple(v) for k, v in values.get(name, {}).items()} if cut else {}
    return Explained(plan if cut else None, before, kernels)


def _schedules(
    rated: Iterable[tuple[float, Mapping[str, Any], tuple[str, ...]]], module: Module, program: Program
) -> list[Schedule]:
    """The schedules that a stage found for a module, with what their costs are made of and what was measured."""
    library, measured = program.library, all_measured(module, program)
    context = program.context(with_space(module, library))
    found = []
    for cost, entries, rules in rated:
        whole = library.whole_schedule(entries, context["target"])
        kernel = next(op for op in library.kernel_operators if entries.keys() <= op.attributes.keys() <= whole.keys())
        terms = {name: term({**context, **library.names_of_kernel(whole)}) for name, term in kernel.terms.items()}
        known = of_schedule(measured, entries)
        found.append(Schedule(cost, entries, rules, terms, known.microseconds if known is not None else None))
    return found


def _note(values: dict[tuple[str, str], list[str]], module: Module, stage: str, library: Library) -> None:
    """Note the values of a module that rules of a stage made."""
    rules = {rule.name for rule in stage_rules(library, stage)}
    for node in module.nodes:
        for rule in rules.intersection(key.split("/")[0] for key in node.rules):
            values.setdefault((stage, rule), []).append(node.name or node.op)


# ---- as text


def show(program: Program, compiled: bool = False) -> None:
    """Print the explanation of each program: how it was cut into kernels, then kernel by kernel; `compiled`: and what
    their lanes take once they are compiled."""
    for i, explained in enumerate(explain(program)):
        if i:
            write("")
        if explained.plan is not None:
            _show_plan(explained.plan)
        if explained.values:
            write("\nrules that made its values:")
            _show_rules(explained.values, program.library)
        for j, explanation in enumerate(explained.kernels):
            if j or explained.plan is not None:
                write("")
            _show(explanation, program.library)
    if compiled:
        _show_usage(program)


def _show_usage(program: Program) -> None:
    """What lanes of the compiled kernels take, and the schedules that were refused for it."""
    # Explaining alone takes no compiler.
    from genrw.codegen.runtime.offline import usages

    found = usages(program)
    modules = program.lower(program.stages[-1]).modules
    write("\ncompiled, a lane takes:")
    rows = [[m.name, str(u.registers), str(u.scratch_bytes)] for m, u in zip(modules, found.kernels, strict=True)]
    write_table(["kernel", "registers", "bytes of memory"], rows)
    if found.refused:
        write("\nschedules refused, since what registers do not hold goes through memory:")
        rows = [
            [r.kernel, str(r.scratch_bytes), " ".join(f"{k}={v}" for k, v in r.schedule.items())] for r in found.refused
        ]
        write_table(["kernel", "bytes of memory", "schedule"], rows)


def _show_plan(plan: PlanReport) -> None:
    write(f"{plan.name}: {len(plan.kernels)} kernels, {plan.time:.2f} µs")
    write("")
    headings = ["kernel", "runs over", "reads", "stores", "µs", "bytes", "operations"]
    write_table(headings, [_kernel_row(kernel) for kernel in plan.kernels])
    write("\nwhat is stored, and why:")
    write_table(["value", "in", "because"], [[s.value, s.kernel, s.why] for s in plan.stored])


def _kernel_row(kernel: KernelReport) -> list[str]:
    space = _space_text(kernel.lens, kernel.axes)
    reads, stores = " ".join(kernel.loads), " ".join(kernel.outputs)
    return [kernel.name, space, reads, stores, f"{kernel.time:.2f}", str(kernel.bytes), f"{kernel.operations:.0f}"]


def _show(explanation: Explanation, library: Library) -> None:
    module = explanation.module
    write(f"kernel {module.name}, target {module.target}: {_space_text(module.space or (), module.axes)}")
    if explanation.schedules:
        count = len(explanation.schedules)
        write(f"\n{count} {'schedules' if count > 1 else 'schedule'}, the cheapest first; it was taken:")
        _show_schedules(explanation.schedules, library)
    if explanation.values:
        write("\nrules that made its values:")
        _show_rules(explanation.values, library)


def _space_text(lens: Sequence[int], axes: Sequence[int]) -> str:
    shown = "{" + ", ".join(map(str, lens)) + "}"
    if not axes:
        return f"the elements of {shown}"
    listed = ", ".join(map(str, axes))
    return f"the rows of {shown} along {'axis' if len(axes) == 1 else 'axes'} {listed}"


def _show_schedules(schedules: Iterable[Schedule], library: Library) -> None:
    schedules = list(schedules)
    entries = list(dict.fromkeys(name for s in schedules for name in s.entries))
    measured = any(s.measured is not None for s in schedules)
    places = {rule.name: rule.name_span.location for rule in library.rules}
    terms = list(schedules[0].terms)
    rows = [
        [
            f"{s.cost:.2f}",
            *([_time(s.measured)] if measured else []),
            *(_term(s.terms.get(name, "")) for name in terms),
            *(str(s.entries.get(name, "")) for name in entries),
            ", ".join(f"{r} ({places.get(r, '')})" for r in s.rules),
        ]
        for s in schedules
    ]
    write_table(["µs", *(["measured"] if measured else []), *terms, *entries, "opened by"], rows)


def _term(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:.2f}"


def _show_rules(values: Mapping[tuple[str, str], tuple[str, ...]], library: Library) -> None:
    places = {rule.name: rule.name_span.location for rule in library.rules}
    order = {name: i for i, name in enumerate(places)}
    stages = {stage: i for i, stage in enumerate(library.stages)}
    keys = sorted(values, key=lambda key: (stages[key[0]], order[key[1]]))
    rows = [[stage, rule, places[rule], " ".join(dict.fromkeys(values[stage, rule]))] for stage, rule in keys]
    write_table(["stage", "rule", "declared at", "values"], rows)
