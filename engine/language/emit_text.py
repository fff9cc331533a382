"""The `emit` texts of operators: templates of C++ with holes and choices.

Rules may come from strangers, so a template can do nothing but that: no loops, calls, filters or assignments, no attributes
that begin with `_`, no products but of numbers. What it takes to fill in grows with its length alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from genrw.engine.language.emit_binding import binding, names_outside
from genrw.grammar.diagnostics import error
from genrw.grammar.rw_tree import InstructionDecl, OpDecl
from genrw.grammar.source import Span

_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If),
    *(nodes.Name, nodes.Const, nodes.Tuple, nodes.List, nodes.Getattr, nodes.Getitem, nodes.Slice),
    *(nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Concat),
)
"""All that stands in a template that is nothing but text, holes and choices."""
_LONGEST = 1 << 16
GIVEN = ("result", "type", "share", "held", "rest", "target", "block")
"""What templates may name besides operands and attributes: the value's name and type, the loop's variable, the target."""
MEMBERS = ("size", "lens", "type", "elements", "lo", "hi", "pow2")
"""What templates may ask of an operand."""
_TEXTS = ("string", "name", "any")
"""The types of attributes that may be any text."""
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_BRACKET = re.compile(r"[][(){}]")
_LITERAL = re.compile(r"\{\{.*?\}\}|//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
"""What C++ has in which brackets are none: holes, comments, texts and characters."""
_CHOICES = ("{%", "#", 'R"')
"""What has parts of which only some count, and texts that may hold anything."""
_REMEDY = "write text, {{ … }} and {% if … %}; no loops, calls or filters"


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which `*` and `%` are for numbers: of texts and lists they would be as long as one likes."""

    intercepted_binops = frozenset({"*", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if not all(isinstance(value, int | float) for value in (left, right)):
            raise SecurityError(f"`{operator}` takes numbers")
        return super().call_binop(context, operator, left, right)


_ENVIRONMENT = _Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=False)
_ENVIRONMENT.globals.clear()


def emit_text(declared: OpDecl, values: Mapping[str, Any]) -> str:
    """The `emit` text of an operator, filled in. GenrwError for a template that cannot be."""
    with _told(declared):
        return _template(declared.emit or "").render(values)


def check_emit_text(declared: OpDecl) -> None:
    """GenrwError for an operator whose `emit` is no such template."""
    known = {o.name for o in declared.operands} | {a.name for a in declared.attributes} | {declared.family}
    with _told(declared):
        _template(declared.emit or "")
        for name in sorted(names_in_emit_text(declared)):
            if name not in known and name not in GIVEN:
                raise jinja2.UndefinedError(f"there is no `{name}`")
        operands = {o.name for o in declared.operands}
        for name, member in _members(declared.emit or ""):
            if name in operands and member not in MEMBERS:
                raise jinja2.UndefinedError(f"operands have no member `{member}`, only {', '.join(MEMBERS)}")


def names_in_emit_text(declared: OpDecl) -> frozenset[str]:
    """What the `emit` text of an operator names. GenrwError for one that is no template."""
    with _told(declared):
        return _names(declared.emit or "")


def emit_binding(declared: OpDecl) -> str:
    """How tightly the `emit` text of an operator binds, of the words behind `prec`. GenrwError for one that is no template."""
    operands = {o.name for o in declared.operands}
    texts = {a.name for a in declared.attributes if a.type in _TEXTS}
    with _told(declared):
        return binding(_ENVIRONMENT.parse(declared.emit or ""), operands, texts)


def outside_of_brackets(declared: OpDecl) -> frozenset[str]:
    """The operands of an `emit` text that stand in no brackets, beside something else."""
    with _told(declared):
        return _names_outside(declared.emit or "")


def multiply_text(declared: InstructionDecl, text: str, values: Mapping[str, Any], elements: int) -> str:
    """The `multiply` text of an instruction, filled in. It may go once over `elements`, the numbers of what a lane holds of the
    result. GenrwError for a template that cannot be filled in."""
    span = dict(declared.values)["multiply"].span
    with _told(declared, "multiply", span):
        return _template(text, True).render(**values, elements=range(elements))


def unclosed_bracket(text: str) -> str | None:
    """A bracket of C++ that has no other one; None where there is none, or where choices may hide it."""
    if any(mark in text for mark in _CHOICES):
        return None
    opened: list[str] = []
    for bracket in _BRACKET.findall(_LITERAL.sub(" ", text)):
        if bracket in _CLOSED_BY:
            opened.append(bracket)
        elif not opened or _CLOSED_BY[opened.pop()] != bracket:
            return str(bracket)
    return opened[-1] if opened else None


@contextmanager
def _told(declared: OpDecl | InstructionDecl, clause: str = "emit", span: Span | None = None) -> Iterator[None]:
    """Whatever a template does wrong, down to nesting that overflows the stack, as a diagnostic."""
    try:
        yield
    except Exception as problem:
        why = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise error(f"the `{clause}` of `{declared.name}` fails: {why}", span or declared.name_span, _REMEDY) from None


@lru_cache(maxsize=1024)
def _names(text: str) -> frozenset[str]:
    return frozenset(meta.find_undeclared_variables(_ENVIRONMENT.parse(text)))


@lru_cache(maxsize=1024)
def _names_outside(text: str) -> frozenset[str]:
    return names_outside(_ENVIRONMENT.parse(text))


@lru_cache(maxsize=1024)
def _members(text: str) -> tuple[tuple[str, str], ...]:
    """The members that a template asks names for."""
    found = _ENVIRONMENT.parse(text).find_all(nodes.Getattr)
    return tuple((node.node.name, node.attr) for node in found if isinstance(node.node, nodes.Name))


@lru_cache(maxsize=1024)
def _template(text: str, over_elements: bool = False) -> jinja2.Template:
    """A template, compiled; raises for one that is more than holes and choices, and loops over elements if it may have such."""
    if len(text) > _LONGEST:
        raise SecurityError(f"it is longer than {_LONGEST} characters")
    tree = _ENVIRONMENT.parse(text)
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED) and not (over_elements and _goes_over_elements(node)):
            raise SecurityError(f"its line {node.lineno} has a `{type(node).__name__.lower()}`")
    return _ENVIRONMENT.from_string(tree)


def _goes_over_elements(node: nodes.Node) -> bool:
    """Is a node a loop over the elements, with no loop in it?"""
    if not isinstance(node, nodes.For):
        return False
    over = isinstance(node.iter, nodes.Name) and node.iter.name == "elements"
    return over and not node.recursive and not any(True for part in node.body for _ in part.find_all(nodes.For))
