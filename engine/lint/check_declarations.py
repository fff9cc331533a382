"""Operators, monoids and helpers checked before they are used: roles, stages, types, names, calls, texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from genrw.engine.egraph.operator_facts import RANGE_FACTS
from genrw.engine.ir.dtypes import CLASSES, DTYPES, is_dtype
from genrw.engine.ir.types import TYPE_MEMBERS
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.emit_text import check_emit_text, emit_binding, names_in_emit_text, unclosed_bracket
from genrw.engine.language.expr import check_expr
from genrw.engine.language.expr_walk import did_you_mean, foreign_calls, free_names, reached
from genrw.engine.language.functions import Function
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.definitions import Derived
from genrw.engine.library.infer import RESULT_PARTS, holes, is_variable
from genrw.engine.library.library import LEAST_PARTS, NOWHERE, PARTS_OF_ROLES, ROLES, Library, is_cost
from genrw.engine.library.monoids import ELEMENT
from genrw.engine.lint.check_functions import check_functions
from genrw.engine.lint.check_meanings import check_clauses, check_meaning, meaning_functions
from genrw.engine.lint.check_members import Known, record_members, unknown_members
from genrw.engine.lint.check_names import RESULT_NAMES, check_names
from genrw.engine.lint.check_rules import check_definitions, check_term_function, constant_of, not_a_condition
from genrw.engine.programs.build import attribute_problem
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Call, Const, Expr, ListExpr, Name
from genrw.grammar.rw_tree import (
    PRECEDENCES,
    ClassDecl,
    DefineDecl,
    FieldExpr,
    InstructionDecl,
    LetDecl,
    MonoidDecl,
    OpDecl,
    Requirement,
    TargetDecl,
)
from genrw.grammar.source import Span

_ATTRIBUTE_TYPES = (
    *("int", "ints", "float", "bool", "string", "name", "dtype", "axis", "axes", "monoid", "instruction", "shape"),
    *("module", "any"),
)


def check_declarations(library: Library, declarations: Iterable[object]) -> list[Diagnostic]:
    """All findings on those declarations that are operators, monoids or helpers, in their order."""
    checks = DeclarationChecks(library)
    return [finding for declaration in declarations for finding in checks.of(declaration)]


class DeclarationChecks:
    """The checks of a library's declarations, one at a time."""

    def __init__(self, library: Library) -> None:
        self.library, self.lets = library, library.scope.lets
        self.functions = library.scope.functions
        self.meanings = meaning_functions(library)
        self.records = record_members(library)

    def of(self, declaration: object) -> Iterator[Diagnostic]:
        """The findings on one declaration."""
        if isinstance(declaration, OpDecl | MonoidDecl | LetDecl | ClassDecl | TargetDecl):
            yield from check_names(self.library, declaration)
        if isinstance(declaration, OpDecl):
            yield from self._operator(declaration)
        elif isinstance(declaration, MonoidDecl):
            found = list(self._monoid(declaration))
            yield from found or check_clauses(declaration)
        elif isinstance(declaration, DefineDecl):
            yield from check_term_function(self.library, declaration)
        elif isinstance(declaration, LetDecl):
            yield from self._let(declaration)
        elif isinstance(declaration, InstructionDecl):
            yield from self._instruction(declaration)

    # ---- operators

    def _operator(self, op: OpDecl) -> Iterator[Diagnostic]:
        yield from self._role(op)
        for stage in op.stages:
            if stage not in (*self.library.stages, NOWHERE):
                yield _unknown("stage", stage, (*self.library.stages, NOWHERE), op.name_span)
        yield from self._signature(op)
        yield from self._result(op)
        if op.injective and (len(op.operands) != 1 or op.operands[0].variadic):
            why = f"`{op.name}` is injective, and has not one operand that its result could tell"
            yield Diagnostic(why, op.name_span, "remove `injective`")
        yield from self._clauses(op)
        yield from self._definitions(op)
        yield from check_functions(self.library, op)
        if op.cost is not None and not free_names(op.cost):
            yield from self._fixed_cost(op.cost)
        if op.emit is not None:
            yield from self._text(op)
        if op.device is not None:
            yield from _brackets(op, "device", op.device, op.name_span)

    def _fixed_cost(self, cost: Expr) -> Iterator[Diagnostic]:
        """A cost that depends on nothing is a number above 0; what its functions are is told by itself."""
        if any(check_expr(cost, (), self.lets, self.functions)):
            return
        try:
            value = self.library.scope.compile(cost)({})
        except GenrwError as problem:
            yield from problem.diagnostics
            return
        if not is_cost(value):
            yield Diagnostic("a cost is a number above 0", cost.span, "write a small one, such as 0.01")

    def _text(self, op: OpDecl) -> Iterator[Diagnostic]:
        try:
            check_emit_text(op)
            names, level = names_in_emit_text(op), emit_binding(op)
        except GenrwError as problem:
            yield from problem.diagnostics
            return
        yield from _brackets(op, "emit", op.emit or "", op.name_span)
        declared = op.precedence or PRECEDENCES[0]
        if PRECEDENCES.index(level) > PRECEDENCES.index(declared):
            message = f"the text of `{op.name}` does not bind as tightly as {'it says' if op.precedence else 'a call'}"
            yield Diagnostic(message, op.name_span, f"say so behind the text: prec {level}")
        if op.role == "fold" and "in_place" not in op.role_parts and "result" in names:
            message = f"the text of `{op.name}` names `result`, which is no accumulator where its role does not say so"
            yield Diagnostic(message, op.name_span, f"write role fold({', '.join((*op.role_parts, 'in_place'))})")

    def _definitions(self, op: OpDecl) -> Iterator[Diagnostic]:
        found = list(check_definitions(self.library, op))
        yield from found
        if found or not (op.definitions or op.functions) or op.means is not None:
            return
        operators = (*self.library.operators.values(), *self.library.families)
        derived = Derived({o.decl.name: o.decl for o in operators}, self.library.monoids)
        try:
            means = derived.means(derived.decls[op.name])
        except GenrwError as problem:
            yield from problem.diagnostics
            return
        if means is None:
            why = "what this is made of does not tell what it means"
            first = op.definitions[0].span if op.definitions else op.functions[0].span
            yield Diagnostic(why, first, "write means EXPR, or a term without guard whose operators have a meaning")

    def _role(self, op: OpDecl) -> Iterator[Diagnostic]:
        if op.role is None and not isinstance(op.result, Call):
            message = f"`{op.name}` works on elements, of tensors and of lanes, and has no role that says so"
            yield Diagnostic(message, op.name_span, "write role pointwise, or a result such as tensor(T, x.lens)")
        elif not op.operands and (op.role == "pointwise" or not isinstance(op.result, Call)):
            message = f"`{op.name}` works on the elements of its operands, and has none"
            yield Diagnostic(message, op.name_span, "write an operand, or a number where it would stand")
        if op.role is None:
            return
        if op.role not in ROLES:
            yield _unknown("role", op.role, ROLES, op.name_span)
            return
        allowed = PARTS_OF_ROLES.get(op.role, ())
        if len(op.role_parts) < LEAST_PARTS.get(op.role, 0):
            example = ", ".join(words[0] for words in allowed[: LEAST_PARTS[op.role]])
            yield Diagnostic(f"the role `{op.role}` has parts", op.name_span, f"write role {op.role}({example})")
        operands, attributes = {o.name for o in op.operands}, {a.name for a in op.attributes}
        for i, part in enumerate(op.role_parts):
            words = allowed[i] if i < len(allowed) else ()
            fine = (
                part in words
                or ("operand" in words and part in operands)
                or ("attribute" in words and part in attributes)
            )
            if not fine:
                told = " or ".join(f"an {w}" if w in ("operand", "attribute") else f"`{w}`" for w in words)
                remedy = f"its part {i + 1} is {told}" if words else f"the role has {len(allowed)} parts"
                yield Diagnostic(f"`{part}` is no part of the role `{op.role}`", op.name_span, remedy)

    def _signature(self, op: OpDecl) -> Iterator[Diagnostic]:
        seen: set[str] = set()
        declared = [(part.name, part.span) for part in op.attributes] + [(part.name, part.span) for part in op.operands]
        for name, span in declared:
            if name in seen:
                yield Diagnostic(f"`{op.name}` declares `{name}` twice", span, "rename one")
            seen.add(name)
        for attribute in op.attributes:
            if attribute.type not in _ATTRIBUTE_TYPES:
                yield _unknown("type of attributes", attribute.type, _ATTRIBUTE_TYPES, attribute.span)
            value = constant_of(attribute.default)
            problem = attribute_problem(self.library, attribute.type, value) if value is not None else None
            if problem is not None:
                yield Diagnostic(f"`{attribute.name}` {problem}", attribute.span, "write a default of that kind")
        for operand in op.operands[:-1]:
            if operand.variadic:
                yield Diagnostic("only the last operand may stand for several", operand.span, "put it last")
        bounds = dict(op.where)
        for operand in op.operands:
            known = operand.dtype is None or operand.dtype in bounds or is_variable(operand.dtype)
            if operand.dtype is not None and not known and not _is_class(operand.dtype):
                yield _unknown("element type or class", operand.dtype, CLASSES, operand.span)
        for variable, bound in bounds.items():
            if not _is_class(bound):
                yield _unknown("element type or class", bound, CLASSES, op.name_span)
            if variable not in {o.dtype for o in op.operands}:
                remedy = f"write `x: {variable}`, or leave the bound out"
                yield Diagnostic(f"no operand of `{op.name}` is of type `{variable}`", op.name_span, remedy)

    def _result(self, op: OpDecl) -> Iterator[Diagnostic]:
        """The result's form; what its parts name is asked with the clauses."""
        result, span = op.result, op.result.span
        declared = f"the result of `{op.name}` is declared with"
        if isinstance(result, Call):
            least, most = RESULT_PARTS.get(result.function, (0, -1))
            if not least <= len(result.args) <= most:
                found = f"`{result.function}` of {len(result.args)} parts"
                if result.function in RESULT_PARTS:
                    remedy = f"write {least} to {most} parts" if most > least else f"write {most}"
                else:
                    remedy = did_you_mean(result.function, RESULT_PARTS) or f"results are {', '.join(RESULT_PARTS)}"
                yield Diagnostic(f"{declared} {found} in place of a result type", span, remedy)
        elif not isinstance(result, Name):
            remedy = "write an element type, or tensor(T, lens)"
            yield Diagnostic("a result is an element type, or a call such as `tensor(T, lens)`", span, remedy)
        elif result.name not in _types(op) and not is_dtype(result.name):
            remedy = f"one may name {', '.join(sorted(_types(op) | set(DTYPES)))}"
            yield Diagnostic(f"{declared} `{result.name}` in place of an element type", span, remedy)

    def _clauses(self, op: OpDecl) -> Iterator[Diagnostic]:
        family = {op.family} if op.family is not None else set()
        attributes = {a.name for a in op.attributes} | family | {*CONTEXT_NAMES}
        operands = attributes | {o.name for o in op.operands}
        typed = operands | _types(op)
        parts = op.result.args if isinstance(op.result, Call) else ()
        yield from self._names((*(a.default for a in op.attributes), *parts), typed)
        members = self.records | dict.fromkeys(attributes - set(CONTEXT_NAMES), ())
        members |= {o.name: () if o.variadic else TYPE_MEMBERS for o in op.operands}
        for requirement in op.requires:
            yield from self._names([requirement.condition], typed)
            yield from unnamed_holes(requirement, typed, members)
        yield from self._members(op, parts)
        yield from self._names([f.guard for f in op.functions], operands)
        for guard in (f.guard for f in op.functions if f.guard is not None):
            yield from _condition(guard)
        yield from self._names([op.cost, *(t.value for t in op.terms)], attributes)
        yield from self._names([op.lo, op.hi, op.pow2, *op.domain], operands)
        for condition in (*(r.condition for r in op.requires), *op.domain):
            yield from _condition(condition)
        unnamed = [hole for hole in holes(op.called or "") if hole not in attributes]
        yield from (
            Diagnostic(
                f"`called` names `{hole}`, which is no attribute", op.name_span, "braces hold an attribute's name"
            )
            for hole in unnamed
        )
        named = list(self._names([op.means], operands, self.meanings))
        kinds = all(a.type in _ATTRIBUTE_TYPES for a in op.attributes)
        yield from named or (check_meaning(self.library, op) if kinds else ())
        for fact in (op.lo, op.hi, op.pow2):
            yield from _whole(fact)

    def _members(self, op: OpDecl, parts: Iterable[Expr]) -> Iterator[Diagnostic]:
        """Members that operands and the context never have; facts are known of indices alone."""
        defaults = (a.default for a in op.attributes)
        guards = (f.guard for f in op.functions)
        asked: list[tuple[Collection[str] | None, Iterable[Expr | None]]] = [
            (TYPE_MEMBERS, (*defaults, *parts, *(r.condition for r in op.requires), *guards, op.means, *op.domain)),
            (TYPE_MEMBERS | {*RANGE_FACTS}, (op.lo, op.hi, op.pow2)),
            (None, (op.cost, *(t.value for t in op.terms))),
        ]
        for members, several in asked:
            known = dict(self.records)
            if members is not None:
                known |= {o.name: () if o.variadic else members for o in op.operands}
            for expr in several:
                if expr is not None:
                    yield from unknown_members(self.library, expr, known)

    def _instruction(self, declared: InstructionDecl) -> Iterator[Diagnostic]:
        """What an instruction multiplies by can be filled in."""
        found = self.library.instructions.get(declared.name)
        try:
            if found is not None:
                span = dict(declared.values)["multiply"].span
                yield from _brackets(declared, "multiply", found.multiplied(), span)
        except GenrwError as problem:
            yield from problem.diagnostics

    # ---- monoids and helpers

    def _monoid(self, monoid: MonoidDecl) -> Iterator[Diagnostic]:
        for word, given in (("identity", monoid.identity), ("combine", monoid.combine)):
            if not given:
                yield Diagnostic(f"`{monoid.name}` has no `{word}`", monoid.name_span, f"write {word} EXPR")
        fields = {name for name, _ in monoid.carry}
        yield from self._carried(monoid)
        for clause in (monoid.element, monoid.identity, monoid.combine):
            yield from self._fields(monoid, clause, fields)
        kinds = [dtype for _, dtype in monoid.carry if dtype != "T"]
        kinds += [d for computed, types in monoid.accumulate for d in (computed, *types)]
        kinds += [monoid.result] if monoid.result is not None else []
        for kind in kinds:
            if not is_dtype(kind):
                yield _unknown("element type", kind, DTYPES, monoid.name_span)
        for computed, types in monoid.accumulate:
            narrow = [d for d in types if is_dtype(d) and is_dtype(computed) and not _computes(computed, d)]
            if narrow:
                message = f"a fold of {narrow[0]} cannot be computed in {computed}"
                yield Diagnostic(message, monoid.name_span, "write a wider type, such as float for half")
        yield from self._names([f.value for f in monoid.element], {"x", "k", "index", "type"}, self.meanings)
        yield from self._names([f.value for f in monoid.identity], {"type"}, self.meanings)
        yield from self._names([f.value for f in monoid.combine], {"a", "b", "type"}, self.meanings)
        yield from self._names([monoid.finish], {*RESULT_NAMES, *fields}, self.meanings)
        yield from self._names(monoid.domain, {"x", "type"}, self.meanings)
        for condition in monoid.domain:
            yield from _condition(condition)

    def _carried(self, monoid: MonoidDecl) -> Iterator[Diagnostic]:
        """The fields have names of their own, and something makes a result of them; the elements' bound is a class."""
        names = [name for name, _ in monoid.carry]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield Diagnostic(f"`{monoid.name}` carries `{name}` twice", monoid.name_span, "rename one")
        if names and monoid.finish is None:
            remedy = f"write finish {names[0]}, or what else it is"
            yield Diagnostic(f"nothing says which result the fields of `{monoid.name}` have", monoid.name_span, remedy)
        for variable, bound in monoid.where:
            if variable != ELEMENT:
                remedy = f"`{ELEMENT}` is the elements' type"
                yield Diagnostic(f"`{monoid.name}` has no type `{variable}`", monoid.name_span, remedy)
            elif not _is_class(bound):
                yield _unknown("element type or class", bound, CLASSES, monoid.name_span)

    def _fields(self, monoid: MonoidDecl, clause: Sequence[FieldExpr], fields: Collection[str]) -> Iterator[Diagnostic]:
        """A clause says something of each field, and of nothing else."""
        given = [f.field for f in clause]
        wanted: list[str | None] = [*sorted(fields)] or [None]
        remedy = f"write {', '.join(f'{name} = …' for name in wanted)}" if fields else "write one expression"
        for entry in clause:
            if entry.field not in wanted or given.count(entry.field) > 1:
                what = f"field `{entry.field}`" if entry.field is not None else "single value"
                yield Diagnostic(f"`{monoid.name}` carries no {what} here", entry.value.span, remedy)
        if given and len(given) < len(wanted):
            yield Diagnostic(f"`{monoid.name}` says nothing here of some fields", clause[0].value.span, remedy)

    def _let(self, let: LetDecl) -> Iterator[Diagnostic]:
        if let.name in self.meanings or let.name in FUNCTIONS:
            yield Diagnostic(f"`{let.name}` is a function of the language", let.name_span, "call the helper otherwise")
        if len(set(let.parameters)) < len(let.parameters):
            yield Diagnostic(f"`{let.name}` has two parameters of one name", let.name_span, "rename one")
        yield from self._names([let.body], set(let.parameters), self.meanings)  # it may be for these, too
        if let.name in reached(let, self.lets):
            yield Diagnostic(f"the helper `{let.name}` calls itself", let.name_span, "helpers are not recursive")

    def _names(
        self,
        expressions: Iterable[Expr | None],
        names: Collection[str],
        functions: Mapping[str, Function] | None = None,
    ) -> Iterator[Diagnostic]:
        for expr in expressions:
            if expr is not None:
                yield from check_expr(expr, names, self.lets, functions or self.functions)
                if functions is None:
                    yield from foreign_calls(expr, self.lets, self.functions, self.meanings)


def unnamed_holes(requirement: Requirement, known: Collection[str], members: Known) -> Iterator[Diagnostic]:
    """What stands between braces in a requirement's message and is none of the names that are known there, nor a member
    that one of them has."""
    for hole in holes(requirement.message):
        base, dot, member = hole.partition(".")
        if base not in known or (dot and base in members and member not in members[base]):
            remedy = "braces hold the name of an attribute or operand, or a member of one"
            if base in known:
                remedy = did_you_mean(member, members[base]) or remedy
            yield Diagnostic(f"the message names `{hole}`, which is nothing here", requirement.span, remedy)


def _brackets(declared: OpDecl | InstructionDecl, clause: str, text: str, span: Span) -> Iterator[Diagnostic]:
    """C++ whose brackets do not match would be told by a compiler, at a line of the printed kernel."""
    bracket = unclosed_bracket(text)
    if bracket is not None:
        message = f"the `{clause}` of `{declared.name}` has a `{bracket}` without the other bracket"
        yield Diagnostic(message, span, "close what is opened, and nothing else")


def _condition(expr: Expr) -> Iterator[Diagnostic]:
    kind = not_a_condition(expr)
    if kind is not None:
        yield Diagnostic(f"this is {kind}, not a condition", expr.span, "compare it: `… > 0`")


def _whole(expr: Expr | None) -> Iterator[Diagnostic]:
    """A fact of indices is a whole number, as far as an expression tells what it is."""
    kind = "a list" if isinstance(expr, ListExpr) else None
    if isinstance(expr, Const) and (not isinstance(expr.value, int) or isinstance(expr.value, bool)):
        kind = "a text" if isinstance(expr.value, str) else "no whole number"
    if expr is not None and kind is not None:
        yield Diagnostic(f"this is {kind}, and indices are whole numbers", expr.span, "write a whole number")


def _types(op: OpDecl) -> set[str]:
    """What stands for an element type in an operator's declaration: variables, and attributes."""
    variables = {o.dtype for o in op.operands if o.dtype is not None and is_variable(o.dtype)}
    return variables | dict(op.where).keys() | {a.name for a in op.attributes}


def _computes(computed: str, dtype: str) -> bool:
    """Is a type one that is computed in, with numbers of the kind of another one?"""
    wide, narrow = DTYPES[computed], DTYPES[dtype]
    exact = not narrow.is_float or (wide.is_float and wide.epsilon <= narrow.epsilon)
    return wide.compute == computed and exact


def _is_class(name: str) -> bool:
    return name in CLASSES or is_dtype(name)


def _unknown(what: str, name: str, known: Iterable[str], span: Span) -> Diagnostic:
    listed = list(known)
    remedy = did_you_mean(name, listed) or (f"there is {', '.join(listed)}" if listed else None)
    return Diagnostic(f"there is no {what} `{name}`", span, remedy)
