"""Folds of masked rows, in loops: steps at which a mask hides everything are left out, and results are what they were."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from index_masks import Masks
from support import load

from genrw.codegen.runtime.devices import HostDevice

FOLDS = {"sum": ("0", 0.0, np.sum), "max": ("-inf", -np.inf, np.max), "min": ("inf", np.inf, np.min)}
LOOPS = {
    "host": {},
    "gfx942": {"algo": "block", "block_size": 64},
    "gfx1100": {"algo": "block", "block_size": 64},
    "sm_90": {"algo": "block", "block_size": 64},
}
ROWS, COLUMNS = 37, 9000


def program(fold: str, mask: str, lines: str) -> str:
    return f"""\
x = @param:x -> float{{{ROWS}, {COLUMNS}}}
{lines}
m = where({mask}, {FOLDS[fold][0]}, x)
s = reduce_{fold}[axes={{1}}](m)
@return(s)
"""


def run(text: str, target: str, x: np.ndarray, order: int) -> tuple[np.ndarray, str]:
    loaded = load(text, target, schedule=LOOPS[target]) if LOOPS[target] else load(text, target)
    (kernel,) = loaded.kernels()
    return HostDevice().load(loaded, (kernel,))({"x": x}, threads=1, order=order)["s"], kernel.text


@pytest.mark.parametrize("target", LOOPS)
@pytest.mark.parametrize("seed", range(6))
def test_random_masks(seed: int, target: str) -> None:
    random = Random(seed)
    fold, mask = random.choice(list(FOLDS)), Masks(random, (ROWS, COLUMNS)).drawn()
    x = np.random.default_rng(seed).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    got, kernel = run(program(fold, mask.name, "\n".join(mask.lines)), target, x, seed % 2)
    assert "int step = " in kernel
    _, hidden, reference = FOLDS[fold]
    want = reference(np.where(mask.hidden, hidden, x.astype(np.float64)), axis=1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3)


TRIANGLE = f"""\
r = iota[lens={{{ROWS}, {COLUMNS}}}, axis=0]()
c = iota[lens={{{ROWS}, {COLUMNS}}}, axis=1]()
e = mul(r, 100)
h = greater(c, e)"""


@pytest.mark.parametrize("target", LOOPS)
def test_a_triangle_is_walked_up_to_its_edge(target: str) -> None:
    x = np.ones((ROWS, COLUMNS), np.float32)
    got, kernel = run(program("sum", "h", TRIANGLE), target, x, 1)
    assert "step < end_step" in kernel
    np.testing.assert_array_equal(got[:, 0], np.minimum(np.arange(ROWS) * 100 + 1, COLUMNS))


@pytest.mark.parametrize(("fold", "fill"), [("sum", "1"), ("max", "0"), ("sum", "-inf")])
def test_what_hides_by_another_value_than_the_identity_is_walked(fold: str, fill: str) -> None:
    text = program(fold, "h", TRIANGLE).replace(f"where(h, {FOLDS[fold][0]}, x)", f"where(h, {fill}, x)")
    x = np.zeros((ROWS, COLUMNS), np.float32)
    got, kernel = run(text, "host", x, 0)
    assert "end_step" not in kernel
    rows, columns = np.indices((ROWS, COLUMNS))
    masked = np.where(columns > rows * 100, float(fill), x)
    np.testing.assert_array_equal(got, FOLDS[fold][2](masked, axis=1, keepdims=True))


def test_a_row_that_is_stored_is_walked_as_a_whole() -> None:
    """A softmax of rows that do not fit: the last pass stores all elements, hidden ones too."""
    text = program("sum", "h", TRIANGLE).replace("@return(s)", "y = div(m, s)\n@return(y)")
    x = np.random.default_rng(3).uniform(1, 2, (ROWS, COLUMNS)).astype(np.float32)
    loaded = load(text, "gfx942", schedule={"algo": "block", "block_size": 64})
    (kernel,) = loaded.kernels()
    got = HostDevice().load(loaded, (kernel,))({"x": x}, threads=1, order=1)["y"]
    rows, columns = np.indices((ROWS, COLUMNS))
    masked = np.where(columns > rows * 100, 0, x.astype(np.float64))
    np.testing.assert_allclose(got, masked / masked.sum(axis=1, keepdims=True), rtol=1e-5)
