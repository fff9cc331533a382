"""The expression language, printed as functions of Python and run over a fixed set of functions.

Nothing of Python is ever executed on behalf of an expression: names come from the given mapping, functions
from `builtins.FUNCTIONS`, members from objects that offer them. Work is bounded (list sizes, integer sizes,
steps), so a hostile expression ends in a message too. Every message carries the span of the node that failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from keyword import iskeyword
from typing import Any, Protocol

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language import operators, running
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.expr_walk import (
    calls,
    check_call,
    check_expr,
    did_you_mean,
    free_names,
    member_uses,
    substitute,
    walk,
    within_depth,
)
from genrw.engine.language.functions import INTEGER_LIMIT, Function, Value, declare
from genrw.engine.language.printed import Printed, Scope
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import (
    Binary,
    Call,
    Compare,
    Comprehension,
    Const,
    Expr,
    IfElse,
    Index,
    ListExpr,
    Member,
    Name,
    Slice,
    Unary,
)
from genrw.grammar.rw_tree import LetDecl

__all__ = [
    "Compiler",
    "Env",
    "Evaluator",
    "HasMembers",
    "calls",
    "check_expr",
    "compile_expr",
    "declare",
    "free_names",
    "member_uses",
    "substitute",
]

Env = Mapping[str, object]
Evaluator = Callable[[Env], Any]
"""A compiled expression."""
Binop = Callable[[Value, Value], Value]


class HasMembers(Protocol):
    """A value with members. A mapping with strings as keys serves as well."""

    def member(self, name: str) -> object:
        """The member of a name; KeyError where there is none."""


def compile_expr(
    expr: Expr, lets: Mapping[str, LetDecl] | None = None, functions: Mapping[str, Function] | None = None
) -> Evaluator:
    """The expression as a function of its names' values; GenrwError for what can never run.

    `lets` are helper functions it may call, `functions` built-in ones (see `declare`) beyond `FUNCTIONS`.
    """
    return Compiler(lets or {}, functions or {}).program(expr)


class Helper:
    """A `let` as a function of steps, the span of the call, and the arguments. It is printed when it is first called."""

    def __init__(self, printed: Callable[[], tuple[Callable[..., Any], bool]]) -> None:
        self.run: Callable[..., Any] = self._first
        self._printed = printed

    def _first(self, *given: Any) -> Any:
        made, is_long = self._printed()
        self.run = running.remembered(made, partial(setattr, self, "run", made)) if is_long else made
        return self.run(*given)


class Compiler:
    """Prints trees as functions. A subclass changes what operators and functions mean on its values."""

    binary_ops: Mapping[str, Binop] = {op: meaning.value for op, meaning in operators.BINARY.items()}
    unary_ops: Mapping[str, Callable[[Value], Value]] = {op: meaning.value for op, meaning in operators.UNARY.items()}
    compare_ops: Mapping[str, Binop] = {op: meaning.value for op, meaning in operators.COMPARE.items()}
    is_plain = True
    """Are values what they are to Python? Python's own operators then compute and compare, and the results of helpers are
    remembered: functions may depend on nothing but their arguments."""

    def __init__(self, lets: Mapping[str, LetDecl], functions: Mapping[str, Function]) -> None:
        self.lets = lets
        self.functions: Mapping[str, Function] = {**FUNCTIONS, **functions} if functions else FUNCTIONS
        self._helpers: dict[str, Helper] = {}
        self._later: dict[int, tuple[Expr, Evaluator]] = {}
        """What is compiled of each expression, which a rule's variants share. The expression is kept, so that its id is."""

    def later(self, expr: Expr) -> Evaluator:
        """The expression as a function of an environment, compiled when it first runs: most never do."""
        value = expr.value if isinstance(expr, Const) else _constants(expr) if isinstance(expr, ListExpr) else None
        if value is not None:
            return lambda _env: value
        known = self._later.get(id(expr))
        if known is not None:
            return known[1]
        made: Evaluator | None = None

        def run(env: Env) -> Any:
            nonlocal made
            if made is None:
                made = self.program(expr)
            return made(env)

        if len(self._later) >= _MOST_KNOWN:
            self._later.clear()
        self._later[id(expr)] = expr, run
        return run

    def program(self, expr: Expr) -> Evaluator:
        """The expression as a function of an environment."""
        printed = Printed(["def f(env):", "", " try:"])
        try:
            self.result(expr, Scope(printed, {}, indent=2))
        except RecursionError:
            raise running.too_deep(expr.span) from None
        printed.lines[1] = f" s = [{running.STEP_LIMIT}]" * printed.takes_steps
        printed.lines.append(
            f" except (KeyError, RecursionError) as e: raise failed(e, {printed.bound(expr.span)}) from None"
        )
        return printed.made()

    def result(self, expr: Expr, scope: Scope) -> None:
        """Prints a whole expression, of a depth that the stack can take, and that its value is returned."""
        within_depth(expr)
        scope.line(f"return {self.value(expr, scope)}")

    def value(self, expr: Expr, scope: Scope) -> str:
        """Prints a node; the name that has its value then, or a constant."""
        if scope.indent > _DEEPEST or scope.loops > _MOST_LOOPS:
            return self._apart(expr, scope)
        scope.function.nodes += 1
        print_node: Callable[[Any, Scope], str] = getattr(self, _METHODS[type(expr)])
        return print_node(expr, scope)

    def walked(self, expr: Expr, scope: Scope) -> str:
        """A node whose value will be walked, which costs steps if it is a long list and code is repeated."""
        name = self.value(expr, scope)
        if scope.repeated and self._may_be_long(expr):
            scope.function.takes_steps = True
            scope.line(f"if type({name}) is tuple: pay({name}, s, {scope.bound(expr.span)})")
        return name

    def _may_be_long(self, expr: Expr) -> bool:
        """May a node's value be a list? Constants, numbers, truth values and words never cost more than a step."""
        if isinstance(expr, Call) and expr.function not in self.lets:
            return self.functions[expr.function].signature.rpartition("-> ")[2] not in _SHORT_KINDS
        return not isinstance(expr, Const | Compare | Unary) and not (isinstance(expr, Binary) and expr.op != "+")

    def _apart(self, expr: Expr, scope: Scope) -> str:
        """A node as a function of its own, where Python could not nest it deeper."""
        variables = list(scope.variables.values())
        printed = Printed([f"def f({', '.join(['s', 'env', *variables])}):"], names=scope.function.names)
        inner = replace(scope, function=printed, indent=1, loops=0, known={})
        inner.line(f"return {self.value(expr, inner)}")
        scope.function.takes_steps = True
        scope.function.nodes += printed.nodes
        env = "None" if scope.helper else "env"
        return scope.set(f"{scope.bound(printed.made())}({', '.join(['s', env, *variables])})")

    # ---- leaves and members

    def const(self, expr: Const, scope: Scope) -> str:
        value = expr.value
        if isinstance(value, float) and not math.isfinite(value):
            return scope.of_kind("number", scope.bound(value))
        text = f"({value!r})" if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)
        if isinstance(value, bool):
            return scope.of_kind("truth", text)
        return text if isinstance(value, str) else scope.of_kind("number", text)

    def name(self, expr: Name, scope: Scope) -> str:
        """A local variable, a dtype, or else a name of the environment."""
        name = expr.name
        if name in scope.variables:
            return scope.variables[name]
        if name in DTYPES:
            return repr(name)
        if scope.helper is not None:
            remedy = did_you_mean(name, scope.variables) or "a helper sees its own parameters only"
            raise error(f"unknown name `{name}` in the helper `{scope.helper}`", expr.span, remedy)
        return scope.read("env", name, f"env[{name!r}]", expr.span)

    def member(self, expr: Member, scope: Scope) -> str:
        base, name = self._variable_of(self.value(expr.base, scope), scope), expr.name
        found = f"{base}[{name!r}] if type({base}) is Members else member({base}, {name!r}, {scope.bound(expr.span)})"
        return scope.read(base, name, found, expr.span)

    def _variable_of(self, value: str, scope: Scope) -> str:
        """The name of a variable for a value that may be a constant: Python warns of code that takes one apart."""
        return value if value.isidentifier() and not iskeyword(value) else scope.set(value)

    # ---- lists

    def list_expr(self, expr: ListExpr, scope: Scope) -> str:
        constants = _constants(expr)
        if constants is not None:
            scope.function.nodes += len(constants)
            return scope.of_kind("list", scope.bound(constants))
        items = [self.walked(item, scope) for item in expr.items]
        listed = f"({', '.join(items)}{',' * (len(items) == 1)})"
        return scope.set(f"weighed_at({listed}, {scope.bound(expr.span)})")

    def index(self, expr: Index, scope: Scope) -> str:
        base, span = self._variable_of(self.value(expr.base, scope), scope), scope.bound(expr.span)
        at = self.value(expr.index, scope)
        inside = f"type({base}) is tuple and type({at}) is int and -1 < {at} < len({base})"
        return scope.set(f"{base}[{at}] if {inside} else index({base}, {at}, {span})")

    def slice_expr(self, expr: Slice, scope: Scope) -> str:
        ends = (expr.base, expr.start, expr.stop)
        names = ["None" if end is None else self.value(end, scope) for end in ends]
        return scope.set(f"part({', '.join(names)}, {scope.bound(expr.span)})")

    def comprehension(self, expr: Comprehension, scope: Scope) -> str:
        items, results, variable = self.value(expr.source, scope), scope.function.fresh(), scope.function.fresh()
        function, span = scope.function, scope.bound(expr.span)
        function.takes_steps = True
        scope.line(f"if type({items}) is not tuple: raise not_a_list({items}, {scope.bound(expr.source.span)})")
        place, before = len(function.lines), function.nodes
        scope.line("")
        scope.line(f"if s[0] < 0: raise exhausted({span})")
        scope.line(f"{results} = []")
        scope.line(f"for {variable} in {items}:")
        variables = {**scope.variables, expr.variable: variable}
        inner = replace(scope.inner, variables=variables, repeated=True, loops=scope.loops + 1)
        if expr.condition is not None:
            inner.line(f"if not {self.condition(expr.condition, inner)}: continue")
        inner.line(f"{results}.append({self.value(expr.body, inner)})")
        weight = 1 + function.nodes - before
        function.lines[place] += f"s[0] -= len({items}) * {weight}"
        return scope.of_kind("list", scope.set(f"weighed_at(tuple({results}), {span})"))

    # ---- operators

    def binary(self, expr: Binary, scope: Scope) -> str:
        if expr.op in ("and", "or"):
            return self.logic(expr, scope)
        left, right = self.value(expr.left, scope), self.value(expr.right, scope)
        apply = scope.bound(running.operation(self.binary_ops[expr.op], f"`{expr.op}`", expr.span))
        scope.function.takes_steps |= scope.repeated
        slow = f"{apply}({left}, {right}{', s' * scope.repeated})"
        direct = operators.BINARY[expr.op].direct
        if not direct:
            return scope.set(slow)
        result = scope.function.fresh()
        tests = self._numbers(scope, left, right)
        if direct == "divisor":
            tests += [right] if not isinstance(expr.right, Const) or not expr.right.value else []
        tests.append(f"{-INTEGER_LIMIT} < ({result} := {left} {expr.op} {right}) < {INTEGER_LIMIT}")
        scope.line(f"if not ({' and '.join(tests)}): {result} = {slow}")
        if self.is_plain and (expr.op != "+" or (scope.is_number(left) and scope.is_number(right))):
            scope.of_kind("number", result)
        return result

    def _numbers(self, scope: Scope, *operands: str) -> list[str]:
        """Tests that operands are numbers on which Python's operators work at once."""
        test = "type({}) in NUMBERS" if self.is_plain else "type({}) is int"
        return [test.format(o) for o in operands if not self.is_plain or not scope.is_number(o)]

    def _lists(self, scope: Scope, operand: str) -> list[str]:
        return [] if scope.function.kinds.get(operand) == "list" else [f"type({operand}) is tuple"]

    def logic(self, expr: Binary, scope: Scope) -> str:
        """`and` and `or`: the right side runs only where the left one does not decide."""
        result = scope.set(self.condition(expr.left, scope))
        scope.line(f"if {result}:" if expr.op == "and" else f"if not {result}:")
        scope.inner.line(f"{result} = {self.condition(expr.right, scope.inner)}")
        return scope.of_kind("truth", result)

    def condition(self, expr: Expr, scope: Scope) -> str:
        """A node that has to be true or false."""
        value = self.value(expr, scope)
        if scope.function.kinds.get(value) != "truth":
            value, span = self._variable_of(value, scope), scope.bound(expr.span)
            scope.line(f"if {value} is not True and {value} is not False: raise undecided({value}, {span})")
        return value

    def unary(self, expr: Unary, scope: Scope) -> str:
        operand = self.value(expr.operand, scope)
        if expr.op == "not" and scope.function.kinds.get(operand) == "truth":
            return scope.of_kind("truth", scope.set(f"not {operand}"))
        slow = f"{scope.bound(running.prefix(self.unary_ops[expr.op], f'`{expr.op}`', expr.span))}({operand})"
        if not self.is_plain:
            return scope.set(slow)
        if expr.op == "not":
            return scope.of_kind("truth", scope.set(slow))
        tests = self._numbers(scope, operand) if operators.UNARY[expr.op].direct else ["False"]
        return scope.of_kind("number", scope.set(f"{expr.op}{operand} if {' and '.join(tests) or True} else {slow}"))

    def compare(self, expr: Compare, scope: Scope) -> str:
        """A chain of comparisons: each link runs only while all before it hold."""
        left = self.walked(expr.operands[0], scope)
        result = ""
        for op, operand in zip(expr.ops, expr.operands[1:], strict=True):
            if result:
                scope.line(f"if {result} is not False:")
                scope = scope.inner
            right = self.walked(operand, scope)
            link = self._link(op, left, right, expr, scope)
            if result:
                scope.line(f"{result} = {self.both(result, link, expr, scope)}")
            else:
                result = scope.set(link)
            left = right
        return scope.of_kind("truth", result) if self.is_plain else result

    def _link(self, op: str, left: str, right: str, expr: Compare, scope: Scope) -> str:
        """One comparison of a chain."""
        fast, direct = f"{left} {op} {right}", operators.COMPARE[op].direct
        if direct == "any" and self.is_plain:
            return fast
        slow = f"{scope.bound(running.operation(self.compare_ops[op], f'`{op}`', expr.span))}({left}, {right})"
        if not self.is_plain:
            return slow
        tests = self._numbers(scope, left, right) if direct == "numbers" else self._lists(scope, right)
        return f"{fast} if {' and '.join(tests)} else {slow}" if tests else fast

    def both(self, _result: str, link: str, _expr: Compare, _scope: Scope) -> str:
        """Two links of a chain of comparisons, the first of which does not decide."""
        return link

    def if_else(self, expr: IfElse, scope: Scope) -> str:
        function, result = scope.function, scope.function.fresh()
        values = []
        scope.line(f"if {self.condition(expr.condition, scope)}:")
        for part, then in ((expr.then, ["else:"]), (expr.otherwise, [])):
            values.append(self.value(part, scope.inner))
            scope.inner.line(f"{result} = {values[-1]}")
            for line in then:
                scope.line(line)
        kinds = {function.kinds.get(value, "") for value in values}
        return scope.of_kind(kinds.pop(), result) if len(kinds) == 1 else result

    # ---- calls

    def call(self, expr: Call, scope: Scope) -> str:
        wrong = check_call(expr, self.lets, self.functions)
        if wrong is not None:
            raise GenrwError(wrong)
        if expr.function in self.lets:
            return self._helper_call(expr, [self.value(arg, scope) for arg in expr.args], scope)
        return self.function_call(
            self.functions[expr.function], expr, [self.walked(arg, scope) for arg in expr.args], scope
        )

    def function_call(self, function: Function, expr: Call, args: Sequence[str], scope: Scope) -> str:
        """A call of a built-in function."""
        result = scope.set(f"{scope.bound(running.checked(function, expr))}({', '.join(args)})")
        if FUNCTIONS.get(function.name) is not function:
            return result
        kind = function.signature.rpartition("-> ")[2]
        if kind == "bool":
            return scope.of_kind("truth", result)
        selects_numbers = "selects" in function.facts and all(map(scope.is_number, args))
        return scope.of_kind("number", result) if kind in _NUMBER_KINDS or selects_numbers else result

    def _helper_call(self, expr: Call, args: Sequence[str], scope: Scope) -> str:
        helper = self._helper(expr)
        scope.function.takes_steps = True
        return scope.set(f"{scope.bound(helper)}.run({', '.join(['s', scope.bound(expr.span), *args])})")

    def _helper(self, expr: Call, above: tuple[str, ...] = ()) -> Helper:
        """A `let` that is called, in the body of the one named last; it may be none of those."""
        name = expr.function
        if name in above:
            raise error(f"the helper `{name}` calls itself", expr.span, "helpers are not recursive")
        if name not in self._helpers:
            let = self.lets[name]
            for part in walk(let.body):
                if isinstance(part, Call) and part.function in self.lets:
                    self._helper(part, (*above, name))
            self._helpers[name] = Helper(partial(self._printed_helper, let))
        return self._helpers[name]

    def _printed_helper(self, let: LetDecl) -> tuple[Callable[..., Any], bool]:
        """The function of a `let`, and whether it takes longer than to remember what it gave."""
        variables = {parameter: f"v{i}" for i, parameter in enumerate(let.parameters, 1)}
        printed = Printed([f"def f({', '.join(['s', 'span', *variables.values()])}):"], names=len(variables))
        printed.lines += ["", " if s[0] < 0: raise exhausted(span)"]
        self.result(let.body, Scope(printed, variables, let.name, True))
        printed.lines[1] = f" s[0] -= {printed.nodes}"
        is_long = printed.nodes >= _WORTH_REMEMBERING or any(isinstance(v, Helper) for v in printed.values.values())
        return printed.made(), self.is_plain and is_long


def _constants(expr: ListExpr) -> tuple[Value, ...] | None:
    """The value of a short list of constants; None for other lists."""
    values = tuple([item.value for item in expr.items if isinstance(item, Const)])
    return values if len(values) == len(expr.items) <= _SHORT_LIST else None


_WORTH_REMEMBERING = 15
"""From how many nodes on the results of a helper that calls no other one are remembered: shorter ones are computed as fast."""
_DEEPEST, _MOST_LOOPS = 80, 12
"""How deep Python may nest lines and loops, and somewhat less."""
_SHORT_LIST, _MOST_KNOWN = 32, 1 << 13
_NUMBER_KINDS = frozenset({"int", "float", "number"})
_SHORT_KINDS = _NUMBER_KINDS | {"bool", "string", "dtype"}

_METHODS: dict[type, str] = {
    Binary: "binary",
    Call: "call",
    Compare: "compare",
    Comprehension: "comprehension",
    Const: "const",
    IfElse: "if_else",
    Index: "index",
    ListExpr: "list_expr",
    Member: "member",
    Name: "name",
    Slice: "slice_expr",
    Unary: "unary",
}
