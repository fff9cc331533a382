"""Small programs that random ones led to: each was refused, did not compile, or gave something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breadth import first_quick, spread
from support import check_every_stage, check_host, load

from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.grammar.diagnostics import GenrwError
from genrw.main import execute


def check(text: str, target: str, **options: Any) -> None:
    """Every stage means the same, and so does the printed kernel."""
    check_every_stage(text, target, **options)
    check_host(text, target, **options)


@pytest.mark.parametrize(
    ("lens", "target", "op"),
    spread(["{}", "{1}", "{3, 5}"], ["gfx942", "host"], ["argmax", "powers", "squares", "sum"]),
)
def test_a_fold_over_no_axes(op: str, lens: str, target: str) -> None:
    check(f"x = @param:x -> float{lens}\ny = reduce_{op}[axes={{}}](x)\n@return(y)\n", target)


@pytest.mark.parametrize("dtype", first_quick(["int8", "uint8", "int32", "uint64", "float"]))
def test_attributes_that_are_no_whole_numbers_beside_integers(dtype: str) -> None:
    """A meaning takes integers and floats together for double, in C++ as well."""
    text = (
        f"x = @param:x -> {dtype}{{9}}\ny = shrink[lambd=1.5, bias=0.5](x)\nz = shrink[lambd=-3.0](x)\n@return(y, z)\n"
    )
    check(text, "host")
    x = np.array([0, 1, 2, 3, 4, 5, 6, 7, 100], numpy_dtype(dtype))
    wanted = np.where(x > 1.5, x.astype(np.float64) - 0.5, 0).astype(x.dtype)
    assert load(text, "host").run({"x": x})["y"].tolist() == wanted.tolist()


@pytest.mark.parametrize(("lens", "target"), spread(["{4, 96}", "{3, 4096}", "{2, 5001}"], ["sm_90", "gfx942", "host"]))
def test_rows_that_nothing_is_read_for(lens: str, target: str) -> None:
    """Rows of constants and positions: there is no input whose elements registers could leave to workgroup memory."""
    text = f"c = @literal{{0.5}} -> float{lens}\ns = sin(c)\ny = hardmax[axis=1](s)\nz = softmax[axis=1](s)\n@return(y, z)\n"
    check(text, target)


@pytest.mark.parametrize(("lens", "strides"), [("{4, 1, 1, 7}", "{2, 10, 1, 20}"), ("{4, 1, 1, 7}", "{1, 1, 1, 1}")])
def test_many_elements_of_a_tensor_with_strides(lens: str, strides: str) -> None:
    """The interpreter finds each of more than 8192 elements of lanes that go in steps."""
    text = f"x = @param:x -> half{lens}, {strides}\ny = tile[repeats={{4, 3, 4, 7}}](x)\n@return(y)\n"
    check(text, "host", schedule={"vector": 1, "share": 1})


@pytest.mark.parametrize(
    ("constant", "channels", "groups"), [("2.0", 16, 8), (", ".join(str(i) for i in range(104)), 2, 2)]
)
def test_a_constant_that_is_returned_and_used_by_other_kernels(constant: str, channels: int, groups: int) -> None:
    """Each kernel makes the constant; none waits for the one that stores it."""
    text = f"""
        c = @literal{{{constant}}} -> bf16{{4, {channels}, 13}}
        n = group_norm[groups={groups}](c)
        r = reduce_max[axes={{0, 1}}](n)
        t = tanh(n)
        @return(r, n, c, t)
    """
    check(text, "gfx90a")


@pytest.mark.parametrize(
    "operation",
    [
        "prefix_scan_sum[axis=1](x)",
        "prefix_scan_prod[axis=0](x)",
        "group_norm[groups=1](x)",
        "instance_norm(x)",
        "trilu(x)",
        "onehot[depth=3](i, two)",
        "flat_index[lens={4, 5}](i)",
        "gather_elements[axis=1](x, i)",
        "gathernd(x, i)",
    ],
)
def test_results_without_elements(operation: str) -> None:
    text = f"""
        x = @param:x -> float{{4, 0, 2}}
        i = @param:i -> int32{{4, 0, 2}}
        two = @param:two -> float{{2}}
        y = {operation}
        @return(y)
    """
    check_every_stage(text)


@pytest.mark.parametrize("dtype", first_quick(["uint32", "half", "bf16", "int8"]))
def test_a_value_is_called_as_a_type_is(dtype: str) -> None:
    """Operators that are printed from their meaning take it for the value."""
    check(f"{dtype} = @param:x -> double{{3}}\nfloat = ceil({dtype})\ny = hard_swish(float)\n@return(y)\n", "host")


@pytest.mark.parametrize("dtype", first_quick(["half", "bf16", "float", "int8", "uint16", "int64"]))
def test_the_sign_of_what_is_computed(dtype: str) -> None:
    op = "gelu_erf" if dtype in ("half", "bf16", "float") else "neg"
    check(f"x = @param:x -> {dtype}{{9}}\ny = {op}(x)\nz = sign(y)\n@return(z)\n", "gfx950")


@pytest.mark.parametrize(("lens", "target"), spread(["{5}", "{3, 70}", "{2, 3000}"], ["gfx1201", "gfx942", "host"]))
def test_the_distance_of_large_elements_from_their_mean(lens: str, target: str) -> None:
    """Lanes without an element have a mean, too, whose distance's square is beyond all numbers: it counts for nothing."""
    text = f"x = @param:x -> float{lens}\ny = reduce_squares[axes={{-1}}](x)\n@return(y)\n"
    shape = load(text, target).modules[0].parameters[0].type.lens
    large = np.full(shape, 1e25, np.float32)
    for stage, lowered in load(text, target).remaining_stages():
        got = lowered.run({"x": large}, "interpret")["y"]
        assert not got.any(), stage


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
def test_inputs_that_no_value_fits(dtype: str) -> None:
    """The only index is no divisor."""
    text = f"x = @param:x -> {dtype}{{1}}\ny = gather(x, x)\nz = mod(x, x)\n@return(y, z)\n"
    program = load(text)
    with pytest.raises(GenrwError, match="no values found for the input `x`"):
        random_inputs(program.modules[0], program.library, 0)


@pytest.mark.parametrize(
    ("fold", "lens", "target"),
    spread(["max", "sum", "argmax"], ["4, 8", "3, 65", "1, 7"], ["gfx942", "sm_90", "host"]),
)
def test_a_value_of_a_row_is_stored_and_meets_elements(target: str, lens: str, fold: str) -> None:
    """The row stores one value, though lanes have it for each element, too."""
    rows, n = (int(x) for x in lens.split(", "))
    check(
        f"""
        n = @param:n -> int64{{2}}
        m = @param:m -> float{{1, {n}}}
        i = iota[lens={{{rows}}}, axis=0]
        r = reshape[dims={{1, 1, {rows}, 1}}](i)
        rb = multibroadcast[out_lens={{2, 1, {rows}, 1}}](r)
        o = sub(n, 4)
        q = reshape[dims={{2, 1, 1, 1}}](o)
        ob = multibroadcast[out_lens={{2, 1, {rows}, 1}}](q)
        p = add(rb, ob)
        c = iota[lens={{{n}}}, axis=0]
        b = less(p, c)
        f = where(b, 2.0, m)
        k = reshape[dims={{2, 1}}](n)
        d = less(c, k)
        e = where(d, 0.0, -1.0)
        g = reshape[dims={{2, 1, 1, {n}}}](e)
        h = add(f, g)
        x = reduce_{fold}[axes={{3}}](h)
        @return(p, x)
        """,
        target,
    )


def test_an_index_that_turns_within_a_lane_beside_another_one() -> None:
    """What differs by element differs in the loop over the elements, though no operand does."""
    check(
        """
        a = @param:a -> bool{3, 4, 1, 65}, {1, 1, 1, 1}
        b = @param:b -> float{3, 4, 1, 65}, {1, 65, 65, 0}
        m = reduce_min[axes={1, 3}](a)
        @return(b, m)
        """,
        "gfx942",
    )


@pytest.mark.parametrize(
    ("lens", "message"),
    [
        ("0, 3252, 0, 3252, 1680, 560, 80, 80, 16, 8, 2, 1", "the tensor is too large"),
        (", ".join(["1"] * 25), "the tensor has 25 axes"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "x = @param:x -> uint16{{1}}\ny = multibroadcast[out_lens={{{lens}}}](x)\n@return(y)\n",
        "x = @param:x -> uint16{{{lens}}}\ny = neg(x)\n@return(y)\n",
    ],
)
def test_tensors_that_no_array_can_be(lens: str, message: str, text: str) -> None:
    """Without elements, too: numpy and indices count through their axes."""
    with pytest.raises(GenrwError, match=message):
        load(text.format(lens=lens))


def test_operands_that_repeat_one_another_to_too_large_a_tensor() -> None:
    """It is told where the program says so, and not where a rule repeats the operands."""
    text = "a = @param:a -> half{1048576, 1}\nb = @param:b -> half{1, 536870912}\nc = add(a, b)\n@return(c)\n"
    with pytest.raises(GenrwError, match=r"^test\.gen:3:.*the tensor is too large"):
        load(text)


@pytest.mark.parametrize("finish", ["a * 2", "a / n + 1", "exp(a)"])
def test_the_fold_of_one_element_is_finished(finish: str, tmp_path: Path) -> None:
    rule = f"/// Tells more than it sums up.\nmonoid telling where T: real\n  identity 0\n  combine a + b\n  finish {finish}\n"
    (tmp_path / "mine.rw").write_text(rule)
    (tmp_path / "p.gen").write_text("x = @param:x -> float{4, 1}\ny = reduce_telling[axes={1}](x)\n@return(y)\n")
    assert execute(["run", str(tmp_path / "p.gen"), "--rules", str(tmp_path), "--check"]) == 0


def test_places_among_more_elements_than_there_are_numbers() -> None:
    lens = ", ".join(["512"] * 6)
    text = f"x = @param:x -> int16{{6}}\ny = flat_index[lens={{{lens}}}](x)\n@return(y)\n"
    with pytest.raises(GenrwError, match="the lengths of no tensor"):
        load(text)


def test_a_literal_of_integers_beyond_int64() -> None:
    """numpy takes a list of small and of such large integers for floats."""
    program = load("c = @literal{2, 18446744073709551590} -> uint64{2}\n@return(c)\n")
    assert program.run({}, "interpret")["c"].tolist() == [2, 18446744073709551590]


@pytest.mark.parametrize("target", ["host", "gfx942", "sm_90"])
@pytest.mark.parametrize("first", ["squares", "powers"])
@pytest.mark.parametrize("second", ["squares", "powers"])
def test_folds_of_folds_of_one_element(target: str, first: str, second: str) -> None:
    """All indices of such a kernel are 0, so nothing but its number is left of a row."""
    check(
        f"""
        x = @param:x -> float{{1, 1}}
        a = reduce_{first}[axes={{1}}](x)
        b = reduce_{second}[axes={{0}}](a)
        @return(b)
        """,
        target,
    )


def test_moves_that_go_past_one_another_do_not_outrun_what_joins_them() -> None:
    """A class with several transposes grows with each pair of these, until others are found to be the same."""
    text = (
        "x = @param:x -> half{5, 1, 2, 2}, {1, 1, 1, 5}\ny = reduce_squares[axes={0, 1, 2, 3}](x)\n"
        "z = logsoftmax[axis=1](x)\n@return(y, z)\n"
    )
    check(text, "gfx90a")


@pytest.mark.parametrize(
    ("op", "dtype", "n", "target", "pins"),
    [
        ("squares", "double", 2, "sm_90", {"algo": "subwave", "lanes": 2, "share": 2}),
        ("squares", "half", 4100, "gfx942", {"algo": "aligned"}),
        ("squares", "float", 4100, "host", {}),
        ("powers", "half", 4100, "gfx942", {"algo": "block", "block_size": 64, "share": 16}),
        ("powers", "float", 4100, "host", {}),
    ],
)
@pytest.mark.parametrize("value", ["ceil(c)", "multibroadcast[out_lens={3, N}](x)"])
def test_elements_of_a_step_that_are_one_value(
    op: str, dtype: str, n: int, target: str, pins: dict[str, Any], value: str
) -> None:
    """What all places of a row have is one value once it is known that they are there, and a step folds as many as it has."""
    text = f"c = @literal{{-1.5}} -> {dtype}{{3, {n}}}\nx = @param:x -> {dtype}{{3, 1}}\n"
    text += f"v = {value.replace('N', str(n))}\ny = reduce_{op}[axes={{1}}](v)\n@return(y)\n"
    check(text, target, schedule=pins)


_GATHERED = "g = gather[axis=0](x, k)\nv = mod(g, y)\nf = convert[target_type=half](k)\nr = add(v, f)"


@pytest.mark.parametrize(
    ("made", "n"),
    spread(
        [
            "v = mod(x, y)\nr = concat[axis=0](v, v)",
            "v = div(x, y)\nr = concat[axis=0](v, v)",
            "l = less(x, y)\nk = convert[target_type=int32](l)\n" + _GATHERED,
            "k = mod(i, 5)\n" + _GATHERED,
        ],
        [5, 1001],
    ),
)
@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_loads_come_before_branches_with_what_they_are_made_of(target: str, made: str, n: int) -> None:
    """What says where or whether a load reads may itself be a value of the loop, and be made of what has branches."""
    inputs = "".join(
        f"{name} = @param:{name} -> {dtype}{{{n}}}\n"
        for name, dtype in {"x": "half", "y": "half", "i": "int32"}.items()
    )
    check_host(f"{inputs}{made}\n@return(r)\n", target, schedule={"share": 4})
