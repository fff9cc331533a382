"""Kernels as HIP C++: a lane program of the last stage, printed value by value.

Each operator gives its own text (`emit`, or its `means` as C++); this module decides names, types, loops and which
values stand in a line of their own. Values that the program names get one; others are written into their only user
while the line stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import inf, prod
from pathlib import Path
from typing import Any

import jinja2

from genrw.codegen.hip.host_lane_loops import KEPT, Line, Loop, Variable, lane_loops, straight
from genrw.codegen.hip.identifiers import Names
from genrw.codegen.hip.instruction_text import instruction_struct, multiplied
from genrw.codegen.hip.monoid_text import cpp_type, monoid_struct, struct_name
from genrw.codegen.hip.names import kernel_names, monoid_structs, words_of_texts
from genrw.codegen.hip.pipelining import Ahead, ahead_of_time
from genrw.codegen.hip.placement import Pass, Placed, Placement, loops_that_need, place
from genrw.codegen.hip.ranges import index_ranges, index_type
from genrw.codegen.hip.recompute import recomputed
from genrw.codegen.hip.spill import SpilledPart, choose_rest
from genrw.codegen.hip.trust import Vetting
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.cpp_expr import TypeWord, cpp_expr, cpp_number
from genrw.engine.language.emit_text import emit_text
from genrw.engine.language.expr_walk import substitute
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.monoids import element_type
from genrw.grammar.diagnostics import error
from genrw.grammar.expr_tree import Const, Expr, IfElse, Name
from genrw.grammar.rw_tree import PRECEDENCES

_LONGEST_INLINE = 72
_SHARE_VARIABLE = "i"


@dataclass(frozen=True)
class Argument:
    """A kernel argument: its name in C++ and that of its parameter in the program, element type, C++ type, lengths,
    element strides, and whether it is written."""

    name: str
    parameter: str
    dtype: str
    cpp: str
    lens: tuple[int, ...]
    strides: tuple[int, ...]
    written: bool


@dataclass(frozen=True)
class KernelSource:
    """A printed kernel and what launching it takes. `lds_bytes`: workgroup memory, of which the launch is to ask for
    `dynamic_lds_bytes`. `waits`: the kernel itself waits for those before it, so it may be started while they end.
    `helpers`: the parts of the text that belong to operators and that kernels may share; `host_text`: the kernel for the
    CPU; `in_loops`: there it has loops over its lanes, several of which meet at barriers or in cross-lane operations."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    groups: int
    block: int
    wave_size: int
    lds_bytes: int
    dynamic_lds_bytes: int
    waits: bool
    helpers: tuple[str, ...]
    host_text: str
    in_loops: bool


def print_kernel(
    module: Module,
    library: Library,
    context: Mapping[str, Any],
    program: str = "",
    name: str | None = None,
    note: Callable[[Sequence[Node]], str] | None = None,
    vetting: Vetting | None = None,
) -> KernelSource:
    """The HIP C++ of a module at the last stage. `program` is the `.gen` text it came from, for the heading; `note` says
    of the values that a line computes what its comment is to be, "" for none. `vetting` looks at the texts of operators:
    without one, the kernel is to be shown only, or its rules are trusted."""
    printer = _Printer(module, library, context, name or kernel_names([module], library)[0])
    printer.note, printer.vetting = note, vetting
    return printer.kernel(program)


class Text(str):
    """C++ text with its precedence, and the members of the value that it stands for."""

    precedence: str
    about: Mapping[str, Any]

    def __new__(cls, text: str, precedence: str = "atom", about: Mapping[str, Any] | None = None) -> Text:
        made = super().__new__(cls, text)
        made.precedence, made.about = precedence, about or {}
        return made

    def __getattr__(self, name: str) -> Any:
        try:
            return self.about[name]
        except KeyError:
            raise AttributeError(name) from None


class _Printer:
    def __init__(self, module: Module, library: Library, context: Mapping[str, Any], name: str) -> None:
        self.module, self.library, self.context, self.name = module, library, context, name
        self.block = library.launch_entry(module.schedule, "block", 1)
        self.resident = library.launch_entry(module.schedule, "resident", 0)
        held = library.launch_entry(module.schedule, "held", 0)
        self.placement: Placement = recomputed(place(module, library), library, self._registers(), held)
        self.rest: dict[int, SpilledPart] = choose_rest(self.placement.nodes, library, held, self.block)
        self.facts = index_ranges(module, library, context)
        operators = [library.operator(p.node.op) for p in self.placement.nodes]
        self.structs = monoid_structs(library)
        self.new = Names({name, *self.structs, *words_of_texts(operators)})
        self.names: dict[int, str] = {}
        self.rest_names: dict[int, str] = {}
        self.monoids: dict[str, str] = {}
        self.instructions: dict[str, str] = {}
        self.devices: dict[str, str] = {}
        self.tables: list[dict[str, str]] = []
        self.body: list[Line | Loop] = []
        self.note: Callable[[Sequence[Node]], str] | None = None
        self.vetting: Vetting | None = None
        self.computed: list[Node] = []
        self.after: dict[int, Callable[[], None]] = {}
        self.handed_on: frozenset[int] = frozenset()
        self.short: dict[int, bool] = {}
        self.input_op = library.boundary("input").name
        self.constants = {library.boundary(p).name for p in ("scalar", "number")}
        self.by_id = {id(p.node): p for p in self.placement.nodes}

    def _registers(self) -> float:
        """How many registers a lane has; no end of them if the target does not say."""
        return float(self.context["target"].values.get("registers", inf)) / (self.block * max(self.resident, 1))

    # ---- the whole

    def kernel(self, program: str) -> KernelSource:
        arguments = self._arguments()
        self._choose_names()
        self._body()
        groups = self.library.launch_entry(self.module.schedule, "grid", 1)
        frame = {
            "name": self.name,
            "target": self.module.target,
            "groups": groups,
            "block": self.block,
            "resident": self.resident,
            "waits": self._target("overlapping_launches"),
            "program": program.strip().split("\n") if program else [],
            "devices": list(self.devices.values()),
            "structs": [*self.monoids.values(), *self.instructions.values()],
            "tables": self.tables,
        }
        parameters = self._parameters(arguments)
        text = _rendered(frame, parameters, straight(self.body))
        in_loops = self.block > 1 and any(self.library.role(p.node.op) == "sync" for p in self.placement.nodes)
        return KernelSource(
            self.name,
            text,
            arguments,
            groups,
            self.block,
            int(self.context["target"].member("wave_size")),
            self._allocated_bytes() + self._rest_bytes(),
            self._rest_bytes() + (self._allocated_bytes() if self._is_dynamic() else 0)
            if self._target("dynamic_lds")
            else 0,
            self._target("overlapping_launches"),
            tuple(self.devices.values()),
            self._host_text(frame, parameters) if in_loops else text,
            in_loops,
        )

    def _host_text(self, frame: Mapping[str, Any], parameters: Sequence[str]) -> str:
        """The kernel as loops over lanes, whose variables the caller keeps."""
        loops = lane_loops(self.body)
        return _rendered(frame, [f"{self.name}_lanes& {KEPT}", *parameters], loops.lines, loops.members)

    def _target(self, ability: str) -> bool:
        """Has the target an ability that few have?"""
        return bool(self.context["target"].values.get(ability, False))

    def _rest_bytes(self) -> int:
        return sum(rest.count * DTYPES[self.by_id[n].node.type.dtype].itemsize for n, rest in self.rest.items())

    def _allocated_bytes(self) -> int:
        return sum(self._buffer_bytes(p.node) for p in self.placement.nodes)

    def _is_dynamic(self) -> bool:
        """Is there more workgroup memory than a kernel may declare, so that the launch has to ask for it?"""
        return self._target("dynamic_lds") and self._allocated_bytes() > int(self.context["target"].member("lds_bytes"))

    def _allocation(self, node: Node) -> str:
        """The declaration of workgroup memory that the launch asks for, behind what was declared before."""
        before = [p.node for p in self.placement.nodes if self.library.role(p.node.op) == "alloc"]
        offset = self._rest_bytes() + sum(self._buffer_bytes(n) for n in before[: before.index(node)])
        return f"GEN_DYNAMIC_LDS({cpp_type(node.type.dtype)}, {self.names[id(node)]}, {offset}, {node.type.elements});"

    def _buffer_bytes(self, node: Node) -> int:
        if self.library.role(node.op) != "alloc":
            return 0
        fields = self._accumulator_fields(node.type.dtype)
        return prod(node.type.lens) * sum(DTYPES[f].itemsize for f in fields)

    def _accumulator_fields(self, dtype: str) -> list[str]:
        monoid, _, element = dtype.rpartition(".")
        if not monoid:
            return [element]
        return [element if d == "T" else d for _, d in self.library.monoids[monoid].carry] or [element]

    def _arguments(self) -> tuple[Argument, ...]:
        written = {
            id(n.operands[self.library.part(n.op, 0)]) for n in self.module.nodes if self.library.role(n.op) == "write"
        }
        arguments = []
        for parameter in self.module.parameters:
            given = parameter.attribute("name")
            name = self.names[id(parameter)] = self.new.variable(given, "arg")
            type_ = parameter.type
            cpp = DTYPES[type_.dtype].cpp
            is_written = id(parameter) in written
            arguments.append(Argument(name, given, type_.dtype, cpp, type_.lens, type_.layout, is_written))
        return tuple(arguments)

    def _parameters(self, arguments: Sequence[Argument]) -> list[str]:
        return [f"{'' if a.written else 'const '}{a.cpp}* __restrict__ {a.name}" for a in arguments]

    # ---- names

    def _choose_names(self) -> None:
        for item in self.placement.nodes:
            node = item.node
            if id(node) in self.names or node.type.sort == "effect" or node.op in self.constants:
                continue
            if self._is_state(node):
                self.names[id(node)] = self.names[id(node.operands[0])]
                continue
            if item.repeats is not None and not self._kept(item.repeats):
                self.names[id(node)] = self.names[id(item.repeats.node)]
                continue
            if node.op == self.library.boundary("constant").name:
                self.names[id(node)] = self.new.of_all(self._wanted_name(item), "table")
                self._table(node)
            else:
                self.names[id(node)] = self.new.variable(self._wanted_name(item))
        self.rest_names = {n: self.new.variable(f"{self.names[n]}_rest") for n in self.rest}

    def _wanted_name(self, item: Placed) -> str:
        """The program's own name, else one that says what the value is."""
        node = item.node
        role = self.library.role(node.op)
        if role == "read":
            source = self.names.get(id(node.operands[0]), "value")
            return node.name if node.name not in (None, source) else f"{source}_in"
        if node.name is not None:
            return node.name
        called = self.library.operator(node.op).decl.called
        if called is None:
            return node.op
        for name, value in node.attributes:
            called = called.replace(f"{{{name}}}", str(value))
        return called

    def _is_state(self, node: Node) -> bool:
        """Is the node memory in a later state, the same in C++ as before?"""
        return node.type.sort == "buffer" and self.library.role(node.op) != "alloc"

    def _table(self, node: Node) -> None:
        dtype = DTYPES[node.type.dtype]
        elements = node.attribute("value")
        values = elements if isinstance(elements, tuple) else (elements,) * node.type.elements
        text = ", ".join(cpp_number(v, node.type.dtype) for v in values)
        self.tables.append({"type": dtype.cpp, "name": self.names[id(node)], "elements": text})

    # ---- statements

    def _body(self) -> None:
        slots = sorted({p.slot for p in self.placement.nodes} | {2 * p.number + 1 for p in self.placement.passes})
        passes = {2 * p.number + 1: p for p in self.placement.passes}
        for slot in slots:
            items = [p for p in self.placement.nodes if p.slot == slot]
            if slot not in passes:
                self._slot(items, 1)
                continue
            this = passes[slot]
            folds = [p for p in self.placement.nodes if p.folds_loop and p.slot == slot + 1]
            self._accumulators(folds)
            inside = [p for p in items if p.node is not this.leaf]
            ahead = ahead_of_time(inside)
            if ahead is not None:
                self.handed_on = ahead.handed_on
                self._first_steps(this, ahead)
            before, self.body = self.body, []
            if ahead is None:
                self._slot(inside, 2, folds)
            else:
                self._pipelined(this, ahead, folds)
            before.append(Loop(self._pass_head(this), tuple(self.body)))
            self.body = before

    # ---- loops that work ahead

    def _first_steps(self, this: Pass, ahead: Ahead) -> None:
        """What has to be done before the loop, since it is always some steps ahead."""
        before, self.body = self.body, []
        with self._at_step(this, ahead, "early") as name:
            self._slot(ahead.values, 2)
            self._slot(ahead.effects, 2)
        head = (Line(1, "GEN_UNROLL"), Line(1, f"for (int {name} = 0; {name} < {ahead.steps}; ++{name}) {{"))
        before.append(Loop(head, tuple(self.body)))
        self.body = before

    def _pipelined(self, this: Pass, ahead: Ahead, folds: Sequence[Placed]) -> None:
        """A loop's body: what is read for a later step is read first and written at the end; what needs no registers is
        fetched as soon as lanes have met, for then the memory is free."""
        step = self.names[id(this.leaf)]
        reads = any(self.library.role(p.node.op) == "read" for p in ahead.values)
        with self._at_step(this, ahead, "next") as name:
            later = f"{step} + {ahead.steps}"
            self._line(
                2,
                f"const int {name} = {f'gen::min({later}, {this.extent - 1})' if reads else later};",
                Variable(name, "int", later, constant=True),
            )
            self._slot(ahead.values, 2)

        def effects() -> None:
            with self._at_step(this, ahead, name):
                writes = [p for p in ahead.effects if self.library.role(p.node.op) == "write"]
                self._line(2, f"if ({later} < {this.extent}) {{")
                self._slot(writes, 3)
                self._line(2, "}")
                self._slot([p for p in ahead.effects if p not in writes], 2)

        if not reads:
            self.after[id(ahead.filled.node)] = effects
        self._slot(ahead.others, 2, folds)
        if reads:
            effects()

    @contextmanager
    def _at_step(self, this: Pass, ahead: Ahead, wanted: str) -> Iterator[str]:
        """The values of another step, under names of their own."""
        kept, known = dict(self.names), wanted in self.new.given
        name = wanted if known else self.new.variable(wanted)
        self.names[id(this.leaf)] = name
        for item in (*ahead.values, *ahead.effects):
            if id(item.node) in kept and item.node.type.sort not in ("buffer", "effect"):
                self.names[id(item.node)] = f"{kept[id(item.node)]}_{name}"
        yield name
        self.names = kept

    def _pass_head(self, this: Pass) -> tuple[Line, ...]:
        step = self.names[id(this.leaf)]
        unrolled = (Line(1, f"GEN_UNROLL_BY({this.unroll})"),) if this.unroll > 1 else ()
        return (*unrolled, Line(1, f"for (int {step} = 0; {step} < {this.extent}; ++{step}) {{"))

    def _line(self, depth: int, text: str, variable: Variable | None = None, node: Node | None = None) -> None:
        """A line of the body; it declares a variable, or is the text of a node."""
        told = self.note(self.computed) if self.note is not None else ""
        self.computed.clear()
        operator = None if node is None else self.library.operator(node.op)
        meets = str(operator.decl.role_parts[0]) if operator is not None and operator.role == "sync" else ""
        shared = operator is not None and operator.role == "alloc"
        self.body.append(Line(depth, f"{text}  // {told}" if told else text, variable, meets, shared))

    def _slot(self, items: Sequence[Placed], depth: int, folds: Sequence[Placed] = ()) -> None:
        """Single values and share loops in turn, level by level."""
        top = max([p.level for p in items] + [self._fold_level(f) for f in folds], default=0)
        for level in range(top + 1):
            for item in items:
                if item.level == level and not item.wide:
                    self._single(item, depth)
            wide = [p for p in items if p.level == level and p.wide]
            ending = [f for f in folds if self._fold_level(f) == level]
            of_elements = [f for f in ending if self._folds_elements(f)]
            for size in dict.fromkeys(map(self._share_of, [*wide, *of_elements])):
                beside = [p for p in wide if self._share_of(p) == size]
                folded = [f for f in of_elements if self._share_of(f) == size]
                if folded or any(not p.cheap for p in beside):
                    self._share_loop(beside, folded, depth, size)
            for fold in ending:
                if not self._folds_elements(fold):
                    self._accumulate(fold, depth, "")

    def _share_of(self, item: Placed) -> int:
        """How many elements of a share an item takes or gives; the kernel's share where one value stands for all."""
        return item.node.type.size or max((o.node.type.size for o in item.operands), default=0) or self.placement.share

    def _fold_level(self, fold: Placed) -> int:
        """The level behind which a fold takes its operands: all of them as a whole, if it adds by itself."""
        if not self._adds_itself(fold.node):
            return fold.operands[0].level
        return max(o.level + o.wide for o in fold.operands)

    def _folds_elements(self, fold: Placed) -> bool:
        """Is a fold made in a share loop, element by element?"""
        return fold.operands[0].wide and not self._adds_itself(fold.node)

    def _adds_itself(self, fold: Node) -> bool:
        """Does the fold's own text say what its accumulator is after a step?"""
        return "{{result}}" in (self.library.operator(fold.op).decl.emit or "")

    def _single(self, item: Placed, depth: int) -> None:
        node = item.node
        if node.op == self.input_op or node.op in self.constants or node.op == self.library.boundary("constant").name:
            return
        if item.folds_loop:
            if not node.type.size:
                self._declare(item, depth, self._emit(item, None))
            return
        role = self.library.role(node.op)
        if role == "alloc" or node.type.sort == "effect" or self._is_state(node):
            text = self._allocation(node) if role == "alloc" and self._is_dynamic() else self._emit(item, None)
            self._line(depth, text if text.endswith(";") else f"{text};", node=node)
            self.after.pop(id(node), lambda: None)()
        elif not self._inlined(item):
            self._declare(item, depth, self._emit(item, None))

    def _declare(self, item: Placed, depth: int, text: str) -> None:
        name, type_ = self.names[id(item.node)], self._cpp_type(item)
        shown = "auto" if item.node.type.sort == "array" else type_
        rest = self.rest.get(id(item.node))
        if rest is not None:
            element, lds = self._cpp_type(item, element=True), self.rest_names[id(item.node)]
            self._line(depth, f"GEN_REST_LDS({element}, {lds}, {rest.offset}, {rest.count});")
        self._line(depth, f"const {shown} {name} = {text};", Variable(name, type_, text, constant=True), item.node)

    def _cpp_type(self, item: Placed, element: bool = False) -> str:
        type_ = item.node.type
        one = index_type(self.facts[id(item.node)]) if type_.sort == "index" else cpp_type(type_.dtype)
        return one if element or not type_.size else f"gen::array<{one}, {type_.size}>"

    def _share_loop(self, wide: Sequence[Placed], folds: Sequence[Placed], depth: int, size: int) -> None:
        """One loop over a lane's share; arrays that are needed elsewhere are declared before it."""
        kept = [p for p in wide if self._kept(p)]
        for item in kept:
            name, type_ = self.names[id(item.node)], self._cpp_type(item)
            self._line(depth, f"{type_} {name};", Variable(name, type_))
        self._line(depth, "GEN_UNROLL")
        self._line(depth, f"{_share_head(size)} {{")
        inside = {id(p.node) for p in wide}
        for item in self._with_cheap([*(p for p in wide if not p.cheap), *(f.operands[0] for f in folds)]):
            self._element(item, depth + 1, inside)
        for fold in folds:
            self._accumulate(fold, depth + 1, f"[{_SHARE_VARIABLE}]")
        self._line(depth, "}")

    def _with_cheap(self, wanted: Sequence[Placed]) -> list[Placed]:
        """Values of a loop with the cheap ones that they need, from wherever these stand."""
        needed: dict[int, Placed] = {}
        stack = list(wanted)
        while stack:
            item = stack.pop()
            if id(item.node) not in needed:
                needed[id(item.node)] = item
                stack.extend(o for o in self._written(item) if o.cheap)
        return [p for p in self.placement.nodes if id(p.node) in needed]

    def _written(self, item: Placed) -> list[Placed]:
        """The operands that a value's text is made of: some operators take others for their sizes only."""
        operator = self.library.operator(item.node.op)
        emit = operator.decl.emit
        if emit is None or operator.variadic is not None:
            return item.operands
        return [o for i, o in enumerate(item.operands) if operator.operand(i).name in emit]

    def _element(self, item: Placed, depth: int, inside: set[int]) -> None:
        node = item.node
        if node.type.sort == "effect":
            self._line(depth, self._emit(item, inside))
        elif self._kept(item):
            self._line(depth, f"{self.names[id(node)]}[{_SHARE_VARIABLE}] = {self._emit(item, inside)};")
        elif not self._inlined(item):
            text = f"const {self._cpp_type(item, element=True)} {self.names[id(node)]} = {self._emit(item, inside)};"
            self._line(depth, text)

    def _kept(self, item: Placed) -> bool:
        """Is an element-wise value needed outside its own share loop?"""
        if not item.wide or item.cheap or item.node.type.sort == "effect":
            return False
        if id(item) in self.handed_on:
            return True
        beside = {(item.slot, item.level)}
        return any(u.takes_whole for u in item.users) or not loops_that_need(item) <= beside

    # ---- folds over a loop

    def _accumulators(self, folds: Sequence[Placed]) -> None:
        for fold in folds:
            operand = fold if self._adds_itself(fold.node) else fold.operands[0]
            name = self._accumulator(fold)
            struct = self._monoid(fold.node)
            if operand.node.type.size:
                type_ = f"gen::array<{struct}::acc, {operand.node.type.size}>"
                self._line(1, f"{type_} {name};", Variable(name, type_))
                self._line(1, "GEN_UNROLL")
                head = _share_head(operand.node.type.size)
                self._line(1, f"{head} {name}[{_SHARE_VARIABLE}] = {struct}::identity();")
            else:
                type_, value = f"{struct}::acc", f"{struct}::identity()"
                self._line(1, f"{type_} {name} = {value};", Variable(name, type_, value))

    def _accumulator(self, fold: Placed) -> str:
        """The variable that a pass loop folds into: the result's own where each element of the share has one."""
        if fold.node.type.size:
            return self.names[id(fold.node)]
        key = -id(fold.node)
        if key not in self.names:
            self.names[key] = self.new.variable(f"{self.names[id(fold.node)]}_acc")
        return self.names[key]

    def _accumulate(self, fold: Placed, depth: int, subscript: str) -> None:
        operand = fold.operands[0]
        target = f"{self._accumulator(fold)}{subscript}"
        if self._adds_itself(fold.node):
            text = self._emit(fold, None)
            self.computed.clear()
            meets = "" if operand.node.type.sort == "buffer" else "wave"
            variable = Variable(target, self._cpp_type(fold), text) if meets else None
            self.body.append(Line(depth, f"{target} = {text};", variable, meets))
            return
        value = self._operand(operand, {id(operand.node)} if subscript else None, "atom")
        struct = self._monoid(fold.node)
        if operand.node.type.size and not subscript:
            size = operand.node.type.size
            self._line(depth, "GEN_UNROLL")
            self._line(depth, _share_head(size))
            index = f"[{_SHARE_VARIABLE}]"
            self._line(depth + 1, f"{target}{index} = {struct}::combine({target}{index}, {value}{index});")
            return
        self._line(depth, f"{target} = {struct}::combine({target}, {value});")

    # ---- expressions

    def _inlined(self, item: Placed) -> bool:
        """Is the value written into its user, without a line of its own?"""
        node = item.node
        role = self.library.role(node.op)
        if (
            id(item) in self.handed_on
            or self._is_step(node)
            or any(self.library.role(u.node.op) == "sync" for u in item.users)
        ):
            return False
        if role in ("read", "sync", "fold", "alloc") or item.folds_loop or len(item.users) != 1:
            return role == "index_leaf" and not item.wide
        user = item.users[0]
        if user.loop != item.loop or (item.wide and not (user.wide and (item.cheap or self._same_place(item, user)))):
            return False
        if node.type.sort != "index" and (node.name is not None or (user.wide and not item.wide)):
            return False
        if user.folds_loop or (node.type.size and (user.gathers or not item.wide)):
            return False
        return self._is_short(item)

    def _is_short(self, item: Placed) -> bool:
        """Does the value fit into its user's line? Found out once: the text holds those of the operands in turn."""
        key = id(item.node)
        if key not in self.short:
            computed = len(self.computed)
            self.short[key] = len(self._emit(item, None)) <= _LONGEST_INLINE
            del self.computed[computed:]
        return self.short[key]

    def _is_step(self, node: Node) -> bool:
        """Is the node the counter of a pass loop?"""
        operator = self.library.operator(node.op)
        return operator.role == "index_leaf" and bool(operator.decl.role_parts)

    def _same_place(self, a: Placed, b: Placed) -> bool:
        return (a.slot, a.level) == (b.slot, b.level)

    def _operand(self, item: Placed, inside: set[int] | None, outer: str) -> Text:
        """How a user writes an operand; in parentheses where the user's operator binds more tightly."""
        node = item.node
        if node.type.sort == "effect":
            return Text("")
        about = self._about(item)
        if node.op in self.constants:
            value = node.attribute("value")
            text = str(value) if node.type.sort == "index" else cpp_number(value, node.type.dtype)
            return _closed(Text(text, "unary" if text.startswith("-") else "atom", about), outer)
        if node.op != self.input_op and self.library.role(node.op) != "boundary" and self._inlined(item):
            made = self._emit(item, inside)
            regroups = node.type.sort == "index" and self.library.operator(node.op).decl.commutative
            alike = regroups and made.precedence == outer
            return Text(made, "atom", about) if alike else _closed(Text(made, made.precedence, about), outer)
        name = self.names[id(node)]
        in_loop = inside is not None
        if in_loop and node.type.size and (not item.wide or self._kept(item)):
            return Text(f"{name}[{_SHARE_VARIABLE}]", "atom", about)
        return Text(f"gen::whole({name})" if id(node) in self.rest else name, "atom", about)

    def _about(self, item: Placed) -> dict[str, Any]:
        type_: Type = item.node.type
        about: dict[str, Any] = {
            "size": type_.size,
            "lens": type_.lens,
            "type": type_.dtype,
            "elements": type_.elements,
        }
        return about | self.facts.get(id(item.node), {})

    def _emit(self, item: Placed, inside: set[int] | None) -> Text:
        """The C++ of one node."""
        node = item.node
        self.computed.append(node)
        operator = self.library.operator(node.op)
        if operator.decl.device is not None:
            if self.vetting is not None:
                self.vetting.device(operator.decl)
            self.devices.setdefault(node.op, operator.decl.device.strip("\n"))
        if item.wide and inside is None:
            inside = set()
        if operator.decl.emit is None:
            return self._from_meaning(operator, item, inside)
        # Text that binds like an atom is a call or a subscript, whose operands need no parentheses.
        outer = "cond" if operator.decl.precedence in (None, "atom") else operator.decl.precedence
        env = {
            **self._attribute_texts(node),
            **{
                operator.operand(i).name: self._typed(o, None if i == item.gathered else inside, operator, outer)
                for i, o in enumerate(item.operands)
                if operator.variadic is None or i < len(operator.fixed)
            },
            "result": self.names.get(id(node), ""),
            "type": cpp_type(node.type.dtype) if node.type.dtype else "",
            "share": _SHARE_VARIABLE,
            "target": self.context["target"].values,
            **self._rest_texts(item),
        }
        if item.folds_loop and not self._adds_itself(item.node):
            folded = item.operands[0]
            name = Text(self._accumulator(item), "atom", self._about(folded))
            if not folded.node.type.size:
                return name
            env[operator.operand(0).name] = name
        text = Text(emit_text(operator.decl, env), operator.decl.precedence or "atom")
        if self.vetting is not None:
            self.vetting.emitted(operator.decl, text, self.new.given | self.structs)
        return self._rounded(operator, node, text)

    def _rest_texts(self, item: Placed) -> dict[str, str]:
        """What a read says of elements that registers do not hold: how many they do hold, and where the others go."""
        rest = self.rest.get(id(item.node))
        if rest is None:
            return {"held": "", "rest": ""}
        return {"held": f", {rest.held}, {self.block}", "rest": f", {self.rest_names[id(item.node)]}"}

    def _typed(self, item: Placed, inside: set[int] | None, operator: Operator, outer: str) -> Text:
        """An operand; pointwise operators take half and bf16 as float, but those that compute nothing of them."""
        compute = self._compute_type(item.node.type)
        if operator.role != "pointwise" or compute is None or self._as_stored(operator):
            return self._operand(item, inside, outer)
        text = self._operand(item, inside, "cond")
        return Text(f"{compute}({text})", "atom", text.about)

    def _compute_type(self, type_: Type) -> str | None:
        """The type to convert to before computing; None where values are computed as they are."""
        if not type_.dtype or "." in type_.dtype:
            return None
        dtype = DTYPES[type_.dtype]
        return dtype.compute if dtype.compute != dtype.name else None

    def _as_stored(self, operator: Operator) -> bool:
        """Does the operator take its operands as they are: to convert them to a type of its choice, or to choose one?"""
        converts = operator.result_sort is None and operator.result_dtype in operator.attributes
        return converts or _chooses(operator.decl.means)

    def _rounded(self, operator: Operator, node: Node, text: Text) -> Text:
        if operator.role != "pointwise" or self._compute_type(node.type) is None or self._as_stored(operator):
            return text
        return Text(f"{cpp_type(node.type.dtype)}({text})", "atom")

    def _from_meaning(self, operator: Operator, item: Placed, inside: set[int] | None) -> Text:
        """A pointwise operator's `means` as C++."""
        node = item.node
        if operator.decl.means is None or operator.role != "pointwise":
            raise error(f"`{operator.name}` has no `emit`, so it cannot be printed", operator.decl.name_span)
        dtype = node.type.dtype
        operand_types = [o.node.type.dtype for o in item.operands]
        compute = DTYPES[operand_types[0] if operand_types and dtype == "bool" else dtype].compute
        names: dict[str, str] = {
            operator.operand(i).name: self._typed(o, inside, operator, "cond") for i, o in enumerate(item.operands)
        }
        numbers = {k: Const(v) for k, v in node.attributes if isinstance(v, (int, float)) and k not in names}
        # Words but for types have no value in C++, and a program may have chosen them.
        names |= {k: TypeWord(v) for k, v in node.attributes if k not in names and v in DTYPES}
        types = {operator.operand(i).name: DTYPES[o.node.type.dtype].compute for i, o in enumerate(item.operands)}
        means = substitute(operator.decl.means, numbers)
        text, precedence = cpp_expr(means, names, compute, types, result=DTYPES[dtype].compute)
        return self._rounded(operator, node, Text(text, precedence))

    def _attribute_texts(self, node: Node) -> dict[str, Any]:
        operator = self.library.operator(node.op)
        texts: dict[str, Any] = {}
        for name, value in node.attributes:
            kind = operator.attributes[name].type
            if kind == "monoid":
                texts[name] = self._monoid(node)
            elif kind == "instruction":
                texts[name] = self._instruction(value)
            elif kind == "shape":
                texts[name] = (cpp_type(value[0]), *value[1:])
            elif isinstance(value, bool):
                texts[name] = _Truth("true" if value else "false")
            else:
                texts[name] = value
        return texts

    def _instruction(self, name: str) -> str:
        """The struct of an instruction, noted for the heading."""
        if name not in self.instructions:
            made = self.library.instructions[name]
            if self.vetting is not None:
                self.vetting.multiplied(made.decl, multiplied(made))
            self.instructions[name] = instruction_struct(made)
        return name

    def _monoid(self, node: Node) -> str:
        """The struct of a node's monoid, noted for the heading."""
        operator = self.library.operator(node.op)
        name = next(node.attribute(a.name) for a in operator.decl.attributes if a.type == "monoid")
        types = [node.type.dtype, *(o.type.dtype for o in node.operands)]
        carried = [t for t in types if t.startswith(f"{name}.")]
        inner = node.operands and not self._adds_itself(node)
        dtype = element_type(carried[0]) if carried else node.operands[0].type.dtype if inner else types[0]
        struct = struct_name(name, dtype)
        if struct not in self.monoids:
            self.monoids[struct] = monoid_struct(self.library.monoids[name], dtype)
        return struct


class _Truth(str):
    """A truth value as C++ has it, which chooses in a template as it should."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return self == "true"


def _chooses(means: Expr | None) -> bool:
    """Is the value one operand or another, as a third one says?"""
    return isinstance(means, IfElse) and all(
        isinstance(e, Name) for e in (means.condition, means.then, means.otherwise)
    )


def _share_head(size: int) -> str:
    """The head of a loop over a lane's share."""
    return f"for (int {_SHARE_VARIABLE} = 0; {_SHARE_VARIABLE} < {size}; ++{_SHARE_VARIABLE})"


def _closed(text: Text, outer: str) -> Text:
    """The text, in parentheses unless it binds more tightly than the operator around it."""
    if text.precedence == "atom" or PRECEDENCES.index(text.precedence) < PRECEDENCES.index(outer):
        return text
    if outer == "cond" and text.precedence != "cond":
        return text
    return Text(f"({text})", "atom", text.about)


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
