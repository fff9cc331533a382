"""The disk cache: entries are whole or absent, and hold nothing but data."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from genrw.grammar.cache import cache_folder, read_entry, read_object, write_entry, write_object
from genrw.grammar.gen_tree import Word
from genrw.grammar.parsing import Language
from genrw.grammar.source import Source


def test_objects_of_known_classes(tmp_path: Path) -> None:
    value = ({"a": [1, 2.5, None]}, Word("x"))
    assert write_object(tmp_path / "entry", value)
    assert read_object(tmp_path / "entry", ["genrw.grammar.gen_tree"]) == value
    assert read_object(tmp_path / "entry") is None
    assert read_object(tmp_path / "missing") is None


class Hostile:
    """Runs something when it is loaded."""

    def __init__(self, function: object, argument: str) -> None:
        self.call = (function, (argument,))

    def __reduce__(self) -> tuple[object, ...]:
        return self.call


@pytest.mark.parametrize("function", [os.unlink, Path.unlink, Source, Language, eval])
def test_objects_that_would_do_something(tmp_path: Path, function: object) -> None:
    victim = tmp_path / "victim"
    victim.write_text("")
    data = pickle.dumps(Hostile(function, str(victim)))
    write_entry(tmp_path / "entry", data)
    modules = ["genrw.grammar.gen_tree", "genrw.grammar.rw_tree"]
    assert read_object(tmp_path / "entry", modules) is None
    assert victim.exists()


def test_classes_that_a_module_only_imports(tmp_path: Path) -> None:
    for name in ("Path", "Source", "read_text", "Path.unlink"):
        write_entry(tmp_path / "entry", f"cgenrw.grammar.read\n{name}\n.".encode())
        assert read_object(tmp_path / "entry", ["genrw.grammar.read"]) is None


@pytest.mark.parametrize("damage", [slice(0, 10), slice(0, 0), slice(5, None)])
def test_damaged_entries(tmp_path: Path, damage: slice) -> None:
    write_object(tmp_path / "entry", [1, 2, 3])
    (tmp_path / "entry").write_bytes((tmp_path / "entry").read_bytes()[damage])
    assert read_entry(tmp_path / "entry") is None
    assert read_object(tmp_path / "entry") is None


def test_a_place_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not write_object(tmp_path / "file" / "entry", 1)


def test_where_entries_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path))
    assert cache_folder("rules") == tmp_path / "rules"


def test_the_entries_used_last_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENRW_CACHE_BYTES", "4000")
    for i in range(3):
        write_entry(tmp_path / str(i), bytes(1000))
        os.utime(tmp_path / str(i), (i, i))
    assert read_entry(tmp_path / "0") is not None
    write_entry(tmp_path / "3", bytes(1000))
    assert {entry.name for entry in tmp_path.iterdir()} == {"0", "2", "3"}
