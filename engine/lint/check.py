"""All that can be said of a library's rules without a program: by reading them, and by running their examples."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

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
from genrw.grammar.rw_tree import Declaration, RuleDecl

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
        found += _examples(library, {rule.name for rule in rules_among(own)})
    order = {file.span.source.name: i for i, file in enumerate(library.files)}
    return sorted(dict.fromkeys(found), key=lambda f: _place(f, order))


def _malformed(library: Library) -> list[Finding]:
    def told() -> Iterator[Finding]:
        for rule in library.written_rules:
            yield from (Finding(MALFORMED, rule.name, diagnostic) for diagnostic in check_rules(library, [rule]))
        for imported in (
            one for imports in library.dialects.values() for several in imports.values() for one in several
        ):
            for diagnostic in check_imports(library, [imported]):
                yield Finding(MALFORMED, imported.full_name, diagnostic)
        checks = DeclarationChecks(library)
        for declared in (d for file in library.files for d in file.declarations):
            yield from (Finding(MALFORMED, declared.name, diagnostic) for diagnostic in checks.of(declared))

    return list(told())


def _examples(library: Library, tested: Container[str]) -> Iterator[Finding]:
    for rule in library.rules:
        told = list(check_examples(library, rule))
        yield from (
            Finding(EXAMPLE, rule.name, replace(t, remedy=t.remedy or "mend the example's program")) for t in told
        )
        if not told and rule.name in tested and library.targets:
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
