"""`import` declarations checked before they are used: names, attributes, expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from genrw.engine.importing.importer import GIVEN_NAMES
from genrw.engine.language.expr import check_expr
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.definitions import TermFunctions
from genrw.engine.library.library import Library, family_affixes
from genrw.engine.library.variants import leaves, nodes
from genrw.engine.lint.check_names import check_names
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.rw_tree import ImportDecl, NumberPattern, OpPattern, VarPattern


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
    yield from check_names(library, declaration)
    tensors = {i.name for i in declaration.inputs} | {a.name for a in declaration.attributes if a.type == "tensor"}
    for result in declaration.results:
        for node in nodes(result):
            yield from _operator(library, node)
        for leaf in leaves(result):
            if isinstance(leaf, VarPattern) and leaf.name not in tensors:
                yield Diagnostic(f"`{leaf.name}` is no input", leaf.span)
    known = tensors | {a.name for a in declaration.attributes} | {b.name for b in declaration.with_}
    known |= {*CONTEXT_NAMES, *GIVEN_NAMES}
    for expr in _expressions(declaration):
        yield from check_expr(expr, known, library.scope.lets, library.scope.functions)


def _operator(library: Library, node: OpPattern) -> Iterator[Diagnostic]:
    """What is wrong with an operator that a template builds, or another import that it uses."""
    if node.op in library.imports:
        return
    if node.family is None:
        operator = found[0] if (found := library.find(node.op)) is not None else None
    else:
        operator = next((f for f in library.families if family_affixes(f.name) == family_affixes(node.op)), None)
    if operator is None:
        yield Diagnostic(f"unknown operator `{node.op}`", node.op_span, library.suggest(node.op))
        return
    for attribute in node.attributes:
        if attribute.name not in operator.attributes:
            names = ", ".join(operator.attributes) or "none"
            yield Diagnostic(f"`{node.op}` has no attribute `{attribute.name}`", attribute.span, f"it has {names}")


def _expressions(declaration: ImportDecl) -> Iterator[Expr]:
    yield from (a.default for a in declaration.attributes if a.default is not None)
    yield from (i.default for i in declaration.inputs if i.default is not None)
    if declaration.guard is not None:
        yield declaration.guard
    yield from (binding.value for binding in declaration.with_)
    for result in declaration.results:
        yield from (a.value or Name(a.name, span=a.span) for node in nodes(result) for a in node.attributes)
        yield from (leaf.value for leaf in leaves(result) if isinstance(leaf, NumberPattern))
