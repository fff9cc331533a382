"""What a function of the expression language is: its signature, and the kinds of values it takes.

An implementation may assume that its arguments are of the kinds its signature names: the caller checks them. What is
wrong beyond kinds it reports with `Misuse`, a sentence that gets a place later. `builtins` has the table of functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from genrw.engine.ir import dtypes

T = TypeVar("T")
Value = Any
"""An int, float, bool, string, a tuple of values, or an object with members."""

INTEGER_LIMIT = 1 << 128
LIST_LIMIT = 1 << 16


class Misuse(Exception):
    """A value an operation cannot take: one sentence, without a place, and what to do about it."""

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


# ---- kinds of arguments


_NUMBERS = frozenset({int, float, bool})
_INTEGERS = frozenset({int, bool})


def _list_of(types: frozenset[type]) -> Callable[[Value], bool]:
    return lambda value: type(value) is tuple and types.issuperset(map(type, value))


def _one_of(types: frozenset[type]) -> Callable[[Value], bool]:
    return lambda value: type(value) in types


KINDS: dict[str, tuple[Callable[[Value], bool], str]] = {
    "any": (lambda _: True, "a value"),
    "bool": (_one_of(frozenset({bool})), "true or false"),
    "bools": (_list_of(frozenset({bool})), "a list of truth values"),
    "dtype": (lambda value: type(value) is str and value in dtypes.DTYPES, "a dtype"),
    "int": (_one_of(_INTEGERS), "an integer"),
    "ints": (_list_of(_INTEGERS), "a list of integers"),
    "list": (_one_of(frozenset({tuple})), "a list"),
    "lists": (_list_of(frozenset({tuple})), "a list of lists"),
    "number": (_one_of(_NUMBERS), "a number"),
    "numbers": (_list_of(_NUMBERS), "a list of numbers"),
    "string": (_one_of(frozenset({str})), "a string"),
}
"""What a signature may ask of an argument: a test, and how messages call it."""


def describe(value: Value) -> str:
    """What a value is, as messages say it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a float"
    if isinstance(value, str):
        return f'the string "{value}"' if len(value) <= 20 else "a string"
    if isinstance(value, tuple):
        return _describe_list(value)
    return getattr(value, "described_as", None) or f"a {type(value).__name__}"


def _describe_list(value: tuple[Value, ...]) -> str:
    if not value:
        return "an empty list"
    inner = {str: "strings", tuple: "lists", bool: "truth values", int: "integers", float: "numbers"}
    names = {inner.get(type(item), "") for item in value}
    name = names.pop() if len(names) == 1 else ""
    return f"a list of {name}" if name else "a list"


def bounded(value: T) -> T:
    """The value itself, unless it is an integer of more than 128 bits."""
    if isinstance(value, int) and not -INTEGER_LIMIT < value < INTEGER_LIMIT:
        raise Misuse("the integer has more than 128 bits")
    return value


def weight_of(items: tuple[Value, ...]) -> int:
    """The elements of a list and of the lists in it, shared ones counted as often as they stand.

    Stops counting soon after the limit.
    """
    weight = len(items)
    todo = [items] if tuple in map(type, items) else []
    while todo and weight <= LIST_LIMIT:
        inner = [item for item in todo.pop() if type(item) is tuple]
        weight += sum(map(len, inner))
        todo += inner
    return weight


def weighed(items: tuple[Value, ...]) -> tuple[Value, ...]:
    """The list itself, unless it is too large; so whatever walks a list (a comparison, a hash) is bounded."""
    if weight_of(items) > LIST_LIMIT:
        raise Misuse(f"a list may have {LIST_LIMIT} elements at most")
    return items


def joined(items: Sequence[object]) -> str:
    """Items as a sentence lists them."""
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def shown(items: Sequence[object]) -> str:
    """A list as `.gen` writes it."""
    return "{" + ", ".join(map(str, items)) + "}"


# ---- signatures


@dataclass(frozen=True)
class Parameter:
    """One argument of a function: its name and a kind out of `KINDS`."""

    name: str
    kind: str


@dataclass(frozen=True)
class Function:
    """A function of the language. The last parameter of a `variadic` one may be given any number of times.

    `facts` are what checks may assume: that the result is `never_negative`, that it `selects` one of the arguments, that it
    `counts`: is each of the integers from 0 to below the argument somewhere.
    """

    name: str
    signature: str
    doc: str
    implementation: Callable[..., Value]
    parameters: tuple[Parameter, ...]
    required: int
    variadic: bool
    facts: frozenset[str] = frozenset()

    def accepts(self, count: int) -> bool:
        """Whether it can be called with so many arguments."""
        return count >= self.required and (self.variadic or count <= len(self.parameters))

    def kind(self, position: int) -> str:
        """The kind of the argument at a position."""
        return self.parameters[min(position, len(self.parameters) - 1)].kind

    def arity(self) -> str:
        """How many arguments it takes, in words."""
        if self.variadic:
            return f"at least {self.required} argument" + "s" * (self.required != 1)
        if self.required < len(self.parameters):
            return f"{self.required} to {len(self.parameters)} arguments"
        return f"{self.required} argument" + "s" * (self.required != 1)


_SIGNATURE = re.compile(r"(\w+)\((.*)\) -> \w+")


def declare(signature: str, implementation: Callable[..., Value], doc: str, facts: str = "") -> Function:
    """A function from its signature, `name(a: kind, b: kind?, rest: kind...) -> kind`; `?` means optional."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"malformed signature {signature!r}")
    name, inside = match.groups()
    parts = [part.split(": ") for part in inside.split(", ")] if inside else []
    parameters = tuple(Parameter(label, kind.rstrip("?.")) for label, kind in parts)
    required = sum(not kind.endswith(("?", "...")) for _, kind in parts)
    variadic = bool(parts) and parts[-1][1].endswith("...")
    return Function(name, signature, doc, implementation, parameters, required, variadic, frozenset(facts.split()))
