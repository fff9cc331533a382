"""Targets of declarations: the values that they have of themselves and of their bases, and what these require."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from genrw.engine.language.expr_walk import calls, did_you_mean, free_names
from genrw.engine.library.infer import filled
from genrw.engine.library.instructions import INSTRUCTION
from genrw.engine.library.library import DEFAULT, ExpressionScope, Target
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Const, Expr
from genrw.grammar.rw_tree import Requirement, TargetDecl

ABSTRACT = "abstract"
"""The entry of a base that is no target itself."""
MARKS = (ABSTRACT, DEFAULT)
"""What a declaration says of the target among others, and not of its machine."""


def targets_of(
    decls: Mapping[str, TargetDecl],
    scope: ExpressionScope,
    instructions: Collection[str],
    problems: list[Diagnostic],
) -> dict[str, Target]:
    """The targets by name, abstract ones aside. What is wrong with them is added to the problems."""
    targets: dict[str, Target] = {}
    for decl in decls.values():
        chain = base_chain(decl, decls)
        lines = [line for one in reversed(chain) for line in one.values if line[0] not in MARKS]
        problems += [*_base_problems(decl, decls), *_marks(decl, targets)]
        if not is_marked(decl, ABSTRACT):
            target = Target(decl.name, settings(decl.name, lines, scope, problems), is_marked(decl, DEFAULT))
            problems += _unmet(chain, target, scope, instructions)
            targets[decl.name] = target
    return targets


def is_marked(decl: TargetDecl, mark: str) -> bool:
    """Does a declaration itself say so? Those that are based on it do not."""
    return dict(decl.values).get(mark) == Const(True)


def base_chain(decl: TargetDecl, decls: Mapping[str, TargetDecl]) -> list[TargetDecl]:
    """A target, its base, that one's base and so on."""
    chain = [decl]
    while (base := decls.get(chain[-1].base or "")) is not None and base not in chain:
        chain.append(base)
    return chain


def settings(
    name: str, lines: Sequence[tuple[str, Expr]], scope: ExpressionScope, problems: list[Diagnostic]
) -> dict[str, Any]:
    """Settings evaluated, each of which may name those before it. The last of several of a name counts, for those of a base that
    name it, too. What names one that has no value has none."""
    left = dict(lines)
    before = {key: {other for other, _ in lines[:place]} for place, (key, _) in enumerate(lines)}
    names: dict[str, Any] = {"name": name}
    while left:
        key = next((key for key, expr in left.items() if not (free_names(expr) & before[key] & left.keys())), None)
        if key is None:
            key = next(iter(left))
            problems.append(Diagnostic(f"`{key}` is made of itself", left.pop(key).span, "name other values"))
            continue
        expr = left.pop(key)
        if free_names(expr) & before[key] <= names.keys():
            known = {given: value for given, value in names.items() if given in before[key] or given == "name"}
            _evaluate(key, expr, scope, known, names, problems)
    return names


def _evaluate(
    key: str,
    expr: Expr,
    scope: ExpressionScope,
    known: Mapping[str, Any],
    names: dict[str, Any],
    problems: list[Diagnostic],
) -> None:
    """Give a name its value, or add to the problems why it has none."""
    try:
        names[key] = scope.compile(expr)(known)
    except GenrwError as problem:
        problems += (p for p in problem.diagnostics if p not in problems)


def _base_problems(decl: TargetDecl, decls: Mapping[str, TargetDecl]) -> Iterator[Diagnostic]:
    if decl.base is None:
        return
    if decl.base not in decls:
        remedy = did_you_mean(decl.base, decls) or "`genrw rules list` shows those that are"
        yield Diagnostic(f"the base target `{decl.base}` is not declared", decl.name_span, remedy)
    elif decl in base_chain(decls[decl.base], decls):
        message = f"the base target `{decl.base}` is its own ancestor"
        yield Diagnostic(message, decl.name_span, "leave out one of the bases")


def _marks(decl: TargetDecl, others: Mapping[str, Target]) -> Iterator[Diagnostic]:
    """Entries that stand twice, marks that say anything, and a second target of programs that name none."""
    seen: set[str] = set()
    for name, value in decl.values:
        if name in seen:
            yield Diagnostic(f"`{name}` is given twice", value.span, "remove one of them")
        elif name in MARKS and value not in (Const(True), Const(False)):
            yield Diagnostic(f"`{name}` is true or false", value.span, f"write {name} true, or remove the line")
        seen.add(name)
    first = next((other.name for other in others.values() if other.is_default), None)
    if is_marked(decl, DEFAULT) and first is not None:
        span = next(value.span for name, value in decl.values if name == DEFAULT)
        yield Diagnostic(f"`{first}` is the target of programs that name none", span, "there is one: remove the line")


def _unmet(
    chain: list[TargetDecl], target: Target, scope: ExpressionScope, instructions: Collection[str]
) -> Iterator[Diagnostic]:
    """What a target's values do not keep of what it and its bases require. Of a value that it lacks nothing is required, nor
    of instructions that there are not: these are told of by themselves."""
    for requirement in (r for decl in chain for r in decl.requires):
        asked = free_names(requirement.condition)
        if not asked <= target.values.keys():
            continue
        if INSTRUCTION in calls(requirement.condition):
            listed = {part for name in asked for part in _parts(target.values[name])}
            if any(isinstance(part, str) and part not in instructions for part in listed):
                continue
        try:
            if scope.compile(requirement.condition)(target.values) is not True:
                yield _told(chain[0], requirement, asked, target)
        except GenrwError as problem:
            if requirement in chain[0].requires:
                yield from problem.diagnostics
            else:  # What is asked of all others is right, and the value of another kind.
                yield _told(chain[0], requirement, asked, target)


def _told(decl: TargetDecl, requirement: Requirement, asked: Collection[str], target: Target) -> Diagnostic:
    """Told at the first of the target's own values that is asked for, else at its name."""
    span = next((value.span for name, value in decl.values if name in asked), decl.name_span)
    shown = ", ".join(f"`{name}` is {shown_value(target.values[name])}" for name in sorted(asked))
    remedy = f"`{requirement.condition.span.text}` has to hold"
    message = filled(requirement.message, {name: shown_value(value) for name, value in target.values.items()})
    return Diagnostic(f"{message}, and {shown}", span, remedy)


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else ()


def shown_value(value: Any) -> str:
    """A value as a declaration has it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(shown_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
