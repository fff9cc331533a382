"""Names for terms: term functions, and operators that are made of others.

A *term function* stands for its term wherever a rule, an import or a definition calls it: the term is put in its place.
An operator with a definition stays an operator, and the e-graph is told that it equals its term. So rules for the term's
operators apply inside of it. What an operator means and costs follows from its definition where its declaration does not
say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from genrw.engine.ir.dtypes import is_dtype
from genrw.engine.language.expr import free_names, substitute
from genrw.engine.library.library import NOWHERE, Library, family_affixes
from genrw.engine.library.variants import leaves, nodes
from genrw.grammar.diagnostics import error
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, ListExpr, Member, Name, children
from genrw.grammar.rw_tree import (
    AttributePattern,
    DefineDecl,
    Definition,
    FunctionDecl,
    ImportDecl,
    NumberPattern,
    OpDecl,
    OpPattern,
    Pattern,
    RuleDecl,
    VarPattern,
)

_MOST_NODES = 4000
"""How large a term is at most, written out, and an expression for what it means."""
_DEPTH = 64


# ---- term functions


@dataclass
class TermFunctions:
    """The term functions of a library, put in place of their calls; GenrwError for calls that do not fit."""

    declared: Mapping[str, DefineDecl]
    _named: int = 0
    _size: int = 0

    def rule(self, rule: RuleDecl) -> RuleDecl:
        """A rule with terms in place of calls: the rule itself if there are none."""
        variables = self.declared.keys() & {binding.name for binding in rule.for_}
        if variables:
            others = {name: define for name, define in self.declared.items() if name not in variables}
            return TermFunctions(others).rule(rule)
        left, right = self.pattern(rule.left), self.pattern(rule.right)
        return rule if left is rule.left and right is rule.right else replace(rule, left=left, right=right)

    def imported(self, declaration: ImportDecl) -> ImportDecl:
        """An import with terms in place of calls."""
        results, repeat = tuple(map(self.pattern, declaration.results)), declaration.repeat
        if repeat is not None:
            repeat = replace(repeat, body=self.pattern(repeat.body))
        built = replace(declaration, results=results, repeat=repeat)
        return declaration if built == declaration else built

    def operator(self, op: OpDecl) -> OpDecl:
        """An operator whose definitions and functions have terms in place of calls; functions without a term have that of
        the definition."""
        found = tuple(replace(d, term=self.pattern(d.term)) for d in op.definitions)
        functions = tuple(self._function(f, found) for f in op.functions)
        if found == op.definitions and functions == op.functions:
            return op
        return replace(op, definitions=found, functions=functions)

    def _function(self, function: FunctionDecl, definitions: Sequence[Definition]) -> FunctionDecl:
        if function.term is None:
            same = next((d for d in definitions if not d.with_), None)
            return function if same is None else replace(function, term=same.term, guard=same.guard)
        steps = tuple(replace(s, term=self.pattern(s.term)) for s in function.steps)
        return replace(function, steps=steps, term=self.pattern(function.term))

    def pattern(self, pattern: Pattern) -> Pattern:
        """A pattern with terms in place of calls: the pattern itself if there are none."""
        if not any(node.family is None and node.op in self.declared for node in nodes(pattern)):
            return pattern
        self._size = 0
        return self._expanded(pattern, ())

    def _expanded(self, pattern: Pattern, calling: tuple[str, ...]) -> Pattern:
        self._size += 1
        if self._size > _MOST_NODES:
            raise error(
                f"the term has more than {_MOST_NODES} parts, written out", pattern.span, "make several rules of it"
            )
        if not isinstance(pattern, OpPattern):
            return pattern
        operands = tuple(self._expanded(o, calling) for o in pattern.operands)
        pattern = replace(pattern, operands=operands)
        declaration = self.declared.get(pattern.op) if pattern.family is None else None
        return pattern if declaration is None else self._call(pattern, declaration, calling)

    def _call(self, call: OpPattern, declaration: DefineDecl, calling: tuple[str, ...]) -> Pattern:
        """The term of a call, whose operands have none any more."""
        name = declaration.name
        if name in calling:
            raise error(f"`{name}` is defined by itself", declaration.name_span, "definitions are not recursive")
        self._check(call, declaration)
        attributes: dict[str, Expr] = {
            a.name: a.value if a.value is not None else Name(a.name, span=a.span) for a in call.attributes
        }
        operands = dict(zip(declaration.operands, call.operands, strict=True))
        asked = {n for e in term_expressions(declaration.term) for n in free_names(e)}
        for parameter, operand in operands.items():
            if isinstance(operand, OpPattern) and parameter in asked and parameter not in _variables(declaration.term):
                message = f"`{name}` asks of what type `{parameter}` is, and does not contain it"
                raise error(message, operand.span, "give it a variable, or an operand of that type")
            uses = sum(isinstance(p, VarPattern) and p.name == parameter for p in leaves(declaration.term))
            if isinstance(operand, OpPattern) and operand.binds is None and (parameter in asked or uses > 1):
                self._named += 1
                operands[parameter] = replace(operand, binds=f"operand {self._named} of {name}")
        names = attributes | {p: called for p, o in operands.items() if (called := _called(o)) is not None}
        term = _Substituted(declaration, operands, names).pattern(declaration.term)
        term = self._expanded(term, (*calling, name))
        if call.binds is None and not call.rest:
            return term
        if not isinstance(term, OpPattern):
            raise error(f"`{name}` is no more than an operand here", call.span, "name the operand")
        return replace(term, binds=call.binds or term.binds, rest=call.rest)

    def _check(self, call: OpPattern, declaration: DefineDecl) -> None:
        name, given = declaration.name, [a.name for a in call.attributes]
        if len(call.operands) != len(declaration.operands):
            found = f"`{name}` takes {len(declaration.operands)} operands, not {len(call.operands)}"
            raise error(found, call.span, f"they are ({', '.join(declaration.operands)})")
        for operand in call.operands:
            if isinstance(operand, (VarPattern, OpPattern)) and operand.rest:
                raise error(f"`{name}` takes single operands", operand.span, "leave out `...`")
        for attribute in call.attributes:
            if attribute.name not in declaration.attributes:
                remedy = f"it has {', '.join(declaration.attributes) or 'none'}"
                raise error(f"`{name}` has no attribute `{attribute.name}`", attribute.span, remedy)
        for attribute_name in declaration.attributes:
            if given.count(attribute_name) != 1:
                wrong = "needs" if attribute_name not in given else "is given twice"
                remedy = f"write it once: {name}[{attribute_name}=…]"
                raise error(f"`{name}` {wrong} its attribute `{attribute_name}`", call.op_span, remedy)
        if call.open_attributes:
            raise error(f"`..` cannot stand for attributes of `{name}`", call.op_span, "write them")


def term_expressions(pattern: Pattern) -> Iterable[Expr]:
    """The expressions of a term."""
    for node in nodes(pattern):
        yield from (a.value if a.value is not None else Name(a.name) for a in node.attributes)
    yield from (leaf.value for leaf in leaves(pattern) if isinstance(leaf, NumberPattern))


def _variables(pattern: Pattern) -> set[str]:
    """The operands that a term names."""
    return {leaf.name for leaf in leaves(pattern) if isinstance(leaf, VarPattern)}


def _called(pattern: Pattern) -> Expr | None:
    """What expressions call an operand."""
    if isinstance(pattern, VarPattern):
        return Name(pattern.name, span=pattern.span)
    if isinstance(pattern, NumberPattern):
        return pattern.value
    return Name(pattern.binds, span=pattern.span) if pattern.binds is not None else None


def _member(value: Expr) -> str:
    """The member of a family that an attribute of a call stands for."""
    if isinstance(value, Name):
        return value.name
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    raise error("a member of a family is a name, or a word in quotes", value.span, 'write one, such as "sum"')


@dataclass
class _Substituted:
    """A term with what its parameters stand for."""

    declaration: DefineDecl
    operands: Mapping[str, Pattern]
    names: Mapping[str, Expr]

    def pattern(self, pattern: Pattern) -> Pattern:
        if isinstance(pattern, VarPattern):
            return self.operands.get(pattern.name, pattern)
        if isinstance(pattern, NumberPattern):
            return replace(pattern, value=substitute(pattern.value, self.names))
        attributes = tuple(
            replace(a, value=substitute(a.value if a.value is not None else Name(a.name, span=a.span), self.names))
            for a in pattern.attributes
        )
        family = pattern.family
        if family is not None and family in self.names:
            family = _member(self.names[family])
        return replace(
            pattern, attributes=attributes, family=family, operands=tuple(map(self.pattern, pattern.operands))
        )


# ---- operators made of others


def terms_of(op: OpDecl) -> list[Pattern]:
    """All terms that an operator is said to be made of, the parts of its functions each by itself."""
    terms = [definition.term for definition in op.definitions]
    for function in op.functions:
        terms += [step.term for step in function.steps]
        terms += [function.term] if function.term is not None else []
    return terms


def written_out(function: FunctionDecl) -> Pattern | None:
    """A function as one term, with its parts in place of their names; None where it has none."""
    if function.term is None:
        return None
    parts: dict[str, Pattern] = {}
    for step in function.steps:
        parts[step.name] = _put_in(step.term, parts)
    return _put_in(function.term, parts)


def _put_in(term: Pattern, parts: Mapping[str, Pattern]) -> Pattern:
    if isinstance(term, VarPattern):
        return parts.get(term.name, term)
    if not isinstance(term, OpPattern):
        return term
    made = replace(term, operands=tuple(_put_in(o, parts) for o in term.operands))
    if sum(1 for _ in nodes(made)) > _MOST_NODES:
        raise error(f"the term has more than {_MOST_NODES} parts, written out", term.span, "say what it `means`")
    return made


def definition_rules(library: Library, op: OpDecl, recognised: bool) -> list[RuleDecl]:
    """The rules that make an operator its term, and if it is to be `recognised`, the term the operator."""
    found: list[RuleDecl] = []
    for place, definition in enumerate(op.definitions):
        name = f"{_rule_name(op)}.is{place + 1 if place else ''}"
        forwards = _forwards(library, op, definition, name)
        found.append(forwards)
        backwards = _backwards(op, definition, forwards) if recognised else None
        if backwards is not None:
            found.append(backwards)
    return found


def _rule_name(op: OpDecl) -> str:
    return op.name.replace("{", "").replace("}", "")


def _forwards(library: Library, op: OpDecl, definition: Definition, name: str) -> RuleDecl:
    stage = _stage(library, op, definition.term)
    left = _whole(op, definition)
    guards = [*_computed(op), *([definition.guard] if definition.guard is not None else [])]
    return RuleDecl(
        name,
        stage,
        left,
        definition.term,
        guard=reduce(_both, guards, None),
        with_=definition.with_,
        replaces=bool(op.stages) and stage not in op.stages,
        defines=op.name,
        doc=f"What `{op.name}` is made of.",
        span=definition.span,
        name_span=op.name_span,
    )


def _whole(op: OpDecl, definition: Definition) -> OpPattern:
    """The operator with all its attributes and operands, by their names."""
    span = definition.span
    attributes = tuple(AttributePattern(a.name, None, span) for a in op.attributes)
    operands = tuple(VarPattern(o.name, o.variadic, span) for o in op.operands)
    pattern = op.name if op.family is None else op.name.replace(f"{{{op.family}}}", "{}")
    return OpPattern(pattern, attributes, operands, op.family, span=span, op_span=op.name_span)


def _stage(library: Library, op: OpDecl, term: Pattern) -> str | None:
    """The first stage at which the operator may be, and all that its term is made of."""
    everything = [op, *(d for node in nodes(term) if (d := _declared(library, node)) is not None)]
    for stage in library.stages:
        if all(not d.stages or d.stages == (NOWHERE,) or stage in d.stages for d in everything):
            return stage
    return library.stages[0] if library.stages else None


def _declared(library: Library, node: OpPattern) -> OpDecl | None:
    if node.family is not None:
        affixes = family_affixes(node.op)
        return next((f.decl for f in library.families if family_affixes(f.name) == affixes), None)
    found = library.find(node.op)
    return found[0].decl if found is not None else None


def _backwards(op: OpDecl, definition: Definition, forwards: RuleDecl) -> RuleDecl | None:
    """The rule that recognises the operator in its term; None if the term does not tell all that the operator needs."""
    term = definition.term
    if not isinstance(term, OpPattern) or definition.with_:
        return None
    operands = {p.name for p in leaves(term) if isinstance(p, VarPattern)}
    told = {p.value.name for p in leaves(term) if isinstance(p, NumberPattern) and isinstance(p.value, Name)}
    for node in nodes(term):
        told |= {
            a.name if a.value is None else a.value.name for a in node.attributes if isinstance(a.value, Name | None)
        }
        told |= {node.family} if node.family is not None else set()
    needed = {a.name for a in op.attributes} | ({op.family} if op.family is not None else set())
    if not needed <= told or not {o.name for o in op.operands} <= operands:
        return None
    computed: list[Expr] = []
    left = _told_apart(term, computed)
    guards = [*_conditions(op), *([forwards.guard] if forwards.guard is not None else []), *computed]
    guard = reduce(_both, guards, None)
    return replace(
        forwards,
        name=f"{forwards.name}/reverse",
        left=left,
        right=forwards.left,
        guard=guard,
        replaces=False,
        doc=f"Recognises `{op.name}`.",
    )


def _told_apart(term: OpPattern, computed: list[Expr]) -> OpPattern:
    """The term with any value for each attribute that is computed, and what each has to be: only of operands that the
    operator may have can that be told."""
    attributes = []
    for attribute in term.attributes:
        if not isinstance(attribute.value, Const | Name | None):
            name = Name(f"_computed{len(computed)}", span=attribute.span)
            computed.append(Compare((name, attribute.value), ("==",), span=attribute.span))
            attribute = replace(attribute, value=name)
        attributes.append(attribute)
    operands = tuple(_told_apart(p, computed) if isinstance(p, OpPattern) else p for p in term.operands)
    return replace(term, attributes=tuple(attributes), operands=operands)


def _computed(op: OpDecl) -> Iterable[Expr]:
    """A pointwise operator is made of others where it is computed: numbers in its term are not rounded to narrow types."""
    variables = {o.dtype: o for o in reversed(op.operands) if o.dtype is not None and not is_dtype(o.dtype)}
    for operand in variables.values() if op.role == "pointwise" else ():
        type_ = Member(Name(operand.name), "type")
        yield Compare((Call("compute_type", (type_,)), type_), ("==",))


def _both(first: Expr | None, second: Expr) -> Expr:
    return second if first is None else Binary("and", first, second, span=second.span)


def _conditions(op: OpDecl) -> Iterable[Expr]:
    """What an operator asks of its operands and attributes."""
    bounds = dict(op.where)
    for operand in op.operands:
        bound = bounds.get(operand.dtype or "", operand.dtype)
        type_ = Member(Name(operand.name), "type")
        if bound == "number":
            yield Compare((type_, Const("bool")), ("!=",))
        elif bound in ("real", "integer", "signed"):
            yield Call({"real": "is_float", "integer": "is_integer", "signed": "is_signed"}[bound], (type_,))
        elif bound is not None and is_dtype(bound):
            yield Compare((type_, Const(bound)), ("==",))
    yield from (requirement.condition for requirement in op.requires)


# ---- what follows from a definition


@dataclass
class Derived:
    """What operators mean and cost, as their definitions say it. `decls` are all operators, by name."""

    decls: Mapping[str, OpDecl]
    monoids: Iterable[str]
    _means: dict[str, Expr | None] = field(default_factory=dict)
    _costs: dict[str, Expr | None] = field(default_factory=dict)
    _calling: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._families = {d.name.replace(f"{{{d.family}}}", "{}"): d for d in self.decls.values() if d.family}

    def completed(self, op: OpDecl) -> OpDecl:
        """The operator with what its declaration leaves to its definition."""
        if not op.definitions and not op.functions:
            return op
        return replace(op, means=self.means(op), cost=self.cost(op))

    def means(self, op: OpDecl) -> Expr | None:
        """What an operator means; None if nothing says it."""
        if op.means is not None or not (op.definitions or op.functions):
            return op.means
        if op.name not in self._means:
            self._enter(op)
            self._means[op.name] = self._meaning(op)
            self._calling.pop()
        return self._means[op.name]

    def _enter(self, op: OpDecl) -> None:
        if op.name in self._calling:
            raise error(f"`{op.name}` is defined by itself", op.name_span, "definitions are not recursive")
        self._calling.append(op.name)

    def _meaning(self, op: OpDecl) -> Expr | None:
        if any(o.variadic for o in op.operands):
            return None
        first = op.definitions[0] if op.definitions else op.functions[0]
        if first.guard is not None or (isinstance(first, Definition) and first.with_):
            return None
        term = _first_term(op)
        found = None if term is None else self._of(term)
        return found if found is not None and _size(found) <= _MOST_NODES else None

    def _of(self, term: Pattern) -> Expr | None:
        """What a term means."""
        if isinstance(term, VarPattern):
            return None if term.rest else Name(term.name, span=term.span)
        if isinstance(term, NumberPattern):
            return term.value
        decl = self._decl(term)
        if decl is None or any(o.variadic for o in decl.operands) or len(decl.operands) != len(term.operands):
            return None
        mapping = self._mapping(decl, term)
        means = _constant(mapping) if decl.role == "boundary" else self.means(decl)
        if means is None or mapping is None:
            return None
        for declared, operand in zip(decl.operands, term.operands, strict=True):
            found = self._of(operand)
            if found is None or _size(found) > _MOST_NODES:
                return None
            mapping[declared.name] = found
        return means if decl.role == "boundary" else substitute(means, mapping)

    def _decl(self, node: OpPattern) -> OpDecl | None:
        return self.decls.get(node.op) if node.family is None else self._families.get(node.op)

    def _mapping(self, decl: OpDecl, node: OpPattern) -> dict[str, Expr] | None:
        """What the attributes of a node are."""
        mapping: dict[str, Expr] = {}
        if decl.family is not None and node.family is not None:
            mapping[decl.family] = Const(node.family) if node.family in self.monoids else Name(node.family)
        given = {a.name: a.value if a.value is not None else Name(a.name) for a in node.attributes}
        operands = {d.name: found for d, o in zip(decl.operands, node.operands, strict=False) if (found := self._of(o))}
        for attribute in decl.attributes:
            value = given.get(attribute.name)
            if value is None and attribute.default is not None:
                value = substitute(attribute.default, {**operands, **mapping})
            if value is None:
                return None
            mapping[attribute.name] = value
        return mapping

    def cost(self, op: OpDecl) -> Expr | None:
        """What an operator costs: that of all that it is made of, each part once; None if that cannot be told."""
        if op.cost is not None or not (op.definitions or op.functions):
            return op.cost
        if op.name not in self._costs:
            self._enter(op)
            term = _first_term(op)
            self._costs[op.name] = None if term is None else self._sum(term)
            self._calling.pop()
        return self._costs[op.name]

    def _sum(self, term: Pattern) -> Expr | None:
        total = 0.0
        others: list[Expr] = []
        for part in dict.fromkeys(_parts(term)):
            found = self._cost_of(part)
            if isinstance(found, Const) and isinstance(found.value, int | float):
                total += found.value
            elif found is not None:
                others.append(found)
        cost: Expr = Const(round(total, 9) or 1.0)
        for other in others:
            cost = Binary("+", cost, other)
        return cost

    def _cost_of(self, part: Pattern) -> Expr | None:
        if isinstance(part, NumberPattern):
            return Const(1.0)
        decl = self._decl(part) if isinstance(part, OpPattern) else None
        if decl is None or not isinstance(part, OpPattern):
            return None
        cost = self.cost(decl)
        mapping = self._mapping(decl, part) if cost is not None and cost.free else {}
        return Const(1.0) if cost is None else None if mapping is None else substitute(cost, mapping)


def _first_term(op: OpDecl) -> Pattern | None:
    """What an operator is made of first of all."""
    return op.definitions[0].term if op.definitions else written_out(op.functions[0])


def _parts(term: Pattern) -> Iterable[Pattern]:
    """The operations and numbers of a term."""
    yield from nodes(term)
    yield from (leaf for leaf in leaves(term) if isinstance(leaf, NumberPattern))


def _constant(attributes: Mapping[str, Expr] | None) -> Expr | None:
    """What a constant means."""
    if attributes is None or not {"value", "dtype"} <= attributes.keys():
        return None
    value, lens = attributes["value"], attributes.get("lens", ListExpr(()))
    if isinstance(lens, ListExpr) and not lens.items:
        return value
    return Call("full", (lens, value, attributes["dtype"]), span=value.span)


def _size(expr: Expr) -> int:
    """How many parts an expression has, counted no further than it matters."""
    count, todo = 0, [expr]
    while todo and count <= _MOST_NODES:
        count += 1
        todo += children(todo.pop())
    return count
