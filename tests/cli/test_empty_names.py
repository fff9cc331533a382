"""Texts that name no file: nothing at all, wherever a command takes a place, and folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from commands import Command

from genrw.cli import app


def commands(group: object, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands, with the words that call them."""
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*names, name))
    if names and not hasattr(group, "commands"):
        yield names, group


def places_named() -> list[tuple[str, ...]]:
    """Every call of a command that names an empty text for one of its files and folders."""
    found = []
    for words, command in commands(typer.main.get_command(app)):
        takes = {
            p: (p.metavar or "").rstrip("…") in {"FILE", "DIR", "MODEL", "SUITE", "PROGRAM"} for p in command.params
        }
        for parameter in [p for p, names_place in takes.items() if names_place]:
            given = [
                ("x" if p is not parameter else "",) for p in takes if p.required and p.param_type_name == "argument"
            ]
            options = [
                (p.opts[0], "y") for p in takes if p.required and p.param_type_name == "option" and p is not parameter
            ]
            if parameter.param_type_name == "option":
                options.append((parameter.opts[0], ""))
            elif not parameter.required:
                given.append(("",))
            found.append((*words, *(word for part in (*options, *given) for word in part)))
    return found


@pytest.mark.parametrize("call", places_named(), ids=" ".join)
def test_an_empty_text_names_no_place(
    genrw: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...]
) -> None:
    """It is what a script's unset variable leaves, and not the folder at hand, in which all would be laid out anew."""
    monkeypatch.chdir(tmp_path)
    Path("untidy.gen").write_text("x=@param:x->float{4}\n@return( x )\n")
    result = genrw(*call)
    assert (result.status, result.out) == (2, "")
    assert "an empty text names no file or folder" in result.err
    assert "  help: " in result.err
    assert [(p.name, p.read_text()[:2]) for p in tmp_path.iterdir()] == [("untidy.gen", "x=")]


def words_named() -> list[tuple[str, ...]]:
    """Every call of a command that gives an empty text for an option that takes a word."""
    return [
        (
            *words,
            *(("y",) if any(p.param_type_name == "argument" and p.required for p in command.params) else ()),
            option,
            "",
        )
        for words, command in commands(typer.main.get_command(app))
        for p in command.params
        for option in p.opts[:1]
        if option in ("--stage", "--target", "--schedule", "--only")
    ]


@pytest.mark.parametrize("call", words_named(), ids=" ".join)
def test_an_empty_text_names_nothing(genrw: Command, call: tuple[str, ...]) -> None:
    result = genrw(*call)
    assert (result.status, result.out) == (2, "")
    assert f"error: invalid value for '{call[-2]}': an empty text names nothing" in result.err


@pytest.mark.parametrize("call", [("lower", "{}"), ("import", "{}", "-o", "out")], ids=" ".join)
@pytest.mark.parametrize("made", [True, False])
def test_models_that_are_no_files(genrw: Command, tmp_path: Path, call: tuple[str, ...], made: bool) -> None:
    path = tmp_path / "model.onnx"
    if made:
        path.mkdir()
    result = genrw(*(word.format(path) for word in call))
    assert (result.status, result.out) == (2, "")
    assert f"{path} cannot be read: " in result.err
    assert result.err.endswith("  help: name an ONNX model\n")
