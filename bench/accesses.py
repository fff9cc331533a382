"""How kernels access memory: the width of accesses, and the work on indices, of each kernel of a suite as it is scheduled.

Nothing is run. A table ranks the kernels by how many times as many accesses as the widest ones would be a lane takes. A
folder gets their texts, if one is named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from table import parser

from genrw.api import load_source
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.programs.space import space_record
from genrw.measure.cases import BenchCase, suite
from genrw.program import Program

WIDEST = 16
"""Bytes of the widest access of a lane."""


@dataclass(frozen=True)
class Accesses:
    """What a lane of a kernel does for each of its elements. `times`: its accesses over as many of the widest as move
    all bytes once; `narrow`: the part of the bytes it asks for that narrower ones move; `divisions`: by numbers that are
    no powers of two, for each element; `widths`: bytes of accesses of each memory."""

    case: str
    kernel: str
    schedule: str
    workgroups: int
    lanes: int
    times: float
    narrow: float
    divisions: float
    widths: str


def main() -> None:
    given = _options()
    found = []
    for case in suite(given.suite, given.only, given.quick):
        found += _of_case(case, given.target, given.kernels)
    found.sort(key=lambda a: -a.times)
    for a in found:
        print(
            f"{a.times:6.2f}  {a.narrow:5.0%}  {a.divisions:6.2f} ÷  {a.case}/{a.kernel}  {a.schedule}  {a.workgroups} × {a.lanes}  {a.widths}"
        )
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(a) for a in found], indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    made = parser(__doc__ or "")
    made.add_argument("suite", nargs="?", default="models")
    made.add_argument("--only", metavar="TEXT", help="only cases whose name holds this")
    made.add_argument("--quick", action="store_true", help="the suite's small extents")
    made.add_argument("--target", default="sm_90")
    made.add_argument("--kernels", metavar="DIR", type=Path, help="write the kernels there")
    return made.parse_args()


def _of_case(case: BenchCase, target: str, folder: Path | None) -> Iterator[Accesses]:
    program = load_source(case.source, Options(target=target))
    lowered = program.lower(program.stages[-1])
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        texts = [kernel.text for kernel in lowered.kernels()]
        (folder / f"{case.name}.hip").write_text("\n".join(texts), encoding="utf-8")
    for module in lowered.modules:
        yield _of_kernel(case.name, module, lowered)


def _of_kernel(case: str, module: Module, program: Program) -> Accesses:
    library = program.library
    schedule = dict(module.schedule)
    share = max([node.type.size for node in module.nodes], default=0) or 1
    reads = [node for node in module.nodes if _memory(node, library) is not None]
    taken = sum(_accesses(node) for node in reads)
    bytes_ = sum(_accesses(node) * _width(node) for node in reads)
    narrow = sum(_accesses(node) * _width(node) for node in reads if _width(node) < WIDEST)
    space = space_record(module, library)
    lane_elements = space["elements"] / max(1, schedule["grid"] * schedule["block_size"] * schedule["steps"])
    moved = sum(p.type.elements * DTYPES[p.type.dtype].itemsize for p in module.parameters)
    least = moved / max(1, space["elements"]) * lane_elements / WIDEST
    return Accesses(
        case,
        module.name,
        " ".join(f"{key}={schedule[key]}" for key in ("algo", "vector", "share", "steps")),
        schedule["grid"],
        schedule["block_size"],
        taken / least if least else 0.0,
        narrow / bytes_ if bytes_ else 0.0,
        sum(_divisions(node) for node in module.nodes) / share,
        " ".join(f"{_memory(node, library)}:{_width(node)}×{_accesses(node)}" for node in reads),
    )


def _memory(node: Node, library: Library) -> str | None:
    """The parameter that a node reads or writes."""
    if library.role(node.op) not in ("read", "write"):
        return None
    memory = node.operands[library.part(node.op, 0)]
    return str(memory.attribute("name")) if memory.op == library.boundary("input").name else None


def _vector(node: Node) -> int:
    return int(dict(node.attributes).get("vector", 1))


def _item(node: Node) -> int:
    return DTYPES[node.operands[0].type.dtype].itemsize


def _width(node: Node) -> int:
    """Bytes of an access."""
    return min(WIDEST, _vector(node) * _item(node))


def _accesses(node: Node) -> int:
    """How many a lane takes."""
    if node.op.startswith("vector"):
        size = node.type.size or max(o.type.size for o in node.operands)
        return max(1, size * _item(node) // _width(node))
    return _places(node.operands[1])


def _places(index: Node) -> int:
    """How many different ones an index names, at most: compilers read what stands at one place once."""
    if index.op == "chunk_index":
        return index.type.size // _vector(index)
    if index.op == "strided_index" and dict(index.attributes)["stride"] == 0 and _vector(index) == 1:
        return 1
    if index.op == "strided_index":
        return index.type.size
    return max([_places(o) for o in index.operands if o.type.sort == "index"], default=1)


def _divisions(node: Node) -> int:
    """How many divisions by numbers that are no powers of two a lane takes, at most."""
    if node.op not in ("idiv", "imod"):
        return 0
    divisor = node.operands[1].attributes and dict(node.operands[1].attributes).get("value", 1)
    return 0 if divisor & (divisor - 1) == 0 else max(1, node.type.size)


if __name__ == "__main__":
    main()
