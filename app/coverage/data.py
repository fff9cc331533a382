"""What was seen of rules, kept in a file: by the rule's name and by what it says, so that old data shows as old."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from genrw.coverage.observed import RuleRow, Seen, directions_of, row_of
from genrw.engine.language.expr import calls
from genrw.engine.library.library import Library
from genrw.engine.lint.walks import expressions
from genrw.grammar.diagnostics import error
from genrw.grammar.read import read_text
from genrw.grammar.rw import print_declaration
from genrw.grammar.rw_tree import ClassDecl, Declaration, LetDecl, RuleDecl
from genrw.output import write_file

_FORMAT = 1


def content_hash(rule: RuleDecl, library: Library) -> str:
    """What a rule says, with the functions and classes that it uses; not its documentation, place and examples."""
    bare = replace(rule, doc="", given=(), examples=())
    texts = sorted(print_declaration(replace(d, doc="")) for d in _used(rule, library))
    return hashlib.sha256("\n\n".join([print_declaration(bare), rule.stage or "", *texts]).encode()).hexdigest()[:16]


def _used(rule: RuleDecl, library: Library) -> list[Declaration]:
    """The functions that a rule calls, directly or not, and the classes that it names."""
    found: dict[str, LetDecl] = {}
    todo: list[Declaration] = [rule]
    while todo:
        names = {name for expr in expressions(todo.pop()) for name in calls(expr)}
        new = {n: library.scope.lets[n] for n in names if n in library.scope.lets and n not in found}
        found |= new
        todo += new.values()
    named = {getattr(binding.value, "name", "") for binding in rule.for_}
    declared = (d for file in library.files for d in file.declarations)
    return [*found.values(), *(d for d in declared if isinstance(d, ClassDecl) and d.name in named)]


@dataclass
class CoverageData:
    """What was seen, by direction, content and stage."""

    entries: dict[tuple[str, str, str], Seen] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[RuleRow], library: Library) -> CoverageData:
        """What the rows of a library say."""
        found = cls()
        for row in rows:
            content = content_hash(row.rule, library)
            for stage, seen in row.stages.items():
                found.entries[row.direction, content, stage] = replace(seen)
        return found

    def add(self, other: CoverageData) -> None:
        """Take over what was seen elsewhere."""
        for key, seen in other.entries.items():
            self.entries.setdefault(key, Seen()).add(seen)

    def rows(self, rules: Sequence[RuleDecl], library: Library) -> list[RuleRow]:
        """What is known of rules as they are now; of a rule that was seen only in another form, that it is stale."""
        known = {name for name, _, _ in self.entries}
        found: list[RuleRow] = []
        for rule in rules:
            content = content_hash(rule, library)
            for key in directions_of(rule):
                mine = {stage: seen for (name, c, stage), seen in self.entries.items() if (name, c) == (key, content)}
                stale = key in known and not any(seen.fired for seen in mine.values()) and self._was_other(key, content)
                found.append(row_of(rule, key, mine, stale))
        return found

    def _was_other(self, key: str, content: str) -> bool:
        """Did a rule of this name that said something else fire?"""
        return any(name == key and c != content and seen.fired for (name, c, _), seen in self.entries.items())

    # ---- files

    def dump(self) -> dict[str, Any]:
        """As plain values."""
        listed = [
            {"rule": name, "content": content, "stage": stage, **asdict(seen)}
            for (name, content, stage), seen in sorted(self.entries.items())
        ]
        return {"format": _FORMAT, "seen": listed}

    @classmethod
    def load(cls, data: Any, name: str) -> CoverageData:
        """From plain values; GenrwError for others."""
        try:
            if data["format"] != _FORMAT:
                raise ValueError("its format is another one")
            entries = {_key(entry): _seen(entry) for entry in data["seen"]}
        except (TypeError, KeyError, ValueError) as problem:
            raise error(f"{name} holds no coverage of rules: {problem}", remedy="remove it, or name another") from None
        return cls(entries)

    def write(self, path: Path) -> None:
        write_file(path, (json.dumps(self.dump(), indent=1) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> CoverageData:
        """What a file holds; nothing if there is none."""
        if not path.exists():
            return cls()
        try:
            data = json.loads(read_text(path).text)
        except (ValueError, RecursionError) as problem:
            raise error(f"{path} holds no coverage of rules: {problem}", remedy="remove it, or name another") from None
        return cls.load(data, str(path))


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(entry["rule"]), str(entry["content"]), str(entry["stage"])


def _seen(entry: Mapping[str, Any]) -> Seen:
    counts = [int(entry[name]) for name in ("fired", "taken", "refused", "grown")]
    fired, taken, refused, grown = counts
    return Seen(fired, bool(entry["survived"]), taken, refused, float(entry["seconds"]), grown)
