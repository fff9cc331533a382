"""`.rw` declarations from Lark's rules to tree nodes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

from lark import Token

from genrw.grammar.diagnostics import error
from genrw.grammar.expr import ExprBuilder, negative
from genrw.grammar.expr_tree import Const, Expr, ListExpr, Member, Name
from genrw.grammar.gen_tree import Attribute, MapValue, TypeNode, Value, Word
from genrw.grammar.parsing import number, special, string
from genrw.grammar.precedence import Chain, sign_text
from genrw.grammar.rw_tree import (
    PRECEDENCES,
    AttributeDecl,
    AttributePattern,
    Binding,
    ClassDecl,
    ContextDecl,
    DefineDecl,
    Definition,
    Example,
    FieldExpr,
    FunctionDecl,
    FunctionStep,
    Given,
    GivenDecl,
    ImportDecl,
    InputDecl,
    InstructionDecl,
    LetDecl,
    MonoidDecl,
    NumberPattern,
    OpDecl,
    OperandDecl,
    OpPattern,
    Pattern,
    PipelineDecl,
    Repeat,
    Requirement,
    RuleDecl,
    Step,
    Table,
    TargetDecl,
    VarPattern,
)
from genrw.grammar.source import Span
from genrw.grammar.wording import quoted


class Stage(NamedTuple):
    """The stage of the rules that follow: a name, or several joined by commas."""

    name: str


class Dialect(NamedTuple):
    """The foreign language that the imports which follow are of."""

    name: str


class Draft(NamedTuple):
    """A declaration short of what only its surroundings know: documentation, stage or dialect, extent."""

    kind: Any
    name: str
    token: Token
    fields: dict[str, Any]


class _Clause(NamedTuple):
    """A clause's keyword and what it says."""

    keyword: Token
    value: Any


class _Record(NamedTuple):
    """An entry's map and its place."""

    value: MapValue
    span: Span


_SORTS = ("tensor", "scalar", "array", "value", "index", "buffer", "effect")
_CONTRACTS = ("exact", "reassociates", "contracts", "approximate")
_NO_SIGNS = ("**", "not in")
"""Signs of expressions that no operator is written with: one goes from right to left, the other is made of words."""
_FAMILY = re.compile(r"(\w*)\{\s*(\w+)\s*(?::\s*(\w+)\s*)?\}(\w*)")


def literal(expr: Expr) -> Value:
    """The value that an expression writes out, of an attribute of a program; GenrwError for one that computes anything."""
    match expr:
        case Const(value):
            return value
        case Name(name):
            return Word(name)
        case Member(Name(monoid), element):
            return Word(f"{monoid}.{element}")
        case ListExpr(items):
            return tuple([literal(item) for item in items])
    raise error("the values of examples are written out", expr.span, "write a number, a name, or a list such as [1, 2]")


class RwBuilder(ExprBuilder):
    """Tree nodes from Lark's rules; each method is named for its rule and takes the rule's children."""

    # ---- small declarations

    def stage(self, c: list[Any]) -> Stage:
        return Stage(", ".join(token.value for token in c))

    def dialect(self, c: list[Any]) -> Dialect:
        return Dialect(c[0].value)

    def pipeline(self, c: list[Any]) -> Draft:
        return Draft(PipelineDecl, "pipeline", c[0], {"stages": tuple([token.value for token in c])})

    def let(self, c: list[Any]) -> Draft:
        name, parameters, body = c
        return Draft(LetDecl, name.value, name, {"parameters": parameters or (), "body": body})

    def names(self, c: list[Any]) -> tuple[str, ...]:
        return tuple([token.value for token in c])

    def class_(self, c: list[Any]) -> Draft:
        name, first, *rest = c
        terms = [
            ("+", first),
            *((sign.value, names) for sign, names in zip(rest[::2], rest[1::2], strict=True)),
        ]
        return Draft(ClassDecl, name.value, name, {"terms": tuple(terms)})

    def class_term(self, c: list[Any]) -> tuple[str, ...]:
        return self.names(c)

    def target(self, c: list[Any]) -> Draft:
        name, base, *said = c
        values = tuple(item for item in said if isinstance(item, tuple))
        requires = tuple(item for item in said if isinstance(item, Requirement))
        fields = {"base": base and base.value, "values": values, "requires": requires}
        return Draft(TargetDecl, name.value, name, fields)

    def instruction(self, c: list[Any]) -> Draft:
        name, *values = c
        wrong = next((item for item in values if isinstance(item, Requirement)), None)
        if wrong is not None:
            raise error("an instruction requires nothing", wrong.span, "leave it out")
        return Draft(InstructionDecl, name.value, name, {"values": tuple(values)})

    def setting(self, c: list[Any]) -> tuple[str, Expr] | Requirement:
        name, value, message = c
        if name.type == "REQUIRES":
            return self._requirement(name, value, message)
        if message is None:
            return name.value, value
        raise error("a text follows the value", self.span(message, message), "write one value behind a name")

    def _requirement(self, keyword: Token, condition: Expr, message: Token | None) -> Requirement:
        remedy = 'write "…" behind the condition: a sentence for those who do not keep it'
        if message is None:
            raise error("what is required has no message", condition.span, remedy)
        text = string(self.source, message)
        if not text.strip():
            raise error("the message is empty", self.span(message, message), remedy)
        return Requirement(condition, text, self.span(keyword, message))

    # ---- clauses

    def clause(self, c: list[Any]) -> _Clause:
        return _Clause(*c)

    def flag(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], True)

    def _gather(self, clauses: list[_Clause], several: tuple[str, ...]) -> dict[str, Any]:
        """What each clause says by keyword; those that may stand `several` times give a tuple."""
        found: dict[str, Any] = {}
        for keyword, value in clauses:
            name = keyword.value
            if name in several:
                found[name] = (*found.get(name, ()), *value)
            elif name in found:
                raise error(f"`{name}` is given twice", self.place(keyword), "remove one of them")
            else:
                found[name] = value
        return found

    def _one_of(self, token: Token, choices: tuple[str, ...], what: str) -> str:
        if token not in choices:
            message = f"{quoted(token)} is no {what}"
            raise error(message, self.place(token), f"there are {', '.join(choices)}")
        value: str = token.value
        return value

    # ---- rules

    def rule(self, c: list[Any]) -> Draft:
        name, left = c[:2]
        arrow = next(i for i in range(2, len(c)) if isinstance(c[i], Token))
        clauses = c[2:arrow] + c[arrow + 2 :]
        said = self._gather([clause for clause in clauses if not isinstance(clause, Example)], ("with", "for", "given"))
        contract, bound = said.get("contract", ("exact", None))
        fields = {
            "left": left,
            "right": c[arrow + 1],
            "both_ways": c[arrow].type == "BOTH_WAYS",
            "guard": said.get("when"),
            "with_": said.get("with", ()),
            "for_": tuple([one for one in said.get("for", ()) if isinstance(one, Binding)]),
            "tables": tuple([one for one in said.get("for", ()) if isinstance(one, Table)]),
            "contract": contract,
            "bound": bound,
            "replaces": said.get("replaces", False),
            "alternative": said.get("alternative", False),
            "given": said.get("given", ()),
            "examples": tuple([clause for clause in clauses if isinstance(clause, Example)]),
        }
        self._check_given(fields["given"])
        self._check_name(name, fields["tables"])
        return Draft(RuleDecl, name.value, name, fields)

    def _check_name(self, token: Token, tables: tuple[Table, ...]) -> None:
        """GenrwError unless a rule over rows, and no other, has a name for each of them."""
        if len(tables) > 1:
            raise error("a rule runs over one list of rows", tables[1].span, "write out all combinations")
        names = [name for table in tables for name in table.names]
        filled = self._family(token)[1] if token.type == "FAMILY" else None
        if filled is not None and filled not in names:
            remedy = f"write for ({filled}, …) in [(…), …]"
            raise error(f"no row of the rule says what `{filled}` is", self.place(token), remedy)
        if names and filled is None:
            remedy = f"write for example rule {token}_{{{names[0]}}}"
            raise error("a rule over rows has a name for each of them", self.place(token), remedy)

    def bindings(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], tuple(c[1:]))

    choices = bindings

    def binding(self, c: list[Any]) -> Binding:
        name, value = c[0], c[-1]
        return Binding(name.value, value, self.place(name).to(value.span))

    def table(self, c: list[Any]) -> Table:
        *head, last = c
        place = next(i for i, one in enumerate(head) if one.type == "IN")
        names, rows = head[:place], head[place + 2 :]
        for row, span in rows:
            if len(row) != len(names):
                raise error(
                    f"a row has an item for each of {len(names)} names, this one has {len(row)}",
                    span,
                    "give each name one",
                )
        words, spans = tuple(n.value for n in names), tuple(map(self.place, names))
        return Table(words, tuple(row for row, _ in rows), self.span(names[0], last), spans)

    def row(self, c: list[Any]) -> tuple[tuple[Expr, ...], Span]:
        *items, _ = c
        for item in items:
            if not isinstance(item, Name | Const):
                raise error("a row holds names, numbers and texts", item.span, "compute others by `with`")
        return tuple(items), items[0].span.to(items[-1].span)

    def contract(self, c: list[Any]) -> _Clause:
        keyword, name, bound = c
        kind = self._one_of(name, _CONTRACTS, "contract")
        if (bound is None) == (kind == "approximate"):
            message = f"`contract {kind}` {'needs a' if bound is None else 'has no'} bound"
            raise error(message, self.place(name), "write for example: contract approximate 1e-6")
        return _Clause(keyword, (kind, None if bound is None else float(number(self.source, bound))))

    # ---- examples

    def example(self, c: list[Any]) -> Example:
        keyword, brackets, before, after = c
        place = self.place(keyword)
        return Example(before, after, brackets, span=place.to(after[-1].span), keyword=place)

    def counterexample(self, c: list[Any]) -> Example:
        keyword, brackets, before = c
        place = self.place(keyword)
        return Example(before, None, brackets, span=place.to(before[-1].span), keyword=place)

    def results(self, c: list[Any]) -> tuple[Pattern, ...]:
        return tuple(c)

    def context(self, c: list[Any]) -> Draft:
        keyword, name, entries = c
        return Draft(ContextDecl, (name or keyword).value, name or keyword, {"entries": entries})

    def givens(self, c: list[Any]) -> Draft:
        keyword, given = c[0]
        self._check_given(given)
        return Draft(GivenDecl, keyword.value, keyword, {"given": given})

    def given(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], tuple(c[1:]))

    def shared(self, c: list[Any]) -> Given:
        name, term = c
        return Given(name.value, term=term, span=self.place(name).to(term.span), name_span=self.place(name))

    def leaf(self, c: list[Any]) -> Given:
        name, type_, value = c
        span = self.place(name).to(type_.span if value is None else value.span)
        return Given(name.value, type_, value, span=span, name_span=self.place(name))

    def _check_given(self, given: tuple[Given, ...]) -> None:
        """GenrwError for a name that is given twice in a rule or a list."""
        for place, one in enumerate(given):
            if any(other.name == one.name for other in given[:place]):
                raise error(f"`{one.name}` is given twice", one.name_span, "give one of them another name")

    def plain(self, c: list[Any]) -> TypeNode:
        return TypeNode("scalar", c[0].value, span=self.place(c[0]))

    def tensor(self, c: list[Any]) -> TypeNode:
        name, (lens, span) = c
        return TypeNode("tensor", name.value, lens, span=self.place(name).to(span))

    def strided(self, c: list[Any]) -> TypeNode:
        tensor: TypeNode = c[0]
        strides, span = c[1]
        return replace(tensor, strides=strides, span=tensor.span.to(span))

    def dims(self, c: list[Any]) -> tuple[tuple[int, ...], Span]:
        return tuple([self._length(token) for token in c[1:-1]]), self.span(c[0], c[-1])

    def _length(self, token: Token) -> int:
        value = number(self.source, token)
        if isinstance(value, float):
            raise error(f"a length is a whole number, not {quoted(token)}", self.place(token), "write one, such as 64")
        return value

    def header(self, c: list[Any]) -> tuple[Attribute, ...]:
        return tuple(c[1:-1])

    def entry(self, c: list[Any]) -> Attribute:
        name, found = c
        span = self.place(name)
        if found is None:
            return Attribute(name.value, None, span, span)
        value, value_span = (found.value, found.span) if isinstance(found, _Record) else (literal(found), found.span)
        return Attribute(name.value, value, span.to(value_span), value_span)

    def record(self, c: list[Any]) -> _Record:
        return _Record(MapValue(tuple(c[1:-1])), self.span(c[0], c[-1]))

    def pair(self, c: list[Any]) -> tuple[str, Value]:
        return c[0].value, c[1].value if isinstance(c[1], _Record) else literal(c[1])

    # ---- patterns

    def variable(self, c: list[Any]) -> Pattern:
        span = self.place(c[0])
        value = special(c[0])
        if value is not None:
            return NumberPattern(Const(value, span=span), span)
        return VarPattern(c[0].value, False, span)

    def rest_variable(self, c: list[Any]) -> Pattern:
        return VarPattern(c[0].value, True, self.span(c[0], c[1]))

    def number_pattern(self, c: list[Any]) -> Pattern:
        minus, token = c
        value = special(token) if token.type == "NAME" else number(self.source, token)
        if value is None or (minus and isinstance(value, bool)):
            raise error(
                f"a pattern cannot negate {quoted(token)}", self.place(token), "match a number, as in -1, or `neg(x)`"
            )
        span = self.span(minus or token, token)
        return NumberPattern(Const(negative(value) if minus else value, span=span), span)

    def computed(self, c: list[Any]) -> Pattern:
        return NumberPattern(c[1], self.span(c[0], c[2]))

    def pattern(self, c: list[Any]) -> Pattern:
        return Chain(self._joined).read(c)

    def _joined(self, tokens: list[Token], operands: list[Pattern]) -> Pattern:
        """The operation of a sign between two terms."""
        if len(tokens) > 1:
            remedy = "join two of them: a < b and b < c"
            raise error("a term compares two others, not three", self.place(tokens[1]), remedy)
        sign, place = sign_text(tokens[0]), self.place(tokens[0])
        span = operands[0].span.to(operands[-1].span)
        return OpPattern(sign, (), tuple(operands), sign=sign, span=span, op_span=place)

    def group(self, c: list[Any]) -> Pattern:
        pattern: Pattern = c[1]
        return replace(pattern, span=self.span(c[0], c[2]))

    def application(self, c: list[Any]) -> OpPattern:
        token, attributes, *operands, last = c
        op, family = self._operator(token)
        found, more = self._pattern_attributes(attributes)
        span, op_span = self.span(token, last), self.place(token)
        return OpPattern(op, found, tuple(operands), family, more, span=span, op_span=op_span)

    def bare_application(self, c: list[Any]) -> OpPattern:
        return self.application([*c, c[1][-1]])

    def mapped(self, c: list[Any]) -> OpPattern:
        pattern, dots = self._operation(c[0]), c[1]
        return replace(pattern, rest=True, span=pattern.span.to(self.place(dots)))

    def bound(self, c: list[Any]) -> OpPattern:
        name, pattern = c[0], self._operation(c[1])
        return replace(pattern, binds=name.value, span=self.place(name).to(pattern.span))

    def _operation(self, pattern: Pattern) -> OpPattern:
        """What is named or mapped, which may be anything between parentheses."""
        if not isinstance(pattern, OpPattern) or pattern.binds or pattern.rest:
            raise error("only an operation can stand here", pattern.span, "write an operator and its operands")
        return pattern

    def _operator(self, token: Token) -> tuple[str, str | None]:
        if token.type == "NAME":
            return token.value, None
        prefix, family, type_, suffix = self._family(token)
        if type_:
            raise error("only a declaration gives the type of a family", self.place(token), "leave the type out")
        return f"{prefix}{{}}{suffix}", family

    def _family(self, token: Token) -> tuple[str | None, ...]:
        match = _FAMILY.fullmatch(token)
        assert match is not None
        return match.groups()

    def pattern_attributes(self, c: list[Any]) -> list[Any]:
        return c

    def pattern_attribute(self, c: list[Any]) -> AttributePattern | Token:
        if len(c) == 1:
            dots: Token = c[0]
            return dots
        name, value = c
        span = self.place(name)
        return AttributePattern(name.value, value, span if value is None else span.to(value.span))

    def _pattern_attributes(self, found: list[Any] | None) -> tuple[tuple[AttributePattern, ...], bool]:
        listed = found[:-1] if found else []
        dots = [item for item in listed if isinstance(item, Token)]
        if len(dots) > 1:
            raise error("`..` is given twice", self.place(dots[1]), "remove one of them")
        return tuple([item for item in listed if not isinstance(item, Token)]), bool(dots)

    # ---- operators

    def op(self, c: list[Any]) -> Draft:
        token, attributes, operands, result, where, *clauses = c
        said = self._gather(clauses, ("requires", "is", "function", "domain"))
        self._check_written(token, attributes or (), operands or (), said.get("written"))
        name, family, family_type = token.value, None, "monoid"
        if token.type == "FAMILY":
            prefix, family, type_, suffix = self._family(token)
            name, family_type = f"{prefix}{{{family}}}{suffix}", type_ or family_type
        role, parts = said.pop("role", (None, ()))
        emit, precedence = said.pop("emit", (None, None))
        fields = {
            "family": family,
            "family_type": family_type,
            "attributes": attributes or (),
            "operands": operands or (),
            "result": result,
            "where": where or (),
            "role": role,
            "role_parts": parts,
            "stages": said.pop("at", ()),
            "emit": emit,
            "precedence": precedence,
        }
        fields["definitions"] = said.pop("is", ())
        if "written" in said:
            sign = said.pop("written")[1]
            fields |= {"sign": sign_text(sign), "sign_span": self.place(sign)}
        fields["functions"] = said.pop("function", ())
        return Draft(OpDecl, name, token, fields | said)

    def attributes(self, c: list[Any]) -> tuple[AttributeDecl, ...]:
        return tuple(c)

    def attribute(self, c: list[Any]) -> AttributeDecl:
        name, type_, default = c
        span = self.span(name, type_)
        return AttributeDecl(name.value, type_.value, default, span if default is None else span.to(default.span))

    def operands(self, c: list[Any]) -> tuple[OperandDecl, ...]:
        return tuple(c)

    def operand(self, c: list[Any]) -> OperandDecl:
        name, first, second, dots = c
        span = self.span(name, dots or second or first)
        if second is not None:
            return OperandDecl(name.value, first.value, self._one_of(second, _SORTS, "sort"), dots is not None, span)
        if first in _SORTS:
            return OperandDecl(name.value, None, first.value, dots is not None, span)
        return OperandDecl(name.value, first.value, None, dots is not None, span)

    def where(self, c: list[Any]) -> tuple[tuple[str, str], ...]:
        return tuple(c)

    def typed(self, c: list[Any]) -> tuple[str, str]:
        return c[0].value, c[1].value

    def role(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], (c[1].value, c[2] or ()))

    def written(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], c[1:])

    def _check_written(
        self,
        op: Token,
        attributes: tuple[AttributeDecl, ...],
        operands: tuple[OperandDecl, ...],
        written: list[Token] | None,
    ) -> None:
        """GenrwError for a sign between other names than the operator's two operands, or that tells too little."""
        if written is None:
            return
        left, sign, right = written
        if sign in _NO_SIGNS:
            raise error(f"no operator can be written {quoted(sign_text(sign))}", self.place(sign), "take another sign")
        names = tuple(operand.name for operand in operands if not operand.variadic)
        if names != (left, right) or len(operands) > len(names):
            message = "`written` names the operator's two operands, in their order"
            remedy = f"write {names[0]} {sign} {names[1]}" if len(names) == 2 else "leave it out"
            raise error(message, self.span(left, right), remedy)
        unsaid = [attribute for attribute in attributes if attribute.default is None]
        if op.type == "FAMILY" or unsaid:
            what = f"its attribute `{unsaid[0].name}`" if unsaid else "the member of a family"
            raise error(f"a sign does not say {what}", self.place(sign), "leave out `written`")

    def requires(self, c: list[Any]) -> _Clause:
        keyword, condition, message = c
        return _Clause(keyword, (self._requirement(keyword, condition, message),))

    def is_(self, c: list[Any]) -> _Clause:
        keyword, term, guard, computed = c
        parts = [term.span, *([guard.span] if guard is not None else []), *(b.span for b in computed or ())]
        span = self.place(keyword).to(parts[-1])
        return _Clause(keyword, (Definition(term, guard, tuple(computed or ()), span),))

    def is_with(self, c: list[Any]) -> list[Any]:
        return c[1:]

    def function(self, c: list[Any]) -> _Clause:
        keyword, *steps, term, guard = c
        last = guard or term
        span = self.place(keyword) if last is None else self.place(keyword).to(last.span)
        return _Clause(keyword, (FunctionDecl(tuple([s for s in steps if s is not None]), term, guard, span),))

    def function_step(self, c: list[Any]) -> FunctionStep:
        name, term = c
        return FunctionStep(name.value, term, self.place(name).to(term.span))

    def define(self, c: list[Any]) -> Draft:
        name, attributes, operands, term = c
        return Draft(
            DefineDecl, name.value, name, {"attributes": attributes or (), "operands": operands or (), "term": term}
        )

    def emit(self, c: list[Any]) -> _Clause:
        keyword, text, precedence = c
        level = None if precedence is None else self._one_of(precedence, PRECEDENCES, "precedence")
        return _Clause(keyword, (string(self.source, text), level))

    def device(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], string(self.source, c[1]))

    def domain(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], tuple(c[1:]))

    # ---- foreign operators

    def import_(self, c: list[Any]) -> Draft:
        name, attributes, inputs = c[:3]
        arrow = next(i for i in range(3, len(c)) if isinstance(c[i], Token))
        results = tuple([item for item in c[arrow + 1 :] if not isinstance(item, _Clause)])
        said = self._gather([item for item in c[3:] if isinstance(item, _Clause)], ("with", "requires"))
        fields = {
            "attributes": attributes or (),
            "inputs": inputs or (),
            "results": results,
            "guard": said.get("when"),
            "requires": said.get("requires", ()),
            "with_": said.get("with", ()),
            "repeat": said.get("repeat"),
        }
        return Draft(ImportDecl, name.value, name, fields)

    def inputs(self, c: list[Any]) -> tuple[InputDecl, ...]:
        return tuple(c)

    def input(self, c: list[Any]) -> InputDecl:
        if len(c) == 2:
            return InputDecl(c[0].value, None, c[1], span=self.place(c[0]).to(c[1].span))
        name, type_, dots = c
        span = self.span(name, dots or type_ or name)
        return InputDecl(name.value, type_ and type_.value, variadic=dots is not None, span=span)

    def counted(self, c: list[Any]) -> InputDecl:
        name, _, count, _, dots = c
        return InputDecl(name.value, variadic=True, count=count, span=self.span(name, dots))

    def repeat(self, c: list[Any]) -> _Clause:
        keyword, variable, _, items, condition, steps, body = c
        span = self.place(keyword).to(body.span)
        return _Clause(keyword, Repeat(variable.value, items, condition, steps, body, span))

    def steps(self, c: list[Any]) -> tuple[Step, ...]:
        return tuple(c)

    def step(self, c: list[Any]) -> Step:
        name, dots = c
        return Step(name.value, dots is not None, self.span(name, dots or name))

    def defaulted(self, c: list[Any]) -> InputDecl:
        name, type_, default = c
        return InputDecl(name.value, type_.value, default, span=self.place(name).to(default.span))

    # ---- monoids

    def monoid(self, c: list[Any]) -> Draft:
        name, where, *clauses = c
        said = self._gather(clauses, ("accumulate", "domain"))
        return Draft(MonoidDecl, name.value, name, {"where": where or ()} | said)

    def carry(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], tuple(c[1:]))

    def fields(self, c: list[Any]) -> _Clause:
        found = [item for item in c[1:] if not isinstance(item, Token)]
        return _Clause(c[0], tuple([f if isinstance(f, FieldExpr) else FieldExpr(None, f) for f in found]))

    def field(self, c: list[Any]) -> FieldExpr:
        return FieldExpr(c[0].value, c[1])

    def result(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], c[1].value)

    def accumulate(self, c: list[Any]) -> _Clause:
        return _Clause(c[0], ((c[1].value, c[3]),))
