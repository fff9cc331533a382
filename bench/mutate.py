"""How many small mistakes in the shipped rules `genrw rules verify` finds: rules are edited, one place at a time, and verified.

Edits are slips of the hand: another operator or comparison, operands or branches exchanged, a constant off by one, an entry
of the schedule or the space taken for another one, a condition of the guard left out or turned around. Texts that are no
rules any more do not count. What is neither refuted nor left open survives, and is listed: it is a mistake that verifying
does not see, or none.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from table import parser, report

from genrw.authoring.rulesets import load_library, shipped_folder
from genrw.engine.language.expr_walk import walk
from genrw.engine.library.library import Library
from genrw.engine.library.sides import conditions
from genrw.engine.library.variants import nodes
from genrw.engine.verify.goals import entries_read
from genrw.engine.verify.verdict import OPEN, REFUTED, Options, Verdict
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Binary, Compare, Const, Expr, IfElse, Member, Name
from genrw.grammar.rw_tree import OpPattern, RuleDecl
from genrw.grammar.source import NOWHERE, Span
from genrw.verifying.rule_verify import Request, verdicts_of

OTHERS = {
    **{"+": "*", "*": "+", "-": "+", "//": "%", "%": "//", "/": "*", "and": "or", "or": "and"},
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in", "not in": "in"},
}
"""What is taken for an operator of expressions."""
ONE_SIDED = ("-", "/", "//", "%", "<<", ">>")
"""Operators whose operands cannot be exchanged."""
RECORDS = ("schedule", "space")
"""Names whose members may be taken for one another."""


@dataclass(frozen=True)
class Edit:
    """One place of a rule, the text that is to stand there, and what kind of mistake that is."""

    rule: RuleDecl
    span: Span
    text: str
    kind: str

    @property
    def told(self) -> str:
        """The change, on one line."""
        return " ".join(f"{self.span.text}  →  {self.text}".split())


def edits(library: Library, rule: RuleDecl) -> Iterator[Edit]:
    """All edits of a rule's guard, bindings and right side."""
    for condition in conditions(rule.guard) if rule.guard is not None else ():
        yield Edit(rule, condition.span, f"(true or ({condition.span.text}))", "condition dropped")
        yield Edit(rule, condition.span, f"(not ({condition.span.text}))", "condition negated")
    for expr in _expressions(rule):
        for part in walk(expr):
            for text, kind in _of_expression(library, part):
                yield Edit(rule, part.span, text, kind)
    for node in nodes(rule.right):
        found = library.find(node.op)
        commutes = found is not None and found[0].decl.commutative
        if len(node.operands) == 2 and not commutes and not any(_is_rest(o) for o in node.operands):
            a, b = (o.span for o in node.operands)
            whole = Span(a.source, a.start, b.end)
            # Parentheses keep an operand whole that stands beside a sign.
            yield Edit(rule, whole, f"({b.text}){a.source.text[a.end : b.start]}({a.text})", "operands exchanged")


def _is_rest(pattern: Any) -> bool:
    return bool(getattr(pattern, "rest", False))


def _expressions(rule: RuleDecl) -> Iterator[Expr]:
    """The expressions that say what a rule takes and makes."""
    if rule.guard is not None:
        yield rule.guard
    yield from (b.value for b in rule.with_)
    for node in nodes(rule.right):
        yield from (a.value for a in node.attributes if a.value is not None)
        yield from (o.value for o in node.operands if not isinstance(o, OpPattern) and hasattr(o, "value"))


def _of_expression(library: Library, part: Expr) -> Iterator[tuple[str, str]]:
    """Texts for one part of an expression, without those inside of it."""
    if isinstance(part, Binary):
        a, b = part.left.span.text, part.right.span.text
        if part.op in OTHERS:
            yield f"(({a}) {OTHERS[part.op]} ({b}))", "operator"
        if part.op in ONE_SIDED:
            yield f"(({b}) {part.op} ({a}))", "operands exchanged"
    elif isinstance(part, Compare) and len(part.ops) == 1 and part.ops[0] in OTHERS:
        a, b = (operand.span.text for operand in part.operands)
        yield f"(({a}) {OTHERS[part.ops[0]]} ({b}))", "comparison"
    elif isinstance(part, Const) and type(part.value) is int:
        yield str(part.value + 1), "constant"
    elif isinstance(part, Const) and type(part.value) is bool:
        yield str(not part.value).lower(), "constant"
    elif isinstance(part, IfElse):
        condition, then, otherwise = (p.span.text for p in (part.condition, part.then, part.otherwise))
        yield f"(({otherwise}) if ({condition}) else ({then}))", "branches exchanged"
    elif isinstance(part, Member) and isinstance(part.base, Name) and part.base.name in RECORDS:
        names = _members(library, part.base.name)
        other = names[(names.index(part.name) + 1) % len(names)]
        yield f"{part.base.name}.{other}", "another entry"


def _members(library: Library, record: str) -> list[str]:
    """The numbers that rules ask for of the schedule or the space."""
    exprs = [e for rule in library.rules for e in _expressions(rule)]
    found = {m for e in exprs for base, m in e.members if base == record}
    return sorted(found)


def over_schedules() -> list[str]:
    """The names of the rules that ask for entries of the schedule."""
    library = load_library()
    return [rule.name for rule in library.rules if entries_read(library, rule)]


def verified(folder: Path, edit: Edit, options: Options, seconds: float) -> Verdict | None:
    """The verdict on an edited rule, in a copy of the shipped rules; None if the text is no rule any more."""
    span = edit.span
    file = folder / Path(*Path(span.source.name).parts[1:])
    text = span.source.text
    file.write_text(text[: span.start] + edit.text + text[span.end :], encoding="utf-8")
    request = Request(folders=(folder,), shipped=False, options=options, seconds=seconds)
    try:
        library = load_library([folder], shipped=False)
        rule = next(r for r in library.rules if r.name == edit.rule.name)
        return next(verdicts_of([rule], request))
    except GenrwError:
        return None
    finally:
        file.write_text(text, encoding="utf-8")


def run(number: int, seed: int, options: Options, seconds: float, names: Sequence[str]) -> list[tuple[Edit, Verdict]]:
    """The verdicts on so many random edits."""
    library = load_library()
    rules = [rule for rule in library.rules if not names or rule.name in names]
    found = [edit for rule in rules for edit in edits(library, rule) if edit.span is not NOWHERE]
    Random(seed).shuffle(found)
    verdicts: list[tuple[Edit, Verdict]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "rules"
        shutil.copytree(shipped_folder(), folder)
        for edit in found:
            if len(verdicts) == number:
                break
            verdict = verified(folder, edit, options, seconds)
            if verdict is not None:
                verdicts.append((edit, verdict))
                print(f"{verdict.status:8} {edit.rule.name}: {edit.told}", flush=True)
    return verdicts


def main() -> None:
    """The command line."""
    options = parser(__doc__ or "", times=40)
    options.add_argument("rules", nargs="*", help="rules by name; without, all")
    options.add_argument(
        "--schedules", action="store_true", help="rules that ask for entries of the schedule, and no others"
    )
    options.add_argument("--seed", type=int, default=0, help="which edits, and which instances")
    options.add_argument("--count", type=int, default=50, help="instances of each rule")
    options.add_argument("--seconds", type=float, default=120.0, help="time for each rule")
    given = options.parse_args()
    names = [*given.rules, *(over_schedules() if given.schedules else ())]
    verdicts = run(given.times, given.seed, Options(given.count, given.seed), given.seconds, names)
    found = [v for _, v in verdicts if v.status in (REFUTED, OPEN)]
    refuted = sum(v.status == REFUTED for v in found)
    kinds = sorted({edit.kind for edit, _ in verdicts})
    rows = [
        [kind, len(mine), sum(v.status == REFUTED for v in mine), sum(v.status == OPEN for v in mine)]
        for kind in kinds
        if (mine := [v for edit, v in verdicts if edit.kind == kind])
    ]
    print("\nsurvivors:")
    for edit, verdict in verdicts:
        if verdict.status not in (REFUTED, OPEN):
            missed = f"; not exercised: {'; '.join(verdict.missed)}" if verdict.missed else ""
            print(f"{edit.span.source.name}:{edit.span.line}: {edit.rule.name}: {edit.told} ({verdict.status}{missed})")
    print()
    report(["kind", "edits", "refuted", "open"], rows, given.json)
    print(f"\n{refuted} of {len(verdicts)} refuted, {len(found) - refuted} open, {len(verdicts) - len(found)} survive")


if __name__ == "__main__":
    main()
