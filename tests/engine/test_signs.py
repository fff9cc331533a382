"""Signs of terms become the operators that are written with them, and what is said of signs that are nobody's."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library
from genrw.engine.library.gather import build_library, gathered_library
from genrw.engine.library.library import Library
from genrw.engine.lint.check import lint
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_rw, print_declaration
from genrw.grammar.rw_tree import RuleFile

SIGNED = """\
stage final

context [schedule={block_size=256, grid=8}]

given i = local_id(), w = workgroup_id() * 2 + 1

define scaled(a, b) = a * b + 1

op mine(a: index, b: index) -> index()
  at nowhere
  is a // b % 4

/// Two sides in all kinds of terms.
rule signed
  r@(a * {m}) + -3 when r.lo > m
  => scaled(a, {m}) - 4
  example i * 2 + -3 gives i - w
"""
CALLED = (
    SIGNED.replace("workgroup_id() * 2 + 1", "iadd(imul(workgroup_id(), 2), 1)")
    .replace("a * b + 1", "iadd(imul(a, b), 1)")
    .replace("a // b % 4", "imod(idiv(a, b), 4)")
    .replace("r@(a * {m}) + -3", "iadd(r@imul(a, {m}), -3)")
    .replace("scaled(a, {m}) - 4", "isub(scaled(a, {m}), 4)")
    .replace("i * 2 + -3 gives i - w", "iadd(imul(i, 2), -3) gives isub(i, w)")
)


def with_file(library: Library, text: str, name: str = "mine.rw") -> Library:
    return build_library([*library.files, parse_rw(text, name)])


def test_terms_with_signs_are_those_of_calls(library: Library) -> None:
    signed, called = (with_file(library, text) for text in (SIGNED, CALLED))
    assert "iadd" not in SIGNED
    assert signed.files[-1] == called.files[-1]
    assert repr(signed.rules) == repr(called.rules)
    assert repr(signed.operators["mine"].decl) == repr(called.operators["mine"].decl)


def test_a_rule_prints_as_its_author_wrote_it(library: Library) -> None:
    for text in (SIGNED, CALLED):
        rule = with_file(library, text).files[-1].declarations[-1]
        assert (
            print_declaration(rule).splitlines()
            == text[text.index("/// Two") :].replace(" when", "\n  when").splitlines()
        )


def test_files_that_are_gathered_again_mean_the_same(library: Library) -> None:
    once = with_file(library, SIGNED)
    again = build_library(once.files)
    assert all(a is b for a, b in zip(once.files, again.files, strict=True))


def test_an_edit_of_rules_takes_the_rest_over(library: Library) -> None:
    mine = parse_rw(SIGNED, "mine.rw")
    files: list[RuleFile] = [*library.read, mine]
    before = build_library(files)
    edited = parse_rw(SIGNED.replace("r.lo > m", "r.lo > 2 * m"), "mine.rw", mine)
    after = build_library([*library.read, edited], before)
    assert after.shares_terms(before)
    assert repr(after.files[-1]) == repr(with_file(library, edited.span.source.text).files[-1])


def test_a_sign_that_changes_its_operator_changes_all_terms() -> None:
    text = "op f(a: index, b: index) -> index\n  written a + b\n\nop g(a: index, b: index) -> index\n\ndefine h(a) = a + 1\n"
    moved = text.replace("\n  written a + b", "").replace("\n\ndefine", "\n  written a + b\n\ndefine")
    first = parse_rw(text, "mine.rw")
    before = build_library([first])
    after = build_library([parse_rw(moved, "mine.rw", first)], before)
    assert [library.defines["h"].term.op for library in (before, after)] == ["f", "g"]  # type: ignore[union-attr]


# ---- what is wrong


def told(text: str, library: Library) -> str:
    """All that is said of the rules of a file beside the shipped ones."""
    whole, problems = gathered_library([*library.files, parse_rw(text, "mine.rw")])
    found = [*problems, *(f.diagnostic for f in lint(whole, whole.files[-1].declarations))]
    return str(GenrwError(found))


def test_a_second_operator_of_a_sign(library: Library) -> None:
    text = "op mine(a: index, b: index) -> index()\n  at nowhere\n  written a + b\n  means a + b\n"
    with pytest.raises(GenrwError) as raised:
        with_file(library, text)
    first = library.operators["iadd"].decl.sign_span
    assert str(raised.value) == (
        "mine.rw:3:13: error: `+` is how `iadd` is written\n"
        "    written a + b\n"
        "              ^\n"
        f"  help: leave out `written`, here or at {first}; without it an operator is called by its name"
    )


RULE = "stage final\n\nrule mine\n  {}\n"
UNKNOWN = """\
mine.rw:{}: error: no operator is written `{}`
{}
  help: the signs are and or + - * // % < >= ==; call other operators by their names"""


@pytest.mark.parametrize(
    ("text", "place", "sign", "shown"),
    [
        (RULE.format("local_id() + a ^ 2\n  => a"), "4:18", "^", "    local_id() + a ^ 2\n                   ^"),
        (RULE.format("local_id() + a\n  => a + (a\n    not in 2)"), "6:5", "not in", "      not in 2)\n      ^^^^^^"),
        ("define mine(a) = a << 1\n", "1:20", "<<", "  define mine(a) = a << 1\n                     ^^"),
        ("dialect mine\nimport Mine(x)\n  => x / x\n", "3:8", "/", "    => x / x\n         ^"),
        (
            RULE.format("imin(a, 1) => a\n  example imin(local_id() & 3, 1) gives local_id()"),
            "5:27",
            "&",
            "    example imin(local_id() & 3, 1) gives local_id()\n                            ^",
        ),
    ],
    ids=["pattern", "template", "define", "import", "example"],
)
def test_a_sign_that_is_nobodys(text: str, place: str, sign: str, shown: str, library: Library) -> None:
    assert UNKNOWN.format(place, sign, shown) in told(text, library)


def test_what_the_checks_find_stands_at_the_term(library: Library) -> None:
    found = told(RULE.format("local_id() + a\n  => b % {n}"), library)
    assert "mine.rw:5:6: error: `b` is not bound by the left side\n    => b % {n}\n       ^" in found
    found = told(RULE.format("a * {n}\n  => a + n"), library)
    assert (
        "mine.rw:5:10: error: `n` is no operand\n    => a + n\n           ^\n  help: write {n} for the constant"
        in found
    )
    found = told("stage simplify\n\nrule mine\n  relu(x)\n  => x // 2\n", library)
    assert "`idiv` takes an index here, not a tensor or a value of lanes\n    => x // 2\n       ^\n" in found


def test_a_folder_of_rules_is_checked_with_operators_in_place(tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(SIGNED.replace("{m}) - 4", "{m}) - c"))
    with pytest.raises(GenrwError) as raised:
        load_library([tmp_path])
    assert [d.message for d in raised.value.diagnostics] == ["`c` is not bound by the left side"]


def test_operators_without_signs() -> None:
    bare = [parse_rw("op f(a: index, b: index) -> index\n\ndefine g(a) = a + 1\n", "mine.rw")]
    whole, problems = gathered_library(bare)
    assert not problems
    assert whole.unknown_operator("+", bare[0].span).remedy == "call it by its name"
