"""The work of lowering grows with the program and no faster. Work is counted, not timed: terms, questions, rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import pytest
from support import WAVE64, load

from genrw.authoring.rulesets import load_library
from genrw.engine.egraph.stage import EGraphSnapshot, StageEngine
from genrw.engine.library.library import Library
from genrw.engine.lowering.pipeline import Pipeline

pytestmark = pytest.mark.few(1)

HOST = "host"


@dataclass
class Work:
    """What the stages of a program did, all together: the terms that they had, the questions that they asked Python, the
    rules that they ran, each with the operands that its encodings name, and how often egglog ran a ruleset.

    egglog plans a rule once for each fact of its body, and compares all of them with one another for that: those comparisons
    are the `plans`.
    """

    terms: int = 0
    questions: int = 0
    rules: int = 0
    plans: int = 0
    runs: int = 0


@pytest.fixture
def work(library: Library, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Work]:
    """Lowers a program for a target, with nothing remembered, and says what that took; maybe with more rules."""
    run, one_round = StageEngine.run, StageEngine._round
    done = Work()

    def counted(engine: StageEngine, *given: Any) -> EGraphSnapshot:
        graph = run(engine, *given)
        done.terms += sum(map(len, graph.classes.values())) + sum(map(len, graph.replaced.values()))
        done.questions += sum(graph.answered.demands.values())
        done.rules += sum(e.inputs + e.outputs + 1 for e in engine.encoded.values())
        done.plans += sum(len(c.rule.body) ** 3 for e in engine.encoded.values() for c in e.commands)
        return graph

    def stepped(engine: StageEngine, *given: Any) -> Any:
        rules, asking, sizes = one_round(engine, *given)
        done.runs += len(rules.iterations) + len(asking.iterations)
        return rules, asking, sizes

    def lowered(text: str, target: str, rules: Library = library) -> Work:
        done.__init__()  # type: ignore[misc]
        program = load(text, target, rules)
        Pipeline(rules).lower(program.units, rules.stages[-1], program.options)
        return replace(done)

    monkeypatch.setattr(StageEngine, "run", counted)
    monkeypatch.setattr(StageEngine, "_round", stepped)
    return lowered


def wide_return(results: int) -> str:
    """Results of different shapes, each of a kernel of its own, and three tensors side by side, for which there are rules of
    any number of operands."""
    lines = ["x = @param:x -> float{64, 96}", "y = concat[axis=0](x, x, x)"]
    lines += [f"x{i} = @param:x{i} -> float{{64, {256 + 4 * i}}}\ny{i} = relu(x{i})" for i in range(results)]
    return "\n".join([*lines, f"@return(y, {', '.join(f'y{i}' for i in range(results))})"])


def chain(length: int) -> str:
    """One pointwise operation after the other."""
    calls = ("add({}, b)", "relu({})", "mul({}, 1.5)", "sub(x, {})", "tanh({})")
    lines = ["x = @param:x -> float{64, 256}", "b = @param:b -> float{256}", "v0 = neg(x)"]
    lines += [f"v{i + 1} = {calls[i % len(calls)].format(f'v{i}')}" for i in range(length)]
    return "\n".join([*lines, f"@return(v{length})"])


def joined(parts: int) -> str:
    """Tensors side by side, and what is computed of all."""
    lines = [f"x{i} = @param:x{i} -> float{{8, 32, 28, 28}}" for i in range(parts)]
    lines += [f"c = concat[axis=1]({', '.join(f'x{i}' for i in range(parts))})", "y = relu(c)"]
    return "\n".join([*lines, "@return(y)"])


def permuted(rank: int) -> str:
    """A transpose of many axes: an element's place is a sum of as many terms."""
    lens, last = [2, 3] * (rank // 2), range(rank)[::-1]
    lines = [
        f"x = @param:x -> float{{{prod(lens)}, 8}}",
        f"r = reshape[dims={{{', '.join(map(str, lens))}, 8}}](x)",
        f"t = transpose[permutation={{{', '.join(map(str, last))}, {rank}}}](r)",
    ]
    return "\n".join([*lines, "y = relu(t)", "@return(y)"])


def shifted(times: int) -> str:
    """Cyclic shifts of height and width, windows cut and put together again."""
    lines, value = ["x = @param:x -> float{1, 14, 14, 64}"], "x"
    for i in range(times):
        for axis in (1, 2):
            lines += [
                f"a{i}{axis} = slice[axes={{{axis}}}, starts={{3}}, ends={{14}}]({value})",
                f"b{i}{axis} = slice[axes={{{axis}}}, starts={{0}}, ends={{3}}]({value})",
                f"c{i}{axis} = concat[axis={axis}](a{i}{axis}, b{i}{axis})",
            ]
            value = f"c{i}{axis}"
        lines += [
            f"w{i} = reshape[dims={{1, 2, 7, 2, 7, 64}}]({value})",
            f"t{i} = transpose[permutation={{0, 1, 3, 2, 4, 5}}](w{i})",
            f"v{i} = relu(t{i})",
        ]
        value = f"v{i}"
    return "\n".join([*lines, f"@return({value})"])


def test_wide_returns_cost_no_rules(work: Callable[[str, str], Work]) -> None:
    """Each further result costs the same, and rules are spelled out for those numbers of operands only that they meet."""
    some, twice = work(wide_return(12), WAVE64), work(wide_return(24), WAVE64)
    assert twice.rules == some.rules
    assert twice.terms <= 2.1 * some.terms
    assert twice.questions <= 2.1 * some.questions


@pytest.mark.parametrize("target", [WAVE64, HOST])
def test_chains_cost_as_much_as_they_are_long(work: Callable[[str, str], Work], target: str) -> None:
    some, twice = work(chain(30), target), work(chain(60), target)
    assert twice.terms <= 2.1 * some.terms
    assert twice.questions <= 2.1 * some.questions


@pytest.mark.parametrize("target", [WAVE64, HOST])
def test_concatenations_cost_as_much_as_they_have_parts(work: Callable[[str, str], Work], target: str) -> None:
    some, twice = work(joined(10), target), work(joined(20), target)
    assert twice.terms <= 2.4 * some.terms
    assert twice.questions <= 2.4 * some.questions
    assert twice.runs <= 2.4 * some.runs


ALIKE = """\
stage simplify

/// Nothing is true of less than nothing: the rule asks and never fires.
rule of_tensors_alike
  {call} when all([x.lens == xs[0].lens for x in xs]) and len(xs) < 0
  => {call}
"""


@pytest.mark.parametrize(
    ("call", "program", "most"), [("concat[axis](xs...)", joined, 4.2), ("return(xs...)", wide_return, 1.5)]
)
def test_types_of_many_operands_are_asked_for_in_pieces(
    call: str, program: Callable[[int], str], most: float, work: Callable[..., Work], tmp_path: Path
) -> None:
    """A rule that has a fact for each of its operands is planned in cubic time. A concatenation is taken apart one by one,
    so rules are spelled out for each number of operands below."""
    (tmp_path / "alike.rw").write_text(ALIKE.format(call=call), encoding="utf-8")
    rules = load_library([tmp_path])
    some, twice = work(program(32), WAVE64, rules), work(program(64), WAVE64, rules)
    assert twice.plans <= most * some.plans
    assert twice.questions <= 2.4 * some.questions


@pytest.mark.parametrize("target", [WAVE64, HOST])
def test_sums_of_many_terms_are_not_made_in_all_orders(work: Callable[[str, str], Work], target: str) -> None:
    some, twice = work(permuted(4), target), work(permuted(8), target)
    assert twice.terms <= 2.4 * some.terms
    assert twice.questions <= 2.4 * some.questions


@pytest.mark.parametrize("target", [WAVE64, HOST])
def test_shifts_cost_as_much_as_there_are(work: Callable[[str, str], Work], target: str) -> None:
    some, twice = work(shifted(1), target), work(shifted(2), target)
    assert twice.terms <= 3 * some.terms


CHAIN = ("relu", "exp", "tanh", "sigmoid")
ROWS = ("transpose[permutation={1, 0}]", "softmax[axis=1]")


@pytest.mark.parametrize(("first", "repeated"), [(ROWS[0], CHAIN), ("reverse[axes={1}]", CHAIN), ("relu", ROWS)])
def test_moves_before_values_of_several_forms(work: Callable[..., Work], first: str, repeated: tuple[str, ...]) -> None:
    """Halves have two forms each, rounded and not, `exp` two more: what moves past them has no more for each operation."""

    def terms(length: int) -> int:
        calls = [first, *(repeated[i % len(repeated)] for i in range(length))]
        lines = [f"v{i + 1} = {call}(v{i})" for i, call in enumerate(calls)]
        return work("\n".join(["v0 = @param:v0 -> half{64, 64}", *lines, f"@return(v{len(calls)})"]), WAVE64).terms

    assert terms(64) < 4.4 * terms(16)
