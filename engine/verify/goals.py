"""What the kernels that a rule is tried in have to show: every kind of schedule and of monoid that its guard lets pass.

Schedules are of one kind if their words are the same, if the entries that the rule speaks of are 0, 1 or more in both, and
if the same rules may go on from this one's right side: some do where lanes cover rows exactly, others where rows have a
tail. Each facet of a kernel is a kind by itself, whatever its other facets are. Monoids are of one kind if they have the
same clauses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from genrw.engine.ir.nodes import Module
from genrw.engine.language.expr import Evaluator
from genrw.engine.language.expr_walk import free_names, member_uses, substitute
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.infer import show
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.sides import conditions
from genrw.engine.library.variants import nodes, pattern_operators
from genrw.engine.verify.facets import SEVERAL, Facets, Kind
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Const, Expr, Name
from genrw.grammar.rw_tree import MonoidDecl, OpPattern, RuleDecl

_PATIENCE, _PATIENCE_WITH_FACETS = 4, 12
"""So many kernels of a kind, or with a facet, are tried until it is given up: the rule takes part in none."""
_STRANGE = 0.1
"""What a kernel counts whose words are others than those of any that the rule took part in."""
_SCHEDULE, _THEN = "schedule", "then"


@dataclass
class Goals:
    """The kinds that kernels of a rule are of, how many of each were tried, and in how many of them the rule took part."""

    library: Library
    rule: RuleDecl
    stage: str
    tried: Counter[Kind] = field(default_factory=Counter)
    met: Counter[Kind] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._reads = entries_read(self.library, self.rule)
        self._facets = Facets(self.library, self.rule, read=bool(self._reads))
        # the words of the schedules that each facet was seen with
        self._seen_with: dict[Kind, set[tuple[Any, ...]]] = {}
        self._tried_words: Counter[tuple[Any, ...]] = Counter()
        self._met_words: Counter[tuple[Any, ...]] = Counter()
        scope = self.library.scope
        own = _contextual(self.rule)
        self._guard = [scope.compile(condition) for condition in own]
        self.words = self._words_asked()
        self._following = {r.name: [scope.compile(c) for c in _contextual(r)] for r in self._next_rules()}
        self.monoid_kinds = self._monoids()

    def _words_asked(self) -> dict[str, set[str]]:
        """The words that the left side asks for in attributes which are called as entries of schedules are."""
        entries = {a.name for op in self.library.kernel_operators for a in op.decl.attributes}
        found: dict[str, set[str]] = {}
        for attribute in (a for node in nodes(self.rule.left) for a in node.attributes if a.name in entries):
            if isinstance(attribute.value, Const) and isinstance(attribute.value.value, str):
                found.setdefault(attribute.name, set()).add(attribute.value.value)
        return found

    def _next_rules(self) -> Iterator[RuleDecl]:
        """The other rules of the stage that begin where this one's right side leads."""
        made = {name for node in nodes(self.rule.right) for name in pattern_operators(node, self.rule, self.library)}
        for rule in self.library.rules:
            left = rule.left
            if rule.name == self.rule.name or self.stage not in rule.stages or not isinstance(left, OpPattern):
                continue
            # the element of a tensor is made by rules for what makes the tensor
            begins = {node.op for node in (left, *left.operands[:1]) if isinstance(node, OpPattern)}
            if begins & made and _contextual(rule):
                yield rule

    @property
    def of_schedules(self) -> bool:
        """Does the rule go by schedules, or by the spaces that these are for?"""
        return bool(self._reads) or self._facets.decide

    # ---- schedules

    def kinds(self, schedule: Mapping[str, Any], context: Mapping[str, Any]) -> list[Kind]:
        """The kind of a schedule in its surroundings, and the kernel's facets."""
        # kernels say what follows from other entries, or do not
        whole = self.library.whole_schedule(schedule, context["target"])
        told = self.library.told_schedule(whole, context["target"])
        kind, facets = self._kind(told, context), self._facets.of(whole, context)
        for facet in facets:
            self._seen_with.setdefault(facet, set()).add(_words(kind))
        return [kind, *facets]

    def _kind(self, schedule: Mapping[str, Any], context: Mapping[str, Any]) -> Kind:
        entries = [(name, _word(value)) for name, value in schedule.items() if name in self._reads or _is_word(value)]
        following = [n for n, asked in self._following.items() if all(_holds(c, context) is True for c in asked)]
        return (*entries, *((_THEN, name) for name in following))

    def has_words(self, schedule: Mapping[str, Any]) -> bool:
        """Has a schedule the words that the left side asks for?"""
        return all(schedule.get(name) in words for name, words in self.words.items())

    def passes(self, context: Mapping[str, Any]) -> bool:
        """May the guard take something in such surroundings?"""
        return all(_holds(condition, context) is not False for condition in self._guard)

    # ---- monoids

    def _monoids(self) -> dict[Kind, list[str]]:
        """The monoids that the rule's folds may be with, by kind; none if it speaks of no fold of its own choice."""
        named = {
            self._variable(node, operator)
            for node in nodes(self.rule.left)
            if (operator := self._operator(node)) is not None and operator.monoid_name is not None
        }
        found: dict[Kind, list[str]] = {}
        if not named or named <= set(self.library.monoids):
            return found
        variables = {name for name in named if name is not None and name not in self.library.monoids}
        asked = [c for c in conditions(self.rule.guard) if free_names(c) and free_names(c) <= variables]
        guard = [self.library.scope.compile(condition) for condition in asked]
        for monoid in self.library.monoids.values():
            if all(_holds(condition, dict.fromkeys(variables, monoid.name)) is not False for condition in guard):
                found.setdefault(monoid_kind(monoid), []).append(monoid.name)
        return found

    def _operator(self, node: OpPattern) -> Operator | None:
        names = pattern_operators(node, self.rule, self.library)
        return self.library.operator(min(names)) if names else None

    @staticmethod
    def _variable(node: OpPattern, operator: Operator) -> str | None:
        """What a pattern calls the monoid of its fold."""
        if node.family is not None:
            return node.family
        for attribute in node.attributes:
            if attribute.name == operator.monoid_name:
                value = attribute.value if attribute.value is not None else Name(attribute.name)
                return value.name if isinstance(value, Name) else getattr(value, "value", None)
        return None

    def wanted_monoid(self, random: Random) -> str | None:
        """A monoid of a kind that the rule was tried with least often; None if it does not matter."""
        if not self.monoid_kinds:
            return None
        least = min(self._order(kind) for kind in self.monoid_kinds)
        return random.choice(
            [m for kind, names in self.monoid_kinds.items() if self._order(kind) == least for m in names]
        )

    def _order(self, kind: Kind) -> tuple[int, int]:
        return self.met[kind], self.tried[kind]

    # ---- what was tried

    def of(self, module: Module, schedule: Mapping[str, Any], context: Mapping[str, Any]) -> list[Kind]:
        """All kinds that a kernel is of."""
        named = {dict(n.attributes).get(self.library.operator(n.op).monoid_name or "") for n in module.nodes}
        named |= {found[1] for n in module.nodes if (found := self.library.find(n.op)) is not None}
        monoids = {monoid_kind(decl) for m in named if m is not None and (decl := self.library.monoids.get(m))}
        kinds = [kind for kind in self.monoid_kinds if kind in monoids]
        return [*(self.kinds(schedule, context) if schedule else self._facets.of({}, context)), *kinds]

    def note(self, kinds: Iterable[Kind], took_part: bool) -> None:
        """A kernel of these kinds was tried."""
        for kind in kinds:
            if kind not in self._seen_with and kind not in self.monoid_kinds:
                self._tried_words[_words(kind)] += 1
                if took_part:
                    self._met_words[_words(kind)] += 1
            # where the rule has no part for its schedule, the monoid has not been tried
            self.tried[kind] += took_part or kind not in self.monoid_kinds
            self.met[kind] += took_part

    def seen(self, kinds: Iterable[Kind]) -> None:
        """There are such kernels."""
        for kind in kinds:
            self.tried[kind] += 0

    def least_tried(self, random: Random, options: Sequence[tuple[Sequence[Kind], Any]]) -> Any:
        """One of some options, by their kinds: of one that the rule took part in least often, and that was tried least."""
        ranks = [min(map(self._rank, kinds)) for kinds, _ in options]
        least = min(ranks)
        return random.choice([option for rank, (_, option) in zip(ranks, options, strict=True) if rank == least])

    def _rank(self, kind: Kind) -> tuple[bool, int, int]:
        """What was given up comes last."""
        return self._is_given_up(kind), *self._order(kind)

    def _is_given_up(self, kind: Kind) -> bool:
        patience = _PATIENCE_WITH_FACETS if kind in self._seen_with else _PATIENCE
        return not self.met[kind] and self.tried[kind] >= patience

    def open(self) -> bool:
        """Is there a kind of schedule or of monoid that may still be met?"""
        kinds = {*self.tried, *self.monoid_kinds} - {*self._seen_with}
        return any(map(self._is_open, kinds))

    def _is_open(self, kind: Kind) -> bool:
        return not self.met[kind] and not self._is_given_up(kind)

    def gain(self, kinds: Sequence[Kind]) -> float:
        """How much of what no kernel showed yet one of these kinds may show: less of what was tried in vain, and where the rule
        took part in no kernel with such words."""
        words = next((_words(k) for k in kinds if k not in self._seen_with and k not in self.monoid_kinds), ())
        known = (
            1.0 if self._met_words[words] else (_STRANGE if self._met_words else 1.0) / (1 + self._tried_words[words])
        )
        return known * sum(1 / (1 + self.tried[kind]) for kind in kinds if self._is_open(kind))

    def not_exercised(self) -> list[str]:
        """The kinds of kernels that there are, but that the rule took part in none of, in words; and the ways of the rule's own
        branches, if there are any such kernels or not.

        Schedules whose words are others than those of any kernel that it took part in are none of its.
        """
        words = {*self._met_words}
        missed = [k for k in self.tried if not self.met[k] and k not in self.monoid_kinds and self._is_of(k, words)]
        missed += [way for way in self._facets.demanded() if not self.met[way] and way not in missed]
        missed += [kind for kind in self.monoid_kinds if not self.met[kind]]
        return [_told(kind) for kind in missed]

    def _is_of(self, kind: Kind, words: set[tuple[Any, ...]]) -> bool:
        """Is a kind one of kernels whose schedules have one of these words?"""
        return not words.isdisjoint(self._seen_with.get(kind, (_words(kind),)))


def monoid_kind(monoid: MonoidDecl) -> Kind:
    """Which clauses a monoid has."""
    fields = "several fields" if len(monoid.carry) > 1 else "a field" if monoid.carry else "one value"
    return (
        ("carry", fields),
        ("element", bool(monoid.element)),
        ("finish", monoid.finish is not None),
        ("result", monoid.result is not None),
    )


def entries_read(library: Library, rule: RuleDecl) -> frozenset[str]:
    """The entries of the schedule that a rule, or a declaration of an operator that it names, speaks of."""
    exprs: list[Expr | None] = [rule.guard, *(b.value for b in (*rule.with_, *rule.for_))]
    for node in (n for side in (rule.left, rule.right) for n in nodes(side)):
        exprs += [a.value for a in node.attributes]
        for name in pattern_operators(node, rule, library):
            decl = library.operator(name).decl
            exprs += [decl.result, *(a.default for a in decl.attributes)]
    lets = library.scope.lets
    used = {pair for expr in exprs if expr is not None for pair in member_uses(expr, lets)}
    return frozenset(member for name, member in used if name == _SCHEDULE)


def _contextual(rule: RuleDecl) -> list[Expr]:
    """The conditions of a guard that ask for nothing but the surroundings, what `with` calls them written out."""
    bound = {b.name: b.value for b in rule.with_}
    written = [substitute(substitute(c, bound), bound) for c in conditions(rule.guard)]
    return [c for c in written if free_names(c) <= {*CONTEXT_NAMES}]


def _holds(condition: Evaluator, names: Mapping[str, Any]) -> bool | None:
    """Does a condition hold? None if it cannot be asked."""
    try:
        return condition(names) is True
    except (GenrwError, KeyError):
        return None


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _word(value: Any) -> Any:
    """A number, or a list of numbers, as far as it tells kinds apart."""
    if isinstance(value, tuple):
        return tuple(map(_word, value))
    return min(value, SEVERAL) if isinstance(value, int) and not isinstance(value, bool) else value


def _words(kind: Kind) -> tuple[Any, ...]:
    return tuple(value for name, value in kind if _is_word(value) and name != _THEN)


_NUMBERS = {0: "0", 1: "1", SEVERAL: "several"}


def _told(kind: Kind) -> str:
    parts = []
    for name, value in kind:
        if isinstance(value, bool):
            parts.append(name if value else f"not ({name})" if " " in name else f"no {name}")
        else:
            parts.append(f"{name} {_NUMBERS.get(value, show(value)) if isinstance(value, int) else value}")
    return ", ".join(parts)
