"""Sorts in rules: tensors, values of lanes, indices, workgroup memory and effects never stand for one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from genrw.engine.library.library import Library, Operator, family_affixes
from genrw.engine.library.sides import Direction
from genrw.engine.library.variants import nodes
from genrw.engine.lint.finding import Finding, finding
from genrw.grammar.expr_tree import Call, Name
from genrw.grammar.rw_tree import NumberPattern, OpPattern, Pattern, VarPattern

_TENSOR, _LANE, _INDEX = "a tensor", "a value of lanes", "an index"
_SORTS = {
    "tensor": _TENSOR,
    "scalar": _LANE,
    "array": _LANE,
    "value": _LANE,
    "index": _INDEX,
    "buffer": "workgroup memory",
    "effect": "an effect",
}
_ALL = frozenset(_SORTS.values())
_POINTWISE = frozenset({_TENSOR, _LANE})
_Sorts = frozenset[str]


def mixed_sorts(library: Library, directions: Sequence[Direction]) -> Iterator[Finding]:
    """Right sides of another sort than the left side, and operands of another sort than their operator takes."""
    for direction in directions:
        sorts = _Sides(library, direction)
        yield from sorts.operands()
        yield from sorts.roots()


class _Sides:
    """The sorts that the values of one rule can have."""

    def __init__(self, library: Library, direction: Direction) -> None:
        self.library, self.direction = library, direction
        self.known: dict[str, _Sorts] = {}
        for node in nodes(direction.left):
            for sorts, operand in self._taken(node):
                if isinstance(operand, VarPattern):
                    self.known[operand.name] = self.known.get(operand.name, _ALL) & sorts
        for node in nodes(direction.left):
            if node.binds is not None:
                self.known[node.binds] = self._of(node)

    def operands(self) -> Iterator[Finding]:
        """Operands of the right side that their operator does not take."""
        for node in nodes(self.direction.right):
            for sorts, operand in self._taken(node):
                found = self._of(operand)
                if found and not found & sorts:
                    message = f"`{node.op}` takes {_words(sorts)} here, not {_words(found)}"
                    yield self._finding(message, operand, "give it an operand of that sort")

    def roots(self) -> Iterator[Finding]:
        """A right side that is no value of the left side's sort."""
        left, right = self._of(self.direction.left), self._of(self.direction.right)
        if left and right and not left & right:
            message = f"the left side is {_words(left)}, the right side {_words(right)}"
            yield self._finding(
                message, self.direction.right, "both sides are one value: give the right side that sort"
            )

    def _finding(self, message: str, pattern: Pattern, remedy: str) -> Finding:
        return finding("stage", self.direction.rule.name, message, pattern.span, remedy)

    def _taken(self, node: OpPattern) -> Iterator[tuple[_Sorts, Pattern]]:
        """The operands of a node, each with the sorts that its operator takes there."""
        operator = self._operator(node)
        for place, operand in enumerate(node.operands):
            known = operator is not None and (place < len(operator.fixed) or operator.variadic is not None)
            yield _declared(operator.operand(place).sort if operator is not None and known else "any"), operand

    def _operator(self, node: OpPattern) -> Operator | None:
        """The operator of a node; None where it is any of a class."""
        if node.family is not None:
            affixes = family_affixes(node.op)
            return next((f for f in self.library.families if family_affixes(f.name) == affixes), None)
        found = self.library.find(node.op)
        return found[0] if found is not None else None

    def _of(self, pattern: Pattern) -> _Sorts:
        """The sorts that a value of a side can have; none if nothing is known."""
        if isinstance(pattern, VarPattern):
            return self.known.get(pattern.name, _ALL)
        if isinstance(pattern, NumberPattern):
            return frozenset({_INDEX})
        operator = self._operator(pattern)
        return self._result(operator, pattern) if operator is not None else _ALL

    def _result(self, operator: Operator, node: OpPattern) -> _Sorts:
        result = operator.decl.result
        if not isinstance(result, Call):
            return _POINTWISE.intersection(*map(self._of, node.operands))
        if result.function in _SORTS:
            return frozenset({_SORTS[result.function]})
        like = result.args[0] if result.args else None
        return self._like(operator, node, {o.name: i for i, o in enumerate(operator.decl.operands)}, like)

    def _like(self, operator: Operator, node: OpPattern, places: Mapping[str, int], like: object) -> _Sorts:
        """The sorts of a result that is like an operand."""
        place = places.get(like.name) if isinstance(like, Name) else None
        if place is None or place >= len(node.operands):
            return _ALL
        return _declared(operator.operand(place).sort) & self._of(node.operands[place])


def _declared(sort: str | None) -> _Sorts:
    """The sorts that an operand of a declared sort may have."""
    return _POINTWISE if sort is None else frozenset({_SORTS[sort]}) if sort in _SORTS else _ALL


def _words(sorts: _Sorts) -> str:
    return " or ".join(sorted(sorts))
