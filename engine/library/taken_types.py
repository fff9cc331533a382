"""Which element types the operands of operators may have, as rules ask."""

from __future__ import annotations

from collections.abc import Mapping

from genrw.engine.ir.dtypes import in_class
from genrw.engine.language.functions import Function, Misuse, declare
from genrw.engine.library.infer import wanted_class
from genrw.grammar.rw_tree import OpDecl


def takes(operator: OpDecl, dtype: str) -> bool:
    """May all operands be of a type?"""
    bounds = dict(operator.where)
    wanted = (operand.dtype for operand in operator.operands if operand.dtype is not None)
    return all(in_class(dtype, wanted_class(want, bounds)) for want in wanted)


def operator_functions(operators: Mapping[str, OpDecl]) -> dict[str, Function]:
    """The functions on operators' names."""

    def of(name: str, dtype: str) -> bool:
        if name not in operators:
            raise Misuse(f"`{name}` is not an operator")
        return takes(operators[name], dtype)

    known = declare(
        "takes(op: string, dtype: dtype) -> bool", of, "Whether all operands of an operator may be of a type."
    )
    return {known.name: known}
