"""Which names a library's texts take from printed kernels, and what kernels and their functions are called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any
from zlib import crc32

from genrw.codegen.hip.header import device_header
from genrw.codegen.hip.identifiers import Names, identifier
from genrw.codegen.hip.monoid_text import struct_name
from genrw.codegen.kernel_ir.kernel import Kernel, Scope, Variable
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Attributes, Module
from genrw.engine.library.library import Library, Operator

_HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_WORD = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")
_DEFINED = re.compile(r"#\s*define\s+(\w+)")
_DECLARED = re.compile(r"(?<![\w.:])([A-Za-z_]\w*)\s*[(\[=;]|\b(?:struct|class|enum|union|using|namespace)\s+(\w+)")


def kernel_names(modules: Iterable[Module], library: Library) -> list[str]:
    """Distinct names for the kernels of modules."""
    names = Names(global_words(library))
    return [names.of_all(module.name, "kernel", "_") for module in modules]


def function_name(operator: str, attributes: Attributes, library: Library) -> str:
    """What kernels call a function: the operator's name, and each attribute that is not its default."""
    declared = library.operator(operator)
    said = [_said(name, value) for name, value in attributes if not declared.has_default(name, value, {})]
    name = identifier("_".join([operator, *said]), "function")
    while _is_of_the_header(name) or (said and name in library.operators):
        name = f"{name}_"
    return name


def _said(name: str, value: Any) -> str:
    """An attribute as a part of a name."""
    if isinstance(value, bool):
        return name if value else f"no_{name}"
    if isinstance(value, int | float):
        return f"{name}_{value}".replace("-", "m").replace(".", "p").replace("+", "")
    word = re.sub(r"\W+", "_", str(value))
    return word if word == value else f"{name}_{word}_{crc32(str(value).encode()):x}"


@cache
def _words_of_the_header() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", re.sub(r"//[^\n]*", "", device_header())))


def _is_of_the_header(name: str) -> bool:
    return name in _words_of_the_header()


def global_words(library: Library) -> set[str]:
    """What stands outside of functions in kernels: the structs of monoids, and what operators put before a kernel."""
    operators = (*library.operators.values(), *library.families)
    return monoid_structs(library).union(*(_declared(operator.decl.device or "") for operator in operators))


def variable_names(kernel: Kernel, names: Names) -> dict[Variable, str]:
    """A name for each variable of a kernel; one that has none of its own is called after another."""
    found: dict[Variable, str] = {}
    for variable in kernel.variables:
        base = found.get(variable.base, "") if variable.base is not None else ""
        wanted = variable.name if variable.name not in (None, base) else f"{base}_{variable.suffix}"
        if variable.scope is Scope.FILE:
            found[variable] = names.of_all(wanted or "", "table")
        else:
            found[variable] = names.variable(wanted or "", "arg" if variable.scope is Scope.ARGUMENT else "value")
    return found


def monoid_structs(library: Library) -> set[str]:
    """The names of all structs of monoids, and of instructions."""
    return {struct_name(monoid, dtype) for monoid in library.monoids for dtype in DTYPES} | {*library.instructions}


def words_of_texts(operators: Iterable[Operator]) -> set[str]:
    """What the texts of operators call by its name alone, and the macros that they define."""
    words: set[str] = set()
    for operator in operators:
        words |= set(_WORD.findall(_HOLE.sub(" ", operator.decl.emit or "")))
        words |= set(_DEFINED.findall(operator.decl.device or ""))
    return words


def _declared(text: str) -> set[str]:
    """Each word that a text may declare outside of braces."""
    depth, outside = 0, []
    for part in re.split(r"([{}])", re.sub(r"//.*|/\*.*?\*/", "", text)):
        depth += {"{": 1, "}": -1}.get(part, 0)
        outside.append(part if depth == 0 else "")
    found = {word for pair in _DECLARED.findall(" ".join(outside)) for word in pair if word}
    return found | set(_DEFINED.findall(text))
