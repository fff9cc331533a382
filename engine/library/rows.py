"""Rules over rows of names: one rule for each row."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from genrw.engine.language.expr import substitute
from genrw.grammar.diagnostics import error
from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.rw_tree import (
    AttributePattern,
    Binding,
    Declaration,
    Example,
    Given,
    NumberPattern,
    Pattern,
    RuleDecl,
    VarPattern,
)


def rules_among(declarations: Iterable[Declaration]) -> list[RuleDecl]:
    """The rules among declarations, those over rows written out."""
    return [rule for one in declarations if isinstance(one, RuleDecl) for rule in written_out_rows(one)]


def written_out_rows(rule: RuleDecl) -> Iterator[RuleDecl]:
    """A rule for each row of a rule's table, the rule itself where it has none; GenrwError for a row that fits nowhere."""
    if not rule.tables:
        yield rule
    for table in rule.tables:
        for row in table.rows:
            yield _Row(dict(zip(table.names, row, strict=True))).rule(rule)


def with_variables_apart(rule: RuleDecl, operators: Container[str], classes: Container[str]) -> RuleDecl:
    """The rule, its variables over classes called otherwise than operators: who adds an operator need not know them."""
    alike = {
        binding.name: Name(f"{binding.name} of {binding.value.name}", span=binding.value.span)
        for binding in rule.for_
        if isinstance(binding.value, Name) and binding.value.name in classes and binding.name in operators
    }
    if not alike:
        return rule
    renamed = _Row(alike)
    own = renamed.rule(replace(rule, given=(), examples=()))
    names = tuple(replace(b, name=alike[b.name].name) if b.name in alike else b for b in own.for_)
    return replace(own, for_=names, tables=rule.tables, given=rule.given, examples=rule.examples)


class _Row:
    """What names of a rule stand for."""

    def __init__(self, items: Mapping[str, Expr]) -> None:
        self.items = dict(items)

    def rule(self, rule: RuleDecl) -> RuleDecl:
        name = rule.name
        for word, item in self.items.items():
            if f"{{{word}}}" in name:
                name = name.replace(f"{{{word}}}", self._word(item))
        return replace(
            rule,
            name=name,
            left=self.pattern(rule.left),
            right=self.pattern(rule.right),
            guard=self._expr(rule.guard),
            with_=tuple(map(self._binding, rule.with_)),
            for_=tuple(map(self._binding, rule.for_)),
            tables=(),
            given=tuple(map(self._given, rule.given)),
            examples=tuple(map(self._example, rule.examples)),
        )

    def pattern(self, pattern: Pattern) -> Pattern:
        """A pattern with what its names stand for."""
        if isinstance(pattern, NumberPattern):
            return replace(pattern, value=substitute(pattern.value, self.items))
        if isinstance(pattern, VarPattern):
            item = self.items.get(pattern.name)
            if item is None:
                return pattern
            return (
                VarPattern(item.name, span=pattern.span)
                if isinstance(item, Name)
                else NumberPattern(item, pattern.span)
            )
        op, family = pattern.op, pattern.family
        if family is None and op in self.items:
            op = self._word(self.items[op])
        if family is not None and family in self.items:
            family = self._word(self.items[family])
        attributes = tuple(map(self._attribute, pattern.attributes))
        return replace(
            pattern, op=op, family=family, attributes=attributes, operands=tuple(map(self.pattern, pattern.operands))
        )

    def _word(self, item: Expr) -> str:
        if not isinstance(item, Name):
            raise error("this stands for an operator or a part of a name", item.span, "write a name")
        return item.name

    def _attribute(self, attribute: AttributePattern) -> AttributePattern:
        if attribute.value is None:
            item = self.items.get(attribute.name)
            return attribute if item is None else replace(attribute, value=item)
        return replace(attribute, value=substitute(attribute.value, self.items))

    def _expr(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else substitute(expr, self.items)

    def _binding(self, binding: Binding) -> Binding:
        return replace(binding, value=substitute(binding.value, self.items))

    def _given(self, given: Given) -> Given:
        return given if given.term is None else replace(given, term=self.pattern(given.term))

    def _example(self, example: Example) -> Example:
        return replace(
            example,
            before=tuple(map(self.pattern, example.before)),
            after=None if example.after is None else tuple(map(self.pattern, example.after)),
            given=tuple(map(self._given, example.given)),
        )
