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
from genrw.codegen.runtime.launch import Built, launch_table
from genrw.engine.lowering.program import StagedProgram
from genrw.grammar.diagnostics import error

if TYPE_CHECKING:
    from genrw.engine.library.library import Target

LAUNCH_FILE = "launch.json"
_HEADER_FILE = "gen.hpp"
_ARCH = re.compile(r"[a-z][a-z0-9]*")
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
    kernels = [_build(source, target, files) for source in print_program(program)]
    launch = launch_table(program, kernels)
    files[LAUNCH_FILE] = (launch_text(launch) + "\n").encode()
    return Compiled(files, launch)


def launch_text(launch: Mapping[str, Any]) -> str:
    """A launch table as JSON, lists of plain values in one line each."""
    return _PLAIN_LIST.sub(lambda m: f"[{' '.join(m[1].split())}]", json.dumps(launch, indent=2))


def _build(source: KernelSource, target: Target, files: dict[str, bytes]) -> Built:
    """Compile one kernel; what it gives is added to `files`."""
    names = {"source": f"{source.name}.hip"}
    files[names["source"]] = source.text.encode()
    if target.values.get("device") != "hip":
        return Built(source, names)
    from genrw.codegen.runtime.amd import compile_amd

    arch = str(target.values.get("arch", target.name))
    if not _ARCH.fullmatch(arch):
        raise error(
            f"the target `{target.name}` has the `arch` {arch!r}, which is no GPU's", remedy="write for example gfx942"
        )
    compiled = compile_amd(source.text, arch, source.wave_size, source.name)
    names["code_object"] = f"{source.name}.co"
    files[names["code_object"]] = compiled.blob
    return Built(source, names, compiled.kernels[source.name])
