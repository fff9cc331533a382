"""Functions that kernels call, as device functions of HIP C++.

A function stands in the header's namespace, before the kernel. Kernels that are compiled together share it, so that its name
and its text follow from the operator, its attributes and the types of its operands alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from genrw.codegen.hip.comments import comment_lines
from genrw.codegen.hip.expression_text import ExpressionText
from genrw.codegen.hip.identifiers import Names
from genrw.codegen.hip.monoid_text import cpp_type
from genrw.codegen.hip.names import function_name, monoid_structs, words_of_texts
from genrw.codegen.hip.statement_text import StatementText
from genrw.codegen.kernel_ir.inlining import inlined_body
from genrw.codegen.kernel_ir.kernel import Function, Variable, applied
from genrw.engine.library.library import Library

_LONGEST_INLINE = 72


def function_text(function: Function, expressions: ExpressionText, library: Library) -> str:
    """The definition of a function. `expressions` are those of the kernel that calls it."""
    operators = [library.operator(n.op) for s in function.body for e in s.expressions for n in applied(e)]
    taken = frozenset({*monoid_structs(library), *words_of_texts(operators)})
    measured = expressions.within(*_named(function.variables, taken))
    body = inlined_body(function, lambda e: len(measured.text(e)) <= _LONGEST_INLINE)
    left = {statement.declared for statement in body} | {*function.parameters}
    named, given = _named([v for v in function.variables if v in left], taken)
    own = expressions.within(named, given)
    parameters = ", ".join(f"{cpp_type(p.type.dtype)} {named[p]}" for p in function.parameters)
    name = function_name(function.operator, function.attributes, library)
    lines = [f"/// {line}" for line in comment_lines(library.operator(function.operator).decl.doc).split("\n") if line]
    lines += [f"GEN_DEVICE {cpp_type(function.dtype)} {name}({parameters})", "{"]
    lines += [*StatementText(own, {}).lines(body, 1), "}"]
    return "\n".join(["namespace gen {", *lines, "}  // namespace gen"])


def _named(variables: Iterable[Variable], taken: frozenset[str]) -> tuple[dict[Variable, str], frozenset[str]]:
    """The names of a function's variables, and all that were given."""
    names = Names(taken)
    found = {variable: names.variable(variable.name or "", "value") for variable in variables}
    return found, frozenset(names.given)
