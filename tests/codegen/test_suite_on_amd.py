"""The benchmark suite compiled for every AMD target: what its kernels take of a GPU, and how they reach memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import genrw
from genrw.bench import suite
from genrw.codegen.amd import KernelReport, compile_amd
from genrw.codegen.printer import KernelSource

TARGETS = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32}

# Kernels that cannot read all their operands by 16 bytes, and why.
NARROW = {
    "pad_add_f32_8190x8190": "rows begin one element past a multiple of four",
    "softmax_f16_4096x50257": "the ends of misaligned rows",
    "sum_first_f16_8192x50257_to_f32": "columns of misaligned rows",
    "transpose_add_f16_8191x4099": "rows and columns of odd lengths",
    "transpose_add_f32_8192x8192": "tiles are read and written an element at a time",
    "variance_f32_4097x8191": "the ends of misaligned rows",
}
_LOAD = re.compile(r"\b(?:global|flat|buffer)_load_(\w+)")
_WIDEST = {"dwordx4", "b128"}
_LANES = re.compile(r"\bds_(?:bpermute|permute|swizzle)")


@dataclass(frozen=True)
class Compiled:
    """A kernel of a suite's case, and what became of it."""

    case: str
    source: KernelSource
    report: KernelReport
    assembly: str


@pytest.fixture(scope="module", params=TARGETS)
def compiled(request: pytest.FixtureRequest) -> list[Compiled]:
    """All kernels of the suite for a target, compiled together."""
    arch: str = request.param
    kernels: list[tuple[str, KernelSource]] = []
    for path in suite("gpu"):
        program = genrw.load(path, target=arch)
        kernels += [(path.stem, kernel) for kernel in program.kernels()]
    code = compile_amd(_together([kernel for _, kernel in kernels]), arch, TARGETS[arch])
    found = []
    for i, (case, source) in enumerate(kernels):
        name = f"k{i}"
        start = code.assembly.index(f"\n{name}:")
        text = code.assembly[start : code.assembly.index(".section", start)]
        found.append(Compiled(case, source, code.kernels[name], text))
    return found


def _together(kernels: list[KernelSource]) -> str:
    """The kernels as one source, each in a namespace of its own, what operators give them once."""
    helpers = dict.fromkeys(helper for kernel in kernels for helper in kernel.helpers)
    bodies = []
    for i, kernel in enumerate(kernels):
        text = kernel.text
        for helper in kernel.helpers:
            text = text.replace(helper, "")
        bodies.append(f"namespace s{i} {{\n{text.replace(f'{chr(10)}{kernel.name}(', f'{chr(10)}k{i}(')}\n}}")
    return "\n".join(['#include "gen.hpp"', *helpers, *(body.replace('#include "gen.hpp"', "") for body in bodies)])


def test_nothing_is_spilled(compiled: list[Compiled]) -> None:
    spilled = [c.case for c in compiled if c.report.scratch_bytes or c.report.vgpr_spills or c.report.sgpr_spills]
    assert spilled == []


def test_registers_leave_room_for_most_waves(compiled: list[Compiled]) -> None:
    """Five waves of eight on each SIMD of CDNA, all sixteen of RDNA."""
    assert [(c.case, c.report.vgprs) for c in compiled if c.report.vgprs > 512 // 5 // 8 * 8] == []


def test_memory_is_read_by_16_bytes(compiled: list[Compiled]) -> None:
    narrow = {c.case for c in compiled if set(_LOAD.findall(c.assembly)) - _WIDEST}
    assert narrow == set(NARROW)


def test_lanes_meet_by_dpp(compiled: list[Compiled]) -> None:
    for c in compiled:
        if "dpp_reduce" in c.source.text and c.report.wavefront_size == 64:
            assert "dpp" in c.assembly, c.case
            # What DPP cannot do is to reach across the 16 lanes of a row without going on to all 64.
            assert "_float, 32>" in c.source.text or not _LANES.search(c.assembly), c.case
