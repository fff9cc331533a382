"""What an editor has open, and what can be said of it: trees, names, types and findings of each text.

A rule file is looked at together with the shipped rules, the folders of the call, and its own folder. What is open counts
as it stands in the editor, also where other files are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path

from genrw.authoring.rulesets import rule_texts, shipped_folder, shipped_trees
from genrw.editor.occurrence import Occurrence
from genrw.editor.symbols import program_names, rule_names
from genrw.engine.ir.nodes import Node
from genrw.engine.library.gather import gathered_library
from genrw.engine.library.library import Library
from genrw.engine.library.rows import rules_among
from genrw.engine.lint.check import lint
from genrw.engine.lint.check_declarations import check_declarations
from genrw.engine.lint.check_imports import check_imports
from genrw.engine.lint.check_rules import check_rules
from genrw.engine.lint.check_targets import check_targets
from genrw.engine.programs.build import build_file, module_values
from genrw.folders import PROGRAM, RULES, visible_files
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.gen import parse_gen
from genrw.grammar.gen_tree import File
from genrw.grammar.read import read_regular
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import ImportDecl, RuleFile
from genrw.grammar.source import Span

_FILES = 500
"""How many programs of a folder are looked through for a name."""

_LIBRARIES = 4
"""How many libraries are kept, with the trees that they were gathered from: one text is asked about several times."""

_shipped_trees = lru_cache(maxsize=1)(shipped_trees)


@lru_cache(maxsize=512)
def _parsed_rules(text: str, name: str) -> RuleFile:
    """The tree of a rule file. Parsing the shipped ones takes seconds; they were stored when they were read first."""
    shipped = _shipped_trees().get((name, text)) if name.startswith(f"{shipped_folder().name}/") else None
    return shipped or parse_rw(text, name)


@dataclass
class Analysis:
    """What is known of one text; `values` are those of a program by the place where their instruction begins.

    Of a text that cannot be read there are no `names`; `remembered` are those of the last one that could, whose places say
    nothing of this one.
    """

    library: Library
    diagnostics: list[Diagnostic] = field(default_factory=list)
    names: list[Occurrence] = field(default_factory=list)
    values: Mapping[int, Node] = field(default_factory=dict)
    remembered: list[Occurrence] = field(default_factory=list)

    def at(self, offset: int) -> list[Occurrence]:
        """The names at a place, those of programs' values before those of operators."""
        return [o for o in self.names if o.span.start <= offset <= o.span.end]


class Project:
    """The open texts over those on disk."""

    def __init__(self, folders: Sequence[Path] = (), shipped: bool = True) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.shipped = shipped
        self.open: dict[Path, str] = {}
        self._good: dict[Path, RuleFile] = {}
        self._known: dict[Path, Analysis] = {}
        self._gathered: dict[tuple[int, ...], tuple[list[RuleFile], Library, tuple[Diagnostic, ...]]] = {}

    def edit(self, path: Path, text: str) -> None:
        """A text as it stands in the editor now."""
        if self.open.get(path) != text:
            self.open[path] = text
            self._known.clear()

    def close(self, path: Path) -> None:
        """A text that is to be taken from the disk again."""
        self.open.pop(path, None)
        self._good.pop(path, None)
        self._known.clear()

    def analysis(self, path: Path) -> Analysis:
        """All that is known of an open text; never raises for what is wrong with it."""
        if path not in self._known:
            self._known[path] = self._rules(path) if path.suffix == RULES else self._program(path)
        return self._known[path]

    # ---- rule files

    def path_of(self, name: str) -> Path:
        """Where a rule file lies whose name diagnostics quote."""
        path = Path(name)
        inside = path.parts[:1] == (shipped_folder().name,)
        shipped = shipped_folder().joinpath(*path.parts[1:])
        return shipped if inside and not path.exists() and shipped.exists() else path.resolve()

    def _trees(self, path: Path | None) -> tuple[list[RuleFile], list[Diagnostic]]:
        """The rule files that belong to a text, and what is wrong with those that cannot be read."""
        folders = list(self.folders)
        inside = [*folders, *([shipped_folder().resolve()] if self.shipped else [])]
        if path is not None and path.suffix == RULES and not any(f in path.parents for f in inside):
            folders.append(path.parent)
        texts: dict[Path, tuple[str, str]] = {}
        try:
            for name, text in (t for group in _on_disk(tuple(folders), self.shipped) for t in group):
                texts[self.path_of(name)] = name, text
        except GenrwError:
            texts = {self.path_of(n): (n, t) for group in _on_disk((), self.shipped) for n, t in group}
        for opened, text in self.open.items():
            if opened in texts:
                texts[opened] = texts[opened][0], text
            elif opened.suffix == RULES and (opened == path or any(f in opened.parents for f in folders)):
                texts[opened] = str(opened), text  # not on the disk yet, or no more
        return self._parse_all(texts)

    def _parse_all(self, texts: Mapping[Path, tuple[str, str]]) -> tuple[list[RuleFile], list[Diagnostic]]:
        trees: list[RuleFile] = []
        problems: list[Diagnostic] = []
        for path, (name, text) in texts.items():
            try:
                self._good[path] = _parsed_rules(text, name)
            except GenrwError as problem:
                problems += problem.diagnostics
            if path in self._good:
                trees.append(self._good[path])
        return trees, problems

    def library(self, path: Path | None) -> tuple[Library, list[Diagnostic]]:
        """The library that a text is looked at with, as far as its files can be read; what is wrong with them."""
        trees, problems = self._trees(path)
        key = tuple(map(id, trees))
        known = self._gathered.pop(key, None) or (trees, *gathered_library(trees))
        self._gathered[key] = known
        while len(self._gathered) > _LIBRARIES:
            del self._gathered[next(iter(self._gathered))]
        _, library, told = known
        return library, [*problems, *told]

    def _rules(self, path: Path) -> Analysis:
        library, problems = self.library(path)
        found = Analysis(library, self._here(problems, path))
        tree = next((t for t in library.files if self.path_of(t.span.source.name) == path), None)
        if tree is None:
            return found
        found.remembered = list(rule_names(tree, library))
        if self._is_now(tree.span, path):
            found.names = found.remembered
            told = check_rules(library, rules_among(tree.declarations))
            told += check_imports(library, [d for d in tree.declarations if isinstance(d, ImportDecl)])
            told += check_declarations(library, tree.declarations)
            if shipped_folder() not in path.parents:  # The shipped targets are what others are measured by.
                told += check_targets(library, tree.declarations)
            found.diagnostics += self._here(told, path)
        return found

    def lint(self, path: Path) -> list[Diagnostic]:
        """What the checks of all rules together find in one file, and the examples of its rules, which are run."""
        library, problems = self.library(path)
        if self._here(problems, path):
            return []
        own = [d for f in library.files if self.path_of(f.span.source.name) == path for d in f.declarations]
        return self._here((f.diagnostic for f in lint(library, own)), path)

    def _here(self, diagnostics: Iterable[Diagnostic], path: Path) -> list[Diagnostic]:
        """Those of the findings that are about one file."""
        told = [d for d in diagnostics if d.span is not None and self.path_of(d.span.source.name) == path]
        return [d for d in told if d.span is not None and self._is_now(d.span, path)]

    def _is_now(self, span: Span, path: Path) -> bool:
        """Is a place one of the text as it stands? Where that cannot be read, an older one stands in for it."""
        return span.source.text == self.open.get(path, span.source.text)

    # ---- programs

    def _program(self, path: Path) -> Analysis:
        library, _ = self.library(path)
        try:
            file = parse_gen(self.open.get(path, ""), str(path))
        except GenrwError as problem:
            return Analysis(library, list(problem.diagnostics))
        values, problems = _values(file, library)
        if not problems:
            problems = _build_problems(file, library)
        names = list(program_names(file))
        return Analysis(library, problems, names, values, names)

    def elsewhere(self, path: Path, roots: Iterable[Path]) -> Iterator[tuple[Path, list[Occurrence]]]:
        """The names of all other texts: rule files, open programs, and programs in the editor's folders."""
        library, _ = self.library(path)
        for tree in library.files:
            yield self.path_of(tree.span.source.name), list(rule_names(tree, library))
        programs = {p: None for root in roots for p in _programs(root)} | {
            p: None for p in self.open if p.suffix == PROGRAM
        }
        for program in programs:
            try:
                text = self.open[program] if program in self.open else read_regular(program).text
                yield program, list(program_names(parse_gen(text, str(program))))
            except GenrwError:
                continue


@lru_cache(maxsize=8)
def _on_disk(folders: tuple[Path, ...], shipped: bool) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The rule files of folders as they were when first asked for; `forget` has them read again."""
    with_rules = [f for f in folders if next(f.rglob(f"*{RULES}"), None) is not None]
    return rule_texts(with_rules, shipped=shipped)


def forget() -> None:
    """Files on disk have changed."""
    _on_disk.cache_clear()


def _programs(root: Path) -> list[Path]:
    return [p.resolve() for p in islice(visible_files(root, PROGRAM), _FILES)]


def _values(file: File, library: Library) -> tuple[dict[int, Node], list[Diagnostic]]:
    modules = {module.name: module for module in file.modules}
    values: dict[int, Node] = {}
    problems: list[Diagnostic] = []
    for module in file.modules:
        try:
            made, wrong = module_values(module, library, library.default_target, modules)
        except GenrwError as problem:
            made, wrong = [], list(problem.diagnostics)
        values |= {node.span.start: node for node in made}
        problems += wrong
    return values, problems


def _build_problems(file: File, library: Library) -> list[Diagnostic]:
    try:
        build_file(file, library, library.default_target)
    except GenrwError as problem:
        return list(problem.diagnostics)
    return []
