"""One operation of a program evaluated in numpy, by what its operator's `means` clause says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genrw.engine.interpret.fold import Folds, closed, fold_functions
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Node
from genrw.engine.language.arrays import Array, stored
from genrw.engine.language.functions import Function, Value
from genrw.engine.language.numeric import ArrayExpression, compile_numeric
from genrw.engine.library.infer import environment
from genrw.engine.library.library import Library, Operator
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.expr_tree import Expr
from genrw.grammar.source import NOWHERE, Span


class Evaluator:
    """Evaluates operations with a library's meanings; each `means` is compiled when first needed.

    A value is an `Array`, a tuple of them (an accumulator of several fields), a `Memory`, or the type of one.
    """

    def __init__(self, library: Library, context: Mapping[str, Any], precise: bool) -> None:
        self.library, self.context, self.precise = library, context, precise
        self.folds = Folds(library, precise)
        self.functions: dict[str, Function] = {**library.scope.functions, **fold_functions(self.folds)}
        self._meanings: dict[str, ArrayExpression] = {}

    def value(self, node: Node, operands: Sequence[Value]) -> Value:
        """The value of an operation; GenrwError that names the node if it has no `means` or that fails."""
        operator, member = self._found(node)
        meaning = self._meaning(operator, node)
        env = environment(operator, member, node.attributes, operands, {}, self.context)
        try:
            return self._stored(node, self._meant(operator, meaning, node.type.dtype, operands, env))
        except GenrwError as problem:
            raise at_node(node, problem) from None

    def meaning(self, node: Node) -> Expr | None:
        """What the operator of a node is declared to mean."""
        return self._found(node)[0].decl.means

    def _meant(
        self,
        operator: Operator,
        meaning: ArrayExpression,
        dtype: str,
        operands: Sequence[Value],
        env: Mapping[str, Any],
    ) -> Any:
        """What a meaning gives; one that knows of no monoid acts on each field of an accumulator alike."""
        fields = max((len(v) for v in operands if isinstance(v, tuple)), default=0)
        knows = operator.decl.family_type == "monoid" and operator.decl.family is not None
        if not fields or knows or any(a.type == "monoid" for a in operator.decl.attributes):
            return meaning(env, dtype if dtype in DTYPES else None)
        named = [(d.name, v) for d, v in zip(operator.fixed, operands, strict=False) if isinstance(v, tuple)]
        return tuple(meaning({**env, **{name: v[i] for name, v in named}}) for i in range(fields))

    def constant(self, node: Node, lens: tuple[int, ...]) -> Array:
        """A constant with its elements, or its one element repeated."""
        dtype, value = node.type.dtype, node.attribute("value")
        elements = np.asarray(value, object).astype(numpy_dtype(dtype))  # numpy would take large integers for floats
        if isinstance(value, tuple):
            elements = elements.reshape(lens)
        return stored(np.broadcast_to(elements, lens), dtype, self.precise)

    def _found(self, node: Node) -> tuple[Operator, str | None]:
        found = self.library.find(node.op)
        if found is None:
            raise error(f"unknown operator `{node.op}`", node.span)
        return found

    def _meaning(self, operator: Operator, node: Node) -> ArrayExpression:
        if operator.name not in self._meanings:
            if operator.decl.means is None:
                remedy = "declare one with a `means` clause"
                raise error(f"`{node.op}` has no meaning to evaluate", node.span, remedy)
            self._meanings[operator.name] = compile_numeric(
                operator.decl.means, operator.scope.lets, precise=self.precise, functions=self.functions
            )
        return self._meanings[operator.name]

    def _stored(self, node: Node, values: Any) -> Value:
        monoid, _, element = (node.type.dtype or "int64").rpartition(".")
        fields = (*self.folds.of(monoid, element).fields.values(),) if monoid else (element,)
        parts = values if isinstance(values, tuple) else (values,)
        return closed(tuple(stored(np.asarray(v), d, self.precise) for v, d in zip(parts, fields, strict=True)))


def at_node(node: Node, problem: GenrwError | str, meaning: Expr | None = None) -> GenrwError:
    """A problem met at a node, with the node's name and place, and that of what the operator is said to mean."""
    label = f"`{node.op}`" if node.name in (None, node.op) else f"`{node.op}` ({node.name})"
    if isinstance(problem, str):
        seen = _declared(node, meaning.span) if meaning is not None else None
        return error(f"{label} {problem}", None if node.span is NOWHERE else node.span, seen)
    first, *others = problem.diagnostics
    span = first.span if node.span is NOWHERE else node.span
    remedy = "; ".join(filter(None, [first.remedy, _declared(node, first.span) if span is node.span else None]))
    return GenrwError([Diagnostic(f"{label}: {first.message}", span, remedy or None), *others])


def _declared(node: Node, span: Span | None) -> str | None:
    """Where an operator says what is at fault; None where no file does."""
    return f"what `{node.op}` means is declared at {span}" if span is not None and span is not NOWHERE else None
