"""The benchmark suite compiled for every AMD target: what its kernels take of a GPU, and how they reach memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from device_kernels import suite_kernels, together
from test_amd_objects import TARGETS, kernel_text
from together import in_batches

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.amd import KernelReport, compile_amd

# Kernels that cannot read all their operands by 16 bytes, and why.
NARROW = {
    "pad_add_f32_8190x8190": "rows begin one element past a multiple of four",
    "sum_first_f16_8192x50257_to_f32": "columns of misaligned rows",
    "transpose_add_f16_8191x4099": "rows and columns of odd lengths",
    "variance_f32_4097x8191": "the ends of misaligned rows",
}
_LOAD = re.compile(r"\b(?:global|flat|buffer)_load_(\w+)")
_ACCESS = re.compile(r"\bglobal_(?:load|store)_\w+ (.*)")
_SHARED_ADDRESS = re.compile(r"\bs\[\d+:\d+\]")
_ROOM = 512 // 5 // 8 * 8
"""Registers of a lane: they leave room for five waves of eight on each SIMD of CDNA, for all sixteen of RDNA."""
_MANY_REGISTERS = {
    "softmax_f16_4096x50257": "a lane holds 104 halves: one workgroup a unit is what its schedule asks for",
    "layernorm_f16_8192x4096": "a lane holds 32 halves, and as floats while it folds them: four waves of a SIMD",
    "add_layernorm_f16_8192x4096": "the same",
    "layernorm_f32_1024x131072": "a lane folds 16 elements at a time, each with a sum, a count, a mean and squares",
}
_WIDEST = {"dwordx4", "b128"}
_LANES = re.compile(r"\bds_(?:bpermute|permute|swizzle)")


@dataclass(frozen=True)
class Compiled:
    """A kernel of a suite's case, and what became of it."""

    case: str
    source: KernelSource
    report: KernelReport
    assembly: str


def compiled_for(arch: str) -> list[Compiled]:
    """All kernels of the suite for a target, compiled together."""
    kernels = suite_kernels(arch)
    code = compile_amd(together([kernel for _, kernel in kernels]), arch, TARGETS[arch])
    found = []
    for i, (case, source) in enumerate(kernels):
        name = f"k{i}"
        found.append(Compiled(case, source, code.kernels[name], kernel_text(code, name)))
    return found


_PAIRS = {"pw_relu_fma_f16_64M": r"v_pk_fma_f16", "max_last_f16_8192x8192": r"v_pk_max(?:imum3?)?_f16"}
"""Kernels that compute with halves, two at a time, and by which instruction."""


@pytest.mark.parametrize("arch", in_batches(TARGETS, len(TARGETS), "suite"))
def test_the_suite(arch: str) -> None:
    compiled = compiled_for(arch)
    spilled = [c.case for c in compiled if c.report.scratch_bytes or c.report.vgpr_spills or c.report.sgpr_spills]
    assert spilled == []
    # Which of these are cut into more kernels depends on the target.
    assert {c.case for c in compiled if c.report.vgprs > _ROOM} <= _MANY_REGISTERS.keys()
    assert all(c.report.vgprs <= 2 * _ROOM for c in compiled)
    assert {c.case for c in compiled if set(_LOAD.findall(c.assembly)) - _WIDEST} == set(NARROW)
    # Scalar registers hold an address that all lanes share; a lane adds an offset of 32 bits.
    accesses = [operands for c in compiled for operands in _ACCESS.findall(c.assembly)]
    assert sum(bool(_SHARED_ADDRESS.search(operands)) for operands in accesses) >= 0.75 * len(accesses)
    # What kernels know of their launch, they do not load.
    assert not any("gen::global_id()" in c.source.text for c in compiled)
    for c in compiled:
        assert c.case not in _PAIRS or re.search(rf"\b{_PAIRS[c.case]}\b", c.assembly), c.case
        if "dpp_reduce" in c.source.text and c.report.wavefront_size == 64:
            assert "dpp" in c.assembly, c.case
            # What DPP cannot do is to reach across the 16 lanes of a row without going on to all 64.
            assert "_float, 32>" in c.source.text or not _LANES.search(c.assembly), c.case
