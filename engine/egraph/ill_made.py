"""Which rule made a term that its operator does not allow, or of another type than the value that it stands for.

Nothing asks while rules run: that would take longer than the rules. It is asked where a stage fails, of the terms that
are there by then. The rule that fails is often another one, which met such a term. Of rules that did not come with genrw
it is asked where a stage ends well, too: another rule may have made something of such a term that looks right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from genrw.engine.egraph.too_large import not_allowed
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Attributes, Module
from genrw.engine.ir.types import Type
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library
from genrw.engine.programs.build import attribute_problem
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
            makers = _makers(graph, number, term, graph.why[number])
            if operands is None or not makers:
                continue
            attributes, context = graph.interner.attributes(term.attributes), graph.interner.context(term.attributes)
            try:
                type_ = infer(library, term.op, attributes, operands, context)
            except TypeProblem as problem:
                return _not_allowed(library, makers, term.op, problem)
            if differ(types.setdefault(number, type_), type_):
                return other_type(library, makers, type_, types[number])
        if len(types) == known:
            break
    return None


def ill_made_by(
    library: Library, graph: EGraphSnapshot, modules: Sequence[Module], rules: Collection[str]
) -> GenrwError | None:
    """The first of some rules that made a tensor such, of operands whose types are known."""
    if not any(graph.rules[r].partition("/")[0] in rules for made in graph.why.values() for r in made):
        return None
    types: dict[int, Type] = {}
    for module in modules:
        for node in module.nodes:
            number = graph.class_of[graph.ids[id(node)]]
            makers = [key for r in graph.why.get(number, ()) if (key := graph.rules[r]).partition("/")[0] in rules]
            if differ(types.setdefault(number, node.type), node.type) and makers:
                return other_type(library, makers, types[number], node.type)
    known = _Types(library, graph, types)
    for number in sorted(graph.why):
        own = [r for r in sorted(graph.why[number]) if graph.rules[r].partition("/")[0] in rules]
        for term in (*graph.classes.get(number, ()), *graph.replaced.get(number, ())) if own else ():
            makers = _makers(graph, number, term, own)
            try:
                odd = _odd_attribute(library, term.op, graph.interner.attributes(term.attributes)) if makers else None
                problem = TypeProblem(odd) if odd is not None else None
                type_, wanted = (known.of_term(term), known.of_class(number, own)) if makers else (None, None)
            except TypeProblem as raised:
                problem = raised
            if problem is not None:
                return _not_allowed(library, makers, term.op, problem)
            if type_ is not None and wanted is not None and differ(wanted, type_):
                return other_type(library, makers, type_, wanted)
    return None


def _makers(graph: EGraphSnapshot, number: int, term: ENode, rules: Iterable[int]) -> list[str]:
    """Of some rules those that may have made a term: those that computed its attributes, if any did."""
    found = [graph.rules[r] for r in rules if term.op in graph.builds[r]]
    openers = graph.openers(number, term) if len(found) > 1 else ()
    return [key for key in found if key in openers] or found


def _odd_attribute(library: Library, op: str, attributes: Attributes) -> str | None:
    """What is wrong with an attribute whose value is not of its kind."""
    declared = library.operator(op).attributes
    problems = ((name, attribute_problem(library, declared[name].type, value)) for name, value in attributes)
    return next((f"`{name}` {problem}" for name, problem in problems if problem is not None), None)


class _Types:
    """The types of the tensors of an e-graph, inferred as they are asked for; None where they cannot be."""

    def __init__(self, library: Library, graph: EGraphSnapshot, known: Mapping[int, Type]) -> None:
        self.library, self.graph = library, graph
        self.known: dict[int, Type | None] = dict(known)

    def of_class(self, number: int, without: Collection[int] = ()) -> Type | None:
        """The type of a class; unless it is known, not that of terms which certain rules may have made."""
        if number in self.known:
            return self.known[number]
        self.known[number] = None  # what needs itself says nothing
        built = frozenset(op for r in without for op in self.graph.builds[r])
        for term in self.graph.classes.get(number, ()):
            try:
                found = self.of_term(term) if term.op not in built else None
            except TypeProblem:
                continue
            if found is not None:
                self.known[number] = found
                return found
        return None

    def of_term(self, term: ENode) -> Type | None:
        """The type of a term of tensors; TypeProblem if its operator does not allow it."""
        if term.number is not None:
            return None
        operands = [self.of_class(operand) for operand in term.operands]
        tensors = [type_ for type_ in operands if type_ is not None and type_.sort == "tensor"]
        if len(tensors) < len(operands):
            return None
        interner = self.graph.interner
        attributes, context = interner.attributes(term.attributes), interner.context(term.attributes)
        found = infer(self.library, term.op, attributes, tensors, context)
        return found if found.sort == "tensor" else None


def differ(one: Type, other: Type) -> bool:
    """Are two types those of tensors that cannot stand for one another?"""
    return one.sort == other.sort == "tensor" and (one.dtype, one.lens) != (other.dtype, other.lens)


def other_type(library: Library, makers: Sequence[str], found: Type, wanted: Type) -> GenrwError:
    """What is said of the last of the rules that put another type in the place of a value's."""
    rule = _last(library, makers)
    name, span = (f"rule `{rule.name}`", rule.name_span) if rule is not None else ("a rule", None)
    return error(f"{name} puts {type_text(found)} in the place of {type_text(wanted)}", span, _REMEDY)


def _not_allowed(library: Library, makers: Sequence[str], op: str, problem: TypeProblem) -> GenrwError:
    """What is said of the last of the rules that may have made a term which its operator does not allow."""
    rule = _last(library, makers)
    name, span = (rule.name, rule.right.span) if rule is not None else (None, None)
    return not_allowed(name, op, problem, span, _REMEDY)


def _last(library: Library, makers: Sequence[str]) -> RuleDecl | None:
    """Of the rules the one that was declared last: rules that come with genrw come first."""
    names = {part for key in makers for part in (key, key.partition("/")[0])}
    return next((rule for rule in reversed(library.rules) if rule.name in names), None)


def _operands(node: ENode, types: Mapping[int, Type]) -> list[Type] | None:
    """The types of a node's operands; None where one is not known."""
    found = [types.get(operand) for operand in node.operands]
    return [type_ for type_ in found if type_ is not None] if None not in found and node.number is None else None
