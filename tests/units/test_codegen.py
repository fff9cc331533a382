"""The C++ that programs are printed as: counterparts of the seed's codegen tests."""

from __future__ import annotations

import pytest
from stages import assert_right, body
from support import load

ONE_LANE = {"algo": "flat", "vector": 1, "share": 1}


def test_pointwise_kernel() -> None:
    """Each value has a name, those of the program theirs."""
    text = "x = @param:x -> {256}\ny = @param:y -> {256}\ns = add(x, y)\nr = mul(s, s)\n@return(r)"
    assert body(load(text, schedule=ONE_LANE)) == [
        "const float x_in = x[gen::global_id<256>()];",
        "const float y_in = y[gen::global_id<256>()];",
        "const float s = x_in + y_in;",
        "const float r = s * s;",
        "z_output[gen::global_id<256>()] = r;",
    ]
    assert_right(text, schedule=ONE_LANE)


def test_reduction_kernel() -> None:
    """A fold is a struct of its monoid; the memory of waves is declared where it is used."""
    text = "x = @param:x -> {256}\nreduce_sum[axes={0}](x) -> {1}\n@return(reduce_sum)"
    program = load(text, policy="classic")
    assert body(program) == [
        "const float x_in = x[gen::local_id()];",
        "const float wave_sum = gen::dpp_reduce<sum_float, 64>(x_in);",
        "GEN_LDS(float, lds, 4);",
        "const float block_sum = gen::reduce_waves<sum_float, 4, false>(wave_sum, lds);",
        "if (gen::local_id() == 0) z_output[0] = block_sum;",
    ]
    assert "struct sum_float {" in program.kernels()[0].text
    assert_right(text, policy="classic")


def test_index_transform_kernel() -> None:
    """A pad is a comparison: memory is touched where the element exists."""
    text = "x = @param:x -> {8}\np = pad[pads={2, 2}](x)\nr = relu(p)\n@return(r)"
    lines = body(load(text, schedule=ONE_LANE))
    assert any("gen::global_id<256>() >= 2 & gen::global_id<256>() < 10" in line for line in lines)
    assert any("x[gen::global_id<256>() - 2]" in line and ": 0.0f" in line for line in lines)
    assert_right(text, schedule=ONE_LANE)


@pytest.mark.parametrize(("length", "far"), [(1 << 30, False), ((1 << 30) + 4, True)])
def test_indices_into_long_arrays(length: int, far: bool) -> None:
    """An array whose bytes 32 bits do not count takes indices of 64 bits, one that it is shorter than takes its own."""
    text = f"x = @param:x -> {{{length}}}\nb = @param:b -> {{1}}\ny = add(x, b)\n@return(y)"
    lines = "\n".join(body(load(text)))
    assert ("(x, gen::far(base)" in lines, "(z_output, gen::far(base)" in lines) == (far, far)
    assert "b[gen::far" not in lines


def test_rows_of_long_arrays() -> None:
    """What lies between rows counts as well."""
    text = "x = @param:x -> {2, 4}, {1100000000, 1}\ny = relu(x)\n@return(y)"
    assert any("gen::far(" in line and "x" in line for line in body(load(text, schedule=ONE_LANE)))


WIDE = {
    "a product of what 32 bits hold": (
        "x = @param:x -> int8{3, 4}, {1073741824, 1}\ny = relu(x)\n@return(y)",
        ONE_LANE,
        "gen::far(gen::global_id<256>() / 4) * 1073741824",
    ),
    "rows of a long tensor": (
        "x = @param:x -> {12000000, 1000}\ny = reduce_sum[axes={1}](x)\n@return(y)",
        {"algo": "block"},
        "gen::far(gen::workgroup_id()) * 1000",
    ),
    "more lanes than 32 bits count": (
        "x = @param:x -> int8{3000000000}\ny = relu(x)\n@return(y)",
        ONE_LANE,
        "gen::far(gen::global_id<256, long long>())",
    ),
    "places in a share": (
        "x = @param:x -> int8{8, 4}, {536870912, 1}\ni = @param:i -> int64{1}\ny = gather[axis=1](x, i)\n@return(y)",
        {"algo": "flat", "vector": 1, "share": 4},
        "gen::far(",
    ),
}


@pytest.mark.parametrize("about", WIDE)
def test_indices_are_computed_in_as_many_bits_as_they_take(about: str) -> None:
    """What 32 bits do not hold comes of operands that they do hold, and C++ would compute it in those."""
    text, schedule, printed = WIDE[about]
    assert printed in "\n".join(body(load(text, schedule=schedule)))


def test_kernel_signature() -> None:
    """Inputs are read only, outputs follow them; the launch covers all elements with whole workgroups."""
    text = "a = @param:a -> half{1000}\nb = @param:b -> int32{1000}\nc = less(a, 0.5)\nd = neg(b)\n@return(c, d)"
    (kernel,) = load(text, schedule=ONE_LANE).kernels()
    assert (kernel.block, kernel.groups) == (256, 4)
    assert (
        "GEN_KERNEL(256)\n"
        "test(const gen::half* __restrict__ a,\n"
        "     const int* __restrict__ b,\n"
        "     bool* __restrict__ z_output,\n"
        "     int* __restrict__ z_output1)\n"
    ) in kernel.text
    assert [(a.parameter, a.written) for a in kernel.arguments] == [
        ("a", False),
        ("b", False),
        ("z_output", True),
        ("z_output1", True),
    ]
    assert_right(text, schedule=ONE_LANE)
