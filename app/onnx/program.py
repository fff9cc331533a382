"""ONNX models as programs and as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from genrw.engine.ir.nodes import Unit
from genrw.engine.library.context import EMPTY
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.programs.array_files import Array, array_bytes, read_any_array
from genrw.engine.programs.text import unit_text
from genrw.grammar.diagnostics import error
from genrw.grammar.source import Source
from genrw.onnx.file import inlined, read_model
from genrw.program import Program

if TYPE_CHECKING:
    import onnx

    from genrw.onnx.graph import Imported


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
    values = {name: read_any_array(file) for name, file in map(_pair, inputs)}
    return import_model(read_model(path), library, dict(map(_dimension, dims)), values, target)


def _pair(text: str) -> tuple[str, str]:
    name, _, file = text.partition("=")
    return name, file


def _dimension(text: str) -> tuple[str, int]:
    name, _, length = text.partition("=")
    if not name or not length.isdecimal() or int(length) >= 2**48:
        raise error(f"{text!r} gives no dimension a length", remedy="write `--dim N=8`")
    return name, int(length)
