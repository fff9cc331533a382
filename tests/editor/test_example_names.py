"""Names in examples as an editor sees them: what is given, contexts, operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw.editor.about import hover
from genrw.editor.completion import complete
from genrw.editor.project import Analysis, Project

TEXT = """\
stage simplify

context wave [target=host, space=[8, 64]]
given x: float{4}, u = neg(x)

rule first
  abs(abs(abs(a)))
  => abs(a)
  example abs(abs(abs(u))) gives abs(u)

rule second
  neg(neg(neg(a)))
  => neg(a)
  given x: half{2}
  example [wave] neg(neg(neg(x))) gives neg(x)
"""


@pytest.fixture
def analysis(tmp_path: Path) -> Analysis:
    path = tmp_path / "mine.rw"
    project = Project([tmp_path])
    project.edit(path, TEXT)
    found = project.analysis(path)
    assert found.diagnostics == []
    return found


def at(text: str, nth: int = 0) -> int:
    """The offset of a word of the text."""
    place = -1
    for _ in range(nth + 1):
        place = TEXT.index(text, place + 1)
    return place


def places(analysis: Analysis, offset: int) -> list[int]:
    """Where what stands at an offset stands, too."""
    name = next(o for o in analysis.at(offset) if o.kind in ("value", "context"))
    return sorted(o.span.start for o in analysis.names if o.key == name.key)


def test_a_given_name_is_one_wherever_it_stands(analysis: Analysis) -> None:
    assert places(analysis, at("u = neg")) == [at("u = neg"), at("u))) gives"), at("u)\n\nrule")]
    assert places(analysis, at("x: float")) == [at("x: float"), at("x)\n\nrule")]


def test_what_a_rule_gives_is_another(analysis: Analysis) -> None:
    assert places(analysis, at("x: half")) == [at("x: half"), at("x))) gives"), at("x)\n", 1)]


def test_a_context_is_one_wherever_it_stands(analysis: Analysis) -> None:
    assert places(analysis, at("wave [")) == [at("wave ["), at("wave]")]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("x))) gives", "given x: half{2}"),
        ("u))) gives", "given u = neg(x)"),
        ("wave]", "context wave [target=host, space=[8, 64]]"),
    ],
)
def test_hover(analysis: Analysis, word: str, told: str) -> None:
    name = next(o for o in analysis.at(at(word)) if o.kind in ("value", "context"))
    assert told in (hover(name, analysis) or "")


def test_operators_of_examples_are_names(analysis: Analysis) -> None:
    assert "neg" in [o.name for o in analysis.at(at("neg(neg(neg(x)))")) if o.kind == "operator"]


def test_completion_in_the_brackets_of_an_example(analysis: Analysis) -> None:
    offset = at("wave]")
    words = {item.word for item in complete(analysis, TEXT, offset, False)}
    assert {"wave", "schedule", "space", "host"} <= words
    assert "relu" not in words
    assert {"given", "example", "gives", "counterexample", "context"} <= {
        item.word for item in complete(analysis, TEXT + "\n  ", len(TEXT) + 3, False)
    }
