"""Operators that are made of others, and term functions: what rules, costs and back ends see of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import genrw
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.verify.verdict import REFUTED, TRIED, Options, verify_rule
from genrw.grammar.expr import print_expr
from genrw.grammar.rw import parse_rw
from genrw.main import execute

GELU = """
/// The share below x.
op own_gelu(x: T) -> T where T: real
  role pointwise
  is mul(mul(x, 0.5), add(1, erf(mul(x, 0.70710678118654752))))
"""
PROGRAM = "x = @param:x -> float{4, 8}\ny = own_gelu(x)\n@return(y)\n"
DISGUISED = """
x = @param:x -> float{4, 8}
a = mul(0.70710678118, x)
e = erf(a)
o = add(e, 1.0)
h = mul(x, 0.5)
y = mul(o, h)
@return(y)
"""


def rules_in(folder: Path, text: str) -> Path:
    (folder / "mine.rw").write_text(text)
    return folder


def operators(folder: Path, rules: str, program: str, stage: str = "simplify") -> list[str]:
    rules_in(folder, rules)
    (folder / "p.gen").write_text(program)
    lowered = genrw.load(folder / "p.gen", rules=[folder]).lower(stage)
    return [node.op for module in lowered.modules for node in module.nodes]


def with_text(library: Library, text: str) -> Library:
    return build_library([*library.files, parse_rw(text, "mine.rw")])


def told(folder: Path, rules: str, capsys: pytest.CaptureFixture[str]) -> str:
    execute(["rules", "check", "--rules", str(rules_in(folder, rules))])
    shown = capsys.readouterr()
    return shown.out + shown.err


# ---- operators made of others


def test_what_an_operator_means_and_costs_follows_from_its_definition(library: Library) -> None:
    op = with_text(library, GELU).operator("own_gelu")
    assert op.decl.means is not None
    assert print_expr(op.decl.means) == "x * 0.5 * (1 + erf(x * 0.7071067811865476))"
    # three products, a sum and erf, which costs 4, and three numbers
    assert op.fixed_cost == 11


@pytest.mark.few(1)
@pytest.mark.parametrize("target", ["host", "gfx942"])
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_a_defined_operator_runs(tmp_path: Path, target: str, dtype: str) -> None:
    rules_in(tmp_path, GELU)
    (tmp_path / "p.gen").write_text(PROGRAM.replace("float", dtype))
    assert execute(["run", str(tmp_path / "p.gen"), "--rules", str(tmp_path), "--check", "--target", target]) == 0
    assert execute(["run", str(tmp_path / "p.gen"), "--rules", str(tmp_path), "--check", "--device", "interpret"]) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["half", "bf16", "float"])
@pytest.mark.parametrize("result", ["int32", "bool", "T"])
def test_results_of_halves_may_be_of_any_type(tmp_path: Path, result: str, dtype: str) -> None:
    """Halves are computed in float; what is no half is not rounded to one."""
    means = {"int32": 'convert(round(8 * x), "int32")', "bool": "x > 0.5", "T": "x + 0.25"}[result]
    rules_in(tmp_path, f"/// Its own.\nop own(x: T) -> {result} where T: real\n  role pointwise\n  means {means}\n")
    (tmp_path / "p.gen").write_text(f"x = @param:x -> {dtype}{{3, 65}}\ny = own(x)\n@return(y)\n")
    for options in (["--target", "gfx942"], ["--target", "host"], ["--device", "interpret"]):
        assert execute(["run", str(tmp_path / "p.gen"), "--rules", str(tmp_path), "--check", *options]) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("narrow", ["half", "bf16"])
@pytest.mark.parametrize(
    "means", ['convert(x, "{}") * 3', 'sqrt(abs(convert(x, "{}")))', 'x + convert(x, "{}")', 'convert(x, "{}")']
)
def test_what_is_rounded_within_a_meaning_is_computed_with(tmp_path: Path, means: str, narrow: str) -> None:
    """C++ has no operators on halves: what was rounded to one is a float again."""
    said = means.format(narrow)
    rules_in(tmp_path, f"/// Its own.\nop own(x: T) -> T where T: real\n  role pointwise\n  means {said}\n")
    (tmp_path / "p.gen").write_text("x = @param:x -> float{3, 65}\ny = own(x)\n@return(y)\n")
    assert execute(["run", str(tmp_path / "p.gen"), "--rules", str(tmp_path), "--check", "--target", "gfx942"]) == 0


def test_a_number_that_no_element_can_be_is_told_where_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules_in(tmp_path, "/// Its own.\nop own[a: int](x: T) -> T where T: number\n  role pointwise\n  means a * x\n")
    path = tmp_path / "p.gen"
    path.write_text("x = @param:x -> uint8{3}\ny = own[a=-3](x)\n@return(y)\n")
    assert execute(["run", str(path), "--rules", str(tmp_path), "--target", "host"]) == 2
    assert capsys.readouterr().err.startswith(f"{path}:2:1: error: -3 does not fit in uint8\n  y = own[a=-3](x)\n")


def test_an_operator_stays_where_nothing_is_cheaper(tmp_path: Path) -> None:
    assert operators(tmp_path, GELU, PROGRAM) == ["param", "own_gelu", "return"]


def test_rules_for_its_parts_apply_inside_of_it(tmp_path: Path) -> None:
    rule = "op quick(x: T) -> T where T: real\n  role pointwise\n  means erf(x)\n  cost 0.5\n"
    rule += "stage simplify\nrule quicker\n  erf(x)\n  => quick(x)\n"
    found = operators(tmp_path, GELU + rule, PROGRAM)
    assert "quick" in found
    assert "own_gelu" not in found


def test_rules_recognise_it_in_what_it_is_made_of(tmp_path: Path) -> None:
    rule = "op whole(x: T) -> T where T: real\n  role pointwise\n  means own(x)\n  cost 0.5\n".replace("own(x)", "x")
    rule += "stage simplify\nrule recognised\n  own_gelu(x)\n  => whole(x)\n  contract approximate 10\n"
    assert operators(tmp_path, GELU + rule, DISGUISED) == ["param", "whole", "return"]
    halves = DISGUISED.replace("float{", "half{")
    assert "whole" in operators(tmp_path, GELU + rule, halves)


def test_a_cost_of_its_own_has_it_recognised(tmp_path: Path) -> None:
    assert operators(tmp_path, f"{GELU}  cost 2\n", DISGUISED) == ["param", "own_gelu", "return"]
    assert "own_gelu" not in operators(tmp_path, GELU, DISGUISED)


def test_attributes_are_numbers_of_the_term(tmp_path: Path) -> None:
    rules = """
op leaky[alpha: float = 0.1](x: T) -> T where T: real
  role pointwise
  is where(greater(x, 0), x, mul(x, {alpha}))
  cost 1.5
"""
    program = """
x = @param:x -> float{4, 8}
g = greater(x, 0)
s = mul(x, 0.25)
y = where(g, x, s)
@return(y)
"""
    rules_in(tmp_path, rules)
    (tmp_path / "p.gen").write_text(program)
    lowered = genrw.load(tmp_path / "p.gen", rules=[tmp_path]).lower("simplify")
    node = lowered.modules[0].nodes[1]
    assert (node.op, node.attribute("alpha")) == ("leaky", 0.25)


def test_a_macro_is_gone_after_the_first_stage(tmp_path: Path) -> None:
    rules = """
op spread[axes: axes](x: T tensor) -> tensor(T, keepdims(x.lens, axes)) where T: number
  at nowhere
  is sub(reduce_{max}[axes](x), reduce_{min}[axes](x)) when product(x.lens[axes]) > 1
  is sub(x, x) when product(x.lens[axes]) == 1
  means reduce("max", x, axes) - reduce("min", x, axes)
"""
    program = "x = @param:x -> int32{4, N}\ny = spread[axes={1}](x)\n@return(y)\n"
    several = operators(tmp_path, rules, program.replace("N", "8"))
    assert {"reduce_max", "reduce_min", "sub"} <= set(several)
    assert "spread" not in several
    assert "reduce_max" not in operators(tmp_path, rules, program.replace("N", "1"))


def test_definitions_of_operators_that_are_defined(library: Library) -> None:
    text = f"{GELU}\nop outer(x: T) -> T where T: real\n  role pointwise\n  is add(own_gelu(x), exp(own_gelu(x)))\n"
    op = with_text(library, text).operator("outer")
    assert op.decl.means is not None
    assert "erf" in print_expr(op.decl.means)
    assert op.fixed_cost == 13


def test_a_definition_is_verified_against_the_meaning(library: Library) -> None:
    right = f"{GELU}  means 0.5 * x * (1 + erf(x / sqrt(2)))\n"
    wrong = right.replace("own_gelu", "wrong_gelu").replace("(1 + erf", "(2 + erf")
    whole = with_text(library, right + wrong)
    rules = {r.defines: r for r in whole.rules if r.defines in ("own_gelu", "wrong_gelu")}
    assert verify_rule(whole, rules["own_gelu"], Options(count=20)).status == TRIED
    assert verify_rule(whole, rules["wrong_gelu"], Options(count=20)).status == REFUTED


# ---- term functions


TERMS = """
define own_silu(x) = mul(x, sigmoid(x))
define own_rms[axes, epsilon](x) = mul(x, rsqrt(add(reduce_{mean}[axes](mul(x, x)), {epsilon})))
define filled(x, y) = mul(y, literal[value=0, dtype=x.type, lens=x.lens]())
"""


def test_a_term_function_stands_for_its_term_on_both_sides(tmp_path: Path) -> None:
    rules = f"""
{TERMS}
op quick(x: T) -> T where T: real
  role pointwise
  means x
  cost 0.1
stage simplify
rule both
  own_silu(exp(x))
  => quick(own_silu(own_silu(x)))
  replaces
  contract approximate 10
"""
    program = "x = @param:x -> float{4}\ne = exp(x)\ns = sigmoid(e)\ny = mul(s, e)\n@return(y)\n"
    found = operators(tmp_path, rules, program)
    assert "quick" in found
    assert "exp" not in found
    assert found.count("sigmoid") == 2
    other = "x = @param:x -> float{4}\nz = @param:z -> float{4}\ne = exp(x)\nf = exp(z)\ns = sigmoid(e)\ny = mul(s, f)\n@return(y)\n"
    assert "quick" not in operators(tmp_path, rules, other), "an operand that stands twice is one value"


def test_a_term_function_of_reductions_matches(tmp_path: Path) -> None:
    rules = f"""
{TERMS}
op quick[axes: axes, epsilon: float](x: T tensor) -> tensor(T, x.lens) where T: real
  at simplify
  means x
  cost 0.1
stage simplify
rule whole
  own_rms[axes, epsilon](x)
  => quick[axes, epsilon](x)
  replaces
  contract approximate 10
"""
    program = """
x = @param:x -> float{4, 8}
s = mul(x, x)
m = reduce_mean[axes={1}](s)
a = add(m, 0.5)
r = rsqrt(a)
y = mul(x, r)
@return(y)
"""
    assert "quick" in operators(tmp_path, rules, program)


def test_an_attribute_names_the_member_of_a_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = "stage simplify\ndefine folded[op, axes](x) = reduce_{op}[axes](x)\nrule r\n  neg(x) when x.rank > 0\n  => folded[op=OP, axes=[0]](x)\n  contract approximate 10\n"
    assert "nothing found" in told(tmp_path, rules.replace("OP", '"max"'), capsys)
    assert "a member of a family is" in told(tmp_path, rules.replace("OP", "3"), capsys)


def test_term_functions_in_imports_and_definitions(library: Library) -> None:
    text = f"{TERMS}\ndialect own\nimport OwnSilu(x) => own_silu(x)\nop own_made(x: T) -> T where T: real\n  role pointwise\n  is own_silu(x)\n"
    whole = with_text(library, text)
    assert whole.dialects["own"]["OwnSilu"][0].results[0].op == "mul"
    assert whole.operator("own_made").decl.means is not None


# ---- what is told


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op a(x: T) -> T where T: real\n  role pointwise\n  is mul(x, expp(x))", "unknown operator `expp`"),
        ("op a(x: T) -> T where T: real\n  role pointwise\n  is mul(x, y)", "`y` is not bound by the left side"),
        ("op a(x: T) -> T where T: real\n  role pointwise\n  is exp(a(x))", "`a` is defined by itself"),
        (
            "op a(x: T tensor) -> tensor(T, x.lens) where T: real\n  at nowhere\n  is exp(x) when x.rank > 1",
            "what this is made of does not tell what it means",
        ),
        (
            "op a(x: T) -> T where T: real\n  role pointwise\n  is exp(x) when x.rank + 1\n  means exp(x)",
            "not a condition",
        ),
        ("define a(x) = exp(expp(x))", "unknown operator `expp`"),
        ("define a(x) = exp(y)", "`y` is not bound by the left side"),
        ("define a(x, y) = exp(x)", "`y` of `a` is never used"),
        ("define exp(x) = neg(x)", "`exp` is an operator, too"),
        ("define a(x) = exp(a(x))", "`a` is defined by itself"),
        ("define a(x) = exp(x)\nrule r\n  a(x, x)\n  => x", "`a` takes 1 operands, not 2"),
        ("define a[n](x) = add(x, {n})\nrule r\n  neg(x)\n  => a(x)", "`a` needs its attribute `n`"),
        ("define a(x) = exp(x)\nrule r\n  neg(x)\n  => a[n=3](x)", "`a` has no attribute `n`"),
        ("define a(x) = exp(x)", "no rule calls the term function `a`"),
        (
            "define a(x) = literal[value=0, dtype=x.type, lens=x.lens]()\nrule r\n  neg(x)\n  => a(exp(x))",
            "`a` asks of what type `x` is, and does not contain it",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    shown = told(tmp_path, f"stage simplify\n{text}\n", capsys)
    assert message in shown
    assert "mine.rw:" in shown
    assert "^" in shown


def test_they_are_printed_and_laid_out() -> None:
    from genrw.grammar.rw_format import format_rw
    from genrw.grammar.rw_print import print_rw

    text = """define own_silu(x) = mul(x, sigmoid(x))

op a[n: int](x: T) -> T where T: real
  role pointwise
  is own_silu(add(x, {m})) when n > 3
  with m = n + 1
  is exp(x) when n <= 3
  means x
"""
    assert print_rw(parse_rw(text)) == text
    assert format_rw(text) == text
    assert format_rw(text.replace("  is", "     is").replace(", ", ",")) == text


def test_a_term_whose_attributes_cannot_be_computed_is_not_recognised(tmp_path: Path) -> None:
    """Shapes of what an operator does not take are no error: the term is something else."""
    rules = """
/// What has pairs: the sums of these.
op pair_sums(x: T tensor) -> tensor(T, halved(x.lens)) where T: number
  at simplify
  requires x.rank > 0 and x.lens[-1] % 2 == 0 "{x} has no pairs"
  is reshape[dims=halved(x.lens)](reduce_{sum}[axes=[x.rank]](reshape[dims=concat(halved(x.lens), [2])](x)))
  cost 0.1

let halved(lens) = concat(lens[:-1], [lens[-1] // 2])

stage simplify

/// Sums of pairs of one pair.
rule pair_sums_of_two
  pair_sums(x) when x.elements == 2
  => reduce_{sum}[axes=[x.rank - 1]](x)
"""
    program = (
        "x = @param:x -> float{}\na = reshape[dims={1, 1}](x)\nb = reduce_sum[axes={0}](a)\ny = reshape[dims={}](b)\n"
    )
    assert "pair_sums" not in operators(tmp_path, rules, program + "@return(y)\n")
    pairs = "x = @param:x -> float{3, 8}\na = reshape[dims={3, 4, 2}](x)\nb = reduce_sum[axes={2}](a)\n"
    assert "pair_sums" in operators(tmp_path, rules, pairs + "y = reshape[dims={3, 4}](b)\n@return(y)\n")
