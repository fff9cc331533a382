"""Folds of few elements, written out where their results lie in another order, or where one kernel then does what two did."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from alternatives_taken import take_only
from support import check_host, listed, load

TEXT = """
x = @param:x -> {dtype}{{{lens}}}
m = {fold}(x)
e = exp(m)
y = transpose[permutation={{2, 1, 0}}](e)
@return(y)
"""


def folded(dtype: str, op: str, count: int, axis: int) -> str:
    lens = [33, 5, 40]
    lens[axis] = count
    fold = f"{op}[axis={axis}]" if op.startswith("arg") else f"reduce_{op}[axes={{{axis}}}]"
    text = TEXT.format(dtype=dtype, fold=fold, lens=", ".join(map(str, lens)))
    return text if dtype in ("float", "half") and not op.startswith("arg") else text.replace("exp(m)", "abs(m)")


def is_written_out(text: str) -> bool:
    modules = load(text, "sm_90").lower("fuse").modules
    return not any(node.op.startswith(("reduce", "written")) for module in modules for node in module.nodes)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("op", "count"), [*product(("sum", "prod", "max", "min", "mean", "argmax", "argmin"), (2, 3, 7, 8))]
)
def test_folds_that_are_written_out_are_right(op: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, "write_out", "write_out_finished")
    for dtype, axis in (("half", 0), ("float", 1), ("int32", 2), ("uint8", 1)):
        text = folded(dtype, op, count, axis)
        assert is_written_out(text)
        check_host(text, "sm_90")


@pytest.mark.parametrize("op", ["max", "sum", "mean"])
def test_folds_along_several_axes_are_written_out_in_their_order(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, "write_out", "write_out_finished")
    text = f"x = @param:x -> float{{2, 33, 4, 7}}\nm = reduce_{op}[axes={{0, 2}}](x)\ny = neg(m)\n@return(y)\n"
    assert is_written_out(text)
    check_host(text, "sm_90")


@pytest.mark.parametrize(("dtype", "op", "count"), [("float", "argmax", 9), ("float", "max", 9), ("bool", "max", 2)])
def test_others_stay_folds(dtype: str, op: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, "write_out", "write_out_finished")
    text = f"x = @param:x -> {dtype}{{33, {count}, 40}}\nm = reduce_{op}[axes={{1}}](x)\n@return(m)\n"
    assert not is_written_out(text.replace("reduce_argmax[axes={1}]", "argmax[axis=1]"))


NESTED = [
    ("half{8, 8, 8}", "reduce_sum[axes={1}]", "argmin[axis=0]"),
    ("int8{8, 5, 8}", "argmin[axis=0]", "argmax[axis=2]"),
    ("float{7, 8}", "reduce_prod[axes={1}]", "reduce_mean[axes={0}]"),
]


@pytest.mark.parametrize(("declared", "inner", "outer"), NESTED)
def test_folds_of_folds_are_written_out_as_far_as_a_kernel_goes(
    declared: str, inner: str, outer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More values than a kernel makes: what it makes again and again is stored before."""
    take_only(monkeypatch, "write_out", "write_out_finished")
    text = f"x = @param:x -> {declared}\na = neg(x)\nr = {inner}(a)\ny = {outer}(r)\n@return(y)\n"
    assert is_written_out(text)
    check_host(text, "sm_90")


def drawn(seed: int) -> str:
    """One or two folds, of what may be turned and computed before, with moves behind them."""
    rng = Random(f"few/{seed}")
    rank, dtype = (
        rng.choice((2, 3, 4)),
        rng.choice(("float", "half", "bf16", "double", "int8", "uint8", "int32", "int64")),
    )
    lens = [rng.choice((1, 2, 3, 4, 5, 7, 8, 9)) for _ in range(rank)]
    lines, order = [f"x = @param:x -> {dtype}{listed(lens)}"], rng.sample(range(rank), rank)
    lens = [lens[d] for d in order]
    lines += [f"t = transpose[permutation={listed(order)}](x)", f"b = @param:b -> {dtype}{listed(lens)}"]
    lines.append(f"v = {rng.choice(('add', 'mul', 'max'))}(t, b)")
    for k in range(rng.choice((1, 2))):
        op, axes = (
            rng.choice(("argmax", "argmin", "sum", "max", "min", "prod", "mean")),
            rng.sample(range(rank), rng.choice((1, 1, 2))),
        )
        axes = sorted(axes[:1] if op.startswith("arg") else axes)
        lens = [1 if d in axes else n for d, n in enumerate(lens)]
        fold = f"{op}[axis={axes[0]}]" if op.startswith("arg") else f"reduce_{op}[axes={listed(axes)}]"
        last = "v" if k == 0 else f"w{k - 1}"
        pads = [rng.choice((0, 0, 1)) for _ in range(2 * rank)]
        lines.append(f"r{k} = {fold}({last})")
        lines.append(
            f"w{k} = " + rng.choice((f"abs(r{k})", f"reverse[axes={{0}}](r{k})", f"pad[pads={listed(pads)}](r{k})"))
        )
        lens = [n + pads[d] + pads[d + rank] for d, n in enumerate(lens)] if "pad[" in lines[-1] else lens
    return "\n".join([*lines, f"@return(w{k})", ""])


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(24))
def test_drawn_folds_are_right_if_all_are_written_out(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, "write_out", "write_out_finished")
    check_host(drawn(seed), "sm_90")


def test_a_fold_of_what_few_fold_to_is_one_kernel_with_it() -> None:
    text = """
        x = @param:x -> half{3, 5505024}
        a = argmax[axis=0](x)
        s = reduce_sum[axes={1}](a)
        @return(s)"""
    first, *_ = load(text, "sm_90").lower("schedule").units[0].kernels
    assert {parameter.name for parameter in first.parameters} == {"x"}
    assert first.axes


def test_what_is_written_out_stays_by_itself_where_that_takes_less_time() -> None:
    """Seven columns each lie apart in the order of the sum's rows: a kernel for both would ask for a line for each element."""
    text = """
        x = @param:x -> float{128, 19136, 7}, {1, 952, 136}
        m = reduce_mean[axes={2}](x)
        s = reduce_mean[axes={0, 1, 2}](m)
        y = sub(m, s)
        @return(y)"""
    first, *_ = load(text, "sm_90").lower("schedule").units[0].kernels
    assert first.axes == ()
