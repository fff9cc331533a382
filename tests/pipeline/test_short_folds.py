"""Folds of few elements, written out where their results lie in another order."""

from __future__ import annotations

from itertools import product

import pytest
from alternatives_taken import take_only
from support import check_host, load

TEXT = """
x = @param:x -> {dtype}{{{lens}}}
m = reduce_{op}[axes={{{axis}}}](x)
e = exp(m)
y = transpose[permutation={{2, 1, 0}}](e)
@return(y)
"""


def folded(dtype: str, op: str, count: int, axis: int) -> str:
    lens = [33, 5, 40]
    lens[axis] = count
    text = TEXT.format(dtype=dtype, op=op, axis=axis, lens=", ".join(map(str, lens)))
    return text if dtype in ("float", "half") else text.replace("e = exp(m)", "e = abs(m)")


@pytest.mark.parametrize(("op", "count"), [*product(("sum", "prod", "max", "min", "mean"), (2, 3, 4))])
def test_folds_that_are_written_out_are_right(op: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, "_add", "_mul", "_max", "_min")
    for dtype, axis in (("half", 0), ("float", 1), ("int32", 2), ("uint8", 1)):
        text = folded(dtype, op, count, axis)
        (module,) = load(text, "sm_90").lower("fuse").modules
        assert not any(node.op.startswith("reduce") for node in module.nodes)
        check_host(text, "sm_90")


@pytest.mark.parametrize(("dtype", "op", "count"), [("float", "argmax", 3), ("float", "max", 5), ("bool", "max", 2)])
def test_others_stay_folds(dtype: str, op: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, "_max", "_add")
    text = f"x = @param:x -> {dtype}{{33, {count}, 40}}\nm = reduce_{op}[axes={{1}}](x)\n@return(m)\n"
    if op == "argmax":
        text = text.replace("reduce_argmax[axes={1}]", "argmax[axis=1]")
    (module,) = load(text, "sm_90").lower("fuse").modules
    assert any(node.op.startswith("reduce") for node in module.nodes)
