"""Every rule's examples: what the rule documents is what it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library
from genrw.engine.lint.examples import run_example
from genrw.grammar.rw_tree import Example, RuleDecl

LIBRARY = load_library()


def examples() -> Iterator[tuple[RuleDecl, Example]]:
    """Each rule with each of its examples."""
    for rule in LIBRARY.rules:
        for example in rule.examples:
            yield rule, example


def label(value: object) -> str:
    """A rule by its name, an example by its line."""
    return (
        value.name if isinstance(value, RuleDecl) else f"line {value.span.line}" if isinstance(value, Example) else ""
    )


@pytest.mark.parametrize(("rule", "example"), list(examples()), ids=label)
def test_example(rule: RuleDecl, example: Example) -> None:
    failure = run_example(LIBRARY, rule, example)
    assert failure is None, str(failure)


@pytest.mark.parametrize("rule", LIBRARY.written_rules, ids=label)
def test_rule_is_documented(rule: RuleDecl) -> None:
    assert rule.doc, f"{rule.name} has no `///` line that says what holds"
    assert any(e.after for e in rule.examples), f"{rule.name} has no example"
    assert rule.guard is None or any(not e.after for e in rule.examples), f"{rule.name} has no counterexample"


REPLACING = """
stage simplify

rule short
  add(abs(abs(x)), y)
  => add(abs(x), y)
  replaces
  given x: float{4}, y: float{4}
  example exp(add(abs(abs(x)), y)) gives exp(add(abs(abs(x)), y))
"""


def test_what_a_rule_replaced_is_still_equal(tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(REPLACING)
    library = load_library([tmp_path])
    rule = next(rule for rule in library.rules if rule.name == "short")
    assert run_example(library, rule, rule.examples[0]) is None
