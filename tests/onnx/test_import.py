"""ONNX models: imported, run, and refused."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from commands import Command, Result
from onnx import TensorProto, helper, numpy_helper

import genrw as package
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.main import execute

FLOAT = TensorProto.FLOAT
W = np.arange(300, dtype=np.float32).reshape(3, 100) / 100


@pytest.fixture
def genrw(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: object, stdin: str = "") -> Result:
        assert not stdin
        status = execute([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return run


def value(name: str, shape: Sequence[int | str], elements: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elements, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 21,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid("own", 1)] if functions else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions)


def scaled() -> onnx.ModelProto:
    """A softmax of a scaled input of any number of rows, with a name that is none in a program."""
    nodes = [
        helper.make_node("Mul", ["x", "layer/w"], ["scaled/0"]),
        helper.make_node("Softmax", ["scaled/0"], ["y"], axis=-1),
    ]
    return model(nodes, [value("x", ["N", 3, 100])], [value("y", ["N", 3, 100])], {"layer/w": W})


@pytest.fixture
def scaled_file(tmp_path: Path) -> Path:
    path = tmp_path / "scaled.onnx"
    onnx.save(scaled(), path)
    return path


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


# ---- import and run


def test_arguments_by_position_are_the_graphs_inputs(tmp_path: Path) -> None:
    """Also where later names of the graph stand for the same values."""
    nodes = [
        helper.make_node("Identity", ["x"], ["x_again"]),
        helper.make_node("Identity", ["y"], ["y_again"]),
        helper.make_node("Identity", ["x_again"], ["x_last"]),
        helper.make_node("Sub", ["y_again", "x_last"], ["d"]),
        helper.make_node("Sub", ["d", "w"], ["e"]),
    ]
    inputs = [value("x", [100]), value("y", [100])]
    path = saved(tmp_path, model(nodes, inputs, [value("e", [100])], {"w": W[0]}))
    run = package.compile(str(path))
    assert run.inputs == ("x", "y", "w")
    x, y = np.float32(np.arange(100)), np.float32(np.ones(100))
    np.testing.assert_allclose(run(x, y), y - x - W[0])


def test_an_input_that_nothing_depends_on_has_its_place(tmp_path: Path) -> None:
    """Who gives arrays in the graph's order gives one for each input; the first constant must not take the place of a later one."""
    nodes = [helper.make_node("MatMul", ["a", "c"], ["t"]), helper.make_node("Sub", ["t", "b"], ["y"])]
    names = {name: value(name, [100, 100]) for name in ("a", "u", "b", "y")}
    made = model(nodes, [names["a"], names["u"], names["b"]], [names["y"]], {"c": np.eye(100, dtype=np.float32)})
    onnx.save(made, tmp_path / "m.onnx")
    compiled = package.compile(tmp_path / "m.onnx", target="host")
    a, u, b = (np.full((100, 100), v, np.float32) for v in (5, 7, 2))
    assert compiled.inputs[:3] == ("a", "u", "b")
    assert (compiled(a, u, b) == 3).all()
    assert (compiled(a=a, u=u, b=b) == 3).all()


def test_an_input_of_several_names_that_nothing_depends_on_is_one_parameter(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Identity", ["u"], ["u_again"]),
        helper.make_node("Shape", ["u_again"], ["lengths"]),
        helper.make_node("Expand", ["x", "lengths"], ["y"]),
    ]
    made = model(nodes, [value("u", [2, 3]), value("x", [3])], [value("y", [2, 3])])
    run = package.compile(saved(tmp_path, made), target="host")
    assert run.inputs == ("u", "x")
    assert (run(np.zeros((2, 3), np.float32), np.ones(3, np.float32)) == 1).all()


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float16])
def test_what_pads_may_be_a_constant_of_any_type(dtype: type, tmp_path: Path) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = {"p": np.array([1, 1]), "v": np.array(1, dtype)}
    ends = [value("x", [3], kind)], [value("y", [5], kind)]
    onnx.save(model([helper.make_node("Pad", ["x", "p", "v"], ["y"])], *ends, constants), tmp_path / "pad.onnx")
    padded = package.compile(tmp_path / "pad.onnx", target="host")(np.array([0, 1, 0], dtype))
    assert padded.tolist() == [1, 0, 1, 0, 1]


def test_bits_of_bf16_are_taken_where_a_shape_depends_on_them(genrw: Command, tmp_path: Path) -> None:
    bf16 = TensorProto.BFLOAT16
    nodes = [
        helper.make_node("Cast", ["n"], ["lengths"], to=TensorProto.INT64),
        helper.make_node("Expand", ["x", "lengths"], ["e"]),
        helper.make_node("Cast", ["n"], ["f"], to=FLOAT),
        helper.make_node("Add", ["e", "f"], ["y"]),
    ]
    proto = model(nodes, [value("x", [1]), value("n", [1], bf16)], [value("y", ["a"])])
    path = saved(tmp_path, proto)
    for number, stored in enumerate((np.uint16([0x40A0]), np.array([5], numpy_dtype("bf16")))):
        np.save(tmp_path / f"n{number}.npy", stored)
        result = genrw("run", path, "--input", f"n={tmp_path / f'n{number}.npy'}", "--check")
        assert (result.status, result.err) == (0, "")
        assert "float{5}" in result.out


def test_operators_whose_bodies_refer_to_attributes_that_are_left_out(genrw: Command, tmp_path: Path) -> None:
    """In the graph, in a function, and in a graph within."""
    lens = [3, 2, 2, 1]
    alone = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    graph = model([alone], [value("x", lens)], [value("y", lens)], opset=13)
    assert genrw("run", saved(tmp_path, graph), "--check").status == 0
    function = helper.make_function("own", "Norm", ["x"], ["y"], [alone], [helper.make_opsetid("", 13)])
    call = helper.make_node("Norm", ["x"], ["y"], domain="own")
    path = saved(tmp_path, model([call], [value("x", lens)], [value("y", lens)], opset=13, functions=[function]))
    assert genrw("run", path, "--check").status == 0


def attention(*inputs: str) -> onnx.NodeProto:
    return helper.make_node("Attention", inputs, ["y"])


HEADS = [1, 2, 3, 4]
MASK = np.tril(np.ones((3, 3), bool))


def attends_to_earlier(path: Path) -> None:
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(HEADS)
    weights = softmax(np.where(MASK, x @ x.swapaxes(-1, -2) / 2, -np.inf))
    np.testing.assert_allclose(package.compile(path)(x), weights @ x, rtol=1e-5)


@pytest.mark.parametrize("holder", ["initializer", "initializer that is an input", "constant"])
def test_operators_whose_bodies_depend_on_the_types_of_constants(holder: str, tmp_path: Path) -> None:
    nodes, inputs = [attention("x", "x", "x", "mask")], [value("x", HEADS)]
    if holder == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["mask"], value=numpy_helper.from_array(MASK)))
    if holder == "initializer that is an input":
        inputs.append(value("mask", [3, 3], TensorProto.BOOL))
    constants = {} if holder == "constant" else {"mask": MASK}
    proto = model(nodes, inputs, [value("y", HEADS)], constants, opset=23)
    attends_to_earlier(saved(tmp_path, proto))


def test_bodies_within_a_function_depend_on_the_inputs_that_are_there(tmp_path: Path) -> None:
    node = attention("x", "x", "x", "", "x", "x")
    function = helper.make_function("own", "Own", ["x"], ["y"], [node], [helper.make_opsetid("", 23)])
    call = helper.make_node("Own", ["x"], ["y"], domain="own")
    proto = model([call], [value("x", HEADS)], [value("y", HEADS)], opset=23, functions=[function])
    assert package.load(saved(tmp_path, proto)).results


@pytest.mark.parametrize("within", [False, True])
def test_bodies_within_a_graph_depend_on_the_types_of_constants(within: bool, tmp_path: Path) -> None:
    """The constant is that of the graph within, or of the one around it."""
    mask = [numpy_helper.from_array(MASK, "mask")]
    branch = helper.make_graph(
        [attention("x", "x", "x", "mask")], "branch", [], [value("y", HEADS)], mask if within else []
    )
    choice = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    constants = {"c": np.array(True)} | ({} if within else {"mask": MASK})
    proto = model([choice], [value("x", HEADS)], [value("z", HEADS)], constants, opset=23)
    attends_to_earlier(saved(tmp_path, proto))


def test_an_operator_whose_body_cannot_be_made_is_the_only_one_missing(genrw: Command, tmp_path: Path) -> None:
    """It depends on the type of a value that nobody knows."""
    nodes = [
        helper.make_node("Own", ["x"], ["mask"], domain="own"),
        attention("x", "x", "x", "mask"),
        helper.make_node("MeanVarianceNormalization", ["y"], ["n"]),
    ]
    proto = model(nodes, [value("x", HEADS)], [value("n", HEADS)], opset=23)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    said = refused(genrw, saved(tmp_path, proto))
    assert "the model uses 2 operators that are not supported: Attention (1), own.Own (1)" in said


def test_import_writes_a_program_and_its_constants(genrw: Command, scaled_file: Path, tmp_path: Path) -> None:
    result = genrw("import", scaled_file, "-o", tmp_path / "out", "--dim", "N=2")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines() == [str(tmp_path / "out" / name) for name in ("scaled.gen", "layer_w.npy")]
    assert (tmp_path / "out" / "scaled.gen").read_text() == (
        "x = @param:x -> float{2, 3, 100}\n"
        'layer_w = @param:layer_w = "layer_w.npy" -> float{3, 100}\n'
        "scaled_0 = mul(x, layer_w) -> float{2, 3, 100}\n"
        "y = softmax[axis=2](scaled_0) -> float{2, 3, 100}\n"
        "@return(y)\n"
    )
    assert np.array_equal(np.load(tmp_path / "out" / "layer_w.npy"), W)
    assert genrw("run", tmp_path / "out" / "scaled.gen", "--check").status == 0


def test_run_takes_a_model(genrw: Command, scaled_file: Path, tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 300, dtype=np.float32).reshape(1, 3, 100)
    np.save(tmp_path / "x.npy", x)
    arguments = ("--dim", "N=1", "--input", f"x={tmp_path / 'x.npy'}", "--save", tmp_path / "out", "--check")
    result = genrw("run", scaled_file, *arguments)
    assert (result.status, result.err) == (0, "")
    np.testing.assert_allclose(np.load(tmp_path / "out" / "y.npy"), softmax(x * W), rtol=1e-5)


def test_python_loads_a_model(scaled_file: Path) -> None:
    program = package.load(scaled_file, dims={"N": 4}, target="host")
    x = np.random.default_rng(0).normal(size=(4, 3, 100)).astype(np.float32)
    np.testing.assert_allclose(package.compile(program)(x), softmax(x * W), rtol=1e-5)


@pytest.fixture
def named_otherwise(tmp_path: Path) -> Path:
    """The difference of two inputs, of whose names one is none in a program, and the other is what stands for it."""
    inputs = [value("x/in:0", [4]), value("x_in_0", [4])]
    return saved(tmp_path, model([helper.make_node("Sub", ["x/in:0", "x_in_0"], ["y"])], inputs, [value("y", [4])]))


X, Y = np.float32([1, 2, 3, 4]), np.float32([3, 1, 1, 0])


def test_arguments_are_named_as_in_the_graph(named_otherwise: Path) -> None:
    kernel = package.compile(named_otherwise)
    assert kernel.inputs == ("x_in_0_1", "x_in_0")
    for name in ("x/in:0", "x_in_0_1"):
        np.testing.assert_array_equal(kernel(**{name: X, "x_in_0": Y}), X - Y)
        np.testing.assert_array_equal(kernel.run({name: X, "x_in_0": Y})["y"], X - Y)
        np.testing.assert_array_equal(kernel.program.run({name: X, "x_in_0": Y})["y"], X - Y)
    with pytest.raises(package.GenrwError, match="the input `x_in_0_1` is given twice"):
        kernel(X, **{"x/in:0": X, "x_in_0": Y})
    with pytest.raises(package.GenrwError, match="the input `x_in_0_1` is given twice"):
        kernel.run({"x/in:0": X, "x_in_0_1": X, "x_in_0": Y})


def test_arrays_in_files_are_named_as_in_the_graph(genrw: Command, named_otherwise: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    for name in ("x/in:0", "x_in_0_1"):
        given = ("--input", f"{name}={tmp_path / 'x.npy'}", "--input", f"x_in_0={tmp_path / 'y.npy'}")
        result = genrw("run", named_otherwise, *given, "--check")
        assert (result.status, result.err) == (0, "")
        assert "-2 1 2 4" in result.out


@pytest.mark.parametrize("name", ["inf", "nan", "true", "false", "float", "call", "@return"])
def test_values_may_be_called_as_words_of_programs_are(genrw: Command, tmp_path: Path, name: str) -> None:
    """As numbers, too, which name nothing in a program."""
    chains = {
        "input": ([name], ["m"], ["y"]),
        "value": (["x"], [name], ["y"]),
        "result": (["x"], ["m"], [name]),
        "constant": ([name], ["m"], ["y"]),
    }
    for part, (first, middle, last) in chains.items():
        nodes = [helper.make_node("Neg", first, middle), helper.make_node("Abs", middle, last)]
        constants = {name: np.float32([1, 2])} if part == "constant" else {}
        inputs = [] if constants else [value(first[0], [2])]
        path = saved(tmp_path, model(nodes, inputs, [value(last[0], [2])], constants))
        result = genrw("run", path, "--check")
        assert (result.status, result.err) == (0, ""), part
        if part == "result":
            results = package.load(path).run({first[0]: np.float32([3, -4])})
            assert [array.tolist() for array in results.values()] == [[3, 4]]


def test_a_length_below_0_is_refused_with_what_to_do(genrw: Command, tmp_path: Path) -> None:
    """Other tools write -1 for one that is open."""
    path = saved(tmp_path, model([helper.make_node("Neg", ["x"], ["y"])], [value("x", [-1])], [value("y", [-1])]))
    result = genrw("run", path)
    assert (result.status, result.out) == (2, "")
    assert "the length -1 of the input `x` is out of range" in result.err
    assert "help: " in result.err


@pytest.mark.parametrize("name", ["n:0", "n_0"])
def test_a_value_that_shapes_depend_on_is_named_as_in_the_graph(genrw: Command, tmp_path: Path, name: str) -> None:
    inputs = [value("x", [1]), value("n:0", [1], TensorProto.INT64)]
    proto = model([helper.make_node("Expand", ["x", "n:0"], ["y"])], inputs, [value("y", ["a"])])
    np.save(tmp_path / "n.npy", np.int64([5]))
    result = genrw("run", saved(tmp_path, proto), "--input", f"{name}={tmp_path / 'n.npy'}")
    assert (result.status, result.err) == (0, "")
    assert "float{5}" in result.out


def test_results_are_named_as_in_the_graph(tmp_path: Path) -> None:
    """Also where one is an input, another result, or a constant."""
    nodes = [
        helper.make_node("Identity", ["x"], ["y"]),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Identity", ["n"], ["out/m"]),
    ]
    outputs = [value(name, [2]) for name in ("y", "n", "out/m", "c")]
    path = saved(tmp_path, model(nodes, [value("x", [2])], outputs, {"c": np.float32([1, 2])}))
    results = package.load(path).run({"x": np.float32([3, 4])})
    assert {name: array.tolist() for name, array in results.items()} == {
        "y": [3, 4],
        "n": [-3, -4],
        "out_m": [-3, -4],
        "c": [1, 2],
    }


@pytest.mark.parametrize("length", [2, 300])
def test_a_constant_of_an_input_is_what_nobody_gives(genrw: Command, tmp_path: Path, length: int) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["y"])]
    inputs = [value("x", [length]), value("b", [length])]
    path = saved(tmp_path, model(nodes, inputs, [value("y", [length])], {"b": np.zeros(length, np.float32)}))
    for name, array in (("x", np.ones(length, np.float32)), ("b", np.full(length, 7, np.float32)), ("d", np.ones(3))):
        np.save(tmp_path / f"{name}.npy", array)
    x = ("--input", f"x={tmp_path / 'x.npy'}")
    assert "  1 1" in genrw("run", path, *x).out
    result = genrw("run", path, *x, "--input", f"b={tmp_path / 'b.npy'}", "--check")
    assert (result.status, result.err) == (0, "")
    assert "  8 8" in result.out
    assert f"holds double{{3}}, not float{{{length}}}" in refused(genrw, path, "--input", f"b={tmp_path / 'd.npy'}")


@pytest.mark.parametrize(
    ("mode", "pads", "want"),
    [
        ("wrap", [-1, 2], [1, 2, 3, 4, 1, 2]),
        ("wrap", [2, -1], [2, 3, 0, 1, 2, 3]),
        ("wrap", [-3, 3], [3, 4, 3, 4, 3]),
        ("wrap", [3, -3], [1, 0, 1, 0, 1]),
        ("reflect", [-2, 3], [2, 3, 4, 3, 2, 3]),
        ("reflect", [3, -2], [1, 2, 1, 0, 1, 2]),
        ("reflect", [-4, 1], [4, 4]),
        ("edge", [-2, 3], [2, 3, 4, 4, 4, 4]),
        ("edge", [2, -4], [0, 0, 0]),
    ],
)
def test_what_is_cropped_is_no_part_of_what_stands_around(
    tmp_path: Path, mode: str, pads: list[int], want: list[int]
) -> None:
    nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)]
    proto = model(nodes, [value("x", [5])], [value("y", [len(want)])], {"pads": np.int64(pads)})
    loaded = package.load(saved(tmp_path, proto))
    assert loaded.run({"x": np.arange(5, dtype=np.float32)}, "interpret")["y"].tolist() == want


@pytest.mark.parametrize("mode", ["wrap", "edge", "reflect"])
def test_nothing_stands_around_nothing(genrw: Command, tmp_path: Path, mode: str) -> None:
    nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)]
    proto = model(nodes, [value("x", [5])], [value("y", [3])], {"pads": np.int64([-5, 3])})
    assert "pads {-5, 3} leave nothing of shape {5} to stand around it" in refused(genrw, saved(tmp_path, proto))


def test_a_pad_of_another_mode_is_refused(genrw: Command, tmp_path: Path) -> None:
    nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode="mirror")]
    proto = model(nodes, [value("x", [5])], [value("y", [3])], {"pads": np.int64([-5, 3])})
    assert "mode is constant, edge, reflect or wrap, not mirror" in refused(genrw, saved(tmp_path, proto))


def test_short_constants_are_written_out(genrw: Command, tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["y"])]
    onnx.save(model(nodes, [value("x", [2])], [value("y", [2])], {"b": np.float32([1, 2])}), tmp_path / "m.onnx")
    assert genrw("import", tmp_path / "m.onnx", "-o", tmp_path).out.splitlines() == [str(tmp_path / "m.gen")]
    assert "b = @literal{1.0, 2.0} -> float{2}\n" in (tmp_path / "m.gen").read_text()


def test_shapes_are_computed(genrw: Command, tmp_path: Path) -> None:
    """A reshape to a shape that the graph computes from the input's."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["new"], axis=0),
        helper.make_node("Reshape", ["x", "new"], ["y"]),
    ]
    constants = {"first": np.int64([0]), "rest": np.int64([-1])}
    onnx.save(model(nodes, [value("x", ["N", 2, 3])], [value("y", ["N", 6])], constants), tmp_path / "m.onnx")
    assert genrw("import", tmp_path / "m.onnx", "-o", tmp_path, "--dim", "N=5").status == 0
    assert (tmp_path / "m.gen").read_text() == (
        "x = @param:x -> float{5, 2, 3}\ny = reshape[dims={5, -1}](x) -> float{5, 6}\n@return(y)\n"
    )


def test_a_value_that_shapes_depend_on_is_given(genrw: Command, tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    inputs = [value("x", [6]), value("shape", [2], TensorProto.INT64)]
    onnx.save(model(nodes, inputs, [value("y", ["a", "b"])]), tmp_path / "m.onnx")
    np.save(tmp_path / "shape.npy", np.int64([2, 3]))
    refused = genrw("run", tmp_path / "m.onnx")
    assert refused.status == 2
    assert "give it with `--input shape=FILE.npy`" in refused.err
    result = genrw("run", tmp_path / "m.onnx", "--input", f"shape={tmp_path / 'shape.npy'}", "--check")
    assert (result.status, result.err) == (0, "")
    assert "float{2, 3}" in result.out


def test_equal_operations_are_one(genrw: Command, tmp_path: Path) -> None:
    nodes = [helper.make_node("Exp", ["x"], [name]) for name in "ab"] + [helper.make_node("Add", ["a", "b"], ["y"])]
    onnx.save(model(nodes, [value("x", [2])], [value("y", [2])]), tmp_path / "m.onnx")
    genrw("import", tmp_path / "m.onnx", "-o", tmp_path)
    assert (tmp_path / "m.gen").read_text().count("exp(") == 1


def test_what_no_result_needs_is_left_out(genrw: Command, tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["unused"]), helper.make_node("Exp", ["x"], ["y"])]
    inputs = [value("x", [1, 1, 4]), value("w", [1, 1, 2])]
    onnx.save(model(nodes, inputs, [value("y", [1, 1, 4])]), tmp_path / "m.onnx")
    assert genrw("run", tmp_path / "m.onnx", "--check").status == 0
    np.save(tmp_path / "w.npy", np.ones((1, 1, 2), np.float32))
    result = genrw("run", tmp_path / "m.onnx", "--input", f"w={tmp_path / 'w.npy'}")
    assert (result.status, result.err) == (0, "")


def test_functions_are_expanded(genrw: Command, tmp_path: Path) -> None:
    """A function of the model, and an operator that ONNX defines by others."""
    twice = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    nodes = [
        helper.make_node("Twice", ["x"], ["t"], domain="own"),
        helper.make_node("MeanVarianceNormalization", ["t"], ["y"], axes=[0, 1]),
    ]
    onnx.save(model(nodes, [value("x", [4, 8])], [value("y", [4, 8])], functions=[twice]), tmp_path / "m.onnx")
    assert genrw("import", tmp_path / "m.onnx", "-o", tmp_path).status == 0
    text = (tmp_path / "m.gen").read_text()
    assert "add(x, x)" in text
    assert "reduce_mean[axes={0, 1}]" in text


def test_a_call_with_more_inputs_than_its_function_has(genrw: Command, tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["a"], ["b"])
    function = helper.make_function("own", "Own", ["a"], ["b"], [node], [helper.make_opsetid("", 21)])
    call = helper.make_node("Own", ["x", "x"], ["y"], domain="own")
    path = saved(tmp_path, model([call], [value("x", [4])], [value("y", [4])], functions=[function]))
    said = refused(genrw, path)
    assert "error: the model's functions do not fit their calls: Number of actual parameters" in said
    assert "  help: give functions as many inputs as they have" in said


def test_an_attribute_of_a_function_outside_of_one(genrw: Command, tmp_path: Path) -> None:
    node = helper.make_node("LeakyRelu", ["x"], ["y"])
    node.attribute.add(name="alpha", ref_attr_name="a", type=onnx.AttributeProto.FLOAT)
    path = saved(tmp_path, model([node], [value("x", [4])], [value("y", [4])]))
    said = refused(genrw, path)
    assert "`LeakyRelu` cannot be imported: its attribute `alpha` is one of a function" in said


def test_a_declaration_of_ones_own(genrw: Command, tmp_path: Path) -> None:
    onnx.save(
        model([helper.make_node("Det", ["x"], ["y"])], [value("x", [2, 2])], [value("y", [])]), tmp_path / "m.onnx"
    )
    assert genrw("run", tmp_path / "m.onnx").status == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "det.rw").write_text(
        "dialect onnx\n\nlet at(i, j) = [i, j]\n\n"
        "import Det(x) when x.lens == [2, 2]\n"
        "  => sub(mul(At[i=0, j=0](x), At[i=1, j=1](x)), mul(At[i=0, j=1](x), At[i=1, j=0](x)))\n\n"
        "import At[i: int, j: int](x) => reshape[dims=[]](slice[axes=[0, 1], starts=at(i, j), ends=at(i + 1, j + 1)](x))\n"
    )
    np.save(tmp_path / "x.npy", np.float32([[1, 2], [3, 4]]))
    result = genrw("run", tmp_path / "m.onnx", "--rules", tmp_path / "mine", "--input", f"x={tmp_path / 'x.npy'}")
    assert (result.status, result.err) == (0, "")
    assert "-2" in result.out


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        ("import A(x) => expp(x)", "unknown operator `expp`"),
        ("import A(x) => exp[base=2](x)", "`exp` has no attribute `base`"),
        ("import A(x) => exp(y)", "`y` is no input"),
        ("import A(x) => leaky_relu[alpha](x)", "unknown name `alpha`"),
        ("import A(x) when n > 1 => exp(x)", "unknown name `n`"),
        ('import A(x) requires n > 1 "n" => exp(x)', "unknown name `n`"),
        ('import A(x) requires x.rank > 1 "{y.rank}" => exp(x)', "the message names `y.rank`, which is nothing here"),
        ("import A(x) exp(x)", "expected"),
    ],
)
def test_bad_declarations(genrw: Command, tmp_path: Path, scaled_file: Path, declaration: str, said: str) -> None:
    (tmp_path / "a.rw").write_text(f"dialect onnx\n\n{declaration}")
    result = genrw("run", scaled_file, "--dim", "N=1", "--rules", tmp_path)
    assert result.status == 2
    assert said in result.err


# ---- refused


def refused(genrw: Command, path: Path, *arguments: object) -> str:
    """What is said of a model that cannot be run: a diagnostic, and never a traceback."""
    result = genrw("run", path, *arguments)
    assert result.status == 2
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err
    assert "genrw failed" not in result.err
    return result.err


def saved(tmp_path: Path, proto: onnx.ModelProto) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_missing_operators_are_counted(genrw: Command, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Unique", ["x"], ["a"]),
        helper.make_node("NonZero", ["a"], ["b"]),
        helper.make_node("NonZero", ["b"], ["y"]),
    ]
    path = saved(tmp_path, model(nodes, [value("x", [4, 4])], [value("y", [2, "n"], TensorProto.INT64)]))
    said = refused(genrw, path)
    assert "the model uses 2 operators that are not supported: NonZero (2), Unique (1)" in said


def test_a_form_that_is_not_supported(genrw: Command, tmp_path: Path) -> None:
    """Dropping elements at random."""
    nodes = [helper.make_node("Dropout", ["x", "ratio", "training"], ["y"], name="the drop")]
    constants = {"ratio": np.float32(0.5), "training": np.bool_(True)}
    path = saved(tmp_path, model(nodes, [value("x", [4])], [value("y", [4])], constants))
    assert "`Dropout` (node `the drop`) cannot be imported: this form is not supported" in refused(genrw, path)


def test_a_value_that_is_needed_now_is_asked_for_by_name(genrw: Command, tmp_path: Path) -> None:
    inputs = [value("x", [1, 3, 1]), value("axes", [1], TensorProto.INT64)]
    proto = model([helper.make_node("Squeeze", ["x", "axes"], ["y"])], inputs, [value("y", ["a", "b"])])
    path = saved(tmp_path, proto)
    assert "`Squeeze` cannot be imported: a shape depends on the value of the input `axes`" in refused(genrw, path)
    assert "`--input axes=FILE.npy`" in refused(genrw, path)
    np.save(tmp_path / "axes.npy", np.int32([0]))
    said = refused(genrw, path, "--input", f"axes={tmp_path / 'axes.npy'}")
    assert "the array given for the input `axes` holds int32{1}, not int64{1}" in said
    np.save(tmp_path / "axes.npy", np.int64([0]))
    assert genrw("run", path, "--input", f"axes={tmp_path / 'axes.npy'}", "--check").status == 0


def test_a_truncated_file(genrw: Command, tmp_path: Path, scaled_file: Path) -> None:
    data = scaled_file.read_bytes()
    path = tmp_path / "cut.onnx"
    for length in (0, 1, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        refused(genrw, path, "--dim", "N=1")


def test_a_damaged_file(genrw: Command, tmp_path: Path, scaled_file: Path) -> None:
    """Any byte may be another: a diagnostic, or a program."""
    data = scaled_file.read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.onnx"
    for at in rng.integers(0, len(data) - W.nbytes, 25):
        damaged = bytearray(data)
        damaged[at] = rng.integers(0, 256)
        path.write_bytes(bytes(damaged))
        result = genrw("import", path, "-o", tmp_path / "out", "--dim", "N=1")
        assert result.status in (0, 2)
        assert "Traceback" not in result.err
        assert "genrw failed" not in result.err, result.err


def test_no_file(genrw: Command, tmp_path: Path) -> None:
    assert "No such file" in refused(genrw, tmp_path / "none.onnx")


def test_an_unbound_dimension(genrw: Command, scaled_file: Path) -> None:
    said = refused(genrw, scaled_file)
    assert "the length `N` of the input `x` is not known" in said
    assert "--dim N=8" in said


@pytest.mark.parametrize("dim", ["N", "N=", "N=-1", "=3", "N=x", f"N={2**60}"])
def test_bad_dimensions(genrw: Command, scaled_file: Path, dim: str) -> None:
    assert "gives no dimension a length" in refused(genrw, scaled_file, "--dim", dim)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--dim", "N=1", "--dim", "Q=4"],
            ["the model has no symbolic dimension `Q`", "its symbolic dimensions are N"],
        ),
        (["--dim", "N=1", "--dim", "N=2"], ["the dimension `N` is given twice"]),
        (["--dim", "N=1", "--input", "x.npy"], ["the input 'x.npy' names no file", "write `--input name=file.npy`"]),
        (["--dim", "N=1", "--input", "x="], ["the input 'x=' names no file"]),
        (["--dim", "N=1", "--input", "q=X"], ["the model has no input `q`", "its inputs are x"]),
        (["--dim", "N=1", "--input", "x=X", "--input", "x=X"], ["the input `x` is given twice"]),
    ],
)
def test_what_is_given_by_no_name_of_the_model(
    genrw: Command, scaled_file: Path, tmp_path: Path, arguments: list[str], said: list[str]
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 100), np.float32))
    given = [argument.replace("X", str(tmp_path / "x.npy")) for argument in arguments]
    for command in (["run", scaled_file], ["import", scaled_file, "-o", tmp_path / "out"]):
        result = genrw(*command, *given)
        assert result.status == 2
        assert all(text in result.err for text in said)


def test_a_dimension_of_a_model_without(genrw: Command, tmp_path: Path) -> None:
    path = saved(tmp_path, model([helper.make_node("Exp", ["x"], ["y"])], [value("x", [4])], [value("y", [4])]))
    said = refused(genrw, path, "--dim", "N=4")
    assert "the model has no symbolic dimension `N`" in said
    assert "it has none" in said


@pytest.mark.parametrize("elements", [TensorProto.STRING, TensorProto.FLOAT8E4M3FN, TensorProto.INT4])
def test_elements_that_there_are_none_of(genrw: Command, tmp_path: Path, elements: int) -> None:
    path = saved(
        tmp_path,
        model([helper.make_node("Identity", ["x"], ["y"])], [value("x", [4], elements)], [value("y", [4], elements)]),
    )
    assert f"elements of type {TensorProto.DataType.Name(elements)} are not supported" in refused(genrw, path)


def test_a_sequence(genrw: Command, tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info("x", FLOAT, [4])
    path = saved(
        tmp_path,
        model(
            [helper.make_node("Identity", ["x"], ["y"])],
            [sequence],
            [helper.make_tensor_sequence_value_info("y", FLOAT, [4])],
        ),
    )
    assert "the input `x` is of type sequence, not a tensor" in refused(genrw, path)


def test_wrong_types(genrw: Command, tmp_path: Path) -> None:
    inputs = [value("x", [4]), value("i", [4], TensorProto.INT32)]
    path = saved(tmp_path, model([helper.make_node("Add", ["x", "i"], ["y"])], inputs, [value("y", [4])]))
    said = refused(genrw, path)
    assert "is no valid ONNX model: (op_type:Add): B has inconsistent type tensor(int32)" in said


@pytest.mark.parametrize(
    "output",
    [helper.make_tensor_value_info("y", FLOAT, None), onnx.ValueInfoProto(name="y")],
    ids=["shape", "type"],
)
def test_an_output_that_does_not_say_what_it_is(genrw: Command, tmp_path: Path, output: onnx.ValueInfoProto) -> None:
    """Exporters write such; the nodes say what it is."""
    path = saved(tmp_path, model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [2, 3])], [output]))
    assert "float{2, 3}" in genrw("run", path, "--check").out


@pytest.mark.parametrize("location", ["w.bin", "../w.bin", "/etc/passwd"])
def test_external_data_that_is_not_there_or_outside(genrw: Command, tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    proto = scaled()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    assert "its external data cannot be read" in refused(genrw, saved(folder, proto), "--dim", "N=1")


def test_external_data(genrw: Command, tmp_path: Path) -> None:
    onnx.save(scaled(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (tmp_path / "w.bin").is_file()
    assert genrw("run", tmp_path / "m.onnx", "--dim", "N=1", "--check").status == 0


@pytest.mark.parametrize("lens", [[2**40, 2**40], [2**47, 4], [2**62]])
def test_absurd_shapes(genrw: Command, tmp_path: Path, lens: list[int]) -> None:
    refused(
        genrw, saved(tmp_path, model([helper.make_node("Exp", ["x"], ["y"])], [value("x", lens)], [value("y", lens)]))
    )


@pytest.mark.parametrize("lens", [[2**40, 2**40], [-1]])
def test_absurd_shapes_that_are_computed(genrw: Command, tmp_path: Path, lens: list[int]) -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Expand", ["x", "s"], ["e"])]
    nodes += [helper.make_node("Add", ["c", "e"], ["z"]), helper.make_node("ReduceSum", ["z"], ["y"])]
    constants = {"s": np.int64(lens)}
    refused(genrw, saved(tmp_path, model(nodes, [value("x", [1])], [value("y", ["a"] * len(lens))], constants)))


def test_without_the_package(genrw: Command, scaled_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'genrw[onnx]'" in refused(genrw, scaled_file)


def test_a_model_that_gives_nothing(genrw: Command, tmp_path: Path) -> None:
    path = saved(tmp_path, model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4])], []))
    assert f"{path} has no outputs" in refused(genrw, path)
