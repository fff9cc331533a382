"""Every pointwise operator of every type at zeros of both signs, infinities, NaN, denormals and limits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from breadth import first_quick
from support import WAVE64, load
from together import compile_together, lower_together, shipped

from genrw.engine.ir.dtypes import DTYPES, in_class, numpy_dtype
from genrw.engine.library.library import Operator, nearness

FLOATS = ("float", "double", "half", "bf16")
Array = np.ndarray[Any, Any]


def special_values(dtype: str) -> list[float]:
    """Zeros, ones, limits and what lies near them; the least of a type are its denormals."""
    limits = DTYPES[dtype]
    if dtype == "bool":
        return [0, 1]
    if limits.is_integer:
        near = [v for v in (-3, -2, -1, 0, 1, 2, 3, 7, 100) if v >= limits.smallest]
        return [*near, limits.smallest, limits.smallest + 1, limits.largest - 1, limits.largest]
    least, normal, largest = EXTREMES[dtype]
    sizes = [
        0.0,
        least,
        3 * least,
        normal / 2,
        normal,
        1e-8,
        1e-3,
        0.5,
        1.0,
        1.5,
        2.5,
        3.0,
        20.0,
        largest / 2,
        largest,
        np.inf,
    ]
    return [*sizes, *(-v for v in sizes), np.nan]


EXTREMES = {
    "float": (2.0**-149, 2.0**-126, float(np.finfo(np.float32).max)),
    "double": (2.0**-1074, 2.0**-1022, float(np.finfo(np.float64).max)),
    "half": (2.0**-24, 2.0**-14, 65504.0),
    "bf16": (2.0**-133, 2.0**-126, float(2.0**127 * (2 - 2.0**-7))),
}


TOLERANCES = {"float": 2e-6, "double": 1e-13, "half": 1.5e-3, "bf16": 1.2e-2}


CANCELLING = {"gelu_tanh": 1e-6}
"""Operators whose meaning subtracts neighbours: how far they may be off near 0."""
FUSED = {("fma", "double")}
"""What rounds once, while its reference rounds the product too: a product that is too small for a sign there."""


def is_taken(operator: Operator, declared: str | None, dtype: str) -> bool:
    """May an operand so declared be of a type?"""
    if declared in (dtype, "bool"):
        return True
    return declared == "T" and in_class(dtype, dict(operator.decl.where).get("T", "any"))


def operators(dtype: str) -> dict[str, Operator]:
    """The pointwise operators that take a type and need no attribute."""
    return {
        name: operator
        for name, operator in shipped().operators.items()
        if operator.role == "pointwise"
        and not any(a.default is None for a in operator.decl.attributes)
        and all(is_taken(operator, o.dtype, dtype) for o in operator.decl.operands)
    }


def programs(dtype: str) -> Iterator[tuple[str, dict[str, Array]]]:
    """Programs of a few operators each, and inputs in which all special values meet."""
    by_operands: dict[tuple[str, ...], list[str]] = {}
    for name, operator in operators(dtype).items():
        types = tuple("bool" if o.dtype == "bool" else dtype for o in operator.decl.operands)
        by_operands.setdefault(types, []).append(name)
    for types, names in by_operands.items():
        sets = [special_values(t) if len(types) < 3 else special_values(t)[::2] for t in types]
        columns = zip(*product(*sets), strict=True)
        with np.errstate(over="ignore", invalid="ignore"):
            arrays = [
                np.array(c, np.float64).astype(numpy_dtype(t)) if t in FLOATS else np.array(c).astype(numpy_dtype(t))
                for c, t in zip(columns, types, strict=True)
            ]
        inputs = {f"x{i}": array for i, array in enumerate(arrays)}
        lines = [f"x{i} = @param:x{i} -> {t}{{{arrays[0].size}}}" for i, t in enumerate(types)]
        for some in (names[i : i + 12] for i in range(0, len(names), 12)):
            calls = [f"r_{name} = {name}({', '.join(inputs)})" for name in some]
            results = ", ".join(f"r_{name}" for name in some)
            yield "\n".join([*lines, *calls, f"@return({results})"]) + "\n", inputs


def wrong(got: Array, want: Array, dtype: str, near_zero: float, within: float = 0.0) -> Array:
    """Where a result is not the reference: another kind of number, another sign, too far off."""
    if dtype not in FLOATS:
        return np.asarray(got != want)
    least, _, largest = EXTREMES[dtype]
    got, want = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        want = np.where(np.abs(want) > largest * (1 + TOLERANCES[dtype]), np.copysign(np.inf, want), want)
        relative = max(TOLERANCES[dtype], within)
        near = np.abs(got - want) <= relative * np.abs(want) + max(near_zero, 2 * least)
        near |= (np.abs(want) >= largest * (1 - TOLERANCES[dtype])) & (np.abs(got) >= largest * (1 - TOLERANCES[dtype]))
    same = np.where(np.isfinite(want), near, got == want) | (np.isnan(got) & np.isnan(want))
    signs = np.isnan(want) | (np.signbit(got) == np.signbit(want)) | ((want != 0) & (np.abs(want) <= 2 * least))
    return np.asarray(~(same & signs))


def in_domain(operator: Operator, inputs: dict[str, Array]) -> Array:
    """Where an operator is meant to be near: what it says of its domain holds there."""
    names = {o.name: values for o, values in zip(operator.decl.operands, inputs.values(), strict=True)}
    holds = [
        [condition({name: float(values[i]) for name, values in names.items()}) for condition in operator.domain]
        for i in range(len(inputs["x0"]))
    ]
    return np.array([all(conditions) for conditions in holds])


CASES = [*((dtype, "host") for dtype in DTYPES), *((dtype, WAVE64) for dtype in ("float", "half", "bf16"))]


@pytest.mark.parametrize(("dtype", "target"), first_quick(CASES))
def test_special_values(dtype: str, target: str) -> None:
    """Printed kernels on the CPU give what an operator means in double; so does the interpreter in the type itself."""
    found = []
    tried = list(programs(dtype))
    compiled = lower_together([text for text, _ in tried], target)
    compile_together(compiled)
    for made, (_, inputs) in zip(compiled, tried, strict=True):
        program = made.program
        want = program.run(inputs, "interpret", precise=True)
        results = {"printed": made.on_the_host(inputs), "interpreted": program.run(inputs, "interpret")}
        for (how, got), name in product(results.items(), want):
            type_ = program.results[name].type.dtype
            operator = shipped().operators[name[2:]]
            within = nearness(operator.decl) or 0.0
            off = wrong(got[name], want[name], type_, CANCELLING.get(name[2:], 0), within)
            off &= not within or in_domain(operator, inputs)
            if (name[2:], dtype) in FUSED:
                off &= (got[name] != 0) | (want[name] != 0)
            for i in np.flatnonzero(off)[:3]:
                given = ", ".join(str(array[i]) for array in inputs.values())
                found.append(f"{how} {name[2:]}({given}) is {got[name][i]}, not {want[name][i]}")
    assert not found, "\n".join(found)


def literal_programs(dtype: str) -> Iterator[tuple[str, dict[str, Array]]]:
    """Programs of a few operators each, one operand of which is a literal, and of casts of literals."""
    x, c = np.array([0, 1, 2, 3]).astype(numpy_dtype(dtype)), np.array([False, True, False, True])
    head = [f"x = @param:x -> {dtype}{{4}}", "c = @param:c -> bool{4}", f"one = @literal{{1}} -> {dtype}{{4}}"]
    calls = [f"bitcast[target_type={other}](one)" for other in DTYPES if fits_bits(dtype, other)]
    calls += [f"convert[target_type={other}](one)" for other in DTYPES]
    for name, operator in operators(dtype).items():
        given = ["c" if o.dtype == "bool" and dtype != "bool" else "x" for o in operator.decl.operands]
        calls += [f"{name}({', '.join((*given[:i], 'one', *given[i + 1 :]))})" for i, o in enumerate(given) if o == "x"]
    for some in (calls[i : i + 12] for i in range(0, len(calls), 12)):
        lines = [f"r{i} = {call}" for i, call in enumerate(some)]
        yield "\n".join([*head, *lines, f"@return({', '.join(f'r{i}' for i in range(len(some)))})"]), {"x": x, "c": c}


def fits_bits(dtype: str, other: str) -> bool:
    """Are a type's bits those of another one, as far as programs may say so?"""
    stored = {"half", "bf16"} & {dtype, other}
    return other != "bool" and not stored and DTYPES[dtype].itemsize == DTYPES[other].itemsize


@pytest.mark.parametrize("dtype", first_quick(list(DTYPES)))
def test_literals_are_of_their_type(dtype: str) -> None:
    """In C++ a bare number is an int, or a double: texts of operators must not depend on that."""
    tried = list(literal_programs(dtype))
    compiled = lower_together([text for text, _ in tried], WAVE64)
    compile_together(compiled)
    for made, (text, inputs) in zip(compiled, tried, strict=True):
        given = {name: array for name, array in inputs.items() if name in made.program.inputs}
        want, got = made.program.run(given, "interpret", precise=True), made.on_the_host(given)
        off = {
            name: (got[name], want[name])
            for name in want
            if wrong(got[name], want[name], str(made.program.results[name].type.dtype), 1e-6).any()
        }
        assert not off, f"{text}\n{off}"


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_real_attributes_beside_integers(dtype: str) -> None:
    """They stay real: nothing is cut off before it is compared or added."""
    x = np.arange(-5, 6).astype(dtype)
    text = f"x = @param:x -> {dtype}{{11}}\ny = shrink[lambd=-1.5, bias=0.7](x)\n@return(y)\n"
    got = load(text, "host").run({"x": x})["y"]
    wide = x.astype(np.float64)
    want = np.trunc(np.where(wide < 1.5, wide + 0.7, wide - 0.7))
    np.testing.assert_array_equal(got, want.astype(dtype))
