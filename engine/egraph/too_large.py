"""Rules that build more than a tensor may have, and the value of a program that they build it for.

They do so because the program's lengths are what they are. So the program is told, at that value, and not the rule. Rules do
not say what they took: the shortest beginning of the program is looked for of which they make as much.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.infer import BeyondLimits, TypeProblem
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.source import NOWHERE, Span


class TooLarge(GenrwError):
    """The rule of a name builds an operator whose result is beyond the limits of tensors."""

    def __init__(self, told: Diagnostic, rule: str, built: str, problem: BeyondLimits) -> None:
        super().__init__(told)
        self.rule, self.built, self.problem = rule, built, problem

    def __reduce__(self) -> tuple[type[GenrwError], tuple[tuple[Diagnostic, ...]]]:
        """Another process is told, and asks no more."""
        return GenrwError, (self.diagnostics,)

    def told_of(self, node: Node) -> GenrwError:
        """The same, told of the value of a program that it is built for."""
        message = f"`{node.op}` is made of a `{self.built}` that is not allowed: {self.problem.message}"
        return error(message, node.span, self.problem.remedy)


def not_allowed(
    rule: str | None, built: str, problem: TypeProblem, span: Span | None, remedy: str | None
) -> GenrwError:
    """What is told of a rule, if it is known by name, that builds what its operator does not allow."""
    name = f"rule `{rule}`" if rule is not None else "a rule"
    told = Diagnostic(f"{name} builds a `{built}` that is not allowed: {problem.message}", span, remedy)
    return TooLarge(told, rule or "", built, problem) if isinstance(problem, BeyondLimits) else GenrwError(told)


def first_too_large(module: Module, is_too_large: Callable[[Module], bool]) -> Node | None:
    """The written value of a program with which its beginning becomes too large, if there is one."""
    values = module.nodes[:-1]
    last = bisect_left(range(1, len(values) + 1), True, key=lambda n: is_too_large(_beginning(module, values[:n])))
    return values[last] if last < len(values) and values[last].span is not NOWHERE else None


def _beginning(module: Module, values: tuple[Node, ...]) -> Module:
    """The program of the first of its values, which gives those that none of them takes."""
    taken = {id(operand) for value in values for operand in value.operands}
    left = tuple(value for value in values if id(value) not in taken)
    return replace(module, root=replace(module.root, operands=left))
