"""Hand-written kernels over the device header, and those of the suite, for the tests beside this file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from together import lower_together
from written_kernels import WrittenText, array, memory, plain, resolved, value

from genrw.codegen.hip.host_lane_loops import LaneLoops, lane_loops
from genrw.codegen.hip.identifiers import KEPT
from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.hip.statement_text import StatementText
from genrw.codegen.kernel_ir.kernel import Statement
from genrw.codegen.runtime.host import HostKernel, compile_host
from genrw.measure.cases import suite

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

_WAVE = "GEN_WAVE_SIZE"


Body = Sequence[Statement]


def straight(body: Body) -> list[str]:
    """The lines of a body as one lane runs them."""
    return [*StatementText(WrittenText(body), {}).lines(resolved(body), 1)]


def in_lane_loops(body: Body) -> LaneLoops:
    """A body as loops over lanes."""
    return lane_loops(resolved(body), WrittenText(body), {})


def gpu_text(block: int, name: str, parameters: str, body: Body) -> str:
    """A kernel as a GPU's compiler takes it."""
    lines = "\n".join(straight(body))
    return f"GEN_KERNEL({block}) {name}({parameters})\n{{\n{lines}\n}}\n"


def compile_body(
    wave: int, block: int, name: str, parameters: str, body: Body, before: str = "", compiler: str | None = None
) -> HostKernel:
    """A kernel compiled for the host, as loops over its lanes if these are several."""
    text, in_loops = gpu_text(block, name, parameters, body), block > 1
    if in_loops:
        loops = in_lane_loops(body)
        members, lines = " ".join(loops.members), "\n".join(loops.lines)
        text = f"struct {name}_lanes {{ {members} }};\n"
        text += f"GEN_KERNEL({block}) {name}({name}_lanes& {KEPT}, {parameters})\n{{\n{lines}\n}}\n"
    types = [re.sub(r"\s*(__restrict__)?\s*\w+$", "", parameter.strip()) for parameter in parameters.split(",")]
    return compile_host(before + text, name, types, wave_size=wave, block=block, in_loops=in_loops, compiler=compiler)


ROW_PARAMETERS = "const float* __restrict__ x, float* __restrict__ y, gen::int64* __restrict__ at, int n"


def row_sum(block: int, items: int) -> list[Statement]:
    """The sum and the place of the greatest element of a row of n <= block * items, one row per workgroup."""
    waves = f"(({block} + {_WAVE} - 1) / {_WAVE})"
    place_of = f"const int k = lane + i * {block}; own[i] = k < n ? place{{values[i], k}} : argmax::identity();"
    return [
        memory("float", "sums", waves),
        memory("place", "places", waves),
        value("int", "lane", "gen::local_id()"),
        value(
            f"gen::array<float, {items}>",
            "values",
            f"gen::strided_load<{items}, {block}>(x, gen::workgroup_id() * n + lane, gen::chunks_below<{block}, 1>(lane, n), 0.0f)",
        ),
        value("float", "lane_sum", "gen::lane_reduce<sum>(values)"),
        value("float", "wave_sum", f"gen::dpp_reduce<sum, {_WAVE}>(lane_sum)", "wave"),
        value("float", "total", f"gen::reduce_waves<sum, {waves}>(wave_sum, sums)", "block"),
        array(f"gen::array<place, {items}>", "own"),
        plain(f"GEN_UNROLL\nfor (int i = 0; i < {items}; i++) {{ {place_of} }}"),
        value("place", "lane_best", "gen::lane_reduce<argmax>(own)"),
        value("place", "wave_best", f"gen::dpp_reduce<argmax, {_WAVE}>(lane_best)", "wave"),
        value("place", "best", f"gen::reduce_waves<argmax, {waves}>(wave_best, places)", "block"),
        plain("if (lane == 0) y[gen::workgroup_id()] = total;"),
        plain("if (lane == 0) at[gen::workgroup_id()] = best.index;"),
    ]


def row_sum_kernel(block: int, items: int) -> str:
    """A kernel `rows(x, y, at, n)` for a GPU."""
    return MONOIDS + gpu_text(block, "rows", ROW_PARAMETERS, row_sum(block, items))


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
    return compile_host(source, "each", types, wave_size=1, block=1, in_loops=False, compiler=compiler)


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
    cases = suite("gpu")
    programs = lower_together([case.source.text for case in cases], target)
    return [(case.name, kernel) for case, program in zip(cases, programs, strict=True) for kernel in program.kernels]


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
