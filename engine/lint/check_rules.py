"""Rules checked before they run: names, attributes, operand counts, variables, guards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from genrw.engine.egraph.encode import FACTS
from genrw.engine.ir.types import TYPE_MEMBERS
from genrw.engine.language.expr import check_expr, free_names
from genrw.engine.language.expr_walk import did_you_mean, foreign_calls
from genrw.engine.library.constants import spelled_out
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.defaults import nameless
from genrw.engine.library.definitions import TermFunctions, definition_rules, term_expressions
from genrw.engine.library.library import ROLES, Library, Operator, family_affixes
from genrw.engine.library.rewriting import copied_from
from genrw.engine.library.variants import POSITION, leaves, nodes
from genrw.engine.lint.check_meanings import meaning_functions
from genrw.engine.lint.check_members import record_members, unknown_members
from genrw.engine.lint.check_names import check_names
from genrw.engine.programs.build import attribute_problem, attribute_remedy
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Binary, Const, Expr, ListExpr, Name, Unary, walk_free
from genrw.grammar.rw_tree import (
    AttributePattern,
    DefineDecl,
    NumberPattern,
    OpDecl,
    OpPattern,
    Pattern,
    RuleDecl,
    VarPattern,
)
from genrw.grammar.source import Span

_CONDITIONS = ("and", "or")
_MOST_SWAPPED = 8
VALUE_MEMBERS = frozenset(FACTS) | TYPE_MEMBERS
"""What may be asked of a matched value."""


def check_rules(library: Library, rules: Iterable[RuleDecl]) -> list[Diagnostic]:
    """All findings on the rules, in their order."""
    return [finding for rule in rules for finding in _RuleCheck(library, rule).findings()]


def check_definitions(library: Library, op: OpDecl) -> list[Diagnostic]:
    """All findings on what an operator is said to be made of."""
    try:
        expanded = TermFunctions(library.defines).operator(op)
        rules = definition_rules(library, expanded, False)
    except GenrwError as problem:
        return list(problem.diagnostics)
    return [finding for rule in rules for finding in _RuleCheck(library, rule).of_definition()]


def check_term_function(library: Library, define: DefineDecl) -> list[Diagnostic]:
    """All findings on a term function."""
    span = define.name_span
    operands = tuple(VarPattern(name, span=span) for name in define.operands)
    attributes = tuple(AttributePattern(name, None, span) for name in define.attributes)
    left = OpPattern(define.name, attributes, operands, span=span, op_span=span)
    try:
        term = TermFunctions(library.defines).pattern(define.term)
    except GenrwError as problem:
        return list(problem.diagnostics)
    rule = RuleDecl(define.name, library.stages[0] if library.stages else None, left, term, name_span=span)
    found = list(_RuleCheck(library, rule).of_term())
    named = [*define.operands, *define.attributes]
    used = {leaf.name for leaf in leaves(define.term) if isinstance(leaf, VarPattern)}
    used |= {name for expr in term_expressions(define.term) for name in free_names(expr)}
    used |= {n.family for n in nodes(define.term) if n.family is not None}
    for name in named:
        if name not in used:
            found.append(Diagnostic(f"`{name}` of `{define.name}` is never used", span, "leave it out"))
        if named.count(name) > 1:
            found.append(Diagnostic(f"`{define.name}` has two parameters of one name", span, "rename one"))
    return found


def _no_operand(leaf: VarPattern, values: Collection[str], operands: Collection[str]) -> Diagnostic:
    """What to say of a name in a template that is none of an operand: of one of `values`, that braces are missing."""
    if leaf.name in values:
        return Diagnostic(f"`{leaf.name}` is no operand", leaf.span, f"write {{{leaf.name}}} for the constant")
    remedy = did_you_mean(leaf.name, operands) or "name it on the left side, where it stands for an operand"
    return Diagnostic(f"`{leaf.name}` is not bound by the left side", leaf.span, remedy)


class _RuleCheck:
    def __init__(self, library: Library, rule: RuleDecl) -> None:
        self.library, self.rule = library, rule
        self.functions = TermFunctions(library.defines)
        self.classes = {
            b.name for b in rule.for_ if isinstance(b.value, Name) and library.members_of(b.value.name) is not None
        }

    def findings(self) -> Iterator[Diagnostic]:
        taken = list(check_names(self.library, self.rule))
        yield from taken
        if taken:
            return
        yield from self._stages()
        try:
            rule = self.rule = self.functions.rule(self.rule)
        except GenrwError as problem:
            yield from problem.diagnostics
            return
        if not isinstance(rule.left, OpPattern):
            remedy = "write an operator around it, such as relu(x)"
            yield Diagnostic("the left side is a variable, which matches everything", rule.left.span, remedy)
            return
        sides = [(rule.left, rule.right)] + ([(rule.right, rule.left)] if rule.both_ways else [])
        for left, right in sides:
            structure = [*self._patterns(left, True), *self._patterns(right, False), *self._copies(left, right)]
            structure += self._same_counts(left, right)
            yield from structure
            if not structure:
                yield from self._bound(left, right)
                yield from self._orders(left)
        yield from self._numbers()
        yield from self._unused()
        yield from self._guard()

    def of_definition(self) -> Iterator[Diagnostic]:
        """What is wrong with a rule that no author wrote, as it says what an operator is made of."""
        yield from self.of_term()
        yield from self._numbers()
        yield from self._guard()

    def of_term(self) -> Iterator[Diagnostic]:
        """What is wrong with the right side alone."""
        structure = list(self._patterns(self.rule.right, False))
        yield from structure or self._bound(self.rule.left, self.rule.right)

    def _numbers(self) -> Iterator[Diagnostic]:
        """Numbers that stand for constants of a type that nothing tells."""
        try:
            spelled_out(self.rule, self.library)
        except GenrwError as problem:
            yield from problem.diagnostics

    def _stages(self) -> Iterator[Diagnostic]:
        stages = self.rule.stages
        if not stages:
            yield Diagnostic("the rule belongs to no stage", self.rule.name_span, "write `stage NAME` above it")
        for stage in stages:
            if stage not in self.library.stages:
                known = ", ".join(self.library.stages)
                yield Diagnostic(f"there is no stage `{stage}`", self.rule.name_span, f"stages are {known}")
            elif self.rule.alternative and stage != self.library.fusing_stage:
                cutting = f"of stage `{self.library.fusing_stage}`, which cuts programs into kernels"
                message = f"only a rule {cutting}, is an alternative"
                yield Diagnostic(message, self.rule.name_span, "leave out `alternative`: costs decide among all terms")

    # ---- the shape of patterns and templates

    def _patterns(self, pattern: Pattern, left: bool) -> Iterator[Diagnostic]:
        for node in nodes(pattern):
            if node.op in self.classes:
                continue
            operator = self._operator(node)
            if operator is None:
                yield self.library.unknown_operator(node.op, node.op_span, self._no_class(node.op))
                continue
            yield from self._operand_count(node, operator)
            yield from self._attributes(node, operator, left)

    def _no_class(self, name: str) -> str | None:
        """What to do about an operator variable over what is no class."""
        over = next((b.value.name for b in self.rule.for_ if b.name == name and isinstance(b.value, Name)), None)
        if over is None:
            return None
        return did_you_mean(over, (*self.library.classes, *ROLES)) or f"there is no class or role `{over}`"

    def _same_counts(self, left: Pattern, right: Pattern) -> Iterator[Diagnostic]:
        """An operator variable takes as many operands on the right as it was matched with."""
        counts = {n.op: len(n.operands) for n in nodes(left) if n.op in self.classes}
        for node in nodes(right):
            count = counts.get(node.op, len(node.operands))
            rest = any(isinstance(o, (VarPattern, OpPattern)) and o.rest for n in nodes(left) for o in n.operands)
            if count != len(node.operands) and not rest:
                message = f"`{node.op}` was matched with {count} operand{'' if count == 1 else 's'}"
                yield Diagnostic(f"{message}, and has {len(node.operands)} here", node.span, "give it as many")

    def _operator(self, node: OpPattern) -> Operator | None:
        if node.op in self.classes:
            return None
        if node.family is None:
            found = self.library.find(node.op)
            return found[0] if found is not None else None
        affixes = family_affixes(node.op)
        return next((f for f in self.library.families if family_affixes(f.name) == affixes), None)

    def _operand_count(self, node: OpPattern, operator: Operator) -> Iterator[Diagnostic]:
        rest = any(isinstance(o, (VarPattern, OpPattern)) and o.rest for o in node.operands)
        count, least = len(node.operands) - rest, len(operator.fixed)
        if rest and operator.variadic is not None:
            return
        if (count == least and not rest) or (count >= least and operator.variadic is not None):
            return
        many = "or more " if operator.variadic is not None else ""
        yield Diagnostic(
            f"`{node.op}` takes {least} {many}operand{'' if least == 1 else 's'}, not {len(node.operands)}",
            node.span,
            f"it is declared with ({', '.join(o.name + ('...' if o.variadic else '') for o in operator.decl.operands)})",
        )

    def _attributes(self, node: OpPattern, operator: Operator, left: bool) -> Iterator[Diagnostic]:
        given: set[str] = set()
        for attribute in node.attributes:
            if attribute.name not in operator.attributes:
                names = ", ".join(operator.attributes) or "none"
                yield Diagnostic(f"`{node.op}` has no attribute `{attribute.name}`", attribute.span, f"it has {names}")
            if attribute.name in given:
                yield Diagnostic(f"`{attribute.name}` is given twice", attribute.span, "remove one")
            given.add(attribute.name)
            yield from self._constant(node, operator, attribute)
        if node.open_attributes:
            return
        for name, missing in nameless(node, operator, self.library):
            message = f"`{name}` of `{node.op}` follows from its `{missing}`, which has no name here"
            remedy = (
                f"write `{name}=…`" if not left else f"bind `{name}`, write `..`, or name the operand: `{missing}@…`"
            )
            yield Diagnostic(message, node.op_span, remedy)
        for name, decl in operator.attributes.items():
            if name not in given and decl.default is None:
                remedy = f"bind `{name}`, or write `..`" if left else f"write `{name}=…`"
                yield Diagnostic(f"`{node.op}` needs its attribute `{name}` here", node.op_span, remedy)

    def _constant(self, node: OpPattern, operator: Operator, attribute: AttributePattern) -> Iterator[Diagnostic]:
        """A constant has the kind of its attribute."""
        decl, value = operator.attributes.get(attribute.name), constant_of(attribute.value)
        problem = attribute_problem(self.library, decl.type, value) if decl is not None and value is not None else None
        if decl is not None and problem is not None:
            remedy = attribute_remedy(decl.type, value)
            yield Diagnostic(f"`{attribute.name}` of `{node.op}` {problem}", attribute.span, remedy)

    def _orders(self, left: Pattern) -> Iterator[Diagnostic]:
        """A pattern is spelled out in all orders of commutative operands: too many of them are refused."""
        found = [(node, self._operator(node)) for node in nodes(left)]
        swapped = [node for node, operator in found if operator is not None and operator.decl.commutative]
        if len(swapped) > _MOST_SWAPPED:
            message = f"the pattern has {len(swapped)} commutative operators, which match in 2^{len(swapped)} orders"
            yield Diagnostic(message, swapped[_MOST_SWAPPED].span, "match fewer at a time, by several rules")

    def _copies(self, left: Pattern, right: Pattern) -> Iterator[Diagnostic]:
        """`..` of a template takes over the attributes of a matched operator."""
        matched = list(nodes(left))
        for node in nodes(right):
            if node.open_attributes and copied_from(matched, node) is None:
                message = f"`..` copies the attributes of a matched `{node.op}`, but the left side has none"
                yield Diagnostic(message, node.op_span, "list the attributes")

    # ---- variables

    def _bound(self, left: Pattern, right: Pattern) -> Iterator[Diagnostic]:
        """Everything that the right side, guard and computed values name must come from somewhere."""
        operands = set(_operand_names(left))
        known = operands | set(_attribute_names(left)) | set(_number_names(left)) | self.classes | set(CONTEXT_NAMES)
        known |= {n.family for n in nodes(left) if n.family and n.family not in self.library.monoids}
        known |= {b.name for b in (*self.rule.with_, *self.rule.for_)}
        known |= {n.binds for n in nodes(right) if n.binds is not None}
        for leaf in leaves(right):
            if isinstance(leaf, VarPattern) and leaf.name not in operands:
                yield _no_operand(leaf, known - self.classes, operands)
        for node in nodes(right):
            if node.family is not None and node.family not in known | self.library.monoids.keys():
                remedy = did_you_mean(node.family, self.library.monoids) or "docs/operators.md lists the monoids"
                yield Diagnostic(
                    f"`{node.family}` is no monoid, and the left side does not bind it", node.op_span, remedy
                )
        for expr in self._clauses():
            yield from self._expression(expr, known)
        yield from self._template(right, known)
        yield from self._unknown_yet(right)
        yield from self._members(left, right)
        yield from self._circles()

    def _members(self, left: Pattern, right: Pattern) -> Iterator[Diagnostic]:
        """Members that values, and the records of the context, never have."""
        known = record_members(self.library) | dict.fromkeys(_operand_names(left), VALUE_MEMBERS)
        clauses = [*self._clauses()]
        of_lists = known | {leaf.name: () for leaf in leaves(left) if isinstance(leaf, VarPattern) and leaf.rest}
        for number, expr in enumerate(self._expressions(right)):
            # In a template that is mapped over a list its name is the element at hand.
            yield from unknown_members(self.library, expr, of_lists if number < len(clauses) else known)

    def _unknown_yet(self, right: Pattern) -> Iterator[Diagnostic]:
        """Parts of the context that a stage of the rule does not have."""
        expressions = list(self._expressions(right))
        for name, known in self.library.context_stages.items():
            missing = [s for s in self.rule.stages if s in self.library.stages and s not in known]
            naming = [expr for expr in expressions if name in expr.free] if missing else []
            if naming:
                when = f"from `{known[0]}` on" if known else "at no stage"
                span = _last_named(naming[-1], name).span
                yield Diagnostic(f"`{missing[0]}` does not know the {name}", span, f"it is known {when}")

    def _circles(self) -> Iterator[Diagnostic]:
        """`with` values that are computed from themselves."""
        needs = {b.name: free_names(b.value) for b in self.rule.with_}
        for binding in self.rule.with_:
            reached, todo = set[str](), [binding.name]
            while todo:
                new = (needs[todo.pop()] & needs.keys()) - reached
                reached |= new
                todo += new
            if binding.name in reached:
                yield Diagnostic(f"`{binding.name}` is computed from itself", binding.span, "begin with what is known")

    def _template(self, pattern: Pattern, known: set[str]) -> Iterator[Diagnostic]:
        """What the expressions of a template name; one that is mapped over operands has their `position`."""
        if isinstance(pattern, NumberPattern):
            yield from self._expression(pattern.value, known)
        elif isinstance(pattern, OpPattern):
            known = known | {POSITION} if pattern.rest else known
            for attribute in pattern.attributes:
                yield from self._expression(_value(attribute), known)
            for operand in pattern.operands:
                yield from self._template(operand, known)

    def _expression(self, expr: Expr, known: set[str]) -> Iterator[Diagnostic]:
        scope = self.library.scope
        yield from check_expr(expr, known, scope.lets, scope.functions)
        yield from foreign_calls(expr, scope.lets, scope.functions, meaning_functions(self.library))

    def _expressions(self, right: Pattern) -> Iterator[Expr]:
        yield from self._clauses()
        yield from (_value(attribute) for node in nodes(right) for attribute in node.attributes)
        yield from (leaf.value for leaf in leaves(right) if isinstance(leaf, NumberPattern))

    def _clauses(self) -> Iterator[Expr]:
        rule = self.rule
        if rule.guard is not None:
            yield rule.guard
        yield from (b.value for b in rule.with_)
        yield from (b.value for b in rule.for_ if b.name not in self.classes)

    def _unused(self) -> Iterator[Diagnostic]:
        """Names that the left side, `with` or `for` bind and nothing reads."""
        used = Counter(name for expr in self._expressions(self.rule.right) for name in free_names(expr))
        left = self.rule.left
        right_names = set(_operand_names(self.rule.right)) | {n.op for n in nodes(self.rule.right)}
        right_names |= {n.family for n in nodes(self.rule.right) if n.family}
        times = Counter(name for name, _ in _bindings(left)) + Counter(node.binds for node in nodes(left))
        for name, span in _bindings(left):
            if times[name] == 1 and not used[name] and name not in right_names and not name.startswith("_"):
                yield Diagnostic(
                    f"`{name}` is bound and never used",
                    span,
                    f'leave it out with `..`, call it `_{name}`, or write "{name}" for the word',
                )
        for binding in self.rule.with_:
            if not used[binding.name]:
                yield Diagnostic(f"`{binding.name}` is computed and never used", binding.span, "remove it")

    # ---- the guard

    def _guard(self) -> Iterator[Diagnostic]:
        guard = self.rule.guard
        if guard is None:
            return
        kind = not_a_condition(guard)
        if kind is not None:
            yield Diagnostic(f"the guard is {kind}, not a condition", guard.span, "compare it: `… > 0`")


def constant_of(expr: Expr | None) -> object:
    """The value of a constant, or of a list of them, as attributes hold it; None for anything else."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Unary) and expr.op == "-" and isinstance(expr.operand, Const):
        return -expr.operand.value if isinstance(expr.operand.value, int | float) else None
    if isinstance(expr, ListExpr):
        values = tuple(constant_of(item) for item in expr.items)
        return None if None in values else values
    return None


def _last_named(expr: Expr, name: str) -> Expr:
    """The last place at which an expression has a free name."""
    places = [
        node for node, local in walk_free(expr) if isinstance(node, Name) and node.name == name and name not in local
    ]
    return places[-1]


def not_a_condition(expr: Expr) -> str | None:
    """What an expression is that can never be true or false; None if it may be."""
    if isinstance(expr, Const) and not isinstance(expr.value, bool):
        return "a text" if isinstance(expr.value, str) else "a number"
    if isinstance(expr, ListExpr):
        return "a list"
    if isinstance(expr, Binary) and expr.op not in _CONDITIONS:
        return "a number"
    if isinstance(expr, Unary) and expr.op != "not":
        return "a number"
    if isinstance(expr, Binary):
        return not_a_condition(expr.left) or not_a_condition(expr.right)
    return None


def _value(attribute: AttributePattern) -> Expr:
    """What stands for an attribute; `axes` alone is the name."""
    return attribute.value if attribute.value is not None else Name(attribute.name, span=attribute.span)


def _operand_names(pattern: Pattern) -> Iterator[str]:
    for leaf in leaves(pattern):
        if isinstance(leaf, VarPattern):
            yield leaf.name
    for node in nodes(pattern):
        if node.binds is not None:
            yield node.binds


def _attribute_names(pattern: Pattern) -> Iterator[str]:
    for node in nodes(pattern):
        for attribute in node.attributes:
            if attribute.value is None:
                yield attribute.name
            elif isinstance(attribute.value, Name):
                yield attribute.value.name


def _number_names(pattern: Pattern) -> Iterator[str]:
    for leaf in leaves(pattern):
        if isinstance(leaf, NumberPattern) and isinstance(leaf.value, Name):
            yield leaf.value.name


def _bindings(pattern: Pattern) -> list[tuple[str, Span]]:
    """Every place of the left side that binds a name."""
    found: list[tuple[str, Span]] = []
    for leaf in leaves(pattern):
        if isinstance(leaf, VarPattern):
            found.append((leaf.name, leaf.span))
        elif isinstance(leaf, NumberPattern) and isinstance(leaf.value, Name):
            found.append((leaf.value.name, leaf.span))
    for node in nodes(pattern):
        for attribute in node.attributes:
            name = attribute.name if attribute.value is None else None
            if isinstance(attribute.value, Name):
                name = attribute.value.name
            if name is not None:
                found.append((name, attribute.span))
    return found
