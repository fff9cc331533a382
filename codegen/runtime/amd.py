"""HIP source to AMD code objects, with nothing but the clang and lld inside the ziglang package."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from genrw.codegen.runtime.compilers import compiler_version, run_compiler, translation_unit, wave_options, zig
from genrw.grammar.cache import cache_folder, cache_key, read_entry, write_entry
from genrw.grammar.diagnostics import GenrwError, error

_VERSION = "-mcode-object-version=5"  # which every ROCm 6 loads
_SEPARATE_SHUFFLES = ("-mllvm", "-amdgpu-dpp-combine=false")
_FLAGS = (
    *("-std=c++17", "-O3", "-ffp-contract=off", "-w", _VERSION),
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


def compile_amd(source: str, arch: str, wave_size: int, name: str = "kernel", *, cache: bool = True) -> CodeObject:
    """Compile HIP source for an AMD GPU such as `gfx942`, or take it from the cache.

    `name` is the kernel's, for messages.
    """
    text = translation_unit(source, name)
    key = cache_key(text, arch, *wave_options(arch, wave_size), *_FLAGS, zig(), compiler_version(zig(), "version"))
    path = cache_folder("amd") / key
    stored = read_entry(path) if cache else None
    if stored is None:
        stored = msgpack.packb(_compile(text, arch, wave_size, name))
        if cache:
            write_entry(path, stored)
    blob, assembly = msgpack.unpackb(stored)
    return CodeObject(blob, assembly, read_reports(blob))


def _compile(text: str, arch: str, wave_size: int, name: str) -> tuple[bytes, str]:
    """The linked code object and its assembly, in three steps: the compiler's own linking needs ROCm."""
    options = wave_options(arch, wave_size)
    flags = [f"--offload-arch={arch}", f"-DGEN_WAVE_SIZE={wave_size}", *options, *_FLAGS]
    target = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", _VERSION, *options]
    with tempfile.TemporaryDirectory(prefix="genrw") as folder:
        assembly, objects, linked = (Path(folder) / f"kernel.{suffix}" for suffix in ("s", "o", "co"))
        to_assembly = [zig(), "clang", "-x", "hip", *flags, "-S", "-", "-o", str(assembly)]
        to_objects = [zig(), "clang", *target, "-c", str(assembly), "-o", str(objects)]
        run_compiler(to_assembly, name, text)
        try:
            run_compiler(to_objects, name)
        except GenrwError:
            # For some GPUs the compiler joins a shuffle and a comparison with a constant to an instruction that
            # they lack, which the assembler refuses.
            run_compiler([*to_assembly, *_SEPARATE_SHUFFLES], name, text)
            run_compiler(to_objects, name)
        run_compiler([zig(), "ld.lld", "-shared", "--no-undefined", str(objects), "-o", str(linked)], name)
        return linked.read_bytes(), assembly.read_text(encoding="utf-8")


def read_reports(blob: bytes) -> dict[str, KernelReport]:
    """The resources that each kernel of a code object uses, from the ELF's metadata note."""
    elf = ELFFile(io.BytesIO(blob))
    sizes = _symbol_sizes(elf)
    kernels = _metadata(elf)["amdhsa.kernels"]
    return {kernel[".name"]: _report(kernel, sizes[kernel[".name"]]) for kernel in kernels}


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
                if note["n_name"] == "AMDGPU":
                    return dict(msgpack.unpackb(note["n_descdata"]))
    raise error("the code object has no metadata note: it is not an AMD GPU's")


def _symbol_sizes(elf: ELFFile) -> dict[str, int]:
    table = elf.get_section_by_name(".dynsym")
    symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
    return {symbol.name: symbol["st_size"] for symbol in symbols}
