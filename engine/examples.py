"""A rule's own examples, run: the rule, alone, makes one program equal to the other.

What the programs of examples are, `example_programs` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genrw.engine.encodings import Encodings
from genrw.engine.example_programs import program_of
from genrw.engine.ir import Module, Node, walk
from genrw.engine.kernels import parameter_names
from genrw.engine.library import Library
from genrw.engine.relevance import relevant_rules
from genrw.engine.space import space_record, with_space
from genrw.engine.stage import Saturated, StageEngine
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import Example, RuleDecl

DEFAULT_POLICY = "cost"


def run_example(library: Library, rule: RuleDecl, example: Example) -> Diagnostic | None:
    """None if the rule does with an example what this says, else what it does not."""
    try:
        return _Trial(library, rule, example).verdict()
    except GenrwError as problem:
        return problem.diagnostics[0]


def example_graphs(library: Library, rule: RuleDecl, example: Example) -> Iterator[tuple[str, Saturated]]:
    """What the rule, alone, makes of its example at each of its stages; every guard's decision is counted."""
    trial = _Trial(library, rule, example, watched=True)
    before = trial.module(example.before)
    for stage in trial.stages():
        yield stage, trial.saturated(stage, before)


@dataclass
class _Trial:
    """One example of a rule."""

    library: Library
    rule: RuleDecl
    example: Example
    watched: bool = False

    def verdict(self) -> Diagnostic | None:
        before = self.module(self.example.before)
        after = self.module(self.example.after) if self.example.after is not None else None
        problems = [self._at(stage, before, after) for stage in self.stages()]
        return next((p for p in problems if p is not None), None)

    def stages(self) -> Sequence[str]:
        """The stages at which the rule runs."""
        return [stage for stage in self.rule.stages if stage in self.library.stages]

    def saturated(self, stage: str, before: Module) -> Saturated:
        """The e-graph of a program after the rule ran."""
        if before.space is None and stage != self.library.stages[0]:
            before = _with_own_space(before, self.library)
        present = frozenset(node.op for node in before.nodes)
        rules, reachable = relevant_rules(self.library, (self.rule,), present)
        engine = StageEngine(self.library, stage, rules, reachable, encodings=Encodings(self.library, self.watched))
        return engine.run([before], [self._context(before)])

    def _at(self, stage: str, before: Module, after: Module | None) -> Diagnostic | None:
        graph = self.saturated(stage, before)
        fired = any(graph.why.values())
        if after is None:
            return self._problem(f"rule `{self.rule.name}` changes its counterexample") if fired else None
        if not fired:
            return self._problem(f"rule `{self.rule.name}` does not match its example")
        if find(graph, after.root, self.library) != graph.class_of[graph.ids[id(before.root)]]:
            return self._problem(f"rule `{self.rule.name}` does not make its example what it gives")
        return None

    def _problem(self, message: str) -> Diagnostic:
        return Diagnostic(message, self.example.span)

    def module(self, file: tree.File) -> Module:
        return program_of(self.library, self.example, file)

    def _context(self, module: Module) -> Mapping[str, Any]:
        policy = next(
            (a.value.name for a in self.example.context if a.name == "policy" and isinstance(a.value, tree.Word)), None
        )
        return {
            "target": self.library.target(module.target),
            "schedule": self.library.schedule_record(module.schedule),
            "space": space_record(module, self.library),
            "policy": policy or DEFAULT_POLICY,
            "parameters": parameter_names(module),
        }


def _with_own_space(module: Module, library: Library) -> Module:
    """The module with the space of its tensors, if these have one."""
    try:
        return with_space(module, library)
    except GenrwError:
        return module


def find(graph: Saturated, root: Node, library: Library) -> int | None:
    """The class of a saturated e-graph that holds a term of its first kernel, if any does; what rules replaced is there."""
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
    return found[id(root)]
