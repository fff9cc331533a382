"""What is told of a name when an editor points at it."""

from __future__ import annotations

from genrw.editor.occurrence import (
    CLASS,
    CONTEXT,
    FUNCTION,
    INSTRUCTION,
    LET,
    MODULE,
    MONOID,
    OPERATOR,
    RULE,
    TARGET,
    VALUE,
    VARIABLE,
    Occurrence,
)
from genrw.editor.project import Analysis
from genrw.engine.ir.nodes import Node
from genrw.engine.language.array_functions import array_functions
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.library.library import Library
from genrw.engine.library.variants import nodes
from genrw.engine.programs.text import type_node
from genrw.grammar.gen import print_type
from genrw.grammar.rw import print_declaration
from genrw.grammar.rw_tree import (
    ClassDecl,
    ContextDecl,
    Declaration,
    GivenDecl,
    InstructionDecl,
    OpDecl,
    OpPattern,
    RuleDecl,
    TargetDecl,
    VarPattern,
)
from genrw.grammar.source import Span

_LINES = 12
_EXAMPLES = ("  given", "  example", "  counterexample")


def declaration_of(name: Occurrence, library: Library) -> Declaration | None:
    """What declares an operator, rule, function, monoid, target or class."""
    if name.kind == OPERATOR:
        found = library.find(name.name)
        family = next((f.decl for f in library.families if f.name == name.name), None)
        known = found[0].decl if found is not None else family
        return known or library.defines.get(name.name)
    if name.kind in (LET, FUNCTION):
        return library.scope.lets.get(name.name)
    if name.kind == MONOID:
        return library.monoids.get(name.name)
    kinds = {RULE: RuleDecl, CLASS: ClassDecl, TARGET: TargetDecl, INSTRUCTION: InstructionDecl}
    wanted = kinds.get(name.kind)
    declared = (d for file in library.files for d in file.declarations)
    return next((d for d in declared if wanted is not None and isinstance(d, wanted) and d.name == name.name), None)


def hover(name: Occurrence, analysis: Analysis) -> str | None:
    """What is told of a name, in Markdown."""
    if name.kind in (VALUE, CONTEXT):
        return _of_examples(name, analysis) or _value(name, analysis)
    if name.kind == VARIABLE:
        return _variable(name, analysis.library)
    if name.kind == MODULE:
        return f"module `{name.name}`"
    declared = declaration_of(name, analysis.library)
    if declared is not None:
        return about(declared)
    function = {**array_functions(), **analysis.library.scope.functions, **FUNCTIONS}.get(name.name)
    if name.kind == FUNCTION and function is not None:
        return f"```text\n{function.signature}\n```\n\n{function.doc}"
    return None


def about(declared: Declaration) -> str:
    """A declaration: how it is written, without examples and long clauses, and its documentation."""
    lines = [line for line in print_declaration(declared).splitlines() if not line.startswith("///")]
    cut = next((i for i, line in enumerate(lines) if line.startswith(_EXAMPLES)), len(lines))
    shown = lines[: min(cut, _LINES)]
    where = f"{declared.name_span.source.name}:{declared.name_span.line}"
    stage = f" · stage {declared.stage}" if isinstance(declared, RuleDecl) and declared.stage else ""
    legal = f" · at {', '.join(declared.stages)}" if isinstance(declared, OpDecl) and declared.stages else ""
    doc = f"\n\n{declared.doc}" if declared.doc else ""
    return "```genrw-rules\n" + "\n".join(shown) + f"\n```{doc}\n\n{where}{stage}{legal}"


def _of_examples(name: Occurrence, analysis: Analysis) -> str | None:
    """What a name of examples is given, or what a context holds; None for a name of a program."""
    declared = next((n.span for n in analysis.names if n.key == name.key and n.declares), None)
    if declared is None:
        return None
    for declaration in (d for file in analysis.library.files for d in file.declarations):
        text = None
        if isinstance(declaration, ContextDecl) and _same(declaration.name_span, declared):
            text = print_declaration(declaration)
        elif isinstance(declaration, GivenDecl | RuleDecl):
            given = (one for one in declaration.given if _same(one.name_span, declared))
            text = next((f"given {one.span.text}" for one in given), None)
        if text is not None:
            return f"```genrw-rules\n{text}\n```"
    return None


def _same(some: Span, other: Span) -> bool:
    return (some.source.name, some.start) == (other.source.name, other.start)


def _value(name: Occurrence, analysis: Analysis) -> str:
    """A program's value: its type and shape."""
    declared = next((n for n in analysis.names if n.key == name.key and n.declares), None)
    node = _node(declared.span, analysis) if declared is not None else None
    if node is None:
        return f"value `{name.name}`"
    found = analysis.library.find(node.op)
    doc = f"\n\n{found[0].decl.doc}" if found is not None and found[0].decl.doc else ""
    shown = print_type(type_node(node.type))
    return f"```genrw\n{name.name}: {shown}\n```\n\nmade by `{node.op}`{doc}"


def _node(span: Span, analysis: Analysis) -> Node | None:
    """The value whose instruction a name stands in."""
    before = [start for start in analysis.values if start <= span.start]
    node = analysis.values[max(before)] if before else None
    return node if node is not None and span.start < node.span.end else None


def _variable(name: Occurrence, library: Library) -> str:
    """A variable of a rule: what it is an operand or attribute of."""
    rule = next((r for r in library.rules if f"rule {r.name}" == name.scope), None)
    if rule is None:
        return f"parameter `{name.name}`"
    for node in nodes(rule.left):
        found = library.find(node.op)
        for place, operand in enumerate(node.operands):
            if isinstance(operand, VarPattern) and operand.name == name.name:
                declared = found[0].operand(place) if found is not None and _has(found[0].decl, place) else None
                sort = f", {declared.dtype or ''} {declared.sort or ''}".rstrip(" ,") if declared is not None else ""
                return f"operand of `{node.op}`{sort}"
        if node.binds == name.name:
            return f"the value of `{node.op}`"
        if any(_binds(node, i, name.name) for i in range(len(node.attributes))):
            return f"an attribute of `{node.op}`"
    return f"`{name.name}` of rule `{rule.name}`"


def _has(decl: OpDecl, place: int) -> bool:
    return place < len(decl.operands) or bool(decl.operands and decl.operands[-1].variadic)


def _binds(node: OpPattern, place: int, name: str) -> bool:
    attribute = node.attributes[place]
    return getattr(attribute.value, "name", attribute.name if attribute.value is None else None) == name
