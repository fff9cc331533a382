"""Rules as egglog commands, and what Python answers for the parts that egglog cannot compute.

A term is `N<k>(operator, attributes, operands…)`, its attributes a number (see `interner`), an index constant
`Num(n)`. A rule whose guard and attributes need no more than integers becomes one egglog rule. Any other becomes two:
the first states, for each match, the numbers that the guard and the computed attributes depend on (a *demand*); Python
answers each distinct demand once, with the numbers of the new attributes; the second joins the match with the answer.
So no Python runs inside egglog, equal questions are asked once, and every guard is seen taken or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from genrw.engine.egraph.bindings import egg
from genrw.engine.egraph.guard_evaluation import GuardEvaluator, GuardQuery, RuleUse, gives_effect
from genrw.engine.egraph.native import native_condition, native_number
from genrw.engine.egraph.operand_types import Piece, pieces
from genrw.engine.egraph.recording import ATTRIBUTES, CLASS, OPERATOR, Recorded, Shape
from genrw.engine.ir.interner import CONTEXT_MASK, Interner
from genrw.engine.ir.types import TYPE_MEMBERS
from genrw.engine.language.expr import free_names, member_uses
from genrw.engine.library.arities import NARROW
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.library import Library, Operator, family_affixes
from genrw.engine.library.rewriting import copied_from, taken_over
from genrw.engine.library.variants import Variant, leaves, rest_places
from genrw.engine.library.variants import nodes as pattern_nodes
from genrw.engine.programs.graph_facts import GRAPH_FACTS
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Const, Expr, Name
from genrw.grammar.rw_tree import NumberPattern, OpPattern, Pattern, VarPattern
from genrw.grammar.source import Span

FACTS = ("lo", "hi", "pow2", "size", *GRAPH_FACTS)
TYPE = "ty"
"""The fact that holds the number of a class's type."""
ACTIVE, FIRED = "active", "fired"
"""Relations of watched rules and kernels: which are to run in which, and which did."""
ASKING = "/ask"
"""What ends the names of egglog rules that demand answers and make nothing, and of their rulesets."""

_OF_LANES = frozenset({"value", "index"})
"""The sorts of what each lane computes; a scalar may stand beside a tensor."""

Answer = Callable[[tuple[int, ...], Interner, RuleUse], list[tuple[int, ...]]]


def demand_table(inputs: int) -> str:
    """The relation of demands with so many numbers."""
    return f"demand{inputs}"


def answer_table(inputs: int, outputs: int) -> str:
    """The relation of answers to them."""
    return f"answer{inputs}_{outputs}"


@dataclass(eq=False)
class Encoded:
    """One variant as egglog rules, and the number of its demands. `answer` is None where egglog needs no help. No other
    is equal to it.

    The rules look up the members of `classes`, and if they `name` operators these by their numbers. `recorded` says where
    they record their applications, if they do; `pieces` are the operands whose types they look up together, `typed` the
    variables whose types must be known.
    """

    key: str
    number: int
    commands: list[Any]
    inputs: int = 0
    outputs: int = 0
    answer: Answer | None = None
    arities: set[int] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    names: bool = False
    recorded: Recorded | None = None
    pieces: frozenset[Piece] = frozenset()
    typed: frozenset[str] = frozenset()


class Spans:
    """egglog spans for ours, with the file's name and the line where they begin.

    egglog copies a span's text with each of the hundreds of terms that bear it. So the text is not the whole file but
    what the span covers, behind as many empty lines as there are lines before it.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], Any] = {}

    def __call__(self, span: Span) -> Any:
        key = (id(span.source), span.start, span.end)
        if key not in self._known:
            line, column = span.source.position(span.start)
            before = "\n" * (line - 1) + " " * (column - 1)
            text = before + span.text
            file = egg.SrcFile(span.source.name, text)
            self._known[key] = egg.EgglogSpan(file, len(before), len(text.encode()))
        return self._known[key]


def constructor(arity: int) -> str:
    """The e-graph constructor for operators with so many operands."""
    return f"N{arity}"


def encode(
    variant: Variant,
    number: int,
    rule_id: int,
    library: Library,
    spans: Spans,
    ruleset: str,
    watched: bool = False,
    recorded: bool = False,
) -> Encoded:
    """Compile one variant; `number` names its demands, `rule_id` its provenance.

    A `watched` rule leaves no guard to egglog, which does not say what it refused, runs in the kernels where it is
    `ACTIVE` only, and notes those where it `FIRED`. A `recorded` rule notes all that it matched and made.
    """
    return _Encoder(variant, number, rule_id, library, spans, ruleset).encoded(watched, recorded)


@dataclass(frozen=True)
class _Input:
    """A number that a demand carries: what it is and the egglog expression for it."""

    kind: str
    name: str
    term: Any


class _Encoder:
    def __init__(
        self, variant: Variant, number: int, rule_id: int, library: Library, spans: Spans, ruleset: str
    ) -> None:
        self.variant, self.number, self.rule_id = variant, number, rule_id
        self.library, self.ruleset = library, ruleset
        self.spans, self.span = spans, spans(variant.rule.name_span)
        self.arities: set[int] = set()
        self.facts: list[Any] = []
        self.left = list(pattern_nodes(variant.left))
        self.inputs: dict[tuple[str, str], _Input] = {}
        self.pieces: set[Piece] = set()
        self.attribute_sources: dict[str, tuple[int, str]] = {}
        self.constraints: list[tuple[int, str, Expr]] = []
        self.named = {n.binds: n for n in pattern_nodes(variant.right) if n.binds is not None}
        self.numbers = {
            p.value.name for p in leaves(variant.left) if isinstance(p, NumberPattern) and isinstance(p.value, Name)
        }
        self.loops = [b for b in variant.rule.for_ if not self._is_class(b.value)]
        self.classes = {
            b.name: b.value.name for b in variant.rule.for_ if isinstance(b.value, Name) and self._is_class(b.value)
        }
        self.class_vars: dict[str, Any] = {}
        self.members: set[str] = set()
        self.outputs: list[tuple[str, Any]] = []
        self.looked_up: list[Any] = []
        self.actions: list[Any] = []
        self.made: dict[int, tuple[Any, ...]] = {}

    def _is_class(self, expr: Expr) -> bool:
        return isinstance(expr, Name) and self.library.members_of(expr.name) is not None

    # ---- small makers of egglog terms

    def var(self, name: str) -> Any:
        return egg.Var(self.span, name)

    def call(self, name: str, *args: Any) -> Any:
        return egg.Call(self.span, name, list(args))

    def integer(self, value: int) -> Any:
        return egg.Lit(self.span, egg.Int(value))

    def text(self, value: str) -> Any:
        return egg.Lit(self.span, egg.String(value))

    def eq(self, left: Any, right: Any) -> Any:
        return egg.Eq(self.span, left, right)

    # ---- the left side

    def encoded(self, watched: bool = False, recorded: bool = False) -> Encoded:
        self._match()
        if watched:
            self._watch()
        self._leave_itself()
        self._demand_constraints()
        guard = None if watched and self.variant.guard is not None else self._native_guard()
        right = self._template(self.variant.right)
        record = self._record() if recorded else None
        if guard is not None and not self.outputs and not self.constraints and not self.loops:
            rule = self._rule("", self.facts + guard, self._head(right))
            return Encoded(
                self.variant.key, self.number, [rule], arities=self.arities, classes=self.members, recorded=record
            )
        self._need_expression(self.variant.guard)
        return self._asking(right, record)

    def _asking(self, right: Any, record: Recorded | None) -> Encoded:
        self._need_context()
        inputs = list(self.inputs.values())
        terms = [i.term for i in inputs]
        demand = egg.Expr_(self.span, self.call(demand_table(len(inputs)), self.integer(self.number), *terms))
        outs = [self.var(f"o:{i}") for i in range(len(self.outputs))]
        answer = egg.Fact(self.call(answer_table(len(inputs), len(outs)), self.integer(self.number), *terms, *outs))
        # The answer comes early: where there is none, as for most rules, egglog looks no further. But not first: egglog
        # would begin with all answers where there are many.
        root, *others = self.facts
        commands = [
            self._rule(ASKING, self.facts, [demand]),
            self._rule("", [root, answer, *others, *self.looked_up], self._head(right)),
        ]
        names = any(kind == "operator" for kind, _ in self.outputs)
        return Encoded(
            *(self.variant.key, self.number, commands, len(inputs), len(outs)),
            *(self._answer, self.arities, self.members, names, record),
            pieces=frozenset(self.pieces),
            typed=frozenset(name for kind, name in self.inputs if kind == TYPE),
        )

    @cached_property
    def _answerer(self) -> GuardEvaluator:
        return GuardEvaluator(
            GuardQuery(
                self.library,
                self.variant,
                tuple(self.inputs),
                tuple(self.left),
                tuple(self.loops),
                tuple(self.constraints),
                self.attribute_sources,
                frozenset({*self.numbers, *self.class_vars}),
                tuple(self.outputs),
            )
        )

    def _answer(self, numbers: tuple[int, ...], interner: Interner, use: RuleUse) -> list[tuple[int, ...]]:
        """Answer a demand; the expressions are compiled at the first one, since many rules never get any."""
        return self._answerer.answer(numbers, interner, use)

    def _watch(self) -> None:
        """Run only where the rule is active, and note where it fired."""
        kernel = self.call("&", self.var("a:0"), self.integer(CONTEXT_MASK))
        rule = self.integer(self.rule_id)
        self.facts.append(egg.Fact(self.call(ACTIVE, rule, kernel)))
        self.actions.append(egg.Expr_(self.span, self.call(FIRED, rule, kernel)))

    def _record(self) -> Recorded:
        """Note what is matched and what is made of it, in a table of the variant's own."""
        columns: list[tuple[str, Any]] = []
        left = self._shape(self.variant.left, self._matched, columns)
        right = self._shape(self.variant.right, self._made, columns)
        table = f"applied{self.number}"
        self.actions.append(egg.Expr_(self.span, self.call(table, *(term for _, term in columns))))
        return Recorded(table, self.variant.key, tuple(sort for sort, _ in columns), left, right)

    def _shape(
        self, pattern: Pattern, terms: Callable[[Pattern], tuple[Any, ...]], columns: list[tuple[str, Any]]
    ) -> Shape:
        """Add the columns that record a pattern: its class, of an operation also its operator and attributes."""
        first = len(columns)
        columns += zip((CLASS, OPERATOR, ATTRIBUTES), terms(pattern), strict=False)
        if not isinstance(pattern, OpPattern):
            return Shape(first, name=pattern.name if isinstance(pattern, VarPattern) else None)
        operands = tuple(self._shape(operand, terms, columns) for operand in pattern.operands)
        return Shape(first, first + 1, first + 2, operands, pattern.binds)

    def _matched(self, pattern: Pattern) -> tuple[Any, ...]:
        """The egglog terms of a part of the left side, and of its operator and attributes."""
        if not isinstance(pattern, OpPattern):
            return (self._operand_term(pattern),)
        index = self._node_index(pattern)
        return self.var(f"e:{index}"), self._op_term(pattern), self.var(f"a:{index}")

    def _made(self, pattern: Pattern) -> tuple[Any, ...]:
        """The same of a part of the right side."""
        return (self._value_var(pattern.name),) if isinstance(pattern, VarPattern) else self.made[id(pattern)]

    def _rule(self, suffix: str, body: Sequence[Any], head: Sequence[Any]) -> Any:
        name = f"{self.variant.key}#{self.number}{suffix}"
        return egg.RuleCommand(egg.Rule(self.span, list(head), list(body), name, f"{self.ruleset}{suffix}"))

    def _head(self, right: Any) -> list[Any]:
        root = self.var("e:0")
        head = [egg.Union(self.span, root, right), *self.actions]
        head.append(egg.Expr_(self.span, self.call("why", root, self.integer(self.rule_id))))
        if self.variant.rule.removes_left:
            head.append(self._subsume())
        return head

    def _subsume(self) -> Any:
        pattern = self.left[0]
        args = [self._op_term(pattern), self.var("a:0")]
        args += [self._operand_term(o) for o in pattern.operands]
        return egg.Change(self.span, egg.Subsume(), constructor(len(pattern.operands)), args)

    def _node_index(self, pattern: OpPattern) -> int:
        return next(i for i, p in enumerate(self.left) if p is pattern)

    def _operand_term(self, pattern: Pattern) -> Any:
        if isinstance(pattern, OpPattern):
            return self.var(f"e:{self._node_index(pattern)}")
        if isinstance(pattern, VarPattern):
            return self._value_var(pattern.name)
        if isinstance(pattern.value, Name):
            return self.call("Num", self.var(f"n:{pattern.value.name}"))
        assert isinstance(pattern.value, Const)
        return self.call("Num", self.integer(int(pattern.value.value)))

    def _match(self) -> None:
        """Facts for every node of the left side, parents first."""
        for i, node in enumerate(self.left):
            self.arities.add(len(node.operands))
            terms = [self._operand_term(o) for o in node.operands]
            term = self.call(constructor(len(terms)), self._op_term(node), self.var(f"a:{i}"), *terms)
            self.facts.append(self.eq(self.var(f"e:{i}"), term))
            first = next(
                j for j, n in enumerate(self.left) if n is node or (n.binds is not None and n.binds == node.binds)
            )
            if first < i:
                self.facts.append(self.eq(self.var(f"e:{i}"), self.var(f"e:{first}")))
            self._bind_attributes(node, i)

    def _leave_itself(self) -> None:
        """A node that stands for its own operand stays: rules that look for it would go on without it for ever."""
        right = self.variant.right
        if self.variant.rule.removes_left and isinstance(right, VarPattern):
            self.facts.append(egg.Fact(self.call("!=", self.var("e:0"), self._value_var(right.name))))

    def _op_term(self, node: OpPattern) -> Any:
        if node.family is not None:
            if node.family in self.library.monoids:
                return self.text(node.op.replace("{}", node.family))
            return self._class_var(node.family, self._family_of(node).name)
        if node.op in self.classes:
            return self._class_var(node.op, self.classes[node.op])
        return self.text(node.op)

    def _family_of(self, node: OpPattern) -> Operator:
        before, after = family_affixes(node.op)
        for family in self.library.families:
            if family_affixes(family.name) == (before, after):
                return family
        raise error(f"there is no operator family `{node.op}`", node.op_span)

    def _class_var(self, name: str, class_name: str) -> Any:
        """The operator variable, with the fact that ties it to its class and its number."""
        if name not in self.class_vars:
            self.members.add(class_name)
            self.class_vars[name] = self.var(f"f:{name}")
            self.facts.append(
                egg.Fact(self.call("member", self.text(class_name), self.class_vars[name], self.var(f"k:{name}")))
            )
        return self.class_vars[name]

    def _declaration(self, node: OpPattern) -> Operator | None:
        """The operator of a pattern node; None for a variable over a class."""
        if node.op in self.classes:
            return None
        if node.family is not None:
            return self._family_of(node)
        found = self.library.find(node.op)
        if found is None:
            raise GenrwError(self.library.unknown_operator(node.op, node.op_span))
        return found[0]

    def _bind_attributes(self, node: OpPattern, index: int) -> None:
        """Which attribute each variable comes from, and which attributes must have a given value."""
        operator = self._declaration(node)
        mentioned = {a.name for a in node.attributes}
        for attribute in node.attributes:
            value = attribute.value if attribute.value is not None else Name(attribute.name)
            if isinstance(value, Name) and value.name not in self.attribute_sources:
                self.attribute_sources[value.name] = (index, attribute.name)
            else:
                self.constraints.append((index, attribute.name, value))
        if operator is None or node.open_attributes:
            return
        for name, decl in operator.attributes.items():
            if name not in mentioned and decl.default is not None:
                self.constraints.append((index, name, decl.default))

    def _demand_constraints(self) -> None:
        for index, _, value in self.constraints:
            self._need("attributes", str(index))
            self._need_expression(value)

    # ---- what demands carry

    def _need(self, kind: str, name: str) -> None:
        if (kind, name) in self.inputs:
            return
        if kind == "attributes":
            term = self.var(f"a:{name}")
        elif kind == "number":
            term = self.var(f"n:{name}")
        elif kind == "operator":
            term = self.var(f"k:{name}")
        else:
            term = self.var(f"{kind}:{name}")
            self.facts += self._known(kind, name)
        self.inputs[(kind, name)] = _Input(kind, name, term)

    def _known(self, fact: str, name: str) -> list[Any]:
        """What says that a fact of a value is known, in a variable of its own: together with others for one of many
        operands."""
        if fact == TYPE and name in self._operand_pieces:
            return self._known_together(*self._operand_pieces[name])
        return [self.eq(self.var(f"{fact}:{name}"), self.call(fact, self._value_var(name)))]

    @cached_property
    def _operand_pieces(self) -> dict[str, tuple[Piece, list[str]]]:
        """For the variables of a rest of many operands, the piece that each belongs to and all variables of that."""
        found: dict[str, tuple[Piece, list[str]]] = {}
        for node in self.left:
            places = rest_places(node)
            if len(node.operands) > NARROW and places:
                names = list(places)
                for piece in pieces(len(node.operands), list(places.values())):
                    own, names = names[: piece.count], names[piece.count :]
                    found |= dict.fromkeys(own, (piece, own))
        return found

    def _known_together(self, piece: Piece, names: Sequence[str]) -> list[Any]:
        """What says that the types of a piece of a term's operands are known, if that was not said before."""
        if piece in self.pieces:
            return []
        self.pieces.add(piece)
        types = [self.var(f"{TYPE}:{name}") for name in names]
        return [egg.Fact(self.call(piece.table, *map(self._value_var, names), *types))]

    def _value_var(self, name: str) -> Any:
        for i, node in enumerate(self.left):
            if node.binds == name:
                return self.var(f"e:{i}")
        return self.var(f"v:{name}")

    def _is_value(self, name: str) -> bool:
        bound = any(node.binds == name for node in self.left)
        return bound or any(isinstance(p, VarPattern) and p.name == name for p in leaves(self.variant.left))

    def _need_context(self) -> None:
        """Every answer may need the kernel's context: some attribute id carries it."""
        if not any(kind == "attributes" for kind, _ in self.inputs):
            self._need("attributes", "0")

    def _need_expression(self, expr: Expr | None, below: frozenset[str] = frozenset()) -> None:
        """Make sure that demands carry all that an expression depends on."""
        if expr is None:
            return
        members = member_uses(expr)
        computed = {b.name: b.value for b in self.variant.with_}
        loops = {b.name: b.value for b in self.loops}
        for name in sorted(free_names(expr)):
            if name in below or name in CONTEXT_NAMES:
                continue
            if name in self.attribute_sources:
                self._need("attributes", str(self.attribute_sources[name][0]))
            elif name in computed:
                self._need_expression(computed[name], below | {name})
            elif name in loops:
                self._need_expression(loops[name], below | {name})
            elif name in self.numbers:
                self._need("number", name)
            elif name in self.class_vars:
                self._need("operator", name)
            elif name in self.named:
                self._need_pattern_type(self.named[name])
            elif self._is_value(name):
                self._need_members(name, {m for n, m in members if n == name})

    def _need_members(self, name: str, members: set[str]) -> None:
        for fact in FACTS:
            if fact in members:
                self._need(fact, name)
        if members & TYPE_MEMBERS - set(FACTS) or not members:
            self._need("ty", name)

    def _native_guard(self) -> list[Any] | None:
        """The guard as egglog facts, if integers suffice; None if Python must decide."""
        if self.variant.guard is None:
            return []
        needed: set[tuple[str, str]] = set()
        facts = native_condition(self.variant.guard, self._native_name(needed), self.span)
        if facts is None:
            return None
        return [*self._native_facts(needed), *facts]

    def _native_facts(self, needed: set[tuple[str, str]]) -> list[Any]:
        return [
            self.eq(self.var(f"{fact}:{name}"), self.call(fact, self._value_var(name)))
            for name, fact in sorted(needed)
            if (fact, name) not in self.inputs
        ]

    def _native_name(self, needed: set[tuple[str, str]]) -> Callable[[str, str | None], Any | None]:
        def lookup(name: str, member: str | None) -> Any | None:
            if member is None:
                return self.var(f"n:{name}") if name in self.numbers else None
            if member in FACTS and self._is_value(name):
                needed.add((name, member))
                return self.var(f"{member}:{name}")
            return None

        return lookup

    # ---- the right side

    def _template(self, pattern: Pattern) -> Any:
        """The egglog term that a template builds; notes the answers it needs in `outputs`."""
        if isinstance(pattern, VarPattern):
            return self._value_var(pattern.name)
        if isinstance(pattern, NumberPattern):
            number = self._number(pattern.value)
            self.made[id(pattern)] = (number,)
            return number
        self.arities.add(len(pattern.operands))
        operands = [self._template(o) for o in pattern.operands]
        op, attributes = self._template_op(pattern), self._template_attributes(pattern)
        term = self.call(constructor(len(operands)), op, attributes, *operands)
        self.made[id(pattern)] = (term, op, attributes)
        if pattern is not self.variant.right:
            self._inner(pattern, term)
        return term

    def _inner(self, pattern: OpPattern, term: Any) -> None:
        """Provenance of a node below the root, and its type where later rules may ask for it."""
        self.actions.append(egg.Expr_(self.span, self.call("why", term, self.integer(self.rule_id))))
        if self._is_tensor(pattern) or self._is_constant(pattern):
            self._need_pattern_type(pattern)
            self.outputs.append(("type", pattern))
            out = self.var(f"o:{len(self.outputs) - 1}")
            self.actions.append(egg.Set(self.span, "ty", [term], out))

    def _is_tensor(self, pattern: Pattern) -> bool:
        """May the template's value be a tensor or buffer, whose type other rules ask for?"""
        if isinstance(pattern, VarPattern):
            return self._sort_of_variable(pattern.name) in ("tensor", "buffer", None)
        if isinstance(pattern, NumberPattern):
            return False
        operator = self._declaration(pattern)
        if operator is not None and operator.result_sort is not None:
            return operator.result_sort in ("tensor", "buffer", "like")
        return not pattern.operands or any(self._is_tensor(o) for o in pattern.operands)

    def _is_constant(self, pattern: OpPattern) -> bool:
        """Is the template's value a lane's that needs no other?"""
        operator = self._declaration(pattern)
        return not pattern.operands and operator is not None and operator.result_sort == "scalar"

    def _sort_of_variable(self, name: str) -> str | None:
        """The sort that the left side's declarations give a variable; None if they leave it open."""
        for node in self.left:
            operator = self._declaration(node)
            for i, operand in enumerate(node.operands):
                if isinstance(operand, VarPattern) and operand.name == name and operator is not None:
                    sort = operator.operand(i).sort or self._sort_beside(node)
                    if sort is not None:
                        return sort
        return None

    def _sort_beside(self, node: OpPattern) -> str | None:
        """The sort of a lane's operands where a node's declaration leaves them open: tensors do not stand beside them."""
        for operand in node.operands:
            declared = self._declaration(operand) if isinstance(operand, OpPattern) else None
            if declared is not None and declared.result_sort in _OF_LANES:
                return declared.result_sort
        return None

    def _need_pattern_type(self, pattern: Pattern) -> None:
        if isinstance(pattern, VarPattern):
            self._need("ty", pattern.name)
        elif isinstance(pattern, OpPattern):
            if gives_effect(pattern, self.library):
                return
            self._need_template_attributes(pattern)
            if pattern.op in self.class_vars or pattern.family is not None:
                self._need_template_op(pattern)
            for operand in pattern.operands:
                self._need_pattern_type(operand)
        else:
            self._need_expression(pattern.value)

    def _number(self, value: Expr) -> Any:
        needed: set[tuple[str, str]] = set()
        native = native_number(value, self._native_name(needed), self.spans(value.span))
        if native is not None:
            self.facts += self._native_facts(needed)
            return self.call("Num", native)
        self._need_expression(value)
        self.outputs.append(("number", value))
        return self.call("Num", self.var(f"o:{len(self.outputs) - 1}"))

    def _template_op(self, pattern: OpPattern) -> Any:
        if pattern.family is None:
            return self.class_vars.get(pattern.op) or self.text(pattern.op)
        if pattern.family in self.library.monoids:
            return self.text(pattern.op.replace("{}", pattern.family))
        for node in self.left:
            if node.family == pattern.family and node.op == pattern.op:
                return self.class_vars[pattern.family]
        self._need_template_op(pattern)
        self.outputs.append(("operator", pattern))
        number = len(self.outputs) - 1
        # egglog looks functions up in bodies only
        name = self.var(f"built:{number}")
        self.looked_up.append(self.eq(name, self.call("operator", self.var(f"o:{number}"))))
        return name

    def _need_template_op(self, pattern: OpPattern) -> None:
        name = pattern.family if pattern.family is not None else pattern.op
        if name in self.class_vars:
            self._need("operator", name)
        else:
            self._need_expression(Name(name))

    def _template_attributes(self, pattern: OpPattern) -> Any:
        same = taken_over(self.left, pattern)
        if same is not None:
            return self.var(f"a:{same}")
        operator = self._declaration(pattern)
        if operator is not None and not operator.attributes:
            return self.call("&", self.var("a:0"), self.integer(CONTEXT_MASK))
        self._need_template_attributes(pattern)
        if pattern.op in self.class_vars or pattern.family in self.class_vars:
            self._need_template_op(pattern)  # Which attributes there are, the operator says.
        self.outputs.append(("attributes", pattern))
        return self.var(f"o:{len(self.outputs) - 1}")

    def _need_template_attributes(self, pattern: OpPattern) -> None:
        if pattern.open_attributes:
            source = copied_from(self.left, pattern)
            if source is None:
                raise error(
                    f"`..` copies the attributes of a matched `{pattern.op}`, but the left side has none",
                    pattern.span,
                    "list the attributes",
                )
            self._need("attributes", str(source))
        for attribute in pattern.attributes:
            self._need_expression(attribute.value if attribute.value is not None else Name(attribute.name))
