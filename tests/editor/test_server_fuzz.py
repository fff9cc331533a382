"""The language server under damaged texts and questions about any place: each has an answer, and none of them fails."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from client import Editor, Refusal
from mutations import mutated

pytest.importorskip("pygls")

ROOT = Path(__file__).parents[2]
PROGRAMS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.gen"))]
RULES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "rules").rglob("*.rw"))]
SMALL_RULES = sorted(RULES, key=len)[:20]

NAMES = ("new", "a.b", "when", "", "𝔸", "x y", "0", "\n", "x" * 500)
ODD = ("𝔸", "é", "\u2028", "\r", "\r\n", "\0", "\t", "\ufeff", "𝄞𝄞", "'")
FAR = (0, 1, 10**6, 2**31 - 1)


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    (tmp_path / "project").mkdir()
    session = Editor(tmp_path / "project", log=tmp_path / "log")
    yield session
    session.process.kill()


def units(text: str) -> list[int]:
    """The lengths of a text's lines as the protocol counts them, in UTF-16."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [len(line.encode("utf-16-le", "surrogatepass")) // 2 for line in lines]


def ranges(answer: Any) -> Iterator[Any]:
    """All ranges in an answer."""
    if isinstance(answer, dict):
        if set(answer) == {"start", "end"}:
            yield answer
        for value in answer.values():
            yield from ranges(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from ranges(value)


def check_ranges(answer: Any, text: str) -> None:
    """Every range of an answer about one text lies in the text."""
    lengths = units(text)
    for found in ranges(answer):
        start, end = ((found[edge]["line"], found[edge]["character"]) for edge in ("start", "end"))
        assert (0, 0) <= start <= end, found
        for line, character in (start, end):
            assert line < len(lengths), found
            assert character <= lengths[line], found


def damaged(texts: list[str], rng: random.Random) -> str:
    text = mutated(texts, rng, RULES + PROGRAMS)
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(ODD) + text[at:]
    return text


def place(text: str, rng: random.Random) -> tuple[int, int]:
    """A place in a text, inside of a pair of surrogates too, or far outside."""
    lengths = units(text)
    if rng.random() < 0.1:
        return rng.choice(FAR), rng.choice(FAR)
    line = rng.randrange(len(lengths) + 2)
    return line, rng.randrange((lengths[line] if line < len(lengths) else 0) + 3)


def ask(editor: Editor, name: str, text: str, rng: random.Random) -> None:
    """Ask everything about one place."""
    where = place(text, rng)
    check_ranges(editor.at("hover", name, *where), text)
    with suppress(Refusal):
        check_ranges(editor.at("prepareRename", name, *where), text)
    editor.at("definition", name, *where)
    editor.at("completion", name, *where)
    inside = {"includeDeclaration": rng.random() < 0.5}
    uri = editor.uri(name)
    check_ranges([a for a in editor.at("references", name, *where, context=inside) or () if a["uri"] == uri], text)
    with suppress(Refusal):
        check_ranges(editor.at("rename", name, *where, newName=rng.choice(NAMES))["changes"].get(uri), text)
    options = {"textDocument": {"uri": uri}, "options": {"tabSize": rng.randrange(9), "insertSpaces": True}}
    check_ranges(editor.ask("textDocument/formatting", options), text)


def touch(editor: Editor, name: str, rng: random.Random) -> None:
    """Save, close and open again, or speak of what is not open."""
    document = {"textDocument": {"uri": editor.uri(name)}}
    if rng.random() < 0.2:
        editor.tell("textDocument/didSave", document)
    if rng.random() < 0.1:
        editor.tell("textDocument/didClose", document)
        editor.open(name, damaged(PROGRAMS if name.endswith(".gen") else SMALL_RULES, rng))
    for uri in ("untitled:Untitled-1", "file:///nowhere/at/all.rw", "http://else.where/x.gen", ""):
        if rng.random() < 0.05:
            editor.ask("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 3, "character": 4}})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "texts"), [("d.gen", PROGRAMS), ("d.rw", SMALL_RULES)], ids=["gen", "rw"])
def test_every_question_has_an_answer(editor: Editor, name: str, texts: list[str], fuzz_factor: int) -> None:
    rng = random.Random(name)
    editor.open(name, texts[0])
    for _ in range(25 * fuzz_factor):
        touch(editor, name, rng)
        text = damaged(texts, rng)
        check_ranges(editor.change(name, text), text)
        ask(editor, name, text, rng)
    assert editor.process.poll() is None
    assert editor.change(name, texts[0]) is not None
    assert editor.close() == 0
    assert editor.log.read_text() == "", "nothing failed on the way"
