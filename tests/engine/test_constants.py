"""Numbers in rules that stand for constants: which constants they match, and which they make."""

from __future__ import annotations

import pytest

import genrw
from genrw.engine.ir.dtypes import is_constant, same_value
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.lint.examples import run_example
from genrw.engine.verify.verdict import REFUTED, TRIED, Options, verify_rule
from genrw.grammar.rw import parse_rw
from genrw.main import execute


def with_rule(library: Library, rule: str) -> Library:
    """The shipped rules and one more."""
    return build_library([*library.files, parse_rw(f"stage simplify\n\n{rule}", "mine.rw")])


TRIPLE = """
rule triple
  mul(x, 3)
  => trebled(x)
  replaces
op trebled(x: T) -> T where T: number
  role pointwise
  means x * 3
"""


def operators(tmp_path, rule: str, program: str, stage: str = "simplify") -> list[str]:
    """The operators of a program after a stage with a rule of one's own."""
    (tmp_path / "mine.rw").write_text(f"stage {stage}\n{rule}")
    (tmp_path / "p.gen").write_text(program)
    lowered = genrw.load(tmp_path / "p.gen", rules=[tmp_path]).lower(stage)
    return [node.op for module in lowered.modules for node in module.nodes]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "constant",
    [
        "y = mul(x, 3)",
        "y = mul(3.0, x)",
        "c = @literal{3} -> float{4, 8}\ny = mul(c, x)",
        "c = @literal{3} -> float{1, 8}\ny = mul(x, c)",
        "c = @literal{3, 3, 3, 3, 3, 3, 3, 3} -> float{8}\ny = mul(x, c)",
        "c = @literal{3} -> float{}\nb = multibroadcast[out_lens={4, 8}](c)\ny = mul(x, b)",
        "c = @literal{3} -> float{8}\nb = broadcast[axis=1, out_lens={4, 8}](c)\ny = mul(x, b)",
        "c = @literal{3} -> half{4, 8}\nb = convert[target_type=float](c)\ny = mul(x, b)",
        "c = @literal{3} -> int32{}\nb = convert[target_type=float](c)\nd = multibroadcast[out_lens={4, 8}](b)\ny = mul(d, x)",
        "c = @literal{3} -> float{8, 4}\nb = transpose[permutation={1, 0}](c)\ny = mul(x, b)",
        "c = @literal{3} -> float{32}\nb = reshape[dims={4, 8}](c)\ny = mul(x, b)",
        "c = @literal{3} -> float{4, 9}\nb = slice[axes={1}, starts={0}, ends={8}](c)\ny = mul(x, b)",
    ],
)
def test_a_number_matches_a_constant_however_a_program_gets_there(tmp_path, constant: str) -> None:
    found = operators(tmp_path, TRIPLE, f"x = @param:x -> float{{4, 8}}\n{constant}\n@return(y)\n")
    assert found == ["param", "trebled", "return"]


@pytest.mark.parametrize("dtype", ["half", "bf16", "double", "int32"])
def test_a_number_matches_constants_of_every_type(tmp_path, dtype: str) -> None:
    found = operators(tmp_path, TRIPLE, f"x = @param:x -> {dtype}{{4, 8}}\ny = mul(x, 3)\n@return(y)\n")
    assert "trebled" in found
    assert "mul" not in found


@pytest.mark.parametrize(
    "constant",
    [
        "y = mul(x, 3.5)",
        "c = @literal{-3} -> float{4, 8}\ny = mul(c, x)",
        "c = @param:c -> float{8}\ny = mul(c, x)",
        "c = @literal{3, 3, 3, 3, 3, 3, 3, 4} -> float{8}\ny = mul(x, c)",
    ],
)
def test_another_constant_does_not_match(tmp_path, constant: str) -> None:
    found = operators(tmp_path, TRIPLE, f"x = @param:x -> float{{4, 8}}\n{constant}\n@return(y)\n")
    assert "trebled" not in found


def test_a_constant_that_enlarges_the_shape_repeats_the_operand_first(tmp_path) -> None:
    (tmp_path / "mine.rw").write_text("stage simplify\nrule keep\n  mul(x, 1)\n  => x\n")
    (tmp_path / "p.gen").write_text(
        "x = @param:x -> float{4, 1}\nc = @literal{1} -> float{4, 8}\ny = mul(x, c)\n@return(y)\n"
    )
    assert execute(["run", str(tmp_path / "p.gen"), "--rules", str(tmp_path), "--check"]) == 0


def test_a_pattern_of_several_constants_matches_halves(tmp_path) -> None:
    rule = """
rule recognised
  mul(mul(0.5, x), add(2.0, sin(mul(x, 0.70710678118654752))))
  => wave(x)
  contract approximate 0.001
  replaces
op wave(x: T) -> T where T: real
  role pointwise
  means x * 0.5 * (2 + sin(x * 0.70710678118654752))
"""
    for dtype in ("float", "half", "bf16"):
        program = f"""
x = @param:x -> {dtype}{{4, 8}}
a = mul(0.70710678118, x)
e = sin(a)
o = add(e, 2.0)
h = mul(x, 0.5)
y = mul(o, h)
@return(y)
"""
        assert "wave" in operators(tmp_path, rule, program)


EXAMPLES = """
/// A number that is bound, one that is computed, and one whose type only its neighbour's neighbour tells.
rule bound
  pow(x, {n}) when n == 3
  => mul(mul({n * 2}, add(1, exp(x))), x)
  given x: half{4}
  example pow(x, 3.0) gives mul(mul(6.0, add(1, exp(x))), x)

/// The whole right side is a constant of the left side's type and shape.
rule nothing
  sub(x, x) when is_integer(x.type)
  => 0
  given x: int32{4}, y: int32{4} = 0
  example sub(x, x) gives y

/// Operands that are no numbers, of another type too.
rule chosen
  where(c, x, 0)
  => mul(convert[target_type=x.type](c), x)
  contract approximate 1
  given c: bool{4}, x: float{4}, z: float{2, 4} = 0
  example where(c, x, 0) gives mul(convert[target_type=float](c), x)
  counterexample where(c, x, z)

/// Programs get at their constants in many ways, an example's too.
rule converted
  mul(x, 0.1)
  => div(x, 10)
  contract approximate 0.001
  given c: half{} = 0.1, x: float{4}
  example mul(multibroadcast[out_lens=[4]](convert[target_type=float](c)), x) gives div(x, 10)

/// Both sides of a rule in both directions.
rule doubled
  add(x, x) <=> mul(x, 2)
  given x: float{4}
  example add(x, x) gives mul(x, 2)

/// What is to be joined.
op set_beside[axis: axis](xs: T tensor...) -> tensor(T, concat_lens(axis, [x.lens for x in xs])) where T: number
  at nowhere
  means concat(axis, xs)

/// Templates over operands that are left.
rule shifted
  set_beside[axis](xs...)
  => concat[axis](add(xs, 1)...)
  contract approximate 1
  given x: float{4}, y: float{3}
  example set_beside[axis=0](x, y) gives concat[axis=0](add(x, 1), add(y, 1))
"""


def test_numbers_of_right_sides_are_constants_of_the_right_type(library: Library) -> None:
    whole = with_rule(library, EXAMPLES)
    mine = [rule for rule in whole.rules if rule.name_span.source.name == "mine.rw" and rule.examples]
    assert len(mine) == 6
    for rule in mine:
        for example in rule.examples:
            assert run_example(whole, rule, example) is None, rule.name


def test_both_directions_of_a_rule_with_numbers_run(tmp_path) -> None:
    both = "op twice(x: T) -> T where T: number\n  role pointwise\n  means x * 2\n  cost 0.5\n"
    rules = both + "rule doubled\n  add(x, x) <=> mul(x, 2)\nrule seen\n  add(x, x)\n  => twice(x)\n"
    found = operators(tmp_path, rules, "x = @param:x -> float{4}\ny = mul(x, 2)\n@return(y)\n")
    assert "twice" in found


def test_the_constants_of_lanes_match_as_well(tmp_path) -> None:
    rule = TRIPLE.replace("  means x * 3", "  at lanewise, final\n  means x * 3")
    found = operators(tmp_path, rule, "x = @param:x -> float{256, 64}\ny = mul(x, 3)\n@return(y)\n", "lanewise")
    assert "trebled" in found


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("rule a\n  exp(_x)\n  => concat[axis=0](3, 4)", "nothing beside this number tells its type"),
        ("rule a\n  add(x, x) <=> 3", "a rule that rewrites both ways has an operator on each side"),
    ],
)
def test_a_number_that_means_nothing_is_told(tmp_path, capsys, rule: str, told: str) -> None:
    (tmp_path / "mine.rw").write_text(f"stage simplify\n{rule}\n")
    assert execute(["rules", "check", "--rules", str(tmp_path)]) != 0
    shown = capsys.readouterr()
    assert told in shown.out + shown.err
    assert "^" in shown.out + shown.err


def test_a_number_without_a_type_among_lanes_is_told(tmp_path, capsys) -> None:
    (tmp_path / "mine.rw").write_text("stage final\nrule a\n  add(x, x)\n  => mul(x, 2)\n")
    assert execute(["rules", "check", "--rules", str(tmp_path)]) != 0
    shown = capsys.readouterr()
    assert "write a lane's constant" in shown.out + shown.err


def test_why_not_tells_the_other_number(tmp_path, capsys) -> None:
    (tmp_path / "mine.rw").write_text(f"stage simplify\n{TRIPLE}")
    (tmp_path / "p.gen").write_text("x = @param:x -> float{4}\ny = mul(x, 3.5)\n@return(y)\n")
    execute(["rules", "why-not", "triple", str(tmp_path / "p.gen"), "--rules", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "another number is here: 3.5" in shown


@pytest.mark.slow
def test_rules_with_numbers_are_verified(library: Library) -> None:
    right = "rule right\n  sub(sub(x, 1), 2)\n  => sub(x, 3)\n  contract approximate 0.01\n"
    wrong = "rule wrong\n  sub(sub(x, 1), 2)\n  => sub(x, 1)\n  contract approximate 0.01\n"
    whole = with_rule(library, right + wrong)
    verdicts = {r.name: verify_rule(whole, r, Options(count=30)) for r in whole.rules if r.name in ("right", "wrong")}
    assert verdicts["right"].instances >= 30
    assert verdicts["right"].status == TRIED
    assert verdicts["wrong"].status == REFUTED


@pytest.mark.parametrize(
    ("value", "number", "dtype", "same"),
    [
        (3, 3.0, "float", True),
        (3, 3.0, "int32", True),
        (0.0999755859375, 0.1, "float", True),
        (0.1, 0.1, "half", True),
        (0.0999755859375, 0.1, "int32", False),
        (0.09, 0.1, "float", False),
        (0.0, -0.0, "float", False),
        (float("nan"), float("nan"), "float", True),
        (True, 1, "bool", False),
        (True, True, "bool", True),
        (float("-inf"), float("-inf"), "double", True),
    ],
)
def test_which_constants_are_a_number(value: float, number: float, dtype: str, same: bool) -> None:
    assert is_constant(value, number, dtype) is same


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (0.0, -0.0, False),
        (0, -0.0, False),
        (0, 0.0, True),
        (float("nan"), float("nan"), True),
        (True, 1, False),
        ((1, 2.0), [1, 2], True),
        ((1, -0.0), (1, 0.0), False),
        ("half", "half", True),
        ("half", 0.0, False),
    ],
)
def test_which_attributes_are_one(a: object, b: object, same: bool) -> None:
    assert same_value(a, b) is same
    assert same_value(b, a) is same
