"""Numbers in rules that stand for values: constants of tensors and of lanes, written out.

A number where an operator takes an index is a constant index. Anywhere else in a left side it is a constant that is this
number for all elements, of any type, and of any shape that does not enlarge what stands beside it. In a right side it is
a constant of the type that what stands beside it has. Rules are spelled out here as if their authors had written the
operators of such constants, so whoever works with rules sees those only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from genrw.engine.ir.dtypes import is_dtype
from genrw.engine.library.library import Library, Operator, family_affixes
from genrw.engine.library.variants import nodes, pattern_operators
from genrw.grammar.diagnostics import error
from genrw.grammar.expr_tree import Binary, Call, Comprehension, Const, Expr, Index, ListExpr, Member, Name
from genrw.grammar.rw_tree import AttributePattern, Binding, NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern
from genrw.grammar.source import Span

CONSTANTS = "constants of tensors and lanes"
"""The class of the operators that are constants, tensors' and lanes'. No author can write its name."""

_TENSOR, _LANE = "tensor", "lane"
_SORTS = {"tensor": _TENSOR, "scalar": _LANE, "array": _LANE, "value": _LANE}
_ROOT = "the left side"


def constant_operators(library: Library) -> frozenset[str]:
    """The operators that are constants, of tensors and of lanes."""
    parts = ("constant", "scalar")
    boundaries = (op for op in library.operators.values() if op.role == "boundary")
    return frozenset(op.name for op in boundaries if op.decl.role_parts[:1] and op.decl.role_parts[0] in parts)


def spelled_out(rule: RuleDecl, library: Library) -> tuple[RuleDecl, ...]:
    """The rule with its constants written out: one rule, or two where it rewrites both ways; GenrwError for a number of
    which nothing tells the type."""
    if not isinstance(rule.left, OpPattern):
        return (rule,)
    if not any(_has_numbers(side, rule, library) for side in (rule.left, rule.right)):
        return (rule,)
    if rule.both_ways and not isinstance(rule.right, OpPattern):
        raise error("a rule that rewrites both ways has an operator on each side", rule.right.span, "write =>")
    if not rule.both_ways:
        return (_Side(rule, library).spelled(),)
    forwards = replace(rule, both_ways=False)
    backwards = replace(forwards, name=f"{rule.name}/reverse", left=rule.right, right=rule.left, examples=())
    return tuple(_Side(one, library).spelled() for one in (forwards, backwards))


def has_constants(rule: RuleDecl, library: Library) -> bool:
    """Does a rule match constants?"""
    return any(library.classes[CONSTANTS] & set(_names(node, rule, library)) for node in nodes(rule.left))


def folds_constants(rule: RuleDecl, library: Library) -> bool:
    """Does a rule make a constant of an operation on constants?"""
    constants = library.classes[CONSTANTS]
    if not isinstance(rule.right, OpPattern) or rule.right.op not in constants or not isinstance(rule.left, OpPattern):
        return False
    operands = rule.left.operands
    return bool(operands) and all(isinstance(o, OpPattern) and o.op in constants for o in operands)


def _has_numbers(pattern: Pattern, rule: RuleDecl, library: Library) -> bool:
    """Does a side hold a number that is no index?"""
    if isinstance(pattern, NumberPattern):
        return _takes_values(rule, library)
    return any(
        isinstance(operand, NumberPattern) and not _is_index(node, place, rule, library)
        for node in nodes(pattern)
        for place, operand in enumerate(node.operands)
    )


def _takes_values(rule: RuleDecl, library: Library) -> bool:
    """Is the value that a rule rewrites a tensor's or a lane's, and no index?"""
    sides = [side for side in (rule.left, rule.right) if isinstance(side, OpPattern)]
    operators = [_declared(name, library) for side in sides for name in _names(side, rule, library)]
    return bool(operators) and not any(o is None or o.result_sort in ("index", "effect") for o in operators)


def _is_index(node: OpPattern, place: int, rule: RuleDecl, library: Library) -> bool:
    """Does a node take an index at a place? One of an operator that nobody declares is left as it is."""
    sorts = {_sort(_declared(name, library), place) for name in _names(node, rule, library)}
    return not sorts or bool(sorts & {"index", "?"})


def _names(node: OpPattern, rule: RuleDecl, library: Library) -> list[str]:
    return sorted(pattern_operators(node, rule, library))


def _declared(name: str, library: Library) -> Operator | None:
    found = library.find(name)
    return found[0] if found is not None else None


def _sort(operator: Operator | None, place: int) -> str | None:
    """The sort that an operand is declared with; "?" if there is no such operand."""
    if operator is None or (place >= len(operator.fixed) and operator.variadic is None):
        return "?"
    return operator.operand(place).sort


@dataclass
class _Side:
    """One direction of a rule being spelled out. `names` are those given to nodes of the left side."""

    rule: RuleDecl
    library: Library
    conditions: list[Expr] = field(default_factory=list)
    classes: list[Binding] = field(default_factory=list)
    count: int = 0

    def spelled(self) -> RuleDecl:
        rule = self.rule
        assert isinstance(rule.left, OpPattern)
        left = self._left(rule.left, self._stage_sort)
        if left.binds is None and _has_numbers(rule.right, rule, self.library):
            left = replace(left, binds=_ROOT)
        root = left.binds
        right = self._right(rule.right, None if root is None else Member(Name(root), "type"), root, self._stage_sort)
        guard = rule.guard
        for condition in self.conditions:
            guard = condition if guard is None else Binary("and", condition, guard, span=condition.span)
        return replace(rule, left=left, right=right, guard=guard, for_=(*self.classes, *rule.for_))

    @property
    def _stage_sort(self) -> str | None:
        """What a value is whose operators work on both: a tensor as long as there are no lanes; None where there are."""
        lanes = self.library.lane_stages
        return None if any(stage in lanes for stage in self.rule.stages) else _TENSOR

    def _within(self, node: OpPattern, place: int, sort: str | None) -> str | None:
        """The sort of an operand: that which is declared, else that of the value itself."""
        found = {_sort(_declared(name, self.library), place) for name in _names(node, self.rule, self.library)}
        declared = {_SORTS.get(s) if s is not None else sort for s in found}
        return declared.pop() if len(declared) == 1 else None

    # ---- the left side

    def _left(self, node: OpPattern, sort: str | None) -> OpPattern:
        """A node of the left side, its numbers constants."""
        operands: list[Pattern] = []
        for place, operand in enumerate(node.operands):
            if isinstance(operand, OpPattern):
                operands.append(self._left(operand, self._within(node, place, sort)))
            else:
                operands.append(operand)
        numbers = [
            place
            for place, operand in enumerate(operands)
            if isinstance(operand, NumberPattern) and not _is_index(node, place, self.rule, self.library)
        ]
        beside = self._beside(node, operands, numbers) if numbers else []
        for place in numbers:
            number = operands[place]
            assert isinstance(number, NumberPattern)
            found = self._within(node, place, sort)
            spread = beside if found == _TENSOR and _is_open(node, place, self.rule, self.library) else []
            operands[place] = self._constant(number, found, spread)
        return replace(node, operands=tuple(operands))

    def _beside(self, node: OpPattern, operands: list[Pattern], numbers: list[int]) -> list[Expr]:
        """The lengths of the operands that are no numbers; operations among them get names."""
        lengths: list[Expr] = []
        for place, operand in enumerate(operands):
            if place in numbers or not _is_open(node, place, self.rule, self.library):
                continue
            if isinstance(operand, OpPattern) and operand.binds is None:
                self.count += 1
                operand = operands[place] = replace(operand, binds=f"operand {self.count}")
            if isinstance(operand, VarPattern) and operand.rest:
                lengths.append(Call("broadcast_all", (_each(operand.name),), span=operand.span))
            elif isinstance(operand, (VarPattern, OpPattern)):
                name = operand.name if isinstance(operand, VarPattern) else str(operand.binds)
                lengths.append(Member(Name(name, span=operand.span), "lens", span=operand.span))
        return lengths

    def _constant(self, number: NumberPattern, sort: str | None, beside: list[Expr]) -> OpPattern:
        """The pattern of a constant that is a number. What is beside it decides on the shape."""
        self.count += 1
        span, suffix = number.span, f" {self.count}"
        dtype, lens = f"type{suffix}", f"lens{suffix}"
        value = number.value.name if isinstance(number.value, Name) else f"constant{suffix}"
        given = Name(value, span=span)
        attributes = [_attribute("value", given, span)]
        if isinstance(number.value, Name):
            self.conditions.insert(0, Call("is_number", (given,), span=span))
        else:
            attributes.append(_attribute("dtype", Name(dtype), span))
            self.conditions.insert(0, Call("is_constant", (given, number.value, Name(dtype)), span=span))
        if sort is None:
            name = f"kind{suffix}"
            self.classes.append(Binding(name, Name(CONSTANTS)))
            return OpPattern(name, tuple(attributes), (), open_attributes=True, span=span, op_span=span)
        if beside:
            attributes.append(_attribute("lens", Name(lens), span))
            shape = Call("broadcast_all", (ListExpr(tuple(beside)),), span=span)
            self.conditions.append(Call("broadcasts_to", (Name(lens), shape), span=span))
        op = self.library.boundary("constant" if sort == _TENSOR else "scalar").name
        return OpPattern(op, tuple(attributes), (), open_attributes=True, span=span, op_span=span)

    # ---- the right side

    def _right(self, pattern: Pattern, dtype: Expr | None, root: str | None, sort: str | None) -> Pattern:
        """A part of the right side, its numbers constants; `dtype` is the type that is wanted of it, as far as known."""
        if isinstance(pattern, NumberPattern):
            if not _takes_values(self.rule, self.library):
                return pattern
            assert root is not None
            return self._made(pattern, dtype, Member(Name(root), "lens"), sort)
        if not isinstance(pattern, OpPattern):
            return pattern
        operands = list(pattern.operands)
        wanted = self._wanted(pattern, operands, dtype)
        for place, operand in enumerate(operands):
            within = self._within(pattern, place, sort)
            if isinstance(operand, OpPattern):
                operands[place] = self._right(operand, wanted[place], None, within)
            elif isinstance(operand, NumberPattern) and not _is_index(pattern, place, self.rule, self.library):
                operands[place] = self._made(operand, wanted[place], ListExpr(()), within)
        return replace(pattern, operands=tuple(operands))

    def _made(self, number: NumberPattern, dtype: Expr | None, lens: Expr, sort: str | None) -> OpPattern:
        """The constant that a number of the right side is."""
        span = number.span
        if dtype is None:
            remedy = "write the constant: literal[value=…, dtype=…, lens=[]]()"
            raise error("nothing beside this number tells its type", span, remedy)
        if sort != _TENSOR:
            remedy = "write a lane's constant: constant[value=…, dtype=…]()"
            raise error("the type of this number is not known where values are those of lanes", span, remedy)
        attributes = (
            _attribute("value", number.value, span),
            _attribute("dtype", dtype, span),
            _attribute("lens", lens, span),
        )
        op = self.library.boundary("constant").name
        return OpPattern(op, attributes, (), span=span, op_span=span)

    def _wanted(self, node: OpPattern, operands: list[Pattern], dtype: Expr | None) -> list[Expr | None]:
        """The types of a node's operands, as far as they can be told: by one another, and by what is wanted of the node.

        Operations that others go by get names.
        """
        operator = self._operator(node)
        places = range(len(operands))
        declared = [None if operator is None else _operand_type(operator, place) for place in places]
        known: dict[str | None, Expr | None] = {}
        result = operator.decl.result if operator is not None else None
        if dtype is not None and (result is None or isinstance(result, Name)):
            known[result.name if result is not None else None] = dtype
        numbers = {d for d, operand in zip(declared, operands, strict=True) if _is_number(operand)}
        for place in places:
            if declared[place] in numbers and not _is_number(operands[place]):
                operands[place], known[declared[place]] = self._typed(operands[place])
        return [Const(d) if d is not None and is_dtype(d) else known.get(d) for d in declared]

    def _typed(self, pattern: Pattern) -> tuple[Pattern, Expr]:
        """A part of the right side, named if it has to be, and what its type is."""
        if isinstance(pattern, OpPattern) and pattern.binds is None:
            self.count += 1
            pattern = replace(pattern, binds=f"operand {self.count}")
        assert not isinstance(pattern, NumberPattern), "numbers get their types from what stands beside them"
        named = Name(pattern.name if isinstance(pattern, VarPattern) else str(pattern.binds), span=pattern.span)
        value: Expr = Index(named, Const(0)) if isinstance(pattern, VarPattern) and pattern.rest else named
        return pattern, Member(value, "type", span=pattern.span)

    def _operator(self, node: OpPattern) -> Operator | None:
        """The operator of a node; None where it is any of a class."""
        if node.family is not None:
            affixes = family_affixes(node.op)
            return next((f for f in self.library.families if family_affixes(f.name) == affixes), None)
        return _declared(node.op, self.library)


def _is_number(pattern: Pattern) -> bool:
    """Is a part of a side made of numbers alone, so that it tells no type?"""
    if isinstance(pattern, OpPattern):
        return bool(pattern.operands) and all(map(_is_number, pattern.operands))
    return isinstance(pattern, NumberPattern)


def _operand_type(operator: Operator, place: int) -> str | None:
    """The element type, or the variable for it, that an operand is declared with."""
    if place >= len(operator.fixed) and operator.variadic is None:
        return None
    return operator.operand(place).dtype


def _is_open(node: OpPattern, place: int, rule: RuleDecl, library: Library) -> bool:
    """Does a node work on values of any sort, so that what is beside an operand tells its shape?"""
    return all(_sort(_declared(name, library), place) is None for name in _names(node, rule, library))


def _attribute(name: str, value: Expr, span: Span) -> AttributePattern:
    return AttributePattern(name, value, span)


def _each(rest: str) -> Expr:
    """The lengths of all operands that are left."""
    element = "operand"
    return Comprehension(Member(Name(element), "lens"), element, Name(rest), None)
