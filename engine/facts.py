"""What operators declare about the range and divisibility of their results, as egglog rules."""

from __future__ import annotations

from typing import Any

from genrw.engine.bindings import egg
from genrw.engine.encode import Encoded, Spans, _Encoder
from genrw.engine.library import Library, Operator
from genrw.engine.variants import Variant
from genrw.grammar.expr_tree import Call, Const, Expr
from genrw.grammar.rw_tree import AttributePattern, OpPattern, RuleDecl, VarPattern

RANGE_FACTS = ("lo", "hi", "pow2", "size")


def encode_facts(operator: Operator, number: int, library: Library, spans: Spans, ruleset: str) -> list[Encoded]:
    """The rules that derive an operator's declared facts; demands are numbered from `number` on."""
    encoded: list[Encoded] = []
    for fact in RANGE_FACTS:
        value = fact_expression(operator, fact)
        if value is not None:
            made = _FactEncoder(operator, fact, value, number + len(encoded), library, spans, ruleset)
            encoded.append(made.encoded())
    return encoded


def fact_expression(operator: Operator, fact: str) -> Expr | None:
    """What an operator declares about a fact; the size of an index result stands in its result type, and 1 divides all."""
    result = operator.decl.result
    is_index = isinstance(result, Call) and result.function == "index"
    if fact == "size":
        return (result.args[0] if result.args else Const(0)) if is_index else None
    declared: Expr | None = getattr(operator.decl, fact)
    return Const(1) if declared is None and fact == "pow2" and is_index else declared


class _FactEncoder(_Encoder):
    """A rule whose right side is a number that becomes a fact of the matched node."""

    def __init__(
        self, operator: Operator, fact: str, value: Expr, number: int, library: Library, spans: Spans, ruleset: str
    ) -> None:
        decl = operator.decl
        pattern = OpPattern(
            decl.name,
            tuple(AttributePattern(name, None) for name in operator.attributes),
            tuple(VarPattern(o.name) for o in decl.operands),
            span=decl.span,
            op_span=decl.name_span,
        )
        key = f"{decl.name}.{fact}"
        rule = RuleDecl(key, stage=None, left=pattern, right=pattern, span=decl.span, name_span=decl.name_span)
        super().__init__(Variant(rule, key, pattern, pattern, None, ()), number, -1, library, spans, ruleset)
        self.fact = fact
        self.value = value

    def _template(self, pattern: Any) -> Any:  # noqa: ARG002
        return self._number(self.value).args[0]

    def _head(self, right: Any) -> list[Any]:
        return [egg.Set(self.span, self.fact, [self.var("e:0")], right)]
