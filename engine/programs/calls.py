"""Calls of modules: whether they fit the modules that they call, and how large they make a program, which is known before each is
built in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from genrw.engine.ir.types import Type
from genrw.engine.programs.build_main import type_text
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import error
from genrw.grammar.source import Span

_DEEPEST = 100
_MOST_INSTRUCTIONS = 20_000


def called_modules(module: tree.Module) -> Iterator[tuple[str, Span]]:
    """The names of the modules that a module calls, and where it does."""
    for instruction in module.instructions:
        for attribute in instruction.attributes:
            if attribute.name == "module" and isinstance(attribute.value, tree.Word):
                yield attribute.value.name, attribute.value_span


def parameters_of(module: tree.Module) -> list[tree.Instruction]:
    """The parameters that a module declares, in order."""
    return [instruction for instruction in module.instructions if instruction.op == "@param"]


def check_operands(instruction: tree.Instruction, module: tree.Module) -> None:
    """GenrwError unless a call gives a value for each parameter of a module, and no more."""
    number = next((o for o in instruction.operands if not isinstance(o, tree.Ref)), None)
    if number is not None:
        raise error("a module is given values, not numbers", number.span, "write the number into the module")
    parameters = parameters_of(module)
    if len(instruction.operands) != len(parameters):
        plural = "" if len(parameters) == 1 else "s"
        raise error(
            f"`{module.name}` takes {len(parameters)} operand{plural}, not {len(instruction.operands)}",
            instruction.op_span,
            f"its parameters are {', '.join(p.param or '' for p in parameters)}" if parameters else "give it none",
        )


def check_given(operand: tree.Operand, found: Type, parameter: tree.Instruction, wanted: Type, name: str) -> None:
    """GenrwError for an operand of another type than the parameter of the module of that name has. One without axes stands for
    the elements of any tensor."""
    assert isinstance(operand, tree.Ref)
    if found.sort == "tensor" and (found.dtype != wanted.dtype or (wanted.lens and found.lens != wanted.lens)):
        packed = type_text(Type("tensor", found.dtype, found.lens))
        raise error(
            f"`{operand.name}` is {packed}, but `{parameter.param}` of `{name}` is {type_text(wanted)}",
            operand.span,
            "convert it, or declare the parameter so",
        )


def check_names(instruction: tree.Instruction, count: int) -> None:
    """GenrwError for an instruction with more names than the values that it makes."""
    if len(instruction.names) <= count:
        return
    values = "1 value" if count == 1 else f"{count} values"
    span = instruction.name_spans[count] if instruction.name_spans else instruction.span
    raise error(
        f"`{instruction.op}` makes {values}, not {len(instruction.names)}",
        span,
        f"leave out {', '.join(f'`{name}`' for name in instruction.names[count:])}",
    )


def check_calls(module: tree.Module, modules: Mapping[str, tree.Module]) -> None:
    """GenrwError at the call that nests modules too deeply, or makes the program too large."""
    _Sizes(modules).of(module, 0)


class _Sizes:
    def __init__(self, modules: Mapping[str, tree.Module]) -> None:
        self.modules = modules
        self.known: dict[str, tuple[int, int]] = {}

    def of(self, module: tree.Module, depth: int) -> tuple[int, int]:
        """How many instructions a module has with those of all calls, and how deep the calls in it go."""
        if module.name not in self.known:
            # A module that calls itself is refused where it is built.
            self.known[module.name] = 0, 0
            self.known[module.name] = self._measured(module, depth)
        return self.known[module.name]

    def _measured(self, module: tree.Module, depth: int) -> tuple[int, int]:
        size, deepest = len(module.instructions), 0
        for name, span in called_modules(module):
            if name not in self.modules:
                continue
            if depth >= _DEEPEST:
                raise _too_deep(span)
            inner, below = self.of(self.modules[name], depth + 1)
            size, deepest = size + inner, max(deepest, below + 1)
            if depth + deepest > _DEEPEST:
                raise _too_deep(span)
            if size > _MOST_INSTRUCTIONS:
                raise error(
                    f"calls make this a program of more than {_MOST_INSTRUCTIONS} instructions",
                    span,
                    "each call builds the whole module in place: call it once, or make programs of the parts",
                )
        return size, deepest


def _too_deep(span: Span) -> Exception:
    return error(
        f"modules call one another more than {_DEEPEST} deep", span, "write the instructions of some into their callers"
    )
