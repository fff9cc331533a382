"""What stands beside a case: a function of a Python file that does the same work on another library's arrays.

The file has a function by a case's name, or by its kernel's: it takes the arrays in the program's order, and by keyword
those of what the program left open that it names. For a program without one, the file's table `OPERATORS` has a function
for each operator, which takes operands and attributes; the counterpart is then written instruction by instruction.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import error
from genrw.measure.cases import BenchCase
from genrw.program import Program

Function = Callable[..., Any]

_TABLE = "OPERATORS"


class Counterparts:
    """The functions of a file. GenrwError if there is no such file."""

    def __init__(self, path: Path) -> None:
        self.file = _module(path)

    def of(self, case: BenchCase, program: Program) -> Function | None:
        """What does a case's work; None where the file has nothing for it."""
        for name in (case.name, case.kernel):
            function = getattr(self.file, name, None)
            if callable(function):
                return _with_keywords(function, case.open)
        table: Mapping[str, Function] = getattr(self.file, _TABLE, {})
        module = _only_module(program)
        if module is None or any(node.op not in table for node in _computed(module, program.library)):
            return None
        return _spelled_out(module, program, table)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("genrw_peers", path)
    if spec is None or spec.loader is None or not path.exists():
        raise error(f"there is no Python file {path}", remedy="give one with a function for each case")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a compiler of Python looks a function's globals up by its module's name
    spec.loader.exec_module(module)
    return module


def _with_keywords(function: Function, given: Mapping[str, Any]) -> Function:
    """The function with those of the values that it takes by keyword."""
    named = inspect.signature(function).parameters.values()
    taken = {p.name: given[p.name] for p in named if p.kind is p.KEYWORD_ONLY and p.name in given}
    return partial(function, **taken) if taken else function


# ---- instruction by instruction


def _only_module(program: Program) -> Module | None:
    """The program as it was loaded, where it is one module."""
    units = program.origin
    return units[0].kernels[0] if len(units) == 1 and units[0].main is None and len(units[0].kernels) == 1 else None


def _computed(module: Module, library: Library) -> list[Node]:
    """The nodes that are operations: no inputs, constants or results."""
    given = {library.boundary(part).name for part in ("input", "constant", "result")}
    return [node for node in module.nodes if node.op not in given]


def _spelled_out(module: Module, program: Program, table: Mapping[str, Function]) -> Function:
    """A Python function with a line for each instruction. It is compiled from text, so that what traces Python sees
    plain calls."""
    library = program.library
    names = {node: f"x{i}" for i, node in enumerate(program.inputs.values())}
    by_name = {node.attribute("name"): text for node, text in names.items()}
    values: dict[Node, str] = {}
    scope: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
    lines = []
    for i, node in enumerate(module.nodes):
        if node.op == library.boundary("input").name:
            values[node] = by_name[node.attribute("name")]
        elif node.op == library.boundary("constant").name:
            values[node] = repr(node.attribute("value"))
        elif node.op == library.boundary("result").name:
            lines.append(f"    return ({', '.join(values[operand] for operand in node.operands)},)")
        else:
            scope[f"f_{node.op}"] = table[node.op]
            values[node] = f"v{i}"
            operands = [values[operand] for operand in node.operands]
            attributes = [f"{name}={value!r}" for name, value in node.attributes]
            lines.append(f"    v{i} = f_{node.op}({', '.join([*operands, *attributes])})")
    text = "\n".join([f"def run({', '.join(names.values())}):", *lines])
    exec(compile(text, "<counterpart>", "exec"), scope)
    run: Function = scope["run"]
    return run
