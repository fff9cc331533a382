"""`genrw rules verify` meets every kind of schedule and monoid, blames the rule that is wrong, and shows what it was given."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import load

from genrw.authoring.rulesets import load_library
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.interpret.reference import interpret
from genrw.engine.ir.nodes import Module
from genrw.engine.language.running import fault
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import folds
from genrw.engine.library.signs import with_operators
from genrw.engine.lowering.options import Options as PipelineOptions
from genrw.engine.verify import kernels
from genrw.engine.verify.branches import branches_of
from genrw.engine.verify.goals import Goals, monoid_kind
from genrw.engine.verify.instances import Instances
from genrw.engine.verify.kernels import KernelsTried, KernelTrial
from genrw.engine.verify.monoids import try_monoid
from genrw.engine.verify.offers import Offers
from genrw.engine.verify.probes import with_probes
from genrw.engine.verify.seeking import Prospects
from genrw.engine.verify.surroundings import WAVES, KernelContext
from genrw.engine.verify.verdict import BOUNDED, OPEN, PROVEN, REFUTED, TRIED, Options, Verdict, verify, verify_rule
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import RuleDecl

FEW = Options(count=8)
ROOT = Path(__file__).parents[2]
PAGES = ("adding.md", "tutorial.md")


def edited(library: Library, name: str, before: str, after: str) -> tuple[Library, RuleDecl]:
    """The shipped rules with a piece of one rule's text replaced."""
    rule = next(r for r in library.rules if r.name == name)
    text = rule.span.text
    assert text.count(before) == 1
    read = parse_rw(f"stage {rule.stages[0]}\n\n{text.replace(before, after)}", "edited")
    ((mine,),) = (file.declarations for file in with_operators([read], library.signs, {}))
    assert isinstance(mine, RuleDecl)
    # what the file gives its examples stands beside the rule
    mine = replace(mine, examples=rule.examples)
    return replace(library, rules=tuple(mine if r is rule else r for r in library.rules)), mine


def verdict_on(folder: Path, text: str, name: str, options: Options) -> Verdict:
    (folder / "mine.rw").write_text(text)
    library = load_library([folder])
    return verify_rule(library, next(r for r in library.rules if r.name == name), options)


# ---- kinds of schedules


def test_several_steps_are_met(library: Library) -> None:
    """With one step, how many elements a step covers is never asked."""
    product = "first[pass, all=schedule.block_size * schedule.share]"
    mine, rule = edited(library, "el_flat", product, product.replace("*", "+"))
    assert verify_rule(mine, rule, Options()).status == REFUTED


def test_each_way_of_a_branch_is_met(library: Library) -> None:
    """What a rule makes of several steps is tried, though the kernels that are chosen have one."""
    everything = "schedule.block_size * schedule.share * schedule.steps"
    branch = "(schedule.block_size * schedule.share if schedule.steps == 1 else schedule.block_size)"
    mine, rule = edited(library, "el_flat", everything, branch)
    assert verify_rule(mine, rule, Options()).status == REFUTED


@pytest.mark.slow
def test_schedules_are_sought_that_the_rule_was_not_seen_with(library: Library) -> None:
    """Rows in aligned chunks are hardly ever so long that they are walked in several steps."""
    product = "schedule.lanes * schedule.share"
    mine, rule = edited(library, "position_in_aligned_row", product, product.replace("*", "+"))
    assert verify_rule(mine, rule, Options()).status == REFUTED


@pytest.mark.slow
def test_several_tiles_are_met(library: Library) -> None:
    """With one tile across, how wide a tile is is never asked; kernels of contractions are drawn that have several."""
    width = "{schedule.tile[side]}"
    mine, rule = edited(library, "beginning_of_tile", width, width.replace("{", "{side + "))
    assert verify_rule(mine, rule, Options()).status == REFUTED


def test_what_was_not_met_is_told(library: Library) -> None:
    rule = next(r for r in library.rules if r.name == "fold_block")
    goals = Goals(with_probes(library), rule, "lanewise")
    kinds = [(("algo", "block"), ("share", n)) for n in (1, 2)]
    goals.seen(kinds)
    goals.note(kinds[:1], True)
    assert "algo block, share several" in goals.not_exercised()
    assert "algo block, share 1" not in goals.not_exercised()
    assert goals.open()


def scheduled(library: Library, **entries: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schedule of rows, and what rules may ask of its surroundings."""
    schedule = {
        "algo": "block",
        "block_size": 256,
        "lanes": 256,
        "vector": 1,
        "share": 1,
        "steps": 1,
        "grid": 8,
        **entries,
    }
    context = KernelContext(library.targets["gfx942"], schedule, (8, 1000), (1,), "cost").context(library)
    return schedule, context


def test_a_way_that_was_not_taken_is_told(library: Library) -> None:
    """Both ways of what the rule itself decides are wanted, of what its helpers decide those that there are."""
    rule = next(r for r in library.rules if r.name == "first_element_of_step")
    goals = Goals(library, rule, "lanewise")
    goals.note(goals.kinds(*scheduled(library, steps=4)), True)
    missed = goals.not_exercised()
    assert {"schedule.patch > 0", "schedule.lanes == 1"} <= {*missed}
    assert not {"not (schedule.patch > 0)", "in_parts(schedule)", "schedule.abreast == 1"} & {*missed}


def test_alternatives_of_a_guard_are_told_apart(library: Library) -> None:
    rule = next(r for r in library.rules if r.name == "position_in_row")
    told = {branch.told: branch.own for branch in branches_of(library, rule)}
    assert told["not in_parts(schedule)"]
    assert not told["schedule.abreast == 1"]


def test_how_a_kernel_runs_is_wanted_each_for_itself(library: Library) -> None:
    """Whatever the rule itself asks for: one step and several, lanes that rows fill and such with a tail."""
    rule = next(r for r in library.rules if r.name == "row_of_block")
    goals = Goals(library, rule, "lanewise")
    goals.note(goals.kinds(*scheduled(library, share=4)), True)
    goals.seen(goals.kinds(*scheduled(library, steps=4)))
    missed = goals.not_exercised()
    assert "steps several" in missed
    assert not {"steps 1", "lanes with a tail", "workgroups several"} & {*missed}


def test_kernels_that_any_rule_is_tried_in_are_the_same_for_all(library: Library) -> None:
    """Whoever asked before, and for how many."""
    some, others = (Offers(library, WAVES, 0) for _ in range(2))
    some.first(2)
    shown = [[(offer.options, offer.schedules) for offer in offers.first(6)] for offers in (some, others)]
    assert shown[0] == shown[1]
    assert any(len(schedules) > 1 for _, schedules in shown[0])


def test_where_operators_stood_in_vain_a_rule_is_not_sought() -> None:
    text = "x = @param:x -> float{{4, 4}}\ny = {0}(x)\n@return(y)\n"
    exps, logs = (load(text.format(name)).modules[0] for name in ("exp", "log"))
    prospects = Prospects()
    prospects.note(exps, True)
    prospects.note(logs, False)
    assert prospects.of(logs) < prospects.of(exps) == 1


def test_only_what_the_guard_lets_pass_is_wanted(library: Library) -> None:
    rule = next(r for r in library.rules if r.name == "split_finished")
    goals = Goals(with_probes(library), rule, "fuse")
    wanted = {name for names in goals.monoid_kinds.values() for name in names}
    assert {"mean", "probe_finished"} <= wanted
    assert not {"argmax", "powers", "probe_carried", "probe_mapped"} & wanted


# ---- kinds of monoids


def test_there_are_probes_of_every_kind(library: Library) -> None:
    probed = with_probes(library)
    probes = {name: m for name, m in probed.monoids.items() if name not in library.monoids}
    assert {monoid_kind(m) for m in library.monoids.values()} <= {monoid_kind(m) for m in probes.values()}
    for name, monoid in probes.items():
        assert try_monoid(probed, monoid, 20, "probes")[1] is None, name


def test_folds_are_of_types_that_their_monoids_take(library: Library) -> None:
    """A rule over any fold is not refuted by one that there is not: of integers, where the monoid takes real numbers."""
    rule = next(r for r in library.rules if r.name == "reduce_nothing")
    drawn = [i for _, _, i in Instances(with_probes(library), rule).drawn("folds", 400)]
    assert drawn
    for instance in drawn:
        node = instance.match.left
        found = library.find(node.op)
        if found is not None and found[1] is not None:
            assert folds(library.monoids[found[1]], node.operands[0].type.dtype), node


def docs_rules(page: str) -> dict[str, str]:
    """The rule files of a page, as it leaves them at its end."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return dict(re.findall(r"^```rw file=mine/([^\n ]*)[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_rules_of_the_docs_hold(page: str, tmp_path: Path) -> None:
    """Also with monoids that finish and that carry several fields."""
    for name, text in docs_rules(page).items():
        (tmp_path / name).write_text(text)
    library, shipped = load_library([tmp_path]), load_library()
    known = {r.name for r in shipped.rules} | set(shipped.monoids)
    for subject in (*library.rules, *library.monoids.values()):
        if subject.name not in known:
            verdict = verify(library, subject, FEW)
            assert verdict.status in (TRIED, PROVEN, BOUNDED), f"{subject.name}: {verdict.problem}\n{verdict.shown}"


# ---- whose fault it is

TREE = """\
  comp(gridwise_reduce[op, algo="tree", ..](x, lds), row())
  => tree_reduce"""


def test_a_fold_that_forgets_to_finish_is_found_and_its_neighbours_are_not_blamed(tmp_path: Path) -> None:
    """The tree of the docs, reading the accumulator for the result: wrong for a mean, and for it alone."""
    right = '  row_fold[op, algo="tree"](x, lds)\n  => tree_reduce'
    text = docs_rules("adding.md")["tree.rw"]
    assert text.count(right) == 1
    (tmp_path / "mine.rw").write_text(text.replace(right, TREE))
    library = load_library([tmp_path])
    mine = [r for r in library.rules if r.span.source.name.endswith("mine.rw")]
    options = Options(seed=2, suspects=frozenset(r.name for r in mine))
    wrong, neighbour = (
        verify_rule(library, next(r for r in mine if r.name == name), options) for name in ("fold_tree", "tree_memory")
    )
    assert wrong.status in (REFUTED, OPEN)
    assert wrong.shown
    assert neighbour.status == TRIED


def test_a_kernel_that_rounding_changes_tells_nothing(library: Library) -> None:
    """Where the remainder of equals goes by the last bit, no rule is at fault."""
    text = """x = @param:x -> float{4, 1}
w = multibroadcast[out_lens={4, 257}](x)
m = reduce_mean[axes={1}](w)
b = multibroadcast[out_lens={4, 257}](m)
y = fmod(w, b)
@return(y)
"""
    rule = next(r for r in library.rules if r.name == "fold_block")
    trial = KernelTrial(library, rule, "lanewise", WAVES)
    for unsteady, source in ((True, text), (False, text.replace("fmod", "add"))):
        (module,) = load(source).modules
        module = replace(module, target="gfx942")
        inputs = random_inputs(module, library, 0)
        want = interpret(
            module, library, trial.pipeline.context(module, PipelineOptions("gfx942")), inputs, precise=True
        )
        assert trial._is_unsteady(module, PipelineOptions("gfx942"), inputs, want) == unsteady


def test_the_schedules_of_other_rules_are_not_those_of_a_rule(library: Library) -> None:
    """All schedules of a kernel are in one class; a rule is tried with its own."""
    rule = next(r for r in library.rules if r.name == "row_a_block_in_lds")
    trial = KernelTrial(with_probes(library), rule, "schedule", WAVES)
    kernels_before = (
        (before, own) for seed in range(300) for _, before, own in trial._kernels(Random(f"0/{rule.name}/{seed}"))
    )
    found = next(forced for before, own in kernels_before if (forced := [*trial._forced(before, own, KernelsTried())]))
    assert {(module.schedule["algo"], module.schedule["held"] > 0) for module in found} == {("block", True)}


@pytest.mark.slow
def test_a_kernel_that_takes_too_much_memory_tells_nothing(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is not wrong where the machine is too small for it."""
    rule = next(r for r in library.rules if r.name == "fold_block")
    trial = KernelTrial(library, rule, "lanewise", WAVES)

    def too_large(module: Module, *given: Any, **named: Any) -> Any:
        if module.stage != library.stages[-1]:
            return interpret(module, *given, **named)
        raise fault(MemoryError(), "`+`", (), rule.name_span) from MemoryError()

    monkeypatch.setattr(kernels, "interpret", too_large)
    tried = trial.run(1, "memory")
    assert (tried.compared, tried.failure) == (0, None)


# ---- good input and what is shown


def test_the_values_of_literals_may_be_asked(tmp_path: Path) -> None:
    text = """stage simplify

rule mine
  r@add(add(x, literal[value=three, ..]()), literal[value=six, ..]()) when three == 3 and six == 6
  => add(x, literal[value=9, dtype=x.type, lens=r.lens]())
"""
    verdict = verdict_on(tmp_path, text, "mine", Options())
    assert verdict.status == REFUTED
    assert "of the values:\n  x = {" in verdict.shown


def test_a_name_may_stand_for_attributes_of_two_types(tmp_path: Path) -> None:
    text = """stage simplify

rule mine
  pad[pads=n, ..](slice[axes=n, starts, ends, ..](x)) when len(n) == 2 * x.rank and n == starts and n == ends
  => pad[pads=n](x)
"""
    assert verdict_on(tmp_path, text, "mine", Options(count=4)).status in (REFUTED, OPEN, TRIED)


def test_values_of_lanes_are_shown() -> None:
    library = load_library([Path(__file__).parent / "broken_rules" / "tail_identity"])
    rule = next(r for r in library.rules if r.name == "broken_tail_identity")
    shown = verify_rule(library, rule, Options()).shown
    assert re.search(r"of the values:\n(  .*\n)*  ok = false there\n", shown)


# ---- mutations


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> object:
    """The script that edits rules."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import mutate

    yield mutate
    sys.modules.pop("mutate", None)


def test_rules_are_edited_in_one_place(mutate: object, library: Library) -> None:
    rule = next(r for r in library.rules if r.name == "el_flat")
    edits = list(mutate.edits(library, rule))  # type: ignore[attr-defined]
    kinds = {e.kind for e in edits}
    assert {"condition dropped", "condition negated", "operator", "comparison", "another entry"} <= kinds
    assert any(e.told.startswith("schedule.block_size * schedule.share  →") or "+" in e.text for e in edits)
    assert all(e.text != e.span.text for e in edits)


def test_edits_are_verified(mutate: object) -> None:
    ((edit, verdict),) = mutate.run(1, 3, Options(count=4), 20.0, ["reverse_twice"])  # type: ignore[attr-defined]
    assert edit.rule.name == "reverse_twice"
    assert verdict.status in (REFUTED, OPEN, TRIED)


@pytest.mark.slow
def test_a_definition_for_tensors_without_elements_is_tried(library: Library) -> None:
    """No other rule shows how such a tensor comes about, and requirements keep most axes above 0."""
    rule = next(r for r in library.rules if r.name == "pooling.is5")
    verdict = verify_rule(library, rule, Options(count=2))
    assert (verdict.status, verdict.instances) == (TRIED, 2)
