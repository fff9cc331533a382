"""Scalar expressions as C++ text over the device header: pointwise meanings and the clauses of monoids.

Numbers take on the type of what they stand beside. Integer arithmetic goes through functions of the header,
because in C++ signed overflow is undefined. half and bf16 are computed in float.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from genrw.engine.ir.dtypes import DTYPES, promote
from genrw.engine.language.expr_walk import walk, within_depth
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, IfElse, Member, Name, Unary

PRECEDENCES = ("atom", "unary", "mul", "add", "shift", "compare", "equal", "and", "or", "cond")
"""How tightly C++ operators bind, tightest first."""

_RANK = {name: i for i, name in enumerate(PRECEDENCES)}
_COMPARE = {"==": "equal", "!=": "equal", "<": "compare", "<=": "compare", ">": "compare", ">=": "compare"}
_ARITHMETIC = {"+": ("add", "add"), "-": ("sub", "add"), "*": ("mul", "mul")}
"""Operators with the header's function for integers and the precedence of their C++ operator."""

_TESTS = frozenset({"isnan", "isinf", "isfinite"})
_FOLDS = frozenset({"min", "max"})
_ROUNDING = frozenset({"floor", "ceil", "trunc", "round"})
_FLOATING = frozenset(
    {
        *("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "pow", "fma", "erf"),
        *("sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    }
)

# Types of numbers that stand alone: they become whatever they meet.
WHOLE, _REAL = "a whole number", "a real number"


class TypeWord(str):
    """What a name stands for, where that is an element type; a variable may be called as a type is."""


class Cpp(NamedTuple):
    """A C++ expression and how tightly its outermost operator binds."""

    text: str
    precedence: str

    def within(self, precedence: str) -> str:
        """The text for a place where operators up to a precedence may stand bare."""
        return self.text if _RANK[self.precedence] <= _RANK[precedence] else f"({self.text})"


def cpp_expr(
    expr: Expr, names: Mapping[str, str], dtype: str, types: Mapping[str, str] | None = None, result: str = ""
) -> tuple[str, str]:
    """An expression's C++ text and precedence. `names` maps `a` or `a.field` to C++ text: an atom, unless the
    text has a `precedence`.

    `dtype` is the type of all names (and what `type` means) but those in `types`. Where the `result` is to be an
    integer and the expression is none, it is converted.
    """
    printer = _checked(expr, names, dtype, types or {})
    printed = printer.whole(expr)
    found = _settled(printer.type(expr), dtype)
    if result and DTYPES[result].is_integer and DTYPES[found].is_float:
        return f"gen::convert<{DTYPES[result].cpp}>({printed.text})", "atom"
    return printed.text, printed.precedence


def cpp_braced(expr: Expr, names: Mapping[str, str], dtype: str, types: Mapping[str, str], result: str) -> str:
    """An expression's C++ text for a place within braces, where C++ narrows nothing by itself. Numbers that stand alone
    are of the result's type; a name of type `WHOLE` is a plain number."""
    printer = _checked(expr, names, dtype, types)
    found = _settled(printer.type(expr), result)
    text, wanted = printer.print(expr, found).text, DTYPES[result]
    if found == wanted.compute:
        return text
    function = "static_cast" if DTYPES[found].is_integer and wanted.is_integer else "gen::convert"
    return f"{function}<{wanted.cpp}>({text})"


def _checked(expr: Expr, names: Mapping[str, str], dtype: str, types: Mapping[str, str]) -> _Printer:
    """What prints an expression of which C++ has all the functions."""
    within_depth(expr)
    for node in walk(expr):
        if isinstance(node, Call):
            _check_count(node)
    return _Printer(names, dtype, types)


def cpp_number(value: float, dtype: str) -> str:
    """A literal of an element type."""
    if dtype == "bool":
        return "true" if value else "false"
    if DTYPES[dtype].compute != dtype:
        return f"{DTYPES[dtype].cpp}({cpp_number(value, DTYPES[dtype].compute)})"
    return _float_literal(float(value), dtype) if DTYPES[dtype].is_float else _integer_literal(int(value), dtype)


def _float_literal(value: float, dtype: str) -> str:
    if math.isnan(value):
        return f"gen::nan<{dtype}>()"
    if abs(value) > DTYPES[dtype].largest:
        return f"{'-' if value < 0 else ''}gen::infinity<{dtype}>()"
    return repr(value) if dtype == "double" else f"{_shortest_float(value)}f"


def _shortest_float(value: float) -> str:
    """The fewest digits that give the same float."""
    single = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, 10):
        text = f"{single:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            break
    return text if "e" in text or "." in text else f"{text}.0"


def _integer_literal(value: int, dtype: str) -> str:
    if value == DTYPES[dtype].smallest and dtype in ("int32", "int64"):
        return f"gen::lowest<{DTYPES[dtype].cpp}>()"  # C++ has no negative literals: -2147483648 is not an int
    if value > DTYPES["int64"].largest:
        return f"{value}ULL"
    return str(value) if abs(value) <= DTYPES["int32"].largest else f"{value}LL"


class _Printer:
    """Prints one expression. Each method for a node takes the type that plain numbers in it take on."""

    def __init__(self, names: Mapping[str, str], dtype: str, types: Mapping[str, str]) -> None:
        self.names, self.dtype, self.named_types = names, dtype, types
        self._types: dict[int, str] = {}

    def whole(self, expr: Expr) -> Cpp:
        """The expression with numbers that meet no other type in the type of the names."""
        return self.print(expr, _settled(self.type(expr), self.dtype))

    # ---- types

    def type(self, expr: Expr) -> str:
        """The element type of a node, or what kind of plain number it is."""
        if id(expr) not in self._types:
            self._types[id(expr)] = self._find_type(expr)
        return self._types[id(expr)]

    def _find_type(self, expr: Expr) -> str:
        match expr:
            case Const(bool()) | Compare() | Unary("not", _) | Binary("and" | "or", _, _):
                return "bool"
            case Const(str()):
                raise _unsupported("a string", expr)
            case Const(int()):
                return WHOLE
            case Const(float()):
                return _REAL
            case Name() | Member():
                named = self.named_types.get(_path(expr), self.dtype)
                return named if named == WHOLE else DTYPES[named].compute
            case Unary(_, operand):
                return self.type(operand)
            case Binary(_, left, right) | IfElse(_, left, right):
                return self.meet(left, right)
            case Call():
                return self._type_of_call(expr)
        raise _unsupported("this", expr)

    def _type_of_call(self, expr: Call) -> str:
        if expr.function in _TESTS:
            return "bool"
        if expr.function in _SPECIAL_TYPES:
            return _SPECIAL_TYPES[expr.function](self, expr)
        return self.meet(*expr.args)

    def meet(self, *operands: Expr) -> str:
        """The type of an operation on operands."""
        return reduce(_meet, map(self.type, operands))

    def named_type(self, expr: Expr) -> str:
        """The dtype that an argument such as `type`, `half` or an attribute's name stands for."""
        name = expr.value if isinstance(expr, Const) else _path(expr)
        if name == "type" or (isinstance(expr, Member) and expr.name == "type"):
            return self.dtype
        dtype = self.names.get(str(name), TypeWord(name))
        if not isinstance(dtype, TypeWord) or dtype not in DTYPES:
            raise error(f"`{name}` is not the name of a type", expr.span)
        return dtype

    # ---- nodes

    def print(self, expr: Expr, number: str) -> Cpp:
        """One node; `number` is the type of plain numbers at its place."""
        match expr:
            case Const():
                return self._const(expr, number)
            case Name() | Member():
                return self._name(expr, number)
            case Unary():
                return self._unary(expr, number)
            case Binary():
                return self._binary(expr, number)
            case Compare():
                return self._compare(expr)
            case IfElse():
                return self._choice(expr.condition, expr.then, expr.otherwise, number)
            case Call():
                return self._call(expr, number)
        raise _unsupported("this", expr)

    def _const(self, expr: Const, number: str) -> Cpp:
        if isinstance(expr.value, bool):
            return Cpp(cpp_number(expr.value, "bool"), "atom")
        assert not isinstance(expr.value, str)  # such a node has no type
        limits = DTYPES[number]
        if limits.is_integer and not limits.smallest <= expr.value <= limits.largest:
            raise error(f"{expr.value} does not fit in {number}", expr.span)
        text = cpp_number(expr.value, number)
        if limits.is_integer and limits.itemsize < 4:
            return Cpp(f"{limits.cpp}({text})", "atom")  # a bare literal is an int
        return Cpp(text, "unary" if text.startswith("-") else "atom")

    def _name(self, expr: Name | Member, number: str) -> Cpp:
        path = _path(expr)
        if self.named_types.get(path) == WHOLE:
            return Cpp(f"static_cast<{DTYPES[number].cpp}>({self.names[path]})", "atom")
        if path in self.names:
            text = self.names[path]
            if isinstance(text, TypeWord):
                raise error(f"`{path}` is a type, which has no value in C++", expr.span)
            return Cpp(text, getattr(text, "precedence", "atom"))
        if isinstance(expr, Member) and isinstance(expr.base, Name) and expr.base.name in self.names:
            return Cpp(f"{self.names[expr.base.name]}.{expr.name}", "atom")
        raise error(f"unknown name `{path}`", expr.span)

    def _unary(self, expr: Unary, number: str) -> Cpp:
        if expr.op == "not":
            return Cpp(f"!{self.whole(expr.operand).within('atom')}", "unary")
        own = _settled(self.type(expr.operand), number)
        operand = self.print(expr.operand, own)
        if expr.op == "-" and DTYPES[own].is_integer:
            return Cpp(f"gen::sub<{DTYPES[own].cpp}>(0, {operand.text})", "atom")
        if expr.op == "~" and not DTYPES[own].is_integer:
            raise _unsupported(f"`~` of {own}", expr)
        return self._narrowed(Cpp(f"{expr.op}{operand.within('atom')}", "unary"), own)

    def _narrowed(self, made: Cpp, dtype: str) -> Cpp:
        """The result of an operator that C++ computes in int, as the narrower type it belongs to."""
        if DTYPES[dtype].is_integer and DTYPES[dtype].itemsize < 4:
            return Cpp(f"{DTYPES[dtype].cpp}({made.text})", "atom")
        return made

    def _binary(self, expr: Binary, number: str) -> Cpp:
        if expr.op in ("and", "or"):
            left, right = self.whole(expr.left), self.whole(expr.right)
            return _infix(left, {"and": "&&", "or": "||"}[expr.op], right, expr.op)
        dtype = _settled(self.meet(expr.left, expr.right), number)
        left, right = self.print(expr.left, dtype), self.print(expr.right, dtype)
        if DTYPES[dtype].is_float:
            return self._floating(expr, left, right)
        return self._integer(expr, left, right, dtype)

    def _floating(self, expr: Binary, left: Cpp, right: Cpp) -> Cpp:
        if expr.op in _ARITHMETIC:
            return _infix(left, expr.op, right, _ARITHMETIC[expr.op][1])
        if expr.op == "/":
            return _infix(left, "/", right, "mul")
        if expr.op == "//":
            return Cpp(f"gen::floor({_infix(left, '/', right, 'mul').text})", "atom")
        if expr.op == "**":
            return Cpp(f"gen::pow({left.text}, {right.text})", "atom")
        if expr.op == "%":
            return Cpp(f"gen::floor_mod({left.text}, {right.text})", "atom")
        raise _unsupported(f"`{expr.op}` of floating-point values", expr)

    def _integer(self, expr: Binary, left: Cpp, right: Cpp, dtype: str) -> Cpp:
        cpp = DTYPES[dtype].cpp
        if expr.op in ("&", "|", "^"):
            return Cpp(f"({left.within('shift')} {expr.op} {right.within('shift')})", "atom")
        if dtype == "bool" or expr.op == "**":
            raise _unsupported(f"`{expr.op}` of {dtype}", expr)
        if expr.op in ("<<", ">>"):
            return self._shift(expr, left, right, dtype)
        if expr.op in _ARITHMETIC:
            function, precedence = _ARITHMETIC[expr.op]
            if dtype in ("uint32", "uint64"):
                return _infix(left, expr.op, right, precedence)
            return Cpp(f"gen::{function}<{cpp}>({left.text}, {right.text})", "atom")
        function = {"/": "trunc_div", "//": "floor_div", "%": "floor_mod"}[expr.op]
        return Cpp(f"gen::{function}<{cpp}, {cpp}>({left.text}, {right.text})", "atom")

    def _shift(self, expr: Binary, left: Cpp, right: Cpp, dtype: str) -> Cpp:
        """C++ defines shifts by less than the width only."""
        count = expr.right.value if isinstance(expr.right, Const) else None
        if isinstance(count, int) and 0 <= count < DTYPES[dtype].bits:
            return self._narrowed(_infix(left, expr.op, right, "shift"), dtype)
        function, cpp = {"<<": "shift_left", ">>": "shift_right"}[expr.op], DTYPES[dtype].cpp
        return Cpp(f"gen::{function}<{cpp}>({left.text}, {right.text})", "atom")

    def _compare(self, expr: Compare) -> Cpp:
        pairs = pairwise(expr.operands)
        links = [self._link(op, a, b) for op, (a, b) in zip(expr.ops, pairs, strict=True)]
        result = links[0]
        for link in links[1:]:
            result = _infix(result, "&&", link, "and")
        return result

    def _link(self, op: str, a: Expr, b: Expr) -> Cpp:
        if op not in _COMPARE:
            raise _unsupported(f"`{op}`", a)
        dtype = _settled(self.meet(a, b), self.dtype)
        return _infix(self.print(a, dtype), op, self.print(b, dtype), _COMPARE[op])

    def _choice(self, condition: Expr, then: Expr, otherwise: Expr, number: str) -> Cpp:
        dtype = _settled(self.meet(then, otherwise), number)
        test, yes, no = self.whole(condition), self.print(then, dtype), self.print(otherwise, dtype)
        return Cpp(f"{test.within('or')} ? {yes.within('or')} : {no.text}", "cond")

    # ---- calls

    def _call(self, expr: Call, number: str) -> Cpp:
        function, args = expr.function, expr.args
        if function in _SPECIAL:
            return _SPECIAL[function](self, expr, number)
        if function in _FOLDS:
            return self._fold(function, args, number)
        dtype = _settled(self.meet(*args), self.dtype if function in _TESTS else number)
        if not DTYPES[dtype].is_float:
            if function in _ROUNDING:
                return self.print(args[0], dtype)
            if function in _FLOATING:
                raise _unsupported(f"`{function}` of {dtype}", expr)
        return self._plain(function, args, dtype)

    def _plain(self, function: str, args: Sequence[Expr], dtype: str) -> Cpp:
        """A call of the header's function of the same name."""
        texts = ", ".join(self.print(arg, dtype).text for arg in args)
        return Cpp(f"gen::{function}({texts})", "atom")

    def _fold(self, function: str, args: Sequence[Expr], number: str) -> Cpp:
        dtype = _settled(self.meet(*args), number)
        text, *rest = [self.print(arg, dtype).text for arg in args]
        for other in rest:
            text = f"gen::{function}({text}, {other})"
        return Cpp(text, "atom")

    def clamp(self, expr: Call, number: str) -> Cpp:
        """max from below, then min from above."""
        x, low, high = expr.args
        span = expr.span
        return self.print(Call("min", (Call("max", (x, low), span=span), high), span=span), number)

    def sign(self, expr: Call, number: str) -> Cpp:
        """A choice: nan is neither above nor below 0, and stays; what is left of floats loses the sign of -0.

        A function makes it for an operand that takes computing.
        """
        dtype = _settled(self.type(expr.args[0]), number)
        x = self.print(expr.args[0], dtype)
        if x.precedence != "atom":
            return Cpp(f"gen::sign<{DTYPES[dtype].cpp}>({x.text})", "atom")
        zero, one = (self._const(Const(value), dtype).text for value in (0, 1))
        below = f"{x.text} < {zero} ? {self._const(Const(-1), dtype).text} : " if DTYPES[dtype].is_signed else ""
        rest = f"{x.text} + {zero}" if DTYPES[dtype].is_float else x.text
        return Cpp(f"{x.text} > {zero} ? {one} : {below}{rest}", "cond")

    def where(self, expr: Call, number: str) -> Cpp:
        """The same as `a if condition else b`."""
        condition, a, b = expr.args
        return self._choice(condition, a, b, number)

    def convert(self, expr: Call, _number: str) -> Cpp:
        """Plain numbers are converted from the type of the names."""
        return Cpp(
            f"gen::convert<{DTYPES[self.named_type(expr.args[1])].cpp}>({self.whole(expr.args[0]).text})",
            "atom",
        )

    def limit(self, expr: Call, _number: str) -> Cpp:
        """`lowest(type)` or `highest(type)`."""
        return Cpp(f"gen::{expr.function}<{DTYPES[self.named_type(expr.args[0])].cpp}>()", "atom")

    def isfinite(self, expr: Call, _number: str) -> Cpp:
        """A magnitude below infinity; nan compares false."""
        dtype = _settled(self.type(expr.args[0]), self.dtype)
        if not DTYPES[dtype].is_float:
            return Cpp("true", "atom")
        return Cpp(f"{self._plain('abs', expr.args, dtype).text} < gen::infinity<{dtype}>()", "compare")

    def fmod(self, expr: Call, number: str) -> Cpp:
        """The remainder of the truncating division."""
        dtype = _settled(self.meet(*expr.args), number)
        left, right = (self.print(arg, dtype).text for arg in expr.args)
        if DTYPES[dtype].is_float:
            return Cpp(f"gen::trunc_mod({left}, {right})", "atom")
        if not DTYPES[dtype].is_integer:
            raise _unsupported(f"`fmod` of {dtype}", expr)
        return Cpp(f"gen::trunc_mod<{DTYPES[dtype].cpp}, {DTYPES[dtype].cpp}>({left}, {right})", "atom")


_SPECIAL: dict[str, Callable[[_Printer, Call, str], Cpp]] = {
    "clamp": _Printer.clamp,
    "convert": _Printer.convert,
    "fmod": _Printer.fmod,
    "highest": _Printer.limit,
    "isfinite": _Printer.isfinite,
    "lowest": _Printer.limit,
    "sign": _Printer.sign,
    "where": _Printer.where,
}
"""Calls that do not print as a call of the same name."""

_SPECIAL_TYPES: dict[str, Callable[[_Printer, Call], str]] = {
    "convert": lambda printer, expr: DTYPES[printer.named_type(expr.args[-1])].compute,
    "highest": lambda printer, expr: printer.named_type(expr.args[-1]),
    "lowest": lambda printer, expr: printer.named_type(expr.args[-1]),
    "where": lambda printer, expr: printer.meet(*expr.args[1:]),
}


_COUNTS = {"clamp": 3, "convert": 2, "fma": 3, "fmod": 2, "pow": 2, "where": 3}
"""How many arguments functions take that do not take one."""


def _check_count(call: Call) -> None:
    """Refuses functions that C++ has no text for, and wrong numbers of arguments."""
    name, count = call.function, len(call.args)
    if name not in {*_SPECIAL, *_FOLDS, *_FLOATING, *_ROUNDING, *_TESTS, "abs"}:
        raise _unsupported(f"`{name}`", call)
    wanted = _COUNTS.get(name, 1)
    if name in _FOLDS and count < 2:
        raise error(f"`{name}` takes at least 2 arguments, not {count}", call.span)
    if name not in _FOLDS and count != wanted:
        raise error(f"`{name}` takes {wanted} argument{'s' * (wanted > 1)}, not {count}", call.span)


def _meet(a: str, b: str) -> str:
    """The type two types meet in; a plain number takes on the other's, where that can hold its kind."""
    if a in DTYPES and b in DTYPES:
        return promote(a, b)
    if a not in DTYPES and b not in DTYPES:
        return _REAL if _REAL in (a, b) else WHOLE
    number, dtype = (b, a) if a in DTYPES else (a, b)
    if number == _REAL:
        return dtype if DTYPES[dtype].is_float else "double"
    return "int32" if dtype == "bool" else dtype


def _settled(found: str, number: str) -> str:
    """The type a node is printed in: its own, or for plain numbers the one given."""
    own = found if found in DTYPES else _meet(found, number)
    return DTYPES[own].compute


def _infix(left: Cpp, op: str, right: Cpp, precedence: str) -> Cpp:
    """A left-associative operator with no more parentheses than it needs."""
    tighter = PRECEDENCES[_RANK[precedence] - 1]
    return Cpp(f"{left.within(precedence)} {op} {right.within(tighter)}", precedence)


def _path(expr: Expr) -> str:
    """`a` or `a.b` as text."""
    if isinstance(expr, Name):
        return expr.name
    if isinstance(expr, Member):
        return f"{_path(expr.base)}.{expr.name}"
    raise _unsupported("this", expr)


def _unsupported(what: str, expr: Expr) -> GenrwError:
    return error(f"{what} cannot be printed as C++", expr.span, "give the operator an `emit`")
