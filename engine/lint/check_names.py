"""Names that stand for something already: nothing may be called so where that would be meant by it.

In an expression a name is looked up among those at hand first, then among element types. So a variable called `half`, or
`target`, would hide what every reader takes it for, and say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from genrw.engine.importing.scope import GIVEN_NAMES
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.infer import is_variable
from genrw.engine.library.library import ROLES, Library
from genrw.engine.library.monoids import ELEMENT
from genrw.engine.library.variants import POSITION, leaves, nodes
from genrw.engine.lint.walks import expressions
from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.expr_tree import Comprehension, Name, walk_free
from genrw.grammar.parsing import SPECIAL
from genrw.grammar.rw_tree import (
    AttributeDecl,
    ClassDecl,
    Declaration,
    DefineDecl,
    ImportDecl,
    LetDecl,
    MonoidDecl,
    NumberPattern,
    OpDecl,
    OperandDecl,
    Pattern,
    RuleDecl,
    TargetDecl,
    VarPattern,
)
from genrw.grammar.source import Span

_TYPES = dict.fromkeys(DTYPES, "an element type") | dict.fromkeys(SPECIAL, "a constant")
_CONTEXT = _TYPES | dict.fromkeys(CONTEXT_NAMES, "what the context has")
_RULE = _CONTEXT | {POSITION: "the place of an operand in a template that is mapped"}
_IMPORT = _CONTEXT | dict.fromkeys(GIVEN_NAMES, "what every `import` may name")
RESULT_NAMES = {"a": "the accumulator", "n": "the number of elements", "type": "the type that the fold computes in"}
"""What a monoid's result may name beside the accumulator's fields."""
_MONOID = _TYPES | RESULT_NAMES | {ELEMENT: "the elements' type"}
_TARGET = _TYPES | {"name": "the target's own name"}

Named = tuple[str, Span]


def check_names(library: Library, declaration: Declaration) -> Iterator[Diagnostic]:
    """The names that a declaration introduces and that stand for something else there."""
    match declaration:
        case RuleDecl():
            yield from _taken([*_of_rule(declaration), *_local(declaration)], _RULE)
            yield from _operator_variables(library, declaration)
            yield from _twice(library, declaration)
        case OpDecl():
            parts: list[AttributeDecl | OperandDecl] = [*declaration.attributes, *declaration.operands]
            variables = [o.dtype for o in declaration.operands if o.dtype is not None and is_variable(o.dtype)]
            own = _CONTEXT | dict.fromkeys(variables, "the element type of an operand")
            steps = [(step.name, step.span) for function in declaration.functions for step in function.steps]
            yield from _taken([*((p.name, p.span) for p in parts), *steps, *_local(declaration)], own)
        case MonoidDecl():
            yield from _taken(((name, declaration.name_span) for name, _ in declaration.carry), _MONOID)
            yield from _taken(_local(declaration), _TYPES)
            placeholders = dict.fromkeys(
                (f.decl.family or "" for f in library.families), "any monoid in a family's name"
            )
            yield from _taken([(declaration.name, declaration.name_span)], placeholders)
        case DefineDecl():
            parameters = (*declaration.attributes, *declaration.operands)
            yield from _taken(((name, declaration.name_span) for name in parameters), _CONTEXT)
        case LetDecl():
            yield from _taken(((name, declaration.name_span) for name in declaration.parameters), _TYPES)
            yield from _taken(_local(declaration), _TYPES)
        case ImportDecl():
            named = [(a.name, a.span) for a in declaration.attributes] + [(i.name, i.span) for i in declaration.inputs]
            named += [(b.name, b.span) for b in declaration.with_]
            if declaration.repeat is not None:
                named.append((declaration.repeat.variable, declaration.repeat.span))
                named += [(s.name, s.span) for s in declaration.repeat.steps]
            yield from _taken([*named, *_local(declaration)], _IMPORT)
        case ClassDecl():
            operators = dict.fromkeys(library.names, "an operator")
            yield from _taken([(declaration.name, declaration.name_span)], operators | dict.fromkeys(ROLES, "a role"))
        case TargetDecl():
            yield from _taken(((name, value.span) for name, value in declaration.values), _TARGET)


def _taken(named: Iterable[Named], known: Mapping[str, str]) -> Iterator[Diagnostic]:
    for name, span in dict.fromkeys(named):
        if name in known:
            remedy = "choose another name" + (f'; the type itself is written "{name}"' if name in DTYPES else "")
            yield Diagnostic(f"`{name}` is {known[name]}, and nothing else may be called so here", span, remedy)


def _local(declaration: Declaration) -> Iterator[Named]:
    """The variables of lists made from lists."""
    if "for" not in declaration.span.text:
        return  # Most have none, and looking through all expressions takes longer.
    for expr in expressions(declaration):
        for node, _ in walk_free(expr):
            if isinstance(node, Comprehension):
                yield node.variable, node.span


# ---- rules


def _of_rule(rule: RuleDecl) -> Iterator[Named]:
    """What the sides, `with` and `for` of a rule introduce."""
    yield from bound_names(rule.left)
    if rule.both_ways:
        yield from bound_names(rule.right)
    yield from ((binding.name, binding.span) for binding in (*rule.with_, *rule.for_))


def bound_names(pattern: Pattern) -> Iterator[Named]:
    """Every place of a pattern that binds a name: to an operand, an attribute, a number, a family's member."""
    for leaf in leaves(pattern):
        if isinstance(leaf, VarPattern):
            yield leaf.name, leaf.span
        elif isinstance(leaf, NumberPattern) and isinstance(leaf.value, Name):
            yield leaf.value.name, leaf.span
    for node in nodes(pattern):
        if node.binds is not None:
            yield node.binds, node.span
        if node.family is not None:
            yield node.family, node.op_span
        for attribute in node.attributes:
            if attribute.value is None:
                yield attribute.name, attribute.span
            elif isinstance(attribute.value, Name):
                yield attribute.value.name, attribute.span


def _operator_variables(library: Library, rule: RuleDecl) -> Iterator[Diagnostic]:
    """Variables over a class that are called like an operator; who adds one need not know the variables of rules that come with
    genrw."""
    over = [b for b in rule.for_ if isinstance(b.value, Name) and library.members_of(b.value.name) is not None]
    if over:
        names = set(library.names) - (library.foreign if rule.name not in library.foreign_rules else frozenset())
        yield from _taken(((b.name, b.span) for b in over), dict.fromkeys(names, "an operator"))


def _twice(library: Library, rule: RuleDecl) -> Iterator[Diagnostic]:
    """`with` and `for` names that stand for something in the rule already; operands that attributes are called like."""
    left = dict(reversed([n for n in bound_names(rule.left) if n[0] not in library.monoids]))
    for binding in (*rule.with_, *rule.for_):
        if binding.name in left:
            message = f"`{binding.name}` stands for something else in this rule already"
            yield Diagnostic(message, binding.span, "choose another name")
        left.setdefault(binding.name, binding.span)
    operands = {leaf.name for leaf in leaves(rule.left) if isinstance(leaf, VarPattern)}
    operands |= {node.binds for node in nodes(rule.left) if node.binds is not None}
    others = [a for node in nodes(rule.left) for a in node.attributes if a.value is None or isinstance(a.value, Name)]
    for attribute in others:
        name = attribute.value.name if isinstance(attribute.value, Name) else attribute.name
        if name in operands:
            message = f"`{name}` is an operand and an attribute"
            yield Diagnostic(message, attribute.span, f"bind the attribute to another name: {attribute.name}=…")
