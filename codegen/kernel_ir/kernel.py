"""The kernel IR: a kernel as statements over variables, for any target language.

The builder makes it of a program of the last stage, passes change it, printers print it. An expression applies an operator to
expressions; what the operator means, and how a language writes it, stands in its declaration. A variable is known by its
identity: printers give it a name that their language allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Self

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Attributes, Node


@dataclass(frozen=True)
class ValueType:
    """What a variable holds: elements of type `dtype`, `size` of them, one where `size` is 0. `dtype` is an element type, or
    `monoid.dtype` for accumulators; `sort` is that of the program's type, "index" for whole numbers of the kernel's own."""

    dtype: str
    size: int = 0
    sort: str = "scalar"


class Scope(Enum):
    """Where a variable's name is known."""

    LANE = "lane"
    ARGUMENT = "argument"
    FILE = "file"


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable. It is to be called `name`; if it has none, or the name that `base` got, after `base`, with the `suffix`."""

    type: ValueType
    name: str | None = None
    base: Variable | None = None
    suffix: str = ""
    scope: Scope = Scope.LANE


# ---- expressions


@dataclass(frozen=True, eq=False)
class Expression:
    """What computes a value."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions that it is made of."""
        return ()

    @property
    def own_variables(self) -> tuple[Variable, ...]:
        """The variables that it names itself."""
        return ()

    def with_operands(self, operands: tuple[Expression, ...]) -> Self:
        """The same of other expressions."""
        assert not operands
        return self

    @property
    def variables(self) -> Iterator[Variable]:
        """The variables that it names, its operands included."""
        yield from self.own_variables
        for operand in self.operands:
            yield from operand.variables


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A number."""

    node: Node


@dataclass(frozen=True, eq=False)
class Made(Expression):
    """What is not computed where it stands: an effect that has come before, or what only says how many elements there are."""

    node: Node


@dataclass(frozen=True, eq=False)
class Use(Expression):
    """A variable's value, which is that of a node; `element`: of an array, the element that the loop around is at."""

    variable: Variable
    node: Node
    element: bool = False

    @property
    def own_variables(self) -> tuple[Variable, ...]:
        return (self.variable,)


@dataclass(frozen=True, eq=False)
class Apply(Expression):
    """An operator applied; `result` is the variable that stands for its value, or for the memory that it is."""

    node: Node
    arguments: tuple[Expression, ...]
    result: Variable | None = None

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_operands(self, operands: tuple[Expression, ...]) -> Self:
        return replace(self, arguments=operands)


@dataclass(frozen=True, eq=False)
class Folded(Expression):
    """What a loop's accumulator holds in the end."""

    node: Node
    accumulator: Variable

    @property
    def own_variables(self) -> tuple[Variable, ...]:
        return (self.accumulator,)


@dataclass(frozen=True, eq=False)
class LaterStep(Expression):
    """The step of a loop that comes `by` steps later; no later than `last`, unless that is None."""

    counter: Variable
    by: int
    last: int | None = None

    @property
    def own_variables(self) -> tuple[Variable, ...]:
        return (self.counter,)


@dataclass(frozen=True, eq=False)
class Step(Expression):
    """The step of a loop that has a number."""

    number: int


@dataclass(frozen=True, eq=False)
class _OfParts(Expression):
    """What is computed of some whole numbers."""

    parts: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.parts

    def with_operands(self, operands: tuple[Expression, ...]) -> Self:
        return replace(self, parts=operands)


@dataclass(frozen=True, eq=False)
class Weighted(_OfParts):
    """A number, and other whole numbers, each so many times as `factors` say."""

    number: int
    factors: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Divided(Expression):
    """A whole number divided by one above 0, rounded down."""

    dividend: Expression
    by: int

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.dividend,)

    def with_operands(self, operands: tuple[Expression, ...]) -> Self:
        (dividend,) = operands
        return replace(self, dividend=dividend)


@dataclass(frozen=True, eq=False)
class Chosen(_OfParts):
    """The least of some whole numbers, or the most of them."""

    least: bool


# ---- statements


class Inline(Enum):
    """May a value be written where it is used, without a variable?"""

    NO = "no"
    SHORT = "short"
    ALWAYS = "always"


class Meeting(Enum):
    """Whose lanes meet in a statement."""

    NOBODY = ""
    WAVE = "wave"
    BLOCK = "block"
    WAITING_BLOCK = "waiting block"
    """Each lane waits before, for what it has under way itself."""
    WAITING_WAVE = "waiting wave"
    """Each lane waits for what others have under way, and meets nobody where others run at the same time."""


@dataclass(frozen=True)
class Monoid:
    """A monoid for elements of a type."""

    name: str
    dtype: str


@dataclass(frozen=True, eq=False)
class Statement:
    """A step of a kernel."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that it has itself."""
        return ()

    def with_expressions(self, expressions: tuple[Expression, ...]) -> Self:
        """The same of other expressions."""
        assert not expressions
        return self

    @property
    def declared(self) -> Variable | None:
        """The variable that it declares."""
        return None

    @property
    def changed(self) -> Variable | None:
        """The variable that it gives a value after that was declared."""
        return None

    @property
    def meeting(self) -> Meeting:
        """Whose lanes meet in it."""
        return Meeting.NOBODY

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements inside."""
        return ()


@dataclass(frozen=True, eq=False)
class _OfOneValue(Statement):
    """A statement with a value."""

    value: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.value,)

    def with_expressions(self, expressions: tuple[Expression, ...]) -> Self:
        (value,) = expressions
        return replace(self, value=value)


@dataclass(frozen=True, eq=False)
class Let(_OfOneValue):
    """Declares a variable with its value, which it keeps if it is `constant`. `element`: one of the elements of a share, in the
    loop over them."""

    variable: Variable
    inline: Inline = Inline.NO
    meets: Meeting = Meeting.NOBODY
    element: bool = False
    constant: bool = True

    @property
    def declared(self) -> Variable:
        return self.variable

    @property
    def meeting(self) -> Meeting:
        return self.meets


@dataclass(frozen=True, eq=False)
class Declare(Statement):
    """Declares an array whose elements get their values later."""

    variable: Variable

    @property
    def declared(self) -> Variable:
        return self.variable


@dataclass(frozen=True, eq=False)
class Start(Statement):
    """Declares an accumulator, or so many `elements` of them, that begin as their monoid's identity."""

    variable: Variable
    monoid: Monoid
    elements: int = 0

    @property
    def declared(self) -> Variable:
        return self.variable


@dataclass(frozen=True, eq=False)
class Assign(_OfOneValue):
    """Gives the element of an array that the loop around is at its value."""

    variable: Variable

    @property
    def changed(self) -> Variable:
        return self.variable


@dataclass(frozen=True, eq=False)
class Move(_OfOneValue):
    """Gives a variable the value of another one, all elements of it."""

    variable: Variable

    @property
    def changed(self) -> Variable:
        return self.variable


@dataclass(frozen=True, eq=False)
class Accumulate(_OfOneValue):
    """Combines a value with an accumulator: one; the one of the `element` that the loop around is at; or, where the value is an
    array of so many `elements`, each with its own."""

    variable: Variable
    monoid: Monoid
    element: bool = False
    elements: int = 0

    @property
    def changed(self) -> Variable:
        return self.variable


@dataclass(frozen=True, eq=False)
class Update(_OfOneValue):
    """Gives an accumulator a value that the operator has made of its old one."""

    variable: Variable
    meets: Meeting = Meeting.NOBODY

    @property
    def changed(self) -> Variable:
        return self.variable

    @property
    def meeting(self) -> Meeting:
        return self.meets


@dataclass(frozen=True, eq=False)
class Effect(_OfOneValue):
    """Does what an operator does: stores, copies, lets lanes meet."""

    meets: Meeting = Meeting.NOBODY

    @property
    def meeting(self) -> Meeting:
        return self.meets


@dataclass(frozen=True, eq=False)
class Allocate(_OfOneValue):
    """Reserves workgroup memory."""

    buffer: Buffer


@dataclass(frozen=True, eq=False)
class Return(_OfOneValue):
    """Ends a function with its value."""


class Walk(Enum):
    """What a loop goes over: the steps of a pass over a row; the first steps, before a loop that works ahead; the elements of
    a lane's share."""

    STEPS = "steps"
    FIRST_STEPS = "first steps"
    SHARE = "elements"


@dataclass(frozen=True, eq=False)
class Loop(Statement):
    """A loop that all lanes walk alike; `unroll` of its turns stand behind one another, all if it is 0. Loops over a share
    have no counter: what is inside names elements. A loop over steps leaves out those before `first`, and those from `end` on,
    where these are given."""

    walk: Walk
    extent: int
    unroll: int
    body: tuple[Statement, ...]
    counter: Variable | None = None
    first: Expression | None = None
    end: Expression | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(bound for bound in (self.first, self.end) if bound is not None)

    def with_expressions(self, expressions: tuple[Expression, ...]) -> Self:
        bounds = iter(expressions)
        first, end = (None if bound is None else next(bounds) for bound in (self.first, self.end))
        return replace(self, first=first, end=end)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.body


@dataclass(frozen=True, eq=False)
class IfStep(Statement):
    """Does something if a later step comes before the loop's `end`."""

    step: LaterStep
    end: Expression
    body: tuple[Statement, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.step, self.end)

    def with_expressions(self, expressions: tuple[Expression, ...]) -> Self:
        step, end = expressions
        assert isinstance(step, LaterStep)
        return replace(self, step=step, end=end)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.body


@dataclass(frozen=True, eq=False)
class IfWithin(Statement):
    """Does something at the steps of a loop from `first` on, before `end`; all where a bound is None."""

    step: Expression
    first: Expression | None
    end: Expression | None
    body: tuple[Statement, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.step, *(bound for bound in (self.first, self.end) if bound is not None))

    def with_expressions(self, expressions: tuple[Expression, ...]) -> Self:
        step, *others = expressions
        bounds = iter(others)
        first, end = (None if bound is None else next(bounds) for bound in (self.first, self.end))
        return replace(self, step=step, first=first, end=end)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.body


@dataclass(frozen=True, eq=False)
class Apart(Statement):
    """What one lane of each of some waves behind the workgroup's `lanes` does, and nothing else in the kernel, while these do the
    rest; and what lanes do that are alone with all of it, in turns."""

    lanes: int
    waves: int
    by_waves: tuple[Statement, ...]
    by_lanes: tuple[Statement, ...]
    in_turns: tuple[Statement, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        return (*self.by_waves, *self.by_lanes)


@dataclass(frozen=True, eq=False)
class Turns(Statement):
    """What `launched` workgroups do for all `groups`, one after the other: `group` declares whose work it is, `number` how much was
    done before."""

    group: Let
    number: Let | None
    groups: int
    launched: int
    body: tuple[Statement, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.body


def in_turns(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """A kernel's body as lanes do it that are alone."""
    return tuple(s for one in body for s in (one.in_turns if isinstance(one, Apart) else (one,)))


# ---- functions


FunctionKey = tuple[str, str, tuple[str, ...]]
"""What tells functions apart: the operator, its attributes, and the types in which the operands are computed with."""


def function_key(node: Node) -> FunctionKey:
    """The key of the function that computes a node."""
    return node.op, repr(node.attributes), tuple(DTYPES[o.type.dtype].compute for o in node.operands)


@dataclass(frozen=True, eq=False)
class Function:
    """What computes one element of an operator's result, of one element of each operand. `variables` are all of them, the
    `parameters` first, in the order in which they get their names; `dtype` is that of the result."""

    operator: str
    attributes: Attributes
    parameters: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    body: tuple[Statement, ...]
    dtype: str


# ---- kernels


@dataclass(frozen=True, eq=False)
class Argument:
    """A kernel argument: the parameter of the program that it is, and whether the kernel writes it. `described`: it is not the
    parameter's address, but what the launcher makes of that, by this operator."""

    variable: Variable
    parameter: Node
    written: bool
    described: Apply | None = None


@dataclass(frozen=True, eq=False)
class Buffer:
    """Workgroup memory: elements, their bytes, and where it begins if one piece holds all of a kernel's."""

    variable: Variable
    elements: int
    bytes: int
    offset: int


@dataclass(frozen=True, eq=False)
class Spill:
    """What an array leaves to workgroup memory: registers hold the first `held` elements; the others of the workgroup's lanes
    are `count` elements of `memory`, that begin `offset` bytes after the first array's."""

    memory: Variable
    held: int
    offset: int
    count: int


@dataclass(frozen=True, eq=False)
class Table:
    """Elements that are known."""

    variable: Variable
    values: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel. `variables` are all of them, in the order in which they get their names, also those that a pass did without;
    `ranges` the bounds of indices by the identities of their nodes; `operators` the names of the operators it is made of.
    `functions` are those that its expressions call, each behind those that it calls itself.
    `resident` workgroups a unit is to have room for, any number if it is 0. `stands_for` has, by the identities of nodes that are not
    the module's, the ones that are."""

    target: str
    arguments: tuple[Argument, ...]
    variables: tuple[Variable, ...]
    tables: tuple[Table, ...]
    buffers: tuple[Buffer, ...]
    spills: Mapping[Variable, Spill]
    body: tuple[Statement, ...]
    grid: int
    block: int
    wave: int
    resident: int
    operators: tuple[str, ...]
    functions: Mapping[FunctionKey, Function]
    ranges: Mapping[int, Mapping[str, int]] = field(repr=False)
    stands_for: Mapping[int, Node] = field(repr=False)

    def function_of(self, node: Node) -> Function | None:
        """The function that computes a node, if one does."""
        named = any(operator == node.op for operator, _, _ in self.functions)
        return self.functions.get(function_key(node)) if named else None

    @property
    def launched(self) -> int:
        """How many lanes a workgroup has, those of waves with other work included."""
        return self.block + self.wave * sum(s.waves for s in self.body if isinstance(s, Apart))

    @property
    def launched_groups(self) -> int:
        """How many workgroups a launch has."""
        return next((s.launched for s in walk(self.body) if isinstance(s, Turns)), self.grid)

    @property
    def meets(self) -> bool:
        """Do lanes meet in it?"""
        return any(s.meeting is not Meeting.NOBODY for s in walk(self.body))


def applied(expression: Expression) -> Iterator[Node]:
    """The nodes whose operators an expression applies."""
    if isinstance(expression, Apply | Folded):
        yield expression.node
    for operand in expression.operands:
        yield from applied(operand)


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, each before those inside of it."""
    for statement in body:
        yield statement
        yield from walk(statement.statements)
