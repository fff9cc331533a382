"""What a rule's examples show of the terms that it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library
from genrw.engine.library.variants import pattern_operators
from genrw.engine.programs.example_programs import program_of
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw_tree import NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern


@dataclass
class Hint:
    """What stood for the parts of a rule's left side in an example: nodes of patterns and of variables."""

    operators: dict[int, Node] = field(default_factory=dict)
    values: dict[str, Node] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


def example_modules(library: Library, rule: RuleDecl) -> Iterator[Module]:
    """The programs that a rule's examples and counterexamples begin with, as far as they can be built."""
    for example in rule.examples:
        try:
            yield program_of(library, example, example.before)
        except GenrwError:
            continue


def hints(library: Library, rule: RuleDecl, left: OpPattern, modules: list[Module]) -> list[Hint]:
    """All ways in which a left side, its conditions aside, matches somewhere in the examples."""
    found = []
    for module in modules:
        for node in module.nodes:
            hint = Hint()
            if _matches(left, node, hint, rule, library):
                found.append(hint)
    return found


def _matches(pattern: Pattern, node: Node, hint: Hint, rule: RuleDecl, library: Library) -> bool:
    if isinstance(pattern, VarPattern):
        return hint.values.setdefault(pattern.name, node) is node
    if isinstance(pattern, NumberPattern):
        if node.op != library.boundary("number").name:
            return False
        name: Any = getattr(pattern.value, "name", None)
        if name is not None:
            hint.numbers[name] = int(node.attribute("value"))
        return True
    if node.op not in pattern_operators(pattern, rule, library) or len(node.operands) != len(pattern.operands):
        return False
    hint.operators[id(pattern)] = node
    pairs = zip(pattern.operands, node.operands, strict=True)
    return all(_matches(p, o, hint, rule, library) for p, o in pairs)
