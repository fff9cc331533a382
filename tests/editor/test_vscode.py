"""The extension for Visual Studio Code: its files fit together, and its colours know the languages' words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from genrw.engine.ir.dtypes import DTYPES
from genrw.grammar import rw

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
GRAMMARS = sorted((EXTENSION / "syntaxes").glob("*.json"))


def patterns(value: Any) -> Iterator[dict[str, Any]]:
    """All patterns of a grammar that match or begin something."""
    if isinstance(value, dict):
        if {"match", "begin"} & value.keys():
            yield value
        for part in value.values():
            yield from patterns(part)
    elif isinstance(value, list):
        for part in value:
            yield from patterns(part)


def scopes(grammar: Path, line: str) -> dict[str, str]:
    """The first scope that a grammar gives to each piece of a line that it matches at once."""
    found: dict[str, str] = {}
    at = 0
    listed = [p for p in patterns(json.loads(grammar.read_text())) if "match" in p]
    while at < len(line):
        hits = [(m.start(), i, m) for i, p in enumerate(listed) if (m := re.compile(p["match"]).search(line, at))]
        if not hits:
            break
        _, i, match = min(hits, key=lambda hit: hit[:2])
        named = (
            {0: listed[i]["name"]}
            if "name" in listed[i]
            else {int(n): c["name"] for n, c in listed[i]["captures"].items()}
        )
        found |= {match[n]: name for n, name in named.items()}
        at = max(match.end(), at + 1)
    return found


def test_all_files_are_there() -> None:
    package = json.loads((EXTENSION / "package.json").read_text())
    listed = package["contributes"]
    named = [
        package["main"],
        *(g["path"] for g in listed["grammars"]),
        *(x["configuration"] for x in listed["languages"]),
    ]
    assert all((EXTENSION / name).is_file() for name in named)
    assert {g["scopeName"] for g in listed["grammars"]} == {json.loads(g.read_text())["scopeName"] for g in GRAMMARS}
    assert [x["extensions"] for x in listed["languages"]] == [[".gen"], [".rw"]]


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda path: path.stem)
def test_every_pattern_is_one(grammar: Path) -> None:
    found = list(patterns(json.loads(grammar.read_text())))
    assert len(found) > 8
    for pattern in found:
        re.compile(pattern.get("match", pattern.get("begin")))


def test_words_of_rules() -> None:
    """Every keyword of the grammar that Lark reads has a colour."""
    rules = next(g for g in GRAMMARS if g.stem.startswith("genrw-rules"))
    lark = (Path(rw.__file__).parent / "rw.lark").read_text()
    words = set(re.findall(r'"([a-z]+[0-9]?)"', lark))
    assert {"rule", "when", "commutative", "pow2"} <= words
    coloured = {word for word in words if word in scopes(rules, f"  {word} x") or word in scopes(rules, f"a {word} b")}
    assert words - coloured == set()


def test_colours() -> None:
    rules, program = GRAMMARS
    assert scopes(program, "y = reduce_sum[axes={1}](x) -> half{8}  # why") == {
        "=": "keyword.operator.genrw",
        "reduce_sum": "entity.name.function.genrw",
        "axes": "variable.other.attribute.genrw",
        "1": "constant.numeric.genrw",
        "->": "keyword.operator.genrw",
        "half": "storage.type.genrw",
        "8": "constant.numeric.genrw",
        "# why": "comment.line.genrw",
    }
    assert scopes(rules, "rule a_b")["a_b"] == "entity.name.type.genrw-rules"
    assert scopes(rules, "  => add(x, y)")["add"] == "entity.name.function.genrw-rules"
    types = {d for d in DTYPES if scopes(program, f" {d} ").get(d) == "storage.type.genrw"}
    assert types == set(DTYPES)
