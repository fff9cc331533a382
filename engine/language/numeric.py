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
from genrw.engine.language.expr import FAULTS, Compiler, Env, Frame, Locals, Run, checked, fault
from genrw.engine.language.expr_walk import check_call
from genrw.engine.language.functions import Function, Misuse, Value, describe
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Binary, Call, Expr, IfElse, Name
from genrw.grammar.rw_tree import LetDecl

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

    def name(self, expr: Name, scope: Locals) -> Run:
        run, precise, span = super().name(expr, scope), self.precise, expr.span

        def adopted(env: Env, frame: Frame) -> Any:
            value = run(env, frame)
            try:
                return adopt(value, precise)
            except Misuse as exc:
                raise error(str(exc), span) from None

        return adopted

    # ---- conditions

    def condition(self, expr: Expr, scope: Locals) -> Run:
        """A node that has to be true or false, or a tensor of bool."""
        run, span = self.compile(expr, scope), expr.span

        def decided(env: Env, frame: Frame) -> Any:
            value = run(env, frame)
            if isinstance(value, bool) or (isinstance(value, Array) and value.dtype == "bool"):
                return value
            what = f"a tensor of {value.dtype}" if isinstance(value, Array) else describe(value)
            raise error(f"a condition is true or false, not {what}", span)

        return decided

    def logic(self, expr: Binary, scope: Locals) -> Run:
        left, right = self.condition(expr.left, scope), self.condition(expr.right, scope)
        combine = operations.both if expr.op == "and" else operations.either
        decisive, what, span = expr.op == "or", f"`{expr.op}`", expr.span

        def run(env: Env, frame: Frame) -> Any:
            a = left(env, frame)
            if a is decisive:
                return a
            b = right(env, frame)
            try:
                return combine(a, b)
            except FAULTS as exc:
                raise fault(exc, what, (a, b), span) from None

        return run

    def both(self, a: Value, b: Value) -> Value:
        return operations.both(a, b)

    def if_else(self, expr: IfElse, scope: Locals) -> Run:
        condition, span = self.condition(expr.condition, scope), expr.span
        then, otherwise = self.compile(expr.then, scope), self.compile(expr.otherwise, scope)

        def run(env: Env, frame: Frame) -> Any:
            decided = condition(env, frame)
            if isinstance(decided, bool):
                return then(env, frame) if decided else otherwise(env, frame)
            values = decided, then(env, frame), otherwise(env, frame)
            try:
                return operations.where(*values)
            except FAULTS as exc:
                raise fault(exc, "`if`", values[1:], span) from None

        return run

    # ---- calls

    def function_call(self, function: Function, expr: Call, args: Sequence[Run]) -> Run:
        """A call: of the array function where an argument is an array or where there is no other."""
        apply, precise, name = checked(function, expr), self.precise, function.name
        scalar = FUNCTIONS.get(name)
        if name in self.own_functions:
            return lambda env, frame: adopt(apply([arg(env, frame) for arg in args]), precise)
        if scalar is None or scalar is function:
            return lambda env, frame: apply([arg(env, frame) for arg in args])
        apply_scalar = _checked_count(scalar, expr)

        def run(env: Env, frame: Frame) -> Any:
            values = [arg(env, frame) for arg in args]
            return apply(values) if any(map(holds_array, values)) else apply_scalar(values)

        return run


def _checked_count(function: Function, expr: Call) -> Callable[[Sequence[Value]], Value]:
    """A function on plain values; the one on arrays of the same name may take other numbers of arguments."""
    wrong = check_call(expr, {}, {function.name: function})
    if wrong is None:
        return checked(function, expr)

    def refuse(_values: Sequence[Value]) -> Value:
        raise GenrwError(wrong)

    return refuse
