"""`genrw explain --annotate`: programs at each stage and their kernels, each line with the rules that made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from genrw.codegen.hip.names import kernel_names
from genrw.codegen.hip.printer import print_kernel
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.programs.text import main_tree, module_tree, value_names
from genrw.grammar.gen import print_instruction, print_module
from genrw.program import Program

_Made = Mapping[str, tuple[str, ...]]
"""For the names of values, what made them: rules with their places."""


def annotated(program: Program) -> str:
    """The program at all stages that are still to come, and its kernels, with comments."""
    places = {rule.name: rule.name_span.location for rule in program.library.rules}
    made: dict[str, _Made] = {}
    values: dict[str, Mapping[str, Node]] = {}
    parts: list[str] = []
    for stage, lowered in program.remaining_stages():
        texts = [print_module(main_tree(unit.main, lowered.library)) for unit in lowered.units if unit.main is not None]
        for module in lowered.modules:
            # A kernel that was cut out takes its values' names from the program that it was cut from.
            before = made.get(module.name) or {n: rules for known in made.values() for n, rules in known.items()}
            values[module.name] = value_names(module, lowered.library, lowered.context(module))
            made[module.name] = {
                name: tuple(_told(key, stage, places) for key in node.rules) or before.get(name, ())
                for name, node in values[module.name].items()
            }
            texts.append(_module_text(module, lowered, values[module.name], made[module.name]))
        parts.append(f"# {stage}\n" + "\n".join(texts))
        program = lowered
    parts += _kernels(program, values, made)
    return "\n".join(parts)


def _told(key: str, stage: str, places: Mapping[str, str]) -> str:
    return f"{key} ({places.get(key.split('/')[0], stage)})"


def _module_text(module: Module, program: Program, values: Mapping[str, Node], made: _Made) -> str:
    """A module's text; behind each line the rules of the last stage that made its value anew."""
    tree = module_tree(module, program.library, program.context(module))
    fresh = {name for name, node in values.items() if node.rules}
    head, *lines = print_module(tree).rstrip("\n").split("\n")
    shown = [head]
    for instruction, line in zip(tree.instructions, lines, strict=True):
        assert print_instruction(instruction) == line
        names = [name for name in instruction.names if name in fresh]
        shown.append(_commented(line, "#", [text for name in names for text in made[name]]))
    return "\n".join(shown) + "\n"


def _commented(line: str, mark: str, told: Iterable[str]) -> str:
    text = ", ".join(dict.fromkeys(told))
    return f"{line}  {mark} {text}" if text else line


def _kernels(program: Program, values: Mapping[str, Mapping[str, Node]], made: Mapping[str, _Made]) -> list[str]:
    """The source of each kernel; behind each line all rules that made the values which it computes."""
    texts: list[str] = []
    for module, name in zip(program.modules, kernel_names(program.modules, program.library), strict=True):
        context = program.context(module)
        names = {id(node): n for n, node in values.get(module.name, {}).items()}
        rules = made.get(module.name, {})

        def note(nodes: Sequence[Node], names: Mapping[int, str] = names, rules: _Made = rules) -> str:
            return ", ".join(dict.fromkeys(r for n in nodes for r in rules.get(names.get(id(n), ""), ())))

        texts.append(print_kernel(module, program.library, context, "", name, note).text)
    return texts
