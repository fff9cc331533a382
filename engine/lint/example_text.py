"""What a rule made of its example, as the difference of two texts: from what the example gives, or from itself.

An e-graph holds many programs. Shown is the one that has as little left as can be of what the rule rewrote, and as much
as can be of what the example gives.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from genrw.engine.egraph.extract import Extractor, written_nodes
from genrw.engine.egraph.stage import EGraphSnapshot
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library
from genrw.engine.programs.text import module_tree
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import print_module

_CONTEXT = 2
_REWRITTEN = 1e6
"""What an operation that the rule rewrote counts, in operations: it is taken where there is nothing else."""
_WANTED = 0.5
"""What an operation counts that the example gives."""


def difference(
    library: Library,
    stage: str,
    graph: EGraphSnapshot,
    before: Module,
    after: Module | None,
    context: Mapping[str, Any],
    found: Mapping[int, int | None],
) -> tuple[str, ...]:
    """The lines of a unified diff that leads from what an example gives, of a counterexample from itself, to what the
    rule makes. `found` has the class of each node of `after`, by its id, where there is one.

    No lines where a program cannot be written, since the rule made what no operator allows.
    """
    names = written_nodes(graph, [before], library)
    wanted = after or before
    if after is not None:
        named = [n for n in after.nodes if n.operands and n.name is not None]
        names |= {number: n for n in named if (number := found[id(n)]) is not None}
        root = graph.class_of[graph.ids[id(before.root)]]
        names[root] = replace(names.get(root, after.root), name=after.root.name)
    try:
        made = _made(library, stage, graph, before, wanted, context, names)
        first, second = (print_module(module_tree(_bare(m), library, context)).splitlines() for m in (wanted, made))
    except (GenrwError, KeyError):
        return ()
    kinds = "gives" if after is not None else "counterexample"
    return tuple(difflib.unified_diff(first, second, kinds, "the rule makes", lineterm="", n=_CONTEXT))


def _made(
    library: Library,
    stage: str,
    graph: EGraphSnapshot,
    before: Module,
    wanted: Module,
    context: Mapping[str, Any],
    names: Mapping[int, Node],
) -> Module:
    chosen = _chosen(graph, set(_enodes(graph, before)), {(n.op, n.attributes) for n in wanted.nodes})
    root = graph.class_of[graph.ids[id(before.root)]]
    return replace(before, root=Extractor(library, stage, graph).made(root, chosen, context, names)[root])


def _bare(module: Module) -> Module:
    """The program without a header."""
    return replace(module, stage="", schedule={}, space=None)


def _enodes(graph: EGraphSnapshot, module: Module) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """The operations of a program as the e-graph has them."""
    for node in module.nodes:
        operands = tuple(graph.class_of[graph.ids[id(o)]] for o in node.operands)
        yield node.op, graph.interner.attributes_id(0, node.attributes), operands


def _chosen(
    graph: EGraphSnapshot, written: set[tuple[str, int, tuple[int, ...]]], wanted: set[tuple[str, Any]]
) -> dict[int, ENode]:
    """A node of each class that has a term: of the term that counts least."""
    members = {n: [*graph.classes.get(n, ()), *graph.replaced.get(n, ())] for n in {*graph.classes, *graph.replaced}}

    def price(number: int, node: ENode) -> float:
        if node.number is not None:
            return 0.0
        if graph.why.get(number) and (node.op, node.attributes, node.operands) in written:
            return _REWRITTEN
        return _WANTED if (node.op, graph.interner.attributes(node.attributes)) in wanted else 1.0

    best: dict[int, tuple[float, ENode]] = {}
    changed = True
    while changed:
        changed = False
        for number, nodes in members.items():
            for node in nodes:
                if all(o in best for o in node.operands):
                    total = price(number, node) + sum(best[o][0] for o in node.operands)
                    if number not in best or total < best[number][0]:
                        best[number], changed = (total, node), True
    return {number: node for number, (_, node) in best.items()}
