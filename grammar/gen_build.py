"""`.gen` lines from Lark's rules to tree nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lark import Token

from genrw.grammar.diagnostics import error
from genrw.grammar.gen_tree import (
    Attribute,
    Instruction,
    MapValue,
    NumberOperand,
    Operand,
    Ref,
    TypeNode,
    Value,
    Word,
)
from genrw.grammar.parsing import Builder, number, special, string
from genrw.grammar.source import Span
from genrw.grammar.wording import quoted


class Header(NamedTuple):
    """A `@module` line."""

    name: str
    attributes: tuple[Attribute, ...]
    span: Span


class AttributeList(NamedTuple):
    """Attributes and the bracket that closes them."""

    items: tuple[Attribute, ...]
    end: Token


def _plain(token: Token) -> str:
    name: str = token.value
    return name[len("gpu::gen::") :] if name.startswith("gpu::") else name


class _Part(NamedTuple):
    """What one rule hands to the rule around it: a value and its place."""

    value: Any
    start: int
    end: int


class GenBuilder(Builder):
    """Tree nodes from Lark's rules; each method is named for its rule and takes the rule's children."""

    # ---- lines

    def header(self, c: list[Any]) -> Header:
        _, name, attributes = c
        last = attributes.end if attributes else name
        return Header(_plain(name), attributes.items if attributes else (), self.span(c[0], last))

    def operation(self, c: list[Any]) -> Instruction:
        names, op, attributes, arguments, type_ = c
        end = op.end_pos
        if type_:
            end = type_.span.end
        elif arguments:
            end = arguments.end
        elif attributes:
            end = attributes.end.end_pos
        return self._instruction(
            names,
            op,
            _plain(op),
            end,
            attributes=attributes.items if attributes else (),
            operands=arguments.value if arguments else (),
            type=type_,
        )

    def param(self, c: list[Any]) -> Instruction:
        names, op, file, type_ = c
        name, path = op.value.partition(":")[2], file and string(self.source, file)
        return self._instruction(names, op, "@param", type_.span.end, param=name, file=path, type=type_)

    def literal(self, c: list[Any]) -> Instruction:
        names, op, elements, type_ = c
        return self._instruction(names, op, "@literal", type_.span.end, literal=elements or (), type=type_)

    def returns(self, c: list[Any]) -> Instruction:
        op, operands, last = c
        return self._instruction(None, op, "@return", last.end_pos, operands=operands or ())

    def _instruction(self, names: list[Token] | None, token: Token, op: str, end: int, **parts: Any) -> Instruction:
        start = (names[0] if names else token).start_pos or 0
        return Instruction(
            tuple([_plain(name) for name in names]) if names else (),
            op,
            span=Span(self.source, start, end),
            op_span=self.place(token),
            name_spans=tuple([self.place(name) for name in names]) if names else (),
            **parts,
        )

    def names(self, c: list[Any]) -> list[Token]:
        for name in c:
            if special(name) is not None:
                span = self.place(name)
                raise error(f"{quoted(name)} is a number and cannot name a result", span, "choose another name")
        return c

    # ---- operands

    def arguments(self, c: list[Any]) -> _Part:
        operands, last = c
        return _Part(operands or (), 0, last.end_pos)

    def operands(self, c: list[Any]) -> tuple[Operand, ...]:
        return tuple([self._read_operand(token) for token in c])

    def _read_operand(self, token: Token) -> Operand:
        span = self.place(token)
        if token.type == "NUMBER":
            return NumberOperand(number(self.source, token), span)
        value = special(token)
        return Ref(_plain(token), span) if value is None else NumberOperand(value, span)

    def elements(self, c: list[Any]) -> tuple[int | float | bool, ...]:
        return tuple([self._read_element(token) for token in c])

    def _read_element(self, token: Token) -> int | float | bool:
        if token.type == "NUMBER":
            return number(self.source, token)
        value = special(token)
        if value is None:
            raise error(f"{quoted(token)} is not a number", self.place(token), "write numbers, true, false, inf or nan")
        return value

    # ---- attributes

    def attributes(self, c: list[Any]) -> AttributeList:
        self._once((attribute.name, attribute.span) for attribute in c[:-1])
        return AttributeList(tuple(c[:-1]), c[-1])

    def _once(self, named: Iterable[tuple[str, Span]]) -> None:
        """GenrwError for a name that is given twice."""
        seen: set[str] = set()
        for name, span in named:
            if name in seen:
                raise error(f"`{name}` is given twice", span, "remove one of them")
            seen.add(name)

    def attribute(self, c: list[Any]) -> Attribute:
        name, part = c
        span = self.place(name)
        if part is None:
            return Attribute(_plain(name), None, span, span)
        value, value_span = self._value(part)
        return Attribute(_plain(name), value, span.to(value_span), value_span)

    def _value(self, part: _Part | TypeNode) -> tuple[Value, Span]:
        if isinstance(part, TypeNode):
            return part, part.span
        return part.value, Span(self.source, part.start, part.end)

    def number(self, c: list[Any]) -> _Part:
        return _Part(number(self.source, c[0]), c[0].start_pos, c[0].end_pos)

    def string(self, c: list[Any]) -> _Part:
        return _Part(string(self.source, c[0]), c[0].start_pos, c[0].end_pos)

    def word(self, c: list[Any]) -> _Part:
        value = special(c[0])
        return _Part(Word(_plain(c[0])) if value is None else value, c[0].start_pos, c[0].end_pos)

    def items(self, c: list[Any]) -> _Part:
        items = tuple([self._value(part)[0] for part in c[1:-1]])
        return _Part(items, c[0].start_pos, c[-1].end_pos)

    def mapping(self, c: list[Any]) -> _Part:
        pairs = c[1:-1]
        self._once((name, span) for name, _, span in pairs)
        return _Part(MapValue(tuple((name, value) for name, value, _ in pairs)), c[0].start_pos, c[-1].end_pos)

    def pair(self, c: list[Any]) -> tuple[str, Value, Span]:
        value, span = self._value(c[1])
        return _plain(c[0]), value, self.place(c[0]).to(span)

    # ---- types

    def tensor(self, c: list[Any]) -> TypeNode:
        name, dims = c
        return TypeNode("tensor", _plain(name), dims.value, span=Span(self.source, name.start_pos, dims.end))

    def lengths(self, c: list[Any]) -> TypeNode:
        (dims,) = c
        return TypeNode("tensor", None, dims.value, span=Span(self.source, dims.start, dims.end))

    def strided(self, c: list[Any]) -> TypeNode:
        tensor, dims = c
        span = Span(self.source, tensor.span.start, dims.end)
        return TypeNode("tensor", tensor.dtype, tensor.lens, dims.value, span=span)

    def plain(self, c: list[Any]) -> TypeNode:
        span = self.place(c[0])
        name = _plain(c[0])
        return TypeNode(name, span=span) if name in _KINDS else TypeNode("scalar", name, span=span)

    def array(self, c: list[Any]) -> TypeNode:
        name, token, last = c
        size = self._length(token)
        if not isinstance(size, int) or size < 0:
            raise error("an array's length is a whole number", self.place(token), "write one, such as 4")
        span = self.span(name, last)
        if name == "index":
            return TypeNode("index", size=size, span=span)
        return TypeNode("array", _plain(name), size=size, span=span)

    def dims(self, c: list[Any]) -> _Part:
        lens = tuple([self._length(token) for token in c[1:-1]])
        return _Part(lens, c[0].start_pos, c[-1].end_pos)

    def _length(self, token: Token) -> int | str:
        value = number(self.source, token) if token.type == "NUMBER" else _plain(token)
        if isinstance(value, float) or special(token) is not None:
            raise error(f"a length is a whole number, not {quoted(token)}", self.place(token), "write one, such as 64")
        return value


_KINDS = ("scalar", "index", "effect")
