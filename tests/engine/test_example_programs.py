"""Examples of rules: their terms are the programs that the same operations make as instructions."""

from __future__ import annotations

import pytest

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.gather import build_library, gathered_library
from genrw.engine.library.library import Library
from genrw.engine.programs.build import build_module
from genrw.engine.programs.example_programs import program_of
from genrw.grammar.gen import parse_gen
from genrw.grammar.gen_print import print_attributes
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import RuleDecl

HEAD = """\
stage simplify
context [target=gfx942]
context wave [schedule={algo=wave, block_size=256, lanes=64, vector=1, share=1, steps=1, grid=2}, space=[8, 64], axes=[1]]
given x: float{4, 8}, y: float{8}, i = local_id(), u = comp(x, i)
"""


def mine(library: Library, text: str) -> RuleDecl:
    """The rule of a text, gathered with the shipped rules."""
    whole = build_library([*library.files, parse_rw(text, "mine.rw")])
    return next(rule for rule in whole.rules if rule.name == "mine")


def example(library: Library, clauses: str) -> tuple[Module, Module | None]:
    """The programs of a rule's only example."""
    (found,) = mine(library, f"{HEAD}rule mine\n  neg(neg(neg(a)))\n  => neg(a)\n  {clauses}\n").examples
    after = None if found.after is None else program_of(library, found, found.after)
    return program_of(library, found, found.before), after


def in_instructions(library: Library, text: str) -> Node:
    """The root of the program that instructions make."""
    (module,) = parse_gen(text).modules
    return build_module(module, library, "gfx942", fragment=True).root


def shape(root: Node) -> object:
    """A term as it is, its values' names aside: each operation once, its operands by their numbers."""
    numbers: dict[object, int] = {}
    seen: dict[int, int] = {}

    def visit(node: Node) -> int:
        if id(node) not in seen:
            key = (node.op, repr(node.attributes), str(node.type), tuple(visit(o) for o in node.operands))
            assert key not in numbers, "a value is there twice"
            seen[id(node)] = numbers[key] = len(numbers)
        return seen[id(node)]

    visit(root)
    return list(numbers)


SAME = {
    "a chain": ("relu(relu(x))", "x = @param:x -> float{4, 8}\na = relu(x)\nb = relu(a)\n@return(b)"),
    "attributes": (
        'pad[pads=[0, 1, 0, 1], mode="constant", value=-1.5](x)',
        "x = @param:x -> float{4, 8}\np = pad[pads={0, 1, 0, 1}, mode=constant, value=-1.5](x)\n@return(p)",
    ),
    "names as attributes": (
        "convert[target_type=half](x)",
        "x = @param:x -> float{4, 8}\nc = convert[target_type=half](x)\n@return(c)",
    ),
    "negative axes": (
        "reduce_sum[axes=[-1]](x)",
        "x = @param:x -> float{4, 8}\nr = reduce_sum[axes={1}](x)\n@return(r)",
    ),
    "equal terms": ("add(neg(x), neg(x))", "x = @param:x -> float{4, 8}\nn = neg(x)\na = add(n, n)\n@return(a)"),
    "numbers": ("add(mul(x, 1), 0.5)", "x = @param:x -> float{4, 8}\nm = mul(x, 1)\na = add(m, 0.5)\n@return(a)"),
    "what a file gives": (
        "neg(u)",
        "x = @param:x -> float{4, 8}\ni = local_id\nu = comp(x, i)\nn = neg(u)\n@return(n)",
    ),
    "several results": (
        "neg(x), exp(x), x",
        "x = @param:x -> float{4, 8}\nn = neg(x)\ne = exp(x)\n@return(n, e, x)",
    ),
    "numbers of lanes": (
        "where(ilt(i, 3), u, -0.0)",
        "x = @param:x -> float{4, 8}\ni = local_id\nc = ilt(i, 3)\nu = comp(x, i)\nw = where(c, u, -0.0)\n@return(w)",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_terms_are_the_program_of_instructions(library: Library, name: str) -> None:
    term, text = SAME[name]
    module, _ = example(library, f"counterexample {term}")
    assert shape(module.root) == shape(in_instructions(library, text))


def test_what_a_rule_gives_stands_in_for_what_the_file_gives(library: Library) -> None:
    module, _ = example(library, "given x: half{2}\n  counterexample neg(u), exp(y)")
    types = {p.attribute("name"): (p.attribute("dtype"), p.attribute("lens")) for p in module.parameters}
    assert types == {"x": ("half", (2,)), "y": ("float", (8,))}


def test_constants(library: Library) -> None:
    given = "given one: float{4, 8} = 1, some: int32{2} = [1, -2], no: bool{} = false"
    module, _ = example(library, f"{given}\n  counterexample add(x, one), neg(some), logical_not(no)")
    wanted = (
        "x = @param:x -> float{4, 8}\none = @literal{1} -> float{4, 8}\na = add(x, one)\n"
        "some = @literal{1, -2} -> int32{2}\nn = neg(some)\nno = @literal{false} -> bool{}\nm = logical_not(no)\n"
        "@return(a, n, m)"
    )
    assert shape(module.root) == shape(in_instructions(library, wanted))


def test_equal_looking_constants_are_two(library: Library) -> None:
    given = "given p: float{4} = 0.0, n: float{4} = -0.0, t: int32{4} = 1, b: bool{4} = true"
    module, _ = example(library, f"{given}\n  counterexample neg(p), neg(n), neg(t), logical_not(b)")
    assert len(module.root.operands) == 4
    assert len({id(o.operands[0]) for o in module.root.operands}) == 4


def test_both_programs_have_the_same_inputs(library: Library) -> None:
    before, after = example(library, "example mul(y, neg(x)) gives neg(mul(y, x))")
    assert after is not None
    assert {p.attribute("name") for p in before.parameters} == {p.attribute("name") for p in after.parameters}


CONTEXTS = {
    "": "[target=gfx942]",
    "[]": "[]",
    "[target=host]": "[target=host]",
    "[wave]": (
        "[schedule={algo=wave, block_size=256, lanes=64, vector=1, share=1, steps=1, grid=2}, space={8, 64}, axes={1}]"
    ),
    "[wave, space=[7, 64], target=host]": (
        "[schedule={algo=wave, block_size=256, lanes=64, vector=1, share=1, steps=1, grid=2}, space={7, 64}, axes={1}, "
        "target=host]"
    ),
}


@pytest.mark.parametrize("brackets", CONTEXTS)
def test_contexts(library: Library, brackets: str) -> None:
    (found,) = mine(library, f"{HEAD}rule mine\n  neg(neg(neg(a)))\n  => a\n  counterexample {brackets} x\n").examples
    assert print_attributes(found.context) == CONTEXTS[brackets]


def test_a_context_is_that_of_the_examples_below(library: Library) -> None:
    rules = [f"rule r{n}\n  neg(neg(neg(a)))\n  => neg(a)\n  counterexample x\n" for n in range(3)]
    text = f"given x: float{{4}}\n{rules[0]}context [target=host]\n{rules[1]}context wave [axes=[]]\ncontext [wave]\n{rules[2]}"
    whole = build_library([*library.files, parse_rw(text, "mine.rw")])
    found = [rule.examples[0].context for rule in whole.rules if rule.name_span.source.name == "mine.rw"]
    assert [print_attributes(context) for context in found] == ["[]", "[target=host]", "[axes={}]"]
    other = "rule other\n  neg(neg(neg(a)))\n  => a\n  counterexample x\n"
    whole = build_library([*library.files, parse_rw(text, "mine.rw"), parse_rw(other, "other.rw")])
    (rule,) = [rule for rule in whole.rules if rule.name == "other"]
    assert (rule.examples[0].context, rule.examples[0].given) == ((), ())


def test_an_unknown_context_is_told(library: Library) -> None:
    text = f"{HEAD}rule mine\n  neg(neg(neg(a)))\n  => a\n  counterexample [wav] x\n"
    _, problems = gathered_library([*library.files, parse_rw(text, "mine.rw")])
    assert [(p.message, p.remedy, p.span and p.span.text) for p in problems] == [
        ("there is no context `wav`", "did you mean `wave`?", "wav")
    ]
