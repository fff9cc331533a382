"""`genrw rules trace`: the rewrites that lead to what each stage gives, in order, each with the difference it makes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from genrw.engine.egraph.recording import Part
from genrw.engine.explain.derivation import Step
from genrw.engine.explain.stage_trace import Study, study
from genrw.engine.explain.terms import Term
from genrw.engine.fusion.compute_locations import is_of_places
from genrw.engine.ir.nodes import Module, Unit
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.lowering.program import recording_pipeline_of
from genrw.engine.programs.text import main_tree, module_tree
from genrw.explain.expressions import Expressions
from genrw.grammar.diagnostics import error
from genrw.grammar.gen import print_module
from genrw.grammar.rw_tree import RuleDecl
from genrw.program import Program
from genrw.terminal import write, write_diff

_CONTEXT = 2
_SHORTEST_REPEAT = 3


@dataclass(frozen=True)
class Rewrite:
    """One rewrite: the directions of rules that made it, and the program's text before and after.

    `back` says that a rule was read from right to left, `again` that the rewrites of these numbers, from the first to
    the last, are made once more, `rounds` that no rule made it: roundings that rules left out are put back.
    """

    number: int
    rules: tuple[str, ...]
    before: str
    after: str
    back: bool = False
    again: tuple[int, int] | None = None
    rounds: bool = False

    def diff(self) -> list[str]:
        """The difference, as hunks of a unified diff."""
        lines = self.before.splitlines(), self.after.splitlines()
        return list(difflib.unified_diff(*lines, lineterm="", n=_CONTEXT))[2:]


@dataclass(frozen=True)
class StageTrace:
    """What led to the result of a stage: of one module, or of a program that is cut into kernels.

    `unused` are rewrites that led to nothing of it: the rule's direction, what it matched, what it made.
    """

    stage: str
    module: str
    before: str
    rewrites: tuple[Rewrite, ...]
    unused: tuple[tuple[str, str, str], ...] = ()

    @property
    def after(self) -> str:
        """The stage's result."""
        return self.rewrites[-1].after if self.rewrites else self.before


def traces(program: Program) -> Iterator[StageTrace]:
    """The traces of all stages that are still to come: program by program, stage by stage, module by module."""
    pipeline = recording_pipeline_of(program.library)
    for unit in program.units:
        alone = program.with_units((unit,))
        for stage, lowered in alone.remaining_stages():
            for module in alone.modules:
                yield _trace(module, stage, alone, lowered, pipeline)
            alone = lowered


def _trace(module: Module, stage: str, program: Program, lowered: Program, pipeline: Pipeline) -> StageTrace:
    if module.name in lowered.trace.schedules:
        return _choice(module, stage, lowered, pipeline)
    found = study(pipeline, module, stage, program.options)
    texts = [module_text(state.module, program) for state in found.states]
    rewrites = _rewrites(found.steps, texts)
    result = module_text(found.module, program)
    if result != texts[-1]:
        rewrites.append(Rewrite(len(rewrites) + 1, (), texts[-1], result, rounds=True))
    cut = next((unit for unit in lowered.units if unit.main is not None and unit.name == module.name), None)
    if cut is not None and stage == program.library.fusing_stage:
        rules = _cutting_rules(module, lowered)
        rewrites.append(Rewrite(len(rewrites) + 1, rules, result, _unit_text(cut, lowered)))
    return StageTrace(stage, module.name, texts[0], tuple(rewrites), tuple(_unused(found, program)))


def module_text(module: Module, program: Program) -> str:
    """A module as text, its header included."""
    return print_module(module_tree(module, program.library, program.context(module)))


def _unit_text(unit: Unit, program: Program) -> str:
    assert unit.main is not None
    kernels = [module_text(module, program) for module in unit.kernels]
    return "\n".join([print_module(main_tree(unit.main, program.library)), *kernels])


def _choice(module: Module, stage: str, lowered: Program, pipeline: Pipeline) -> StageTrace:
    """The stage that chooses a module's schedule: by the rules that opened it."""
    chosen = next(m for m in lowered.modules if m.name == module.name)
    rated = lowered.trace.schedules[module.name]
    rules = next(opened for _, schedule, opened in rated if schedule == chosen.schedule)
    before = module_text(_headed(pipeline.spaced(module, stage), chosen), lowered)
    return StageTrace(stage, module.name, before, (Rewrite(1, rules, before, module_text(chosen, lowered)),))


def _headed(module: Module, like: Module) -> Module:
    """The module with the stage and target of another one, so that texts differ in what matters."""
    return replace(module, stage=like.stage, target=like.target)


def _cutting_rules(module: Module, lowered: Program) -> tuple[str, ...]:
    """The rules by which the kernels of a program make their values."""
    library = lowered.library
    survived = lowered.trace.survived
    return tuple(
        r.name
        for r in library.rules
        if (r.alternative or is_of_places(r, library)) and module.name in survived.get(r.name, ())
    )


# ---- steps


def _rewrites(steps: Sequence[Step], texts: Sequence[str]) -> list[Rewrite]:
    """The steps, with those that were made before taken together."""
    found: list[Rewrite] = []
    numbers: dict[int, int] = {}
    i = 0
    while i < len(steps):
        start, length = _repeated(steps, i)
        number = len(found) + 1
        if length >= _SHORTEST_REPEAT and all(start + k in numbers for k in range(length)):
            again = numbers[start], numbers[start + length - 1]
            keys = tuple(dict.fromkeys(step.key for step in steps[i : i + length]))
            found.append(Rewrite(number, keys, texts[i], texts[i + length], again=again))
            i += length
            continue
        numbers[i] = number
        found.append(Rewrite(number, (steps[i].key,), texts[i], texts[i + 1], steps[i].back))
        i += 1
    return found


def _repeated(steps: Sequence[Step], at: int) -> tuple[int, int]:
    """Where the longest run of earlier steps begins that is made once more from a place on, and its length."""
    best = (0, 0)
    for start in range(at):
        length = 0
        while at + length < len(steps) and start + length < at and _same(steps[start + length], steps[at + length]):
            length += 1
        if length > best[1]:
            best = (start, length)
    return best


def _same(one: Step, other: Step) -> bool:
    return one.before is other.before and one.after is other.after and (one.key, one.back) == (other.key, other.back)


# ---- what led nowhere


def _unused(found: Study, program: Program) -> Iterator[tuple[str, str, str]]:
    """The applications that are none of the steps."""
    used = {(step.key, _shape(step.matched), _shape(step.made)) for step in found.steps}
    shown = Expressions(found, found.states, program)
    for application in found.batch.graph.applied:
        key = (application.key, _nodes(application.left), _nodes(application.right))
        if key not in used:
            yield application.key, shown.side(application.left), shown.side(application.right)


def _shape(terms: Sequence[Term]) -> frozenset[object]:
    return frozenset(term.node for term in terms)


def _nodes(part: Part) -> frozenset[object]:
    own = frozenset({part.node} if part.node is not None else ())
    return own.union(*map(_nodes, part.operands))


# ---- as text


def show(program: Program, stage: str | None, kernel: str | None, everything: bool) -> int:
    """Print the rewrites of all stages or of one, of all modules or of one; with `everything` those without effect too."""
    if stage is not None and stage not in program.stages:
        raise error(f"there is no stage `{stage}`", remedy=f"stages are {', '.join(program.stages)}")
    found = list(traces(program))
    if not found:
        raise error("no stage is left: the program is lowered to the end", remedy="name the program as it was written")
    names = dict.fromkeys(trace.module for trace in found)
    if kernel is not None and kernel not in names:
        raise error(f"there is no module `{kernel}`", remedy=f"modules are {', '.join(names)}")
    wanted = [t for t in found if stage in (None, t.stage) and kernel in (None, t.module)]
    if not wanted and kernel is None:
        raise error(f"the program is past stage `{stage}`", remedy="name the program as it was written")
    if not wanted:
        raise error(f"module `{kernel}` is not at stage `{stage}`", remedy="programs are cut into kernels on the way")
    places = {rule.name: rule for rule in program.library.rules}
    for trace in wanted:
        _show(trace, places, everything)
    return 0


def _show(trace: StageTrace, rules: Mapping[str, RuleDecl], everything: bool) -> None:
    count = len(trace.rewrites)
    write(f"# {trace.stage}, module `{trace.module}`: {count} {'rewrite' if count == 1 else 'rewrites'}")
    for rewrite in trace.rewrites:
        write(f"\n{rewrite.number}. {_told(rewrite, rules)}")
        write_diff(rewrite.diff())
    if everything and trace.unused:
        write(f"\n{len(trace.unused)} more led to nothing of the result:")
        for key, matched, made in trace.unused:
            write(f"\n{_placed(key, rules)}")
            write_diff([f"-{matched}", f"+{made}"])
    write("\n")


def _told(rewrite: Rewrite, rules: Mapping[str, RuleDecl]) -> str:
    """The rules of a rewrite with their places, and what they say of themselves."""
    if rewrite.again is not None:
        first, last = rewrite.again
        return f"as in {first} to {last}"
    if rewrite.rounds:
        return "roundings that rules left out are put back"
    named = ", ".join(_placed(key, rules) for key in rewrite.rules) or "by its cost"
    doc = rules[rewrite.rules[0].split("/")[0]].doc.split("\n")[0] if len(rewrite.rules) == 1 else ""
    back = ", from right to left" if rewrite.back else ""
    return f"{named}{back}{f': {doc}' if doc else ''}"


def _placed(key: str, rules: Mapping[str, RuleDecl]) -> str:
    return f"{key} ({rules[key.split('/')[0]].name_span.location})"
