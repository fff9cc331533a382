"""What a compiled kernel uses of an NVIDIA GPU, as its code object states it."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

_INFO = ".nv.info"
_WITH_SIZE = 4
"""The format of entries that say how many bytes they have; all others have two."""
_FRAME_SIZE, _REGISTERS = 0x11, 0x2F


@dataclass(frozen=True)
class KernelReport:
    """The registers of a lane, and the bytes of memory that each lane has for what registers do not hold."""

    registers: int
    scratch_bytes: int


def read_reports(blob: bytes) -> dict[str, KernelReport]:
    """The resources that each kernel of a cubin uses, from the section that lists them by number of symbol."""
    elf = ELFFile(io.BytesIO(blob))
    section, table = elf.get_section_by_name(_INFO), elf.get_section_by_name(".symtab")
    if section is None or not isinstance(table, SymbolTableSection):
        return {}
    found: dict[int, dict[int, int]] = {_FRAME_SIZE: {}, _REGISTERS: {}}
    for attribute, value in _entries(section.data()):
        if attribute in found:
            symbol, number = struct.unpack("<II", value)
            found[attribute][symbol] = number
    return {table.get_symbol(s).name: _report(s, found) for s in found[_REGISTERS]}


def _report(symbol: int, found: Mapping[int, Mapping[int, int]]) -> KernelReport:
    return KernelReport(found[_REGISTERS][symbol], found[_FRAME_SIZE].get(symbol, 0))


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Attributes and their values."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _WITH_SIZE:
            yield attribute, data[at : at + size]
            at += size
