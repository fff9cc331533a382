"""What operators declare about the range and divisibility of their results, as egglog rules."""

from __future__ import annotations

from typing import Any

from genrw.engine.egraph.bindings import egg
from genrw.engine.egraph.encode import Encoded, Spans, _Encoder
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.variants import Variant
from genrw.grammar.expr_tree import Call, Const, Expr, Member, Name
from genrw.grammar.rw_tree import AttributePattern, OpPattern, RuleDecl, VarPattern

RANGE_FACTS = ("lo", "hi", "pow2", "size")
# Facts derived by one rule: a range has two ends, the others every index has.
_TOGETHER = (("lo", "hi"), ("pow2", "size"))


def encode_facts(operator: Operator, number: int, library: Library, spans: Spans, ruleset: str) -> list[Encoded]:
    """The rules that derive an operator's declared facts; demands are numbered from `number` on."""
    encoded: list[Encoded] = []
    for facts in _TOGETHER:
        values = {f: e for f in facts if (e := fact_expression(operator, f)) is not None}
        if values:
            made = _FactEncoder(operator, values, number + len(encoded), library, spans, ruleset)
            encoded.append(made.encoded())
    return encoded


def fact_expression(operator: Operator, fact: str) -> Expr | None:
    """What an operator declares about a fact; the size of a result stands in its type, and 1 divides all."""
    result = operator.decl.result
    if fact == "size":
        return _size_expression(operator)
    declared: Expr | None = getattr(operator.decl, fact)
    is_index = isinstance(result, Call) and result.function == "index"
    return Const(1) if declared is None and fact == "pow2" and is_index else declared


def _size_expression(operator: Operator) -> Expr | None:
    """How many values a lane has of the result, 0 for one; known for indices, values and what truth values combine to."""
    result, operands = operator.decl.result, operator.decl.operands
    if isinstance(result, Call):
        place = {"index": 0, "value": 1, "scalar": 1}.get(result.function)
        return None if place is None else result.args[place] if len(result.args) > place else Const(0)
    sizes = tuple(Member(Name(o.name), "size") for o in operands)
    if result != Name("bool") or any(o.dtype != "bool" for o in operands):
        return None
    return Call("max", sizes) if len(sizes) > 1 else sizes[0]


class _FactEncoder(_Encoder):
    """A rule whose right side is numbers that become facts of the matched node."""

    def __init__(
        self,
        operator: Operator,
        values: dict[str, Expr],
        number: int,
        library: Library,
        spans: Spans,
        ruleset: str,
    ) -> None:
        decl = operator.decl
        pattern = OpPattern(
            decl.name,
            tuple(AttributePattern(name, None) for name in operator.attributes),
            tuple(VarPattern(o.name) for o in decl.operands),
            span=decl.span,
            op_span=decl.name_span,
        )
        key = f"{decl.name}.{next(iter(values))}"
        rule = RuleDecl(key, stage=None, left=pattern, right=pattern, span=decl.span, name_span=decl.name_span)
        super().__init__(Variant(rule, key, pattern, pattern, None, ()), number, -1, library, spans, ruleset)
        self.values = values

    def _template(self, pattern: Any) -> Any:  # noqa: ARG002
        return [(fact, self._number(value).args[0]) for fact, value in self.values.items()]

    def _head(self, right: Any) -> list[Any]:
        return [egg.Set(self.span, fact, [self.var("e:0")], value) for fact, value in right]
