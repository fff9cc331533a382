"""What the tests of single stages share: a program at a stage, its operators, its text, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import differences, inputs_and_reference, load

from genrw.engine.ir.nodes import Node
from genrw.program import Program


def at(stage: str, text: str, **options: Any) -> Program:
    """A program at a stage."""
    return load(text, **options).lower(stage)


def found(program: Program, op: str) -> list[Node]:
    """The uses of an operator, operands first."""
    return [node for node in program.modules[0].nodes if node.op == op]


def only(program: Program, op: str) -> Node:
    """The one use of an operator."""
    nodes = found(program, op)
    assert len(nodes) == 1, f"{len(nodes)} uses of {op} in\n{program}"
    return nodes[0]


def listing(program: Program) -> str:
    """The program's instructions, without its header."""
    return str(program).partition("\n")[2]


def body(program: Program) -> list[str]:
    """The lines of the printed kernel, between its braces."""
    lines = program.kernels()[0].text.partition("GEN_KERNEL")[2].splitlines()
    return [line.strip() for line in lines[lines.index("{") + 1 : -1]]


def assert_right(text: str, **options: Any) -> None:
    """The interpreter at the last stage and the kernel on the CPU give what the program means."""
    inputs, want = inputs_and_reference(text)
    program = load(text, **options)
    for device in ("interpret", "host"):
        problems = differences(program, program.lower(program.stages[-1]).run(inputs, device), want)
        assert not problems, f"{device}: {problems}"


def written(text: str, **inputs: Any) -> np.ndarray[Any, Any]:
    """What a program that is given for one lane writes: the interpreter at each stage and the kernel agree."""
    program = load(text)
    results = [program.run(inputs, "interpret"), program.lower("final").run(inputs, "interpret"), program.run(inputs)]
    first, *others = ([np.asarray(value) for value in result.values()] for result in results)
    assert len(first) == 1
    assert all(np.array_equal(first[0], other[0]) for other in others)
    return first[0]
