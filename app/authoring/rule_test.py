"""`genrw rules test`: do rules do with their examples what these say, and leave their counterexamples alone?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genrw.authoring.rulesets import chosen_rules, load_library
from genrw.engine.library.library import Library
from genrw.engine.lint.examples import Failure, run_example
from genrw.grammar.rw_tree import Example, RuleDecl
from genrw.terminal import progress, write, write_diagnostics, write_diff, write_table

_NONE = "no example"


@dataclass(frozen=True)
class Outcome:
    """How the examples of one rule ended: each with what is wrong with it, None for one that holds."""

    rule: RuleDecl
    examples: tuple[tuple[Example, Failure | None], ...]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What is wrong, in the order of the examples."""
        return tuple(failure for _, failure in self.examples if failure is not None)

    @property
    def said(self) -> str:
        """How it ended, in a word or two."""
        if not self.examples:
            return _NONE
        return f"{len(self.failures)} failed" if self.failures else "passed"


def run_tests(names: Sequence[str], folders: Sequence[str | Path], shipped: bool, as_json: bool) -> int:
    """Run examples and print how they ended; 1 if one fails.

    They are those of the rules named, without names of the folders' rules, without folders of all. GenrwError for bad
    files or names.
    """
    library = load_library(folders, shipped=shipped)
    rules = chosen_rules(library, names, folders)
    with progress("rules", len(rules)) as step:
        outcomes = []
        for rule in rules:
            outcomes.append(outcome(library, rule))
            step()
    if as_json:
        write(json.dumps([_entry(*pair) for o in outcomes for pair in _pairs(o)], indent=2, ensure_ascii=False))
    else:
        _tell(outcomes)
    return int(any(o.failures for o in outcomes))


def outcome(library: Library, rule: RuleDecl) -> Outcome:
    """Run all examples of a rule."""
    return Outcome(rule, tuple((example, run_example(library, rule, example)) for example in rule.examples))


# ---- what is told


def _tell(outcomes: Sequence[Outcome]) -> None:
    headings = ["rule", "stage", "declared at", "examples", "counterexamples", "result"]
    write_table(headings, [_row(o) for o in outcomes])
    for failure in (f for o in outcomes for f in o.failures):
        write_diagnostics(failure.diagnostics)
        if failure.difference:
            write_diff(failure.difference, sys.stderr)
    write(summary(outcomes))


def _row(outcome: Outcome) -> list[str]:
    rule = outcome.rule
    given = sum(example.after is not None for example in rule.examples)
    return [
        rule.name,
        rule.stage or "",
        rule.name_span.location,
        str(given),
        str(len(rule.examples) - given),
        outcome.said,
    ]


def summary(outcomes: Sequence[Outcome]) -> str:
    """How all ended, in one line."""
    rules = "1 rule" if len(outcomes) == 1 else f"{len(outcomes)} rules"
    failed, total = sum(len(o.failures) for o in outcomes), sum(len(o.examples) for o in outcomes)
    examples = "1 example" if total == 1 else f"{total} examples"
    bare = sum(not o.examples for o in outcomes)
    told = f"{failed} of {examples} failed" if failed else f"{examples} passed"
    return f"{rules}: {told}" + (f"; {bare} without" if bare else "")


def _pairs(outcome: Outcome) -> list[tuple[RuleDecl, Example, Failure | None]]:
    return [(outcome.rule, example, failure) for example, failure in outcome.examples]


def _entry(rule: RuleDecl, example: Example, failure: Failure | None) -> dict[str, Any]:
    """One example for other tools; `at_line` is where it went wrong."""
    told = failure.diagnostics[0] if failure is not None else None
    return {
        "rule": rule.name,
        "kind": "example" if example.after is not None else "counterexample",
        "file": example.keyword.source.name,
        "line": example.keyword.line,
        "passed": failure is None,
        "at_line": told.span.line if told is not None and told.span is not None else None,
        "message": told.message if told is not None else None,
        "help": told.remedy if told is not None else None,
        "notes": [d.render() for d in failure.diagnostics[1:]] if failure is not None else [],
        "difference": list(failure.difference) if failure is not None else [],
    }
