"""ONNX files: read, checked, and freed of functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from genrw.grammar.diagnostics import GenrwError, error
from genrw.onnx.bodies import graphs, with_bodies

if TYPE_CHECKING:
    import onnx

SUFFIX = ".onnx"
_DOMAINS = ("", "ai.onnx")
_MAX_BYTES = 1 << 31
_EXCEPTION = re.compile(r"\[\w+Error\]\s*(Inference error\(s\):\s*)?|\S+\.cc:\d+: .* failed: ")
"""What onnx writes before each part of a message."""


def read_model(path: str | Path) -> onnx.ModelProto:
    """The model in a file, with its external data; GenrwError if it is none or not a valid one."""
    path = Path(path)
    try:
        import onnx
    except ImportError:
        raise error("reading ONNX models takes the package onnx", remedy="pip install 'genrw[onnx]'") from None
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror or problem}", remedy="name an ONNX model") from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception:  # whatever protobuf makes of bytes that are no message
        raise error(f"{path} holds no ONNX model", remedy="is the file complete?") from None
    _load_external(model, path)
    return checked(model, str(path))


def _load_external(model: onnx.ModelProto, path: Path) -> None:
    from onnx.external_data_helper import load_external_data_for_model

    try:
        load_external_data_for_model(model, str(path.parent))
    except Exception as problem:  # onnx and the file system each have their own
        remedy = "put the files that it names into its folder"
        raise _told(f"{path}: its external data cannot be read", problem, remedy) from None


def checked(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model itself; GenrwError unless it is valid ONNX that gives something."""
    import onnx

    try:
        small = model.ByteSize() < _MAX_BYTES
        filled = _with_defaults(model)
        onnx.checker.check_model(_with_types_of_outputs(filled) if small else filled, full_check=small)
    except Exception as problem:  # the checker raises several kinds
        remedy = "export it anew: `onnx.checker.check_model` says whether it is valid then"
        raise _told(f"{name} is no valid ONNX model", problem, remedy) from None
    if not model.graph.output:
        raise error(f"{name} has no outputs", remedy="export a model that gives something")
    return model


def _with_types_of_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model that says of which types and shapes its outputs are: exporters leave these out, the checker asks for them. Shapes
    that cannot be found are empty there, so that the checker goes on to what else it finds. The model itself where none is missing."""
    from onnx import ModelProto, shape_inference

    if all(map(_has_shape, model.graph.output)):
        return model
    try:
        typed = shape_inference.infer_shapes(model)
    except Exception:  # whatever it stumbles over, the checker tells
        typed = ModelProto()
        typed.CopyFrom(model)
    for output in typed.graph.output:
        if output.type.HasField("tensor_type") and not _has_shape(output):
            output.type.tensor_type.shape.SetInParent()
    return typed


def _has_shape(output: onnx.ValueInfoProto) -> bool:
    return bool(output.type.HasField("tensor_type") and output.type.tensor_type.HasField("shape"))


def inlined(model: onnx.ModelProto, known: Collection[str]) -> onnx.ModelProto:
    """The model with functions replaced by their bodies: its own, and ONNX's for operators that are not known."""
    from onnx import inliner

    # Only what stands in a graph, not in a function, has types that are known.
    try:
        model = inliner.inline_local_functions(model) if model.functions else model
    except Exception as problem:  # the inliner raises several kinds
        remedy = "give functions as many inputs as they have"
        raise _told("the model's functions do not fit their calls", problem, remedy) from None
    model = with_bodies(_with_types(_with_defaults(model, known), known), known)
    kept = [(domain, name) for name in known for domain in _DOMAINS]
    try:
        return inliner.inline_selected_functions(model, kept, exclude=True, inline_schema_functions=True)
    except Exception:  # an operator whose body the inliner cannot make
        return _inlined_one_by_one(inliner.inline_local_functions(model), known)


def _inlined_one_by_one(model: onnx.ModelProto, known: Collection[str]) -> onnx.ModelProto:
    """The model with those operators replaced by their bodies whose bodies can be made. The others stay, and are
    reported as missing."""
    from onnx import inliner

    stuck = set(known)
    while names := _operators(model) - stuck:
        name = min(names)
        chosen = [(domain, name) for domain in _DOMAINS]
        # Bodies may hold further operators, none of them the one whose body it is: what stays has no body.
        with suppress(Exception):
            model = inliner.inline_selected_functions(model, chosen, exclude=False, inline_schema_functions=True)
        if name in _operators(model):
            stuck.add(name)
    return model


def _operators(model: onnx.ModelProto) -> set[str]:
    """The names of ONNX's own operators in a model."""
    return {node.op_type for node, _ in _nodes(model) if node.domain in _DOMAINS}


def _with_types(model: onnx.ModelProto, known: Collection[str]) -> onnx.ModelProto:
    """A model that says of which types its initializers are, which the inliner does not see; the model itself where
    all operators are known."""
    import onnx

    if _operators(model) <= set(known):
        return model
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for graph in graphs(typed.graph):
        told = {value.name for value in (*graph.input, *graph.value_info, *graph.output)}
        graph.value_info.extend(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            for tensor in graph.initializer
            if tensor.name not in told
        )
    return typed


def _with_defaults(model: onnx.ModelProto, known: Collection[str] = ()) -> onnx.ModelProto:
    """A model whose operators are given the attributes that they leave out and that their bodies refer to; the model
    itself where there are none. Operators that are known need no body."""
    import onnx

    if not any(_left_out(node, version, known) for node, version in _nodes(model)):
        return model
    filled = onnx.ModelProto()
    filled.CopyFrom(model)
    for node, version in _nodes(filled):
        node.attribute.extend(_left_out(node, version, known))
    return filled


def _left_out(node: onnx.NodeProto, version: int, known: Collection[str]) -> list[onnx.AttributeProto]:
    """The defaults of the attributes that a node leaves out, if its operator is one with a body."""
    from onnx import defs

    if node.op_type in known or node.domain not in _DOMAINS or not defs.has(node.op_type, version, ""):
        return []
    schema = defs.get_schema(node.op_type, version, "")
    # onnx's stubs leave these two out
    if not (schema.has_function or schema.has_context_dependent_function):  # type: ignore[attr-defined]
        return []
    given = {a.name for a in node.attribute}
    return [a.default_value for name, a in schema.attributes.items() if name not in given and a.default_value.name]


def _nodes(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, int]]:
    """All nodes with the version of their operators: the graph's, and those of inner graphs and of functions."""
    for body, opsets in ((model.graph, model.opset_import), *((f, f.opset_import) for f in model.functions)):
        version = max((o.version for o in opsets if o.domain in _DOMAINS), default=0)
        for graph in graphs(body):
            for node in graph.node:
                yield node, version


def _told(message: str, problem: Exception, remedy: str) -> GenrwError:
    """A diagnostic with the first line of what a library said, without the names of its exceptions."""
    lines = (_EXCEPTION.sub("", line).strip() for line in str(problem).splitlines())
    said = next(filter(None, lines), type(problem).__name__)
    return error(f"{message}: {said}", remedy=remedy)
