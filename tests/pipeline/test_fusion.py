"""Which kernels programs become, and why: what shares a kernel, what is stored, what is made again."""

from __future__ import annotations

import pytest
from fused import kernels_of, plan_of, stored_because
from support import check_every_stage, check_last_stage, load

from genrw.grammar.diagnostics import GenrwError


def test_a_chain_of_pointwise_operators_is_one_kernel() -> None:
    assert kernels_of(
        """
        x = @param:x -> float{64, 64}
        y = @param:y -> float{64}
        a = exp(x)
        b = add(a, y)
        c = relu(b)
        d = mul(c, x)
        @return(d)
        """
    ) == ["d"]


def test_producers_and_consumers_of_a_reduction_are_in_its_kernel() -> None:
    """Softmax of scaled, masked scores, scaled again."""
    text = """
        s = @param:s -> half{4, 32, 100}
        mask = @param:mask -> half{1, 32, 100}
        a = mul(s, 0.125)
        b = add(a, mask)
        m = reduce_max[axes={2}](b)
        d = sub(b, m)
        e = exp(d)
        z = reduce_sum[axes={2}](e)
        p = div(e, z)
        y = mul(p, 2.0)
        @return(y)
        """
    assert kernels_of(text) == ["y"]
    check_every_stage(text)


@pytest.mark.parametrize(
    "move",
    [
        "transpose[permutation={2, 0, 1}](a)",
        "pad[pads={1, 0, 2, 0, 3, 0}](a)",
        "slice[axes={0, 2}, starts={1, 0}, ends={3, 6}](a)",
        "reverse[axes={0, 1}](a)",
        "concat[axis=1](a, b, a)",
        "gather[axis=1](a, i)",
    ],
)
def test_index_maps_of_any_rank_are_in_the_kernel_of_what_reads_them(move: str) -> None:
    """A reduction reads elements that are computed and then moved; its rows are moved too, in the kernel behind it."""
    text = f"""
        x = @param:x -> float{{4, 5, 6}}
        b = @param:b -> float{{4, 5, 6}}
        i = @param:i -> int32{{3}}
        a = exp(x)
        m = {move}
        c = mul(m, 0.5)
        s = reduce_sum[axes={{2}}](c)
        y = sub(c, s)
        @return(y)
        """
    assert kernels_of(text) == ["y"]


def test_a_concatenation_of_computed_values_is_one_kernel() -> None:
    assert kernels_of(
        """
        x = @param:x -> float{8, 100}
        y = @param:y -> float{8, 60}
        a = exp(x)
        b = neg(y)
        c = concat[axis=1](a, b)
        d = relu(c)
        @return(d)
        """
    ) == ["d"]


CHEAP = """
    x = @param:x -> float{4096, 131072}
    a = add(x, 1.0)
    r = reduce_sum[axes={1}](a)
    c = reduce_sum[axes={0}](a)
    @return(r, c)
    """


def test_a_cheap_value_that_two_kernels_read_is_made_twice() -> None:
    assert kernels_of(CHEAP) == ["r", "c"]


COSTLY = """
    x = @param:x -> float{4096, 131072}
    y = @param:y -> float{4096, 131072}
    z = @param:z -> float{4096, 131072}
    w = @param:w -> float{4096, 131072}
    a = add(x, y)
    b = mul(a, z)
    d = max(b, w)
    r = reduce_sum[axes={1}](d)
    c = reduce_sum[axes={0}](d)
    @return(r, c)
    """


def test_a_costly_value_that_two_kernels_read_is_stored_by_one_of_them() -> None:
    """Four tensors to load against one: the kernel of the first sum stores what it makes anyway."""
    plan = plan_of(COSTLY)
    assert [k.outputs for k in plan.kernels] == [("d", "r"), ("c",)]
    assert [k.loads for k in plan.kernels] == [("x", "y", "z", "w"), ("d",)]
    assert stored_because(plan, "d").startswith("making it again where it is read costs ")


def test_what_reads_the_same_input_is_one_kernel_of_several_results() -> None:
    text = """
        x = @param:x -> float{64, 100}
        s = reduce_sum[axes={1}](x)
        m = reduce_max[axes={1}](x)
        e = exp(x)
        @return(s, m, e)
        """
    assert kernels_of(text) == ["s m e"]
    check_every_stage(text)


TWO_SPACES = """
    x = @param:x -> float{30, 40}
    c = reduce_sum[axes={0}](x)
    d = sub(x, c)
    e = exp(d)
    s = reduce_sum[axes={1}](e)
    y = div(e, s)
    @return(y)
    """


def test_a_reduction_whose_result_feeds_rows_of_another_kind_is_stored() -> None:
    plan = plan_of(TWO_SPACES)
    assert [k.outputs for k in plan.kernels] == [("c",), ("y",)]
    assert [k.axes for k in plan.kernels] == [(0,), (1,)]
    assert stored_because(plan, "c") == (
        "the kernel of `y` folds the rows of {30, 40} along axis 1, and `c` folds the rows of {30, 40} along axis 0"
    )
    check_every_stage(TWO_SPACES)


def test_a_residual_block_is_one_kernel_that_returns_the_sum_too() -> None:
    """The residual sum is a result, the norm of it another."""
    text = """
        x = @param:x -> half{16, 64}
        r = @param:r -> half{16, 64}
        g = @param:g -> half{64}
        h = add(x, r)
        m = reduce_mean[axes={1}](h)
        d = sub(h, m)
        q = mul(d, d)
        v = reduce_mean[axes={1}](q)
        w = add(v, 0.00001)
        i = rsqrt(w)
        n = mul(d, i)
        y = mul(n, g)
        @return(h, y)
        """
    assert kernels_of(text) == ["h y"]


def test_rows_written_in_two_ways_are_one_space() -> None:
    text = """
        x = @param:x -> float{8, 6, 10}
        f = reshape[dims={48, 10}](x)
        a = reduce_sum[axes={2}](x)
        b = reduce_max[axes={1}](f)
        @return(a, b)
        """
    assert kernels_of(text) == ["a b"]
    check_every_stage(text)


def test_equal_kernels_are_one_module_called_twice() -> None:
    text = """
        x = @param:x -> float{30, 40}
        a = reduce_sum[axes={0}](x)
        b = sub(x, a)
        c = reduce_max[axes={1}](b)
        d = sub(b, c)
        e = reduce_sum[axes={0}](d)
        f = sub(d, e)
        g = reduce_max[axes={1}](f)
        y = sub(f, g)
        @return(b, d, f, y)
        """
    (unit,) = load(text).lower("fuse").units
    assert unit.main is not None
    calls = [(call.kernel, call.operands, call.results) for call in unit.main.calls]
    assert calls == [
        ("k0", ("x",), ("b",)),
        ("k1", ("b",), ("d",)),
        ("k0", ("d",), ("f",)),
        ("k1", ("f",), ("y",)),
    ]
    check_every_stage(text)


MOVED = {
    "transposed": "t = transpose[permutation={1, 0}](s)",
    "reversed": "t = reverse[axes={0}](s)",
    "padded": "t = pad[pads={2, 0, 0, 0}](s)",
    "repeated as columns": "u = reshape[dims={1, 30}](s)\n    t = multibroadcast[out_lens={30, 30}](u)",
}


@pytest.mark.parametrize("move", MOVED)
def test_a_reduction_is_never_made_elsewhere_than_in_its_row(move: str) -> None:
    """A kernel has each row's sum in that row only: whoever takes it from another row reads it from memory."""
    text = f"""
    x = @param:x -> float{{30, 30}}
    s = reduce_sum[axes={{1}}](x)
    {MOVED[move]}
    y = exp(t)
    @return(y)
    """
    plan = plan_of(text)
    if move == "transposed":
        # Nothing moves in memory: one row of 30 is 30 rows of one.
        assert [k.outputs for k in plan.kernels] == [("y",)]
    else:
        assert [k.outputs for k in plan.kernels] == [("s",), ("y",)]
        assert stored_because(plan, "s").startswith("the kernel of `y` has no rows, and `s` folds")
    check_every_stage(text)


def test_a_row_kernel_reads_sums_of_other_rows_from_memory() -> None:
    text = """
        x = @param:x -> float{30, 40}
        s = reduce_sum[axes={1}](x)
        t = reverse[axes={0}](s)
        a = sub(x, t)
        m = reduce_max[axes={1}](a)
        y = sub(a, m)
        @return(y)
        """
    plan = plan_of(text)
    assert [k.outputs for k in plan.kernels] == [("s",), ("y",)]
    assert stored_because(plan, "s") == "`t` takes `s` elsewhere, and a kernel has it in its own row only"
    check_every_stage(text)


def test_a_main_module_reads_back() -> None:
    """Lowered stage by stage through text, a program of several kernels is what it is at once."""
    text = TWO_SPACES
    for stage in load(TWO_SPACES).stages:
        at_once = str(load(TWO_SPACES).lower(stage))
        text = str(load(text).lower(stage))
        assert text == at_once


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("(x, c)", "(x)"), "`k1` takes 2 operands, not 1"),
        (("(x, c)", "(c, x)"), "`c` is float{1, 40}, but the kernel takes float{30, 40}"),
        (("(x, c)", "(x, d)"), "`d` is not defined"),
        (("y = call", "y, z = call"), "`k1` makes 1 values, not 2"),
        (("module=k1", "module=k7"), "module `k7` is not in this file"),
        (("@return(y)\n\n@module k0", "@return(x)\n\n@module k0"), "no kernel makes `x`"),
    ],
)
def test_a_main_module_is_checked(change: tuple[str, str], message: str) -> None:
    text = str(load(TWO_SPACES).lower("fuse"))
    assert change[0] in text
    with pytest.raises(GenrwError) as caught:
        load(text.replace(*change, 1))
    assert message in caught.value.diagnostics[0].message


# ---- reductions of few rows

COLUMNS = """
    x = @param:x -> half{65536, 256}
    f = convert[target_type=float](x)
    s = reduce_sum[axes={0}](f)
    @return(s)
    """


def test_a_column_sum_is_split_over_the_grid() -> None:
    """The sum of 65536 halves in each of 256 columns: parts of 512 first, then the 128 parts."""
    plan = plan_of(COLUMNS)
    assert [(k.lens, k.axes) for k in plan.kernels] == [((128, 512, 256), (1,)), ((128, 256), (0,))]
    assert [k.loads for k in plan.kernels] == [("x",), ("reduce_sum",)]


def test_columns_that_fill_the_gpu_are_not_split() -> None:
    """The lanes of a workgroup share columns: 50257 of them are enough for all its lanes."""
    assert kernels_of(COLUMNS.replace("{65536, 256}", "{8192, 50257}")) == ["s"]


def test_the_cpu_folds_rows_whole() -> None:
    assert len(plan_of(COLUMNS, "host").kernels) == 1


@pytest.mark.parametrize(
    ("op", "dtype", "n"),
    [
        ("sum", "float", 400000),
        ("sum", "half", 400007),
        ("prod", "float", 400007),
        ("min", "int64", 200003),
        ("max", "bf16", 400000),
        ("all", "bool", 1400001),
        ("min", "uint8", 1400001),
    ],
)
def test_every_fold_of_few_long_rows_is_split(op: str, dtype: str, n: int) -> None:
    text = f"x = @param:x -> {dtype}{{2, {n}}}\ns = reduce_{op}[axes={{1}}](x)\n@return(s)\n"
    assert len(plan_of(text).kernels) == 2
    check_last_stage(text)


def test_rows_that_fill_the_gpu_are_folded_whole() -> None:
    assert kernels_of("x = @param:x -> float{8192, 4096}\ns = reduce_sum[axes={1}](x)\n@return(s)\n") == ["s"]
