"""Facts about a program's graph that rules may ask for: fold depth, users, place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library


@dataclass(frozen=True)
class GraphFacts:
    """By node identity: `depth`, how many folds lie one above the other beneath a node; `uses`, its users;
    `fold`, for fold nodes, their place among the module's folds; `order`, a node's place in the module; `varies`, whether
    a tensor is known to have a value of its own for each element, so that no lane can do with one for its share; `ways`,
    at how many places results take a tensor's element, each through moves of its own."""

    depth: dict[int, int]
    uses: dict[int, int]
    fold: dict[int, int]
    order: dict[int, int]
    varies: dict[int, int]
    ways: dict[int, int]

    @classmethod
    def of(cls, module: Module, library: Library) -> GraphFacts:
        depth: dict[int, int] = {}
        uses: dict[int, int] = {}
        fold: dict[int, int] = {}
        order: dict[int, int] = {}
        varies: dict[int, int] = {}
        for node in module.nodes:
            is_fold = library.role(node.op) == "fold"
            depth[id(node)] = max((depth[id(o)] for o in node.operands), default=0) + is_fold
            if is_fold:
                fold[id(node)] = len(fold)
            order[id(node)] = len(order)
            varies[id(node)] = _varies(node, library, varies)
            for operand in node.operands:
                uses[id(operand)] = uses.get(id(operand), 0) + 1
        return cls(depth, uses, fold, order, varies, _ways(module, library))


GRAPH_FACTS = tuple(field.name for field in fields(GraphFacts))
"""The names of these facts."""


def _varies(node: Node, library: Library, known: Mapping[int, int]) -> int:
    """Inputs whose strides repeat nothing vary, tables, and what is made of these element by element; what repeats elements
    may not."""
    role, parts = library.role(node.op), library.operator(node.op).decl.role_parts
    if role == "boundary":
        repeats = any(n > 1 and s == 0 for n, s in zip(node.type.lens, node.type.layout, strict=True))
        return int(
            (parts == ("input",) and not repeats)
            or (parts == ("constant",) and isinstance(node.attribute("value"), tuple))
        )
    if role == "pointwise":
        return max((known[id(o)] for o in node.operands), default=0)
    tensors = [o for o in node.operands if o.type.sort == "tensor"]
    if role != "index_map" or node.type.elements > sum(o.type.elements for o in tensors):
        return 0
    return min((known[id(o)] for o in tensors), default=0)


_Way = tuple[object, ...]
"""The operators that move an element, the outermost one first, and which operand of each."""


def _ways(module: Module, library: Library) -> dict[int, int]:
    """The numbers of ways to the nodes of a module. What is stored or folded is taken at its own place."""
    taken: dict[int, set[_Way]] = {}
    for node in reversed(module.nodes):
        role = library.role(node.op)
        own = taken.get(id(node), set())
        for place, operand in enumerate(node.operands):
            moved = {(*way, id(node), place) for way in own} if role == "index_map" else own
            known = taken.setdefault(id(operand), set())
            known |= moved if role in ("index_map", "pointwise") else {()}
            while len(known) > _MOST_WAYS:
                known.pop()
    return {id(node): len(taken.get(id(node), ())) for node in module.nodes}


_MOST_WAYS = 4
"""No more ways are told apart: of programs that move again and again what they moved there are too many."""
