"""Monoids as C++ structs, printed from their declarations."""

from __future__ import annotations

from collections.abc import Mapping

from genrw.codegen.hip.comments import comment_lines
from genrw.codegen.hip.identifiers import Names
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language.cpp_expr import cpp_expr
from genrw.engine.language.expr import free_names
from genrw.engine.library.monoids import result_type, selects
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import FieldExpr, MonoidDecl


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
            value = self._element()
            lines.append(f"    static GEN_DEVICE acc element({self.type} x, long long index) {{ return {value}; }}")
        names = self._members("a") | self._members("b")
        value = self._value(monoid.combine, names)
        if selects(monoid) and DTYPES[self.dtype].compute != self.dtype:
            lines += ["    template <class T>", f"    static GEN_DEVICE T combine(T a, T b) {{ return {value}; }}"]
        else:
            lines.append(f"    static GEN_DEVICE acc combine(acc a, acc b) {{ return {value}; }}")
        if monoid.finish is not None:
            names = self._members("") if self.fields else {"a": "a"}
            names = {k.lstrip("."): v for k, v in names.items()} | {"n": "n"}
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

    def _members(self, name: str) -> dict[str, str]:
        """How expressions name an accumulator's parts, and how C++ does."""
        if not self.fields:
            return {name: name}
        owner = name or "a"
        return {f"{name}.{f}": f"{owner}.{member}" for f, member in self.members.items()}

    def _value(self, fields: tuple[FieldExpr, ...], names: Mapping[str, str]) -> str:
        if not self.fields:
            return self._text(fields[0].value, names, self.dtype)
        given = {f.field: f.value for f in fields}
        parts = [self._text(given[name], names, d) for name, d in self.fields.items()]
        return f"{{{', '.join(parts)}}}"

    def _element(self) -> str:
        """The accumulator of element x; C++ narrows a position to a field of fewer bits only if told to."""
        names = {"x": "x", "index": "index", "k": "index"}
        if not self.fields:
            return self._value(self.monoid.element, names)
        given = {f.field: f.value for f in self.monoid.element}
        parts = []
        for name, dtype in self.fields.items():
            text = self._text(given[name], names, dtype)
            narrow = DTYPES[dtype].is_integer and DTYPES[dtype].bits < 64 and free_names(given[name]) & {"index", "k"}
            parts.append(f"static_cast<{DTYPES[dtype].cpp}>({text})" if narrow else text)
        return f"{{{', '.join(parts)}}}"

    def _text(self, expr: Expr, names: Mapping[str, str], dtype: str) -> str:
        return cpp_expr(expr, names, dtype, result=dtype)[0]
