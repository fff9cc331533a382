"""The programs of rules' examples: terms as instructions.

Equal terms are one value. Values of lanes, indices and operators that are legal at no stage may all be results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import SORTS
from genrw.engine.library.library import Library
from genrw.engine.programs.build import build_module
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.expr_tree import Const, Expr, ListExpr
from genrw.grammar.rw_build import literal
from genrw.grammar.rw_tree import (
    AttributePattern,
    Example,
    Given,
    NumberPattern,
    OpPattern,
    Pattern,
    RuleDecl,
    VarPattern,
)
from genrw.grammar.source import Span


def program_of(library: Library, example: Example, results: Sequence[Pattern]) -> Module:
    """One of an example's two programs, in the example's context; GenrwError for terms that are none."""
    target = library.default_target if library.targets else ""
    written = instructions(library, example, results)
    module = build_module(written, library, target, fragment=True)
    return replace(module, root=_bare(module.root, library), target=module.target or target)


def kernel_of(library: Library, example: Example) -> Module | None:
    """The program of tensors whose kernel an example's context names, without a schedule; None if it names none. GenrwError for a
    term that is none."""
    if example.kernel is None:
        return None
    alone = replace(example, context=tuple(a for a in example.context if a.name == "target"))
    made = program_of(library, alone, (example.kernel,))
    # examples say what the first stage makes
    return replace(made, stage=library.stages[0], target="", results=("r0",))


def instructions(library: Library, example: Example, results: Sequence[Pattern]) -> tree.Module:
    """The terms written as a module that returns them; GenrwError with all that is wrong with them as terms."""
    writer = _Writer(library, {given.name: given for given in example.given})
    returned = [writer.result(result) for result in results]
    if writer.problems:
        raise GenrwError(writer.problems)
    operands = tuple(ref for ref in returned if ref is not None)
    span = example.span
    writer.written.append(tree.Instruction((), "@return", operands=operands, span=span))
    return tree.Module("main", example.context, tuple(writer.written), span)


def check_examples(library: Library, rule: RuleDecl) -> Iterator[Diagnostic]:
    """What is wrong with a rule's examples as programs, none of them run; without targets there are no programs."""
    for example in rule.examples if library.targets else ():
        for results in (example.before, example.after):
            try:
                if results is not None:
                    program_of(library, example, results)
            except GenrwError as problem:
                yield from problem.diagnostics
        try:
            kernel_of(library, example)
        except GenrwError as problem:
            yield from problem.diagnostics


@dataclass
class _Writer:
    """Writes terms as instructions, operands first."""

    library: Library
    given: dict[str, Given]
    written: list[tree.Instruction] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    named: dict[str, tree.Operand | None] = field(default_factory=dict)
    """What the names met so far stand for; None where that is wrong."""
    begun: set[str] = field(default_factory=set)
    """The names whose terms are being written."""
    values: dict[str, str] = field(default_factory=dict)
    """What each instruction written so far is called, by its text without names."""
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.taken |= self.given.keys()

    def result(self, term: Pattern) -> tree.Operand | None:
        """What a whole term is called."""
        if isinstance(term, NumberPattern):
            remedy = "give it a name and a type: given zero: float{4} = 0"
            self.problems.append(Diagnostic("a number alone has no type", term.span, remedy))
            return None
        # Both sides call it the same, so that their difference is in what they make of it.
        return self.value(term, self._free("result") if isinstance(term, OpPattern) else None)

    def value(self, term: Pattern, name: str | None = None, place: Span | None = None) -> tree.Operand | None:
        """What a term is called among the values; None where something is wrong with it, which is noted."""
        try:
            match term:
                case VarPattern():
                    return self._variable(term)
                case NumberPattern(value=Const(value)) if not isinstance(value, str):
                    return tree.NumberOperand(value, term.span)
                case NumberPattern():
                    raise error("an example computes no constants", term.span, "write the number itself")
                case OpPattern():
                    return self._operation(term, name, place)
        except GenrwError as problem:
            self.problems += problem.diagnostics
        return None

    def _variable(self, variable: VarPattern) -> tree.Operand | None:
        name = variable.name
        if variable.rest:
            raise error("an example writes out all operands", variable.span, "write them one by one")
        if name in self.begun:
            raise error(f"`{name}` is made of itself", self.given[name].name_span, "give its parts other names")
        if name not in self.named:
            self.named[name] = None
            if name not in self.given:
                raise self._not_given(variable)
            self.begun.add(name)
            self.named[name] = self._given(self.given[name], variable.span)
            self.begun.remove(name)
        found = self.named[name]
        return replace(found, span=variable.span) if found is not None else None

    def _not_given(self, variable: VarPattern) -> GenrwError:
        name = variable.name
        close = get_close_matches(name, self.given, 1)
        remedy = f"say what it is above: given {name}: float{{4}}"
        operator = self.library.find(name)
        if operator is not None:
            remedy = f"an operator is written {name}({', '.join(o.name for o in operator[0].decl.operands)})"
        elif close:
            remedy = f"did you mean `{close[0]}`?"
        return error(f"`{name}` is not given", variable.span, remedy)

    def _given(self, given: Given, place: Span) -> tree.Operand | None:
        """What a given name is called among the values, which it is as far as it has one of its own."""
        if given.term is not None:
            return self.value(given.term, given.name, place)
        assert given.type is not None
        if given.type.dtype in SORTS:
            raise error("examples are given tensors", given.type.span, f"give what makes it: given {given.name} = f(x)")
        if given.value is None:
            leaf = tree.Instruction((), "@param", param=given.name, type=given.type, span=place)
        else:
            leaf = tree.Instruction((), "@literal", literal=_elements(given.value), type=given.type, span=place)
        return self._put(leaf, given.name)

    def _operation(self, term: OpPattern, name: str | None, place: Span | None) -> tree.Operand | None:
        _check_operation(term)
        operands = [self.value(operand) for operand in term.operands]
        attributes = tuple(map(_attribute, term.attributes))
        if any(operand is None for operand in operands):
            return None
        known = tuple(operand for operand in operands if operand is not None)
        return self._put(
            tree.Instruction((), term.op, attributes, known, span=place or term.span, op_span=term.op_span), name
        )

    def _put(self, instruction: tree.Instruction, name: str | None) -> tree.Operand:
        """What an instruction's value is called, which is written unless an equal one is."""
        text = repr(instruction)  # Unlike the instructions, texts tell 1 from true and 0.0 from -0.0.
        if text not in self.values:
            called = name or self._free(instruction.op)
            self.values[text] = called
            self.written.append(replace(instruction, names=(called,), name_spans=(instruction.span,)))
        return tree.Ref(self.values[text], instruction.span)

    def _free(self, base: str) -> str:
        """A name that nothing has."""
        count = 0
        while (name := f"{base}.{count}" if count else base) in self.taken:
            count += 1
        self.taken.add(name)
        return name


def _check_operation(term: OpPattern) -> None:
    """GenrwError for what only rules write, who speak of many terms."""
    if term.family is not None:
        raise error(
            "an example names each operator", term.op_span, f"write {term.op.replace('{}', 'sum')}, for example"
        )
    if term.open_attributes:
        raise error(
            "an example writes out its attributes", term.op_span, "leave `..` out: the others have their defaults"
        )
    if term.binds is not None:
        remedy = f"give it the name above: given {term.binds} = {term.op}(…)"
        raise error("the terms of examples name no parts", term.span, remedy)
    if term.rest:
        raise error("an example writes out all operands", term.span, "write them one by one")


def _attribute(attribute: AttributePattern) -> tree.Attribute:
    value = attribute.value
    if value is None:
        return tree.Attribute(attribute.name, None, attribute.span, attribute.span)
    return tree.Attribute(attribute.name, literal(value), attribute.span, value.span)


def _elements(value: Expr) -> tuple[int | float | bool, ...]:
    """The elements of a constant; one stands for all."""
    items = value.items if isinstance(value, ListExpr) else (value,)
    found = [item.value for item in items if isinstance(item, Const) and not isinstance(item.value, str)]
    if len(found) < len(items):
        raise error("a constant's elements are numbers", value.span, "write 1.5 for all, or a list such as [1, 2]")
    return tuple(found)


def _bare(root: Node, library: Library) -> Node:
    """A kernel is its own root."""
    if len(root.operands) == 1 and library.role(root.operands[0].op) == "kernel":
        return root.operands[0]
    return root
