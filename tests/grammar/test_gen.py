"""`.gen`: what each construct reads as, where it stands, and that printing reads back."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from trees import files

from genrw.grammar.gen import parse_gen, print_gen, print_instruction, print_module, print_type, print_value
from genrw.grammar.gen_tree import (
    Attribute,
    File,
    Instruction,
    MapValue,
    Module,
    NumberOperand,
    Ref,
    TypeNode,
    Value,
    Word,
)

SEED = sorted((Path(__file__).parent / "data/seed").glob("*.gen"))


def only(text: str) -> Instruction:
    (module,) = parse_gen(text).modules
    (instruction,) = module.instructions
    return instruction


@pytest.mark.parametrize("path", SEED, ids=lambda path: path.stem)
def test_listing_of_the_seed(path: Path) -> None:
    file = parse_gen(path.read_text(), path.name)
    printed = print_gen(file)
    assert "gpu::gen::" not in printed
    assert parse_gen(printed) == file


@settings(max_examples=100, deadline=None)
@given(files)
def test_printing_reads_back(file: File) -> None:
    again = parse_gen(print_gen(file))
    assert again == file
    assert repr(again) == repr(file)  # 1, 1.0 and true are equal, but not the same


EVERYTHING = """\
@module main [stage=lanewise, target=gfx942, schedule={algo=block, block_size=256}, outputs={z_output=y}]
x = @param:x -> half{8192, 4096}
t = @param:t -> half{2, 3}, {1, 2}
w = @literal{1, 2.5, -inf} -> float{3}
m = reduce_max[axes={1}](x) -> {8192, 1}
store(z_output, gid, m)
a, b = call[module=k0](x, 0.5, nan, true)
gid = global_id
lds = lds_allocate[slot=0, shape={float, {4}}, dtype=half{2}, {1}, pad="a \\"b\\"\\n"]
v = strided_load[size, stride={}](x, gid) -> float[16]
i = pad_index(v) -> index[16]
s = load(x, i) -> scalar
e = effects(s) -> effect
@return(y, s)

@module k0
y = convert(x) -> int8
"""


def test_print_of_everything_is_the_text() -> None:
    assert print_gen(parse_gen(EVERYTHING)) == EVERYTHING


def test_operation() -> None:
    assert only("m, n = f[axes={1}, op](x, 0.5) -> half{8, N}") == Instruction(
        ("m", "n"),
        "f",
        (Attribute("axes", (1,)), Attribute("op", None)),
        (Ref("x"), NumberOperand(0.5)),
        TypeNode("tensor", "half", (8, "N")),
    )


def test_parameter_and_literal() -> None:
    assert only('x = @param:w = "a b/w.npy" -> {8}') == Instruction(
        ("x",), "@param", type=TypeNode("tensor", None, (8,)), param="w", file="a b/w.npy"
    )
    assert only("x = @param:a.b -> {8}") == Instruction(
        ("x",), "@param", type=TypeNode("tensor", None, (8,)), param="a.b"
    )
    assert only("@literal{1, -2.5, true} -> float") == Instruction(
        (), "@literal", type=TypeNode("scalar", "float"), literal=(1, -2.5, True)
    )


def test_the_prefix_is_stripped_everywhere() -> None:
    written = only("gpu::gen::v = gpu::gen::load[gpu::gen::at=gpu::gen::x](gpu::gen::p)")
    assert print_instruction(written) == "v = load[at=x](p)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0x1F", -31),
        ("1e-5", 1e-5),
        (".5", 0.5),
        ("-inf", -math.inf),
        ("inf", math.inf),
        ("true", True),
        ("block", Word("block")),
        ('"a\\tb"', "a\tb"),
        ("{}", ()),
        ("{1, {2, x}}", (1, (2, Word("x")))),
        ("{a=1, b: {2}}", MapValue((("a", 1), ("b", (2,))))),
        ("half{2, N}", TypeNode("tensor", "half", (2, "N"))),
        ("half{2}, {1}", TypeNode("tensor", "half", (2,), (1,))),
        ("float[4]", TypeNode("array", "float", size=4)),
    ],
)
def test_attribute_value(text: str, value: Value) -> None:
    found = only(f"f[a={text}, b]").attributes
    assert repr(found) == repr((Attribute("a", value), Attribute("b", None)))


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("float{2, 3}", TypeNode("tensor", "float", (2, 3))),
        ("{2, 3}, {3, 1}", TypeNode("tensor", None, (2, 3), (3, 1))),
        ("{}", TypeNode("tensor", None, ())),
        ("scalar", TypeNode("scalar")),
        ("half", TypeNode("scalar", "half")),
        ("half[16]", TypeNode("array", "half", size=16)),
        ("index", TypeNode("index")),
        ("index[16]", TypeNode("index", size=16)),
        ("effect", TypeNode("effect")),
    ],
)
def test_type(text: str, node: TypeNode) -> None:
    assert only(f"f(x) -> {text}").type == node
    assert print_type(node) == text


def test_newlines_end_instructions_only_outside_brackets() -> None:
    file = parse_gen("x = f[\n  a=1, # one\n  b=2](y,\n\n z) // and so on\r\n\r\n\t g(x)\r\n")
    assert [print_instruction(i) for i in file.modules[0].instructions] == ["x = f[a=1, b=2](y, z)", "g(x)"]


def test_instructions_before_a_header_belong_to_main() -> None:
    file = parse_gen("f(x)\n@module k0 [a=1]\n@module k1\ng(x)")
    assert [(m.name, len(m.instructions)) for m in file.modules] == [("main", 1), ("k0", 0), ("k1", 1)]


def test_a_header_is_printed_only_where_it_says_something() -> None:
    body = only("f(x)")
    assert print_gen(File((Module("main", (), (body,)),))) == "f(x)\n"
    assert print_gen(File((Module("k0", (), (body,)),))) == "@module k0\nf(x)\n"
    assert print_gen(File((Module("main", (Attribute("a", 1),), (body,)),))) == "@module main [a=1]\nf(x)\n"
    assert print_module(Module("main", (), (body,))) == "@module main\nf(x)\n"


def test_floats_are_printed_shortest() -> None:
    shown = [print_value(value) for value in (0.1, 1e-6, 1e22, 1.0, -math.inf, math.nan, -0.0)]
    assert shown == ["0.1", "1e-6", "1e22", "1.0", "-inf", "nan", "-0.0"]


def test_spans() -> None:
    module = parse_gen("# head\nm, n = f[axes={1}](x, 0.5) -> half{8}, {1}  # end\n", "a.gen").modules[0]
    line = module.instructions[0]
    assert line.span.text == "m, n = f[axes={1}](x, 0.5) -> half{8}, {1}"
    assert str(line.span) == "a.gen:2:1"
    assert module.span.text == line.span.text
    assert [span.text for span in (line.op_span, *line.name_spans)] == ["f", "m", "n"]
    assert [operand.span.text for operand in line.operands] == ["x", "0.5"]
    assert (line.attributes[0].span.text, line.attributes[0].value_span.text) == ("axes={1}", "{1}")
    assert line.type is not None
    assert line.type.span.text == "half{8}, {1}"


def test_threads_do_not_mix_their_texts() -> None:
    texts = [f"x{i} = f{i}(y{i})\n" * 20 for i in range(16)]
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(parse_gen, texts, map(str, range(16))))
    assert [print_gen(file) for file in files] == texts
    assert [file.modules[0].instructions[-1].op_span.source.name for file in files] == [*map(str, range(16))]
