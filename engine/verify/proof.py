"""Rules over indices, proven for all integers by an SMT solver.

An index is an integer, a share of them any one of its elements. What operators mean, what guards ask and what facts say
of a value become formulas; the solver looks for integers for which the two sides differ. What it cannot decide for all
integers it is asked for all of 8 bits; what it cannot decide there either is computed for many.

Kernels have indices of 32 bits. Where all that the left side makes has so many, the right side has to be the same: sums
and products may wrap around, since they come round again, but what is divided or compared may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np

from genrw.engine.interpret.fold import Folds
from genrw.engine.interpret.lanes import Lanes, lane_functions
from genrw.engine.language.builtins import BUILTINS
from genrw.engine.language.expr_walk import free_names, member_uses, substitute
from genrw.engine.language.meaning import Without
from genrw.engine.language.operators import BINARY, COMPARE, LOGIC, UNARY
from genrw.engine.library.arities import Arities, rest_counts
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.sides import conditions
from genrw.engine.library.variants import Variant, nodes, pattern_operators, variants
from genrw.engine.verify.numbers import FEW, Numbers, Symbols
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, IfElse, Member, Name, Unary
from genrw.grammar.rw_tree import NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern

_MILLISECONDS = 2500
_MOST_OPERATORS = 12
_BITS = 7
_INT32 = 1 << 31


class Untranslatable(Exception):
    """Something that formulas over integers do not say."""


@dataclass
class Proof:
    """What is known for all integers: `proven`, `refuted` or `bounded`; `note` says how far, `model` where it is wrong."""

    status: str
    model: dict[str, int] = field(default_factory=dict)
    note: str = ""


def solver_is_there() -> bool:
    """Is the solver installed?"""
    try:
        import z3  # noqa: F401
    except ImportError:
        return False
    return True


def prove(library: Library, rule: RuleDecl) -> Proof | None:
    """Prove a rule over indices; None if it is none, or says something that is no formula."""
    if any(b.name not in {n.op for n in nodes(rule.left)} for b in rule.for_) or not _is_of_indices(library, rule):
        return None
    counts = rest_counts(rule, library, Arities.up_to(3), frozenset(library.names))
    proofs = []
    try:
        for variant in _directions(variants(rule, library, counts)):
            for choice in _choices(library, rule, variant):
                proofs.append(_proof(library, variant, choice))
    except Untranslatable:
        return None
    if not proofs:
        return None
    return min(proofs, key=lambda p: (("refuted", "bounded", "proven").index(p.status), not p.note))


def _proof(library: Library, variant: Variant, choice: Mapping[str, str]) -> Proof:
    formula = _Formula(library, variant, choice, Symbols())
    found = formula.proof()
    if found is not None and found.status != "bounded":
        return found
    said, widths = ("the solver does not decide it", (8, 32)) if found is None else (found.note, (32,))
    return _computed(library, variant, choice, formula.variables(), said, widths)


def _computed(
    library: Library, variant: Variant, choice: Mapping[str, str], names: list[str], said: str, widths: Sequence[int]
) -> Proof:
    """The two sides for many integers of some widths, where the solver has `said` no more than that."""
    counts = []
    for bits in widths:
        every = bits == 8 and len(names) <= FEW
        formula = _Formula(library, variant, choice, Numbers(bits, names if every else None))
        count, model = formula.computed(bits)
        if model:
            return Proof("refuted", model)
        counts.append(f"{'all' if every else 'random'} integers of {bits} bits, {count} that the guard takes")
    return Proof("bounded", note=f"{said}; right on {' and on '.join(counts)}")


def _directions(found: Iterator[Variant]) -> Iterator[Variant]:
    """One variant of each direction: the order of operands makes no difference."""
    seen: set[str] = set()
    for variant in found:
        if variant.key not in seen and isinstance(variant.left, OpPattern):
            seen.add(variant.key)
            yield variant


def _choices(library: Library, rule: RuleDecl, variant: Variant) -> Iterator[dict[str, str]]:
    """What operator variables stand for: each member of their class."""
    assert isinstance(variant.left, OpPattern)
    open_ = {n.op: n for n in nodes(variant.left) if library.find(n.op) is None and n.family is None}
    if not open_:
        yield {}
        return
    if len(open_) > 1:
        raise Untranslatable("several operator variables")
    ((name, node),) = open_.items()
    members = sorted(pattern_operators(node, rule, library))
    fitting = [m for m in members if len(library.operator(m).decl.operands) == len(node.operands)]
    if len(fitting) > _MOST_OPERATORS:
        raise Untranslatable("a large class")
    for member in fitting:
        yield {name: member}


def _is_of_indices(library: Library, rule: RuleDecl) -> bool:
    """Are all operators of a rule ones of the last stage that make indices, or compare them?"""
    found = [n for side in (rule.left, rule.right) for n in nodes(side)]
    last = library.stages[-1]
    for node in found:
        for name in pattern_operators(node, rule, library):
            operator = library.operator(name)
            if operator.role == "boundary" and operator.decl.role_parts[0] in ("scalar", "number"):
                continue
            of_indices = all(o.sort == "index" and not o.variadic for o in operator.decl.operands)
            if not (of_indices and operator.decl.means is not None and operator.legal_at(last)):
                return False
            if operator.result_sort not in ("index", "value"):
                return False
    return bool(found) and rule.stages != () and last in rule.stages


class _Formula:
    """The two sides of a variant as terms of the solver."""

    def __init__(
        self, library: Library, variant: Variant, choice: Mapping[str, str], algebra: Symbols | Numbers
    ) -> None:
        self.algebra, self.library, self.variant, self.choice = algebra, library, variant, choice
        self.names: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.premises: list[Any] = []
        self.complete = True
        self.left_terms: list[Any] = []
        self.right_terms: list[Any] = []
        self.sensitive: list[Any] = []
        self.drawn: dict[str, Any] = {}
        self.matched: dict[int, dict[str, Any]] = {}
        self.bindings = {b.name: b.value for b in variant.with_}
        of_lanes = lane_functions(Lanes(Folds(library, False), False))
        self.counting = {name for name, function in of_lanes.items() if "counts" in function.facts}

    def proof(self) -> Proof | None:
        """What the solver says; None if it decides nothing."""
        return self._decided(self._claim())

    def _claim(self) -> Any:
        self._multiples()
        left = self._term(self.variant.left, self.left_terms, True)
        for condition in conditions(self.variant.guard):
            try:
                self.premises.append(self._expr(condition, {}))
            except Untranslatable:
                # without a premise less can be proven, and nothing refuted
                self.complete = False
        right = self._term(self.variant.right, self.right_terms, False)
        return left == right

    def _decided(self, claim: Any) -> Proof | None:
        wrong = self.algebra.Not(claim)
        found, model = self._asked([wrong])
        if found == "unsat":
            return self._at_32_bits()
        if found == "unknown":
            small = [self.algebra.And(v >= -(1 << _BITS), v < 1 << _BITS) for v in self.drawn.values()]
            found, model = self._asked([wrong, *small])
            if found == "unsat":
                return Proof("bounded", note="the solver decides it for all integers of 8 bits")
        return Proof("refuted", model) if found == "sat" and self.complete else None

    def _at_32_bits(self) -> Proof:
        """Does what holds for all integers hold for those of 32 bits?"""
        inside = [self._fits(t) for t in (*self.left_terms, *self.drawn.values()) if self.algebra.is_int(t)]
        outside = [self.algebra.Not(self._fits(t)) for t in self.sensitive if self.algebra.is_int(t)]
        found, model = self._asked([*inside, self.algebra.Or(*outside)]) if outside else ("unsat", {})
        if found == "sat" and self.complete:
            return Proof("refuted", model, "32 bits are too few for what the right side divides or compares")
        if found != "unsat":
            return Proof("bounded", note="proven for all integers; not whether 32 bits are enough for the right side")
        wraps = [self.algebra.Not(self._fits(t)) for t in self.right_terms if self.algebra.is_int(t)]
        found, _ = self._asked([*inside, self.algebra.Or(*wraps)]) if wraps else ("unsat", {})
        return Proof("proven", note="" if found == "unsat" else "sums or products of the right side may wrap around")

    def _fits(self, term: Any) -> Any:
        return self.algebra.And(term >= -_INT32, term < _INT32)

    def computed(self, bits: int) -> tuple[int, dict[str, int]]:
        """How many integers were computed that the guard takes, and those for which the sides differ first."""
        right = self._claim()
        taken = self.algebra.And(*self.premises, *(self._fits(t) for t in self.left_terms if bits == 32))
        wrong = self.algebra.And(taken, self.algebra.Not(right))
        wide = self.algebra.Or(*(self.algebra.Not(self._fits(t)) for t in self.sensitive if bits == 32))
        wrong, *values = np.broadcast_arrays(
            self.algebra.Or(wrong, self.algebra.And(taken, wide)), *self.drawn.values()
        )
        model = {}
        if np.any(wrong) and self.complete:
            place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            model = {name: int(v[place]) for name, v in zip(self.drawn, values, strict=True)}
        return int(np.sum(np.broadcast_to(taken, wrong.shape))), model

    def variables(self) -> list[str]:
        """All integers that the formula speaks of."""
        return [*self.drawn]

    def _drawn(self, name: str) -> Any:
        """An integer: any that there is."""
        if name not in self.drawn:
            self.drawn[name] = self.algebra.Int(name)
        return self.drawn[name]

    def _asked(self, formulas: list[Any]) -> tuple[str, dict[str, int]]:
        assert isinstance(self.algebra, Symbols)
        solver = self.algebra.z3.Solver()
        solver.set("timeout", _MILLISECONDS)
        solver.set("random_seed", 0)
        solver.add(*self.premises, *formulas)
        found = str(solver.check())
        if found != "sat":
            return found, {}
        model = solver.model()
        return found, {name: model.eval(v, model_completion=True).as_long() for name, v in self.drawn.items()}

    # ---- terms

    def _fresh(self, name: str) -> Any:
        if name not in self.names:
            self.names[name] = self._drawn(name)
        return self.names[name]

    def _term(self, pattern: Pattern, terms: list[Any], matching: bool) -> Any:
        made = self._made(pattern, terms, matching)
        terms.append(made)
        return made

    def _made(self, pattern: Pattern, terms: list[Any], matching: bool) -> Any:
        if isinstance(pattern, VarPattern):
            return self.values.setdefault(pattern.name, self._drawn(pattern.name))
        if isinstance(pattern, NumberPattern):
            return self._number(pattern, matching)
        operands = [self._term(o, terms, matching) for o in pattern.operands]
        operator = self.library.operator(self.choice.get(pattern.op, pattern.op))
        attributes = self._attributes(pattern, operator, matching)
        if operator.role == "boundary":
            value = attributes["value"]
            return self.algebra.BoolVal(value) if isinstance(value, bool) else value
        env = {**attributes, **{d.name: v for d, v in zip(operator.decl.operands, operands, strict=True)}}
        means = operator.decl.means
        assert means is not None
        if matching:
            self._within_domain(operator, env)
            self.matched[id(pattern)] = attributes
        else:
            self.sensitive += [v for name, v in env.items() if not self._comes_round(means, name)]
        value = self._expr(means, env)
        if pattern.binds is not None:
            self.values[pattern.binds] = value
        return value

    def _comes_round(self, expr: Expr, name: str) -> bool:
        """Is a value only added, subtracted and multiplied in an expression? Then what wraps around comes round again."""
        if isinstance(expr, Name) or name not in free_names(expr):
            return True
        if isinstance(expr, Binary) and expr.op in BINARY and BINARY[expr.op].comes_round:
            return self._comes_round(expr.left, name) and self._comes_round(expr.right, name)
        if isinstance(expr, Call) and expr.function in self.library.scope.lets:
            let = self.library.scope.lets[expr.function]
            return self._comes_round(substitute(let.body, dict(zip(let.parameters, expr.args, strict=True))), name)
        return False

    def _number(self, pattern: NumberPattern, matching: bool) -> Any:
        if matching and isinstance(pattern.value, Name):
            return self._fresh(pattern.value.name)
        return self._expr(pattern.value, {})

    def _attributes(self, pattern: OpPattern, operator: Operator, matching: bool) -> dict[str, Any]:
        """The attributes of an operation: matched ones are any integers, built ones what the template says."""
        found: dict[str, Any] = {}
        if not matching and pattern.open_attributes:
            for node in nodes(self.variant.left):
                if node.op == pattern.op:
                    found.update(self.matched[id(node)])
                    break
        for attribute in pattern.attributes:
            value = attribute.value if attribute.value is not None else Name(attribute.name)
            if matching and isinstance(value, Name) and operator.attributes[attribute.name].type == "int":
                found[attribute.name] = self._fresh(value.name)
            elif matching and isinstance(value, Name):
                raise Untranslatable("an attribute that is no integer")
            else:
                found[attribute.name] = self._expr(value, {})
        for name, decl in operator.attributes.items():
            if name in found:
                continue
            if matching and pattern.open_attributes and decl.type == "int":
                found[name] = self._fresh(f"{operator.name} {name} {pattern.op_span.start}")
            elif decl.default is not None:
                found[name] = self._expr(decl.default, found)
            else:
                raise Untranslatable(name)
        return found

    # ---- premises

    def _within_domain(self, operator: Operator, env: Mapping[str, Any]) -> None:
        for condition in operator.decl.domain:
            try:
                self.premises.append(self._expr(condition, env))
            except Untranslatable:
                self.complete = False

    def _multiples(self) -> None:
        """What the guard says another number divides is a multiple of it, what it says is equal to another is that one:
        written so, the solver finds more proofs, and more of the integers that are computed are ones that it takes."""
        for condition in conditions(self.variant.guard):
            for name in sorted(name for name, member in member_uses(condition) if member == "pow2"):
                power = self._fresh(f"{name}.pow2")
                self.premises.append(self._applied("is_pow2", BUILTINS["is_pow2"].formula, (Name(f"{name}.pow2"),), {}))
                self.values[name] = power * self._drawn(f"{name} // {name}.pow2")
            if isinstance(condition, Compare) and condition.ops == ("==",):
                same = [o.name for o in condition.operands if isinstance(o, Name)]
                if len(same) == 2 and not set(same) & (self.names.keys() | self.bindings.keys()):
                    self.names[same[0]] = self._fresh(same[1])
            found = _divided(condition)
            if found is not None and found[0] not in self.names:
                number, divisor = found
                self.names[number] = self._fresh(divisor) * self._drawn(f"{number} // {divisor}")

    # ---- expressions

    def _expr(self, expr: Expr, env: Mapping[str, Any]) -> Any:
        if isinstance(expr, Const):
            if isinstance(expr.value, (bool, int)):
                return (
                    self.algebra.BoolVal(expr.value)
                    if isinstance(expr.value, bool)
                    else self.algebra.IntVal(expr.value)
                )
            raise Untranslatable("a constant that is no integer")
        if isinstance(expr, Name):
            return self._name(expr.name, env)
        if isinstance(expr, Member):
            return self._member(expr)
        if isinstance(expr, Binary) and expr.op in LOGIC:
            return self._applied(expr.op, LOGIC[expr.op][1], (expr.left, expr.right), env)
        if isinstance(expr, Binary):
            return self._applied(expr.op, BINARY[expr.op].formula, (expr.left, expr.right), env)
        if isinstance(expr, Unary):
            return self._applied(expr.op, UNARY[expr.op].formula, (expr.operand,), env)
        if isinstance(expr, Compare):
            values = [self._expr(o, env) for o in expr.operands]
            return self.algebra.And(*map(self._compared, expr.ops, values, values[1:]))
        if isinstance(expr, IfElse):
            return self.algebra.If(*(self._expr(e, env) for e in (expr.condition, expr.then, expr.otherwise)))
        if isinstance(expr, Call):
            return self._call(expr, env)
        raise Untranslatable(type(expr).__name__)

    def _applied(
        self, name: str, formula: Callable[..., Any] | Without, operands: Sequence[Expr], env: Mapping[str, Any]
    ) -> Any:
        """What a table of functions or operators says that a formula is, of operands."""
        if isinstance(formula, Without):
            raise Untranslatable(name)
        args = [self._expr(operand, env) for operand in operands]
        return reduce(partial(formula, self.algebra), args) if len(args) > 2 else formula(self.algebra, *args)

    def _compared(self, op: str, a: Any, b: Any) -> Any:
        compute = COMPARE[op].compute
        if compute is None:
            raise Untranslatable("a comparison that is none of numbers")
        return compute(a, b)

    def _name(self, name: str, env: Mapping[str, Any]) -> Any:
        for known in (env, self.names, self.values):
            if name in known:
                return known[name]
        if name in self.bindings:
            self.names[name] = self._expr(self.bindings[name], {})
            return self.names[name]
        raise Untranslatable(name)

    def _member(self, expr: Member) -> Any:
        """A fact of a value, or an entry of the schedule and the like: any number that the value allows."""
        if not isinstance(expr.base, Name):
            raise Untranslatable("a member of an expression")
        name, member = expr.base.name, expr.name
        label = f"{name}.{member}"
        known = label in self.names
        number = self._fresh(label)
        if known:
            return number
        if name in ("schedule", "target", "space"):
            self.premises.append(number > 0)
        elif name in self.values and member in ("lo", "hi"):
            value = self.values[name]
            self.premises.append(number <= value if member == "lo" else number >= value)
        elif name in self.values and member == "size":
            self.premises.append(number >= 0)
        else:
            raise Untranslatable(label)
        return number

    def _call(self, expr: Call, env: Mapping[str, Any]) -> Any:
        lets = self.library.scope.lets
        if expr.function in lets:
            declared = lets[expr.function]
            args = [self._expr(a, env) for a in expr.args]
            return self._expr(declared.body, dict(zip(declared.parameters, args, strict=True)))
        if expr.function in self.counting:
            return self._counted(expr, env)
        builtin = BUILTINS.get(expr.function)
        if builtin is None or len(expr.args) < builtin.arity()[0]:
            raise Untranslatable(expr.function)
        return self._applied(expr.function, builtin.formula, expr.args, env)

    def _counted(self, expr: Call, env: Mapping[str, Any]) -> Any:
        """Where a lane stands, or which element of its share is meant: the same on both sides."""
        number = self._fresh(expr.function)
        (limit,) = (self._expr(a, env) for a in expr.args)
        self.premises += [number >= 0, number < limit]
        return number


def _divided(condition: Expr) -> tuple[str, str] | None:
    """The names of a number and its divisor, of a condition `number % divisor == 0`."""
    if isinstance(condition, Compare) and condition.ops == ("==",) and condition.operands[1] == Const(0):
        whole = condition.operands[0]
        if isinstance(whole, Binary) and whole.op == "%":
            number, divisor = whole.left, whole.right
            if isinstance(number, Name) and isinstance(divisor, Name):
                return number.name, divisor.name
    return None
