"""Texts of operators compared with what the operators mean."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library
from genrw.codegen.runtime import host
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.verify.verdict import OPEN, REFUTED, TRIED, Options, Verdict
from genrw.grammar.diagnostics import error
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import OpDecl
from genrw.verifying.kernel_texts import is_made_in_kernels, verify_in_kernels
from genrw.verifying.operator_texts import has_text, verify_text

ROOT = Path(__file__).parents[2]


def verdict(library: Library, text: str, **settings: bool) -> Verdict:
    whole = build_library([*library.files, parse_rw(text, "mine.rw")])
    op = whole.operators["mine"].decl
    assert has_text(op)
    return verify_text(whole, op, Options(4), 60.0, **{"trusted": True, **settings})


@pytest.mark.parametrize(
    "text",
    [
        'op mine(x: T, y: T) -> T where T: number\n  role pointwise\n  means x + y\n  emit "{{x}} + {{y}}" prec add\n',
        # nearly 0, a difference of squares is off by far more than a rounding of itself
        'op mine(x: T, y: T) -> T where T: real\n  role pointwise\n  means x * x - y * y\n  domain abs(x) < 1e9, abs(y) < 1e9\n'
        '  emit "{{x}} * {{x}} - {{y}} * {{y}}" prec add\n',
        # in float there is no more than the text gives
        'op mine(x: float) -> float\n  role pointwise\n  means log(exp(x))\n  emit "gen::log(gen::exp({{x}}))"\n',
        'op mine(x: float) -> float\n  role pointwise\n  means 1 / x\n  within 1e-3\n  domain abs(x) > 1e-9, abs(x) < 1e9\n'
        '  emit "1.0001f / {{x}}" prec mul\n',
        # rules and definitions may make something else of it
        'op mine(x: float) -> float\n  role pointwise\n  at nowhere\n  is add(x, 1)\n  emit "{{x}} + 1" prec add\n',
        'op mine[k: int, up: bool = false](x: bool) -> int32\n  role pointwise\n  means k if x else (1 if up else 0)\n'
        '  emit "{{x}} ? {{k}} : {{1 if up else 0}}" prec cond\n',
        'op mine(x: float) -> float\n  role pointwise\n  means mine_twice(x) / 2\n  emit "{{x}}" prec atom\n'
        'let mine_twice(x) = x + x\n',
    ],
)  # fmt: skip
def test_what_holds(library: Library, text: str) -> None:
    found = verdict(library, text)
    assert found.status == TRIED, (found.problem, found.shown)
    assert found.instances > 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('op mine(x: T, y: T) -> T where T: number\n  role pointwise\n  means x + y\n  emit "{{x}} - {{y}}" prec add\n', "y = "),
        ('op mine(x: T) -> T where T: real\n  role pointwise\n  means max(x, 0)\n  emit "{{x}} > 0 ? {{x}} : 0" prec cond\n', "x = nan"),
        ('op mine(x: float) -> float\n  role pointwise\n  means x + 1\n'
         '  emit "{{x}} {{\'-\' if target.wave_size == 32 else \'+\'}} 1" prec add\n', "the text gives"),
        ('op mine(x: float) -> float\n  role pointwise\n  means sin(x)\n  within 1e-6\n  emit "gen::sin({{x}}) * 1.001f" prec mul\n',
         "within 1e-06"),
        ('op mine[target_type: dtype](x: float) -> target_type\n  role pointwise\n  means convert(x, target_type)\n'
         '  emit "{{type}}({{x}} > 100 ? 100 : {{x}})"\n', "the text gives 100"),
        # from the types that it takes all are tried
        ('op mine(x: T) -> T where T: integer\n  role pointwise\n  means -x\n'
         '  emit "{{x}} == 7 && sizeof({{x}}) == 8 ? {{x}} : {{type}}(-{{x}})" prec cond\n', "x = 7"),
    ],
)  # fmt: skip
def test_what_does_not(library: Library, text: str, shown: str) -> None:
    found = verdict(library, text)
    assert found.status == REFUTED, found.problem
    assert found.problem is not None
    assert "the text of `mine` is not what the operator means" in found.problem.message
    assert shown in f"{found.problem.message}\n{found.shown}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('op mine(x: float) -> float\n  role pointwise\n  means x\n  emit "{{x}} +"\n', "kernel mine does not compile"),
        ('op mine(x: float) -> float\n  role pointwise\n  means x\n  emit "*(float*)0 * {{x}}"\n  device "#include <a>"\n', "not trusted"),
        ('op mine[k: ints](x: float) -> float\n  role pointwise\n  means x\n  emit "{{x}}"\n', "was not compared"),
    ],
)  # fmt: skip
def test_what_says_nothing(library: Library, text: str, said: str) -> None:
    whole = build_library([*library.files, parse_rw(text, "mine.rw")])
    whole = replace(whole, foreign=frozenset({"mine"}))
    found = verify_text(whole, whole.operators["mine"].decl, Options(4), 60.0, trusted=False)
    assert found.status == OPEN
    assert found.problem is not None
    assert said in found.problem.message


def test_where_there_is_no_compiler_it_is_said(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: str | None) -> None:
        raise error("there is no C++ compiler")

    monkeypatch.setattr(host, "host_compiler", none)
    text = 'op mine(x: float) -> float\n  role pointwise\n  means x + 0.125\n  emit "{{x}} + 0.125f" prec add\n'
    found = verdict(library, text)
    assert found.status == OPEN
    assert found.problem is not None
    assert "there is no C++ compiler" in found.problem.message


def shipped() -> list[OpDecl]:
    """Shipped operators that have texts."""
    return [op.decl for op in load_library().operators.values() if has_text(op.decl)]


@pytest.mark.parametrize(
    "op", [pytest.param(op, marks=pytest.mark.slow if op.name == "convert" else (), id=op.name) for op in shipped()]
)
def test_the_shipped_ones_hold(library: Library, op: OpDecl) -> None:
    found = verify_text(library, op, Options(1), 60.0, trusted=True)
    assert found.status == TRIED, (found.problem, found.shown)


# ---- operators that rules make in kernels


def tree(text: str, folder: Path) -> Verdict:
    """The tree of the docs, with another text."""
    page = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    found = re.search(r"^```rw file=mine/tree.rw\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    right = "Op::combine(memory[lane], memory[lane + n])"
    assert found[1].count(right) == 1
    (folder / "tree.rw").write_text(found[1].replace(right, text or right))
    library = load_library([folder])
    op = library.operators["tree_reduce"].decl
    assert is_made_in_kernels(library, op)
    return verify_in_kernels(library, op, Options(), 60.0, trusted=False)


def test_a_lane_operator_holds(tmp_path: Path) -> None:
    found = tree("", tmp_path)
    assert found.status == TRIED, (found.problem, found.shown)
    assert found.instances > 1


def test_a_wrong_lane_operator_is_found(tmp_path: Path) -> None:
    found = tree("Op::combine(memory[lane], memory[lane])", tmp_path)
    assert found.status == REFUTED
    assert found.problem is not None
    assert (
        "the text of `tree_reduce` is not what the operator means: as it is printed, the result"
        in found.problem.message
    )
    assert "tree_reduce[" in found.shown


def test_a_lane_operator_that_does_not_compile_is_told(tmp_path: Path) -> None:
    found = tree("Op::combine(memory[lane])", tmp_path)
    assert found.status == OPEN
    assert found.problem is not None
    assert "the text of `tree_reduce` was not tried: in the `device` of `tree_reduce`: kernel" in found.problem.message


def test_shipped_operators_of_kernels_are_not_tried_again(library: Library) -> None:
    assert not any(is_made_in_kernels(library, op.decl) for op in library.operators.values())
