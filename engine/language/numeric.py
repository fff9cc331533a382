"""What operators mean: the expression language over numpy arrays.

An array in an expression is an `Array`: values in the type they are computed in, and the element type they
stand for. half and bf16 are computed in float and rounded once, at the end of the whole expression. In
precise mode all floating types are computed in double and not rounded at all, as a more precise reference.

Where no array is involved, an expression means what `expr.compile_expr` makes of it. A number beside an array
takes on the array's type. The functions are those of `array_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from genrw.engine.language import array_functions as operations
from genrw.engine.language.arrays import Array, adopt, holds_array
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.expr import Compiler, Env
from genrw.engine.language.expr_walk import check_call
from genrw.engine.language.functions import Function, Misuse, Value, describe
from genrw.engine.language.printed import Scope
from genrw.engine.language.running import checked, operation
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Binary, Call, Compare, Expr, IfElse, Name
from genrw.grammar.rw_tree import LetDecl
from genrw.grammar.source import Span

__all__ = ["Array", "ArrayExpression", "compile_numeric"]


class ArrayExpression:
    """A compiled expression over arrays."""

    def __init__(self, program: Callable[[Env], Any], precise: bool) -> None:
        self._program = program
        self._precise = precise

    def __call__(self, env: Env, dtype: str | None = None) -> Any:
        """The result as a numpy array of its element type, or of `dtype`; a list of results as a tuple.

        In precise mode floating results are double.
        """
        return self._finish(self._program(env), dtype)

    def _finish(self, value: Value, dtype: str | None) -> Any:
        if isinstance(value, tuple):
            return tuple(self._finish(item, dtype) for item in value)
        array = adopt(np.asarray(value) if isinstance(value, int | float) else value, self._precise)
        if not isinstance(array, Array):
            raise error(f"the meaning of an operator is a tensor, not {describe(value)}")
        return array.finished(dtype or array.dtype, self._precise)


def compile_numeric(
    expr: Expr,
    lets: Mapping[str, LetDecl] | None = None,
    *,
    precise: bool = False,
    functions: Mapping[str, Function] | None = None,
) -> ArrayExpression:
    """The expression as a function of arrays and of attributes (numbers, lists, strings).

    `functions` are further ones, made with `functions.declare`; arrays come to them as `Array`.
    """
    return ArrayExpression(_NumericCompiler(lets or {}, functions or {}, precise).program(expr), precise)


class _NumericCompiler(Compiler):
    """The compiler with operators, conditions and functions that take arrays too."""

    binary_ops = operations.BINARY
    unary_ops = operations.UNARY
    compare_ops = operations.COMPARE
    is_plain = False

    def __init__(self, lets: Mapping[str, LetDecl], functions: Mapping[str, Function], precise: bool) -> None:
        self.precise = precise
        self.own_functions = functions
        super().__init__(lets, {**operations.array_functions(precise), **functions})

    def name(self, expr: Name, scope: Scope) -> str:
        precise, span = self.precise, expr.span

        def adopted(value: Value) -> Value:
            try:
                return adopt(value, precise)
            except Misuse as exc:
                raise error(str(exc), span, exc.remedy) from None

        return scope.set(f"{scope.bound(adopted)}({super().name(expr, scope)})")

    # ---- conditions

    def condition(self, expr: Expr, scope: Scope) -> str:
        """A node that has to be true or false, or a tensor of bool."""
        value = self._variable_of(self.value(expr, scope), scope)
        scope.line(f"{scope.bound(_decided)}({value}, {scope.bound(expr.span)})")
        return value

    def logic(self, expr: Binary, scope: Scope) -> str:
        combine = operations.both if expr.op == "and" else operations.either
        result = scope.set(self.condition(expr.left, scope))
        scope.line(f"if {result} is not {expr.op == 'or'}:")
        right = self.condition(expr.right, scope.inner)
        scope.inner.line(f"{result} = {scope.bound(operation(combine, f'`{expr.op}`', expr.span))}({result}, {right})")
        return result

    def both(self, result: str, link: str, expr: Compare, scope: Scope) -> str:
        return f"{scope.bound(operation(operations.both, '`and`', expr.span))}({result}, {link})"

    def if_else(self, expr: IfElse, scope: Scope) -> str:
        condition = self.condition(expr.condition, scope)
        values = [scope.set("None"), scope.set("None")]
        for value, part, unless in zip(values, (expr.then, expr.otherwise), (False, True), strict=True):
            scope.line(f"if {condition} is not {unless}:")
            scope.inner.line(f"{value} = {self.value(part, scope.inner)}")
        chosen = operation(lambda values, condition: operations.where(condition, *values), "`if`", expr.span)
        then, otherwise = values
        mixed = f"{scope.bound(chosen)}(({then}, {otherwise}), {condition})"
        return scope.set(f"{then} if {condition} is True else {otherwise} if {condition} is False else {mixed}")

    # ---- calls

    def function_call(self, function: Function, expr: Call, args: Sequence[str], scope: Scope) -> str:
        """A call: of the array function where an argument is an array or where there is no other."""
        apply, precise, name = checked(function, expr), self.precise, function.name
        scalar = FUNCTIONS.get(name)
        run = apply
        if name in self.own_functions:
            run = lambda *values: adopt(apply(*values), precise)  # noqa: E731
        elif scalar is not None and scalar is not function:
            apply_scalar = _checked_count(scalar, expr)
            run = lambda *values: (apply if any(map(holds_array, values)) else apply_scalar)(*values)  # noqa: E731
        return scope.set(f"{scope.bound(run)}({', '.join(args)})")


def _decided(value: Value, span: Span) -> None:
    """Refuses what is neither a truth value nor a tensor of them."""
    if not isinstance(value, bool) and not (isinstance(value, Array) and value.dtype == "bool"):
        what = f"a tensor of {value.dtype}" if isinstance(value, Array) else describe(value)
        raise error(f"a condition is true or false, not {what}", span, "compare it: `… > 0`")


def _checked_count(function: Function, expr: Call) -> Callable[..., Value]:
    """A function on plain values; the one on arrays of the same name may take other numbers of arguments."""
    wrong = check_call(expr, {}, {function.name: function})
    if wrong is None:
        return checked(function, expr)

    def refuse(*_values: Value) -> Value:
        raise GenrwError(wrong)

    return refuse
