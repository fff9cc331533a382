"""Terms written with signs: for each sign the operator that its declaration says is written so.

The grammar reads `a + b` without knowing any declaration. Once all files are there, the operator takes the sign's place, and
the term is the one that a call of the operator would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, TypeVar

from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.rw_tree import (
    Declaration,
    DefineDecl,
    Definition,
    Example,
    FunctionDecl,
    FunctionStep,
    Given,
    GivenDecl,
    ImportDecl,
    OpDecl,
    OpPattern,
    Repeat,
    RuleDecl,
    RuleFile,
)

_N = TypeVar("_N")


def operators_of_signs(files: Iterable[RuleFile], problems: list[Diagnostic]) -> dict[str, str]:
    """The operator that is written with each sign. A second one for the same sign is a problem."""
    found: dict[str, OpDecl] = {}
    for op in (d for file in files for d in file.declarations if isinstance(d, OpDecl)):
        if op.sign is None:
            continue
        first = found.setdefault(op.sign, op)
        if first.name != op.name:
            message = f"`{op.sign}` is how `{first.name}` is written"
            remedy = f"leave out `written`, here or at {first.sign_span}; without it an operator is called by its name"
            problems.append(Diagnostic(message, op.sign_span, remedy))
    return {sign: op.name for sign, op in found.items()}


def with_operators(
    files: Sequence[RuleFile], signs: Mapping[str, str], known: Mapping[int, Declaration]
) -> tuple[RuleFile, ...]:
    """The files with operators in place of the signs. A sign that no operator is written with stays, for the checks to tell.

    `known` holds what became of declarations before, by their ids.
    """
    resolver = _Resolver(signs)
    made = []
    for file in files:
        declarations = tuple(known.get(id(d)) or resolver.node(d) for d in file.declarations)
        same = all(map(is_, declarations, file.declarations))
        made.append(file if same else replace(file, declarations=declarations))
    return tuple(made)


@dataclass(frozen=True)
class _Resolver:
    """Puts operators in place of signs. What has none is given back as it is."""

    signs: Mapping[str, str]

    def node(self, node: _N) -> _N:
        """A part of a file."""
        changes: dict[str, Any] = {}
        for name in _HOLDS_TERMS.get(type(node), ()):
            old = getattr(node, name)
            new = self._part(old)
            if new is not old:
                changes[name] = new
        if isinstance(node, OpPattern) and node.sign is not None:
            op = self.signs.get(node.sign, node.sign)
            return node if op == node.op and not changes else replace(node, op=op, **changes)
        return replace(node, **changes) if changes else node  # type: ignore[type-var]

    def _part(self, part: Any) -> Any:
        if not isinstance(part, tuple):
            return self.node(part)
        found = tuple([self.node(one) for one in part])
        return part if all(map(is_, found, part)) else found


_HOLDS_TERMS: Mapping[type, tuple[str, ...]] = {
    RuleDecl: ("left", "right", "given", "examples"),
    Example: ("before", "after"),
    GivenDecl: ("given",),
    Given: ("term",),
    OpDecl: ("definitions", "functions"),
    FunctionDecl: ("steps", "term"),
    FunctionStep: ("term",),
    Definition: ("term",),
    DefineDecl: ("term",),
    ImportDecl: ("results", "repeat"),
    Repeat: ("body",),
    OpPattern: ("operands",),
}
"""What of a declaration, or of a part of one, may hold terms."""
