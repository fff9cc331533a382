"""What engines declare, and which programs share one."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from support import WAVE64, load

from genrw.engine.egraph.stage import StageEngine
from genrw.engine.library.arities import Arities, program_arities, term_arities
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.lowering.garbage import uncollected
from genrw.engine.lowering.pipeline import Pipeline
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import RuleDecl, RuleFile

UNARY = "x = @param:x -> float{{4, 5}}\ny = {}(x)\n@return(y)\n"


def engine(pipeline: Pipeline, stage: str, text: str) -> StageEngine:
    return pipeline.engine(stage, False, load(text, WAVE64, pipeline.library).modules)


def test_programs_of_the_same_rules_share_an_engine(library: Library) -> None:
    pipeline = Pipeline(library)
    first, second = (engine(pipeline, "schedule", UNARY.format(name)) for name in ("exp", "neg"))
    assert first is second


BOTH = "x = @param:x -> half{4, 5}\na = reverse[axes={1}](x)\ns = reduce_sum[axes={1}](x)\n@return(a, s)\n"
TURNED = "x = @param:x -> half{4, 5}\na = transpose[permutation={1, 0}](x)\nb = concat[axis=0](a, a)\ns = reduce_sum[axes={1}](b)\n@return(s)\n"
ONE = "x = @param:x -> half{4, 5}\ns = reduce_sum[axes={1}](x)\n@return(s)\n"


def found(made: StageEngine, text: str) -> set[tuple[str, ...]]:
    """The operators of each class that an engine makes of a program."""
    graph = made.run(load(text, WAVE64, made.library).modules, [{}])
    return {tuple(sorted(node.op for node in nodes)) for nodes in graph.classes.values()}


@pytest.mark.parametrize("texts", [(BOTH, ONE), (ONE, BOTH)])
def test_programs_that_need_nearly_the_same_share_an_engine(texts: tuple[str, str], library: Library) -> None:
    """It is given what is missing, whatever it ran before, and makes of each what an engine of its own does."""
    pipeline = Pipeline(library)
    made = [engine(pipeline, "simplify", texts[0])]
    graphs = [found(made[0], texts[0])]
    made.append(engine(pipeline, "simplify", texts[1]))
    graphs += [found(made[1], text) for text in (texts[1], texts[0])]
    alone = [found(engine(Pipeline(library), "simplify", text), text) for text in texts]
    assert made[0] is made[1] is engine(Pipeline(library, before=pipeline), "simplify", texts[0])
    assert graphs == [*alone, alone[0]]
    assert len(made[0].rules) == len({rule.name for rule in made[0].rules})


def test_an_engine_has_few_rules_beside_those_that_a_program_needs(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that serves as it is nor one that grows: not even for the program that it was made for."""
    monkeypatch.setattr("genrw.engine.lowering.engines._SPARE", 1)
    monkeypatch.setattr("genrw.engine.lowering.engines._ALWAYS_SPARE", 0)
    pipeline = Pipeline(library)
    small, large = (engine(pipeline, "simplify", text) for text in (ONE, TURNED))
    assert 0 < len(small.rules) < len(large.rules)
    assert small is not large
    assert engine(pipeline, "simplify", ONE) is small


def test_strict_programs_share_no_engine_with_rules_that_round(library: Library) -> None:
    pipeline = Pipeline(library)
    modules = load(BOTH, WAVE64, library).modules
    rounding = pipeline.engine("simplify", False, modules)
    exact = pipeline.engine("simplify", True, modules)
    assert {rule.contract for rule in exact.rules} == {"exact"} < {rule.contract.split()[0] for rule in rounding.rules}
    assert pipeline.engine("simplify", False, modules) is rounding


def test_engines_of_rules_that_are_gone_serve_nobody(library: Library) -> None:
    """After an edit: the rule is not among those that may run."""
    before = Pipeline(library)
    held = engine(before, "simplify", BOTH)
    without = replace(library, rules=tuple(rule for rule in library.rules if rule.name != held.rules[0].name))
    after = Pipeline(without, before=before)
    assert held.rules[0].name not in {rule.name for rule in engine(after, "simplify", ONE).rules}


def test_an_engine_has_the_numbers_of_operands_that_terms_have(library: Library) -> None:
    """A result of nine values needs no rules for one of eight."""
    names = [f"x{i}" for i in range(9)]
    inputs = "".join(f"{name} = @param:{name} -> float{{4}}\n" for name in names)
    program = load(f"{inputs}@return({', '.join(names)})\n", WAVE64, library).lower("schedule")
    pipeline = Pipeline(library)
    made = pipeline.engine("gridwise", False, program.modules)
    made.run(program.modules, [pipeline.context(m, program.options) for m in program.modules])
    assert 9 in made.arities
    assert 8 not in made.arities


def test_no_rule_need_know_of_an_operator_that_a_program_has(library: Library) -> None:
    """An engine serves a program with an operator of more operands than rules name, after others without it."""
    operands = [f"x{i}" for i in range(11)]
    declared = f"op eleven({', '.join(f'{x}: T' for x in operands)}) -> T where T: real\n  role pointwise\n  means x0\n"
    whole = build_library([*library.files, parse_rw(declared, "eleven.rw")])
    pipeline = Pipeline(whole)
    plain = load(UNARY.format("exp"), WAVE64, whole)
    wide = load(f"x = @param:x -> float{{4}}\ny = eleven({', '.join(['x'] * 11)})\n@return(y)\n", WAVE64, whole)
    first, second = (program.lower("schedule").modules for program in (plain, wide))
    made = pipeline.engine("gridwise", False, first)
    for modules in (first, second):
        made.run(modules, [pipeline.context(m, plain.options) for m in modules])
    assert 11 in made.arities


@pytest.mark.parametrize(
    ("rule", "present", "more"),
    [
        ("concat(xs...) => neg(x)", {7, 9}, {"concat": {7, 9}}),
        ("concat(x, xs...) => concat(xs...)", {7}, {"concat": {5, 6, 7}}),
        ("concat(xs...) => concat(a, xs..., b)", {5}, {"concat": {5, 7}}),
        ("concat(xs...) => effects(neg(xs)..., a)", {6}, {"concat": {6}, "effects": {7}}),
        ("return(xs...) => effects(xs...)", {3}, {}),
    ],
)
def test_rules_make_terms_of_other_numbers_of_operands(
    library: Library, rule: str, present: set[int], more: dict[str, set[int]]
) -> None:
    """Up to a few operands, any number; beyond these what is there and what rules make of it, up to a power of two."""
    (declared,) = parse_rw(f"rule r\n  {rule}\n", "test.rw").declarations
    assert isinstance(declared, RuleDecl)
    found = term_arities(
        library, [declared], Arities({"concat": frozenset(present), "return": frozenset(present)})
    ).found
    wide = {name: {n for n in counts if n > 4} for name, counts in found.items()}
    assert {name: counts for name, counts in wide.items() if counts and name != "return"} == more


def test_a_program_says_how_many_operands_its_operators_have(library: Library) -> None:
    """Those that always have as many say nothing."""
    text = "x = @param:x -> float{4, 4}\nc = concat[axis=0](x, x, x)\nd = concat[axis=0](c, x)\ny = neg(d)\n@return(y, d)\n"
    found = program_arities(load(text, WAVE64, library).modules, library)
    assert found.found == {"concat": {2, 3}, "return": {2}}


def test_collection_goes_on_after_an_error() -> None:
    within = []

    def fails() -> None:
        with uncollected():
            within.append(gc.isenabled())
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fails()
    assert [*within, gc.isenabled()] == [False, True]


RULES = "stage simplify\n\n{}rule two\n  neg(abs(x))\n  => {}(x)\n\nrule three\n  exp(neg(x))\n  => abs(x)\n"
OTHERS = "stage gridwise\n\nrule far\n  neg(neg(x))\n  => x\n"
ADDED = "rule one\n  abs(x)\n  => neg(x)\n\n"
PROGRAM = "x = @param:x -> float{4}\na = abs(x)\nb = neg(a)\nc = exp(b)\n@return(c)\n"


def edited(library: Library, before: Pipeline | None, first: str, second: str) -> tuple[Pipeline, tuple[RuleFile, ...]]:
    """A pipeline of the shipped declarations, without their rules, and of few rules: after another, if there is one."""
    terms = [
        replace(f, declarations=tuple(d for d in f.declarations if not isinstance(d, RuleDecl))) for f in library.files
    ]
    known = {f.span.source.name: f for f in before.library.files} if before is not None else {}
    texts = {"mine.rw": RULES.format(first, second), "others.rw": OTHERS}
    own = tuple(parse_rw(text, name, known.get(name)) for name, text in texts.items())
    made = build_library([*terms, *own], before.library if before is not None else None)
    return Pipeline(made, before=before), own


def test_a_run_begins_with_nothing_of_the_last(library: Library) -> None:
    """Whether the last run failed, was cleared away before, or is cleared away now."""
    pipeline = Pipeline(library)
    modules = [load(UNARY.format(name), WAVE64, library).modules for name in ("exp", "neg", "exp")]
    made = engine(pipeline, "simplify", UNARY.format("exp"))

    def classes(number: int) -> set[tuple[str, ...]]:
        found = made.run(modules[number], [{}]).classes.values()
        return {tuple(sorted(node.op for node in nodes)) for nodes in found}

    first = classes(0)
    pipeline.prepare()
    assert classes(1) != first
    with pytest.raises(IndexError):
        made.run([*modules[0], *modules[1]], [])
    assert classes(2) == first


def test_an_edited_rule_leaves_the_engines_of_other_stages(library: Library) -> None:
    def declared(pipeline: Pipeline) -> list[StageEngine]:
        engines = [engine(pipeline, stage, PROGRAM) for stage in ("simplify", "gridwise")]
        for one in engines:
            one.run(load(PROGRAM, WAVE64, library).modules, [{}])
        return engines

    first, (mine, others) = edited(library, None, "", "exp")
    before = declared(first)
    second, (mine_now, others_now) = edited(library, first, "", "abs")
    assert [a is b for a, b in zip(mine.declarations, mine_now.declarations, strict=True)] == [False, True]
    assert others_now.declarations[0] is others.declarations[0]
    assert second.library.shares_terms(first.library)
    assert [a is b for a, b in zip(before, declared(second), strict=True)] == [False, True]


def test_a_rule_that_moves_down_is_read_anew(library: Library) -> None:
    """Messages and provenance tell its new place."""
    first, (mine, _) = edited(library, None, "", "exp")
    second, (mine_now, _) = edited(library, first, ADDED, "exp")
    assert [d.name_span.line for d in mine.declarations] == [3, 7]
    assert [d.name_span.line for d in mine_now.declarations] == [3, 7, 11]
    assert [rule.name for rule in second.library.written_rules] == ["one", "two", "three", "far"]


def test_a_rule_between_others_leaves_their_encodings(library: Library) -> None:
    encoded = []
    pipeline: Pipeline | None = None
    for names in ("ac", "abc", "ac", "adc", "cad"):
        rules = tuple(
            parse_rw(f"stage simplify\n\nrule {n}\n  exp(neg(x))\n  => x\n", n).declarations[0] for n in names
        )
        known = {rule.name: rule for rule in pipeline.library.rules} if pipeline is not None else {}
        rules = tuple(known.get(rule.name, rule) for rule in rules)
        pipeline = Pipeline(replace(library, rules=rules), before=pipeline)
        made = engine(pipeline, "simplify", PROGRAM)
        made.run(load(PROGRAM, WAVE64, library).modules, [{}])
        assert [made.keys[number] for number in sorted(made.keys)] == [rule.name for rule in rules]
        encoded.append({e.key: e for e in made.encoded.values()})
    first, added, removed, other, moved = encoded
    for key in "ac":
        assert first[key] is added[key] is removed[key] is other[key]
        assert moved[key] is not other[key]


def test_edits_of_a_rule_go_on_with_one_e_graph(library: Library) -> None:
    """From the second on, until too many rules are left aside; what was edited away does nothing."""

    def wanted(name: str) -> RuleDecl:
        text = f"stage simplify\n\nrule mine\n  exp(neg(x))\n  => {name}(neg(x))\n"
        (rule,) = parse_rw(text, name).declarations
        assert isinstance(rule, RuleDecl)
        return rule

    pipeline: Pipeline | None = None
    graphs = []
    for name in ("sqrt", "abs", "tanh", "erf", "neg", "exp", "log"):
        pipeline = Pipeline(replace(library, rules=(wanted(name),)), before=pipeline)
        made = engine(pipeline, "simplify", PROGRAM)
        found = made.run(load(PROGRAM, WAVE64, library).modules, [{}])
        (classes,) = ({n.op for n in nodes} for nodes in found.classes.values() if any(n.op == "exp" for n in nodes))
        assert classes == {"exp", name}
        graphs.append(made.graph)
    assert graphs[0] is not graphs[1]
    assert graphs[1] is graphs[2]
    assert len({id(graph) for graph in graphs}) == 4


def test_an_e_graph_that_refused_rules_is_not_used_again(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(library)
    made = engine(pipeline, "simplify", PROGRAM)
    modules = load(PROGRAM, WAVE64, library).modules
    with monkeypatch.context() as patched:
        patched.setattr(StageEngine, "_rows", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            made.run(modules, [{}])
    first = made.graph
    made.run(modules, [{}])
    assert made.graph is not first


def test_what_lowering_made_is_left_to_full_collections() -> None:
    with uncollected():
        made: list[list[int]] = [[]]
    young = [*gc.get_objects(generation=0), *gc.get_objects(generation=1)]
    assert not any(found is made for found in young)
