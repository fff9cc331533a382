"""Instructions of a suite's kernels as they are compiled for an AMD GPU: how many compute, how many of these work on integers,
and how kernels reach memory. Nothing is run; a loop's body counts once.

    python bench/instructions.py gpu --target gfx942
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from table import parser, report

from genrw.api import load_source
from genrw.codegen.runtime.amd import CodeObject, compile_amd
from genrw.engine.lowering.options import Options
from genrw.measure.cases import suite

HEADINGS = ("kernel", "vector", "integer", "share", "accesses", "shared", "16 bytes", "vgprs", "scratch")

_INSTRUCTION = re.compile(r"^\s+([a-z]+_\w+)(.*)$", re.MULTILINE)
_VECTOR = re.compile(r"v_(?!accvgpr|mfma|wmma|dot)")
_NO_INTEGERS = re.compile(r"v_(?:\w*b?f(?:16|32|64)(?:_|$)|cvt_|mov_|cndmask_|cmp|read|write|perm|pk_)")
_ACCESS = re.compile(r"(?:global|flat|buffer)_(?:load|store)_(\w+)")
_SHARED_ADDRESS = re.compile(r"\bs\[\d+:\d+\]")
_WIDEST = {"dwordx4", "b128"}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("suite", nargs="?", default="gpu")
    options.add_argument("--only", metavar="TEXT", help="only cases whose name holds this")
    options.add_argument("--target", default="gfx942")
    given = options.parse_args()
    rows = [
        row
        for case in suite(given.suite, given.only, True)
        for row in _of_program(case.name, case.source, given.target)
    ]
    total = [sum(row[i] for row in rows) for i in range(1, 9)]
    rows.append(("all", *total[:2], _share(total[1], total[0]), *total[3:6], "", total[7]))
    report(HEADINGS, rows, given.json)


def _of_program(name: str, source: object, target: str) -> Iterator[tuple]:
    program = load_source(source, Options(target=target))
    for kernel in program.kernels():
        code = compile_amd(kernel.text, target, kernel.wave_size, kernel.name)
        yield (f"{name}/{kernel.name}", *_figures(code, kernel.name))


def _figures(code: CodeObject, name: str) -> tuple[float, ...]:
    found = _INSTRUCTION.findall(code.assembly)
    vector = [instruction for instruction, _ in found if _VECTOR.match(instruction)]
    integer = [instruction for instruction in vector if not _NO_INTEGERS.match(instruction)]
    accesses = [(m[1], operands) for instruction, operands in found if (m := _ACCESS.fullmatch(instruction))]
    return (
        *(len(vector), len(integer), _share(len(integer), len(vector)), len(accesses)),
        sum(bool(_SHARED_ADDRESS.search(operands)) for _, operands in accesses),
        sum(width in _WIDEST for width, _ in accesses),
        *(code.kernels[name].vgprs, code.kernels[name].scratch_bytes),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


if __name__ == "__main__":
    main()
