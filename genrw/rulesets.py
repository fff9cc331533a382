"""The rules of a call: the shipped ones, those of a user's folders, or both; parsed once and remembered on disk."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path

import lark

from genrw.engine.check import check_rules
from genrw.engine.check_imports import check_imports
from genrw.engine.library import Library, build_library
from genrw.grammar import expr_tree, gen_tree, rw_tree, source
from genrw.grammar.cache import cache_folder, cache_key, read_object, write_object
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.read import read_text
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import RuleDecl, RuleFile
from genrw.grammar.source import Source

Texts = tuple[tuple[str, str], ...]
"""The names and texts of rule files."""

_TREE_MODULES = frozenset(module.__name__ for module in (expr_tree, gen_tree, rw_tree, source))


@lru_cache(maxsize=1)
def shipped_folder() -> Path:
    """Where the rules that come with genrw are."""
    return Path(str(resources.files("genrw.rules")))


def load_library(folders: Sequence[str | Path] = (), *, shipped: bool = True, examples: bool = True) -> Library:
    """All declarations of the shipped rules, unless `shipped` is false, and of the folders; GenrwError for bad ones.

    Lowering needs no `examples`, and without them the shipped rules are there in half the time.
    """
    shipped_texts, own = rule_texts(folders, shipped=shipped)
    return _library((shipped_texts, own), examples)


def unchecked_library(folders: Sequence[str | Path] = (), *, shipped: bool = True) -> Library:
    """The same, of rules that may name what is not there; GenrwError for what cannot be read."""
    groups = rule_texts(folders, shipped=shipped)
    return build_library([file for group in groups for file in _parsed_group(group, True)])


def rule_texts(folders: Sequence[str | Path] = (), *, shipped: bool = True) -> tuple[Texts, Texts]:
    """The rule files of a call, the shipped ones and those of the folders, each a name and a text."""
    groups = (_sources([shipped_folder()] if shipped else []), _sources(map(Path, folders)))
    own, others = (tuple((s.name, s.text) for s in group) for group in groups)
    return own, others


@lru_cache(maxsize=8)
def _library(groups: tuple[Texts, Texts], examples: bool) -> Library:
    """The library of the shipped texts and of others; the rules of the latter are checked, the shipped ones were."""
    shipped, own = (_parsed_group(group, examples) for group in groups)
    digest = cache_key(*(part for group in groups for text in group for part in text))
    library = replace(build_library([*shipped, *own]), digest=digest)
    declared = {id(declaration) for file in own for declaration in file.declarations}
    findings = check_rules(library, [rule for rule in library.rules if id(rule) in declared])
    imports = [i for several in library.imports.values() for i in several]
    findings += check_imports(library, [i for i in imports if id(i) in declared])
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


def _parsed_group(texts: Texts, examples: bool) -> tuple[RuleFile, ...]:
    """The trees of rule files: together if they were parsed together before, else one by one."""
    if not texts:
        return ()
    entry = _entry("group" if examples else "bare", *(part for text in texts for part in text))
    return _remembered(entry) or _remember(entry, _parsed_all(texts, examples))


def _parsed_all(texts: Texts, examples: bool) -> tuple[RuleFile, ...]:
    """The trees of rule files; GenrwError with the problems of all of them."""
    files: list[RuleFile] = []
    problems: list[Diagnostic] = []
    for name, text in texts:
        try:
            file = _parsed(name, text)
            files.append(file if examples else _without_examples(file))
        except GenrwError as problem:
            problems.extend(problem.diagnostics)
    if problems:
        raise GenrwError(problems)
    return tuple(files)


def _parsed(name: str, text: str) -> RuleFile:
    """The tree of a rule file, from the cache if it was parsed before."""
    entry = _entry("file", name, text)
    (file,) = _remembered(entry) or _remember(entry, (parse_rw(text, name),))
    return file


def _without_examples(file: RuleFile) -> RuleFile:
    declarations = tuple(replace(d, examples=()) if isinstance(d, RuleDecl) else d for d in file.declarations)
    return replace(file, declarations=declarations)


def _entry(kind: str, *parts: str) -> Path:
    """Where the trees that follow from some texts are kept."""
    return cache_folder("rules") / f"{cache_key(_grammar_version(), *parts)}.{kind}"


@lru_cache(maxsize=1)
def _grammar_version() -> str:
    """What a stored tree depends on besides its text: the grammar and the modules that build and define trees."""
    digest = hashlib.sha256(f"{lark.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(Path(str(resources.files("genrw.grammar"))).iterdir()):
        if path.suffix in (".py", ".lark"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _remember(entry: Path, files: tuple[RuleFile, ...]) -> tuple[RuleFile, ...]:
    """Store trees; a folder that cannot be written only costs the next start some time."""
    write_object(entry, files)
    return files


def _remembered(entry: Path) -> tuple[RuleFile, ...]:
    """The trees of an entry, none if there is none."""
    return read_object(entry, _TREE_MODULES) or ()
