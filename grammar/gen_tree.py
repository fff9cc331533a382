"""The syntax tree of a `.gen` file: modules of instructions, as written, not yet checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from genrw.grammar.source import NOWHERE, Span


@dataclass(frozen=True)
class Word:
    """A bare name as an attribute value: `algo=block`."""

    name: str

    def __str__(self) -> str:
        return self.name


# An attribute's value: a number, flag, quoted text, bare word, list `{…}`, or map `{k=v, …}`.
@dataclass(frozen=True)
class MapValue:
    """`{key=value, …}` in the order written."""

    items: tuple[tuple[str, Value], ...]


Value = Union[int, float, bool, str, Word, tuple["Value", ...], MapValue, "TypeNode", None]


@dataclass(frozen=True)
class TypeNode:
    """A written type. `dtype` None means float when `lens` is given.

    kind: "tensor" (`half{8192, 4096}`, maybe with strides), "scalar" (`scalar`, `float`), "array"
    (`float[16]`), "index" (`index`, `index[16]`) or "effect". `size` is the array's or index array's length,
    else None.
    A length may be a symbol (`N`).
    """

    kind: str
    dtype: str | None = None
    lens: tuple[int | str, ...] = ()
    strides: tuple[int | str, ...] | None = None
    size: int | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Attribute:
    """`name=value`, or `name` alone (value None)."""

    name: str
    value: Value
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    value_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Ref:
    """An operand that names an earlier result."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class NumberOperand:
    """A number or truth value written as an operand."""

    value: int | float | bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Operand = Ref | NumberOperand


@dataclass(frozen=True)
class Instruction:
    """`names = op[attributes](operands) -> type`.

    `op` is without its `gpu::gen::` prefix. Parameters have op "@param" and their name in `param`, the file
    with their usual value in `file`; literals
    have op "@literal" and their elements in `literal`; the return has op "@return".
    """

    names: tuple[str, ...]
    op: str
    attributes: tuple[Attribute, ...] = ()
    operands: tuple[Operand, ...] = ()
    type: TypeNode | None = None
    param: str | None = None
    file: str | None = None
    literal: tuple[int | float | bool, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    op_span: Span = field(default=NOWHERE, compare=False, repr=False)
    name_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Module:
    """A named list of instructions; `attributes` are those of its `@module` header."""

    name: str
    attributes: tuple[Attribute, ...]
    instructions: tuple[Instruction, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class File:
    """All modules of a `.gen` text, in order."""

    modules: tuple[Module, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
