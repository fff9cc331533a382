"""`genrw rules why-not`: the deepest match that there is, and what it fails at."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from commands import Command
from support import load

from genrw.authoring.rulesets import load_library
from genrw.coverage.observed import Coverage

RULES = """\
stage simplify

rule no_root
  tanh(x)
  => x

rule no_operand
  sqrt(exp(neg(x)))
  => x

rule other_attribute
  exp(reduce_sum[axes=[0]](x))
  => exp(x)

rule other_default
  pad[pads](x)
  => pad[pads](neg(x))

rule not_equal
  add(x, x)
  => x

rule guard_fails
  r@add(x, y) when r.rank == 2 and x.lens == y.lens and few(x.elements)
  => y

rule no_alternative
  r@add(x, y) when r.elements % n == 0
  => sub(x, y)
  for n in [3, 5]

rule other_target
  exp(x) when many(x.rank, target) and x.rank > 0
  => x

rule applies
  sqrt(exp(x)) when x.rank == 2
  => neg(x)

let few(n) = n < 4
let many(n, target) = n > target.wave_size
"""

PROGRAM = """\
x = @param:x -> float{8, 4}
y = @param:y -> float{8, 4}
a = add(x, y)
r = reduce_sum[axes={1}](a)
e = exp(r)
q = sqrt(e)
s = pad[pads={1, 0, 1, 0}, mode=edge](y)
@return(q, s)
"""


@pytest.fixture
def told(genrw: Command, tmp_path: Path) -> dict[str, str]:
    """What is said of each rule: the column of the caret and the message."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.rw").write_text(RULES)
    (tmp_path / "a.gen").write_text(PROGRAM)
    found = {}
    for name in [line.split()[1] for line in RULES.splitlines() if line.startswith("rule")]:
        result = genrw("rules", "why-not", name, tmp_path / "a.gen", "--rules", tmp_path / "rules")
        assert (result.status, result.err) == (0, "")
        found[name] = result.out
    return found


def pointed(out: str) -> tuple[str, str]:
    """The message, and the text above the carets."""
    _, head, line, carets = out.splitlines()[:4]
    first = carets.index("^")
    return head.partition(": note: ")[2], line[first : first + carets.count("^")]


def test_what_is_told(told: dict[str, str]) -> None:
    nowhere = "there is no `tanh` anywhere in the program at this stage"
    assert pointed(told["no_root"]) == (nowhere, "tanh")
    assert pointed(told["no_operand"]) == ("no `neg` is here: there is `reduce_sum`", "neg")
    assert pointed(told["other_attribute"]) == ("`axes` is [1] here", "axes=[0]")
    assert pointed(told["other_default"]) == ("`mode` is edge, not its default: write `..` for any", "pad")
    assert pointed(told["not_equal"]) == ("`x` stands for another value already", "x")
    assert pointed(told["guard_fails"]) == ("this does not hold: x.elements is 32", "few(x.elements)")
    assert pointed(told["no_alternative"]) == ("this does not hold: r.elements is 32, n is 3", "r.elements % n == 0")
    assert pointed(told["other_target"]) == (
        "this does not hold: x.rank is 2, target is gfx942",
        "many(x.rank, target)",
    )
    assert told["applies"].startswith("simplify, module `main`: `applies` (")
    assert "applies; `genrw explain` tells what it made" in told["applies"]


def test_what_cannot_be_asked(genrw: Command, softmax: Path) -> None:
    result = genrw("rules", "why-not", "nonesuch", softmax)
    assert (result.status, "there is no rule `nonesuch`" in result.err) == (2, True)
    result = genrw("rules", "why-not", "make_pointwise", softmax)
    assert (result.status, "asked about single operations" in result.err) == (2, True)


def test_a_later_stage_and_the_context(genrw: Command, softmax: Path) -> None:
    out = genrw("rules", "why-not", "fold_lane", softmax, "--schedule", "algo=wave").out
    assert out.startswith("lanewise, module `main`: `fold_lane` does not apply\n")
    assert pointed(out) == ("`algo` is wave here", 'algo="lane"')
    out = genrw("rules", "why-not", "row_of_wave", softmax, "--schedule", "algo=block").out
    numbers = "schedule.block_size is 128, schedule.lanes is 128"
    assert pointed(out) == (f"this does not hold: {numbers}", "schedule.lanes < schedule.block_size")
    out = genrw("rules", "why-not", "fold_wave", softmax, "--schedule", "algo=block").out
    counts = "there is no `row_fold` of 1 operand in the program at this stage, but of 2"
    assert pointed(out) == (counts, "row_fold")


HALVES = """\
a = @param:a -> half{64, 128}
b = @param:b -> half{64, 1}
p = exp(a)
q = exp(b)
y = mul(p, q)
@return(y)
"""

LATE = """\
stage simplify

rule soon
  mul(exp(x), exp(y))
  => exp(add(x, y))

rule late
  mul(exp(x), multibroadcast[out_lens](exp(y))) when x.type == "half"
  => exp(add(x, multibroadcast[out_lens](y)))

rule nothing_left
  r@exp(x) when r.rank == n
  => sqrt(x)
  for n in [m for m in [x.rank] if m > 2]
"""


def test_it_says_what_cover_says(genrw: Command, tmp_path: Path) -> None:
    """Halves with operands that repeat: what a rule would match is gone before the rest of it is there."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.rw").write_text(LATE)
    (tmp_path / "a.gen").write_text(HALVES)
    out = genrw("rules", "cover", tmp_path / "a.gen", "--rules", tmp_path / "rules", "--json").out
    fired = {entry["name"]: entry["fired"] for entry in json.loads(out)}
    for name in ("soon", "late", "nothing_left"):
        told = genrw("rules", "why-not", name, tmp_path / "a.gen", "--rules", tmp_path / "rules").out
        assert ("applies; `genrw explain`" in told) == fired[name], told
    assert (fired["soon"], fired["late"]) == (True, False)
    late = genrw("rules", "why-not", "late", tmp_path / "a.gen", "--rules", tmp_path / "rules").out
    message, at = pointed(late)
    assert message.startswith("this `mul` is replaced by `broadcast_operands`")
    assert message.endswith("before all of the rest is there")
    assert at == "mul"
    left = genrw("rules", "why-not", "nothing_left", tmp_path / "a.gen", "--rules", tmp_path / "rules").out
    assert pointed(left) == ("there is nothing that `n` could be", "[m for m in [x.rank] if m > 2]")


REPEATED = """\
x = @param:x -> half{16, 32, 1}
y = @param:y -> half{1, 32, 48}
a = multibroadcast[out_lens={16, 32, 48}](x)
b = multibroadcast[out_lens={16, 32, 48}](y)
m = mul(a, b)
z = reduce_sum[axes={1}](m)
@return(z)
"""


def test_both_say_the_same_where_programs_are_cut(genrw: Command, tmp_path: Path) -> None:
    """Of rules that make what other rules go on with, too."""
    (tmp_path / "a.gen").write_text(REPEATED)
    library = load_library()
    of_programs = sorted({rule.name for rule in library.rules if library.fusing_stage in rule.stages})
    of_programs = [name for name in of_programs if not name.startswith("make_")]  # these are asked about operations
    names = {"sum_of_widened_products", "sum_of_products", *Random(0).sample(of_programs, 6)}
    coverage = Coverage(library, frozenset(names))
    coverage.add([load(REPEATED)])
    fired = {row.rule.name: row.fired for row in coverage.rows()}
    assert fired.keys() == names
    assert fired["sum_of_widened_products"]
    assert not all(fired.values())
    for name in names:
        told = genrw("rules", "why-not", name, tmp_path / "a.gen").out
        assert ("applies; `genrw explain`" in told) == fired[name], told


def test_facts_of_indices_are_known(genrw: Command, softmax: Path) -> None:
    """Ranges and divisors stand in the e-graph: guards over them are asked, not given up."""
    out = genrw("rules", "why-not", "read_vectors", softmax).out
    assert "cannot be told" not in out
    assert "a Value has no member" not in out


UNTOLD = """\
stage final

rule making
  vector_read_if[..](x, i, c, f) => vector_read_if[..](x, imax(i * 1, 7), c, f)

rule asking
  imax(i, 7) when i.type == "int64"
  => i
"""


def test_a_type_that_no_rule_told(genrw: Command, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.rw").write_text(UNTOLD)
    (tmp_path / "a.gen").write_text("x = @param:x -> float{64, 100}\ns = reduce_sum[axes={1}](x)\n@return(s)\n")
    out = genrw("rules", "why-not", "asking", tmp_path / "a.gen", "--rules", tmp_path / "rules").out
    expected = "all of it matches, but the type of `i` is asked, which no rule told that made it"
    assert pointed(out) == (expected, "i")
