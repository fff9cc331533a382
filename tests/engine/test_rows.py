"""Rules over rows of names: one rule for each row, examples included."""

from __future__ import annotations

import pytest

from genrw.engine.library.gather import build_library, gathered_library
from genrw.engine.library.library import Library
from genrw.engine.library.rows import rules_among
from genrw.engine.lint.check_rules import check_rules
from genrw.engine.lint.examples import run_example
from genrw.grammar.rw import parse_rw, print_pattern, print_rw
from genrw.grammar.rw_tree import RuleDecl

TEXT = """\
stage simplify

given x: float{4}, y: float{4}, u = f(f(x, y), y)

/// Twice.
rule again_{what}
  r@f(f(f(a, b), b), {n}) when r.rank > least and n == by
  => convert[target_type=type](g(a, b))
  for (what, f, g, by, least, type) in [(sum, add, sub, 3, 0, float), (product, mul, div, 0.5, 0, float)]
  contract approximate 1
  example f(u, by) gives convert[target_type=float](g(x, y))
  counterexample f(u, 2)
"""


def rules(text: str) -> list[RuleDecl]:
    return rules_among(parse_rw(text, "mine.rw").declarations)


def test_a_rule_for_each_row() -> None:
    first, second = rules(TEXT)
    assert [first.name, second.name] == ["again_sum", "again_product"]
    assert print_pattern(first.left) == "r@add(add(add(a, b), b), {n})"
    assert print_pattern(second.right) == "convert[target_type=float](div(a, b))"
    assert [print_pattern(r.examples[0].before[0]) for r in (first, second)] == ["add(u, 3)", "mul(u, 0.5)"]
    assert (first.tables, first.stage, first.doc, first.span) == ((), "simplify", "Twice.", second.span)


def test_a_number_is_no_operator() -> None:
    text = "rule r_{a}\n  f(x)\n  => x\n  for (a, f) in [(one, neg), (two, 3)]"
    _, problems = gathered_library([parse_rw(text, "mine.rw")])
    assert [p.message for p in problems] == ["this stands for an operator or a part of a name"]


def test_rules_and_their_examples_run(library: Library) -> None:
    whole = build_library([*library.files, parse_rw(TEXT, "mine.rw")])
    mine = [rule for rule in whole.rules if rule.name.startswith("again_")]
    assert len(mine) == 2
    assert check_rules(whole, rules(TEXT)) == []
    assert [run_example(whole, rule, example) for rule in mine for example in rule.examples] == [None] * 4
    assert {"again_sum", "again_product"} <= {rule.name for rule in whole.written_rules}


@pytest.mark.parametrize("name", ["ad", "half_of_nothing"])
def test_an_operator_that_a_row_misspells_is_told(library: Library, name: str) -> None:
    whole = build_library([*library.files, parse_rw(TEXT.replace("(sum, add,", f"(sum, {name},"), "mine.rw")])
    told = check_rules(whole, [rule for rule in whole.written_rules if rule.name == "again_sum"])
    assert f"unknown operator `{name}`" in [t.message for t in told]


def test_two_rows_of_one_name_are_told(library: Library) -> None:
    _, problems = gathered_library([*library.files, parse_rw(TEXT.replace("(product,", "(sum,"), "mine.rw")])
    assert [p.message for p in problems] == ["`again_sum` is declared twice"]


def test_it_prints_and_reads_back() -> None:
    file = parse_rw(TEXT)
    assert parse_rw(print_rw(file)) == file
