"""Kernels of the IR as text, for people: one statement a line, its operators with all attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from genrw.codegen.kernel_ir.build import build_kernel
from genrw.codegen.kernel_ir.inlining import inlined, inlined_body
from genrw.codegen.kernel_ir.kernel import (
    Accumulate,
    Allocate,
    Apart,
    Apply,
    Assign,
    Chosen,
    Constant,
    Declare,
    Divided,
    Effect,
    Expression,
    Folded,
    Function,
    IfStep,
    IfWithin,
    Kernel,
    LaterStep,
    Let,
    Loop,
    Made,
    Meeting,
    Move,
    Return,
    Start,
    Statement,
    Step,
    Turns,
    Update,
    Use,
    ValueType,
    Variable,
    Walk,
    Weighted,
)
from genrw.engine.ir.nodes import Attributes
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.programs.text import written_value
from genrw.grammar import gen_tree as tree
from genrw.grammar.gen_print import print_attributes
from genrw.grammar.parsing import show_number

_LONGEST_INLINE = 72
_INDENT = "  "


def ir_text(program: StagedProgram) -> str:
    """The kernels of a program, lowered to the last stage, as text."""
    lowered = program.lower(program.stages[-1])
    kernels = ((m, build_kernel(m, program.library, lowered.context(m))) for m in lowered.modules)
    return "\n".join(kernel_text(kernel, program.as_called(m).name) for m, kernel in kernels)


def kernel_text(kernel: Kernel, name: str) -> str:
    """A kernel as text. Short values of one user stand in its line."""
    printer = _Printer(kernel)
    shown = inlined(kernel, lambda e: len(printer.expression(e)) <= _LONGEST_INLINE)
    functions = [line for function in kernel.functions.values() for line in _function_lines(kernel, function)]
    return "\n".join([*functions, printer.head(name), *printer.lines(shown.body, 1)]) + "\n"


def _function_lines(kernel: Kernel, function: Function) -> Iterator[str]:
    """A function as text, which has names of its own."""
    printer = _Printer(replace(kernel, variables=function.variables))
    parameters = ", ".join(f"{printer.names[p]}: {p.type.dtype}" for p in function.parameters)
    yield f"function {function.operator}{_attributes(function.attributes)}({parameters}): {function.dtype}"
    yield from printer.lines(inlined_body(function, lambda e: len(printer.expression(e)) <= _LONGEST_INLINE), 1)


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[Variable, str] = {}
        for variable in kernel.variables:
            self.names[variable] = self._new_name(variable)

    def _new_name(self, variable: Variable) -> str:
        base = self.names.get(variable.base, "") if variable.base is not None else ""
        name = variable.name if variable.name not in (None, base) else f"{base}_{variable.suffix}"
        taken, count, candidate = set(self.names.values()), 1, name or ""
        while candidate in taken:
            count += 1
            candidate = f"{name}{count}"
        return candidate

    def head(self, name: str) -> str:
        kernel = self.kernel
        launch = f"{kernel.grid} workgroups of {kernel.block} lanes, in waves of {kernel.wave}"
        lines = [f"kernel {name}: {launch}, for {kernel.target}"]
        for argument in kernel.arguments:
            type_ = argument.parameter.type
            strides = "" if type_.strides is None else f" by {{{', '.join(map(str, type_.layout))}}}"
            lens = ", ".join(map(str, type_.lens))
            word = "writes" if argument.written else "reads" if argument.described is None else "has described"
            lines.append(f"{_INDENT}{word} {self.names[argument.variable]}: {type_.dtype}{{{lens}}}{strides}")
        lines += [
            f"{_INDENT}table {self.names[t.variable]}: {len(t.values)} of {t.variable.type.dtype}"
            for t in kernel.tables
        ]
        for array, spill in kernel.spills.items():
            memory, kept = self.names[spill.memory], f"{spill.held} of {self.names[array]}"
            lines.append(f"{_INDENT}memory {memory}: {array.type.dtype}{{{spill.count}}} for all but {kept}")
        return "\n".join(lines)

    # ---- statements

    def lines(self, statements: Sequence[Statement], depth: int) -> Iterator[str]:
        for statement in statements:
            head = self._head(statement)
            if statement.meeting is not Meeting.NOBODY:
                head = f"{statement.meeting.value}: {head}"
            yield f"{_INDENT * depth}{head}"
            if isinstance(statement, Apart):
                yield from self.lines(statement.by_waves, depth + 1)
                yield f"{_INDENT * depth}the other {statement.lanes} lanes"
                yield from self.lines(statement.by_lanes, depth + 1)
                continue
            yield from self.lines(statement.statements, depth + 1)

    def _head(self, statement: Statement) -> str:
        """The line of a statement, without those of the statements inside."""
        match statement:
            case Let(value, variable, element=element, constant=constant):
                type_ = variable.type.dtype if element else _type(variable.type)
                return f"{'let' if constant else 'var'} {self.names[variable]}: {type_} = {self.expression(value)}"
            case Declare(variable):
                return f"var {self.names[variable]}: {_type(variable.type)}"
            case Start(variable, monoid, elements):
                many = f"[{elements}]" if elements else ""
                return f"var {self.names[variable]}: {monoid.name}.{monoid.dtype}{many} = identity"
            case Assign(value, variable):
                return f"{self.names[variable]}[.] = {self.expression(value)}"
            case Update(value, variable) | Move(value, variable):
                return f"{self.names[variable]} = {self.expression(value)}"
            case Accumulate(value, variable, monoid, element, elements):
                index = "[.]" if element or elements else ""
                each = f"each of {elements}: " if elements else ""
                right = self.expression(value) + ("[.]" if elements else "")
                return f"{each}{self.names[variable]}{index} <- {monoid.name} <- {right}"
            case Allocate(value, buffer):
                return f"memory {self.names[buffer.variable]}: {self.expression(value)}, {buffer.bytes} bytes"
            case Effect(value):
                return self.expression(value)
            case Return(value):
                return f"return {self.expression(value)}"
            case Loop():
                return self._loop(statement)
            case Turns(group, _, groups, launched):
                return f"for {self.names[group.variable]} in {groups}, {launched} of them at a time"
            case Apart(waves=waves):
                return f"a lane of each of {waves} more waves"
            case IfStep(step, end):
                return f"if {self.expression(step)} < {self.expression(end)}"
            case IfWithin(step, first, end):
                bounds = [("from", first), ("before", end)]
                said = [f" {word} {self.expression(bound)}" for word, bound in bounds if bound is not None]
                return f"if {self.expression(step)}{','.join(said)}"
            case _:
                raise AssertionError(statement)

    def _loop(self, loop: Loop) -> str:
        if loop.walk is Walk.SHARE:
            return f"each of {loop.extent}"
        assert loop.counter is not None
        unrolled = {0: ", all unrolled", 1: ""}.get(loop.unroll, f", {loop.unroll} unrolled")
        first = "" if loop.first is None else f", from {self.expression(loop.first)}"
        end = "" if loop.end is None else f", before {self.expression(loop.end)}"
        return f"for {self.names[loop.counter]} in {loop.extent} {loop.walk.value}{first}{end}{unrolled}"

    # ---- expressions

    def expression(self, expression: Expression) -> str:
        match expression:
            case Constant(node):
                return show_number(node.attribute("value"))
            case Made():
                return "_"
            case Use(variable, _, element):
                return f"{self.names[variable]}[.]" if element else self.names[variable]
            case Folded(_, accumulator):
                return self.names[accumulator]
            case Step(number):
                return str(number)
            case LaterStep(counter, by, last):
                later = f"{self.names[counter]} + {by}"
                return later if last is None else f"{later}, at most {last}"
            case Weighted(parts, number, factors):
                weighed = [f"{f} * {self.expression(p)}" for f, p in zip(factors, parts, strict=True)]
                return " + ".join([*weighed, str(number)])
            case Divided(dividend, by):
                return f"({self.expression(dividend)}) / {by}"
            case Chosen(parts, least):
                return f"{'least' if least else 'most'} of {', '.join(map(self.expression, parts))}"
            case Apply(node):
                return (
                    f"{node.op}{_attributes(node.attributes)}({', '.join(map(self.expression, expression.operands))})"
                )
            case _:
                raise AssertionError(expression)


def _attributes(attributes: Attributes) -> str:
    written = tuple(tree.Attribute(name, written_value(value)) for name, value in attributes)
    return print_attributes(written) if written else ""


def _type(type_: ValueType) -> str:
    """An element type, and how many elements a lane has of it; indices have the type that holds them."""
    return f"{type_.dtype}[{type_.size}]" if type_.size else type_.dtype
