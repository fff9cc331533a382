"""Scalar expressions as C++ text over the device header: pointwise meanings and the clauses of monoids.

Numbers take on the type of what they stand beside. Integer arithmetic goes through functions of the header,
because in C++ signed overflow is undefined. half and bf16 are computed in float.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from genrw.engine.ir.dtypes import DTYPES, promote
from genrw.engine.language.builtins import BUILTINS
from genrw.engine.language.expr_walk import walk, within_depth
from genrw.engine.language.meaning import InCpp, Written, infix
from genrw.engine.language.operators import BINARY, COMPARE, LOGIC, UNARY
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, IfElse, Member, Name, Unary
from genrw.grammar.rw_tree import PRECEDENCES

_RANK = {name: i for i, name in enumerate(PRECEDENCES)}

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


def branches(expr: Expr) -> bool:
    """Do compilers make branches of an expression?"""
    functions = (BUILTINS[e.function].cpp for e in walk(expr) if isinstance(e, Call) and e.function in BUILTINS)
    operators = (BINARY[e.op] for e in walk(expr) if isinstance(e, Binary) and e.op in BINARY)
    return any(isinstance(f, InCpp) and f.branches for f in functions) or any(o.branches for o in operators)


def cpp_expr(
    expr: Expr, names: Mapping[str, str], dtype: str, types: Mapping[str, str] | None = None, result: str = ""
) -> tuple[str, str]:
    """An expression's C++ text and precedence. `names` maps `a` or `a.field` to C++ text: an atom, unless the
    text has a `precedence`.

    `dtype` is the type of all names (and what `type` means) but those in `types`. Where the `result` is to be an
    integer and the expression is none, it is converted.
    """
    printer = _checked(expr, names, dtype, types or {}, bare=not result)
    printed = printer.whole(expr)
    found = _settled(printer.type(expr), dtype)
    if result and DTYPES[result].is_integer and DTYPES[found].is_float:
        return f"gen::convert<{DTYPES[result].cpp}>({printed.text})", "atom"
    return printed.text, printed.precedence


def cpp_braced(expr: Expr, names: Mapping[str, str], dtype: str, types: Mapping[str, str], result: str) -> str:
    """An expression's C++ text for a place within braces, where C++ narrows nothing by itself. Numbers that stand alone
    are of the result's type; a name of type `WHOLE` is a plain number."""
    printer = _checked(expr, names, dtype, types, bare=True)
    found = _settled(printer.type(expr), result)
    text, wanted = printer.print(expr, found).text, DTYPES[result]
    if found == wanted.compute:
        return text
    function = "static_cast" if DTYPES[found].is_integer and wanted.is_integer else "gen::convert"
    return f"{function}<{wanted.cpp}>({text})"


def _checked(expr: Expr, names: Mapping[str, str], dtype: str, types: Mapping[str, str], *, bare: bool) -> _Printer:
    """What prints an expression of which C++ has all the functions. One that is `bare` stays of the type that it is rounded to."""
    within_depth(expr)
    for node in walk(expr):
        if isinstance(node, Call):
            _check_count(node)
    return _Printer(expr if bare else None, names, dtype, types)


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

    def __init__(self, root: Expr | None, names: Mapping[str, str], dtype: str, types: Mapping[str, str]) -> None:
        self.root, self.names, self.dtype, self.named_types = root, names, dtype, types
        self._types: dict[int, str] = {}
        self._written: dict[int, Expr] = {}

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
        meaning = _in_cpp(expr)
        if meaning.written_as is not None:
            return self.type(self._written_as(expr, meaning.written_as))
        if meaning.names is not None:
            return DTYPES[self.named_type(expr.args[meaning.names])].compute
        return "bool" if meaning.is_test else self.meet(*expr.args)

    def _written_as(self, expr: Call, write: Callable[[Call], Expr]) -> Expr:
        """The expression that stands for a call; the same one each time, since types are known by the node."""
        if id(expr) not in self._written:
            self._written[id(expr)] = write(expr)
        return self._written[id(expr)]

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
            raise error(f"`{name}` is not the name of a type", expr.span, "write `type`, or one such as float")
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
            remedy = f"{number} runs from {limits.smallest} to {limits.largest}"
            raise error(f"{expr.value} does not fit in {number}", expr.span, remedy)
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
                raise error(
                    f"`{path}` is a type, which has no value in C++", expr.span, "convert to it: convert(x, type)"
                )
            return Cpp(text, getattr(text, "precedence", "atom"))
        if isinstance(expr, Member) and isinstance(expr.base, Name) and expr.base.name in self.names:
            return Cpp(f"{self.names[expr.base.name]}.{expr.name}", "atom")
        raise error(f"unknown name `{path}`", expr.span, f"one may name {', '.join(sorted(self.names))}")

    def _unary(self, expr: Unary, number: str) -> Cpp:
        own = "bool" if expr.op == "not" else _settled(self.type(expr.operand), number)
        operand = self.whole(expr.operand) if expr.op == "not" else self.print(expr.operand, own)
        return self._operation(expr, UNARY[expr.op].cpp, own, operand)

    def _binary(self, expr: Binary, number: str) -> Cpp:
        if expr.op in LOGIC:
            return _filled(LOGIC[expr.op][0], "bool", self.whole(expr.left), self.whole(expr.right))
        dtype = _settled(self.meet(expr.left, expr.right), number)
        texts = BINARY[expr.op].cpp
        count = expr.right.value if isinstance(expr.right, Const) else None
        if "by_constant" in texts and isinstance(count, int) and 0 <= count < DTYPES[dtype].bits:
            texts = {"integers": texts["by_constant"]}
        return self._operation(expr, texts, dtype, self.print(expr.left, dtype), self.print(expr.right, dtype))

    def _operation(self, expr: Unary | Binary, texts: Mapping[str, Written], dtype: str, *operands: Cpp) -> Cpp:
        """The text of an operator for a type; what C++ computes in int is made the narrower type it belongs to."""
        written = texts.get("unsigned") if dtype in ("uint32", "uint64") else None
        written = written or texts.get(_kind(dtype))
        if written is None:
            what = "floating-point values" if DTYPES[dtype].is_float and len(operands) > 1 else dtype
            raise _unsupported(f"`{expr.op}` of {what}", expr)
        made = _filled(written, dtype, *operands)
        if made.precedence != "atom" and DTYPES[dtype].is_integer and DTYPES[dtype].itemsize < 4:
            return Cpp(f"{DTYPES[dtype].cpp}({made.text})", "atom")
        return made

    def _compare(self, expr: Compare) -> Cpp:
        pairs = pairwise(expr.operands)
        links = [self._link(op, a, b) for op, (a, b) in zip(expr.ops, pairs, strict=True)]
        return reduce(lambda left, right: _filled(LOGIC["and"][0], "bool", left, right), links)

    def _link(self, op: str, a: Expr, b: Expr) -> Cpp:
        if not COMPARE[op].binds:
            raise _unsupported(f"`{op}`", a)
        dtype = _settled(self.meet(a, b), self.dtype)
        return _filled(infix(op, COMPARE[op].binds), dtype, self.print(a, dtype), self.print(b, dtype))

    def _choice(self, condition: Expr, then: Expr, otherwise: Expr, number: str) -> Cpp:
        dtype = _settled(self.meet(then, otherwise), number)
        test, yes, no = self.whole(condition), self.print(then, dtype), self.print(otherwise, dtype)
        return Cpp(f"{test.within('or')} ? {yes.within('or')} : {no.text}", "cond")

    # ---- calls

    def _call(self, expr: Call, number: str) -> Cpp:
        meaning = _in_cpp(expr)
        if meaning.written_as is not None:
            return self.print(self._written_as(expr, meaning.written_as), number)
        if meaning.printed_by:
            printed: Cpp = getattr(self, meaning.printed_by)(expr, number)
            return printed
        args = [arg for place, arg in enumerate(expr.args) if place != meaning.names]
        # a result of another type than the arguments leaves its place no say in what plain numbers are
        own = self.dtype if meaning.is_test or meaning.names is not None else number
        dtype = _settled(self.meet(*args), own) if args else own
        text = {"floats": meaning.floats, "integers": meaning.integers, "bools": meaning.bools}[_kind(dtype)]
        if not text:
            raise _unsupported(f"`{expr.function}` of {dtype}", expr)
        printed_args = [self.print(arg, dtype) for arg in args]
        if text == "{0}":
            return printed_args[0]
        named = dtype if meaning.names is None else self.named_type(expr.args[meaning.names])
        binds = meaning.floats_bind if DTYPES[dtype].is_float else "atom"
        written = Written(text, binds)
        if len(printed_args) > 2 and BUILTINS[expr.function].arity()[1]:
            return reduce(lambda a, b: _filled(written, named, a, b), printed_args)
        made, compute = _filled(written, named, *printed_args), DTYPES[named].compute
        if meaning.names is None or compute == named or expr is self.root:
            return made
        # What is rounded to a type is computed with in another one.
        return Cpp(f"gen::convert<{DTYPES[compute].cpp}>({made.text})", "atom")

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


def _in_cpp(call: Call) -> InCpp:
    """How C++ writes a call. Refuses functions that it has no text for."""
    meaning = BUILTINS[call.function].cpp if call.function in BUILTINS else None
    if not isinstance(meaning, InCpp):
        raise _unsupported(f"`{call.function}`", call)
    return meaning


def _check_count(call: Call) -> None:
    """Refuses calls that C++ has no text for."""
    _in_cpp(call)
    count, (wanted, more) = len(call.args), BUILTINS[call.function].arity()
    if count < wanted or (count > wanted and not more):
        how_many = f"{'at least ' if more else ''}{wanted} argument{'s' * (wanted > 1)}"
        raise error(f"`{call.function}` takes {how_many}, not {count}", call.span)


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


def _kind(dtype: str) -> str:
    """The kind of an element type, as the tables of texts have it."""
    return "floats" if DTYPES[dtype].is_float else "integers" if DTYPES[dtype].is_integer else "bools"


def _filled(written: Written, dtype: str, *operands: Cpp) -> Cpp:
    """A text with its operands, with no more parentheses than they need."""
    sides = (written.left, written.right, "cond")
    texts = [operand.within(side) for operand, side in zip(operands, sides, strict=False)]
    return Cpp(written.text.format(*texts, type=DTYPES[dtype].cpp), written.binds)


def _path(expr: Expr) -> str:
    """`a` or `a.b` as text."""
    if isinstance(expr, Name):
        return expr.name
    if isinstance(expr, Member):
        return f"{_path(expr.base)}.{expr.name}"
    raise _unsupported("this", expr)


def _unsupported(what: str, expr: Expr) -> GenrwError:
    return error(f"{what} cannot be printed as C++", expr.span, "give the operator an `emit`")
