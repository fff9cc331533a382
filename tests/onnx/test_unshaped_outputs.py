"""Models that say of no shape for their outputs, which exporters leave out: taken where they are right, and where they are not,
what is wrong is told and not that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import genrw

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def saved(path: Path, *nodes: onnx.NodeProto, opset: int = 17, **constants: Any) -> Path:
    x = make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = make_tensor_value_info("y", TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = make_graph(nodes, "g", [x], [y], initializers)
    onnx.save(make_model(graph, opset_imports=[make_opsetid("", opset)], ir_version=8), path)
    return path


def twice_added() -> onnx.NodeProto:
    """A loop, whose results' shapes inference does not know."""
    nodes = [make_node("Add", ["a", "x"], ["b"]), make_node("Identity", ["c"], ["d"])]
    i = make_tensor_value_info("i", TensorProto.INT64, [])
    c, d = (make_tensor_value_info(name, TensorProto.BOOL, []) for name in "cd")
    a, b = (make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "ab")
    return make_node("Loop", ["t", "", "x"], ["y"], body=make_graph(nodes, "body", [i, c, a], [d, b]))


RIGHT: dict[str, tuple[Callable[[Path], Path], np.ndarray[Any, Any]]] = {
    "a loop": (lambda p: saved(p, twice_added(), t=np.int64(2)), 3 * X),
    "an old opset": (lambda p: saved(p, make_node("Relu", ["x"], ["y"]), opset=1), np.maximum(X, 0)),
    "what inference knows": (lambda p: saved(p, make_node("Neg", ["x"], ["y"])), -X),
}

WRONG: dict[str, tuple[Callable[[Path], Path], str]] = {
    "an unknown operator": (lambda p: saved(p, make_node("Foo", ["x"], ["y"])), "No Op registered for Foo"),
    "an axis out of range": (lambda p: saved(p, make_node("Softmax", ["x"], ["y"], axis=7)), "'axis' must be in"),
    "too few inputs": (lambda p: saved(p, make_node("Relu", [], ["y"])), "has input size 0 not in range"),
    "a value that there is not": (lambda p: saved(p, make_node("Add", ["x", "q"], ["y"])), "input 'q' of node"),
    "an output that nothing makes": (lambda p: saved(p, make_node("Neg", ["x"], ["z"])), "'y' is not an output"),
    "a loop without a body": (lambda p: saved(p, make_node("Loop", ["t", "", "x"], ["y"]), t=2), "'body' is missing"),
}


@pytest.mark.parametrize(("made", "wanted"), RIGHT.values(), ids=RIGHT)
def test_it_is_taken(tmp_path: Path, made: Callable[[Path], Path], wanted: np.ndarray[Any, Any]) -> None:
    program = genrw.load(made(tmp_path / "model.onnx"))
    assert np.array_equal(program.run({"x": X}, device="interpret")["y"], wanted)


@pytest.mark.parametrize(("made", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(tmp_path: Path, made: Callable[[Path], Path], said: str) -> None:
    with pytest.raises(genrw.GenrwError) as raised:
        genrw.load(made(tmp_path / "model.onnx"))
    (told,) = raised.value.diagnostics
    assert said in told.message
    assert "'shape'" not in told.message
