"""Kernels compiled for GPUs that need not be there, and what they use of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genrw.codegen.runtime.spills import Built, Refusal, built
from genrw.engine.lowering.program import StagedProgram
from genrw.grammar.diagnostics import error

if TYPE_CHECKING:
    from genrw.codegen.runtime.amd import CodeObject

_ARCH = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True)
class Usage:
    """What a kernel's lane takes: registers, and bytes of memory for what these do not hold."""

    registers: int
    scratch_bytes: int


@dataclass(frozen=True)
class Usages:
    """What the lanes of a program's kernels take, kernel by kernel, and the schedules that were refused for it."""

    kernels: Sequence[Usage]
    refused: Sequence[Refusal]


def built_for_amd(program: StagedProgram) -> Built[CodeObject]:
    """A program's kernels as code objects of the AMD GPU that it is lowered for; GenrwError where a compiler is
    missing."""
    from genrw.codegen.runtime.amd import compile_amd

    arch = _arch(program)
    return built(
        program,
        lambda _, sources: [compile_amd(s.text, arch, s.wave_size, s.name) for s in sources],
        lambda made, source: made.kernels[source.name].scratch_bytes,
    )


def usages(program: StagedProgram) -> Usages:
    """What lanes take on the GPU that a program is lowered for; GenrwError where it is none, or its compiler is missing."""
    target = program.library.target(program.options.target)
    if target.values.get("device") == "hip":
        amd = built_for_amd(program)
        reports = [made.kernels[source.name] for made, source in zip(amd.compiled, amd.sources, strict=True)]
        return Usages([Usage(r.vgprs + r.agprs, r.scratch_bytes) for r in reports], amd.refused)
    if target.values.get("device") == "cuda":
        return _of_nvidia(program)
    raise error(
        f"kernels for {target.name} say nothing of registers", remedy="name a GPU's target, for example --target gfx942"
    )


def _of_nvidia(program: StagedProgram) -> Usages:
    from genrw.codegen.runtime.cuda import compile_cuda
    from genrw.codegen.runtime.nvidia import read_reports

    arch = _arch(program)
    made = built(
        program,
        lambda _, sources: [compile_cuda(s.text, arch, s.wave_size, s.name) for s in sources],
        lambda image, source: read_reports(image)[source.name].scratch_bytes,
    )
    reports = [read_reports(image)[source.name] for image, source in zip(made.compiled, made.sources, strict=True)]
    return Usages([Usage(r.registers, r.scratch_bytes) for r in reports], made.refused)


def _arch(program: StagedProgram) -> str:
    """What the vendor's compiler calls the GPU."""
    target = program.library.target(program.options.target)
    arch = str(target.values.get("arch", target.name))
    if target.values.get("device") == "hip" and not _ARCH.fullmatch(arch):
        raise error(
            f"the target `{target.name}` has the `arch` {arch!r}, which is no GPU's", remedy="write for example gfx942"
        )
    return arch
