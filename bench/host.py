"""Kernels of the target `host` against numpy, on the same arrays in the same run."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from typing import Any

# Threads of numpy's products wait for more by computing; so long would they slow down what is measured after them.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import numpy as np
from table import options, report, seconds

import genrw

N = 4096
SHAPE = f"float{{{N}, {N}}}"

ROW_SUM = f"""\
x = @param:x -> {SHAPE}
y = reduce_sum[axes={{1}}](x)
@return(y)
"""

COLUMN_SUM = f"""\
x = @param:x -> {SHAPE}
y = reduce_sum[axes={{0}}](x)
@return(y)
"""

SOFTMAX = f"""\
x = @param:x -> {SHAPE}
m = reduce_max[axes={{1}}](x)
d = sub(x, m)
e = exp(d)
s = reduce_sum[axes={{1}}](e)
y = div(e, s)
@return(y)
"""

FUSED = f"""\
a = @param:a -> {SHAPE}
b = @param:b -> {SHAPE}
c = @param:c -> {SHAPE}
p = mul(a, b)
q = add(p, c)
y = relu(q)
@return(y)
"""


PRODUCT = """\
x = @param:x -> float{{{n}, {n}}}
w = @param:w -> float{{{n}, {n}}}
y = dot(x, w)
@return(y)
"""


def numpy_row_sum(x: Any) -> Any:
    return x.sum(axis=1, keepdims=True)


def numpy_column_sum(x: Any) -> Any:
    return x.sum(axis=0, keepdims=True)


def numpy_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def numpy_fused(a: Any, b: Any, c: Any) -> Any:
    return np.maximum(a * b + c, 0)


CASES: tuple[tuple[str, int, str, Callable[..., Any], float], ...] = (
    ("row sum", N, ROW_SUM, numpy_row_sum, 3.0),
    ("column sum", N, COLUMN_SUM, numpy_column_sum, 3.0),
    ("softmax", N, SOFTMAX, numpy_softmax, 3.0),
    ("relu(a * b + c)", N, FUSED, numpy_fused, 1.5),
    *(("product", n, PRODUCT.format(n=n), np.matmul, 2.0) for n in (512, 777, 1024, 2048)),
)


def main() -> None:
    given = options(__doc__ or "")
    rows = [_measure(*case, given.times) for case in CASES]
    headings = ["float", "side", "genrw ms", "1 thread ms", "numpy ms", "ratio", "1 thread ratio", "bar"]
    report(headings, rows, given.json)


def _measure(name: str, side: int, program: str, reference: Callable[..., Any], bar: float, times: int) -> list[Any]:
    """Medians of runs that take turns, so that whatever else the machine does meets all alike."""
    compiled = genrw.compile(program)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((side, side), dtype=np.float32) for _ in compiled.inputs]
    named: dict[str, object] = dict(zip(compiled.inputs, arrays, strict=True))
    np.testing.assert_allclose(compiled(*arrays), reference(*arrays), rtol=1e-4, atol=1e-3)
    runs: tuple[Callable[[], object], ...] = (
        lambda: compiled(*arrays),
        lambda: compiled.run(named, threads=1),
        lambda: reference(*arrays),
    )
    taken = [[1e3 * seconds(run) for run in runs] for _ in range(times)]
    genrw_ms, single_ms, numpy_ms = (statistics.median(column) for column in zip(*taken, strict=True))
    return [name, side, genrw_ms, single_ms, numpy_ms, genrw_ms / numpy_ms, single_ms / numpy_ms, bar]


if __name__ == "__main__":
    main()
