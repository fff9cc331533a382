"""Kernels as HIP C++: a kernel of the IR, its statements printed one after the other, for a GPU and for the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from genrw.codegen.hip.expression_text import ExpressionText
from genrw.codegen.hip.function_text import function_text
from genrw.codegen.hip.heading import heading_of
from genrw.codegen.hip.host_lane_loops import lane_loops
from genrw.codegen.hip.identifiers import KEPT, Names
from genrw.codegen.hip.names import kernel_names, monoid_structs, variable_names, words_of_texts
from genrw.codegen.hip.own_text import OwnText
from genrw.codegen.hip.statement_text import Note, StatementText
from genrw.codegen.hip.trust import Vetting
from genrw.codegen.kernel_ir.build import build_kernel
from genrw.codegen.kernel_ir.inlining import inlined
from genrw.codegen.kernel_ir.kernel import Apply, Kernel, Variable, in_turns
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module
from genrw.engine.language.cpp_expr import cpp_number
from genrw.engine.library.library import Library

_LONGEST_INLINE = 72


@dataclass(frozen=True)
class Argument:
    """A kernel argument: its name in C++ and that of its parameter in the program, element type, C++ type, lengths,
    element strides, and whether it is written. `described`: what the launcher is to make of the parameter's address."""

    name: str
    parameter: str
    dtype: str
    cpp: str
    lens: tuple[int, ...]
    strides: tuple[int, ...]
    written: bool
    described: Description | None = None


@dataclass(frozen=True)
class Description:
    """How a tensor's memory is described to a kernel: lengths and element strides, those of the innermost axis last; how many
    elements behind the parameter's first one it begins; the lengths of the boxes that are copied at a time; and the bytes of
    their rows of which chunks are exchanged, 0 if none are. A picture's axes have `places` that are walked, all but the first and the
    last so many `steps` apart from where they begin (`begins`). `text`: the kernel's parameter in C++."""

    lens: tuple[int, ...]
    strides: tuple[int, ...]
    begin: int
    box: tuple[int, ...]
    swizzle: int
    text: str
    places: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelSource:
    """A printed kernel and what launching it takes: `groups` of `block` lanes. A GPU, where waves may have work of their own and
    workgroups take turns, has `launched_groups` of `launched` lanes. `lds_bytes`: workgroup memory, of which the launch is to ask for
    `dynamic_lds_bytes`. `waits`: the kernel itself waits for those before it, so it may be started while they end.
    `helpers`: the parts of the text that belong to operators and that kernels may share; `host_text`: the kernel for the
    CPU; `in_loops`: there it has loops over its lanes, several of which meet at barriers or in cross-lane operations.
    `own_texts`: what rules that did not come with genrw brought of both texts."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    groups: int
    launched_groups: int
    block: int
    launched: int
    wave_size: int
    lds_bytes: int
    dynamic_lds_bytes: int
    waits: bool
    helpers: tuple[str, ...]
    host_text: str
    in_loops: bool
    own_texts: tuple[OwnText, ...] = ()


def print_kernel(
    module: Module,
    library: Library,
    context: Mapping[str, Any],
    program: str = "",
    name: str | None = None,
    note: Note | None = None,
    vetting: Vetting | None = None,
) -> KernelSource:
    """The HIP C++ of a module at the last stage. `program` is the `.gen` text it came from, for the heading; `note` says
    of the values that a line computes what its comment is to be, "" for none. `vetting` looks at the texts of operators:
    without one, the kernel is to be shown only, or its rules are trusted."""
    kernel = build_kernel(module, library, context)
    printer = _Printer(kernel, library, context, name or kernel_names([module], library)[0], vetting)
    return printer.source(program, note)


class _Printer:
    def __init__(
        self, kernel: Kernel, library: Library, context: Mapping[str, Any], name: str, vetting: Vetting | None
    ) -> None:
        self.library, self.name = library, name
        self.abilities = context["target"].values
        self.declarable = int(context["target"].member("lds_bytes")) if self._can("dynamic_lds") else 0
        self.names, allowed = self._names(kernel)
        self.expressions = ExpressionText(kernel, library, self.abilities, self.names, vetting, allowed)
        # Before values are written into their users, for each has its operator's texts in the order of the program.
        self.heading = heading_of(
            kernel, library, vetting, self.expressions.own, lambda f: function_text(f, self.expressions, library)
        )
        self.kernel = inlined(kernel, lambda e: len(self.expressions.text(e)) <= _LONGEST_INLINE)
        self.expressions.computed.clear()

    def _names(self, kernel: Kernel) -> tuple[dict[Variable, str], frozenset[str]]:
        """The names of variables, and all that texts of operators may say besides their own."""
        structs = monoid_structs(self.library)
        operators = map(self.library.operator, kernel.operators)
        names = Names({self.name, *structs, *words_of_texts(operators)})
        found = variable_names(kernel, names)
        return found, frozenset(names.given | structs)

    def source(self, program: str, note: Note | None) -> KernelSource:
        """The printed kernel."""
        kernel = self.kernel
        arguments = self._arguments()
        parameters = [_parameter(argument) for argument in arguments]
        frame = self._frame(program)
        told = None if note is None else lambda nodes: note([kernel.stands_for.get(id(n), n) for n in nodes])
        statements = StatementText(self.expressions, kernel.spills, self._is_dynamic(), told)
        text = _rendered(frame, parameters, [*statements.lines(kernel.body, 1)])
        in_loops = kernel.block > 1 and kernel.meets
        return KernelSource(
            self.name,
            text,
            arguments,
            kernel.grid,
            kernel.launched_groups,
            kernel.block,
            kernel.launched,
            kernel.wave,
            self._allocated_bytes() + self._spilled_bytes(),
            self._dynamic_bytes(),
            self._can("overlapping_launches"),
            tuple(self.heading.devices.values()),
            self._host_text(frame, parameters) if in_loops else text,
            in_loops,
            tuple(self.expressions.own.found),
        )

    def _frame(self, program: str) -> dict[str, Any]:
        """What stands around a kernel's body."""
        return {
            "name": self.name,
            "target": self.kernel.target,
            "groups": self.kernel.launched_groups,
            "block": self.kernel.launched,
            "resident": self.kernel.resident,
            "waits": self._can("overlapping_launches"),
            "program": program.strip().split("\n") if program else [],
            "devices": list(self.heading.devices.values()),
            "structs": [*self.heading.monoids.values(), *self.heading.instructions.values()],
            "tables": self._tables(),
        }

    def _host_text(self, frame: Mapping[str, Any], parameters: Sequence[str]) -> str:
        """The kernel as loops over lanes, whose variables the caller keeps."""
        loops = lane_loops(in_turns(self.kernel.body), self.expressions, self.kernel.spills, self._is_dynamic())
        return _rendered(frame, [f"{self.name}_lanes& {KEPT}", *parameters], loops.lines, loops.members)

    def _arguments(self) -> tuple[Argument, ...]:
        arguments = []
        for argument in self.kernel.arguments:
            given, type_ = argument.parameter.attribute("name"), argument.parameter.type
            name, cpp = self.names[argument.variable], DTYPES[type_.dtype].cpp
            described = self._description(argument.described)
            arguments.append(
                Argument(name, given, type_.dtype, cpp, type_.lens, type_.layout, argument.written, described)
            )
        return tuple(arguments)

    def _description(self, made: Apply | None) -> Description | None:
        if made is None:
            return None
        type_, text = made.node.type, self.expressions.text(made)
        self.expressions.computed.clear()
        return Description(type_.lens, type_.layout, **self.library.description(made.node), text=text)

    def _tables(self) -> list[dict[str, str]]:
        tables = []
        for table in self.kernel.tables:
            dtype = table.variable.type.dtype
            elements = ", ".join(cpp_number(value, dtype) for value in table.values)
            tables.append({"type": DTYPES[dtype].cpp, "name": self.names[table.variable], "elements": elements})
        return tables

    # ---- workgroup memory

    def _can(self, ability: str) -> bool:
        """Has the target an ability that few have?"""
        return bool(self.abilities.get(ability, False))

    def _spilled_bytes(self) -> int:
        return sum(s.count * DTYPES[v.type.dtype].itemsize for v, s in self.kernel.spills.items())

    def _allocated_bytes(self) -> int:
        return sum(buffer.bytes for buffer in self.kernel.buffers)

    def _is_dynamic(self) -> bool:
        """Is there more workgroup memory than a kernel may declare, so that the launch has to ask for it?"""
        return self._can("dynamic_lds") and self._allocated_bytes() > self.declarable

    def _dynamic_bytes(self) -> int:
        """What the launch has to ask for: all that arrays leave to it, too, where a target lets it ask."""
        if not self._can("dynamic_lds"):
            return 0
        return self._spilled_bytes() + (self._allocated_bytes() if self._is_dynamic() else 0)


def _parameter(argument: Argument) -> str:
    """A kernel's parameter."""
    if argument.described is not None:
        return argument.described.text
    return f"{'' if argument.written else 'const '}{argument.cpp}* __restrict__ {argument.name}"


def _rendered(
    frame: Mapping[str, Any], parameters: Sequence[str], lines: Sequence[str], members: Sequence[str] | None = None
) -> str:
    """A kernel's whole text; `members` are those of the struct of its lanes' variables, None if it has no such."""
    one_line = ", ".join(parameters)
    shown = one_line if len(one_line) < 90 else (",\n" + " " * (len(frame["name"]) + 1)).join(parameters)
    made = _kernel_template().render(frame, parameters=shown, body="\n".join(lines), members=members)
    return made + "\n"


@cache
def _kernel_template() -> jinja2.Template:
    text = (Path(__file__).parents[1] / "templates" / "kernel.hip").read_text(encoding="utf-8")
    return jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False).from_string(text)
