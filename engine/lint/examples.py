"""A rule's own examples, run: the rule, alone, makes one program equal to the other.

What the programs of examples are, `example_programs` says; what a rule made of one that went wrong, `example_text`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from genrw.engine.egraph.encodings import Encodings
from genrw.engine.egraph.relevance import relevant_rules
from genrw.engine.egraph.stage import EGraphSnapshot, Limits, StageEngine
from genrw.engine.explain.why_not_search import why_not
from genrw.engine.ir.nodes import Module, Node, walk
from genrw.engine.library.arities import program_arities, term_arities
from genrw.engine.library.constants import folds_constants, has_constants
from genrw.engine.library.library import Library
from genrw.engine.library.variants import pattern_operators
from genrw.engine.lint.example_text import difference
from genrw.engine.programs.example_programs import program_of
from genrw.engine.programs.signature import parameter_names
from genrw.engine.programs.space import space_record, with_space
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import Example, OpPattern, RuleDecl
from genrw.grammar.source import NOWHERE, Span

DEFAULT_POLICY = "cost"
_LIMITS = Limits(rounds=100, nodes_per_kernel=10_000, seconds=10.0)
"""One rule and a few operations need less than a program; a rule that never ends is told of soon."""
_ENGINES_KEPT = 4


@dataclass(frozen=True)
class Failure:
    """An example that does not hold: what is wrong and where, and how the two programs differ.

    `difference` are the lines of a unified diff, none where there are no two programs to compare.
    """

    diagnostics: tuple[Diagnostic, ...]
    difference: tuple[str, ...] = ()


def run_example(library: Library, rule: RuleDecl, example: Example) -> Failure | None:
    """None if the rule does with an example what this says, else what it does not."""
    try:
        return _ExampleRun(library, rule, example).failure()
    except GenrwError as problem:
        return Failure(tuple(_placed(d, example.keyword) for d in problem.diagnostics))


def example_graphs(library: Library, rule: RuleDecl, example: Example) -> Iterator[tuple[str, EGraphSnapshot]]:
    """What the rule, alone, makes of its example at each of its stages; every guard's decision is counted."""
    trial = _ExampleRun(library, rule, example, watched=True)
    for stage in trial.stages():
        yield stage, trial.saturated(stage)


@dataclass
class _Engines:
    """The engines of the rules whose examples ran last. Most examples of a rule need the same one."""

    library: Library
    encodings: Encodings
    kept: dict[Any, StageEngine] = field(default_factory=dict)

    def engine(self, stage: str, rules: Sequence[RuleDecl], reachable: frozenset[str], module: Module) -> StageEngine:
        """The engine of some rules for a module; `reachable` are the operators that can appear."""
        arities = term_arities(self.library, rules, program_arities([module], self.library))
        needed = self.encodings.needed(rules, reachable, arities)
        key = (stage, needed.arities, needed.encoded)
        engine = self.kept.pop(key, None)
        if engine is None:
            outdated = self.kept.pop(next(iter(self.kept))) if len(self.kept) == _ENGINES_KEPT else None
            engine = StageEngine(self.library, stage, rules, reachable, _LIMITS, self.encodings, outdated)
        self.kept[key] = engine
        return engine


_local = threading.local()


def _engines_of(library: Library, watched: bool) -> _Engines:
    """The calling thread's engines for the library asked about last: e-graphs belong to the thread that made them."""
    known: dict[bool, _Engines] = _local.__dict__.setdefault("engines", {})
    if watched not in known or known[watched].library is not library:
        known[watched] = _Engines(library, Encodings(library, watched, apart=True))
    return known[watched]


@dataclass
class _ExampleRun:
    """One example of a rule."""

    library: Library
    rule: RuleDecl
    example: Example
    watched: bool = False

    @cached_property
    def before(self) -> Module:
        return program_of(self.library, self.example, self.example.before)

    @cached_property
    def after(self) -> Module | None:
        file = self.example.after
        return program_of(self.library, self.example, file) if file is not None else None

    def failure(self) -> Failure | None:
        """What is wrong at the first of the rule's stages where anything is."""
        both = self.before, self.after  # Programs that are none are told of before any rule runs.
        assert both[0] is not None
        problems = (self._at(stage) for stage in self.stages())
        return next((p for p in problems if p is not None), None)

    def stages(self) -> Sequence[str]:
        """The stages at which the rule runs."""
        return [stage for stage in self.rule.stages if stage in self.library.stages]

    def saturated(self, stage: str) -> EGraphSnapshot:
        """The e-graph of the program after the rule ran."""
        before = self._spaced(stage)
        present = frozenset(node.op for node in before.nodes)
        rules, reachable = relevant_rules(self.library, (self.rule, *self._folding(stage)), present)
        engine = _engines_of(self.library, self.watched).engine(stage, rules, reachable, before)
        return engine.run([before], [self._context(before)])

    def _folding(self, stage: str) -> Sequence[RuleDecl]:
        """For a rule on constants the rules that make one of a constant: programs get at theirs in many ways."""
        if not has_constants(self.rule, self.library):
            return ()
        others = (rule for rule in self.library.rules if rule is not self.rule and stage in rule.stages)
        return [rule for rule in others if folds_constants(rule, self.library)]

    def _own(self, graph: EGraphSnapshot, number: int) -> bool:
        """Did the rule itself make something of a class?"""
        return any(graph.rules[r].partition("/")[0] == self.rule.name for r in graph.why.get(number, ()))

    def _spaced(self, stage: str) -> Module:
        """The program as a stage takes it."""
        needs_space = self.before.space is None and stage != self.library.stages[0]
        return _with_own_space(self.before, self.library) if needs_space else self.before

    def _at(self, stage: str) -> Failure | None:
        graph = self.saturated(stage)
        fired = any(self._own(graph, number) for number in graph.why)
        if self.after is None:
            return self._changed(stage, graph) if fired else None
        if not fired:
            return self._unmatched(stage)
        found = places(graph, self.after.root, self.library)
        if found[id(self.after.root)] == _class_of(graph, self.before.root):
            return None
        missing = next((n for n in self.after.nodes if found[id(n)] is None), self.after.root)
        said = f"rule `{self.rule.name}` does not make its example what it gives"
        told = Diagnostic(said, _place(missing, self.example.keyword), "mend the rule, or what the example gives")
        made = difference(self.library, stage, graph, self.before, self.after, self._context(self.before), found)
        return Failure((told,), made)

    def _changed(self, stage: str, graph: EGraphSnapshot) -> Failure:
        """A counterexample that the rule matches: at the instruction where it does."""
        left = self.rule.left
        roots = pattern_operators(left, self.rule, self.library) if isinstance(left, OpPattern) else frozenset()
        matched = [n for n in self.before.nodes if n.op in roots and self._own(graph, _class_of(graph, n))]
        whole = matched[-1] if matched else self.before.root  # Users come last: of what is equal by now, the whole.
        said = f"rule `{self.rule.name}` changes its counterexample"
        remedy = "narrow the pattern or its guard, or make this an example"
        told = Diagnostic(said, _place(whole, self.example.keyword), remedy)
        made = difference(self.library, stage, graph, self.before, None, self._context(self.before), {})
        return Failure((told,), made)

    def _unmatched(self, stage: str) -> Failure:
        """An example that the rule leaves alone: what its pattern or guard fails at."""
        said = f"rule `{self.rule.name}` does not match its example"
        told = Diagnostic(said, self.example.keyword, "mend the rule, or make this a counterexample")
        trial = replace(self, watched=True)  # Its e-graph knows what guards see.
        return Failure((told, *_first(why_not(self.library, self.rule, trial.saturated(stage), trial._spaced(stage)))))

    def _context(self, module: Module) -> Mapping[str, Any]:
        policy = next(
            (a.value.name for a in self.example.context if a.name == "policy" and isinstance(a.value, tree.Word)), None
        )
        target = self.library.target(module.target)
        return {
            "target": target,
            "schedule": self.library.schedule_record(module.schedule, target),
            "space": space_record(module, self.library),
            "policy": policy or DEFAULT_POLICY,
            "parameters": parameter_names(module),
        }


def _first(found: Diagnostic | None) -> tuple[Diagnostic, ...]:
    return (found,) if found is not None else ()


def _class_of(graph: EGraphSnapshot, node: Node) -> int:
    return graph.class_of[graph.ids[id(node)]]


def _place(node: Node, otherwise: Span) -> Span:
    return node.span if node.span is not NOWHERE else otherwise


def _placed(problem: Diagnostic, otherwise: Span) -> Diagnostic:
    """A diagnostic that says where, at the least at the example."""
    if problem.span is not None:
        return problem
    return Diagnostic(problem.message, otherwise, problem.remedy, problem.severity)


def _with_own_space(module: Module, library: Library) -> Module:
    """The module with the space of its tensors, if these have one."""
    try:
        return with_space(module, library)
    except GenrwError:
        return module


def find(graph: EGraphSnapshot, root: Node, library: Library) -> int | None:
    """The class of a saturated e-graph that holds a term of its first kernel, if any does; what rules replaced is there."""
    return places(graph, root, library)[id(root)]


def places(graph: EGraphSnapshot, root: Node, library: Library) -> dict[int, int | None]:
    """For each node of a term, by its id, the class of the first kernel that holds it; None where none does."""
    known: dict[Any, int] = {}
    for number, nodes in (*graph.replaced.items(), *graph.classes.items()):
        for node in nodes:
            known[node.number if node.number is not None else (node.op, node.attributes, node.operands)] = number
    constant = library.boundary("number").name
    found: dict[int, int | None] = {}
    for term in walk(root):
        if term.op == constant:
            key: Any = term.attribute("value")
        else:
            operands = tuple(found[id(o)] for o in term.operands)
            key = (term.op, graph.interner.attributes_id(0, term.attributes), operands)
        found[id(term)] = known.get(key)
    return found
