"""docs/languages.md leaves nothing out: every word that the languages and the code know is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from pages import ROOT

from genrw.engine.egraph.encode import FACTS
from genrw.engine.egraph.stage import ITERATIONS_A_STEP, Limits
from genrw.engine.ir.types import TYPE_MEMBERS
from genrw.engine.language.expr_walk import DEPTH_LIMIT
from genrw.engine.language.running import STEP_LIMIT
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.library import ROLES, Library
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

REFERENCE = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
RULES = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "rules").rglob("*.rw")))
CODE = "\n".join(a or b for a, b in re.findall(r"`([^`\n]+)`|^```text\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL))


def missing(words: Iterable[str]) -> list[str]:
    """The words that stand in no piece of code of the page."""
    return [word for word in words if not re.search(rf"\b{re.escape(word)}\b", CODE)]


def test_facts() -> None:
    assert [f for f in FACTS if f"`x.{f}`" not in REFERENCE] == []


def test_members_of_values() -> None:
    assert [m for m in TYPE_MEMBERS if f"`x.{m}`" not in REFERENCE] == []


def test_context() -> None:
    assert [name for name in CONTEXT_NAMES if f"| `{name}` |" not in REFERENCE] == []


@pytest.mark.parametrize("record", ["space", "schedule", "target"])
def test_members_of_the_context(record: str) -> None:
    assert missing(sorted(set(re.findall(rf"\b{record}\.(\w+)", RULES)))) == []


def test_schedule(library: Library) -> None:
    kernels = [op for op in library.operators.values() if op.role == "kernel"]
    assert missing(name for op in kernels for name in op.attributes) == []


def test_roles() -> None:
    assert missing(ROLES) == []


def test_clauses() -> None:
    grammar = (ROOT / "grammar" / "rw.lark").read_text(encoding="utf-8")
    keywords = re.search(r"_keyword: ((?:.*\n)*?)\n", grammar)
    assert keywords is not None
    assert missing(re.findall(r'"(\w+)"', keywords[1])) == []


def test_headers(library: Library) -> None:
    with pytest.raises(GenrwError) as problem:
        Program.parse(Source("x.gen", "@module main [nonsense=1]\n@return()\n"), library)
    entries = problem.value.diagnostics[0].remedy or ""
    assert missing(entries.removeprefix("it has ").split(", ")) == []


def test_types_of_attributes_and_operands(library: Library) -> None:
    operators = [*library.operators.values(), *library.families]
    assert missing({a.type for op in operators for a in op.decl.attributes}) == []
    assert missing({o.sort for op in operators for o in op.decl.operands if o.sort}) == []
    assert missing({op.result_sort for op in operators if op.result_sort}) == []


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split())


def test_limits_are_those_of_the_code_on_every_page() -> None:
    stage = Limits()
    told = {
        f"{STEP_LIMIT // 10**6} million steps": ("languages", "workbench"),
        f"{DEPTH_LIMIT} levels": ("languages",),
        f"{stage.rounds} rounds of {ITERATIONS_A_STEP} iterations": ("pipeline", "workbench"),
        f"{stage.nodes_per_kernel:,} nodes for a kernel": ("pipeline", "workbench"),
        f"{stage.memory >> 30} GiB": ("pipeline", "workbench"),
    }
    assert {text: [p for p in pages if text not in page(p)] for text, pages in told.items()} == {t: [] for t in told}
    for name in ("languages", "workbench"):
        assert not re.search(rf"(?<!{STEP_LIMIT // 10**6} )million steps", page(name))
