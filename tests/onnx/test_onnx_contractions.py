"""ONNX's products, convolutions and pools in forms of which it has no tests: against its own evaluator, and against
onnxruntime where that is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from support import shipped

from genrw.engine.lowering.options import Options
from genrw.grammar.diagnostics import GenrwError
from genrw.onnx.program import import_model

X, W = (2, 4, 9, 8), (6, 4, 3, 3)

FORMS: dict[str, tuple[str, dict[str, Any], list[tuple[int, ...]], int]] = {
    "conv": ("Conv", {"pads": [1, 0, 2, 1], "strides": [2, 3], "dilations": [2, 1]}, [X, W, (6,)], 1),
    "conv in groups": ("Conv", {"group": 2, "kernel_shape": [3, 3]}, [X, (6, 2, 3, 3)], 1),
    "conv same upper": ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [X, W], 1),
    "conv same lower": ("Conv", {"auto_pad": "SAME_LOWER", "strides": [3, 1]}, [X, (6, 4, 2, 3)], 1),
    "conv of rows": ("Conv", {"auto_pad": "VALID"}, [(2, 4, 17), (3, 4, 5)], 1),
    "conv of volumes": ("Conv", {"strides": [1, 2, 1]}, [(1, 2, 5, 6, 4), (3, 2, 2, 3, 2)], 1),
    "transposed": (
        "ConvTranspose",
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
        [X, (4, 3, 3, 3), (3,)],
        1,
    ),
    "transposed, dilated": ("ConvTranspose", {"strides": [2, 1], "dilations": [2, 3]}, [X, (4, 3, 3, 2)], 1),
    "gemm": ("Gemm", {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}, [(7, 5), (6, 7), (6,)], 1),
    "matmul of a row": ("MatMul", {}, [(7,), (2, 7, 5)], 1),
    "matmul of a column": ("MatMul", {}, [(3, 2, 7), (7,)], 1),
    "matmul of batches": ("MatMul", {}, [(3, 1, 2, 7), (4, 7, 5)], 1),
    "max": ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "dilations": [1, 2]}, [X], 1),
    "max with places": ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}, [X], 2),
    "average": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, [X], 1),
    "norms": ("LpPool", {"kernel_shape": [2, 3], "p": 3, "strides": [1, 2]}, [X], 1),
}


def model(operator: str, attributes: dict[str, Any], shapes: list[tuple[int, ...]], results: int) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(shapes))]
    types = [onnx.TensorProto.FLOAT, onnx.TensorProto.INT64][:results]
    inputs = [helper.make_tensor_value_info(n, types[0], s) for n, s in zip(names, shapes, strict=True)]
    outputs = [helper.make_tensor_value_info(f"y{i}", dtype, None) for i, dtype in enumerate(types)]
    node = helper.make_node(operator, names, [o.name for o in outputs], **attributes)
    graph = helper.make_graph([node], "test", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("name", FORMS)
def test_results_are_those_of_other_evaluators(name: str) -> None:
    operator, attributes, shapes, results = FORMS[name]
    made = model(operator, attributes, shapes, results)
    rng = np.random.default_rng(0)
    inputs = {f"x{i}": rng.integers(-9, 10, shape).astype(np.float32) for i, shape in enumerate(shapes)}
    imported = import_model(made, shipped(), {}, inputs, "host")
    program = imported.program("test.onnx", shipped(), Options(target="host"), "host")
    got = list(program.run(inputs, "interpret").values())
    for wanted in evaluated(made, inputs):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5)


def evaluated(made: onnx.ModelProto, inputs: dict[str, Any]) -> list[list[Any]]:
    """What other evaluators make of a model."""
    found = [ReferenceEvaluator(made).run(None, inputs)]
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        found.append(session.run(None, inputs))
    return found


def test_a_global_norm() -> None:
    """ONNX's evaluator does not know it."""
    x = np.random.default_rng(0).integers(-9, 10, X).astype(np.float32)
    imported = import_model(model("GlobalLpPool", {"p": 3}, [X], 1), shipped(), {}, {"x0": x}, "host")
    (got,) = (
        imported.program("test.onnx", shipped(), Options(target="host"), "host").run({"x0": x}, "interpret").values()
    )
    wanted = (np.abs(x.astype(np.float64)) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_a_window_larger_than_what_it_lies_over(operator: str) -> None:
    """The last window may reach beyond the elements where lengths are rounded up; of norms and means ONNX's own
    evaluator makes no numbers then."""
    x = np.float32([[[5, -2], [3, 1]]])
    attributes = {"kernel_shape": [3], "strides": [3], "ceil_mode": 1}
    made = model(operator, attributes, [x.shape], 1)
    program = import_model(made, shipped(), {}, {"x0": x}, "host").program(
        "test.onnx", shipped(), Options(target="host"), "host"
    )
    wanted = {"MaxPool": x.max(-1), "AveragePool": x.mean(-1), "LpPool": np.sqrt((x * x).sum(-1))}[operator]
    for device in ("interpret", "host"):
        (got,) = program.run({"x0": x}, device).values()
        np.testing.assert_allclose(got, wanted[..., None], rtol=1e-5)


def test_the_largest_of_nothing_stands_nowhere() -> None:
    """Windows that hold pads alone have a lowest value, and no place of it; with dilations wider pads leave some elements."""
    attributes: dict[str, Any] = {"kernel_shape": [2], "pads": [2, 2]}
    with pytest.raises(GenrwError, match=r"pads \{2, 2\} make windows without elements"):
        import_model(model("MaxPool", attributes, [(1, 1, 4)], 2), shipped(), {}, {}, "host")
    import_model(model("MaxPool", attributes | {"dilations": [3]}, [(1, 1, 4)], 2), shipped(), {}, {}, "host")
    x = np.float32([[[1, 2, 3, 4]]])
    lone = import_model(model("MaxPool", attributes, [x.shape], 1), shipped(), {}, {}, "host")
    (got,) = lone.program("test.onnx", shipped(), Options(target="host"), "host").run({"x0": x}, "host").values()
    assert got.tolist() == [[[-np.inf, 1, 2, 3, 4, 4, -np.inf]]]


def test_no_window_is_refused() -> None:
    made = model("MaxPool", {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}, [(1, 1, 1)], 1)
    with pytest.raises(GenrwError, match="are larger than"):
        import_model(made, shipped(), {}, {}, "host")


IMPOSSIBLE: dict[str, tuple[str, dict[str, Any], list[tuple[int, ...]], str]] = {
    "pads of more than there is": ("ConvTranspose", {"pads": [1, 0, 2, 2]}, [(2, 1, 5, 1), (1, 1, 3, 1)], "pad less"),
    "pads of another number": ("ConvTranspose", {"pads": [1, 1, 1]}, [X, (4, 3, 3, 3)], "one before and one after"),
    "pads of no name": ("Conv", {"auto_pad": "SAME"}, [X, W], "auto_pad is .*, not SAME"),
    "turned, and pads of no name": ("ConvTranspose", {"auto_pad": "SAME"}, [X, (4, 3, 3, 3)], "not SAME"),
    "too few strides": ("Conv", {"strides": [2]}, [X, W], r"stride \{2\} and dilation \{1, 1\} are not one number"),
    "too few dilations": ("Conv", {"dilations": [2]}, [X, W], r"dilation \{2\} are not one number above 0 for each"),
    "too few pads": ("Conv", {"pads": [1, 1]}, [X, W], r"pads \{1, 1\} are not one before and one after"),
    "too few strides to pad by": ("Conv", {"strides": [2], "auto_pad": "SAME_UPPER"}, [X, W], r"stride \{2\}"),
    "strides of nothing": ("Conv", {"strides": [0, 1], "auto_pad": "SAME_LOWER"}, [X, W], r"stride \{0, 1\}"),
    "another kernel": ("Conv", {"kernel_shape": [2, 2]}, [X, W], r"kernel_shape \{2, 2\} is not what weights of shape"),
    "turned, another kernel": ("ConvTranspose", {"kernel_shape": [2, 2]}, [X, (4, 3, 3, 3)], "is not what weights"),
    "turned, too few strides": (
        "ConvTranspose",
        {"strides": [2], "output_shape": [9, 8]},
        [X, (4, 3, 3, 3)],
        r"strides \{2\} and dilations \{1, 1\} are not one number above 0",
    ),
    "turned, too few lengths": (
        "ConvTranspose",
        {"output_shape": [9]},
        [X, (4, 3, 3, 3)],
        r"output_shape \{9\} is not",
    ),
    "pools of another rank": ("MaxPool", {"kernel_shape": [3]}, [X], r"kernel_shape \{3\} is not one length for each"),
    "pools with too few pads": ("AveragePool", {"kernel_shape": [3, 2], "pads": [1, 1]}, [X], r"pads \{1, 1\} are not"),
    "pools with too few strides": ("LpPool", {"kernel_shape": [3, 2], "strides": [1]}, [X], r"stride \{1\} and"),
    "pools with pads of no name": ("MaxPool", {"kernel_shape": [3, 2], "auto_pad": "SAME"}, [X], "not SAME"),
    "a letter that no operand has": ("Einsum", {"equation": "ij,jk->iq"}, [(2, 3), (3, 4)], "no operand has"),
    "a letter twice": ("Einsum", {"equation": "ij->jji"}, [(2, 3)], "or one twice"),
    "two arrows": ("Einsum", {"equation": "ij,jk->i->k"}, [(2, 3), (3, 4)], "not supported"),
    "too few operands": ("Einsum", {"equation": "ij,jk->ik"}, [(2, 3)], "does not name each axis"),
    "too many operands": ("Einsum", {"equation": "ij"}, [(2, 3), (3, 4)], "does not name each axis"),
    "an axis without a letter": ("Einsum", {"equation": "ij,jk->ik"}, [(2, 3, 3), (3, 4)], "does not name each axis"),
    "a diagonal of no square": ("Einsum", {"equation": "ii->i"}, [(2, 3)], "has no diagonal along axes 0 and 1"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_does_not_fit_together_is_refused(name: str) -> None:
    operator, attributes, shapes, said = IMPOSSIBLE[name]
    with pytest.raises(GenrwError, match=said):
        import_model(model(operator, attributes, shapes, 1), shipped(), {}, {}, "host")
