"""What a run takes of this machine, told before it begins where that is more than there is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from math import prod

from genrw.engine.interpret.reference import most_held
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Node
from genrw.grammar.diagnostics import error
from genrw.program import Program

_MOST_A_SECOND = 10**10
"""Elements of a kernel's space that no processor goes over in less than a second: the fastest kernels add up a third of that."""
_SHORTER = "run it with shorter lengths"


def check_memory(program: Program) -> None:
    """GenrwError, at the largest of them, where inputs and results take more memory than there is."""
    values = [*program.inputs.values(), *program.results.values()]
    sizes = [max(value.type.elements, value.type.span) * DTYPES[value.type.dtype].itemsize for value in values]
    there = _memory()
    if sum(sizes) > there:
        largest = values[sizes.index(max(sizes))]
        message = f"inputs and results take {_gigabytes(sum(sizes))} of memory, and there are {_gigabytes(there)}"
        raise error(message, largest.span, f"{_SHORTER}; `genrw compile` takes these, too")


def check_evaluated(program: Program, precise: bool, remedy: str) -> None:
    """GenrwError, at the largest of them, where numpy takes more memory for a program's values than there is."""
    there = _memory()
    for module in (module for unit in program.units for module in unit.kernels):
        taken = most_held(module, program.library, precise)
        if taken > there:
            message = f"numpy takes {_gigabytes(taken)} of memory for values as large as this, and there are {_gigabytes(there)}"
            raise error(message, _largest(module.nodes).span, remedy)


def check_time(lowered: Program, seconds: float) -> None:
    """GenrwError, at the largest value, where the CPU goes over more elements than it can in so many seconds."""
    processors = os.cpu_count() or 1
    elements = sum(prod(module.space or ()) for module in lowered.modules)
    least = elements / (_MOST_A_SECOND * processors)
    if least > seconds:
        message = (
            f"kernels go over {elements:,} elements, which takes {processors} processors more than {least:,.0f} seconds"
        )
        loaded = (node for unit in lowered.origin for module in unit.kernels for node in module.nodes)
        raise error(message, _largest(loaded).span, f"{_SHORTER}, or allow more with `--seconds`")


def _largest(nodes: Iterable[Node]) -> Node:
    """The first of the nodes whose tensors have the most elements."""
    return max(nodes, key=lambda node: node.type.elements if node.type.sort == "tensor" else 0)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
