"""All that can be said of a library's rules without a program: by reading them, and by running their examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from genrw.engine.library.library import Library
from genrw.engine.library.rows import rules_among
from genrw.engine.library.sides import directions
from genrw.engine.lint.check_declarations import DeclarationChecks
from genrw.engine.lint.check_imports import check_imports
from genrw.engine.lint.check_rules import check_rules
from genrw.engine.lint.check_targets import check_targets
from genrw.engine.lint.examples import run_example
from genrw.engine.lint.finding import Finding
from genrw.engine.lint.growth import endless
from genrw.engine.lint.guards import constant_guards
from genrw.engine.lint.overlap import idle, overlapping
from genrw.engine.lint.reach import misplaced, not_lowered, reach, unreachable
from genrw.engine.lint.sorts import mixed_sorts
from genrw.engine.lint.unused import unused
from genrw.engine.programs.example_programs import check_examples
from genrw.grammar.rw_tree import Declaration, RuleDecl, RuleFile

MALFORMED = "declaration"
"""The kind of what stops a library from being used."""
EXAMPLE = "example"
"""The kind of examples that are no programs, or not what the rule does."""


def lint(library: Library, own: Sequence[Declaration] = ()) -> list[Finding]:
    """All findings, in the order of the files and of their lines.

    Rules that name what is not there are told of, and left out of what is asked about rules together. Of
    the author's `own` rules examples are run, and own targets are measured by the others.
    """
    malformed = [*_malformed(library), *(Finding(MALFORMED, "target", d) for d in check_targets(library, own))]
    bad = {f.subject for f in malformed}
    sound = list(
        directions(library, [rule for rule in library.rules if rule.name not in bad and rule.defines not in bad])
    )
    written = [direction for direction in sound if direction.rule.defines is None]
    reached = reach(library, sound)
    found = [
        *malformed,
        *unreachable(library, sound, reached),
        *misplaced(library, sound),
        *(f for f in not_lowered(library, sound, reached) if f.subject not in bad),
        *mixed_sorts(library, sound),
        *overlapping(library, written),
        *idle(written),
        *endless(library, sound),
        *constant_guards(library, written),
        *unused(library),
    ]
    if not malformed:
        tested = {rule.name for rule in rules_among(own)} if library.targets else frozenset()
        found += _examples(library, [rule for rule in library.rules if rule.name in tested])
    order = {file.span.source.name: i for i, file in enumerate(library.files)}
    return sorted(dict.fromkeys(found), key=lambda f: _place(f, order))


@dataclass
class _Quiet:
    """The files in which the checks that ask about one declaration after another found nothing, as they were read, by their
    ids: so it stays as long as all else is equal that findings follow from, the `basis`."""

    basis: tuple[object, ...] = ()
    formed: dict[int, RuleFile] = field(default_factory=dict)
    shown: dict[int, RuleFile] = field(default_factory=dict)

    def of(self, library: Library) -> _Quiet:
        """What of it holds for a library."""
        declared = tuple(d for file in library.read for d in file.declarations if not isinstance(d, RuleDecl))
        of_rules = library.fusing_stage, library.lane_stages, library.policies
        basis = (library.foreign, of_rules, declared)
        return self if basis == self.basis else _Quiet(basis)


_last = [_Quiet()]
"""What is known of the library that was looked at last: most that follow add a file to the same ones, or change one."""


def _among(
    library: Library, quiet: dict[int, RuleFile], told: Callable[[RuleFile], list[Finding]]
) -> Iterator[Finding]:
    """What is told of files, the quiet ones not asked; which are quiet is noted."""
    for read, file in zip(library.read, library.files, strict=True):
        if id(read) not in quiet:
            found = told(file)
            yield from found
            if not found:
                quiet[id(read)] = read
    for gone in quiet.keys() - set(map(id, library.read)):
        del quiet[gone]


def _malformed(library: Library) -> list[Finding]:
    imports = [one for imports in library.dialects.values() for several in imports.values() for one in several]
    checks = DeclarationChecks(library)

    def told(file: RuleFile) -> list[Finding]:
        found = [(rule, d) for rule in rules_among(file.declarations) for d in check_rules(library, [rule])]
        own = [(one, one.full_name) for one in imports if one.span.source.name == file.span.source.name]
        foreign = [Finding(MALFORMED, name, d) for one, name in own for d in check_imports(library, [one])]
        others = [(declared, d) for declared in file.declarations for d in checks.of(declared)]
        return [
            *(Finding(MALFORMED, rule.name, d) for rule, d in found),
            *foreign,
            *(Finding(MALFORMED, declared.name, d) for declared, d in others),
        ]

    _last[0] = _last[0].of(library)
    return list(_among(library, _last[0].formed, told))


def _examples(library: Library, tested: Sequence[RuleDecl]) -> Iterator[Finding]:
    rules: dict[str, list[RuleDecl]] = {}
    for rule in library.rules:
        rules.setdefault(rule.span.source.name, []).append(rule)

    def told(file: RuleFile) -> list[Finding]:
        return [
            Finding(EXAMPLE, rule.name, replace(t, remedy=t.remedy or "mend the example's program"))
            for rule in rules.get(file.span.source.name, ())
            for t in check_examples(library, rule)
        ]

    found = list(_among(library, _last[0].shown, told))
    yield from found
    no_programs = {f.subject for f in found}
    for rule in tested:
        if rule.name not in no_programs:
            yield from _untrue(library, rule)


def _untrue(library: Library, rule: RuleDecl) -> Iterator[Finding]:
    """Examples that are programs, and that the rule makes others of, or none."""
    for example in rule.examples:
        failure = run_example(library, rule, example)
        if failure is not None:
            first, *notes = failure.diagnostics
            seen = [f"{note.span}: {note.message}" for note in notes]
            seen += [f"`genrw rules test {rule.name}` shows the difference"] if failure.difference else []
            remedy = "; ".join(filter(None, [first.remedy, *seen]))
            yield Finding(EXAMPLE, rule.name, replace(first, remedy=remedy))


def _place(found: Finding, order: dict[str, int]) -> tuple[int, int]:
    span = found.diagnostic.span
    return (order.get(span.source.name, -1), span.start) if span is not None else (-1, 0)
