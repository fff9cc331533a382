"""Hand-written kernels over the device header, and those of the suite, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import genrw
from genrw.bench import suite
from genrw.codegen.host import HostKernel, compile_host
from genrw.codegen.printer import KernelSource

Array = npt.NDArray[Any]

DTYPES: dict[str, Any] = {
    "bool": np.bool_,
    **{f"gen::int{bits}": np.dtype(f"int{bits}").type for bits in (8, 16, 32, 64)},
    **{f"gen::uint{bits}": np.dtype(f"uint{bits}").type for bits in (8, 16, 32, 64)},
    "gen::half": np.float16,
    "gen::bf16": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
}

MONOIDS = """
struct sum {
    using acc = float;
    GEN_DEVICE static acc identity() { return 0; }
    GEN_DEVICE static acc combine(acc a, acc b) { return a + b; }
};
struct sum8 {
    using acc = gen::int8;
    GEN_DEVICE static acc identity() { return 0; }
    GEN_DEVICE static acc combine(acc a, acc b) { return gen::add(a, b); }
};
struct every {
    using acc = bool;
    GEN_DEVICE static acc identity() { return true; }
    GEN_DEVICE static acc combine(acc a, acc b) { return a && b; }
};
struct greatest {
    using acc = double;
    GEN_DEVICE static acc identity() { return gen::lowest<double>(); }
    GEN_DEVICE static acc combine(acc a, acc b) { return gen::max(a, b); }
};
struct place { float value; gen::int64 index; };
struct argmax {
    using acc = place;
    GEN_DEVICE static acc identity() { return {gen::lowest<float>(), gen::highest<gen::int64>()}; }
    GEN_DEVICE static acc combine(acc a, acc b)
    {
        return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
    }
};
"""

ROW_SUM = """
// The sum and the place of the greatest element of a row of n, one row per workgroup.
template <int Block, int Items>
GEN_DEVICE void row_sum(const float* x, float* y, gen::int64* at, int n, float* sums, place* places)
{
    constexpr int waves = (Block + GEN_WAVE_SIZE - 1) / GEN_WAVE_SIZE;
    const int lane = gen::local_id(), row = gen::workgroup_id();
    const auto values = gen::strided_load<Items, Block>(x, row * n + lane, lane, n, 0.0f);
    const float total = gen::reduce_waves<sum, waves>(
        gen::dpp_reduce<sum, GEN_WAVE_SIZE>(gen::lane_reduce<sum>(values)), sums);
    gen::array<place, Items> own;
    GEN_UNROLL
    for (int i = 0; i < Items; i++) {
        const int k = lane + i * Block;
        own[i] = k < n ? place{values[i], k} : argmax::identity();
    }
    const place best = gen::reduce_waves<argmax, waves>(
        gen::dpp_reduce<argmax, GEN_WAVE_SIZE>(gen::lane_reduce<argmax>(own)), places);
    if (lane == 0) y[row] = total;
    if (lane == 0) at[row] = best.index;
}
"""


def row_sum_kernel(block: int, items: int) -> str:
    """A kernel `rows(x, y, at, n)` for rows of up to block * items elements."""
    return f"""{MONOIDS}{ROW_SUM}
GEN_KERNEL({block})
rows(const float* __restrict__ x, float* __restrict__ y, gen::int64* __restrict__ at, int n)
{{
    constexpr int waves = ({block} + GEN_WAVE_SIZE - 1) / GEN_WAVE_SIZE;
    GEN_LDS(float, sums, waves);
    GEN_LDS(place, places, waves);
    row_sum<{block}, {items}>(x, y, at, n, sums, places);
}}
"""


ROW_TYPES = ("const float*", "float*", "gen::int64*", "int")

FUNCTIONS = (
    *("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "erf", "log", "log2", "log1p", "sin", "cos", "tan"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh"),
    *("sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "abs"),
)


def math_kernel(type_name: str, name: str = "apply", block: int = 1) -> str:
    """A kernel `apply(x, y, function, n)`: the function of that number in FUNCTIONS on n elements."""
    cases = "\n".join(
        f"    if (function == {i}) for (int i = first; i < n; i += step) y[i] = gen::{f}(x[i]);"
        for i, f in enumerate(FUNCTIONS)
    )
    return f"""
GEN_KERNEL({block})
{name}(const {type_name}* __restrict__ x, {type_name}* __restrict__ y, int function, int n)
{{
    const int first = gen::global_id(), step = gen::workgroup_size();
{cases}
}}
"""


def elementwise(expression: str, inputs: Sequence[str], output: str, *, compiler: str | None = None) -> HostKernel:
    """A host kernel that stores an expression in a, b, ... (elements of the inputs) for n elements."""
    names = "abcdefgh"[: len(inputs)]
    parameters = ", ".join(f"const {t}* __restrict__ p{n}" for t, n in zip(inputs, names, strict=True))
    loads = " ".join(f"const {t} {n} = p{n}[i];" for t, n in zip(inputs, names, strict=True))
    source = f"""
GEN_KERNEL(1) each({parameters}, {output}* __restrict__ out, int n)
{{
    for (int i = 0; i < n; i++) {{ {loads} out[i] = {expression}; }}
}}
"""
    types = [*(f"const {t}*" for t in inputs), f"{output}*", "int"]
    return compile_host(source, "each", types, wave_size=1, block=1, cooperative=False, compiler=compiler)


def evaluate(expression: str, inputs: dict[str, Array], output: str, *, compiler: str | None = None) -> Array:
    """The values of an expression over arrays by C++ type; a letter after a blank makes two types differ."""
    types = [key.split(" ")[0] for key in inputs]
    arrays = [np.ascontiguousarray(a, dtype=DTYPES[t]) for t, a in zip(types, inputs.values(), strict=True)]
    result = np.zeros(arrays[0].shape, dtype=DTYPES[output])
    kernel = elementwise(expression, types, output, compiler=compiler)
    kernel.launch([*arrays, result, arrays[0].size], 1)
    return result


def suite_kernels(target: str) -> list[tuple[str, KernelSource]]:
    """The kernels of the benchmark suite for a target, each with the name of its case."""
    programs = [(path.stem, genrw.load(path, target=target)) for path in suite("gpu")]
    return [(case, kernel) for case, program in programs for kernel in program.kernels()]


def together(kernels: list[KernelSource]) -> str:
    """Kernels as one source, called k0, k1 and so on, each in a namespace of its own, what operators give them once."""
    helpers = dict.fromkeys(helper for kernel in kernels for helper in kernel.helpers)
    bodies = []
    for i, kernel in enumerate(kernels):
        text = kernel.text
        for helper in kernel.helpers:
            text = text.replace(helper, "")
        bodies.append(f"namespace s{i} {{\n{text.replace(f'{chr(10)}{kernel.name}(', f'{chr(10)}k{i}(')}\n}}")
    return "\n".join(['#include "gen.hpp"', *helpers, *(body.replace('#include "gen.hpp"', "") for body in bodies)])
