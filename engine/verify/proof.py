"""Rules over indices, proven for all integers by an SMT solver.

An index is an integer, a share of them any one of its elements. What operators mean, what guards ask and what facts say
of a value become formulas; the solver looks for integers for which the two sides differ. What it cannot decide for all
integers it is asked for all of 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from genrw.engine.library import Library, Operator
from genrw.engine.lint.sides import conditions
from genrw.engine.variants import Variant, nodes, pattern_operators, rest_counts, variants
from genrw.grammar.expr_tree import Binary, Call, Compare, Const, Expr, IfElse, Member, Name, Unary
from genrw.grammar.rw_tree import NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern

_MILLISECONDS = 2500
_MOST_OPERATORS = 12
_BITS = 7
_INT32 = 1 << 31
_LEAVES = ("group_index", "local_index", "step_index", "share_index")
"""Functions that count something: their value is any of those from 0 to below their argument."""


class Untranslatable(Exception):
    """Something that formulas over integers do not say."""


@dataclass
class Proof:
    """What the solver said: `proven`, `refuted`, `bounded` (true for all integers of 8 bits) or `unknown`.

    `wide`: may a value of the right side need more than 32 bits where none of the left side does? None: not known.
    """

    status: str
    model: dict[str, int] = field(default_factory=dict)
    wide: bool | None = None


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
    counts = rest_counts(rule, library, frozenset(range(4)), frozenset(library.names))
    proofs = []
    try:
        for variant in _directions(variants(rule, library, counts)):
            for choice in _choices(library, rule, variant):
                proofs.append(_Formula(library, variant, choice).proof())
    except Untranslatable:
        return None
    if not proofs:
        return None
    worst = min(proofs, key=lambda p: ("refuted", "unknown", "bounded", "proven").index(p.status))
    wides = [p.wide for p in proofs]
    worst.wide = True if True in wides else None if None in wides else False
    return worst


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

    def __init__(self, library: Library, variant: Variant, choice: Mapping[str, str]) -> None:
        import z3

        self.z3, self.library, self.variant, self.choice = z3, library, variant, choice
        self.names: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.premises: list[Any] = []
        self.complete = True
        self.left_terms: list[Any] = []
        self.right_terms: list[Any] = []
        self.matched: dict[int, dict[str, Any]] = {}
        self.computed = {b.name: b.value for b in variant.with_}

    def proof(self) -> Proof:
        self._multiples()
        left = self._term(self.variant.left, self.left_terms, True)
        for condition in conditions(self.variant.guard):
            try:
                self.premises.append(self._expr(condition, {}))
            except Untranslatable:
                # without a premise less can be proven, and nothing refuted
                self.complete = False
        right = self._term(self.variant.right, self.right_terms, False)
        return self._decided(left == right)

    def _decided(self, claim: Any) -> Proof:
        found, model = self._asked([self.z3.Not(claim)])
        if found == "unsat":
            return Proof("proven", wide=self._is_wide())
        if found == "sat":
            return Proof("refuted", model) if self.complete else Proof("unknown")
        small = [self.z3.And(v >= -(1 << _BITS), v < 1 << _BITS) for v in self._variables()]
        found, model = self._asked([self.z3.Not(claim), *small])
        if found == "sat" and self.complete:
            return Proof("refuted", model)
        return Proof("bounded" if found == "unsat" else "unknown")

    def _asked(self, formulas: list[Any]) -> tuple[str, dict[str, int]]:
        solver = self.z3.Solver()
        solver.set("timeout", _MILLISECONDS)
        solver.set("random_seed", 0)
        solver.add(*self.premises, *formulas)
        found = str(solver.check())
        if found != "sat":
            return found, {}
        model = solver.model()
        values = {name: model.eval(v, model_completion=True) for name, v in self._named()}
        return found, {name: v.as_long() for name, v in values.items() if self.z3.is_int_value(v)}

    def _is_wide(self) -> bool | None:
        """May the right side leave 32 bits where the left side does not?"""
        integers = [t for t in self.left_terms if self.z3.is_int(t)]
        inside = [self.z3.And(t >= -_INT32, t < _INT32) for t in (*integers, *self._variables())]
        outside = [self.z3.Or(t < -_INT32, t >= _INT32) for t in self.right_terms if self.z3.is_int(t)]
        if not outside:
            return False
        found, _ = self._asked([*inside, self.z3.Or(*outside)])
        return {"sat": True, "unsat": False}.get(found)

    def _named(self) -> Iterator[tuple[str, Any]]:
        for name, value in (*self.values.items(), *self.names.items()):
            if self.z3.is_const(value) and self.z3.is_int(value):
                yield name, value

    def _variables(self) -> list[Any]:
        return [v for _, v in self._named()]

    # ---- terms

    def _fresh(self, name: str) -> Any:
        if name not in self.names:
            self.names[name] = self.z3.Int(name)
        return self.names[name]

    def _term(self, pattern: Pattern, terms: list[Any], matching: bool) -> Any:
        made = self._made(pattern, terms, matching)
        terms.append(made)
        return made

    def _made(self, pattern: Pattern, terms: list[Any], matching: bool) -> Any:
        if isinstance(pattern, VarPattern):
            return self.values.setdefault(pattern.name, self.z3.Int(pattern.name))
        if isinstance(pattern, NumberPattern):
            return self._number(pattern, matching)
        operands = [self._term(o, terms, matching) for o in pattern.operands]
        operator = self.library.operator(self.choice.get(pattern.op, pattern.op))
        attributes = self._attributes(pattern, operator, matching)
        if operator.role == "boundary":
            value = attributes["value"]
            return self.z3.BoolVal(value) if isinstance(value, bool) else value
        env = {**attributes, **{d.name: v for d, v in zip(operator.decl.operands, operands, strict=True)}}
        if matching:
            self._within_domain(operator, env)
            self.matched[id(pattern)] = attributes
        assert operator.decl.means is not None
        value = self._expr(operator.decl.means, env)
        if pattern.binds is not None:
            self.values[pattern.binds] = value
        return value

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
        """A number that the guard says another one divides is a multiple of it: written so, the solver finds more proofs."""
        for condition in conditions(self.variant.guard):
            found = _divided(condition)
            if found is not None and found[0] not in self.names:
                number, divisor = found
                self.names[number] = self._fresh(divisor) * self.z3.Int(f"{number} // {divisor}")

    # ---- expressions

    def _expr(self, expr: Expr, env: Mapping[str, Any]) -> Any:
        if isinstance(expr, Const):
            if isinstance(expr.value, (bool, int)):
                return self.z3.BoolVal(expr.value) if isinstance(expr.value, bool) else self.z3.IntVal(expr.value)
            raise Untranslatable("a constant that is no integer")
        if isinstance(expr, Name):
            return self._name(expr.name, env)
        if isinstance(expr, Member):
            return self._member(expr)
        if isinstance(expr, Binary):
            return self._binary(expr.op, self._expr(expr.left, env), self._expr(expr.right, env))
        if isinstance(expr, Unary):
            value = self._expr(expr.operand, env)
            if expr.op in ("-", "not"):
                return -value if expr.op == "-" else self.z3.Not(value)
        if isinstance(expr, Compare):
            values = [self._expr(o, env) for o in expr.operands]
            parts = [_COMPARE[op](a, b) for op, a, b in zip(self._comparisons(expr), values, values[1:], strict=False)]
            return self.z3.And(*parts)
        if isinstance(expr, IfElse):
            return self.z3.If(*(self._expr(e, env) for e in (expr.condition, expr.then, expr.otherwise)))
        if isinstance(expr, Call):
            return self._call(expr, env)
        raise Untranslatable(type(expr).__name__)

    def _comparisons(self, expr: Compare) -> list[str]:
        if any(op not in _COMPARE for op in expr.ops):
            raise Untranslatable("a comparison that is none of numbers")
        return list(expr.ops)

    def _name(self, name: str, env: Mapping[str, Any]) -> Any:
        for known in (env, self.names, self.values):
            if name in known:
                return known[name]
        if name in self.computed:
            self.names[name] = self._expr(self.computed[name], {})
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
        elif name in self.values and member == "pow2":
            self.premises += [self._is_power(number), self.values[name] == number * self.z3.Int(f"{label} times")]
        elif name in self.values and member == "size":
            self.premises.append(number >= 0)
        else:
            raise Untranslatable(label)
        return number

    def _binary(self, op: str, a: Any, b: Any) -> Any:
        z3 = self.z3
        if op in ("and", "or"):
            return z3.And(a, b) if op == "and" else z3.Or(a, b)
        if op == "//":
            return _floor_div(z3, a, b)
        if op == "%":
            return _floor_mod(z3, a, b)
        if op in ("+", "-", "*"):
            return a + b if op == "+" else a - b if op == "-" else a * b
        raise Untranslatable(op)

    def _call(self, expr: Call, env: Mapping[str, Any]) -> Any:
        lets = self.library.scope.lets
        if expr.function in lets:
            declared = lets[expr.function]
            args = [self._expr(a, env) for a in expr.args]
            return self._expr(declared.body, dict(zip(declared.parameters, args, strict=True)))
        if expr.function == "is_pow2":
            return self._is_power(self._expr(expr.args[0], env))
        if expr.function in _LEAVES:
            return self._counted(expr, env)
        args = [self._expr(a, env) for a in expr.args]
        if expr.function in ("min", "max") and len(args) == 2:
            a, b = args
            return self.z3.If(a <= b if expr.function == "min" else a >= b, a, b)
        raise Untranslatable(expr.function)

    def _is_power(self, number: Any) -> Any:
        """Is a number one of the powers of two that indices of 32 bits have?"""
        return self.z3.Or(*(number == 1 << i for i in range(31)))

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


def _floor_div(z3: Any, a: Any, b: Any) -> Any:
    """The quotient rounded towards minus infinity: the solver's own is that for positive divisors."""
    return z3.If(b > 0, a / b, (-a) / (-b))


def _floor_mod(z3: Any, a: Any, b: Any) -> Any:
    return a - b * _floor_div(z3, a, b)


_COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
