"""The syntax tree of a `.rw` file: operators, monoids, targets, instructions, rules and their parts, as written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from genrw.grammar.expr_tree import Expr
from genrw.grammar.gen_tree import Attribute, TypeNode
from genrw.grammar.source import NOWHERE, Span

PRECEDENCES = ("atom", "unary", "mul", "add", "shift", "compare", "equal", "and", "or", "cond")
"""How tightly the C++ operators of an `emit` bind, tightest first."""


@dataclass(frozen=True)
class Declared:
    """What every declaration has: a name, documentation (`///` lines joined by newlines), and its place."""

    name: str
    doc: str = field(default="", kw_only=True)
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# ---- operators


@dataclass(frozen=True)
class AttributeDecl:
    """`name: type = default` between an operator's brackets."""

    name: str
    type: str
    default: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class OperandDecl:
    """`name: [dtype] sort`, with `...` for any number. `sort` None: any of tensor, scalar, array."""

    name: str
    dtype: str | None
    sort: str | None
    variadic: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Requirement:
    """`requires condition "message"`."""

    condition: Expr
    message: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Definition:
    """`is TERM when GUARD with name = EXPR`: what an operator is made of, where the guard holds."""

    term: Pattern
    guard: Expr | None = None
    with_: tuple[Binding, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class FunctionStep:
    """`name = TERM`: a part of a function that has a name."""

    name: str
    term: Pattern
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class FunctionDecl:
    """`function STEPS gives TERM when GUARD`: what kernels call for an operator, where the guard holds. Without a `term`,
    it is that of the operator's definition."""

    steps: tuple[FunctionStep, ...] = ()
    term: Pattern | None = None
    guard: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class OpDecl(Declared):
    """An operator. `stuck` is what to say when no rule lowers it; `called` names its values in printed
    kernels, with `{attribute}` holes. `terms` are what its cost is made of, by name. `sign` is what stands between its
    two operands in terms, if it is written so. `family` is the placeholder of a name like `reduce_{op: monoid}` (name:
    "reduce_{op}"), `family_type` what it ranges over.

    `result` is an expression over the operands and attributes: a dtype variable or class name alone for
    pointwise operators (`T`, `bool`), else a call such as `tensor(T, lens)`, `scalar(T)`, `index()`.
    """

    family: str | None
    attributes: tuple[AttributeDecl, ...]
    operands: tuple[OperandDecl, ...]
    result: Expr
    where: tuple[tuple[str, str], ...] = ()
    role: str | None = None
    role_parts: tuple[str, ...] = ()
    sign: str | None = None
    stages: tuple[str, ...] = ()
    commutative: bool = False
    injective: bool = False
    requires: tuple[Requirement, ...] = ()
    definitions: tuple[Definition, ...] = ()
    functions: tuple[FunctionDecl, ...] = ()
    means: Expr | None = None
    within: Expr | None = None
    emit: str | None = None
    precedence: str | None = None
    device: str | None = None
    stuck: str | None = None
    called: str | None = None
    cost: Expr | None = None
    terms: tuple[Binding, ...] = ()
    domain: tuple[Expr, ...] = ()
    lo: Expr | None = None
    hi: Expr | None = None
    pow2: Expr | None = None
    family_type: str = "monoid"
    sign_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class DefineDecl(Declared):
    """`define name[attributes](operands) = term`: a name for a term, in rules and in other definitions."""

    attributes: tuple[str, ...]
    operands: tuple[str, ...]
    term: Pattern


@dataclass(frozen=True)
class InputDecl:
    """An input of a foreign operator: `x`, a tensor, or `axes: ints`, a constant; `...` for any number.

    `default` stands for an input that is absent, `count` says how many there are of any number.
    """

    name: str
    type: str | None = None
    default: Expr | None = None
    variadic: bool = False
    count: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Step:
    """A name that a `repeat` gives a value: `h`, or `made...` for all results that are left."""

    name: str
    variadic: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Repeat:
    """`repeat variable in items while condition: steps = body`: the names get the results of a template again and again."""

    variable: str
    items: Expr
    condition: Expr | None
    steps: tuple[Step, ...]
    body: Pattern
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class ImportDecl(Declared):
    """What an operator of another language is here: one template for each of its results.

    A template with `rest` stands for all results from its place on. Several declarations of one name and dialect are
    tried in turn. The `dialect` is the language that the operator is one of.
    """

    attributes: tuple[AttributeDecl, ...]
    inputs: tuple[InputDecl, ...]
    results: tuple[Pattern, ...]
    guard: Expr | None = None
    requires: tuple[Requirement, ...] = ()
    with_: tuple[Binding, ...] = ()
    repeat: Repeat | None = None
    dialect: str | None = None

    @property
    def full_name(self) -> str:
        """The operator's name with that of its language, which may have it in common with others."""
        return f"{self.dialect}.{self.name}" if self.dialect is not None else self.name

    @property
    def templates(self) -> tuple[Pattern, ...]:
        """All that the declaration builds."""
        return self.results if self.repeat is None else (*self.results, self.repeat.body)


# ---- monoids, targets, helpers


@dataclass(frozen=True)
class FieldExpr:
    """`field = expr` in a monoid's clause; `field` is None where the accumulator is a single value."""

    field: str | None
    value: Expr


@dataclass(frozen=True)
class MonoidDecl(Declared):
    """An associative combination with an identity. `carry` is empty when the accumulator is one value; `where` bounds
    the elements' type `T`."""

    carry: tuple[tuple[str, str], ...] = ()
    element: tuple[FieldExpr, ...] = ()
    identity: tuple[FieldExpr, ...] = ()
    combine: tuple[FieldExpr, ...] = ()
    finish: Expr | None = None
    result: str | None = None
    accumulate: tuple[tuple[str, tuple[str, ...]], ...] = ()
    domain: tuple[Expr, ...] = ()
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TargetDecl(Declared):
    """A GPU or CPU: named values, some inherited from `base`. It and those that are based on it keep what is required."""

    base: str | None
    values: tuple[tuple[str, Expr], ...]
    requires: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class InstructionDecl(Declared):
    """An instruction that multiplies matrices, whose parts the lanes of a wave hold: named values."""

    values: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class LetDecl(Declared):
    """`let name(parameters) = expr`: a pure helper."""

    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True)
class ClassDecl(Declared):
    """`class name = expr`: a set of operators. Terms are (sign, names), left to right, sign "+" or "-"."""

    terms: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class PipelineDecl(Declared):
    """`pipeline a -> b -> c`: the stages in order. `name` is always "pipeline"."""

    stages: tuple[str, ...]


# ---- rules


@dataclass(frozen=True)
class AttributePattern:
    """`name` (value None: the variable of that name) or `name=value`."""

    name: str
    value: Expr | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class VarPattern:
    """A variable for an operand; `rest` for `xs...`."""

    name: str
    rest: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class NumberPattern:
    """A number, or `{expr}`: in a pattern a variable bound to a constant, in a template a computed one."""

    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class OpPattern:
    """`op[attributes](operands)`.

    `family` is the part in braces of `reduce_{op}`: then `op` is "reduce_{}" and `family` the variable or
    member name. `open_attributes` says that `..` stood among the attributes. `binds` names this node
    (`x@op(…)`). `rest` is true for a template mapped over rest operands, `comp(xs, i)...`. `sign` stands between the two
    operands where the author wrote so. Until a library says which operator is written with it, `op` is the sign, too.
    """

    op: str
    attributes: tuple[AttributePattern, ...]
    operands: tuple[Pattern, ...]
    family: str | None = None
    open_attributes: bool = False
    binds: str | None = None
    rest: bool = False
    sign: str | None = field(default=None, compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    op_span: Span = field(default=NOWHERE, compare=False, repr=False)


Pattern = VarPattern | NumberPattern | OpPattern


@dataclass(frozen=True)
class Binding:
    """`name = expr` of a `with`, or `name in expr` of a `for`."""

    name: str
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Given:
    """What a name of examples stands for: an input of a `type`, a constant of that type and `value`, or a `term`."""

    name: str
    type: TypeNode | None = None
    value: Expr | None = None
    term: Pattern | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    name_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class GivenDecl(Declared):
    """`given …` of a file: what names stand for in the examples below. `name` is always "given"."""

    given: tuple[Given, ...]


@dataclass(frozen=True)
class ContextDecl(Declared):
    """`context [entries]`: the context of the examples below that have none of their own. One with a name is for those
    that name it; a context without name is called "context"."""

    entries: tuple[Attribute, ...]

    @property
    def is_named(self) -> bool:
        """Is the context only for those that name it?"""
        return self.name != UNNAMED_CONTEXT


UNNAMED_CONTEXT = "context"


@dataclass(frozen=True)
class Example:
    """Terms before and after the rule, the results of two programs; `after` is None for a counterexample.

    `brackets` are the entries of the context as written, None where there are no brackets. Gathering a library fills in
    the whole `context`, and what names stand for, those of the rule included, in `given`; `kernel` names the one whose kernel the
    context's schedule is of. `keyword` is where the word
    stands that begins the example, `span` all of it.
    """

    before: tuple[Pattern, ...]
    after: tuple[Pattern, ...] | None
    brackets: tuple[Attribute, ...] | None = None
    context: tuple[Attribute, ...] = ()
    given: tuple[Given, ...] = ()
    kernel: VarPattern | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    keyword: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Table:
    """`(a, b) in [(x, y), …]` of a `for`: the rule is written once for each row, whose items the names stand for."""

    names: tuple[str, ...]
    rows: tuple[tuple[Expr, ...], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    name_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class RuleDecl(Declared):
    """A rewrite rule. `contract` is exact, reassociates, contracts or approximate; `bound` is for the last.

    `stage` names the stage at which it runs, or several, separated by commas. `replaces` says that the left
    side's root may not survive the stage where the rule applies. An `alternative` is taken where the kernels that it leads
    to are predicted to take less time. A rule that `defines` says no more than what that operator
    is made of; no author wrote it.
    """

    stage: str | None
    left: Pattern
    right: Pattern
    both_ways: bool = False
    guard: Expr | None = None
    with_: tuple[Binding, ...] = ()
    for_: tuple[Binding, ...] = ()
    tables: tuple[Table, ...] = ()
    contract: str = "exact"
    bound: float | None = None
    replaces: bool = False
    alternative: bool = False
    given: tuple[Given, ...] = ()
    examples: tuple[Example, ...] = ()
    defines: str | None = None

    @property
    def removes_left(self) -> bool:
        """Does what the left side matched not survive where the rule applies?"""
        return self.replaces or self.alternative

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The stages at which the rule runs, by name."""
        return tuple((self.stage or "").replace(",", " ").split())

    @property
    def wording(self) -> tuple[str, str | None, str]:
        """What the rule does follows from: rules of one wording differ in their places and documentation only."""
        return self.span.source.name, self.stage, self.span.text


Declaration = (
    OpDecl
    | DefineDecl
    | MonoidDecl
    | TargetDecl
    | InstructionDecl
    | LetDecl
    | ClassDecl
    | PipelineDecl
    | RuleDecl
    | ImportDecl
    | GivenDecl
    | ContextDecl
)


@dataclass(frozen=True)
class RuleFile:
    """All declarations of one `.rw` text, in order; `doc` is the heading comment."""

    declarations: tuple[Declaration, ...]
    doc: str = ""
    span: Span = field(default=NOWHERE, compare=False, repr=False)
