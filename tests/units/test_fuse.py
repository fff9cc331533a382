"""Operators that become one kernel with what follows: counterparts of the seed's fusion tests."""

from __future__ import annotations

import pytest
from stages import assert_right, at, found, only
from support import WAVE64, check_compiles, load

PAD_ADD = """
    x = @param:x -> {8}
    pad = pad[pads={2, 2}](x) -> {12}
    y = @param:y -> {12}
    add = add(pad, y)
    @return(add)"""


def test_pad_and_pointwise() -> None:
    """The listing of the seed: one kernel of the two inputs, with nothing stored in between."""
    program = load(PAD_ADD)
    (kernel,) = program.kernels()
    assert [a.parameter for a in kernel.arguments] == ["x", "y", "z_output"]
    lowered = at("lanewise", PAD_ADD)
    add = only(lowered, "add")
    assert [o.op for o in add.operands] == ["conditional_load", "load"]
    assert add.operands[0].operands[1].op == "pad_index"
    assert len(found(lowered, "store")) == 1
    assert_right(PAD_ADD)


@pytest.mark.parametrize(
    ("inputs", "call", "index"),
    [
        ("x = @param:x -> {12}", "reverse[axes={0}](x)", "reverse_index"),
        ("x = @param:x -> {7}\ni = @param:i -> int32{12}", "gather[axis=0](x, i)", "gather_index"),
    ],
)
def test_index_transforms_and_pointwise(inputs: str, call: str, index: str) -> None:
    """One load, at the transformed index."""
    text = f"{inputs}\ny = @param:y -> {{12}}\nm = {call}\nr = mul(m, y)\n@return(r)"
    lowered = at("lanewise", text)
    transformed = only(lowered, index)
    loads = [n for n in found(lowered, "load") if transformed in n.operands]
    assert [n.operands[0].attribute("name") for n in loads] == ["x"]
    assert only(lowered, "mul").operands[0] is loads[0]
    assert_right(text)


def test_transforms_of_each_other_and_reduction() -> None:
    """To any depth, in several dimensions, into a reduction: still one kernel without memory in between."""
    text = """
        x = @param:x -> float{5, 40}
        y = @param:y -> float{5, 67}
        v = reverse[axes={1}](x)
        e = exp(v)
        p = pad[pads={0, 20, 0, 7}, value=-1](e)
        m = mul(p, y)
        s = reduce_sum[axes={1}](m)
        @return(s)"""
    lowered = at("lanewise", text)
    pad, reverse = only(lowered, "pad_index"), only(lowered, "reverse_index")
    assert reverse.operands[0] is pad
    assert len(found(lowered, "store")) == 1
    assert not found(lowered, "lds_allocate")
    assert_right(text)
    check_compiles(text, WAVE64)
