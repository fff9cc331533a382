"""A key that two modules share exactly when they are the same program, names included."""

from __future__ import annotations

from typing import Any

from genrw.engine.interner import attributes_key
from genrw.engine.ir import Module


def structure_key(module: Module) -> tuple[Any, ...]:
    """What lowering a module depends on: its header and its graph."""
    ids: dict[int, int] = {}
    graph = []
    for node in module.nodes:
        ids[id(node)] = len(ids)
        operands = tuple(ids[id(o)] for o in node.operands)
        graph.append((node.op, attributes_key(node.attributes), operands, node.name, node.type))
    parameters = tuple((attributes_key(p.attributes), p.name, ids.get(id(p))) for p in module.parameters)
    header = (module.name, module.stage, module.target, attributes_key(tuple(module.schedule.items())))
    return (header, module.space, module.axes, module.results, tuple(module.outputs.items()), parameters, tuple(graph))
