"""One stage of one module, looked at closely: the programs between what it takes and what it gives.

All of it is made anew from an e-graph that records what rules do; ordinary lowering keeps nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from genrw.engine.egraph.extract import Chosen
from genrw.engine.egraph.narrowed import Numbered
from genrw.engine.explain.derivation import Step, derivation
from genrw.engine.explain.terms import Term
from genrw.engine.ir.nodes import Module, Node, walk
from genrw.engine.ir.types import EFFECT
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import NO_ALTERNATIVES, Batch, Pipeline
from genrw.grammar.diagnostics import GenrwError


@dataclass(frozen=True)
class State:
    """A program between two steps, and its nodes by the terms that they stand for."""

    module: Module
    term: Term
    nodes: Mapping[int, Node]

    def node(self, term: Term) -> Node:
        """The node of a term of the program."""
        return self.nodes[id(term)]


@dataclass(frozen=True)
class Study:
    """What a stage does to a module: the steps, and the programs before the first and after each of them.

    `module` is the stage's result: what the last step leads to, with the roundings that rules left out. `classes` are those
    of its nodes, by their identity.
    """

    stage: str
    batch: Batch
    chosen: Chosen
    steps: tuple[Step, ...]
    states: tuple[State, ...]
    module: Module
    classes: Mapping[int, int]


def study(pipeline: Pipeline, module: Module, stage: str, options: Options) -> Study:
    """Look at what a stage's rules, of a pipeline that records, make of a module."""
    module = replace(pipeline.spaced(module, stage), target=options.target)
    batch = pipeline.batch([module], stage, options, alternatives=NO_ALTERNATIVES)
    chosen = batch.extractor.chosen(module, batch.names)
    first, found = derivation(batch.graph, module, chosen.program, pipeline.library)
    builder = _Builder(pipeline, batch, stage)
    builder.state(found[-1][1] if found else first)  # What types values have in the result helps before it.
    states = tuple(map(builder.state, [first, *(term for _, term in found)]))
    last = builder.rounded(states[-1])
    chosen = replace(chosen, program={**chosen.program, **last.rounded})
    result = pipeline.with_root(module, last.root, stage)
    return Study(stage, batch, chosen, tuple(step for step, _ in found), states, result, last.numbers)


class _Builder:
    """Builds the programs that terms of one e-graph are."""

    def __init__(self, pipeline: Pipeline, batch: Batch, stage: str) -> None:
        self.pipeline, self.batch, self.stage = pipeline, batch, stage
        self.types = {number: node.type for number, node in batch.names.items()}

    def state(self, root: Term) -> State:
        """The program that a term is."""
        nodes: dict[int, Node] = {}
        taken: set[str] = set()
        for term in walk(root):
            nodes[id(term)] = self._node(term, [nodes[id(o)] for o in term.operands], taken)
        module = self.pipeline.with_root(self.batch.modules[0], nodes[id(root)], self.stage)
        return State(module, root, nodes)

    def rounded(self, state: State) -> Numbered:
        """The program of the last state with the roundings that rules left out."""
        made = {term.number: state.node(term) for term in walk(state.term)}
        (module,), (context,) = self.batch.modules, self.batch.contexts
        return self.batch.extractor.rounded(state.module.root, made, module, context, self.batch.names)

    def _node(self, term: Term, operands: Sequence[Node], taken: set[str]) -> Node:
        """The node of a term. Halfway between two forms of a value an operation may have operands of both, which its
        declaration does not allow: then its type is that of its class."""
        batch = self.batch
        try:
            node = batch.extractor.node(term.number, term.node, operands, batch.contexts[0], batch.names, taken)
        except GenrwError:
            attributes = batch.graph.interner.attributes(term.node.attributes)
            return Node(term.node.op, attributes, tuple(operands), self.types.get(term.number, EFFECT))
        self.types[term.number] = node.type
        return node
