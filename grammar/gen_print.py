"""`.gen` trees as text: one instruction a line, which reads back to an equal tree."""

from __future__ import annotations

from genrw.grammar.gen_tree import (
    Attribute,
    File,
    Instruction,
    MapValue,
    Module,
    Operand,
    Ref,
    TypeNode,
    Value,
    Word,
)
from genrw.grammar.parsing import show_number, show_string


def print_gen(file: File) -> str:
    """A program as text; a lone module `main` without attributes needs no header."""
    modules = file.modules
    if len(modules) == 1 and modules[0].name == "main" and not modules[0].attributes and modules[0].instructions:
        return "".join(print_instruction(i) + "\n" for i in modules[0].instructions)
    return "\n".join(map(print_module, modules))


def print_module(module: Module) -> str:
    """A module with its header."""
    attributes = f" {print_attributes(module.attributes)}" if module.attributes else ""
    lines = [f"@module {module.name}{attributes}", *map(print_instruction, module.instructions)]
    return "\n".join(lines) + "\n"


def print_instruction(instruction: Instruction) -> str:
    """One instruction on one line, without newline."""
    names = f"{', '.join(instruction.names)} = " if instruction.names else ""
    type_ = f" -> {print_type(instruction.type)}" if instruction.type else ""
    return names + _print_operation(instruction) + type_


def _print_operation(instruction: Instruction) -> str:
    if instruction.param is not None:
        return f"@param:{instruction.param}" + (f" = {show_string(instruction.file)}" if instruction.file else "")
    if instruction.literal is not None:
        return f"@literal{{{', '.join(map(show_number, instruction.literal))}}}"
    attributes = print_attributes(instruction.attributes) if instruction.attributes else ""
    operands = ", ".join(map(_print_operand, instruction.operands))
    arguments = f"({operands})" if operands or instruction.op == "@return" else ""
    return instruction.op + attributes + arguments


def _print_operand(operand: Operand) -> str:
    return operand.name if isinstance(operand, Ref) else show_number(operand.value)


def print_attributes(attributes: tuple[Attribute, ...]) -> str:
    """Attributes in their brackets."""
    return f"[{', '.join(map(_print_attribute, attributes))}]"


def _print_attribute(attribute: Attribute) -> str:
    if attribute.value is None:
        return attribute.name
    return f"{attribute.name}={print_value(attribute.value)}"


def print_value(value: Value, brackets: str = "{}") -> str:
    """An attribute's value, its lists in brackets. (An item cannot be a type with strides: the comma would end it.)"""
    match value:
        case Word(name):
            return name
        case str():
            return show_string(value)
        case tuple():
            return f"{brackets[0]}{', '.join(print_value(item, brackets) for item in value)}{brackets[1]}"
        case MapValue(items):
            return f"{{{', '.join(f'{key}={print_value(item, brackets)}' for key, item in items)}}}"
        case TypeNode():
            return print_type(value)
        case None:
            return ""
        case _:
            return show_number(value)


def print_type(node: TypeNode) -> str:
    """A type as it stands after `->`."""
    if node.kind == "tensor":
        strides = "" if node.strides is None else f", {_print_dims(node.strides)}"
        return f"{node.dtype or ''}{_print_dims(node.lens)}{strides}"
    name = node.dtype if node.dtype and node.kind in ("scalar", "array") else node.kind
    return name if node.size is None else f"{name}[{node.size}]"


def _print_dims(dims: tuple[int | str, ...]) -> str:
    return f"{{{', '.join(map(str, dims))}}}"
