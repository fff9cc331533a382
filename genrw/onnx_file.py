"""ONNX files: read, checked, and freed of functions."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from genrw.grammar.diagnostics import GenrwError, error

if TYPE_CHECKING:
    import onnx

SUFFIX = ".onnx"
_DOMAINS = ("", "ai.onnx")
_MAX_BYTES = 1 << 31


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
        raise error(f"{path}: {problem.strerror or problem}") from None
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
        raise _told(f"{path}: its external data cannot be read", problem) from None


def checked(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model itself; GenrwError unless it is valid ONNX."""
    import onnx

    try:
        onnx.checker.check_model(model, full_check=model.ByteSize() < _MAX_BYTES)
    except Exception as problem:  # the checker raises several kinds
        raise _told(f"{name} is no valid ONNX model", problem) from None
    return model


def inlined(model: onnx.ModelProto, known: Collection[str]) -> onnx.ModelProto:
    """The model with functions replaced by their bodies: its own, and ONNX's for operators that are not known."""
    from onnx import inliner

    _write_defaults(model, known)
    kept = [(domain, name) for name in known for domain in ("", "ai.onnx")]
    try:
        return inliner.inline_selected_functions(model, kept, exclude=True, inline_schema_functions=True)
    except Exception:  # an operator whose body the inliner cannot make; those that stay are reported as missing
        return inliner.inline_local_functions(model)


def _write_defaults(model: onnx.ModelProto, known: Collection[str]) -> None:
    """Give operators that will be expanded the attributes that they leave out: bodies refer to them."""
    from onnx import defs

    version = max((o.version for o in model.opset_import if o.domain in _DOMAINS), default=0)
    for node in model.graph.node:
        if node.op_type in known or node.domain not in _DOMAINS or not defs.has(node.op_type, version, ""):
            continue
        given = {a.name for a in node.attribute}
        schema = defs.get_schema(node.op_type, version, "")
        node.attribute.extend(
            a.default_value for name, a in schema.attributes.items() if name not in given and a.default_value.name
        )


def _told(message: str, problem: Exception) -> GenrwError:
    """A diagnostic with the first line of what a library said."""
    said = next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
    return error(f"{message}: {said}")
