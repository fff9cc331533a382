"""The forms in which the tables of functions and operators say what each of them means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from genrw.grammar.expr_tree import Call, Expr
from genrw.grammar.rw_tree import PRECEDENCES

NUMBERS, INTEGERS, BITS, REALS, ANY = "iuf", "iu", "iub", "f", "iufb"
"""numpy's letters for the kinds of elements that tensors may have."""


@dataclass(frozen=True)
class Without:
    """A meaning that is missing, and why."""

    why: str


@dataclass(frozen=True)
class Written:
    """C++ text in which `{0}` and `{1}` are operands, and `{type}` is their type.

    Where operands stand, operators that bind as tightly as `left` and `right` need no parentheses.
    """

    text: str
    binds: str = "atom"
    left: str = "cond"
    right: str = "cond"


def infix(op: str, precedence: str) -> Written:
    """A left-associative operator."""
    return Written(f"{{0}} {op} {{1}}", precedence, precedence, PRECEDENCES[PRECEDENCES.index(precedence) - 1])


@dataclass(frozen=True)
class OfTensors:
    """A function of tensors. `array_functions` makes it, so that numpy is loaded when something is computed.

    `form` is how the tensors are taken: see `array_functions.FORMS`; `compute` is the name of what computes them.
    """

    signature: str
    doc: str
    form: str
    compute: str
    kinds: str = ""


@dataclass(frozen=True)
class InCpp:
    """A call in C++: a text for arguments of floating, of integer and of truth values; none where there is no text.

    `{0}`, `{1}` … are the arguments, `{type}` is the type that they meet in. Where more arguments may follow, each is
    joined with those before it. A test gives a truth value. A call whose argument `names` stands for a type gives that one.
    """

    floats: str = ""
    integers: str = ""
    bools: str = ""
    floats_bind: str = "atom"
    is_test: bool = False
    names: int | None = None
    written_as: Callable[[Call], Expr] | None = None
    """The expression that stands for the call."""
    printed_by: str = ""
    """The method of the printer that writes what depends on more than types."""
    branches: bool = False
    """Do compilers make branches of it?"""


def primitive(name: str) -> Callable[..., Any]:
    """A function of egglog, by what makes a call and the arguments."""
    return lambda call, *args: call(name, *args)
