"""A program compiled to files: sources, code objects for targets that have some, and the launch table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genrw.codegen.hip.header import device_header
from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.hip.program import print_program
from genrw.codegen.runtime import launch
from genrw.codegen.runtime.offline import built_for_amd
from genrw.engine.lowering.program import StagedProgram

if TYPE_CHECKING:
    from genrw.codegen.runtime.amd import CodeObject

LAUNCH_FILE = "launch.json"
_HEADER_FILE = "gen.hpp"
_PLAIN_LIST = re.compile(r"\[\s+([^][{}\"]*?)\s+\]")


@dataclass(frozen=True)
class Compiled:
    """The files of a compiled program by name, and its launch table."""

    files: Mapping[str, bytes]
    launch: Mapping[str, Any]


def compile_program(program: StagedProgram) -> Compiled:
    """Print and compile all kernels; GenrwError if the program cannot be lowered or a compiler is missing."""
    target = program.library.target(program.options.target)
    files: dict[str, bytes] = {_HEADER_FILE: device_header().encode()}
    if target.values.get("device") == "hip":
        made = built_for_amd(program)
        kernels = [_file(s, c, files) for s, c in zip(made.sources, made.compiled, strict=True)]
        program = made.program
    else:
        kernels = [_file(source, None, files) for source in print_program(program)]
    table = launch.launch_table(program, kernels)
    files[LAUNCH_FILE] = (launch_text(table) + "\n").encode()
    return Compiled(files, table)


def launch_text(launch: Mapping[str, Any]) -> str:
    """A launch table as JSON, lists of plain values in one line each."""
    return _PLAIN_LIST.sub(lambda m: f"[{' '.join(m[1].split())}]", json.dumps(launch, indent=2))


def _file(source: KernelSource, made: CodeObject | None, files: dict[str, bytes]) -> launch.Built:
    """What the launch table says of a kernel; what it gives is added to `files`."""
    names = {"source": f"{source.name}.hip"}
    files[names["source"]] = source.text.encode()
    if made is None:
        return launch.Built(source, names)
    names["code_object"] = f"{source.name}.co"
    files[names["code_object"]] = made.blob
    return launch.Built(source, names, made.kernels[source.name])
