"""`genrw rules verify` on monoids: what folds rely on holds of the shipped ones, and what does not hold is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library
from genrw.engine.library.library import Library
from genrw.engine.verify.monoids import try_monoid
from genrw.engine.verify.verdict import REFUTED, TRIED, Options, Verdict, verify
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.main import execute
from genrw.program import Program

WRONG = {
    "not associative": "monoid wrong where T: real\n  identity 0\n  combine (a + b) / 2 if a != 0 and b != 0 else a + b\n",
    "not commutative": "monoid wrong\n  carry v: T, seen: bool\n  element v = x, seen = true\n  identity v = 0, seen = false\n"
    "  combine v = a.v if a.seen else b.v, seen = a.seen or b.seen\n  finish v\n",
    "identity is not neutral": "monoid wrong\n  identity 0\n  combine max(a, b)\n",
    "drops fractions": "monoid wrong where T: real\n  carry mean: T, count: int32\n  element mean = x, count = 1\n"
    "  identity mean = 0, count = 0\n  combine mean = a.mean + (b.mean - a.mean) * (b.count / max(a.count + b.count, 1)),"
    " count = a.count + b.count\n  finish mean\n",
    "result of int64 drops fractions": "monoid wrong where T: real\n  identity 0\n  combine a + b\n  finish a / n\n"
    "  result int64\n",
    "identity is not neutral for int8": "monoid wrong where T: int8\n  identity 100\n  combine min(a, b)\n",
}
RIGHT = """
/// The average, by a field that counts.
monoid average
  carry total: T, count: T
  element total = x, count = 1
  identity total = 0, count = 0
  combine total = a.total + b.total, count = a.count + b.count
  finish total / count

/// The largest magnitude.
monoid magnitude where T: real
  element abs(x)
  identity 0
  combine max(a, b)

/// The root of the sum of squares.
monoid norm where T: real
  element x * x
  identity 0
  combine a + b
  finish sqrt(a)

/// The product of elements above 0, by logarithms.
monoid log_product where T: real
  element log(x)
  identity 0
  combine a + b
  finish exp(a)
  domain x > 0.5 and x < 2
"""


def verdict_on(folder: Path, text: str) -> Verdict:
    (folder / "mine.rw").write_text(text)
    library = load_library([folder])
    return verify(library, library.monoids["wrong"], Options())


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_monoid_is_refuted(said: str, tmp_path: Path) -> None:
    verdict = verdict_on(tmp_path, WRONG[said])
    assert verdict.status == REFUTED
    assert verdict.problem is not None
    assert said in verdict.problem.message
    assert verdict.problem.remedy
    assert verdict.problem.span is not None
    assert verdict.problem.span.source.name.endswith("mine.rw")


def test_a_monoid_that_cannot_be_evaluated_is_refused_before(tmp_path: Path) -> None:
    with pytest.raises(GenrwError, match="`concat` cannot be printed") as raised:
        verdict_on(tmp_path, "monoid wrong\n  identity 0\n  combine concat([a], b)\n")
    assert raised.value.diagnostics[0].span is not None
    assert raised.value.diagnostics[0].span.text == "concat([a], b)"


def test_elements_show_it(tmp_path: Path) -> None:
    """Those of few and ordinary elements, where there are such."""
    shown = verdict_on(tmp_path, WRONG["not commutative"]).shown
    assert "combine(a, b): v = " in shown
    assert "combine(b, a): v = " in shown
    assert "nan" not in shown


def test_shipped_monoids_hold(library: Library) -> None:
    wrong = {name: try_monoid(library, monoid, 20, "shipped")[1] for name, monoid in library.monoids.items()}
    assert not {name: found.reason for name, found in wrong.items() if found is not None}


def test_right_monoids_hold(tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(RIGHT)
    library = load_library([tmp_path])
    for name in ("average", "magnitude", "norm", "log_product"):
        verdict = verify(library, library.monoids[name], Options())
        assert (verdict.status, verdict.problem) == (TRIED, None), name
        assert verdict.instances


def test_the_command_verifies_monoids(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.rw").write_text(RIGHT + WRONG["not associative"])
    assert execute(["rules", "verify", "--rules", str(tmp_path), "--json"]) == 1
    entries = json.loads(capfd.readouterr().out)
    assert [(e["kind"], e["rule"], e["status"] == REFUTED) for e in entries] == [
        *(("monoid", name, False) for name in ("average", "magnitude", "norm", "log_product")),
        ("monoid", "wrong", True),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "monoid m\n  carry n: T, s: T\n  identity n = 0, s = 0\n  combine n = a.n, s = a.s\n  finish s / n\n",
            "`n` is the number of elements, and nothing else may be called so here",
        ),
        (
            "monoid m\n  carry a: T, s: T\n  identity a = 0, s = 0\n  combine a = a.a, s = a.s\n  finish s\n",
            "`a` is the accumulator, and nothing else may be called so here",
        ),
        (
            "monoid m\n  carry half: T\n  identity half = 0\n  combine half = a.half\n  finish half\n",
            "`half` is an element type, and nothing else may be called so here",
        ),
        ("monoid m\n  carry s: T, s: T\n  identity s = 0\n  combine s = a.s\n  finish s\n", "carries `s` twice"),
        ("monoid m\n  carry s: T\n  identity s = 0\n  combine s = a.s + b.s\n", "nothing says which result"),
        ("monoid m where U: real\n  identity 0\n  combine a + b\n", "has no type `U`"),
        ("monoid m where T: reals\n  identity 0\n  combine a + b\n", "no element type or class `reals`"),
    ],
)
def test_declarations_are_checked(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(text)
    with pytest.raises(GenrwError) as caught:
        load_library([tmp_path])
    assert message in " | ".join(d.message for d in caught.value.diagnostics)


@pytest.mark.parametrize(("monoid", "dtype"), [("sum", "bool"), ("any", "float"), ("powers", "int64")])
def test_elements_of_other_types_are_refused(monoid: str, dtype: str, library: Library) -> None:
    text = f"x = @param:x -> {dtype}{{4, 8}}\ny = reduce_{monoid}[axes={{1}}](x)\n@return(y)\n"
    with pytest.raises(GenrwError, match=f"folds with `{monoid}`, which takes"):
        Program.parse(Source("test.gen", text), library)
