"""Programs with several products: each is a kernel's only fold, so that tiles can compute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from breadth import spread
from support import load

from genrw.codegen.runtime.devices import HostDevice
from genrw.program import Program

pytestmark = pytest.mark.few(1)

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


def together(texts: Mapping[str, str], target: str, **options: Any) -> Program:
    """Programs that are lowered in one call, each a module named by what is particular about it."""
    programs = {name: load(text, target, **options) for name, text in texts.items()}
    modules = [replace(p.modules[0], name=name.replace(" ", "_")) for name, p in programs.items()]
    return next(iter(programs.values())).with_modules(tuple(modules))


@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100", "host"])
def test_each_is_computed_by_tiles(target: str) -> None:
    sizes = {form: Random(f"{target}/{form}").choice([512, 768, 1024]) for form in FORMS}
    texts = {form: program(form, size, elements(target)) for form, size in sizes.items()}
    for module in together(texts, target).lower("schedule").modules:
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


BATCHES: tuple[tuple[int, ...], ...] = ((), (1,), (4,), (1, 4), (2, 1), (2, 4), (1, 1, 4))


def batched(first: tuple[int, ...], second: tuple[int, ...], dtype: str, turned: bool, uses: int) -> str:
    """Products of what is computed, in any batches: `uses` of them take the same first matrices."""
    dot = "quant_dot" if dtype == "int8" else "dot"
    left, right = (*first, 96, 128), (*second, 64, 128) if turned else (*second, 128, 64)
    order = [*range(len(second)), len(second) + 1, len(second)]
    lines = [f"x = @param:x -> {dtype}{{{', '.join(map(str, left))}}}", "r = relu(x)"]
    for i in range(uses):
        lines.append(f"w{i} = @param:w{i} -> {dtype}{{{', '.join(map(str, right))}}}")
        matrix = f"transpose[permutation={{{', '.join(map(str, order))}}}](w{i})" if turned else f"abs(w{i})"
        lines += [f"t{i} = {matrix}", f"d{i} = {dot}(r, t{i})"]
    return "\n".join([*lines, f"@return({', '.join(f'd{i}' for i in range(uses))})\n"])


@pytest.mark.parametrize(("dtype", "first", "second"), spread(["half", "bf16", "int8"], BATCHES, BATCHES))
def test_matrices_of_any_batches_are_multiplied_in_their_own_type(
    first: tuple[int, ...], second: tuple[int, ...], dtype: str
) -> None:
    draw = Random(f"{first}/{second}/{dtype}")
    text = batched(first, second, dtype, draw.random() < 0.5, draw.choice([1, 3]))
    modules = load(text, draw.choice(["sm_90", "gfx942"])).lower("fuse").modules
    products = [node for module in modules for node in module.nodes if node.op == "contraction"]
    assert products
    assert all(operand.type.dtype == dtype for node in products for operand in node.operands), text


BESIDE = {
    "passed on": ("", "z, v"),
    "computed": ("e = exp(v)", "z, e"),
    "made of the product": ("r = reshape[dims={40, 1, 64}](z)\ne = sub(v, r)", "z, e"),
}
"""Results that have as many elements as the space of a product has."""


@pytest.mark.parametrize("plan", ["search", "exact"])
@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1100", "host"])
def test_what_tiles_do_not_have_another_kernel_stores(target: str, plan: str) -> None:
    texts = {form: beside(form, elements(target)) for form in BESIDE}
    loaded = together(texts, target, plan=plan, schedule={"algo": "matrix"})
    for module in loaded.lower("fuse").modules:
        if any(node.op == "contraction" for node in module.nodes):
            assert {result.type.elements for result in module.root.operands} == {40 * 64}
    loaded.lower("final")


def beside(form: str, dtype: str) -> str:
    """A product, and results beside it."""
    lines, results = BESIDE[form]
    return f"""
        x = @param:x -> {dtype}{{40, 96}}
        w = @param:w -> {dtype}{{96, 64}}
        v = @param:v -> {dtype}{{40, 96, 64}}
        z = dot(x, w)
        {lines.replace(chr(10), chr(10) + " " * 8)}
        @return({results})"""


@pytest.mark.parametrize("plan", ["search", "exact"])
def test_weighted_values_are_a_kernel_of_their_own(plan: str) -> None:
    text = """
        s = @param:s -> half{3, 2, 3}
        v = @param:v -> half{3, 3, 32}
        w = @param:w -> half{3, 3, 32}
        u = @param:u -> half{3, 2, 96}
        p = softmax[axis=2](s)
        a = dot(p, v)
        b = dot(p, w)
        @return(a, b, u)"""
    modules = load(text, "sm_90", plan=plan).lower("final").modules
    assert len(modules) > 1


def test_an_exact_plan_has_each_product_alone() -> None:
    text = program("beside a sum of rows", 40, "float")
    for module in load(text, "sm_90", plan="exact").lower("fuse").modules:
        folds = [node.op for node in module.nodes if node.op == "contraction" or node.op.startswith("reduce_")]
        assert len(folds) < 2
