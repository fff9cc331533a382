"""What a stage leaves that ran into a limit: the rules that are responsible, and its e-graph as a text to look at."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genrw.engine.egraph.encode import ASKING
from genrw.engine.ir.nodes import Module
from genrw.engine.programs.text import operation_text
from genrw.grammar.cache import cache_folder, cache_key, write_plain
from genrw.grammar.rw_tree import RuleDecl

if TYPE_CHECKING:
    from genrw.engine.egraph.stage import EGraphSnapshot
    from genrw.engine.library.library import Library

_LARGEST = 1 << 20
_WIDEST = 200
_MEMBERS_SHOWN = 50
_NAME_DIGITS = 16


@dataclass(frozen=True)
class Work:
    """What the rules of a run did: the terms that each made, at most, how often it applied, the seconds it took."""

    rules: tuple[RuleDecl, ...]
    made: Mapping[str, int]
    applied: Mapping[str, int]
    seconds: Mapping[str, float]

    @classmethod
    def of(cls, reports: Iterable[Any], rules: Iterable[RuleDecl], graph: EGraphSnapshot | None) -> Work:
        """From what egglog reports of its runs, and the e-graph if it could be read."""
        rules = tuple(rules)
        applied, seconds = Counter[str](), defaultdict[str, float](float)
        for report in reports:
            for name, count in report.num_matches_per_rule.items():
                applied[_rule_of(name)] += 0 if name.endswith(ASKING) else count
            for name, spent in report.search_and_apply_time_per_rule.items():
                seconds[_rule_of(name)] += spent.total_seconds()
        # A match may make what is there already, and a term may be in a class where several rules make such terms: both
        # counts are too large, for different rules.
        grown = Counter[str]()
        for key, count in graph.growth().items() if graph is not None else ():
            grown[_rule_of(key)] += count
        made = {r.name: min(applied[r.name], grown[r.name]) if graph is not None else applied[r.name] for r in rules}
        return cls(rules, made, applied, seconds)

    @property
    def busiest(self) -> list[RuleDecl]:
        """The rules that made most first; equal ones in the order of their declarations."""
        return sorted(self.rules, key=lambda r: (-self.made[r.name], -self.applied[r.name]))

    @property
    def slowest(self) -> list[RuleDecl]:
        """The rules that took longest first."""
        return sorted(self.rules, key=lambda r: -self.seconds[r.name])

    @property
    def told(self) -> list[str]:
        """A line for each rule that made something."""
        return [f"{rule.name} made {self.made[rule.name]} terms" for rule in self.busiest if self.made[rule.name]]


def _rule_of(name: str) -> str:
    """The rule of a direction, or of one of its egglog rules."""
    return name.partition("#")[0].partition("/")[0]


# ---- the e-graph as text


def keep(text: str, stage: str) -> Path | None:
    """Write an e-graph's text where its reader finds it; None if there is no such place. Equal texts share a file."""
    path = cache_folder("unfinished") / f"{stage}-{cache_key(text)[:_NAME_DIGITS]}.txt"
    return path if write_plain(path, text.encode("utf-8", "replace")) else None


def graph_text(graph: EGraphSnapshot, modules: Sequence[Module], library: Library, about: Iterable[str]) -> str:
    """The classes of an e-graph, the largest first, with their members; no more than a person would look at."""
    lines, left = [], _LARGEST
    for line in (*(f"# {line}" for line in about), *_classes(graph, _names(graph, modules), library)):
        shown = line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
        left -= len(shown.encode("utf-8", "replace")) + 1
        if left < 0:
            lines.append("…")
            break
        lines.append(shown)
    return "\n".join(lines) + "\n"


def _names(graph: EGraphSnapshot, modules: Sequence[Module]) -> dict[int, str]:
    """The names that the program has for classes, besides their numbers."""
    names: dict[int, str] = {}
    for module in modules:
        for node in module.nodes:
            if node.name is not None:
                names.setdefault(graph.class_of[graph.ids[id(node)]], node.name)
    return names


def _classes(graph: EGraphSnapshot, names: Mapping[int, str], library: Library) -> Iterator[str]:
    for number in sorted(graph.classes, key=lambda n: (-len(graph.classes[n]), n)):
        members = graph.classes[number]
        name = f", `{names[number]}`" if number in names else ""
        rules = dict.fromkeys(graph.rules[rule] for rule in sorted(graph.why.get(number, ())))
        by = f", by {', '.join(rules)}" if rules else ""
        yield f"\nc{number}{name}: {len(members)} {'member' if len(members) == 1 else 'members'}{by}"
        for node in members[:_MEMBERS_SHOWN]:
            operands = [f"c{operand}" for operand in node.operands]
            yield f"  {operation_text(node, operands, graph.interner, library)}"
        if len(members) > _MEMBERS_SHOWN:
            yield f"  … {len(members) - _MEMBERS_SHOWN} more"
