"""From a program of the last stage to a kernel of the IR.

`masked_loads` says what stands where nothing is loaded, `placement` where each value is computed, `recompute` what is
computed again, `spill` what registers leave to workgroup memory, `skipping` which steps a loop leaves out, `pipelining` what
a loop does ahead of time, `keeping` what has a variable. This module writes it down as statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, prod
from typing import Any

from genrw.codegen.kernel_ir.branching import Branching
from genrw.codegen.kernel_ir.expressions import Expressions, adds_itself, monoid_of
from genrw.codegen.kernel_ir.functions import functions_of
from genrw.codegen.kernel_ir.keeping import is_kept, may_inline
from genrw.codegen.kernel_ir.kernel import (
    Accumulate,
    Allocate,
    Apart,
    Apply,
    Argument,
    Buffer,
    Chosen,
    Effect,
    Expression,
    IfStep,
    Kernel,
    LaterStep,
    Let,
    Loop,
    Meeting,
    Move,
    Spill,
    Start,
    Statement,
    Step,
    Table,
    Update,
    Use,
    ValueType,
    Variable,
    Walk,
    Weighted,
)
from genrw.codegen.kernel_ir.masked_loads import with_values_behind_masks
from genrw.codegen.kernel_ir.pipelining import Ahead, Early, Filling, ahead_of_time, early_loads
from genrw.codegen.kernel_ir.placement import Pass, Placed, Placement, place
from genrw.codegen.kernel_ir.ranges import index_ranges
from genrw.codegen.kernel_ir.recompute import recomputed
from genrw.codegen.kernel_ir.regions import needed
from genrw.codegen.kernel_ir.share_loops import Masked, ShareLoops
from genrw.codegen.kernel_ir.skipping import end_of_steps, first_step, masked_arrays, needed_steps
from genrw.codegen.kernel_ir.spill import choose_rest
from genrw.codegen.kernel_ir.step_meanings import StepMeanings
from genrw.codegen.kernel_ir.turns import taking_turns
from genrw.codegen.kernel_ir.variables import Variables
from genrw.codegen.kernel_ir.verifier import verify
from genrw.codegen.kernel_ir.windows import Window
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.language.emit_text import names_in_emit_text
from genrw.engine.library.library import Library

_STEP = ValueType("int32", sort="index")
_OF_STEPS, _OF_MASK = ("first_step", "end_step"), ("first_mask", "end_mask")
"""What the ends are called of the steps that a loop walks, and of those at which a mask hides something."""


def build_kernel(module: Module, library: Library, context: Mapping[str, Any]) -> Kernel:
    """The kernel of a module at the last stage, in which each value has a variable."""
    module, stands_for = with_values_behind_masks(module, library)
    block = library.launch_entry(module.schedule, "block", 1)
    resident = library.launch_entry(module.schedule, "resident", 0)
    held = library.launch_entry(module.schedule, "held", 0)
    registers = float(context["target"].values.get("registers", inf)) / (block * max(resident, 1))
    placement = recomputed(place(module, library), library, registers, held)
    ranges = index_ranges(module, library, context)
    variables = Variables(library, ranges)
    arguments = _arguments(module, library, variables)
    variables.add_values(placement.nodes, is_kept)
    spills = _spills(placement, library, variables, held, block)
    buffers = _buffers(placement, library, variables, sum(_bytes(v, s.count) for v, s in spills.items()))
    grid = library.launch_entry(module.schedule, "grid", 1)
    functions = functions_of((p.node for p in placement.nodes), library, context)
    body = _Body(library, placement, variables, buffers, block, context, Branching(library, functions)).statements()
    body = taking_turns(body, library, grid, library.launch_entry(module.schedule, "launched", 0))
    kernel = Kernel(
        module.target,
        arguments,
        tuple(variables.all),
        _tables(placement, library, variables),
        tuple(buffers.values()),
        spills,
        body,
        grid,
        block,
        int(context["target"].member("wave_size")),
        resident,
        tuple(dict.fromkeys(p.node.op for p in placement.nodes)),
        functions,
        ranges,
        stands_for,
    )
    verify(kernel)
    return kernel


def _arguments(module: Module, library: Library, variables: Variables) -> tuple[Argument, ...]:
    """The addresses of parameters, but of those of which the kernel knows descriptions alone, and these."""
    written = {id(n.operands[library.part(n.op, 0)]) for n in module.nodes if library.role(n.op) == "write"}
    described = [n for n in module.nodes if library.role(n.op) == "argument"]
    used = {id(o) for n in module.nodes if n not in described for o in n.operands}
    only_described = {id(o) for n in described for o in n.operands} - used
    arguments = []
    for parameter in module.parameters:
        variable = variables.add_parameter(parameter)
        if id(parameter) not in only_described:
            arguments.append(Argument(variable, parameter, id(parameter) in written))
        for node in described:
            if node.operands[library.part(node.op, 0)] is parameter:
                made = variables.add_description(node, parameter)
                arguments.append(Argument(made, parameter, False, Apply(node, (Use(variable, parameter),), made)))
    return tuple(arguments)


def _spills(
    placement: Placement, library: Library, variables: Variables, held: int, block: int
) -> dict[Variable, Spill]:
    """What arrays leave to workgroup memory."""
    by_id = {id(p.node): p.node for p in placement.nodes}
    spills: dict[Variable, Spill] = {}
    for node, part in choose_rest(placement.nodes, library, held, block).items():
        array = variables.of(by_id[node])
        memory = variables.new(Variable(ValueType(array.type.dtype, sort="buffer"), None, array, "rest"))
        spills[array] = Spill(memory, part.held, part.offset, part.count)
    return spills


def _bytes(array: Variable, count: int) -> int:
    return count * DTYPES[array.type.dtype].itemsize


def _buffers(placement: Placement, library: Library, variables: Variables, begin: int) -> dict[int, Buffer]:
    """The workgroup memory that nodes reserve, by their identities; the first of it lies behind what is kept of arrays, large
    buffers before small ones, so that each begins at a multiple of its accesses. What reuses the memory of another buffer takes
    none of its own."""
    nodes = [p.node for p in placement.nodes if library.role(p.node.op) == "alloc"]
    offsets: dict[Variable, int] = {}
    for node in sorted((n for n in nodes if not _reuses(n, library)), key=lambda n: -_reserved(n, library)):
        offsets[variables.of(node)] = begin
        begin += _reserved(node, library)
    buffers: dict[int, Buffer] = {}
    for node in nodes:
        size = _reserved(node, library)
        if _reuses(node, library):
            offsets[variables.of(node)] = offsets[variables.of(node.operands[library.part(node.op, 0)])]
            size = 0
        buffers[id(node)] = Buffer(variables.of(node), node.type.elements, size, offsets[variables.of(node)])
    return buffers


def _reuses(node: Node, library: Library) -> bool:
    """Is it the memory of another buffer that a node names?"""
    return bool(library.operator(node.op).decl.role_parts)


def _reserved(node: Node, library: Library) -> int:
    """The bytes of a buffer."""
    return prod(node.type.lens) * sum(DTYPES[f].itemsize for f in _fields(node.type.dtype, library))


def _fields(dtype: str, library: Library) -> list[str]:
    """The types of what an element is made of."""
    monoid, _, element = dtype.rpartition(".")
    if not monoid:
        return [element]
    return [element if d == "T" else d for _, d in library.monoids[monoid].carry] or [element]


def _tables(placement: Placement, library: Library, variables: Variables) -> tuple[Table, ...]:
    tables = []
    for node in (p.node for p in placement.nodes if p.node.op == library.boundary("constant").name):
        elements = node.attribute("value")
        values = elements if isinstance(elements, tuple) else (elements,) * node.type.elements
        tables.append(Table(variables.of(node), values))
    return tuple(tables)


class _Body:
    """Writes the statements of a kernel. `before` and `after` hold what has to stand around a node's statement, by its identity."""

    def __init__(
        self,
        library: Library,
        placement: Placement,
        variables: Variables,
        buffers: Mapping[int, Buffer],
        block: int,
        context: Mapping[str, Any],
        branching: Branching,
    ) -> None:
        self.library, self.placement, self.variables, self.buffers = library, placement, variables, buffers
        self.block, self.context = block, context
        self.expressions = Expressions(library, variables)
        self.shares = ShareLoops(library, placement, variables, self.expressions, branching)
        self.accumulators: dict[int, Variable] = {}
        self.before: dict[int, list[Statement]] = {}
        self.after: dict[int, Callable[[], list[Statement]]] = {}
        self.unwritten = {library.boundary(part).name for part in ("input", "constant", "scalar", "number")}

    def statements(self) -> tuple[Statement, ...]:
        """Those of all slots in turn."""
        nodes, passes = self.placement.nodes, {2 * p.number + 1: p for p in self.placement.passes}
        made: list[Statement] = []
        for slot in sorted({p.slot for p in nodes} | set(passes)):
            items = [p for p in nodes if p.slot == slot]
            if slot not in passes:
                made += self._slot(items)
                continue
            folds = [p for p in nodes if p.folds_loop and p.slot == slot + 1]
            made += [self._start(fold) for fold in folds]
            made += self._pass(passes[slot], [p for p in items if p.node is not passes[slot].leaf], folds)
        return tuple(made)

    # ---- loops over the steps of a row

    def _pass(self, this: Pass, inside: Sequence[Placed], folds: Sequence[Placed]) -> list[Statement]:
        bounds, first, end = self._bounds(this, inside, folds)
        ahead = ahead_of_time(inside, folds)
        counter = self.variables.of(this.leaf)
        if ahead is None:
            early = early_loads(inside, folds, self.library) if this.ahead else None
            before, body = (
                ([], self._slot(inside, folds)) if early is None else self._loading_early(this, early, folds, first)
            )
            return [*bounds, *before, Loop(Walk.STEPS, this.extent, this.unroll, tuple(body), counter, first, end)]
        self.expressions.handed_on |= ahead.handed_on
        if ahead.apart:  # waves of two kinds walk the same steps: all
            first = end = None
        first_steps = self._first_steps(this, ahead, first)
        later = tuple(self._working_ahead(this, ahead, folds, end or Step(this.extent)))
        in_turns = (first_steps, Loop(Walk.STEPS, this.extent, this.unroll, later, counter, first, end))
        return [*bounds, *([self._apart(this, ahead, folds, in_turns)] if ahead.apart else in_turns)]

    def _bounds(
        self, this: Pass, inside: Sequence[Placed], folds: Sequence[Placed]
    ) -> tuple[list[Statement], Expression | None, Expression | None]:
        """The first step that a loop walks and the step before which it ends, where these are not its own; what computes
        them comes before the loop."""
        meanings = StepMeanings(self.library, self.context, self.variables.ranges, this.leaf, self.block == 1)
        made: list[Statement] = []
        window = needed_steps(inside, folds, self.library, meanings)
        first, end = self._ends(window, this, _OF_STEPS, made)
        masked = masked_arrays(inside, self.library, meanings)
        self.expressions.handed_on |= masked.keys()
        for key, (_, source, differs) in masked.items():
            self.shares.masked[key] = Masked(source, this.leaf, *self._ends(differs, this, _OF_MASK, made))
        return made, first, end

    def _ends(
        self, window: Window, this: Pass, names: tuple[str, str], made: list[Statement]
    ) -> tuple[Expression | None, Expression | None]:
        """The ends of a window, in variables that are made before a loop."""
        named: list[Expression | None] = []
        for name, bound in zip(names, (first_step, end_of_steps), strict=True):
            value = bound(window, this, self.variables)
            variable = None if value is None else self.variables.new(Variable(_STEP, name))
            made += [] if value is None or variable is None else [Let(value, variable)]
            named.append(None if variable is None else Use(variable, this.leaf))
        return named[0], named[1]

    def _apart(self, this: Pass, ahead: Ahead, folds: Sequence[Placed], in_turns: tuple[Statement, ...]) -> Statement:
        """A loop over the steps for waves that fill memories, and one for lanes that use them."""
        filled = self.variables.new(Variable(_STEP, "filled"))
        with self.variables.at_step(this.leaf, filled, (*ahead.values, *ahead.effects), "filled"):
            filling = (*self._slot(ahead.values), *self._slot(ahead.effects))
        using = tuple(self._slot(ahead.others, folds))
        return Apart(
            self.block,
            ahead.apart,
            (Loop(Walk.STEPS, this.extent, this.unroll, filling, filled),),
            (Loop(Walk.STEPS, this.extent, this.unroll, using, self.variables.of(this.leaf)),),
            in_turns,
        )

    def _first_steps(self, this: Pass, ahead: Ahead, first: Expression | None) -> Statement:
        """What has to be done before the loop, since it is always some steps ahead. All of these steps are the loop's own."""
        early = self.variables.new(Variable(_STEP, "early"))
        with self.variables.at_step(this.leaf, early, (*ahead.values, *ahead.effects), "early"):
            values = self._slot(ahead.values)
            if ahead.steps <= this.extent:
                body: tuple[Statement, ...] = (*values, *self._slot(ahead.effects))
            else:  # memory is filled for no more steps than there are
                meetings = [s for s in values if s.meeting is not Meeting.NOBODY]
                always = (*needed(values, meetings), *meetings)
                writes, others = self._writes(ahead.effects)
                filled = (*(s for s in values if s not in always), *self._slot(writes))
                body = (*always, IfStep(LaterStep(early, 0), Step(this.extent), filled), *self._slot(others))
        if first is None:
            return Loop(Walk.FIRST_STEPS, ahead.steps, 0, body, early)
        turn = self.variables.new(Variable(_STEP, "turn"))
        step: Expression = Weighted((first, Use(turn, this.leaf)), 0, (1, 1))
        if ahead.steps > 1:
            step = Chosen((step, Step(this.extent - 1)), True)
        return Loop(Walk.FIRST_STEPS, ahead.steps, 0, (Let(step, early), *body), turn)

    def _working_ahead(self, this: Pass, ahead: Ahead, folds: Sequence[Placed], end: Expression) -> list[Statement]:
        """A loop's body: what is read for a later step is read first and written at the end; what needs no registers is
        fetched as soon as lanes have met, for then the memory is free."""
        counter, later = self.variables.of(this.leaf), self.variables.new(Variable(_STEP, "next"))
        filled = [filling.filled for filling in ahead.fillings]
        in_turn = any(self._meeting(p.node) is Meeting.WAITING_WAVE for p in filled)
        reads = [any(self.library.role(p.node.op) == "read" for p in filling.values) for filling in ahead.fillings]
        step = LaterStep(counter, ahead.steps)
        body: list[Statement] = [Let(LaterStep(counter, ahead.steps, this.extent - 1) if any(reads) else step, later)]
        at_once: list[Statement] = []
        at_end: list[Statement] = []
        made: list[list[Statement]] = []
        with self.variables.at_step(this.leaf, later, (*ahead.values, *ahead.effects), "next"):
            body += self._slot([p for p in ahead.values if not in_turn or p.node.type.sort != "buffer"])
            for filling, read in zip(ahead.fillings, reads, strict=True):
                free = [p for p in filling.values if in_turn and p.node.type.sort == "buffer"]
                made.append([*self._slot(free), *self._filled_later(step, end, filling)])
                (at_end if read else at_once).extend(made[-1])
        if in_turn:
            return [*body, *self._in_turn(ahead, folds, made)]
        if len(filled) == 1:
            self.after[id(filled[0].node)] = lambda: at_once
            return [*body, *self._slot(ahead.others, folds), *at_end]
        # Lanes have met for all memories before any is filled anew: none waits for what only a later step needs.
        rest = [p for p in ahead.others if p not in filled]
        return [*body, *self._meetings(filled), *at_once, *self._slot(rest, folds), *at_end]

    def _in_turn(self, ahead: Ahead, folds: Sequence[Placed], made: Sequence[list[Statement]]) -> list[Statement]:
        """Where lanes do not meet, each memory is filled anew just before it is waited for, as late as what uses it allows: so
        other lanes have had the more time to leave it."""
        for filling, statements in zip(ahead.fillings, made, strict=True):
            self.before[id(filling.filled.node)] = statements
            users = [self._fold_level(u) if u.folds_loop else u.level for u in filling.filled.users]
            filling.filled.level = min(users, default=filling.filled.level)
        return self._slot(ahead.others, folds)

    def _meetings(self, filled: Sequence[Placed]) -> list[Statement]:
        """Lanes meet for several memories; once for those of which the same is said."""
        said: dict[tuple[str, object], Placed] = {}
        for item in filled:
            operator = self.library.operator(item.node.op)
            of_no_memory = not names_in_emit_text(operator.decl) & {o.name for o in operator.decl.operands}
            said.setdefault((item.node.op, item.node.attributes if of_no_memory else id(item)), item)
        return [statement for item in said.values() for statement in self._single(item)]

    def _filled_later(self, step: LaterStep, end: Expression, filling: Filling) -> list[Statement]:
        """What fills a memory for a later step, if there is one."""
        writes, others = self._writes(filling.effects)
        return [IfStep(step, end, tuple(self._slot(writes))), *self._slot(others)]

    def _writes(self, effects: Sequence[Placed]) -> tuple[list[Placed], list[Placed]]:
        """Effects that write memory, and others."""
        writes = [p for p in effects if self.library.role(p.node.op) == "write"]
        return writes, [p for p in effects if p not in writes]

    def _loading_early(
        self, this: Pass, early: Early, folds: Sequence[Placed], begin: Expression | None
    ) -> tuple[list[Statement], list[Statement]]:
        """What comes before a loop that loads for the next step, and the loop's body: each load's variable has what was
        loaded in the step before."""
        self.expressions.handed_on |= {id(load) for load in early.loads}
        loaded = [self.variables.of(load.node) for load in early.loads]
        first = self.variables.new(Variable(_STEP, "early"))
        indices = [p for p in early.values if p not in early.loads]
        with self.variables.at_step(this.leaf, first, indices, "early"):
            before = [Let(begin or Step(0), first), *self._slot(early.values)]
        before = [replace(s, constant=False) if isinstance(s, Let) and s.variable in loaded else s for s in before]
        counter, step = self.variables.of(this.leaf), self.variables.new(Variable(_STEP, "next"))
        with self.variables.at_step(this.leaf, step, early.values, "next"):
            later = [Let(LaterStep(counter, 1, this.extent - 1), step), *self._slot(early.values)]
            next_ = [self.variables.of(load.node) for load in early.loads]
        moves = [Move(Use(n, p.node), v) for v, n, p in zip(loaded, next_, early.loads, strict=True)]
        return before, [*later, *self._slot(early.others, folds), *moves]

    # ---- single values and loops over a share

    def _slot(self, items: Sequence[Placed], folds: Sequence[Placed] = ()) -> list[Statement]:
        """Single values and share loops in turn, level by level."""
        top = max([p.level for p in items] + [self._fold_level(f) for f in folds], default=0)
        made: list[Statement] = []
        for level in range(top + 1):
            for item in items:
                if item.level == level and not item.wide:
                    made += self._single(item)
            ending = [f for f in folds if self._fold_level(f) == level]
            of_elements = [(f, self._accumulator(f)) for f in ending if self._folds_elements(f)]
            made += self.shares.loops([p for p in items if p.level == level and p.wide], of_elements)
            made += [self._accumulate(f) for f in ending if not self._folds_elements(f)]
        return made

    def _single(self, item: Placed) -> list[Statement]:
        node = item.node
        if node.op in self.unwritten:
            return []
        if item.folds_loop:
            return [] if node.type.size else [self._let(item, self.expressions.folded(item, self._accumulator(item)))]
        if adds_itself(node, self.library):
            return [self._start(item), self._accumulate(item)]
        role, memory = self.library.role(node.op), self._memory(node)
        if role == "argument":
            return []
        if role == "alloc":
            return [Allocate(self.expressions.apply(item, result=memory), self.buffers[id(node)])]
        if node.type.sort == "effect" or self.variables.is_state(node):
            effect = Effect(self.expressions.apply(item, result=memory), self._meeting(node))
            return [*self.before.pop(id(node), ()), effect, *self.after.pop(id(node), list)()]
        return [self._let(item, self.expressions.apply(item, result=memory))]

    def _memory(self, node: Node) -> Variable | None:
        return None if node.type.sort == "effect" else self.variables.of(node)

    def _let(self, item: Placed, value: Expression) -> Statement:
        inline = may_inline(item, self.library, self.expressions.handed_on)
        return Let(value, self.variables.of(item.node), inline, self._meeting(item.node))

    def _meeting(self, node: Node) -> Meeting:
        operator = self.library.operator(node.op)
        return Meeting(" ".join(reversed(operator.decl.role_parts))) if operator.role == "sync" else Meeting.NOBODY

    # ---- folds over a loop

    def _fold_level(self, fold: Placed) -> int:
        """The level behind which a fold takes its operands: all of them as a whole, if it adds by itself."""
        if not adds_itself(fold.node, self.library):
            return fold.operands[0].level
        return max(o.level + o.wide for o in fold.operands)

    def _folds_elements(self, fold: Placed) -> bool:
        """Is a fold made in a share loop, element by element?"""
        return fold.operands[0].wide and not adds_itself(fold.node, self.library)

    def _accumulator(self, fold: Placed) -> Variable:
        """The variable that a pass loop folds into: the result's own where each element of the share has one."""
        own = self.variables.of(fold.node)
        if fold.node.type.size:
            return own
        if id(fold) not in self.accumulators:
            monoid = monoid_of(fold.node, self.library)
            type_ = ValueType(f"{monoid.name}.{monoid.dtype}", fold.operands[0].node.type.size)
            self.accumulators[id(fold)] = self.variables.new(Variable(type_, None, own, "acc"))
        return self.accumulators[id(fold)]

    def _start(self, fold: Placed) -> Statement:
        counted = fold if adds_itself(fold.node, self.library) else fold.operands[0]
        return Start(self._accumulator(fold), monoid_of(fold.node, self.library), counted.node.type.size)

    def _accumulate(self, fold: Placed) -> Statement:
        """One turn's part of a fold that is not made in a loop over a share."""
        accumulator, operand = self._accumulator(fold), fold.operands[0]
        if adds_itself(fold.node, self.library):
            meets = Meeting.NOBODY if operand.node.type.sort == "buffer" else Meeting.WAVE
            return Update(self.expressions.apply(fold, result=self.variables.of(fold.node)), accumulator, meets)
        value = self.expressions.operand(operand, inside=False)
        monoid = monoid_of(fold.node, self.library)
        return Accumulate(value, accumulator, monoid, elements=operand.node.type.size)
