"""The language server, driven over its protocol."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from client import Editor, Refusal

from genrw.editor.positions import Positions

pytest.importorskip("pygls")

RULES = """\
stage simplify

/// Half of it.
let half_of(n) = n / 2

/// Twice the root.
op twice_root(x: T) -> T where T: real
  role pointwise
  means 2 * sqrt(x)

/// A sum of roots.
rule sum_of_roots
  r@add(sqrt(x), sqrt(y)) when r.lens == x.lens and half_of(x.rank) > limit
  => twice_root[](x)
  with limit = y.rank

/// Moves twice.
rule again
  transpose[permutation](twice_root(x))
  => twice_root(transpose[permutation](x))
"""

PROGRAM = """\
# 𝔸 program
x = @param:x -> half{8, 4}
root = twice_root(x)
s = reduce_sum[axes={1}](root)
@return(s)
"""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("work")
    (folder / "rules").mkdir()
    (folder / "rules" / "mine.rw").write_text(RULES)
    made = Editor(folder, "--rules", str(folder / "rules"))
    made.open("rules/mine.rw", RULES)
    made.open("a.gen", PROGRAM)
    yield made
    assert made.close() == 0


def start(place: Any) -> tuple[int, int]:
    return place["range"]["start"]["line"], place["range"]["start"]["character"]


def find(text: str, word: str, nth: int = 0) -> tuple[int, int]:
    """Line and column of a word."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(word, at + 1)
    return text.count("\n", 0, at), at - (text.rfind("\n", 0, at) + 1)


def test_what_it_can_do(editor: Editor) -> None:
    offered = {name for name, value in editor.capabilities.items() if value}
    wanted = ("hover", "definition", "references", "rename", "completion", "documentFormatting")
    assert {f"{name}Provider" for name in wanted} <= offered


def test_findings_as_one_types(editor: Editor) -> None:
    assert editor.open("b.gen", PROGRAM) == []
    (found,) = editor.change("b.gen", PROGRAM.replace("reduce_sum", "reduce_some"))
    assert found["message"].startswith("unknown operator `reduce_some`\nhelp: did you mean `reduce_")
    assert (start(found), found["range"]["end"]["character"]) == ((3, 4), 15)
    assert editor.change("b.gen", PROGRAM) == []


def test_findings_on_rules(editor: Editor) -> None:
    name = "rules/other.rw"
    text = "stage simplify\n\nrule mine\n  neg(neg(x))\n  => x\n"
    assert editor.open(name, text) == []
    (again,) = editor.wait(name, 1)
    assert again["message"].startswith("`mine` does the same as `negated_twice`")
    (found,) = editor.change(name, text.replace("=> x", "=> nag(x)"))
    assert found["message"].startswith("unknown operator `nag`")
    (found,) = editor.change(name, text.replace("=> x", "=> nag(x"))
    assert "never closed" in found["message"]
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})
    (editor.folder / name).unlink()


def test_hover(editor: Editor) -> None:
    def hover(name: str, text: str, word: str, nth: int = 0) -> str:
        line, column = find(text, word, nth)
        return str(editor.at("hover", name, line, column)["contents"]["value"])

    assert "s: half{8, 1}" in hover("a.gen", PROGRAM, "s = ")
    assert "root: half{8, 4}" in hover("a.gen", PROGRAM, "root)")
    operator = hover("a.gen", PROGRAM, "twice_root")
    assert "op twice_root(x: T) -> T where T: real" in operator
    assert "Twice the root." in operator
    assert "reduce_{op: monoid}" in hover("a.gen", PROGRAM, "reduce_sum")
    assert "Half of it." in hover("rules/mine.rw", RULES, "half_of", 1)
    assert "operand of `sqrt`" in hover("rules/mine.rw", RULES, "x.lens")
    assert "Moves twice." in hover("rules/mine.rw", RULES, "again")


def test_definition(editor: Editor) -> None:
    line, column = find(PROGRAM, "root)")
    (place,) = editor.at("definition", "a.gen", line, column)
    assert (place["uri"], start(place)) == (editor.uri("a.gen"), find(PROGRAM, "root ="))
    (place,) = editor.at("definition", "a.gen", *find(PROGRAM, "twice_root"))
    assert (place["uri"], start(place)) == (editor.uri("rules/mine.rw"), find(RULES, "twice_root"))
    (place,) = editor.at("definition", "a.gen", *find(PROGRAM, "reduce_sum"))
    assert place["uri"].endswith("/rules/ops/reduce.rw")
    (place,) = editor.at("definition", "rules/mine.rw", *find(RULES, "limit", 0))
    assert start(place) == find(RULES, "limit", 1)


def test_references(editor: Editor) -> None:
    asked = {"context": {"includeDeclaration": True}}
    found = editor.at("references", "rules/mine.rw", *find(RULES, "twice_root"), **asked)
    mine = [start(f) for f in found if f["uri"] == editor.uri("rules/mine.rw")]
    assert mine == [find(RULES, "twice_root", n) for n in range(4)]
    assert find(PROGRAM, "twice_root") in [start(f) for f in found if f["uri"] == editor.uri("a.gen")]
    found = editor.at("references", "rules/mine.rw", *find(RULES, "half_of"), context={"includeDeclaration": False})
    assert [start(f) for f in found] == [find(RULES, "half_of", 1)]


SIGNED = """\
stage final

/// A sum of my own.
op mine(a: index, b: index) -> index()
  at nowhere
  written a ^ b
  means a + b

rule signed
  mine(i, {n}) ^ i
  => i * {n + n} + i
  example mine(local_id(), 2) ^ local_id() gives local_id() * 4 + local_id()
"""


def test_signs_between_terms(editor: Editor) -> None:
    name = "rules/signed.rw"
    editor.open(name, SIGNED)
    told = editor.at("hover", name, *find(SIGNED, "^", 1))
    assert "A sum of my own." in told["contents"]["value"]
    assert start(told) == find(SIGNED, "^", 1)
    assert "op imul(" in editor.at("hover", name, *find(SIGNED, "*"))["contents"]["value"]
    (place,) = editor.at("definition", name, *find(SIGNED, "^", 2))
    assert (place["uri"], start(place)) == (editor.uri(name), find(SIGNED, "mine"))
    (place,) = editor.at("definition", name, *find(SIGNED, "*"))
    assert place["uri"].endswith("/rules/ops/index.rw")
    found = editor.at("references", name, *find(SIGNED, "mine"), context={"includeDeclaration": True})
    assert sorted(map(start, found)) == sorted(
        [find(SIGNED, "mine", n) for n in range(3)] + [find(SIGNED, "^", n) for n in range(3)]
    )
    changed = renamed(editor, name, find(SIGNED, "mine"), "own")
    assert sorted(map(start, changed[editor.uri(name)])) == [find(SIGNED, "mine", n) for n in range(3)]
    assert refused(editor, name, find(SIGNED, "^", 1), "own").startswith("the sign stays what it is")
    (wrong,) = editor.change(name, SIGNED.replace("+ i", "| i"))
    assert wrong["message"].startswith("no operator is written `|`\nhelp: the signs are ")
    assert wrong["range"]["start"] == {"line": 10, "character": 17}
    offered = editor.at("completion", name, 5, 2)["items"]
    assert "written" in [item["label"] for item in offered]
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})


def test_dialects(editor: Editor) -> None:
    name = "rules/dialects.rw"
    text = "dialect mine\n\nimport Add(x, y) => sub(x, y)\n\ndialect \n"
    editor.open(name, text.replace("\ndialect \n", ""))
    (wrong,) = editor.change(name, text.replace("dialect mine\n\n", "").replace("dialect \n", ""))
    assert wrong["message"].startswith("the import belongs to no dialect\nhelp: write `dialect NAME` above it")
    assert start(wrong) == (0, 7)
    editor.change(name, text)
    offered = editor.at("completion", name, 4, 8)["items"]
    assert "onnx" in [item["label"] for item in offered]
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})


def renamed(editor: Editor, name: str, place: tuple[int, int], new: str) -> dict[str, Any]:
    """What is changed in each text."""
    changes: dict[str, Any] = editor.at("rename", name, *place, newName=new)["changes"]
    return changes


def refused(editor: Editor, name: str, place: tuple[int, int], new: str) -> str:
    """Why a name stays as it is."""
    with pytest.raises(Refusal) as told:
        editor.at("rename", name, *place, newName=new)
    return str(told.value)


def applied(text: str, edits: list[Any]) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda e: start(e), reverse=True):
        line, column = start(edit)
        end = edit["range"]["end"]["character"]
        lines[line] = lines[line][:column] + edit["newText"] + lines[line][end:]
    return "\n".join(lines)


def test_rename(editor: Editor) -> None:
    changes = renamed(editor, "a.gen", find(PROGRAM, "root ="), "deep")
    text = PROGRAM.replace("root =", "deep =").replace("(root)", "(deep)")
    assert applied(PROGRAM, changes[editor.uri("a.gen")]) == text
    changes = renamed(editor, "rules/mine.rw", find(RULES, "twice_root"), "doubled")
    assert applied(RULES, changes[editor.uri("rules/mine.rw")]) == RULES.replace("twice_root", "doubled")
    assert applied(PROGRAM, changes[editor.uri("a.gen")]) == PROGRAM.replace("twice_root", "doubled")
    changes = renamed(editor, "rules/mine.rw", find(RULES, "permutation"), "perm")
    assert applied(RULES, changes[editor.uri("rules/mine.rw")]) == RULES.replace("[permutation]", "[permutation=perm]")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("a.gen", "reduce_sum", "`reduce_{op}` is not renamed: names of this kind are parts of others"),
        ("a.gen", "𝔸", "no name stands here"),
        ("rules/mine.rw", "sqrt(y)", "`sqrt` is declared in rules/ops/functions.rw, which is not among your files"),
        ("rules/mine.rw", "simplify", "no name stands here"),
    ],
)
def test_what_is_not_renamed(editor: Editor, text: str, name: str, message: str) -> None:
    """The reason is told before a new name is asked for, and where one comes nevertheless."""
    place = find({"a.gen": PROGRAM}.get(text, RULES), name)
    assert refused(editor, text, place, "other").startswith(message)
    with pytest.raises(Refusal, match=re.escape(message)):
        editor.at("prepareRename", text, *place)


NONE, TAKEN = "`{}` is no name: names are letters, digits", "`{}` is the name of something else"
NAMES = [
    ("a.gen", "root =", "a b", NONE),
    ("a.gen", "root =", "größe", NONE),
    ("a.gen", "root =", "s", TAKEN),
    ("a.gen", "root =", "inf", "`{}` is a number and cannot name a result"),
    ("rules/mine.rw", "twice_root", "twice.root", NONE),
    ("rules/mine.rw", "twice_root", "sqrt", TAKEN),
    ("rules/mine.rw", "twice_root", "contracted", TAKEN),
    ("rules/mine.rw", "half_of", "keepdims", TAKEN),
    ("rules/mine.rw", "half_of", "len", "`{}` is a function of the language"),
    ("rules/mine.rw", "half_of", "if", "expected a name, found `if`"),
    ("rules/mine.rw", "sum_of_roots", "again", TAKEN),
    ("rules/mine.rw", "x), sqrt(y)", "y", TAKEN),
    ("rules/mine.rw", "x), sqrt(y)", "limit", TAKEN),
    ("rules/mine.rw", "x), sqrt(y)", "target", "`{}` is what the context has, and nothing else may be called so here"),
    ("rules/mine.rw", "x), sqrt(y)", "half", "`{}` is an element type, and nothing else may be called so here"),
    ("rules/mine.rw", "x), sqrt(y)", "not", "`not` stands before no term"),
]


@pytest.mark.parametrize(("text", "name", "new", "message"), NAMES)
def test_names_that_are_none_or_taken(editor: Editor, text: str, name: str, new: str, message: str) -> None:
    """Nothing is called so: the text would not be read any more, or two things would be one."""
    told = refused(editor, text, find({"a.gen": PROGRAM}.get(text, RULES), name), new)
    assert told.startswith(message.format(new)), told


def test_completion(editor: Editor) -> None:
    def offered(name: str, place: tuple[int, int]) -> set[str]:
        return {item["label"] for item in editor.at("completion", name, *place)["items"]}

    line, column = find(PROGRAM, "reduce_sum")
    assert {"twice_root", "softmax", "@return"} <= offered("a.gen", (line, column + 2))
    assert offered("a.gen", find(PROGRAM, "axes")) == {"axes"}
    line, column = find(PROGRAM, "half")
    assert {"half", "bf16"} <= offered("a.gen", (line, column))
    line, column = find(RULES, "x.lens")
    assert "lens" in offered("rules/mine.rw", (line, column + 2))
    assert {"half_of", "broadcast_lens", "limit", "when"} <= offered("rules/mine.rw", (line, column))
    assert "lanewise" in offered("rules/mine.rw", (0, 8))


def test_formatting(editor: Editor) -> None:
    options = {"tabSize": 2, "insertSpaces": True}
    editor.open("c.gen", "x=@param:x->half{4}\n@return( x )\n")
    asked = {"textDocument": {"uri": editor.uri("c.gen")}, "options": options}
    (edit,) = editor.ask("textDocument/formatting", asked)
    assert edit["newText"] == "x = @param:x -> half{4}\n@return(x)\n"
    editor.change("c.gen", edit["newText"])
    assert editor.ask("textDocument/formatting", asked) == []
    editor.change("c.gen", "x = (\n")
    assert editor.ask("textDocument/formatting", asked) is None


JUNK = ("(", "]", "{", "\n", '"', "@", "=>", "𝔸", "\r", "\0", "when ", "rule ", "..", "\u2028", "x.")
ASKED = ("hover", "definition", "completion")


def test_it_never_dies(editor: Editor) -> None:
    """Damaged texts and places that are none: every question has an answer, and the server lives on."""
    rng = random.Random(5)
    for name, text in (("d.gen", PROGRAM), ("d.rw", RULES)):
        editor.open(name, text)
        for _ in range(25):
            at = rng.randrange(len(text) + 1)
            cut = rng.choice((0, 0, 1, 9))
            damaged = text[:at] + rng.choice(JUNK) + text[at + cut :]
            editor.change(name, damaged)
            place = (rng.randrange(-1 + 1, 25), rng.randrange(90))
            for method in ASKED:
                editor.at(method, name, *place)
            editor.at("references", name, *place, context={"includeDeclaration": True})
            for method, more in (("prepareRename", {}), ("rename", {"newName": "new"})):
                with suppress(Refusal):
                    editor.at(method, name, *place, **more)
    assert editor.process.poll() is None
    assert editor.change("d.gen", PROGRAM) == []


def test_places_at_the_ends_of_lines() -> None:
    places = Positions("𝔸b\r\nc\rd")
    assert [places.place(i) for i in range(8)] == [(0, 0), (0, 2), (0, 3), (0, 3), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert [places.offset(0, column) for column in (0, 1, 2, 3, 9)] == [0, 0, 1, 2, 2]


def test_nothing_old_is_told_of_a_text_that_cannot_be_read(editor: Editor) -> None:
    """The rules of a broken text are those that it had last; their places say nothing of it."""
    good = "stage simplify\n\nrule twice_called\n  exp(exp(exp(x)))\n  => exp(x)\n"
    (editor.folder / "apart").mkdir()
    editor.open("apart/broken.rw", good)
    assert editor.at("rename", "apart/broken.rw", 2, 8, newName="other") is not None
    told = editor.change("apart/broken.rw", f"# a line more\n\n{good}rule\n")
    assert [d["message"].split("\n")[0] for d in told] == ["expected a name, found the end of the declaration"]
    assert refused(editor, "apart/broken.rw", (2, 8), "other").startswith("the text cannot be read: expected a name")
    assert editor.at("hover", "apart/broken.rw", 4, 8) is None


def test_rules_that_are_open_and_not_on_the_disk(tmp_path: Path) -> None:
    """A new file, or one that somebody removed, is one of its folder's as long as it is open."""
    (tmp_path / "rules").mkdir()
    editor = Editor(tmp_path, "--rules", str(tmp_path / "rules"))
    program = "x = @param:x -> half{8, 4}\nroot = twice_root(x)\n@return(root)\n"
    assert editor.open("rules/new.rw", RULES) == []
    assert editor.open("b.gen", program) == []
    (tmp_path / "rules" / "new.rw").unlink()
    editor.tell("textDocument/didSave", {"textDocument": {"uri": editor.uri("b.gen")}})
    assert editor.change("b.gen", program + "# as before\n") == []
    assert editor.open("rules/other.rw", "stage simplify\nrule roots\n  twice_root(neg(x))\n  => x\n") == []
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri("rules/new.rw")}})
    assert [d["message"].split("\n")[0] for d in editor.change("b.gen", program)] == ["unknown operator `twice_root`"]
    assert editor.close() == 0
