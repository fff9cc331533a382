"""`import` declarations checked before they are used: names, attributes, expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from genrw.engine.importing.scope import GIVEN_NAMES
from genrw.engine.ir.types import TYPE_MEMBERS
from genrw.engine.language.expr import check_expr
from genrw.engine.language.expr_walk import did_you_mean, foreign_calls
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.definitions import TermFunctions
from genrw.engine.library.library import Library, family_affixes
from genrw.engine.library.variants import leaves, nodes
from genrw.engine.lint.check_declarations import unnamed_holes
from genrw.engine.lint.check_meanings import meaning_functions
from genrw.engine.lint.check_members import record_members, unknown_members
from genrw.engine.lint.check_names import check_names
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.rw_tree import ImportDecl, NumberPattern, OpPattern, VarPattern

_CONSTANTS = ("int", "ints", "float", "floats", "bool")
"""What an input may be that has to be known while a model is imported."""
_ATTRIBUTES = (*_CONSTANTS, "string", "strings", "dtype", "tensor", "graph", "list", "lists")
"""What an attribute may be; lists of anything are what another import of the dialect gives."""


def check_imports(library: Library, declarations: Iterable[ImportDecl]) -> list[Diagnostic]:
    """All findings on the declarations, in their order."""
    functions = TermFunctions(library.defines)
    return [finding for declaration in declarations for finding in _expanded(library, functions, declaration)]


def _expanded(library: Library, functions: TermFunctions, declaration: ImportDecl) -> Iterator[Diagnostic]:
    """Findings on a declaration whose calls of term functions are their terms."""
    try:
        yield from _findings(library, functions.imported(declaration))
    except GenrwError as problem:
        yield from problem.diagnostics


def _findings(library: Library, declaration: ImportDecl) -> Iterator[Diagnostic]:
    if declaration.dialect is None:
        remedy = "write `dialect NAME` above it: whose operator it is"
        yield Diagnostic("the import belongs to no dialect", declaration.name_span, remedy)
    yield from check_names(library, declaration)
    yield from _types(declaration)
    repeat = declaration.repeat
    tensors = {i.name for i in declaration.inputs} | {a.name for a in declaration.attributes if a.type == "tensor"}
    tensors |= {step.name for step in repeat.steps} if repeat is not None else set()
    graphs = {a.name for a in declaration.attributes if a.type == "graph"}
    for template in declaration.templates:
        for node in nodes(template):
            if node.op not in graphs:
                yield from _operator(library, declaration, node)
        for leaf in leaves(template):
            if isinstance(leaf, VarPattern) and leaf.name not in tensors:
                remedy = did_you_mean(leaf.name, tensors) or f"declare it: import {declaration.name}(…, {leaf.name})"
                yield Diagnostic(f"`{leaf.name}` is no input", leaf.span, remedy)
    yield from _lists(declaration)
    known = tensors | {a.name for a in declaration.attributes} | {b.name for b in declaration.with_}
    members = record_members(library) | {
        i.name: TYPE_MEMBERS for i in declaration.inputs if not i.variadic and i.type is None
    }
    known |= {*CONTEXT_NAMES, *GIVEN_NAMES} | ({repeat.variable} if repeat is not None else set())
    for expr in _expressions(declaration):
        yield from check_expr(expr, known, library.scope.lets, library.scope.functions)
        yield from foreign_calls(expr, library.scope.lets, library.scope.functions, meaning_functions(library))
        yield from unknown_members(library, expr, members)
    for requirement in declaration.requires:
        yield from unnamed_holes(requirement, known, members)


def _types(declaration: ImportDecl) -> Iterator[Diagnostic]:
    """Types that no attribute, or no constant among the inputs, has: no model would ever be taken."""
    for part, known in [(a, _ATTRIBUTES) for a in declaration.attributes] + [
        (i, _CONSTANTS) for i in declaration.inputs
    ]:
        if part.type is not None and part.type not in known:
            remedy = did_you_mean(part.type, known) or f"there is {', '.join(known)}"
            what = "attributes" if known is _ATTRIBUTES else "constants"
            yield Diagnostic(f"there is no type of {what} `{part.type}`", part.span, remedy)


def _lists(declaration: ImportDecl) -> Iterator[Diagnostic]:
    """What is wrong with names for any number of values: how many each takes has to be known but of one."""
    open_ended = [i for i in declaration.inputs if i.variadic and i.count is None]
    for one in open_ended[1:]:
        remedy = f"say how many with `{one.name}[n]...`"
        yield Diagnostic(f"`{one.name}` and `{open_ended[0].name}` both take any number of inputs", one.span, remedy)
    if declaration.repeat is not None:
        inputs = {i.name for i in declaration.inputs}
        new = [s for s in declaration.repeat.steps if s.variadic and s.name not in inputs]
        for step in new[1:]:
            message = f"`{step.name}` and `{new[0].name}` both take any number of results"
            yield Diagnostic(message, step.span, "name the results one by one")


def _operator(library: Library, declaration: ImportDecl, node: OpPattern) -> Iterator[Diagnostic]:
    """What is wrong with an operator that a template builds, or another import of the dialect that it uses."""
    beside = library.imports_beside(declaration)
    if node.family is None:
        operator = found[0] if (found := library.find(node.op)) is not None else None
    else:
        operator = next((f for f in library.families if family_affixes(f.name) == family_affixes(node.op)), None)
    if operator is None:
        if node.op not in beside:
            remedy = _elsewhere(library, node.op) or library.suggest(node.op, beside)
            yield library.unknown_operator(node.op, node.op_span, remedy)
        return
    for attribute in node.attributes:
        if attribute.name not in operator.attributes:
            names = ", ".join(operator.attributes) or "none"
            yield Diagnostic(f"`{node.op}` has no attribute `{attribute.name}`", attribute.span, f"it has {names}")


def _elsewhere(library: Library, name: str) -> str | None:
    """What to say of a name that only other dialects have."""
    found = next((imports[name][0] for imports in library.dialects.values() if name in imports), None)
    return f"`{found.full_name}` is of another dialect: templates use those of their own" if found is not None else None


def _expressions(declaration: ImportDecl) -> Iterator[Expr]:
    yield from (a.default for a in declaration.attributes if a.default is not None)
    yield from (i.default for i in declaration.inputs if i.default is not None)
    if declaration.guard is not None:
        yield declaration.guard
    yield from (requirement.condition for requirement in declaration.requires)
    yield from (binding.value for binding in declaration.with_)
    yield from (i.count for i in declaration.inputs if i.count is not None)
    if declaration.repeat is not None:
        yield declaration.repeat.items
        if declaration.repeat.condition is not None:
            yield declaration.repeat.condition
    for template in declaration.templates:
        yield from (a.value or Name(a.name, span=a.span) for node in nodes(template) for a in node.attributes)
        yield from (leaf.value for leaf in leaves(template) if isinstance(leaf, NumberPattern))
