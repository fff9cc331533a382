"""HIP source to AMD code objects, with nothing but the clang and lld inside the ziglang package."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from genrw.codegen.compilers import run_compiler, translation_unit, zig
from genrw.grammar.diagnostics import error

_METADATA_NOTE = 32  # NT_AMDGPU_METADATA
_FLAGS = (
    *("-std=c++17", "-O3", "-ffp-contract=off", "-mcode-object-version=5", "-w"),
    *("--offload-device-only", "-nogpuinc", "-nogpulib"),
)


@dataclass(frozen=True)
class KernelReport:
    """What one compiled kernel uses, as its code object states it."""

    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    code_bytes: int
    wavefront_size: int
    kernarg_bytes: int


@dataclass(frozen=True)
class CodeObject:
    """A loadable code object, its assembly text, and a report for each of its kernels."""

    blob: bytes
    assembly: str
    kernels: Mapping[str, KernelReport]


def compile_amd(source: str, arch: str, wave_size: int, name: str = "kernel") -> CodeObject:
    """Compile HIP source for an AMD GPU such as `gfx942`. `name` is the kernel's, for messages."""
    if arch.startswith("gfx9") and wave_size != 64:
        raise error(f"{arch} has waves of 64 lanes, not {wave_size}")
    if wave_size not in (32, 64):
        raise error(f"{arch} has waves of 32 or 64 lanes, not {wave_size}")
    wave_option = [] if arch.startswith("gfx9") else [f"-m{'no-' if wave_size == 32 else ''}wavefrontsize64"]
    target = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-mcode-object-version=5", *wave_option]
    with tempfile.TemporaryDirectory(prefix="genrw") as folder:
        assembly, objects, linked = (Path(folder) / f"k.{suffix}" for suffix in ("s", "o", "co"))
        options = [f"--offload-arch={arch}", f"-DGEN_WAVE_SIZE={wave_size}", *wave_option, *_FLAGS]
        text = translation_unit(source, name)
        run_compiler([zig(), "clang", "-x", "hip", *options, "-S", "-", "-o", str(assembly)], name, text)
        run_compiler([zig(), "clang", *target, "-c", str(assembly), "-o", str(objects)], name)
        run_compiler([zig(), "ld.lld", "-shared", "--no-undefined", str(objects), "-o", str(linked)], name)
        blob = linked.read_bytes()
        return CodeObject(blob, assembly.read_text(encoding="utf-8"), read_reports(blob))


def read_reports(blob: bytes) -> dict[str, KernelReport]:
    """The resources each kernel of a code object uses, from the ELF's metadata note."""
    elf = ELFFile(io.BytesIO(blob))
    sizes = _symbol_sizes(elf)
    return {kernel[".name"]: _report(kernel, sizes[kernel[".name"]]) for kernel in _metadata(elf)["amdhsa.kernels"]}


def _report(kernel: Mapping[str, Any], code_bytes: int) -> KernelReport:
    return KernelReport(
        vgprs=kernel[".vgpr_count"],
        agprs=kernel.get(".agpr_count", 0),
        sgprs=kernel[".sgpr_count"],
        lds_bytes=kernel[".group_segment_fixed_size"],
        scratch_bytes=kernel[".private_segment_fixed_size"],
        vgpr_spills=kernel[".vgpr_spill_count"],
        sgpr_spills=kernel[".sgpr_spill_count"],
        code_bytes=code_bytes,
        wavefront_size=kernel[".wavefront_size"],
        kernarg_bytes=kernel[".kernarg_segment_size"],
    )


def _metadata(elf: ELFFile) -> Mapping[str, Any]:
    for section in elf.iter_sections():
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_name"] == "AMDGPU" and note["n_type"] == _METADATA_NOTE:
                    return dict(msgpack.unpackb(note["n_descdata"]))
    raise error("the code object has no metadata note: it is not an AMD GPU's")


def _symbol_sizes(elf: ELFFile) -> dict[str, int]:
    table = elf.get_section_by_name(".dynsym")
    assert isinstance(table, SymbolTableSection)
    return {symbol.name: symbol["st_size"] for symbol in table.iter_symbols()}
