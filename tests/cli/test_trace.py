"""`genrw rules trace`: the rewrites in order, which together make what a stage gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from commands import Command

import genrw
from genrw.engine.egraph.encode import FACTS
from genrw.engine.egraph.relevance import relevant_rules
from genrw.engine.egraph.stage import StageEngine
from genrw.engine.explain.stage_trace import State, Study, study
from genrw.engine.library.library import Library
from genrw.engine.lint.examples import find
from genrw.engine.lowering.pipeline import Pipeline
from genrw.explain.trace import traces
from genrw.grammar.rw import print_declaration
from genrw.grammar.rw_tree import RuleDecl
from genrw.program import Program

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.gen"))

CUT = """\
x = @param:x -> float{64, 1000}
c = reduce_sum[axes={0}](x)
d = sub(x, c)
e = exp(d)
s = reduce_sum[axes={1}](e)
y = div(e, s)
@return(y)
"""

BACKWARDS = """\
stage simplify

rule root_is_tanh
  sqrt(x)
  => tanh(x)

rule root_is_negative
  sqrt(x)
  => neg(x)
"""

HEADER = re.compile(r"^@module .*\n", re.MULTILINE)


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda path: path.stem)
def example(request: pytest.FixtureRequest) -> Program:
    return genrw.load(request.param)


def stages(program: Program) -> dict[str, str]:
    return {stage: str(lowered) for stage, lowered in program.remaining_stages()}


def test_steps_lead_from_stage_to_stage(example: Program) -> None:
    """Each rewrite begins where the one before it ended; the first at the stage before, the last at the result."""
    results = stages(example)
    before = str(example)
    found = list(traces(example))
    assert [trace.stage for trace in found] == list(example.stages)
    for trace in found:
        assert HEADER.sub("", trace.before) == HEADER.sub("", before)
        last = trace.before
        for rewrite in trace.rewrites:
            assert rewrite.before == last
            last = rewrite.after
        assert last == trace.after == results[trace.stage]
        before = trace.after


def patched(text: str, hunks: Sequence[str]) -> str:
    """A text with the hunks of a unified diff applied, which have to fit."""
    lines, result, at = text.splitlines(), [], 0
    for line in hunks:
        if line.startswith("@@"):
            start = int(re.match(r"@@ -(\d+)", line)[1]) - 1  # type: ignore[index]
            result += lines[at:start]
            at = start
        elif line[:1] in " -":
            assert lines[at] == line[1:]
            at += 1
            result += [line[1:]] if line[0] == " " else []
        else:
            assert line[0] == "+"
            result.append(line[1:])
    return "\n".join([*result, *lines[at:]]) + "\n"


def test_the_differences_that_are_printed(genrw: Command, softmax: Path) -> None:
    """Applied one after the other, what is printed makes each stage's program of the one before."""
    parts = re.split(r"^# ", genrw("rules", "trace", softmax).out, flags=re.MULTILINE)[1:]
    names = [part.partition(",")[0] for part in parts]
    before = genrw("lower", softmax, "--stage", names[0]).out
    assert names[0] == "simplify"
    for name, part in zip(names[1:], parts[1:], strict=True):
        result = genrw("lower", softmax, "--stage", name).out
        text = before
        for step in re.split(r"^\d+\. .*\n", bare(part), flags=re.MULTILINE)[1:]:
            text = patched(bare(text), [line for line in step.split("\n") if line])
        assert bare(text) == bare(result)
        before = result


def bare(text: str) -> str:
    """A text without what the headers of two stages differ in though no rewrite makes it."""
    return re.sub(r"stage=\w+|, (space|axes)=\{[^}]*\}", "", text)


# ---- each step by itself


def asks_no_facts(rule: RuleDecl) -> bool:
    """Does a rule look at nothing that the e-graph finds out while it works?"""
    return not set(FACTS) & set(re.findall(r"\w\.(\w+)", print_declaration(rule).partition("example")[0]))


def made_alone(found: Study, before: State, after: State, rule: RuleDecl, library: Library) -> bool:
    """Does a rule, alone, make one program equal to another one?"""
    rules, reachable = relevant_rules(library, (rule,), frozenset(node.op for node in before.module.nodes))
    engine = StageEngine(library, found.stage, rules, reachable)
    graph = engine.run([before.module], found.batch.contexts)
    for number, nodes in graph.replaced.items():
        graph.classes.setdefault(number, []).extend(nodes)
    return find(graph, after.module.root, library) == graph.class_of[graph.ids[id(before.module.root)]]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["softmax", "concat_add"])
def test_each_step_is_made_by_its_rule_alone(name: str, library: Library) -> None:
    program = genrw.load(ROOT / "examples" / f"{name}.gen")
    pipeline = Pipeline(library, recorded=True)
    rules = {rule.name: rule for rule in library.rules}
    asked = 0
    for stage, lowered in program.remaining_stages():
        if not lowered.trace.schedules:
            found = study(pipeline, program.modules[0], stage, program.options)
            for step, (before, after) in zip(found.steps, pairwise(found.states), strict=True):
                rule = rules[step.key]
                if asks_no_facts(rule):
                    first, then = (after, before) if step.back else (before, after)
                    assert made_alone(found, first, then, rule, library), f"{stage}: {step.key}"
                    asked += 1
        program = lowered
    assert asked > 50


ATTENTION = """\
q = @param:q -> float{1, 1, 16, 8}
r = reverse[axes={1}](q)
k = @param:k -> float{1, 1, 8, 33}
s = dot(r, k)
m = mul(s, 0.125)
p = softmax[axis=3](m)
v = @param:v -> float{1, 1, 33, 8}, {1, 1, 81, 9}
y = dot(p, v)
@return(y)
"""


@pytest.mark.slow
def test_steps_do_not_multiply(library: Library) -> None:
    """Terms that are rewritten over operands of their own ask for operands that are rewritten so, and these for others."""
    program = genrw.load(ATTENTION, target="host")
    pipeline = Pipeline(library, recorded=True)
    *_, (_, before), (last, _) = program.remaining_stages()
    kernels = [module for unit in before.units for module in unit.kernels]
    steps = [len(study(pipeline, kernel, last, before.options).steps) for kernel in kernels]
    assert 100 < max(steps) < 2000


# ---- what else is shown


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    path = tmp_path / "cut.gen"
    path.write_text(CUT)
    return path


def test_a_program_that_is_cut(cut: Path) -> None:
    """The cut is a step by the rules that make values in kernels; from there on each kernel has its own steps."""
    found = list(traces(genrw.load(cut)))
    fused = next(trace for trace in found if trace.stage == "fuse")
    assert {"make_reduction", "make_pointwise"} <= set(fused.rewrites[-1].rules)
    assert fused.after == str(genrw.load(cut).lower("fuse"))
    assert [t.module for t in found] == ["main", "main"] + 5 * ["k0", "k1"]
    last = "\n".join([fused.after.partition("\n@module k0")[0], *(t.after for t in found[-2:])])
    assert HEADER.sub("", last) == HEADER.sub("", str(genrw.load(cut).lower("final")))


def test_programs_of_one_file_at_different_stages() -> None:
    """Each goes on from its own stage."""
    late = str(genrw.load("@module late\nx = @param:x -> float{8}\ny = exp(x)\n@return(y)\n").lower("lanewise"))
    early = "@module early\nx = @param:x -> float{8}\ny = neg(x)\n@return(y)\n"
    program = genrw.load(f"{early}\n{late}")
    found = list(traces(program))
    assert [t.stage for t in found if t.module == "early"] == list(program.stages)
    assert [t.stage for t in found if t.module == "late"] == ["final"]
    last = {t.module: t.after for t in found}
    assert "\n".join(last.values()) == str(program.lower("final"))


def test_a_choice_of_stage_and_kernel(genrw: Command, cut: Path) -> None:
    out = genrw("rules", "trace", cut, "--stage", "gridwise", "--kernel", "k1").out
    assert out.startswith("# gridwise, module `k1`: 2 rewrites\n\n1. output_buffers (rules/gridwise/outputs.rw:")
    assert out.count("# ") == 1
    for arguments, told in [
        (("--stage", "nonesuch"), "there is no stage `nonesuch`"),
        (("--kernel", "k7"), "there is no module `k7`"),
        (("--kernel", "k1", "--stage", "simplify"), "module `k1` is not at stage `simplify`"),
    ]:
        result = genrw("rules", "trace", cut, *arguments)
        assert (result.status, told in result.err) == (2, True)


def test_a_program_that_is_past_the_stages(genrw: Command, softmax: Path) -> None:
    for stage, arguments, told in [
        ("final", (), "no stage is left: the program is lowered to the end"),
        ("gridwise", ("--stage", "simplify"), "the program is past stage `simplify`"),
    ]:
        lowered = genrw("lower", softmax, "--stage", stage).out
        result = genrw("rules", "trace", "-", *arguments, stdin=lowered)
        assert (result.status, result.out) == (2, "")
        assert result.err == f"error: {told}\n  help: name the program as it was written\n"


def test_what_led_to_nothing(genrw: Command, tmp_path: Path) -> None:
    """It is shown with `--all` only."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.rw").write_text("stage simplify\n\nrule longer\n  exp(x)\n  => exp(neg(neg(x)))\n")
    (tmp_path / "a.gen").write_text("x = @param:x -> float{8}\ny = exp(x)\n@return(y)\n")
    call = ("rules", "trace", tmp_path / "a.gen", "--rules", tmp_path / "rules", "--stage", "simplify")
    assert genrw(*call).out == "# simplify, module `main`: 0 rewrites\n\n"
    told = genrw(*call, "--all").out
    assert "led to nothing of the result:" in told
    assert f"longer ({tmp_path}/rules/mine.rw:3)\n-exp(x)\n+exp(neg(neg(x)))\n" in told


def test_a_rule_read_backwards(tmp_path: Path) -> None:
    """`neg(x)` and `tanh(x)` are equal because `sqrt(x)` is both: the one is found from the other back and forth."""
    (tmp_path / "mine.rw").write_text(BACKWARDS)
    text = "x = @param:x -> float{8}\nr = sqrt(x)\nt = tanh(x)\ny = exp(t)\n@return(r, y)\n"
    found = next(traces(genrw.load(text, rules=[tmp_path])))
    assert [(r.rules, r.back) for r in found.rewrites if r.back] == [(("root_is_tanh",), True)]
    assert found.after == str(genrw.load(text, rules=[tmp_path]).lower("simplify"))
