"""Foreign operators by dialect: two languages may call theirs alike, and templates use those of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library, unchecked_library
from genrw.engine.importing.importer import Translator
from genrw.engine.importing.scope import ImportHost, Unfit, Use
from genrw.engine.ir.nodes import Attributes, Node
from genrw.engine.ir.types import Type
from genrw.engine.library.context import EMPTY
from genrw.engine.library.library import Library
from genrw.engine.lint.check import lint
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_rw, print_rw
from genrw.grammar.rw_format import format_rw
from genrw.grammar.rw_tree import ImportDecl

OTHER = """\
# The operators of another language.

dialect other

import Add(x, y) => sub(x, y)
import add(x, y) => add(x, y)
import Twice(x) => Add(x, add(x, x))
import Scaled[by: float = 2.0](x) when opset >= 3 => mul(x, {by})
"""


class Host(ImportHost):
    """Takes operations as they come."""

    def make(self, op: str, attributes: Attributes, operands: tuple[Node, ...], type_: Type) -> Node:
        return Node(op, attributes, operands, type_)


def shown(node: Node) -> str:
    return f"{node.op}({', '.join(map(shown, node.operands))})" if node.operands else node.name or node.op


def made(library: Library, dialect: str, name: str, inputs: int, opset: int = 0) -> str:
    """What a dialect's operator is here, of inputs called a, b."""
    operands = tuple(Node("@param", (), (), Type("tensor", "float", (4,)), name=n) for n in "ab"[:inputs])
    context = {"target": library.target(library.default_target), "schedule": EMPTY}
    (found,) = Translator(library, dialect, context, Host(), opset).results(Use(name, {}, operands, 1))
    return shown(found)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "other.rw").write_text(OTHER)
    return load_library([folder])


def test_two_dialects_call_their_operators_alike(both: Library) -> None:
    assert {"onnx", "other"} <= both.dialects.keys()
    assert made(both, "onnx", "Add", 2) == "add(a, b)"
    assert made(both, "other", "Add", 2) == "sub(a, b)"


def test_templates_use_shared_operators_and_imports_of_their_dialect(both: Library) -> None:
    assert made(both, "other", "add", 2) == "add(a, b)"
    assert made(both, "other", "Twice", 1) == "sub(a, add(a, a))"
    assert made(both, "onnx", "Sum", 2) == "add(a, b)"


def test_what_a_dialect_does_not_have(both: Library) -> None:
    for dialect, name in (("onnx", "Twice"), ("other", "Relu"), ("third", "Add")):
        with pytest.raises(Unfit, match=rf"^there is no `{dialect}\.{name}`$"):
            made(both, dialect, name, 1)


def test_versions_are_the_dialects(both: Library) -> None:
    assert made(both, "other", "Scaled", 1, opset=3).startswith("mul(a")
    with pytest.raises(Unfit, match="this form is not supported"):
        made(both, "other", "Scaled", 1, opset=2)


def test_several_dialects_in_a_file() -> None:
    text = "dialect a\n\nimport F(x)\n  => x\n\ndialect b\n\nimport F(x)\n  => x\n\nlet f(n) = n\n\nimport G(x)\n  => F(x)\n"
    file = parse_rw(text)
    found = [d for d in file.declarations if isinstance(d, ImportDecl)]
    assert [one.full_name for one in found] == ["a.F", "b.F", "b.G"]
    assert print_rw(file) == text
    assert format_rw(text.replace("dialect a", "dialect   a")) == text


def test_an_import_that_stays_takes_on_the_dialect_above_it() -> None:
    before = parse_rw(OTHER, "other.rw")
    renamed = parse_rw(OTHER.replace("dialect other", "dialect third"), "other.rw", before)
    assert {d.dialect for d in renamed.declarations if isinstance(d, ImportDecl)} == {"third"}
    again = parse_rw(OTHER, "other.rw", before)
    assert all(a is b for a, b in zip(again.declarations, before.declarations, strict=True))


# ---- what is wrong

UNKNOWN = "dialect other\n\nimport Far(x) => {}(x)\nimport Nearby(x) => x\n"


def refused(folder: Path, text: str) -> str:
    (folder / "mine.rw").write_text(text)
    with pytest.raises(GenrwError) as raised:
        load_library([folder])
    return str(raised.value).replace(f"{folder}/", "")


def test_an_import_without_a_dialect(tmp_path: Path) -> None:
    assert refused(tmp_path, "import Far(x) => neg(x)\n\ndialect far\n") == (
        "mine.rw:1:8: error: the import belongs to no dialect\n"
        "  import Far(x) => neg(x)\n"
        "         ^^^\n"
        "  help: write `dialect NAME` above it: whose operator it is"
    )


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Relu", "`onnx.Relu` is of another dialect: templates use those of their own"),
        ("Nearbi", "did you mean `Nearby`?"),
        ("relo", "did you mean `relu`?"),
    ],
)
def test_a_template_of_what_its_dialect_lacks(tmp_path: Path, name: str, remedy: str) -> None:
    assert refused(tmp_path, UNKNOWN.format(name)) == (
        f"mine.rw:3:18: error: unknown operator `{name}`\n"
        f"  import Far(x) => {name}(x)\n"
        f"                   {'^' * len(name)}\n"
        f"  help: {remedy}"
    )


def test_a_term_function_called_like_an_import(tmp_path: Path) -> None:
    found = refused(tmp_path, "dialect far\n\ndefine Far(x) = neg(x)\n\nimport Far(x) => exp(x)\n")
    assert "mine.rw:3:8: error: `far.Far` is called so, too\n" in found


def test_a_dialect_without_a_name(tmp_path: Path) -> None:
    assert "expected a name, found the end of the declaration" in refused(tmp_path, "dialect\n")


def test_findings_are_named_for_the_dialect(tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(UNKNOWN.format("neg").replace("=> x", "=> y"))
    library, problems = unchecked_library([tmp_path])
    assert not problems
    assert [f.subject for f in lint(library, ()) if "no input" in f.diagnostic.message] == ["other.Nearby"]
