"""The engines of a library's stages. One serves all programs that need little less than it has, and is given what others
lack that need little more: to declare some rules more takes a fraction of the time of an e-graph that is made anew."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from genrw.engine.egraph.encode import Encoded
from genrw.engine.egraph.encodings import Encodings
from genrw.engine.egraph.relevance import relevant_rules
from genrw.engine.egraph.stage import StageEngine
from genrw.engine.ir.nodes import Module
from genrw.engine.library.arities import Arities, program_arities, term_arities
from genrw.engine.library.library import Library
from genrw.grammar.rw_tree import RuleDecl

_KEPT = 32
"""Each takes 10 to 30 MB."""
_SPARE, _ALWAYS_SPARE = 1.25, 64
"""An engine has no more than so many times as many encoded rules as any of its programs needs, and some: rules that never
match cost little, an e-graph that is made anew a tenth of a second."""
Asked = tuple[str, bool, frozenset[str] | None]
"""A stage, whether its rules are the exact ones, and which of the alternatives are among them."""


@dataclass(frozen=True)
class _Needed:
    """What programs need of an engine: rules, the operators that can appear, the encoded rules. `allowed` are all rules that
    may run, by their identity."""

    stage: str
    rules: Sequence[RuleDecl]
    operators: frozenset[str]
    encoded: frozenset[Encoded]
    allowed: Mapping[int, RuleDecl]


@dataclass(eq=False)
class _Held:
    """An engine, and what it has or will have when it runs next. `least` is how many encoded rules the program needs that
    needs fewest, `allowed` are the rules that may run in all programs that it serves."""

    engine: StageEngine
    encoded: frozenset[Encoded]
    least: int
    allowed: Mapping[int, RuleDecl]

    def may_serve(self, needed: _Needed, encodings: Encodings) -> bool:
        """Is it of the same stage, may all its rules and those that are needed run in all its programs, and are they few?
        It takes no rules that were encoded for another library: it may have the same ones from another place."""
        # What needs no rules runs none.
        if needed.stage != self.engine.stage or bool(needed.encoded) != bool(self.encoded):
            return False
        most = _SPARE * min(self.least, len(needed.encoded)) + _ALWAYS_SPARE
        return (
            (needed.encoded <= self.encoded or self.engine.encodings is encodings)
            and len(self.encoded | needed.encoded) <= most
            and needed.allowed.keys() >= set(map(id, self.engine.rules))
            and self.allowed.keys() >= set(map(id, needed.rules))
        )

    def lacks(self, needed: _Needed) -> tuple[int, int]:
        """How many encoded rules it lacks, and how many it has: the fewer the better it serves."""
        return len(needed.encoded - self.encoded), len(self.encoded)

    def serve(self, needed: _Needed) -> None:
        """Have the engine serve more programs."""
        self.least = min(self.least, len(needed.encoded))
        self.allowed = {number: rule for number, rule in self.allowed.items() if number in needed.allowed}
        if not needed.encoded <= self.encoded:
            rules = {id(rule) for rule in (*self.engine.rules, *needed.rules)}
            self.engine.grow([rule for number, rule in needed.allowed.items() if number in rules], needed.operators)
            self.encoded |= needed.encoded


class Engines:
    """The engines that were used last. To be used from one thread."""

    def __init__(self, library: Library, encodings: Encodings) -> None:
        self.library = library
        self._encodings = encodings
        self._held: dict[_Held, None] = {}
        self._serving: WeakValueDictionary[tuple[Asked, Hashable], _Held] = WeakValueDictionary()

    def take_over(self, before: Engines, stages: Collection[str]) -> None:
        """Share engines with a library that has the same rules at some stages."""
        self._held = before._held
        self._serving = WeakValueDictionary({a: held for a, held in before._serving.items() if a[0][0] in stages})

    def engine(self, asked: Asked, possible: tuple[RuleDecl, ...], modules: Sequence[Module]) -> StageEngine:
        """The engine of a stage for modules; no rules but `possible` ones may run."""
        operators = frozenset(node.op for module in modules for node in module.nodes)
        present = program_arities(modules, self.library)
        key = asked, (operators, present.key)
        held = self._serving.get(key)
        if held is None:
            held = self._serving[key] = self._found(self._needed(asked[0], possible, operators, present))
        self._held.pop(held, None)
        self._held[held] = None
        while len(self._held) > _KEPT:
            del self._held[next(iter(self._held))]
        return held.engine

    def prepare(self) -> None:
        """Clear away what the last programs left: to be called when there is time."""
        for held in self._held:
            held.engine.prepare()

    def _needed(
        self, stage: str, possible: tuple[RuleDecl, ...], operators: frozenset[str], present: Arities
    ) -> _Needed:
        """What programs with some operators need."""
        rules, reachable = relevant_rules(self.library, possible, operators)
        needed = self._encodings.needed(rules, reachable, term_arities(self.library, rules, present))
        origin = self._encodings.origin
        allowed = {id(rule): rule for rule in map(origin, possible)}
        return _Needed(stage, [origin(rule) for rule in rules], reachable, frozenset(needed.encoded), allowed)

    def _found(self, needed: _Needed) -> _Held:
        """The engine, of those that there are, that lacks least; a new one, if none may serve."""
        possible = [held for held in self._held if held.may_serve(needed, self._encodings)]
        if possible:
            held = min(possible, key=lambda held: held.lacks(needed))
            held.serve(needed)
            return held
        outdated = self._outdated(needed)
        if outdated is not None:
            del self._held[outdated]
        engine = StageEngine(
            self.library,
            needed.stage,
            needed.rules,
            needed.operators,
            encodings=self._encodings,
            outdated=outdated.engine if outdated is not None else None,
        )
        return _Held(engine, needed.encoded, len(needed.encoded), needed.allowed)

    def _outdated(self, needed: _Needed) -> _Held | None:
        """The engine of a stage that has most in common with a new one, of those with rules that have been edited."""
        if not self._encodings.apart:
            return None
        current = self._encodings.current()
        found = [h for h in self._held if h.engine.stage == needed.stage and not current.issuperset(h.encoded)]
        return max(found, key=lambda held: len(needed.encoded & held.encoded), default=None)
