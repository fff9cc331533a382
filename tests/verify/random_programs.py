"""Random programs of all that users can write, whatever the rules declare: operators, element types, shapes, layouts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from random import Random
from typing import Any

from genrw.codegen.hip.header import device_header
from genrw.engine.ir.dtypes import DTYPES, in_class
from genrw.engine.ir.types import Type
from genrw.engine.language.expr_walk import walk
from genrw.engine.library.infer import TypeProblem, infer, is_variable, show
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.monoids import bound as monoid_bound
from genrw.engine.library.rewriting import coerced
from genrw.engine.programs.build import complete
from genrw.engine.verify.attributes import AttributeDraw, near_lens, within_domain
from genrw.engine.verify.fitting import Fitting, Taken
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Const
from genrw.grammar.rw_tree import OperandDecl, OpPattern

SMALL = (1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17)
LONG = tuple(n + d for n in (32, 64, 128, 256, 512) for d in (-1, 0, 1))
LONGEST = (1000, 1024, 2048, 4096, 4097, 5000)
MOST_ELEMENTS, MOST_ROWS_SQUARED = 12_000, 1 << 18
"""Elements of a value; and those that operators may need which put each row beside itself."""
TRIES = 60
"""Draws of operands and attributes for one operator, each made to fit, until its declaration allows them."""

NOWHERE_STAGE = "nowhere"
KINDS = ("pointwise", "pointwise", "pointwise", "fold", "fold", "index_map", "index_map", None)
"""Roles of the operators that programs are made of; None stands for those without one, which rules write out."""

CPP_NAMES = [
    "nullptr",
    "__asm__",
    "asm",
    "typeof",
    "decltype",
    "consteval",
    "constinit",
    "concept",
    "requires",
    "co_await",
    "char8_t",
    "__LINE__",
    "__FILE__",
    "linux",
    "unix",
    "errno",
    "M_PI",
    "INFINITY",
    "NAN",
    "NULL",
    "EOF",
    "main",
    "int",
    "float",
    "double",
    "half",
    "auto",
    "register",
    "signed",
    "this",
    "operator",
    "template",
    "and",
    "or",
    "not",
    "xor",
    "bitand",
    "compl",
    "std",
    "size_t",
    "uint8_t",
    "printf",
    "exp",
    "max",
    "min",
    "x",
    "y",
    "i",
    "j",
    "index",
    "in",
    "out",
    "lds",
    "first2",
    "blockIdx",
    "threadIdx",
    "warpSize",
    "__shared__",
    "__half",
    "hipStream_t",
    "a.b",
    "__x",
    "_Y",
    "x_in",
    "each",
]


# ---- programs as text


@dataclass(frozen=True)
class Line:
    """One instruction: `head` is what stands before its operands, for a parameter behind its name."""

    name: str
    head: str
    operands: tuple[str, ...] | None
    type: Type
    op: str

    @property
    def is_parameter(self) -> bool:
        return self.op == "param"

    def text(self, names: Mapping[str, str]) -> str:
        """The instruction with other names for values; those that have none are numbers."""
        name = names.get(self.name, self.name)
        if self.operands is None:
            return f"{name} = {self.head} -> {written(self.type)}"
        return f"{name} = {self.head}({', '.join(names.get(o, o) for o in self.operands)})"


def parameter(name: str, type_: Type, shown: str = "") -> Line:
    """An input, called `shown` by callers."""
    return Line(name, f"@param:{shown or name}", None, type_, "param")


def written(type_: Type) -> str:
    """A tensor's type as programs write it."""
    return f"{type_.dtype}{show(type_.lens)}" + (f", {show(type_.strides)}" if type_.strides is not None else "")


PART = "part"
"""The name of a module that another one calls."""


@dataclass(frozen=True)
class RandomProgram:
    """Instructions in order and the results; those from one place up to another stand in a module of their own. `name` is that
    of the module that is called."""

    lines: tuple[Line, ...]
    results: tuple[str, ...]
    cut: tuple[int, int] | None = None
    name: str = ""

    def __repr__(self) -> str:
        return "\n" + self.text

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that it is made of."""
        return tuple(line.op for line in self.lines)

    @property
    def text(self) -> str:
        """The program as `.gen` text."""
        if self.cut is None:
            named = [f"@module {self.name}"] if self.name else []
            return "\n".join([*named, *(line.text({}) for line in self.lines), self._ending(self.results)]) + "\n"
        begin, end = self.cut
        inside = self.lines[begin:end]
        made = {line.name for line in inside}
        known = {line.name: line for line in self.lines}
        given = list(dict.fromkeys(o for line in inside for o in line.operands or () if o in known and o not in made))
        used = [*(o for line in self.lines[end:] for o in line.operands or ()), *self.results]
        taken = list(dict.fromkeys(o for o in used if o in made))
        names = {o: f"g{i}" for i, o in enumerate(given)}
        parameters = [parameter(f"g{i}", replace(known[o].type, strides=None)) for i, o in enumerate(given)]
        lines = [line.text({}) for line in self.lines[:begin]]
        lines += [f"{', '.join(taken)} = call[module={PART}]({', '.join(given)})"]
        lines += [line.text({}) for line in self.lines[end:]]
        lines += [self._ending(self.results), "", f"@module {PART}"]
        lines += [line.text(names) for line in (*parameters, *inside)]
        return "\n".join([f"@module {self.name or 'main'}", *lines, self._ending(taken)]) + "\n"

    def _ending(self, results: Sequence[str]) -> str:
        return f"@return({', '.join(results)})"

    def needed(self) -> RandomProgram:
        """The program without instructions that no result needs."""
        used = set(self.results)
        for line in reversed(self.lines):
            if line.name in used:
                used.update(line.operands or ())
        return replace(self, lines=tuple(line for line in self.lines if line.name in used), cut=None)


# ---- what can be written


@lru_cache(maxsize=8)
def writable(library: Library) -> dict[str | None, tuple[str, ...]]:
    """The operators on tensors that programs may hold as written, by role."""
    found: dict[str | None, tuple[str, ...]] = {}
    for name in library.names:
        if _is_writable(library, library.operator(name)):
            found[library.role(name)] = (*found.get(library.role(name), ()), name)
    return found


def _is_writable(library: Library, operator: Operator) -> bool:
    decl = operator.decl
    stages = (library.stages[0], NOWHERE_STAGE)
    later = decl.stages and (not set(stages) & set(decl.stages) or operator.name in _of_later_stages(library))
    refused = any(isinstance(r.condition, Const) and r.condition.value is False for r in decl.requires)
    tensors = all(o.sort in (None, "tensor") for o in decl.operands) and operator.result_sort in (None, "tensor")
    meant = operator.role is not None or decl.means is not None
    return not later and not refused and tensors and meant and operator.role in KINDS


@lru_cache(maxsize=8)
def _of_later_stages(library: Library) -> frozenset[str]:
    """The operators and families that rules take apart, but none of the first stage: rules make them, programs do not hold them."""
    first, later = set[str](), set[str]()
    for rule in library.rules:
        if isinstance(rule.left, OpPattern):
            named = first if rule.stage in (None, library.stages[0]) else later
            named.update(library.members_of(rule.left.op) or (rule.left.op,))
    return frozenset(later - first)


@lru_cache(maxsize=1)
def identifiers() -> tuple[str, ...]:
    """Names that mean something in C++ or in the device header."""
    words = re.findall(r"\b[A-Za-z_]\w*", re.sub(r"//.*", "", device_header()))
    return tuple(dict.fromkeys((*CPP_NAMES, *words)))


def shape(random: Random, rank: int | None = None) -> tuple[int, ...]:
    """Lengths of some axes: mostly short ones, one that is long."""
    rank = random.choice((0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5)) if rank is None else rank
    lens = [random.choice(SMALL[: 12 if rank < 4 else 7]) for _ in range(rank)]
    if lens and random.random() < 0.7:
        long = random.choice(LONGEST if random.random() < 0.2 else LONG)
        lens[random.choice((-1, -1, random.randrange(rank)))] = long
    if lens and random.random() < 0.01:
        lens[random.randrange(rank)] = 0
    while prod(lens) > MOST_ELEMENTS:
        place = random.randrange(rank)
        lens[place] = min(lens[place], random.choice(SMALL))
    return tuple(lens)


# ---- the writer


class Writer:
    """Writes a program forwards: an operator, then operands and attributes that its declaration allows."""

    def __init__(self, library: Library, random: Random) -> None:
        self.library, self.random = library, random
        self.dtype = random.choice((*DTYPES, "float", "half"))
        self.lens = shape(random)
        self.axes = (
            tuple(d for d in range(len(self.lens)) if random.random() < 0.5) or tuple(range(len(self.lens)))[-1:]
        )
        self.attributes = AttributeDraw(library, random, self.lens, self.dtype, {})
        self.strange = random.random() < 0.2
        self.anew = False
        self.lines: list[Line] = []
        self.taken: set[str] = set()

    def program(self, wanted: Sequence[str] = ()) -> RandomProgram:
        """A program of a few operators, those `wanted` among them where they can be."""
        count = self.random.choice((1, 2, 3, 4, 4, 5, 6, 8, 10))
        names = [*wanted, *(self._operator() for _ in range(count))]
        self.random.shuffle(names)
        for name in names:
            self._operation(name)
        if not any(line.operands is not None for line in self.lines):
            self._keep(self._leaf(self.dtype, self.lens))
        return self._ended()

    def _operator(self) -> str:
        options = writable(self.library)
        return self.random.choice(options[self.random.choice([k for k in KINDS if k in options])])

    def _ended(self) -> RandomProgram:
        """What nothing uses is returned, and now and then other values, too."""
        used = {o for line in self.lines for o in line.operands or ()}
        results = [line.name for line in self.lines if line.name not in used and not line.is_parameter]
        results = results or [self.lines[-1].name]
        if self.random.random() < 0.35:
            others = self.lines if self.random.random() < 0.2 else [v for v in self.lines if v.operands is not None]
            results += [self.random.choice(others).name for _ in range(self.random.randint(1, 2)) if others]
        self.random.shuffle(results)
        name = self.random.choice([n for n in identifiers() if n != PART]) if self.strange else ""
        program = RandomProgram(tuple(self.lines), tuple(results), name=name).needed()
        return replace(program, cut=self._cut(program)) if self.random.random() < 0.06 else program

    def _cut(self, program: RandomProgram) -> tuple[int, int] | None:
        """The part that is a module of its own: no parameters, something that is used behind it."""
        places = [i for i, line in enumerate(program.lines) if line.operands]
        if not places:
            return None
        begin = self.random.choice(places)
        end = begin + 1
        while end < len(program.lines) and program.lines[end].operands and self.random.random() < 0.8:
            end += 1
        return begin, end

    # ---- operations

    def _operation(self, name: str) -> None:
        """One operation that the operator's declaration allows, of what is there or else of new leaves; none if no draw is."""
        for attempt in range(TRIES):
            self.anew = attempt >= TRIES // 2
            before = len(self.lines), set(self.taken)
            made = self._drawn(name)
            if made is not None:
                self._keep(made)
                return
            del self.lines[before[0] :]
            self.taken = before[1]

    def _drawn(self, name: str) -> Line | None:
        found = self.library.find(name)
        assert found is not None, name
        operator, member = found
        before = len(self.lines)
        operands = self._operands(operator, member)
        if operands is None:
            return None
        try:
            taken = self._fitted(operator, member, operands, before)
            if taken is None:
                return None
            types, known = [*taken.types], taken.attributes
            attributes = complete(operator, known, types, {})
            type_ = infer(self.library, name, attributes, types, {})
        except (TypeProblem, GenrwError, KeyError, IndexError, ValueError, OverflowError):
            return None
        if not self._is_fine(operator, member, attributes, types, type_):
            return None
        shown = ", ".join(f"{k}={show(self._respelled(operator, k, v, types))}" for k, v in known.items())
        return Line(self._name(), name + (f"[{shown}]" if shown else ""), tuple(o for o, _ in operands), type_, name)

    def _fitted(
        self, operator: Operator, member: str | None, operands: Sequence[tuple[str, Type]], before: int
    ) -> Taken | None:
        """Attributes, and operands' types, that the operator's requirements allow: the parameters from line `before` on,
        which no other operation reads yet, are given other types for that."""
        types, names = [t for _, t in operands], [o for o, _ in operands]
        mine = {line.name: i for i, line in enumerate(self.lines) if i >= before and line.is_parameter}
        free = {i for i, o in enumerate(names) if o in mine and names.count(o) == 1}
        drawn = Taken(tuple(types), self._attributes(operator, types))
        taken = Fitting(operator, member, self.attributes, free | operator.attributes.keys(), {}).fitted(drawn)
        for place in free if taken is not None else ():
            line = mine[names[place]]
            self.lines[line] = replace(self.lines[line], type=taken.types[place])
        return taken

    def _attributes(self, operator: Operator, types: Sequence[Type]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for key, decl in operator.attributes.items():
            if key in operator.defaults and self.random.random() < 0.5:
                continue
            if decl.type == "axes" and types and types[0].lens == self.lens and self.random.random() < 0.6:
                known[key] = self.axes
            else:
                known[key] = coerced(operator, key, self.attributes.value(decl, operator, types, known))
        return known

    def _respelled(self, operator: Operator, name: str, value: Any, types: Sequence[Type]) -> Any:
        """Axes, now and then counted from the last."""
        kind, rank = operator.attributes[name].type, len(types[0].lens) if types else 0
        if kind not in ("axis", "axes") or self.random.random() < 0.8:
            return value
        return tuple(d - rank for d in value) if isinstance(value, tuple) else value - rank

    def _is_fine(
        self,
        operator: Operator,
        member: str | None,
        attributes: tuple[tuple[str, Any], ...],
        types: list[Type],
        type_: Type,
    ) -> bool:
        """Is an operation within its axes and domain, and affordable?"""
        for decl in operator.decl.attributes:
            value = dict(attributes)[decl.name]
            if decl.type in ("axis", "axes"):
                axes = value if isinstance(value, tuple) else (value,)
                if any(not 0 <= d < len(types[0].lens) for d in axes) or len({*axes}) < len(axes):
                    return False
        if type_.sort != "tensor" or type_.elements > MOST_ELEMENTS:
            return False
        largest = max([type_, *types], key=lambda t: t.elements)
        if operator.role is None and largest.elements * max(largest.lens, default=1) > MOST_ROWS_SQUARED:
            return False
        return within_domain(operator, member, attributes, types, {})

    # ---- operands

    def _operands(self, operator: Operator, member: str | None) -> list[tuple[str, Type]] | None:
        """Operands of types that stand together, as far as element types go."""
        count = len(operator.fixed)
        if operator.variadic is not None:
            count += self.random.choice((1, 2, 2, 3))
        bounds = dict(operator.decl.where)
        folded = self.library.monoids.get(member or "")
        bound: dict[str, str] = {}
        found: list[tuple[str, Type]] = []
        for i in range(count):
            decl = operator.operand(i)
            wanted = bound.get(decl.dtype or "", bounds.get(decl.dtype or "", decl.dtype or "any"))
            wanted = "any" if is_variable(wanted) else wanted
            if folded is not None and wanted == "any":
                wanted = monoid_bound(folded)
            operand = self._operand(decl, wanted, [t for _, t in found], operator)
            if operand is None:
                return None
            found.append(operand)
            if decl.dtype is not None and is_variable(decl.dtype):
                bound[decl.dtype] = operand[1].dtype
        return found

    def _operand(
        self, decl: OperandDecl, wanted: str, others: Sequence[Type], operator: Operator
    ) -> tuple[str, Type] | None:
        """A value of an element type or class that stands beside others: one that is there, a number, or a new leaf."""
        fitting = [v for v in self.lines if in_class(v.type.dtype, wanted)]
        if decl.sort is None and others:
            fitting = [v for v in fitting if _meet(v.type.lens, others[0].lens)]
        if fitting and not self.anew and self.random.random() < (0.85 if not others else 0.6):
            made = [v for v in fitting[-5:] if v.operands is not None]
            line = self.random.choice(made if made and self.random.random() < 0.6 else fitting[-5:])
            return line.name, line.type
        dtype = self._dtype(wanted)
        if decl.sort is None and others and wanted in DTYPES and self.random.random() < 0.15:
            return show(self._number(dtype)), Type("tensor", dtype)
        line = self._leaf(dtype, self._leaf_lens(decl, others, operator))
        self._keep(line)
        return line.name, line.type

    def _dtype(self, wanted: str) -> str:
        if in_class(self.dtype, wanted) and self.random.random() < 0.85:
            return self.dtype
        return self.random.choice([d for d in DTYPES if in_class(d, wanted)])

    def _leaf_lens(self, decl: OperandDecl, others: Sequence[Type], operator: Operator) -> tuple[int, ...]:
        if others and (decl.sort is None or operator.variadic is not None):
            lens = others[0].lens
            if decl.sort is None and self.random.random() < 0.35:
                lens = tuple(n if self.random.random() < 0.5 else 1 for n in lens)
                lens = lens[self.random.choice((0, 0, len(lens), self.random.randint(0, len(lens)))) :]
            elif decl.sort is not None and lens and self.random.random() < 0.5:
                lens = tuple(self.random.choice((n, n, *SMALL)) for n in lens)
            return lens
        if others and self.random.random() < 0.6:
            return near_lens(self.random, others[0].lens)
        if not others and self.random.random() < 0.75:
            return self.lens
        lengths = _required(operator)
        if lengths and self.random.random() < 0.3:
            return (self.random.choice(lengths),)
        return shape(self.random, self.random.choice((0, 1, 1, 2, 3, 4)))

    def _leaf(self, dtype: str, lens: tuple[int, ...]) -> Line:
        """A parameter, or a constant of one number or of a few."""
        if self.random.random() < 0.15:
            count = prod(lens) if 0 < prod(lens) <= 12 and self.random.random() < 0.7 else 1
            values = tuple(self._number(dtype) for _ in range(count))
            return Line(self._name(), f"@literal{show(values)}", None, Type("tensor", dtype, lens), "literal")
        strides = self._strides(lens) if lens and self.random.random() < 0.25 else None
        name = self._name()
        return parameter(name, Type("tensor", dtype, lens, strides), self._name() if self.strange else name)

    def _number(self, dtype: str) -> Any:
        """A number of a type, which prints as one."""
        if DTYPES[dtype].is_float:
            return self.random.choice((0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-5, 0.1, 7.0, float("inf"), -0.0))
        return self.attributes.number(dtype)

    def _strides(self, lens: Sequence[int]) -> tuple[int, ...]:
        """Strides of a tensor that lies in another order, with gaps, or is repeated along axes."""
        order = (
            self.random.sample(range(len(lens)), len(lens)) if self.random.random() < 0.6 else range(len(lens))[::-1]
        )
        strides, step = [0] * len(lens), 1
        for d in order:
            strides[d] = step
            step *= max(1, lens[d]) + self.random.choice((0, 0, 1, 3))
        for d in range(len(lens)):
            if self.random.random() < 0.15:
                strides[d] = 0
        return tuple(strides)

    # ---- names

    def _keep(self, line: Line) -> None:
        self.lines.append(line)

    def _name(self) -> str:
        name = f"v{len(self.taken)}"
        if self.strange and self.random.random() < 0.5:
            name = self.random.choice(identifiers() if self.random.random() < 0.5 else CPP_NAMES)
        while name in self.taken or name in ("true", "false", "inf", "nan"):
            name += "_"
        self.taken.add(name)
        return name


def _meet(a: Sequence[int], b: Sequence[int]) -> bool:
    """Do shapes broadcast to one?"""
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


@lru_cache(maxsize=512)
def _required(operator: Operator) -> tuple[int, ...]:
    """The whole numbers that the requirements of an operator name: lengths, some of them."""
    found = (node.value for r in operator.decl.requires for node in walk(r.condition) if isinstance(node, Const))
    return tuple(value for value in found if type(value) is int and value > 0)


def random_program(library: Library, seed: object, wanted: Sequence[str] = ()) -> RandomProgram:
    """The program of a seed, with the operators that are `wanted` where these can be."""
    return Writer(library, Random(repr(seed))).program(wanted)


def random_programs(library: Library, seed: int, first: int = 0) -> Iterator[RandomProgram]:
    """Programs one after the other, such that all operators come in turn."""
    names = [name for named in writable(library).values() for name in named]
    number = first
    while True:
        yield random_program(library, (seed, number), [names[number % len(names)]])
        number += 1
