"""ONNX models as programs and as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from genrw.engine.ir.nodes import Unit
from genrw.engine.library.context import EMPTY
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.programs.array_files import Array, array_bytes, named_files, read_any_array
from genrw.engine.programs.text import unit_text
from genrw.grammar.diagnostics import error
from genrw.grammar.source import Source
from genrw.onnx.file import inlined, read_model
from genrw.program import Program

if TYPE_CHECKING:
    import onnx

    from genrw.onnx.graph import Imported


_T = TypeVar("_T")


@dataclass(frozen=True)
class Model:
    """An imported model: its program's text, and what `Imported` says."""

    text: str
    imported: Imported

    def files(self, name: str) -> dict[str, bytes]:
        """What stands for the model: NAME.gen and the constants."""
        arrays = {file: array_bytes(np.ascontiguousarray(a)) for file, a in self.imported.arrays.items()}
        return {f"{name}.gen": self.text.encode(), **arrays}

    def program(self, name: str, library: Library, options: Options, default_target: str) -> Program:
        """The program, as if read from the model's file."""
        program = Program.parse(Source(name, self.text), library, options, default_target)
        aliases = {foreign: own for own, foreign in self.imported.inputs.items() if foreign != own}
        return replace(program, arrays=self.imported.arrays, unused=self.imported.unused, aliases=aliases)


def import_model(
    model: onnx.ModelProto, library: Library, dims: Mapping[str, int], values: Mapping[str, Array], target: str
) -> Model:
    """A model that was read already; see `import_graph`."""
    from genrw.onnx.graph import DIALECT, import_graph

    known = list(library.dialects.get(DIALECT, ()))
    imported = import_graph(inlined(model, known), library, target, dims, values)
    context = {"target": library.target(target), "schedule": EMPTY}
    return Model(unit_text([Unit((imported.module,))], library, lambda _: context), imported)


def import_file(path: str | Path, library: Library, dims: Sequence[str], inputs: Sequence[str], target: str) -> Model:
    """The model in a file; `dims` are texts `N=8`, `inputs` texts `x=file.npy`."""
    files = _by_name("input", named_files(inputs))
    values = {name: read_any_array(file) for name, file in files.items()}
    return import_model(read_model(path), library, _by_name("dimension", map(_dimension, dims)), values, target)


def _by_name(what: str, pairs: Iterable[tuple[str, _T]]) -> dict[str, _T]:
    found: dict[str, _T] = {}
    for name, value in pairs:
        if name in found:
            raise error(f"the {what} `{name}` is given twice", remedy="leave one of them out")
        found[name] = value
    return found


def _dimension(text: str) -> tuple[str, int]:
    name, _, length = text.partition("=")
    if not name or not length.isdecimal() or int(length) >= 2**48:
        raise error(f"{text!r} gives no dimension a length", remedy="write `--dim N=8`")
    return name, int(length)
