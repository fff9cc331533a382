"""Models of empty batches, and operators that are given nothing: what is made in between is not empty always."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import genrw
from genrw.grammar.diagnostics import GenrwError

Lens = tuple[int, ...]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
NAN, INF = float("nan"), float("inf")


def run(
    folder: Path,
    op: str,
    attributes: Mapping[str, Any],
    inputs: Sequence[Lens | np.ndarray],
    results: Sequence[Lens],
    opset: int = 21,
) -> list[np.ndarray]:
    """The results of one operator, of ones where an input is given by its shape alone; arrays are constants."""
    values = {f"i{k}": given for k, given in enumerate(inputs)}
    node = helper.make_node(op, list(values), [f"o{k}" for k in range(len(results))], **attributes)
    given = {name: lens for name, lens in values.items() if not isinstance(lens, np.ndarray)}
    constants = [numpy_helper.from_array(a, name) for name, a in values.items() if isinstance(a, np.ndarray)]
    integer = {"i1"} if op in ("ScatterElements", "ScatterND", "MaxUnpool") else set[str]()
    graph = helper.make_graph(
        [node],
        "test",
        [
            helper.make_tensor_value_info(name, INT64 if name in integer else FLOAT, lens)
            for name, lens in given.items()
        ],
        [helper.make_tensor_value_info(f"o{k}", FLOAT, lens) for k, lens in enumerate(results)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.save(model, folder / "m.onnx")
    arrays = {name: np.ones(lens, np.int64 if name in integer else np.float32) for name, lens in given.items()}
    return list(genrw.load(folder / "m.onnx").run(arrays, device="interpret").values())


PUT = [(3, 4), np.zeros((0, 4), np.int64), (0, 4)]
CASES: dict[str, tuple[str, Mapping[str, Any], Sequence[Lens | np.ndarray], dict[Lens, float]]] = {
    "no batch to normalise": ("MeanVarianceNormalization", {}, [(0, 3, 4, 5)], {(0, 3, 4, 5): 0}),
    "the mean of nothing": ("ReduceMean", {"keepdims": 0}, [(0, 3), np.array([0])], {(3,): NAN}),
    "the mean of no places": ("GlobalAveragePool", {}, [(2, 3, 0)], {(2, 3, 1): NAN}),
    "the largest of no places": ("GlobalMaxPool", {}, [(2, 3, 0)], {(2, 3, 1): -INF}),
    "rows of nothing": ("LayerNormalization", {}, [(2, 0), (0,), (0,)], {(2, 0): 0, (2, 1): NAN}),
    "no maximum put": ("ScatterElements", {"reduction": "max"}, PUT, {(3, 4): 1}),
    "no minimum put": ("ScatterElements", {"reduction": "min"}, PUT, {(3, 4): 1}),
    "nothing put": ("ScatterElements", {}, PUT, {(3, 4): 1}),
    "no rows put": ("ScatterND", {}, [(3, 4), np.zeros((0, 1), np.int64), (0, 4)], {(3, 4): 1}),
    "empty rows put": ("ScatterND", {}, [(4, 4, 0), (2, 1), (2, 4, 0)], {(4, 4, 0): 0}),
    "no batch to resize": (
        "Resize",
        {"mode": "linear"},
        [(0, 3, 4), *[np.float32([])] * 2, np.array([0, 3, 8])],
        {(0, 3, 8): 0},
    ),
    "in proportion to nothing": (
        "Resize",
        {"axes": [0, 2], "keep_aspect_ratio_policy": "not_larger"},
        [(0, 3, 4), *[np.float32([])] * 2, np.array([0, 8])],
        {(0, 3, 8): 0},
    ),
    "all resized away": (
        "Resize",
        {"mode": "linear", "antialias": 1},
        [(1, 4), *[np.float32([])] * 2, np.array([1, 0])],
        {(1, 0): 0},
    ),
    "no places in a grid": ("GridSample", {}, [(1, 1, 3, 3), (1, 0, 2, 2)], {(1, 1, 0, 2): 0}),
    "no channels": ("MaxUnpool", {"kernel_shape": [2, 2]}, [(2, 0, 2, 2), (2, 0, 2, 2)], {(2, 0, 3, 3): 0}),
    "none chosen": ("Compress", {}, [(3, 0), np.zeros(0, np.bool_)], {(0,): 0}),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_no_fault(name: str, tmp_path: Path) -> None:
    op, attributes, inputs, wanted = CASES[name]
    for array, (lens, value) in zip(run(tmp_path, op, attributes, inputs, [*wanted]), wanted.items(), strict=True):
        np.testing.assert_array_equal(array, np.full(lens, value, np.float32))


def test_batches_of_nothing_have_no_mean(tmp_path: Path) -> None:
    """That there is none to move towards is told by the kept ones alone."""
    lens = [(0, 3, 4), (3,), (3,), (3,), (3,)]
    wanted = [(0, 3, 4), (3,), (3,)]
    y, mean, variance = run(tmp_path, "BatchNormalization", {"training_mode": 1}, lens, wanted, opset=15)
    assert y.shape == (0, 3, 4)
    assert np.isnan([mean, variance]).all()


def test_entries_between_none_are_refused(tmp_path: Path) -> None:
    inputs = [(1, 0), *[np.float32([])] * 2, np.array([1, 8])]
    with pytest.raises(GenrwError, match="operand 1 has no elements along axis 1"):
        run(tmp_path, "Resize", {"mode": "linear"}, inputs, [(1, 8)])
