"""Bodies of ONNX's operators that depend on which inputs are there, where onnx's own inliner does not make them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_DOMAIN = "genrw.bodies"


def with_bodies(model: onnx.ModelProto, known: Collection[str]) -> onnx.ModelProto:
    """A model whose operators with absent inputs between others are calls of functions of the model, as far as ONNX
    has bodies for them; the model itself where there are none. onnx's inliner fails on them."""
    from onnx import ModelProto, helper

    if not any(_skips_inputs(node, known) for node in model.graph.node):
        return model
    types = _types(model)
    changed = ModelProto()
    changed.CopyFrom(model)
    for node in changed.graph.node:
        body = _body(node, model, types) if _skips_inputs(node, known) else None
        if body is not None:
            body.domain = _DOMAIN
            body.name = f"{node.op_type}_{len(changed.functions)}"
            node.domain, node.op_type = body.domain, body.name
            changed.functions.append(body)
    changed.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return changed


def _skips_inputs(node: onnx.NodeProto, known: Collection[str]) -> bool:
    return node.op_type not in known and "" in node.input


def _types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """The types of a model's values, as far as onnx infers them; the type of what is absent says nothing."""
    from onnx import TypeProto, helper, shape_inference

    graph = shape_inference.infer_shapes(model).graph
    types = {value.name: value.type for value in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    return types | {"": TypeProto()}


def _body(node: onnx.NodeProto, model: onnx.ModelProto, types: dict[str, onnx.TypeProto]) -> onnx.FunctionProto | None:
    """The body of an operator for the inputs that it has; None if there is none, or it depends on an unknown type."""
    from onnx import FunctionProto, defs

    version = max((o.version for o in model.opset_import if o.domain == node.domain), default=0)
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
