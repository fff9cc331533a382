"""genrw: GPU kernels written as rewrite rules.

    import genrw
    softmax = genrw.compile("examples/softmax.gen")
    y = softmax(x)

`load` checks a program, `lower` prints it at a stage, `emit` prints its HIP C++, `compile` makes it callable, on the CPU
or by `device="cuda"` on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genrw.api import compile, emit, load, lower
    from genrw.executable import Executable
    from genrw.grammar.diagnostics import Diagnostic, GenrwError
    from genrw.program import Program

_HOMES = {
    "load": "genrw.api",
    "lower": "genrw.api",
    "emit": "genrw.api",
    "compile": "genrw.api",
    "Program": "genrw.program",
    "Executable": "genrw.executable",
    "Diagnostic": "genrw.grammar.diagnostics",
    "GenrwError": "genrw.grammar.diagnostics",
}

__all__ = ["Diagnostic", "Executable", "GenrwError", "Program", "compile", "emit", "load", "lower"]


def __getattr__(name: str) -> Any:
    """The parts of the API, imported when first asked for: the rules' engine takes a while to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
