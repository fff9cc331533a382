"""Operators whose functions kernels call: what is printed for each target, and what it computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import genrw
from genrw.codegen.kernel_ir.text import ir_text

RULES = """
define line(t, a, b) = fma(a, t, b)

/// A step from 0 to 1 as wide as `width`, between two places.
op own_step[width: float = 1.0](x: T, place: T) -> T where T: real
  role pointwise
  means (lambda_of(x, place, width) * lambda_of(x, place, width) * (3 - 2 * lambda_of(x, place, width)))
  within 1e-5
  function
    away = sub(x, place),
    part = min(max(mul(away, {1 / width}), 0), 1),
    bend = line(part, -2, 3)
  gives mul(mul(part, part), bend)

let lambda_of(x, place, width) = min(max((x - place) / width, 0), 1)

/// A step up and one down.
op own_bump(x: T, place: T) -> T where T: real
  role pointwise
  is mul(own_step(x, place), sub(1, own_step[width=0.5](x, add(place, 1))))
  function
  cost 3
"""
PROGRAM = """
x = @param:x -> {dtype}{{4, 64}}
p = @param:p -> {dtype}{{4, 1}}
y = own_bump(x, p)
z = own_step[width=2.0](x, p)
s = add(y, z)
@return(s)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("functions")
    (made / "mine.rw").write_text(RULES)
    return made


def loaded(folder: Path, program: str, target: str) -> genrw.Program:
    (folder / "p.gen").write_text(program)
    return genrw.load(folder / "p.gen", rules=[folder], target=target)


def step(x: np.ndarray, place: np.ndarray, width: float) -> np.ndarray:
    part = np.clip((x - place) / width, 0, 1)
    return part * part * (3 - 2 * part)


@pytest.mark.parametrize("target", ["host", "gfx942", "sm_90"])
def test_functions_are_printed_once_before_the_kernel(folder: Path, target: str, golden: Any) -> None:
    (kernel,) = loaded(folder, PROGRAM.format(dtype="half"), target).kernels()
    golden.check(f"functions/{target}.hip", kernel.text)
    assert kernel.text.count("GEN_DEVICE float own_step(float x, float place)") == 1


def test_the_kernel_ir_has_them(folder: Path, golden: Any) -> None:
    golden.check("functions/kernel.ir", ir_text(loaded(folder, PROGRAM.format(dtype="float"), "gfx942")))


@pytest.mark.parametrize("target", ["host", "gfx942", "sm_90"])
@pytest.mark.parametrize(("dtype", "off"), [("float", 2e-6), ("half", 4e-3), ("double", 1e-12)])
def test_they_compute_what_numpy_does(folder: Path, target: str, dtype: str, off: float) -> None:
    random = np.random.default_rng(0)
    kind = {"half": np.float16, "float": np.float32, "double": np.float64}[dtype]
    x, p = random.uniform(-2, 3, (4, 64)).astype(kind), random.uniform(-1, 1, (4, 1)).astype(kind)
    got = loaded(folder, PROGRAM.format(dtype=dtype), target).run({"x": x, "p": p})["s"]
    wide, place = x.astype(np.float64), p.astype(np.float64)
    want = step(wide, place, 1) * (1 - step(wide, place + 1, 0.5)) + step(wide, place, 2)
    np.testing.assert_allclose(got.astype(np.float64), want, atol=off)


def test_a_call_stays_a_call(folder: Path) -> None:
    """Nothing of what a function is made of stands in the kernel itself."""
    last = loaded(folder, PROGRAM.format(dtype="float"), "gfx942").lower("final")
    found = {node.op for node in last.modules[0].nodes}
    assert {"own_bump", "own_step"} <= found
    assert not {"sub", "min", "max", "fma"} & found


def test_names_of_the_device_header_are_left_to_it(tmp_path: Path) -> None:
    rules = "op whole(x: float) -> float\n  role pointwise\n  means x + 1\n  function add(x, 1)\n"
    (tmp_path / "mine.rw").write_text(rules)
    program = loaded(tmp_path, "x = @param:x -> float{64}\ny = whole(x)\n@return(y)\n", "host")
    assert "gen::whole_(x" in program.kernels()[0].text
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x + 1)


def test_types_attributes_and_truths(tmp_path: Path) -> None:
    """A function may take and give other types than floats; each choice of attributes is a function of its own."""
    rules = """
op own_inside[strict: bool = false](x: T, low: T, high: T) -> bool where T: number
  role pointwise
  means (x > low and x < high) if strict else (x >= low and x <= high)
  function logical_and(greater(x, low), less(x, high)) when strict
  function logical_and(greater_equal(x, low), less_equal(x, high))
"""
    (tmp_path / "mine.rw").write_text(rules)
    text = """
x = @param:x -> int32{16}
a = own_inside(x, 3, 9)
b = own_inside[strict=true](x, 3, 9)
@return(a, b)
"""
    program = loaded(tmp_path, text, "host")
    (kernel,) = program.kernels()
    assert "GEN_DEVICE bool own_inside(int x, int low, int high)" in kernel.text
    assert "GEN_DEVICE bool own_inside_strict(" in kernel.text
    x = np.arange(16, dtype=np.int32)
    got = program.run({"x": x})
    np.testing.assert_array_equal(got["a"], (x >= 3) & (x <= 9))
    np.testing.assert_array_equal(got["b"], (x > 3) & (x < 9))
