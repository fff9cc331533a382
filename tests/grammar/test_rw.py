"""`.rw`: what each construct reads as, where it stands, and that printing reads back."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw import rules
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Member, Name
from genrw.grammar.gen_tree import Attribute, MapValue, Word
from genrw.grammar.rw import parse_rw, print_rw
from genrw.grammar.rw_tree import (
    AttributePattern,
    Declaration,
    Example,
    FieldExpr,
    MonoidDecl,
    NumberPattern,
    OpDecl,
    OperandDecl,
    OpPattern,
    Pattern,
    RuleDecl,
    TargetDecl,
    VarPattern,
)

EVERYTHING = (Path(__file__).parent / "data/everything.rw").read_text()
SHIPPED = sorted(Path(str(rules.__file__)).parent.rglob("*.rw"))


def only(text: str) -> Declaration:
    (declaration,) = parse_rw(text).declarations
    return declaration


def rule(text: str) -> RuleDecl:
    found = only(f"rule r {text}")
    assert isinstance(found, RuleDecl)
    return found


def op(text: str) -> OpDecl:
    found = only(f"op {text}")
    assert isinstance(found, OpDecl)
    return found


def pattern(text: str) -> Pattern:
    return rule(f"x => {text}").right


def test_print_of_everything_is_the_text() -> None:
    file = parse_rw(EVERYTHING)
    assert print_rw(file) == EVERYTHING
    assert repr(parse_rw(print_rw(file))) == repr(file)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_rules_print_and_read_back(path: Path) -> None:
    file = parse_rw(path.read_text(), path.name)
    printed = print_rw(file)
    assert parse_rw(printed) == file
    assert print_rw(parse_rw(printed)) == printed


def test_line_ends_of_windows_and_tabs() -> None:
    assert parse_rw(EVERYTHING.replace("\n", "\r\n")) == parse_rw(EVERYTHING)
    assert parse_rw(EVERYTHING.replace("\n    ", "\n\t\t").replace("\n  ", "\n\t")) == parse_rw(EVERYTHING)


# ---- layout


def test_newlines_mean_nothing_within_a_declaration() -> None:
    spread = "rule\tr\nf\n(\nx\n)\nwhen\na\n=>\ny\nwith\na\n=\n1\nb\n=\n2\n,c=3\ncontract\nexact"
    assert only(spread) == rule("f(x) when a => y with a = 1, b = 2 with c = 3")


def test_clauses_come_in_any_order() -> None:
    assert rule("x for b in c with n = 1 when n => y contract exact") == rule("x => y when n for b in c with n = 1")


def test_indented_declarations() -> None:
    assert len(parse_rw("  stage a\n  rule r x => y\n    rule s x => y\n  let f() = 1").declarations) == 3


@pytest.mark.parametrize(
    "word",
    [
        "role",
        "at",
        "means",
        "cost",
        "emit",
        "lo",
        "hi",
        "where",
        "op",
        "rule",
        "index",
        "value",
        "type",
        "carry",
    ],
)
def test_keywords_can_be_names(word: str) -> None:
    assert rule(f"f[{word}](x) when {word}.{word} < {word} + 1 => g[{word}={word}]({word}) with {word} = 1")
    assert rule(f"x => y with n = 1 {word} = {word}").with_[1].name == word
    assert op(f"{word}[{word}: int]({word}: T) -> T cost {word}").cost == Name(word)
    target = only(f"target t a 1 {word} 2 b {word}")
    assert isinstance(target, TargetDecl)
    assert [name for name, _ in target.values] == ["a", word, "b"]


def test_floor_division_or_comment() -> None:
    found = op("f(a: index) -> index // result\n lo a.lo // b.hi   hi a # up\n // 3\n  pow2 1 // 2 # two")
    assert found.lo == Binary("//", Member(Name("a"), "lo"), Member(Name("b"), "hi"))
    assert found.hi == Name("a")
    assert found.pow2 == Binary("//", Const(1), Const(2))


def test_terms_of_a_cost() -> None:
    found = op("f[n: int](x: T) -> T cost n * 2 terms bytes = n, cost = 2 domain n > 0")
    assert [(t.name, t.value) for t in found.terms] == [("bytes", Name("n")), ("cost", Const(2))]
    assert found.cost == Binary("*", Name("n"), Const(2))


def test_documentation() -> None:
    file = parse_rw("// Head\n# of all\n\n# not\n/// one\n///  two\n\n# between\nstage s\nrule r x => y\nlet f() = 1")
    assert file.doc == "Head\nof all"
    assert [declaration.doc for declaration in file.declarations] == ["one\n two", ""]


def test_stage_of_rules() -> None:
    file = parse_rw("rule r x => y\nstage a\nrule s x => y\nstage b, c\nrule t x => y")
    assert [d.stage for d in file.declarations if isinstance(d, RuleDecl)] == [None, "a", "b, c"]


# ---- patterns


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x", VarPattern("x")),
        ("3", NumberPattern(Const(3))),
        ("-0.5", NumberPattern(Const(-0.5))),
        ("true", NumberPattern(Const(True))),
        ("-inf", NumberPattern(Const(float("-inf")))),
        ("f()", OpPattern("f", (), ())),
        ("f[a]", OpPattern("f", (AttributePattern("a", None),), ())),
        (
            "f[a=b, ..](x)",
            OpPattern("f", (AttributePattern("a", Name("b")),), (VarPattern("x"),), open_attributes=True),
        ),
        ("f_{op}_g(xs...)", OpPattern("f_{}_g", (), (VarPattern("xs", rest=True),), family="op")),
        ("f(g(xs)...)", OpPattern("f", (), (OpPattern("g", (), (VarPattern("xs"),), rest=True),))),
        ("y@f({n * 4})", OpPattern("f", (), (NumberPattern(Binary("*", Name("n"), Const(4))),), binds="y")),
    ],
)
def test_pattern(text: str, found: Pattern) -> None:
    assert pattern(text) == found


def test_guard_and_bindings() -> None:
    found = rule("x when n in [1] => y with n = f(x)  m = 2 for f in pointwise, v in [1] contract approximate 0.5")
    assert found.guard is not None
    assert isinstance(found.guard, Compare)
    assert [(b.name, b.value) for b in found.with_] == [("n", Call("f", (Name("x"),))), ("m", Const(2))]
    assert [b.name for b in found.for_] == ["f", "v"]
    assert (found.contract, found.bound) == ("approximate", 0.5)


# ---- examples


EXAMPLES = """\
rule r
  f(x) => x
  example [target=gfx942, schedule={algo=wave}]  # why
    a = f(  # (
      b)

  # a comment ends the block
  gives
      a = b
  contract exact
  counterexample
    rule = op(x)
"""


def test_examples_are_programs() -> None:
    found = only(EXAMPLES)
    assert isinstance(found, RuleDecl)
    first, second = found.examples
    assert first.context == (
        Attribute("target", Word("gfx942")),
        Attribute("schedule", MapValue((("algo", Word("wave")),))),
    )
    assert first.after is not None
    assert [i.op for i in (*first.before.modules[0].instructions, *first.after.modules[0].instructions)] == [
        "f",
        "b",
    ]
    assert isinstance(second, Example)
    assert second.after is None
    assert second.before.modules[0].instructions[0].names == ("rule",)


def test_spans_point_into_the_rule_file() -> None:
    found = parse_rw(EXAMPLES, "r.rw").declarations[0]
    assert isinstance(found, RuleDecl)
    instruction = found.examples[0].before.modules[0].instructions[0]
    assert str(instruction.span) == "r.rw:4:5"
    assert instruction.operands[0].span.text == "b"
    assert found.examples[0].context[0].span.text == "target=gfx942"
    assert found.name_span.text == "r"
    assert (found.span.text.splitlines()[0], found.span.text.splitlines()[-1]) == (
        "rule r",
        "    rule = op(x)",
    )
    assert isinstance(found.left, OpPattern)
    assert (found.left.span.text, found.left.op_span.text) == ("f(x)", "f")


# ---- operators and monoids


def test_operands() -> None:
    found = op("f(x: T tensor, y: bool, i: index, xs: number value..., ys: U...) -> T").operands
    assert found == (
        OperandDecl("x", "T", "tensor"),
        OperandDecl("y", "bool", None),
        OperandDecl("i", None, "index"),
        OperandDecl("xs", "number", "value", variadic=True),
        OperandDecl("ys", "U", None, variadic=True),
    )


def test_family() -> None:
    found = op("reduce_{op: monoid}(x: T) -> T")
    assert (found.name, found.family, found.family_type) == ("reduce_{op}", "op", "monoid")
    assert op("map_{f: pointwise}(x: T) -> T").family_type == "pointwise"
    assert found.name_span.text == "reduce_{op: monoid}"


def test_monoid_fields() -> None:
    found = only("monoid m identity 0 combine a + b element value = x, index = k")
    assert isinstance(found, MonoidDecl)
    assert found.identity == (FieldExpr(None, Const(0)),)
    assert found.element == (FieldExpr("value", Name("x")), FieldExpr("index", Name("k")))
