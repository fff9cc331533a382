"""Programs with several products: each is a kernel's only fold, so that tiles can compute it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support import load

from genrw.codegen.runtime.devices import HostDevice

FORMS = {
    "one input": ("a = dot(x, y)\nb = dot(x, w)", "a, b"),
    "three of one input": ("a = dot(x, y)\nb = dot(x, w)\nc = dot(x, u)", "a, b, c"),
    "a sum": ("a = dot(x, y)\nb = dot(u, w)\nc = add(a, b)", "c"),
    "a gate": ("a = dot(x, y)\ng = sigmoid(a)\nb = dot(x, w)\nc = mul(g, b)", "c"),
    "one after the other": ("a = dot(x, y)\nr = relu(a)\nb = dot(r, w)\nc = add(b, r)", "c"),
    "beside a sum of rows": ("a = dot(x, y)\nb = reduce_sum[axes={1}](x)\nc = mul(a, b)", "c"),
}


def program(form: str, size: int, dtype: str) -> str:
    body, results = FORMS[form]
    used = [name for name in "xywu" if f"({name}" in body or f", {name})" in body]
    inputs = "".join(f"{name} = @param:{name} -> {dtype}{{{size}, {size}}}\n" for name in used)
    return f"{inputs}{body}\n@return({results})\n"


def elements(target: str) -> str:
    return "float" if target == "host" else "half"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100", "host"])
def test_each_is_computed_by_tiles(target: str, form: str) -> None:
    size = Random(f"{target}/{form}").choice([512, 768, 1024])
    for module in load(program(form, size, elements(target)), target).lower("schedule").modules:
        folds = [node.op for node in module.nodes if node.op == "contraction" or node.op.startswith("reduce_")]
        if "contraction" in folds:
            assert (len(folds), module.schedule["algo"]) == (1, "matrix"), module.name


@pytest.mark.parametrize("form", FORMS)
def test_kernels_compute_the_same(form: str) -> None:
    text = program(form, 40, "float")
    loaded = load(text, "sm_90")
    rng = np.random.default_rng(3)
    inputs = {p: rng.integers(-3, 4, (40, 40)).astype(np.float32) for p in "xywu" if f"@param:{p}" in text}
    want = load(text, "sm_90").run(inputs, "interpret")
    got = HostDevice().load(loaded, loaded.kernels())(inputs, threads=1, order=0)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-3)
