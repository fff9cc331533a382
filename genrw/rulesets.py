"""The rules of a call: the shipped ones, those of a user's folders, or both; parsed once and remembered on disk."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from genrw.engine.check import check_rules
from genrw.engine.library import Library, build_library
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.read import read_text
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import RuleFile
from genrw.grammar.source import Source


def shipped_folder() -> Path:
    """Where the rules that come with genrw are."""
    return Path(str(resources.files("genrw.rules")))


def load_library(folders: Sequence[str | Path] = (), *, shipped: bool = True) -> Library:
    """All declarations of the shipped rules (unless `shipped` is false) and of the folders; GenrwError for bad ones."""
    places = [shipped_folder()] if shipped else []
    own = tuple(_sources(map(Path, folders)))
    sources = (*_sources(places), *own)
    return _library(tuple((s.name, s.text) for s in sources), frozenset(s.name for s in own))


@lru_cache(maxsize=8)
def _library(texts: tuple[tuple[str, str], ...], unchecked: frozenset[str]) -> Library:
    """The library of some texts; the rules of those named in `unchecked` are checked, the shipped ones were."""
    files: list[RuleFile] = []
    problems: list[Diagnostic] = []
    for name, text in texts:
        try:
            files.append(_parsed(name, text))
        except GenrwError as problem:
            problems.extend(problem.diagnostics)
    if problems:
        raise GenrwError(problems)
    library = build_library(files)
    findings = check_rules(library, [r for r in library.rules if r.span.source.name in unchecked])
    if findings:
        raise GenrwError(findings)
    return library


def _sources(folders: Iterable[Path]) -> Iterable[Source]:
    for folder in folders:
        if not folder.is_dir():
            raise error(f"there is no folder `{folder}`", remedy="name a folder of .rw files")
        found = sorted(folder.rglob("*.rw"))
        if not found:
            raise GenrwError(Diagnostic(f"the folder `{folder}` has no .rw files"))
        for path in found:
            yield _read(path, folder)


def _read(path: Path, folder: Path) -> Source:
    source = read_text(path)
    shipped = folder == shipped_folder()
    return Source(f"rules/{path.relative_to(folder).as_posix()}", source.text) if shipped else source


# ---- parsed files, remembered


def _parsed(name: str, text: str) -> RuleFile:
    """The tree of a rule file, from the cache if it was parsed before."""
    entry = _cache_folder() / f"{_key(name, text)}.tree"
    try:
        return _unpickle(entry.read_bytes())
    except (
        OSError,
        pickle.UnpicklingError,
        EOFError,
        AttributeError,
        TypeError,
        ValueError,
        IndexError,
        KeyError,
    ):
        file = parse_rw(text, name)
        _remember(entry, file)
        return file


def _cache_folder() -> Path:
    return Path(os.environ.get("GENRW_CACHE_DIR") or user_cache_dir("genrw")) / "rules"


@lru_cache(maxsize=1)
def _grammar_version() -> str:
    """What a stored tree depends on besides its text: the grammar and the modules that build and define trees."""
    digest = hashlib.sha256()
    for path in sorted(Path(str(resources.files("genrw.grammar"))).iterdir()):
        if path.suffix in (".py", ".lark"):
            digest.update(path.read_bytes())
    digest.update(metadata.version("lark").encode())
    return digest.hexdigest()


def _key(name: str, text: str) -> str:
    return hashlib.sha256("\0".join((_grammar_version(), name, text)).encode()).hexdigest()


def _remember(entry: Path, file: RuleFile) -> None:
    """Store a tree; a folder that cannot be written only costs the next start some time."""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=entry.parent)
        with os.fdopen(handle, "wb") as stream:
            pickle.dump(file, stream, protocol=pickle.HIGHEST_PROTOCOL)
        os.replace(name, entry)
    except OSError:
        return


class _TreeReader(pickle.Unpickler):
    """Reads nothing but syntax trees, so that a cache file can build no other object."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("genrw.grammar.") and name[0].isupper():
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no syntax tree")


def _unpickle(data: bytes) -> RuleFile:
    file = _TreeReader(io.BytesIO(data)).load()
    if not isinstance(file, RuleFile):
        raise pickle.UnpicklingError("not a rule file")
    return file
