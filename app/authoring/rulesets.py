"""The rules of a call: the shipped ones, those of a user's folders, or both; parsed once and remembered on disk."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path

import lark

from genrw.engine.library.gather import OF_EXAMPLES, gathered_library
from genrw.engine.library.library import Library
from genrw.engine.library.rows import rules_among
from genrw.engine.lowering.garbage import uncollected
from genrw.folders import RULES, rule_files
from genrw.grammar import expr_tree, gen_tree, rw_tree, source
from genrw.grammar.cache import cache_folder, cache_key, read_object, write_object
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import Declaration, ImportDecl, InstructionDecl, OpDecl, RuleDecl, RuleFile
from genrw.grammar.source import Source

Texts = tuple[tuple[str, str], ...]
"""The names and texts of rule files."""

_FILES_KEPT = 1024
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


@uncollected()
def unchecked_library(
    folders: Sequence[str | Path] = (), *, shipped: bool = True
) -> tuple[Library, tuple[Diagnostic, ...]]:
    """The same, of rules that may name what is not there, and what is declared wrongly; GenrwError for what cannot be
    read."""
    groups = rule_texts(folders, shipped=shipped)
    library, problems = gathered_library([file for group in groups for file in _parsed_group(group, True)])
    return _telling_foreign(library, own_declarations(library)), problems


def chosen_rules(library: Library, names: Sequence[str], folders: Sequence[str | Path]) -> list[RuleDecl]:
    """The rules by name; without names those of the folders, and without folders all. GenrwError for unknown names."""
    known = {rule.name: rule for rule in library.rules}
    for name in names:
        if name not in known:
            raise error(f"there is no rule `{name}`", remedy="`genrw rules list` shows all")
    if names:
        return [known[name] for name in names]
    if not folders:
        return list(library.rules)
    own = {rule.name for rule in rules_among(own_declarations(library))}
    operators = {d.name for d in own_declarations(library) if isinstance(d, OpDecl)}
    return [r for r in library.rules if r.name.partition("/")[0] in own or r.defines in operators]


def own_declarations(library: Library) -> list[Declaration]:
    """The declarations of a library that are not shipped."""
    shipped = {found.name for found in _sources([shipped_folder()])}
    return [d for file in library.files if file.span.source.name not in shipped for d in file.declarations]


def rule_texts(folders: Sequence[str | Path] = (), *, shipped: bool = True) -> tuple[Texts, Texts]:
    """The rule files of a call, the shipped ones and those of the folders, each a name and a text."""
    groups = (_sources([shipped_folder()] if shipped else []), _sources([Path(folder) for folder in folders]))
    own, others = (tuple((s.name, s.text) for s in group) for group in groups)
    again = next((name for name, _ in others if shipped and Path(name).resolve() in _shipped_files()), None)
    if again is not None:
        raise error(f"{again} is a shipped rule file", remedy="leave its folder out, or the shipped rules")
    return own, others


@lru_cache(maxsize=1)
def _shipped_files() -> frozenset[Path]:
    """The shipped rule files, wherever links lead."""
    return frozenset(path.resolve() for path in shipped_folder().rglob(f"*{RULES}"))


def _telling_foreign(library: Library, own: Sequence[Declaration]) -> Library:
    """The library that tells what of it is not shipped."""
    foreign = frozenset(d.name for d in own if isinstance(d, OpDecl | InstructionDecl))
    return replace(library, foreign=foreign, foreign_rules=frozenset(rule.name for rule in rules_among(own)))


@lru_cache(maxsize=8)
@uncollected()
def _library(groups: tuple[Texts, Texts], examples: bool) -> Library:
    """The library of the shipped texts and of others; the rules of the latter are checked, the shipped ones were.

    What did not change since the library made last is taken over from it, checks included.
    """
    before = _made.get(examples)
    shipped, own = (_parsed_group(group, examples) for group in groups)
    digest = cache_key(*(part for group in groups for text in group for part in text))
    gathered, problems = gathered_library([*shipped, *own], before.library if before else None)
    declared = [d for file in gathered.files[len(shipped) :] for d in file.declarations]
    library = replace(_telling_foreign(gathered, declared), digest=digest)
    checked = before.checked if before is not None and before.library.shares_terms(library) else frozenset()
    new = [d for d in declared if _wording(d) not in checked]
    if new or problems:
        _check(library, new, problems, measured=bool(shipped))
    _made[examples] = _Made(library, frozenset(map(_wording, declared)))
    return library


def _check(
    library: Library, declarations: Sequence[Declaration], problems: Iterable[Diagnostic], *, measured: bool
) -> None:
    """GenrwError with all that is wrong with declarations, the `problems` of gathering them first. Targets are `measured` by
    the shipped ones where these are there."""
    # The checks need numpy, whose import takes a tenth of the time of a command that lowers by the shipped rules.
    from genrw.engine.lint.check_declarations import check_declarations
    from genrw.engine.lint.check_imports import check_imports
    from genrw.engine.lint.check_rules import check_rules
    from genrw.engine.lint.check_targets import check_targets

    findings = [*problems, *check_rules(library, rules_among(declarations))]
    findings += check_imports(library, [d for d in declarations if isinstance(d, ImportDecl)])
    findings += check_declarations(library, declarations)
    findings += check_targets(library, declarations) if measured else []
    if findings:
        raise GenrwError(findings)


def _wording(declaration: Declaration) -> tuple[str, str | None, str]:
    """What findings follow from, where all other declarations are the same."""
    if isinstance(declaration, RuleDecl):
        return declaration.wording
    return declaration.span.source.name, None, declaration.span.text


@dataclass(frozen=True)
class _Made:
    """A library, and the declarations of which checks found nothing."""

    library: Library
    checked: frozenset[tuple[str, str | None, str]]


_made: dict[bool, _Made] = {}
"""The library made last, with examples and without."""


def _sources(folders: Sequence[Path]) -> Iterator[Source]:
    for folder, found in rule_files(folders):
        yield _shipped(found) if folder == shipped_folder() else found


@lru_cache(maxsize=_FILES_KEPT)
def _shipped(found: Source) -> Source:
    """A shipped file under the name that messages have for it."""
    return Source(f"rules/{Path(found.name).relative_to(shipped_folder()).as_posix()}", found.text)


# ---- parsed files, remembered


def shipped_trees() -> dict[tuple[str, str], RuleFile]:
    """The trees of the shipped rule files, by their names and texts."""
    texts, _ = rule_texts()
    return dict(zip(texts, _parsed_group(texts, True), strict=True))


_read_last: dict[tuple[str, bool], RuleFile] = {}
"""What each file held when this process read it last, with examples and without; the ones read last."""


def _parsed_group(texts: Texts, examples: bool) -> tuple[RuleFile, ...]:
    """The trees of rule files: together if they were parsed together before, else one by one."""
    if not texts:
        return ()
    if not any((name, examples) in _read_last for name, _ in texts):
        entry = _entry("group" if examples else "bare", *(part for text in texts for part in text))
        files = _remembered(entry) or _remember(entry, _parsed_all(texts, examples))
    else:
        files = _parsed_all(texts, examples)
    for (name, _), file in zip(texts, files, strict=True):
        _read_last.pop((name, examples), None)
        _read_last[name, examples] = file
    while len(_read_last) > _FILES_KEPT:
        _read_last.pop(next(iter(_read_last)), None)
    return files


def _parsed_all(texts: Texts, examples: bool) -> tuple[RuleFile, ...]:
    """The trees of rule files; GenrwError with the problems of all of them."""
    files: list[RuleFile] = []
    problems: list[Diagnostic] = []
    for name, text in texts:
        try:
            files.append(_parsed(name, text, examples))
        except GenrwError as problem:
            problems.extend(problem.diagnostics)
    if problems:
        raise GenrwError(problems)
    return tuple(files)


def _parsed(name: str, text: str, examples: bool) -> RuleFile:
    """The tree of a rule file, from the cache if it was parsed before; of one that this process has read before only
    what changed since is parsed."""
    before = _read_last.get((name, examples))
    if before is not None:
        if before.span.source.text == text:
            return before
        file = parse_rw(text, name, before)
    else:
        entry = _entry("file", name, text)
        (file,) = _remembered(entry) or _remember(entry, (parse_rw(text, name),))
    return file if examples else _without_examples(file)


def _without_examples(file: RuleFile) -> RuleFile:
    declarations = tuple(
        replace(d, given=(), examples=()) if isinstance(d, RuleDecl) and (d.given or d.examples) else d
        for d in file.declarations
        if not isinstance(d, OF_EXAMPLES)
    )
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
