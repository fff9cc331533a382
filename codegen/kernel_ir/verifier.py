"""What holds of every kernel of the IR, whichever rules and passes made it: a variable is declared before it is named."""

from __future__ import annotations

from collections.abc import Iterable

from genrw.codegen.kernel_ir.kernel import Apart, Kernel, Loop, Statement, Turns, Variable
from genrw.codegen.kernel_ir.regions import used
from genrw.grammar.diagnostics import error


def verify(kernel: Kernel) -> None:
    """Raises GenrwError where a statement names a variable that is not declared there."""
    known = {argument.variable for argument in kernel.arguments}
    known |= {buffer.variable for buffer in kernel.buffers}
    known |= {spill.memory for spill in kernel.spills.values()}
    known |= {table.variable for table in kernel.tables}
    _verify(kernel.body, known)
    for function in kernel.functions.values():
        _verify(function.body, set(function.parameters))


def _verify(body: Iterable[Statement], outside: set[Variable]) -> None:
    """Statements one after the other, where the variables `outside` are known."""
    known = set(outside)
    for statement in body:
        _names(statement, known)
        match statement:
            case Apart(by_waves=by_waves, by_lanes=by_lanes, in_turns=in_turns):
                for part in (by_waves, by_lanes, in_turns):
                    _verify(part, known)
            case Turns(group=group, number=number):
                beginning = [group] if number is None else [group, number]
                _verify((*beginning, *statement.body), known)
            case Loop(counter=counter):
                _verify(statement.body, known if counter is None else known | {counter})
            case _:
                _verify(statement.statements, known)
        if statement.declared is not None:
            known.add(statement.declared)


def _names(statement: Statement, known: set[Variable]) -> None:
    for variable in used(statement):
        if variable not in known:
            raise error(
                f"a {type(statement).__name__} of a kernel names `{variable.name}` before it is declared",
                remedy="this is a fault of genrw: please report the program with its schedule",
            )
