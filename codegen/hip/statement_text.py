"""Statements of kernels as lines of HIP C++, as one lane runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from genrw.codegen.hip.expression_text import SHARE_VARIABLE, ExpressionText, monoid_name
from genrw.codegen.kernel_ir.kernel import (
    Accumulate,
    Allocate,
    Apart,
    Assign,
    Declare,
    Effect,
    Expression,
    IfStep,
    IfWithin,
    Let,
    Loop,
    Move,
    Return,
    Spill,
    Start,
    Statement,
    Turns,
    Update,
    Variable,
    Walk,
)
from genrw.engine.ir.nodes import Node

INDENT = "    "

Note = Callable[[Sequence[Node]], str]
"""Says of the nodes that a line computes what its comment is to be, "" for none."""


_LONG_SHARE, _CHUNK = 512, 16


def share_head(size: int) -> str:
    """The head of a loop over a lane's share: a loop over chunks, and one over the elements of each, where it is long."""
    if size >= _LONG_SHARE and size % _CHUNK == 0:
        return f"GEN_LONG_SHARE({SHARE_VARIABLE}, {size // _CHUNK}, {_CHUNK})"
    return f"for (int {SHARE_VARIABLE} = 0; {SHARE_VARIABLE} < {size}; ++{SHARE_VARIABLE})"


class StatementText:
    """Prints statements. `dynamic`: the launch gives the workgroup memory that the kernel reserves; `note`: says what a line's
    comment is."""

    def __init__(
        self,
        expressions: ExpressionText,
        spills: Mapping[Variable, Spill],
        dynamic: bool = False,
        note: Note | None = None,
    ) -> None:
        self.expressions, self.spills, self.dynamic, self.note = expressions, spills, dynamic, note

    def lines(self, statements: Sequence[Statement], depth: int) -> Iterator[str]:
        """The lines of statements in turn."""
        for statement in statements:
            yield from self.statement(statement, depth)

    def statement(self, statement: Statement, depth: int) -> Iterator[str]:
        """The lines of a statement."""
        match statement:
            case Let() | Declare():
                yield from self._declaration(statement, depth)
            case Start():
                yield from self._start(statement, depth)
            case Accumulate():
                yield from self._accumulate(statement, depth)
            case Assign(value, variable):
                text = self._text(value)
                yield self._line(depth, f"{self._name(variable)}[{SHARE_VARIABLE}] = {text};")
            case Update(value, variable) | Move(value, variable):
                text = self._text(value)
                self.expressions.computed.clear()
                yield self._line(depth, f"{self._name(variable)} = {text};")
            case Return(value):
                yield self._line(depth, f"return {self._text(value)};")
            case Effect() | Allocate():
                yield self._line(depth, self.effect(statement))
            case Loop():
                yield from (INDENT * depth + head for head in self.loop_head(statement))
                yield from self.lines(statement.body, depth + 1)
                yield f"{INDENT * depth}}}"
            case Turns():
                yield f"{INDENT * depth}{self.turns_head(statement)}"
                yield from self.lines(statement.body, depth + 1)
                yield f"{INDENT * depth}}}"
            case Apart(lanes, _, by_waves, by_lanes):
                yield f"{INDENT * depth}if (gen::local_id() >= {lanes}) {{"
                yield f"{INDENT * (depth + 1)}if (gen::is_elected()) {{"
                yield from self.lines(by_waves, depth + 2)
                yield f"{INDENT * (depth + 1)}}}"
                yield f"{INDENT * (depth + 1)}return;"
                yield f"{INDENT * depth}}}"
                yield from self.lines(by_lanes, depth)
            case IfStep(step, end, body):
                yield f"{INDENT * depth}if ({self._text(step)} < {self._text(end)}) {{"
                yield from self.lines(body, depth + 1)
                yield f"{INDENT * depth}}}"
            case IfWithin(step, first, end, body):
                bounds = [(">=", first), ("<", end)]
                asked = [f"{self._text(step)} {op} {self._text(bound)}" for op, bound in bounds if bound is not None]
                yield f"{INDENT * depth}if ({' && '.join(asked)}) {{"
                yield from self.lines(body, depth + 1)
                yield f"{INDENT * depth}}}"

    def effect(self, statement: Effect | Allocate) -> str:
        """What an operator does, as a statement of C++."""
        if isinstance(statement, Allocate) and self.dynamic:
            buffer = statement.buffer
            element = self.expressions.type_text(buffer.variable.type, element=True)
            return f"GEN_DYNAMIC_LDS({element}, {self._name(buffer.variable)}, {buffer.offset}, {buffer.elements});"
        text = self._text(statement.value)
        return text if text.endswith(";") else f"{text};"

    def loop_head(self, loop: Loop) -> list[str]:
        """The lines before a loop's body."""
        if loop.walk is Walk.SHARE:
            return ["GEN_UNROLL", f"{share_head(loop.extent)} {{"]
        assert loop.counter is not None
        name = self._name(loop.counter)
        unrolled = {0: ["GEN_UNROLL"], 1: []}.get(loop.unroll, [f"GEN_UNROLL_BY({loop.unroll})"])
        first = 0 if loop.first is None else self._text(loop.first)
        end = loop.extent if loop.end is None else self._text(loop.end)
        return [*unrolled, f"for (int {name} = {first}; {name} < {end}; ++{name}) {{"]

    def turns_head(self, turns: Turns) -> str:
        """The line before what is done in turns."""
        group, start = self._name(turns.group.variable), self._text(turns.group.value)
        numbers, counts = f"{group} = {start}", f"{group} += {turns.launched}"
        if turns.number is not None:
            number = self._name(turns.number.variable)
            numbers, counts = f"{numbers}, {number} = {self._text(turns.number.value)}", f"{counts}, ++{number}"
        return f"for (int {numbers}; {group} < {turns.groups}; {counts}) {{"

    def value_of(self, statement: Let) -> str:
        """The text of a variable's value."""
        return self._text(statement.value)

    def declaration(self, statement: Let | Declare | Start, value: str) -> str:
        """The declaration of a variable, with its value unless that is empty."""
        constant = "const " if isinstance(statement, Let) and statement.constant else ""
        is_array = isinstance(statement, Let) and statement.variable.type.sort == "array" and not statement.element
        type_ = "auto" if is_array else self.declared_type(statement)
        given = f" = {value}" if value else ""
        return f"{constant}{type_} {self._name(statement.variable)}{given};"

    def declared_type(self, statement: Statement) -> str:
        """The C++ type of the variable that a statement declares or changes."""
        match statement:
            case Start(monoid=monoid, elements=elements):
                one = f"{monoid_name(monoid)}::acc"
                return f"gen::array<{one}, {elements}>" if elements else one
            case Let(variable=variable, element=element):
                return self.expressions.type_text(variable.type, element)
            case Declare(variable=variable) | Update(variable=variable):
                return self.expressions.type_text(variable.type)
            case _:
                raise AssertionError(statement)

    def _declaration(self, statement: Let | Declare, depth: int) -> Iterator[str]:
        value = self.value_of(statement) if isinstance(statement, Let) else ""
        spill = self.spills.get(statement.variable)
        if spill is not None and isinstance(statement, Let):
            element = self.expressions.type_text(statement.variable.type, element=True)
            yield (
                f"{INDENT * depth}GEN_REST_LDS({element}, {self._name(spill.memory)}, {spill.offset}, {spill.count});"
            )
        yield self._line(depth, self.declaration(statement, value))

    def _start(self, statement: Start, depth: int) -> Iterator[str]:
        identity = f"{monoid_name(statement.monoid)}::identity()"
        if not statement.elements:
            yield self._line(depth, self.declaration(statement, identity))
            return
        yield self._line(depth, self.declaration(statement, ""))
        yield f"{INDENT * depth}GEN_UNROLL"
        name = f"{self._name(statement.variable)}[{SHARE_VARIABLE}]"
        yield f"{INDENT * depth}{share_head(statement.elements)} {name} = {identity};"

    def _accumulate(self, statement: Accumulate, depth: int) -> Iterator[str]:
        index = f"[{SHARE_VARIABLE}]"
        target = self._name(statement.variable) + (index if statement.element or statement.elements else "")
        value = str(self.expressions.operand(statement.value, "atom")) + (index if statement.elements else "")
        if statement.elements:
            yield f"{INDENT * depth}GEN_UNROLL"
            yield f"{INDENT * depth}{share_head(statement.elements)}"
        combined = f"{target} = {monoid_name(statement.monoid)}::combine({target}, {value});"
        yield self._line(depth + bool(statement.elements), combined)

    def _line(self, depth: int, text: str) -> str:
        """A line, with the comment on what it computes."""
        computed = self.expressions.computed
        told = self.note(computed) if self.note is not None else ""
        computed.clear()
        return f"{INDENT * depth}{text}  // {told}" if told else f"{INDENT * depth}{text}"

    def _text(self, expression: Expression) -> str:
        return self.expressions.text(expression)

    def _name(self, variable: Variable) -> str:
        return self.expressions.names[variable]
