"""Facts about a program's graph that rules may ask for: fold depth, users, place."""

from __future__ import annotations

from dataclasses import dataclass

from genrw.engine.ir import Module, walk
from genrw.engine.library import Library


@dataclass(frozen=True)
class GraphFacts:
    """By node identity: `depth`, how many folds lie one above the other beneath a node; `uses`, its users;
    `fold`, for fold nodes, their place among the module's folds; `order`, a node's place in the module."""

    depth: dict[int, int]
    uses: dict[int, int]
    fold: dict[int, int]
    order: dict[int, int]

    @classmethod
    def of(cls, module: Module, library: Library) -> GraphFacts:
        depth: dict[int, int] = {}
        uses: dict[int, int] = {}
        fold: dict[int, int] = {}
        order: dict[int, int] = {}
        for node in walk(module.root):
            is_fold = library.role(node.op) == "fold"
            depth[id(node)] = max((depth[id(o)] for o in node.operands), default=0) + is_fold
            if is_fold:
                fold[id(node)] = len(fold)
            order[id(node)] = len(order)
            for operand in node.operands:
                uses[id(operand)] = uses.get(id(operand), 0) + 1
        return cls(depth, uses, fold, order)
