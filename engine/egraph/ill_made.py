"""Which rule made a term that its operator does not allow, or of another type than the value that it stands for.

Nothing asks while rules run: that would take longer than the rules. It is asked where a stage fails, of the terms that
are there by then. The rule that fails is often another one, which met such a term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Module
from genrw.engine.ir.types import Type
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library
from genrw.engine.programs.build_main import type_text
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.rw_tree import RuleDecl

if TYPE_CHECKING:
    from genrw.engine.egraph.stage import EGraphSnapshot

_ROUNDS = 20
"""So deep may what rules made lie above what was written."""
_REMEDY = "guard the rule: by ranks and lengths (`x.rank`, `x.lens`), by types (`x.type`)"


def blamed(
    library: Library, graph: EGraphSnapshot | None, modules: Sequence[Module], problem: GenrwError
) -> GenrwError:
    """What to tell of a problem: the rule behind it if there is one, unless it lies in the program."""
    files = {file.span.source.name for file in library.files}
    in_program = all(d.span is not None and d.span.source.name not in files for d in problem.diagnostics)
    return problem if in_program or graph is None else ill_made(library, graph, modules) or problem


def ill_made(library: Library, graph: EGraphSnapshot, modules: Sequence[Module]) -> GenrwError | None:
    """The first rule that made such a term, as far as types are known; None where all terms are as they should be."""
    types: dict[int, Type] = {}
    for module in modules:
        for node in module.nodes:
            number = graph.class_of[graph.ids[id(node)]]
            if differ(types.setdefault(number, node.type), node.type):
                makers = [graph.rules[r] for r in graph.why.get(number, ())]
                return other_type(library, makers, types[number], node.type)
    made = [(number, node) for number in sorted(graph.why) for node in graph.classes.get(number, ())]
    for _ in range(_ROUNDS):
        known = len(types)
        for number, term in made:
            operands = _operands(term, types)
            makers = [graph.rules[r] for r in graph.why[number] if term.op in graph.builds[r]]
            if operands is None or not makers:
                continue
            attributes, context = graph.interner.attributes(term.attributes), graph.interner.context(term.attributes)
            try:
                type_ = infer(library, term.op, attributes, operands, context)
            except TypeProblem as problem:
                return _not_allowed(library, makers, term.op, problem.message)
            if differ(types.setdefault(number, type_), type_):
                return other_type(library, makers, type_, types[number])
        if len(types) == known:
            break
    return None


def differ(one: Type, other: Type) -> bool:
    """Are two types those of tensors that cannot stand for one another?"""
    return one.sort == other.sort == "tensor" and (one.dtype, one.lens) != (other.dtype, other.lens)


def other_type(library: Library, makers: Sequence[str], found: Type, wanted: Type) -> GenrwError:
    """What is said of the last of the rules that put another type in the place of a value's."""
    rule = _last(library, makers)
    name, span = (f"rule `{rule.name}`", rule.name_span) if rule is not None else ("a rule", None)
    return error(f"{name} puts {type_text(found)} in the place of {type_text(wanted)}", span, _REMEDY)


def _not_allowed(library: Library, makers: Sequence[str], op: str, message: str) -> GenrwError:
    """What is said of the last of the rules that may have made a term which its operator does not allow."""
    rule = _last(library, makers)
    name, span = (f"rule `{rule.name}`", rule.right.span) if rule is not None else ("a rule", None)
    return error(f"{name} builds a `{op}` that is not allowed: {message}", span, _REMEDY)


def _last(library: Library, makers: Sequence[str]) -> RuleDecl | None:
    """Of the rules the one that was declared last: rules that come with genrw come first."""
    names = {part for key in makers for part in (key, key.partition("/")[0])}
    return next((rule for rule in reversed(library.rules) if rule.name in names), None)


def _operands(node: ENode, types: Mapping[int, Type]) -> list[Type] | None:
    """The types of a node's operands; None where one is not known."""
    found = [types.get(operand) for operand in node.operands]
    return [type_ for type_ in found if type_ is not None] if None not in found and node.number is None else None
