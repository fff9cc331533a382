"""Bodies of ONNX's operators that depend on types and on which inputs are there, where onnx's own inliner does not
make them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_DOMAIN = "genrw.bodies"


def with_bodies(model: onnx.ModelProto, known: Collection[str]) -> onnx.ModelProto:
    """A model whose operators that onnx's inliner fails on are calls of functions of the model, as far as ONNX has
    bodies for them; the model itself where there are none. The inliner fails on absent inputs between others, and
    sees no types within inner graphs."""
    from onnx import TypeProto, helper, shape_inference

    if not any(_left(model.graph, {}, known)):
        return model
    typed = shape_inference.infer_shapes(model)
    functions: list[onnx.FunctionProto] = []
    for node, types in _left(typed.graph, {"": TypeProto()}, known):
        body = _body(node, model.opset_import, types)
        if body is not None:
            body.domain = _DOMAIN
            body.name = f"{node.op_type}_{len(functions)}"
            node.domain, node.op_type = body.domain, body.name
            functions.append(body)
    typed.functions.extend(functions)
    typed.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return typed


def graphs(body: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """A graph, or a function, and all graphs within it."""
    yield body
    for node in body.node:
        for graph in _inner(node):
            yield from graphs(graph)


def _inner(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g


def _left(
    graph: onnx.GraphProto, around: Mapping[str, onnx.TypeProto], known: Collection[str], within: bool = False
) -> Iterator[tuple[onnx.NodeProto, dict[str, onnx.TypeProto]]]:
    """The operators of a graph and of those within that the inliner fails on if their bodies depend on types, with the
    types that are known there."""
    from onnx import helper

    types = {**around, **{value.name: value.type for value in (*graph.input, *graph.value_info, *graph.output)}}
    for tensor in graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    for node in graph.node:
        for inner in _inner(node):
            yield from _left(inner, types, known, within=True)
        if node.op_type not in known and (within or "" in node.input):
            yield node, types


def _body(
    node: onnx.NodeProto, opsets: Sequence[onnx.OperatorSetIdProto], types: Mapping[str, onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """The body of an operator for the inputs that it has; None if there is none, or it depends on an unknown type."""
    from onnx import FunctionProto, defs

    version = max((o.version for o in opsets if o.domain == node.domain), default=0)
    if not defs.has(node.op_type, version, node.domain) or any(name not in types for name in node.input):
        return None
    schema = defs.get_schema(node.op_type, version, node.domain)
    # onnx's stubs leave these two out
    if not schema.has_context_dependent_function:  # type: ignore[attr-defined]
        return None
    given = [types[name].SerializeToString() for name in node.input]
    body = FunctionProto()
    body.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), given))  # type: ignore[attr-defined]
    return body if body.node else None
