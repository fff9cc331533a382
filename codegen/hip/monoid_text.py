"""Monoids as C++ structs, printed from their declarations."""

from __future__ import annotations

from genrw.codegen.hip.comments import comment_lines
from genrw.codegen.hip.identifiers import Names
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language.cpp_expr import WHOLE, cpp_braced
from genrw.engine.library.monoids import result_type, selects
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import FieldExpr, MonoidDecl

_Named = dict[str, tuple[str, str]]
"""What expressions may name: the C++ text and the type of each."""


def struct_name(monoid: str, dtype: str) -> str:
    """The name of a monoid's struct for elements of a type."""
    return f"{monoid}_{dtype}"


def cpp_type(dtype: str) -> str:
    """The C++ type of a value: an element type, or a monoid's accumulator (`NAME.dtype`)."""
    monoid, _, element = dtype.rpartition(".")
    return f"{struct_name(monoid, element)}::acc" if monoid else DTYPES[element].cpp


def monoid_struct(monoid: MonoidDecl, dtype: str) -> str:
    """The struct: its accumulator type, identity, combination, and what maps elements in and the result out."""
    return "\n".join(_Struct(monoid, dtype).lines())


class _Struct:
    def __init__(self, monoid: MonoidDecl, dtype: str) -> None:
        self.monoid, self.dtype = monoid, dtype
        self.type = DTYPES[dtype].cpp
        self.fields = {name: (dtype if d == "T" else d) for name, d in monoid.carry}
        names = Names({"acc"})
        self.members = {name: names.variable(name) for name in self.fields}

    def lines(self) -> list[str]:
        monoid = self.monoid
        lines = [f"/// {line}" for line in comment_lines(monoid.doc).split("\n") if line]
        lines.append(f"struct {struct_name(monoid.name, self.dtype)} {{")
        lines += self._accumulator()
        lines.append(f"    static GEN_DEVICE acc identity() {{ return {self._value(monoid.identity, {})}; }}")
        if monoid.element:
            names = {"x": ("x", self.dtype), "index": ("index", "int64"), "k": ("index", "int64")}
            value = self._value(monoid.element, names)
            lines.append(f"    static GEN_DEVICE acc element({self.type} x, long long index) {{ return {value}; }}")
        value = self._value(monoid.combine, self._members("a") | self._members("b"))
        if selects(monoid) and DTYPES[self.dtype].compute != self.dtype:
            lines += ["    template <class T>", f"    static GEN_DEVICE T combine(T a, T b) {{ return {value}; }}"]
        else:
            lines.append(f"    static GEN_DEVICE acc combine(acc a, acc b) {{ return {value}; }}")
        if monoid.finish is not None:
            names = {path.removeprefix("a."): found for path, found in self._members("a").items()} | {"n": ("n", WHOLE)}
            result = result_type(monoid, self.dtype)
            text = self._text(monoid.finish, names, result)
            lines.append(f"    static GEN_DEVICE {DTYPES[result].cpp} finish(acc a, long long n) {{ return {text}; }}")
        lines.append("};")
        return lines

    def _accumulator(self) -> list[str]:
        if not self.fields:
            return [f"    using acc = {self.type};"]
        members = " ".join(f"{DTYPES[d].cpp} {self.members[name]};" for name, d in self.fields.items())
        return [f"    struct acc {{ {members} }};"]

    def _members(self, name: str) -> _Named:
        """An accumulator's parts."""
        if not self.fields:
            return {name: (name, self.dtype)}
        return {f"{name}.{f}": (f"{name}.{member}", self.fields[f]) for f, member in self.members.items()}

    def _value(self, fields: tuple[FieldExpr, ...], names: _Named) -> str:
        if not self.fields:
            return self._text(fields[0].value, names, self.dtype)
        given = {f.field: f.value for f in fields}
        return f"{{{', '.join(self._text(given[name], names, d) for name, d in self.fields.items())}}}"

    def _text(self, expr: Expr, names: _Named, result: str) -> str:
        texts = {name: text for name, (text, _) in names.items()}
        return cpp_braced(expr, texts, self.dtype, {name: dtype for name, (_, dtype) in names.items()}, result)
