"""Rows that end within a lane's share: each is loaded once, whatever the folds of it want behind its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from breadth import spread
from support import WAVE32, WAVE64, check_host, check_host_schedules, check_schedules, load, lower_each, schedules

from genrw.codegen.hip.printer import print_kernel
from genrw.codegen.kernel_ir.masked_loads import with_values_behind_masks
from genrw.codegen.kernel_ir.placement import place
from genrw.engine.ir.nodes import Module
from genrw.program import Program

TARGETS = (WAVE64, WAVE32, "sm_90", "host")
TYPES = ("half", "bf16", "float", "double", "int8", "int32")
EXTENTS = (3, 61, 100, 1000, 1001, 4100, 9001)
_ROWS = 5
_FOLDS = ("max", "min", "sum", "prod")


def folded_rows(dtype: str, n: int, seed: int = 0) -> str:
    """Several folds of a row and of what is computed from it, and a result that needs both these and the row."""
    rng = Random(f"{dtype} {n} {seed}")
    names = rng.sample(_FOLDS if "int" not in dtype else _FOLDS[:3], rng.randint(2, 3))
    lines = [f"x = @param:x -> {dtype}{{{_ROWS}, {n}}}"]
    value = "x"
    for i, name in enumerate(names):
        folded = "x" if name == "prod" else value
        if name != "prod" and rng.random() < 0.3:
            lines.append(f"d{i} = sub(x, {value})" if value != "x" else f"d{i} = add(x, x)")
            folded = f"d{i}"
        lines.append(f"r{i} = reduce_{name}[axes={{1}}]({folded})")
        lines.append(f"v{i} = {rng.choice(('add', 'sub', 'max'))}(x, r{i})")
        value = f"v{i}"
    stored = value if rng.random() < 0.7 else f"r{len(names) - 1}"
    return "\n".join(
        [*lines, f"a = argmax[axis=1](x)\n@return({stored}, a)" if rng.random() < 0.4 else f"@return({stored})"]
    )


def one_of_each_algorithm(text: str, target: str) -> list[dict[str, object]]:
    """The cheapest schedule of each algorithm, and of those that walk rows in steps."""
    found = {(s["algo"], s["steps"] > 1): s for s in reversed(schedules(text, target))}
    return list(found.values())


def loads_of_passes(module: Module, program: Program) -> Iterator[tuple[str, int]]:
    """How often a kernel loads each input in each pass over its row."""
    settled, _ = with_values_behind_masks(module, program.library)
    loaded = Counter(
        (item.node.operands[0].attribute("name"), item.loop)
        for item in place(settled, program.library).nodes
        if program.library.role(item.node.op) == "read" and item.node.operands[0] in settled.parameters
    )
    yield from ((name, count) for (name, _), count in loaded.items())


@pytest.mark.parametrize(("target", "dtype", "n"), spread(TARGETS, TYPES, EXTENTS))
def test_a_row_is_loaded_once(target: str, dtype: str, n: int) -> None:
    """By each pass over it, under every algorithm, and the results are right."""
    text = folded_rows(dtype, n)
    found = one_of_each_algorithm(text, target)
    program = lower_each(text, found, target)
    for module, schedule in zip(program.modules, found, strict=True):
        assert all(count == 1 for _, count in loads_of_passes(module, program)), (schedule, text)
    check_schedules(text, found, target)


@pytest.mark.parametrize(
    ("target", "rows"), spread(TARGETS, [("half", 1001), ("float", 1000), ("int8", 4100), ("bf16", 61)])
)
def test_printed_kernels(target: str, rows: tuple[str, int]) -> None:
    """What is printed does the same."""
    text = folded_rows(*rows, seed=1)
    check_host_schedules(text, one_of_each_algorithm(text, target), target)


_BEHIND = [
    ("s = reduce_sum[axes={1}](x)", "float", "sum_float::identity()", 0),
    ("s = reduce_max[axes={1}](x)", "half", "max_half::identity()", 0),
    # What is converted to a fold's identity stands behind the end.
    ("s = reduce_sum[axes={1}](x)", "half", "gen::half(0.0f)", 0),
    ("s = reduce_prod[axes={1}](x)", "half", "gen::half(1.0f)", 0),
    # Another fold wants something else.
    ("m = reduce_max[axes={1}](x)\np = reduce_prod[axes={1}](x)\ns = add(m, p)", "float", "max_float::identity()", 1),
    # Two folds that start from the same.
    (
        "m = reduce_max[axes={1}](x)\nf = convert[target_type=half](x)\nn = reduce_max[axes={1}](f)\ns = add(m, n)",
        "half",
        "max_half::identity()",
        0,
    ),
    # An accumulator is no element of memory.
    ("s = argmax[axis=1](x)", "float", "float()", 1),
    # Nothing is folded.
    ("s = add(x, x)", "float", "float()", 0),
]


@pytest.mark.parametrize(("folds", "dtype", "behind", "choices"), _BEHIND)
def test_what_stands_behind_the_end(folds: str, dtype: str, behind: str, choices: int) -> None:
    """Of a load: what the first fold starts from. Folds that start from something else choose that for each element."""
    text = f"x = @param:x -> {dtype}{{7, 4100}}\n{folds}\n@return(s)"
    algorithm = {} if "reduce" not in folds and "argmax" not in folds else {"algo": "block"}
    program = load(text, schedule=algorithm).lower("final")
    (kernel,) = (print_kernel(m, program.library, program.context(m)).text for m in program.modules)
    (loaded,) = [line for line in kernel.splitlines() if "_load<" in line]
    assert loaded.endswith(f", {behind});"), kernel
    assert kernel.split("GEN_KERNEL")[-1].count(" ? ") == choices, kernel


BITS = """
x = @param:x -> float{2, 3}
b = bitcast[target_type=uint32](x)
y = pad[pads={1, 0, 1, 1}, value=2.0](b)
@return(y)
"""


@pytest.mark.parametrize("target", TARGETS)
def test_what_stands_beside_bits(target: str) -> None:
    """A load gives numbers where it reads nothing, and the bits of a number are another one."""
    check_host(BITS, target)
