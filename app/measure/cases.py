"""The programs that are measured: files of a folder, or kernels of a suite with the shapes of its tables.

A suite with tables is a folder of programs that leave something open, `KERNEL.gen.jinja`, and of what they leave open,
`cases.toml`: tables of networks, in which each layer names its kernel. `quick.toml` is the same at small extents.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta
from jinja2.sandbox import SandboxedEnvironment

from genrw.folders import PROGRAM
from genrw.grammar.diagnostics import error
from genrw.grammar.read import read_text
from genrw.grammar.source import Source

SUITES = Path(__file__).parents[1] / "suites"
RANDOM = "random"
"""The suite of programs that are not written down."""

_TEMPLATE = f"{PROGRAM}.jinja"
_TABLE, _QUICK_TABLE = "cases.toml", "quick.toml"
_KERNEL = "kernel"


@dataclass(frozen=True)
class BenchCase:
    """A program to measure. `kernel` is what cases of other shapes share, and `open` what it left open, by name."""

    name: str
    source: Source
    kernel: str
    open: Mapping[str, Any] = field(default_factory=dict)


def suite(name: str, only: str | None = None, quick: bool = False) -> list[BenchCase]:
    """The cases of a folder or a shipped suite, or a program alone; those whose name holds `only`. GenrwError where there
    are none."""
    cases = [_of_file(Path(name))] if Path(name).is_file() else cases_in(name, quick)
    if cases is None:
        raise error(
            f"there is no suite `{name}`",
            remedy=f"name a program, a folder of programs, or {_shipped_names()}, {RANDOM}",
        )
    found = [case for case in cases if only is None or only in case.name]
    if not found:
        names = ", ".join(case.name for case in cases)
        raise error(f"the suite `{name}` has no program whose name holds `{only}`", remedy=f"it has {names}")
    return found


def cases_in(name: str, quick: bool = False) -> list[BenchCase] | None:
    """The cases of a folder, else of a shipped suite; None for what is neither. `quick`: those at small extents.
    GenrwError for a folder without any."""
    folder = Path(name)
    found = _of_folder(folder, quick) if folder.is_dir() else []
    if not found and name in _shipped():
        return _of_folder(_shipped()[name], quick)
    if not found and folder.is_dir():
        below = next(folder.glob(f"*/*{PROGRAM}"), None)
        where = str(below.parent) if below is not None else f"a folder that has, or {_shipped_names()}"
        raise error(f"the folder `{name}` has no {PROGRAM} programs", remedy=f"name {where}")
    return found or None


def _shipped() -> dict[str, Path]:
    """The folders of shipped suites by name, but for that of random programs, which has no cases of its own."""
    return {folder.name: folder for folder in sorted(SUITES.iterdir()) if _of_folder(folder, quick=False)}


def _shipped_names() -> str:
    return ", ".join(_shipped())


def _of_folder(folder: Path, quick: bool) -> list[BenchCase]:
    """Its programs in order of name, and those of its table in the table's order."""
    table = folder / (_QUICK_TABLE if quick else _TABLE)
    programs = [_of_file(path) for path in sorted(folder.glob(f"*{PROGRAM}"))]
    return programs + (list(_of_table(table)) if table.is_file() else [])


def _of_file(path: Path) -> BenchCase:
    return BenchCase(path.stem, read_text(path), path.stem)


# ---- tables


def _of_table(table: Path) -> Iterator[BenchCase]:
    try:
        networks = tomllib.loads(read_text(table).text)
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{table}: {problem}", remedy="write it as TOML") from None
    named: set[str] = set()
    for network, layers in networks.items():
        if not isinstance(layers, dict):
            raise error(
                f"{table}: `{network}` is no table of layers", remedy=f"write [{network}], and its layers below"
            )
        for layer, row in layers.items():
            if not isinstance(row, dict):
                raise error(
                    f"{table}: `{layer}` of `{network}` is no row", remedy=f"write {layer} = {{ {_KERNEL} = …, … }}"
                )
            values = {key: value for key, value in row.items() if key != _KERNEL}
            kernel = str(row.get(_KERNEL, layer))
            name = "-".join([network, layer, *([kernel] if kernel != layer else []), _shape(values)])
            _check_name(table, name, named)
            named.add(name)
            yield BenchCase(name, Source(name, _filled(table, name, kernel, values)), kernel, values)


def _check_name(table: Path, name: str, others: Collection[str]) -> None:
    """A case's program is written to a file of its name."""
    if name != Path(name).name or "\0" in name:
        raise error(f"{table}: `{name}` is no name of a file", remedy="call networks, layers and kernels otherwise")
    if name in others:
        raise error(f"{table}: two cases are called `{name}`", remedy="call one of their networks or layers otherwise")


def _shape(values: Mapping[str, Any]) -> str:
    """What a case's name says of what the program leaves open: types, then extents."""
    extents = "x".join(str(value) for value in values.values() if isinstance(value, int))
    return "-".join([*(value for value in values.values() if isinstance(value, str)), extents])


def _filled(table: Path, name: str, kernel: str, values: Mapping[str, Any]) -> str:
    """The program of a kernel with what it leaves open filled in."""
    path = table.parent / f"{kernel}{_TEMPLATE}"
    if not path.is_file():
        kernels = ", ".join(sorted(p.name.removesuffix(_TEMPLATE) for p in table.parent.glob(f"*{_TEMPLATE}")))
        raise error(
            f"{table}: `{name}` is of the kernel `{kernel}`: there is no {path.name}", remedy=f"kernels are {kernels}"
        )
    template, open_names = _template(path)
    if open_names != values.keys():
        named = ", ".join(sorted(open_names))
        raise error(f"{table}: `{name}` gives {', '.join(sorted(values))}", remedy=f"`{kernel}` leaves open {named}")
    try:
        return template.render(values)
    except Exception as problem:  # whatever the expressions of a template raise
        raise error(f"{path}: `{name}` cannot be filled in: {problem}", remedy="mend what stands in $(…)") from None


@cache
def _template(path: Path) -> tuple[jinja2.Template, frozenset[str]]:
    """A program that leaves something open, and what: `$(rows)`, `$(2 * width)`."""
    environment = template_environment()
    text = read_text(path).text
    try:
        return environment.from_string(text), frozenset(meta.find_undeclared_variables(environment.parse(text)))
    except jinja2.TemplateSyntaxError as problem:
        raise error(
            f"{path}:{problem.lineno}: {problem.message}", remedy="write $(NAME) for what is left open"
        ) from None


def template_environment() -> jinja2.Environment:
    """How programs leave something open: `$(NAME)`, or an expression in such parentheses. Suites may be a stranger's."""
    return SandboxedEnvironment(
        variable_start_string="$(",
        variable_end_string=")",
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
