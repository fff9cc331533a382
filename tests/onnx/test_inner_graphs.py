"""Operators that hold graphs: loops, scans and choices, with what they take from around them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import genrw
from genrw.grammar.diagnostics import GenrwError

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(4, 3)


def value(name: str, shape: Sequence[int], elements: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elements, shape)


def saved(
    folder: Path, nodes: Sequence[onnx.NodeProto], outputs: Sequence[onnx.ValueInfoProto], **constants: np.ndarray
) -> Path:
    """A model of one input `x`."""
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "test", [value("x", X.shape)], outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def agrees(path: Path, wanted: Sequence[np.ndarray] | None = None) -> None:
    """Kernels give what is wanted, or what onnx's own evaluator gives."""
    wanted = wanted or ReferenceEvaluator(str(path)).run(None, {"x": X})
    got = genrw.compile(str(path))(X)
    for one, other in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def scan(**attributes: object) -> onnx.NodeProto:
    """The sums so far of the entries, each of them scaled by a value from around the scan."""
    nodes = [
        helper.make_node("Mul", ["entry", "factor"], ["scaled"]),
        helper.make_node("Add", ["sum", "scaled"], ["next"]),
        helper.make_node("Neg", ["next"], ["shown"]),
    ]
    inputs = [value("sum", [3]), value("entry", [3])]
    body = helper.make_graph(nodes, "body", inputs, [value("next", [3]), value("shown", [3])])
    return helper.make_node("Scan", ["zeros", "x"], ["last", "all"], body=body, num_scan_inputs=1, **attributes)


ZEROS, FACTOR = np.zeros(3, np.float32), np.array(0.5, np.float32)


def test_scans_walk_over_entries(tmp_path: Path) -> None:
    agrees(saved(tmp_path, [scan()], [value("last", [3]), value("all", [4, 3])], zeros=ZEROS, factor=FACTOR))


def test_scans_walk_backwards(tmp_path: Path) -> None:
    """onnx's evaluator does not."""
    sums = np.cumsum(X[::-1] * FACTOR, 0)
    turned = scan(scan_input_directions=[1], scan_output_directions=[1], scan_output_axes=[1])
    outputs = [value("last", [3]), value("all", [3, 4])]
    agrees(saved(tmp_path, [turned], outputs, zeros=ZEROS, factor=FACTOR), [sums[-1], -sums[::-1].T])


def loop(turns: str) -> onnx.NodeProto:
    """The sum grows by the number of the turn, until it is the fourth one."""
    nodes = [
        helper.make_node("Cast", ["k"], ["as_float"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["sum", "as_float"], ["next"]),
        helper.make_node("Less", ["k", "three"], ["again"]),
        helper.make_node("Identity", ["next"], ["shown"]),
    ]
    inputs = [value("k", [], TensorProto.INT64), value("going", [], TensorProto.BOOL), value("sum", X.shape)]
    outputs = [value("again", [], TensorProto.BOOL), value("next", X.shape), value("shown", X.shape)]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    return helper.make_node("Loop", [turns, "true", "x"], ["last", "all"], body=body)


def test_loops_end_where_their_condition_does(tmp_path: Path) -> None:
    """What each turn shows is stacked along a new axis; onnx's evaluator joins it along the first one."""
    outputs = [value("last", X.shape), value("all", [4, *X.shape])]
    path = saved(tmp_path, [loop("turns")], outputs, turns=np.array(9), true=np.array(True), three=np.array(3))
    agrees(path, [X + 6, np.stack([X, X + 1, X + 3, X + 6])])


@pytest.mark.parametrize(("turns", "true"), [(0, True), (-1, True), (9, False)])
def test_loops_without_a_turn_leave_the_states_and_show_nothing(tmp_path: Path, turns: int, true: bool) -> None:
    outputs = [value("last", X.shape), value("all", [0, *X.shape])]
    path = saved(tmp_path, [loop("turns")], outputs, turns=np.array(turns), true=np.array(true), three=np.array(3))
    agrees(path, [X, np.empty((0, *X.shape), np.float32)])


def test_scans_of_nothing_leave_the_states_and_show_nothing(tmp_path: Path) -> None:
    cut = helper.make_node("Slice", ["x", "zero", "zero"], ["none"])
    walk = scan(scan_output_axes=[1])
    walk.input[1] = "none"
    zero = np.array([0])
    path = saved(
        tmp_path, [cut, walk], [value("last", [3]), value("all", [3, 0])], zeros=ZEROS + 2, factor=FACTOR, zero=zero
    )
    agrees(path, [ZEROS + 2, np.empty((3, 0), np.float32)])


@pytest.mark.parametrize(("layer", "gates", "results"), [("RNN", 1, "yh"), ("GRU", 3, "yh"), ("LSTM", 4, "yhc")])
def test_layers_of_no_steps_give_what_they_begin_with(tmp_path: Path, layer: str, gates: int, results: str) -> None:
    nodes = [
        helper.make_node("Slice", ["x", "zero", "zero"], ["none"]),
        helper.make_node("Reshape", ["none", "shape"], ["steps"], allowzero=1),
        helper.make_node(layer, ["steps", "w", "r", "", "", "h"], [*results], hidden_size=2),
    ]
    weights = {"w": np.ones((1, 2 * gates, 3), np.float32), "r": np.ones((1, 2 * gates, 2), np.float32)}
    begun = np.full((1, 5, 2), 3, np.float32)
    shapes = {"y": [0, 1, 5, 2], "h": [1, 5, 2], "c": [1, 5, 2]}
    nodes[-1].output[1] = "last"
    outputs = [value(nodes[-1].output[i], shapes[name]) for i, name in enumerate(results)]
    path = saved(tmp_path, nodes, outputs, zero=np.array([0]), shape=np.array([0, 5, 3]), h=begun, **weights)
    agrees(path, [np.empty(shapes["y"], np.float32), begun, 0 * begun][: len(results)])


def test_loops_of_unknown_length_are_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["turns"], to=TensorProto.INT64),
        loop("turns"),
    ]
    path = saved(tmp_path, nodes, [value("last", X.shape)], true=np.array(True), three=np.array(3))
    with pytest.raises(GenrwError, match="`Loop` cannot be imported: a shape depends on the value of the input `x`"):
        genrw.load(path)


def choice(condition: str) -> onnx.NodeProto:
    then = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Abs", ["x"], ["b"])],
        "then",
        [],
        [value("a", X.shape), value("b", X.shape)],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["e"]), helper.make_node("Sign", ["x"], ["f"])],
        "other",
        [],
        [value("e", X.shape), value("f", X.shape)],
    )
    return helper.make_node("If", [condition], ["y", "z"], then_branch=then, else_branch=other)


RESULTS = [value("y", X.shape), value("z", X.shape)]


@pytest.mark.parametrize("condition", [True, False])
def test_what_is_known_chooses_a_graph(tmp_path: Path, condition: bool) -> None:
    path = saved(tmp_path, [choice("c")], RESULTS, c=np.array(condition))
    agrees(path)
    operators = genrw.lower(str(path), "simplify")
    assert ("exp(" in operators, "neg(" in operators) == (condition, not condition)


def test_what_is_unknown_chooses_among_the_results(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["c"]),
        choice("c"),
    ]
    agrees(saved(tmp_path, nodes, RESULTS, zero=np.array(0, np.float32)))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (helper.make_node("Slice", ["x", "zero", "one"], ["e"]), r"of one shape, and they give \{4, 3\} and \{1, 3\}"),
        (helper.make_node("ReduceSum", ["x", "zero"], ["e"], keepdims=0), r"give \{4, 3\} and \{3\}"),
        (helper.make_node("Concat", ["x", "x"], ["e"], axis=1), r"give \{4, 3\} and \{4, 6\}"),
    ],
)
def test_branches_of_other_shapes_are_refused(tmp_path: Path, other: onnx.NodeProto, said: str) -> None:
    """Nothing is broadcast."""
    branches = [helper.make_node("Exp", ["x"], ["t"]), other]
    then, otherwise = (
        helper.make_graph(
            [node], "branch", [], [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)]
        )
        for node in branches
    )
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise),
    ]
    path = saved(tmp_path, nodes, [value("y", ["a", 3])], zero=np.array([0]), one=np.array([1]))
    with pytest.raises(GenrwError, match=f"`If` cannot be imported: .*its branches .*{said}"):
        genrw.load(path)


def test_a_condition_of_one_element_gives_results_no_axis(tmp_path: Path) -> None:
    branches = [
        helper.make_graph([helper.make_node(op, ["x"], ["r"], keepdims=0)], "branch", [], [value("r", [])])
        for op in ("ReduceMax", "ReduceMin")
    ]
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["sum"], keepdims=0),
        helper.make_node("Slice", ["sum", "zero", "one"], ["first"]),
        helper.make_node("Cast", ["first"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    path = saved(tmp_path, nodes, [value("y", [])], axes=np.array([0]), zero=np.array([0]), one=np.array([1]))
    agrees(path, [X.max()])


def test_what_is_wrong_within_is_told(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["i"])], "then", [], [value("i", [2, 5], TensorProto.INT64)]
    )
    node = helper.make_node("If", ["c"], ["i"], then_branch=body, else_branch=body)
    path = saved(tmp_path, [node], [value("i", [2, 5], TensorProto.INT64)], c=np.array(True))
    with pytest.raises(
        GenrwError, match=r"`If` cannot be imported: its `NonZero` cannot be imported: there is no `onnx\.NonZero`"
    ):
        genrw.load(path)
