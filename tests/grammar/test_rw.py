"""`.rw`: what each construct reads as, where it stands, and that printing reads back."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw import rules
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, ListExpr, Member, Name
from genrw.grammar.gen_tree import Attribute, MapValue, TypeNode, Word
from genrw.grammar.rw import parse_rw, print_rw
from genrw.grammar.rw_print import print_declaration
from genrw.grammar.rw_tree import (
    AttributePattern,
    ContextDecl,
    Declaration,
    FieldExpr,
    Given,
    GivenDecl,
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
        "example",
        "gives",
        "counterexample",
        "given",
        "context",
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
context wave [target=gfx942, schedule={algo=wave, lanes=[1, -2]}]
given x: float{4, 8}, ones: half{4} = 1, some: float{2} = [1.5, -2], i = local_id()
rule r
  f(x) => x
  given turned: float{4, 8}, {1, 4}
  example [wave, axes=[1]]  # why
    f[mode="edge", axes=[0]](x, ones)

  # a comment between
  gives
      x, i
  contract exact
  counterexample
    f(turned)
"""


def of_examples(text: str) -> tuple[ContextDecl, GivenDecl, RuleDecl]:
    context, given, found = parse_rw(text, "r.rw").declarations
    assert isinstance(context, ContextDecl)
    assert isinstance(given, GivenDecl)
    assert isinstance(found, RuleDecl)
    return context, given, found


def test_examples_are_terms() -> None:
    _, _, found = of_examples(EXAMPLES)
    first, second = found.examples
    assert first.brackets == (Attribute("wave", None), Attribute("axes", (1,)))
    attributes = (AttributePattern("mode", Const("edge")), AttributePattern("axes", ListExpr((Const(0),))))
    assert first.before == (OpPattern("f", attributes, (VarPattern("x"), VarPattern("ones"))),)
    assert first.after == (VarPattern("x"), VarPattern("i"))
    assert (second.brackets, second.before, second.after) == (
        None,
        (OpPattern("f", (), (VarPattern("turned"),)),),
        None,
    )
    assert found.contract == "exact"


def test_what_examples_are_given() -> None:
    context, given, found = of_examples(EXAMPLES)
    schedule = MapValue((("algo", Word("wave")), ("lanes", (1, -2))))
    assert (context.name, context.is_named) == ("wave", True)
    assert context.entries == (Attribute("target", Word("gfx942")), Attribute("schedule", schedule))
    assert given.given == (
        Given("x", TypeNode("tensor", "float", (4, 8))),
        Given("ones", TypeNode("tensor", "half", (4,)), Const(1)),
        Given("some", TypeNode("tensor", "float", (2,)), ListExpr((Const(1.5), Const(-2)))),
        Given("i", term=OpPattern("local_id", (), ())),
    )
    assert found.given == (Given("turned", TypeNode("tensor", "float", (4, 8), (1, 4))),)
    unnamed = only("context [target=host]")
    assert isinstance(unnamed, ContextDecl)
    assert not unnamed.is_named


def test_what_is_given_in_the_first_column_is_the_files() -> None:
    one, two = parse_rw("rule r f(x) => x\n  given x: half\ngiven y: half").declarations
    assert isinstance(one, RuleDecl)
    assert isinstance(two, GivenDecl)
    assert [g.name for g in (*one.given, *two.given)] == ["x", "y"]


def test_spans_of_examples() -> None:
    context, given, found = of_examples(EXAMPLES)
    first, second = found.examples
    assert first.span.text.startswith("example [wave")
    assert first.span.text.endswith("x, i")
    assert (first.keyword.text, str(first.keyword)) == ("example", "r.rw:6:3")
    assert first.before[0].span.text == 'f[mode="edge", axes=[0]](x, ones)'
    assert first.brackets is not None
    assert first.brackets[1].span.text == "axes=[1]"
    assert (context.name_span.text, context.entries[1].value_span.text[:6]) == ("wave", "{algo=")
    assert [g.span.text for g in given.given][1:] == [
        "ones: half{4} = 1",
        "some: float{2} = [1.5, -2]",
        "i = local_id()",
    ]
    assert found.given[0].type is not None
    assert found.given[0].type.span.text == "float{4, 8}, {1, 4}"
    assert second.keyword.text == "counterexample"
    assert (found.name_span.text, found.span.text.splitlines()[-1]) == ("r", "    f(turned)")


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


def test_what_a_target_requires() -> None:
    target = only('target t : base a 1 requires is_pow2(a) and a > 0 "a is odd" b 2')
    assert isinstance(target, TargetDecl)
    assert [name for name, _ in target.values] == ["a", "b"]
    assert [r.message for r in target.requires] == ["a is odd"]
    assert only(print_declaration(target)) == target
