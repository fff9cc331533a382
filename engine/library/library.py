"""The declarations of a set of rule files, looked up by name: operators, monoids, targets, classes, rules, stages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, TypeVar

from genrw.engine.ir.dtypes import same_value
from genrw.engine.ir.nodes import Node
from genrw.engine.language.expr import Compiler, Evaluator
from genrw.engine.language.expr_walk import free_names, words_compared
from genrw.engine.language.functions import Function, describe
from genrw.engine.language.members import Members, lasting
from genrw.engine.library.context import EMPTY, Record
from genrw.engine.library.instructions import Instruction
from genrw.engine.library.one_process import OfOneProcess
from genrw.engine.library.rows import rules_among
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.expr_tree import Call, Const, Expr, IfElse, ListExpr, Name
from genrw.grammar.precedence import SIGNS
from genrw.grammar.rw_tree import (
    AttributeDecl,
    DefineDecl,
    ImportDecl,
    LetDecl,
    MonoidDecl,
    OpDecl,
    OperandDecl,
    OpPattern,
    RuleDecl,
    RuleFile,
)
from genrw.grammar.source import Span

_Made = TypeVar("_Made")

ROLES = {
    "pointwise": "computes each element from the operands' elements at the same index",
    "array": "computes all elements of a lane's arrays at once; what is one value stands beside each of them",
    "spread": "its operand's value, once for each element of a lane's share",
    "unspecified": "any value: nothing may depend on which",
    "identity": "what a fold with its monoid starts from",
    "fold": "combines many elements into one with a monoid: the whole row, or a lane's, wave's or block's share",
    "index_map": "its element at an index is its operand's element at another index",
    "element": "a tensor's element at an index; its parts are the tensor and the index",
    "made": "a tensor as far as a kernel makes it; its parts are the tensor and the place where",
    "place": "where a kernel makes a value: at a lane's own element, in its row, there but turned, or elsewhere",
    "read": "reads memory",
    "write": "writes memory; its parts are the buffer, the index and the value",
    "alloc": "reserves workgroup memory, or that of a buffer which is done with, its part",
    "argument": "a tensor as the launcher describes it to the kernel, an argument besides its address",
    "sync": "needs all lanes of a wave or block to reach it together; no other operator's text has lanes meet",
    "index_leaf": "an index that depends on which lane, wave or group runs, or on a loop's step",
    "turn": "where a workgroup is that takes several's work in turns: whose turn it is, or how many it has taken",
    "kernel": "stands for a whole kernel; its attributes are the kernel's schedule",
    "boundary": "where a program meets its surroundings: inputs, constants, results, calls",
}


PARTS_OF_ROLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "pointwise": (("apart",),),
    "spread": (("operand",),),
    "fold": (("operand",), ("operand", "in_place"), ("in_place", "attribute")),
    "index_map": (("operand",), ("scattered", "in_order", "in_place"), ("attribute",)),
    "element": (("operand",), ("operand",)),
    "made": (("operand",), ("operand",)),
    "place": (("element", "in_row", "turned", "elsewhere", "held"),),
    "read": (
        ("operand",),
        ("operand",),
        ("operand", "spilled", "whole"),
        ("operand", "whole"),
        ("spilled", "whole"),
        ("whole",),
    ),
    "write": (("operand",), ("operand",), ("operand",), ("in_chunks", "whole")),
    "alloc": (("operand",),),
    "argument": (("operand",), *(("attribute",),) * 6),
    "sync": (("wave", "block"), ("waiting",)),
    "index_leaf": (("attribute",),) * 4,
    "turn": (("group", "number"),),
    "kernel": (("attribute",),) * 6,
    "boundary": (("input", "constant", "scalar", "number", "result", "effects", "call"), ("kernel",)),
}
"""What the parts of a role may be, in order: an operand, an attribute, or one of some words."""
LEAST_PARTS = {
    "spread": 1,
    "fold": 1,
    "element": 2,
    "made": 2,
    "place": 1,
    "read": 2,
    "write": 2,
    "argument": 4,
    "turn": 1,
    "sync": 1,
    "boundary": 1,
}
"""How many parts of a role have to be named."""
NOWHERE = "nowhere"
"""What stands for no stage where an operator says at which it may be."""
KERNEL_PARTS = ("block", "grid", "steps", "held", "resident", "launched")
"""What the parts of a kernel's role are, in order: a workgroup's lanes, the workgroups, the steps of the loop over a row, the
elements of a share that registers hold (0: all), the workgroups that a unit is to have room for (0: any number), and those that
are launched, if each may take the work of several in turn (0: all are)."""
ARGUMENT_PARTS = ("tensor", "begin", "box", "swizzle", "places", "steps", "begins")
"""What the parts of an argument's role are, in order: the tensor that is described, how many elements behind its first one the
description begins, the lengths of the boxes that are copied at a time, and the bytes of the rows whose chunks are exchanged there. Of a
picture besides: how many places are walked along its axes, how far apart they are, and where they begin."""
DEFAULT = "default"
"""The entry of the target that programs are lowered for which name none; a target does not inherit it."""
LAUNCH_PARTS = ("call", "kernel")
"""The parts of the operator by which a main module calls its kernels."""


@dataclass(frozen=True, eq=False)
class ExpressionScope:
    """What expressions of a library may call: its `let` helpers and the functions on its monoids."""

    lets: Mapping[str, LetDecl]
    functions: Mapping[str, Function]

    def compile(self, expr: Expr) -> Evaluator:
        """The expression, compiled when it first runs."""
        return self._compiler.later(expr)

    @cached_property
    def _compiler(self) -> Compiler:
        return Compiler(self.lets, self.functions)


@dataclass(frozen=True, eq=False)
class CompiledRequirement:
    """What an operator requires, the names that it asks for, and what is said where it does not hold."""

    holds: Evaluator
    asked: frozenset[str]
    message: str


def nearness(op: OpDecl) -> float | None:
    """The relative error that an operator says it may have."""
    return float(op.within.value) if isinstance(op.within, Const) and not isinstance(op.within.value, str) else None


@dataclass(frozen=True, eq=False)
class Operator:
    """A declared operator, compiled. `family` is the placeholder of a family's name, "op" in `reduce_{op}`."""

    decl: OpDecl
    scope: ExpressionScope

    @property
    def name(self) -> str:
        return self.decl.name

    @property
    def role(self) -> str | None:
        return self.decl.role

    @cached_property
    def attributes(self) -> dict[str, AttributeDecl]:
        return {a.name: a for a in self.decl.attributes}

    @cached_property
    def variadic(self) -> OperandDecl | None:
        """The operand that stands for any number, if the last one does."""
        operands = self.decl.operands
        return operands[-1] if operands and operands[-1].variadic else None

    @cached_property
    def fixed(self) -> tuple[OperandDecl, ...]:
        """The operands that are always there."""
        return self.decl.operands[:-1] if self.variadic else self.decl.operands

    def operand(self, position: int) -> OperandDecl:
        """The declaration of the operand at a position."""
        if position < len(self.fixed):
            return self.fixed[position]
        assert self.variadic is not None
        return self.variadic

    @cached_property
    def monoid_name(self) -> str | None:
        """What names the monoid that the operator folds with: an attribute, or the placeholder of its family."""
        if self.decl.family is not None and self.decl.family_type == "monoid":
            return self.decl.family
        return next((a.name for a in self.decl.attributes if a.type == "monoid"), None)

    @property
    def permutes(self) -> bool:
        """Does an attribute say which axis of the operand each axis of the result is?"""
        return self.role == "index_map" and len(self.decl.role_parts) > 2

    @cached_property
    def defaults(self) -> dict[str, Evaluator]:
        """The attributes' defaults, as functions of the context."""
        return {a.name: self.scope.compile(a.default) for a in self.decl.attributes if a.default is not None}

    def has_default(self, name: str, value: Any, names: Mapping[str, Any]) -> bool | None:
        """Is an attribute's value its default? `names` are those that defaults may use; None if more is needed."""
        if name not in self.defaults:
            return False
        try:
            return same_value(self.defaults[name](names), value)
        except (GenrwError, KeyError):
            return None

    @cached_property
    def result_sort(self) -> str | None:
        """The sort of the result, None for pointwise operators, whose result is of their operands' sort."""
        return self.decl.result.function if isinstance(self.decl.result, Call) else None

    @cached_property
    def result_args(self) -> tuple[Evaluator, ...]:
        """What computes the parts of the result type."""
        result = self.decl.result
        args: tuple[Expr, ...] = result.args if isinstance(result, Call) else (result,)
        return tuple(self.scope.compile(arg) for arg in args)

    @cached_property
    def result_dtype(self) -> str:
        """For pointwise operators: the dtype variable, dtype or dtype attribute that is the result's."""
        result = self.decl.result
        if not isinstance(result, Name):
            raise error("a result is an element type, or a call such as `tensor(T, lens)`", result.span)
        return result.name

    @cached_property
    def converts(self) -> bool:
        """Does the operator give its one operand in a type of its choice?"""
        return self.result_sort is None and self.result_dtype in self.attributes

    @cached_property
    def keeps_number(self) -> bool:
        """Does the operator convert its one operand, and nothing else? The bits of a number are another number."""
        means = self.decl.means
        return (
            self.converts
            and isinstance(means, Call)
            and means.function == "convert"
            and isinstance(means.args[0], Name)
        )

    @cached_property
    def chosen(self) -> tuple[int, int, int] | None:
        """Of an operator that gives one operand or another, as a third one says: the positions of that one, of what stands
        where it holds, and of what stands elsewhere."""
        means = self.decl.means
        if not isinstance(means, IfElse):
            return None
        parts = (means.condition, means.then, means.otherwise)
        names = [operand.name for operand in self.decl.operands]
        if not all(isinstance(part, Name) and part.name in names for part in parts):
            return None
        condition, then, otherwise = (names.index(part.name) for part in parts if isinstance(part, Name))
        return condition, then, otherwise

    @cached_property
    def requirements(self) -> tuple[CompiledRequirement, ...]:
        return tuple(
            CompiledRequirement(self.scope.compile(r.condition), frozenset(free_names(r.condition)), r.message)
            for r in self.decl.requires
        )

    @cached_property
    def domain(self) -> tuple[Evaluator, ...]:
        """What computes whether values are those that the operator is for."""
        return tuple(self.scope.compile(condition) for condition in self.decl.domain)

    @cached_property
    def cost(self) -> Evaluator | None:
        return self.scope.compile(self.decl.cost) if self.decl.cost is not None else None

    def cost_of(self, env: Mapping[str, Any]) -> float:
        """The cost for some attributes and a context, of an operator that declares one; GenrwError where that is none."""
        assert self.cost is not None
        assert self.decl.cost is not None
        value = self.cost(env)
        if not is_cost(value):
            found = value if isinstance(value, int | float) and not isinstance(value, bool) else describe(value)
            remedy = "a cost is a number above 0: write max(…, 0.01) around one that may be less"
            raise error(f"the cost of `{self.name}` is {found} here", self.decl.cost.span, remedy)
        return float(value)

    @cached_property
    def terms(self) -> dict[str, Evaluator]:
        """What the cost is made of, by name, as functions of the attributes and the context."""
        return {t.name: self.scope.compile(t.value) for t in self.decl.terms}

    @cached_property
    def fixed_cost(self) -> float | None:
        """The cost of operators whose cost is a number or not given; None where it depends on the kernel."""
        cost = self.decl.cost
        if cost is None:
            return 1.0
        return float(cost.value) if isinstance(cost, Const) and isinstance(cost.value, (int, float)) else None

    def legal_at(self, stage: str) -> bool:
        """May the stage's output hold this operator?"""
        return not self.decl.stages or stage in self.decl.stages


def is_cost(value: Any) -> bool:
    """Is a value one that a cost may have?"""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


@lasting
@dataclass(frozen=True, eq=False)
class Target:
    """A machine to compile for. `values` holds its own and its inherited entries, evaluated. `is_default` marks the target
    of programs that name none."""

    name: str
    values: Mapping[str, Any]
    is_default: bool = False

    def member(self, name: str) -> object:
        return self.values[name]


def _constant(expr: Expr | None) -> Any:
    """The value of a constant, or of a list of such; None of all else."""
    if isinstance(expr, ListExpr):
        values = tuple(map(_constant, expr.items))
        return None if None in values else values
    return expr.value if isinstance(expr, Const) else None


def _unscheduled(listing: Span, name: str) -> GenrwError:
    """The error for what a schedule lacks, in a program that was written behind the choice of its schedule."""
    return error(
        f"lowering this program takes a schedule with `{name}`",
        listing,
        f"begin it with a header: @module NAME [stage=…, schedule={{{name}=…, …}}]",
    )


@dataclass(frozen=True, eq=False)
class Library(OfOneProcess):
    """Everything that a set of `.rw` files declares. `foreign` names the operators and instructions that did not
    come with genrw, `foreign_rules` the rules. `dialects` are the imports of each foreign language,
    by name. `signs` says which operator is written with a sign; in `files` operators
    stand in the place of signs, `read` are the files as they were read."""

    what = "a library of rules"
    instead = "pass the folders of the rules on, and load them there"

    files: tuple[RuleFile, ...]
    operators: Mapping[str, Operator]
    families: tuple[Operator, ...]
    monoids: Mapping[str, MonoidDecl]
    targets: Mapping[str, Target]
    scope: ExpressionScope
    classes: Mapping[str, frozenset[str]]
    stages: tuple[str, ...]
    rules: tuple[RuleDecl, ...]
    dialects: Mapping[str, Mapping[str, tuple[ImportDecl, ...]]] = field(default_factory=dict)
    defines: Mapping[str, DefineDecl] = field(default_factory=dict)
    instructions: Mapping[str, Instruction] = field(default_factory=dict)
    signs: Mapping[str, str] = field(default_factory=dict)
    read: tuple[RuleFile, ...] = ()
    digest: str = ""
    foreign: frozenset[str] = frozenset()
    foreign_rules: frozenset[str] = frozenset()
    _found: dict[str, tuple[Operator, str | None] | None] = field(default_factory=dict, repr=False)
    _of_rules: dict[Any, tuple[RuleDecl, Any]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def written_rules(self) -> tuple[RuleDecl, ...]:
        """The rules as their files have them: `rules` are spelled out."""
        return tuple(rule for file in self.files for rule in rules_among(file.declarations))

    def imports_beside(self, declaration: ImportDecl) -> Mapping[str, tuple[ImportDecl, ...]]:
        """The imports that a template of an import may use: those of its own dialect."""
        return self.dialects.get(declaration.dialect or "", {})

    def shares_terms(self, other: Library) -> bool:
        """Do the libraries differ in nothing but their rules? So it is of one that another was taken over from."""
        return self.operators is other.operators

    def find(self, name: str) -> tuple[Operator, str | None] | None:
        """The operator of a name and, for one of a family, the member's name (`reduce_sum`: "sum")."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def of_rule(self, rule: RuleDecl, make: Callable[[RuleDecl, Library], _Made]) -> _Made:
        """What a function makes of a rule and this library, made once."""
        # The rule is kept, so that no other one gets its identity.
        key = make, id(rule)
        if key not in self._of_rules:
            self._of_rules[key] = rule, make(rule, self)
        made: _Made = self._of_rules[key][1]
        return made

    def _find(self, name: str) -> tuple[Operator, str | None] | None:
        if name in self.operators:
            return self.operators[name], None
        for family in self.families:
            before, after = family_affixes(family.name)
            member = name[len(before) : len(name) - len(after)]
            if name.startswith(before) and name.endswith(after) and member in self.monoids:
                return family, member
        return None

    def operator(self, name: str) -> Operator:
        """The operator of a name that is known to be declared."""
        found = self.find(name)
        assert found is not None, name
        return found[0]

    def part(self, name: str, place: int) -> int:
        """The position of the operand that plays a part of an operator's role: 0 is the buffer that a write fills."""
        decl = self.operator(name).decl
        return [o.name for o in decl.operands].index(decl.role_parts[place])

    def description(self, node: Node) -> Mapping[str, Any]:
        """How an operator of role `argument` describes its tensor: the parts of its role that are attributes."""
        names = self.operator(node.op).decl.role_parts
        return {part: node.attribute(name) for part, name in list(zip(ARGUMENT_PARTS, names, strict=False))[1:]}

    def role(self, name: str) -> str | None:
        """The role of an operator."""
        return self.operator(name).role

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every operator name, families written out."""
        return tuple(self.operators) + tuple(n for f in self.families for n in self.family_members(f))

    def family_members(self, family: Operator) -> tuple[str, ...]:
        before, after = family_affixes(family.name)
        return tuple(f"{before}{member}{after}" for member in self.monoids)

    def boundary(self, part: str) -> Operator:
        """The operator that plays a part at the program's boundary: input, constant, number, result, effects, call."""
        found = self._boundaries.get(part)
        if found is None:
            raise error(f"no operator has the role `boundary({part})`", remedy="declare one")
        return found

    @cached_property
    def _boundaries(self) -> dict[str, Operator]:
        boundaries = (op for op in self.operators.values() if op.role == "boundary")
        return {part: op for op in boundaries for part in op.decl.role_parts[:1]}

    @cached_property
    def element_operators(self) -> frozenset[str]:
        """The operators that take one element of a tensor."""
        return frozenset(op.name for op in self.operators.values() if op.role == "element")

    @cached_property
    def loop_counters(self) -> frozenset[str]:
        """The operators that count the steps of a loop."""
        return frozenset(op.name for op in self.operators.values() if op.role == "index_leaf" and op.decl.role_parts)

    @cached_property
    def launch(self) -> Operator:
        """The operator by which a main module calls a kernel; GenrwError if there is none."""
        calls = (op for op in self.operators.values() if op.role == "boundary" and op.decl.role_parts == LAUNCH_PARTS)
        found = next(calls, None)
        if found is None:
            raise error(f"no operator has the role `boundary({', '.join(LAUNCH_PARTS)})`", remedy="declare one")
        return found

    @cached_property
    def fusing_stage(self) -> str | None:
        """The stage that cuts programs into kernels: the first whose rules say what kernels make; None without any."""
        made = {op.name for op in self.operators.values() if op.role == "made"}
        asking = [r for r in self.rules if isinstance(r.left, OpPattern) and r.left.op in made]
        named = {stage for rule in asking for stage in rule.stages}
        return next((stage for stage in self.stages if stage in named), None)

    @cached_property
    def lane_stages(self) -> tuple[str, ...]:
        """The stages at which there are values of lanes: from the first on whose rules take elements of tensors."""
        roots = [(r.left.op, r.stages) for r in self.rules if isinstance(r.left, OpPattern)]
        named = {stage for op, stages in roots if op in self.element_operators for stage in stages}
        first = next((place for place, stage in enumerate(self.stages) if stage in named), len(self.stages))
        return self.stages[first:]

    def target(self, name: str) -> Target:
        """A target by name; GenrwError if there is none."""
        if name not in self.targets:
            raise error(f"unknown target `{name}`", remedy=f"targets are {', '.join(self.targets)}")
        return self.targets[name]

    @cached_property
    def default_target(self) -> str:
        """The target of programs that name none: the one that says `default true`, else the first; GenrwError if there is
        no target."""
        if not self.targets:
            raise error("the rules declare no target", remedy="declare one: `target NAME`")
        return next((name for name, target in self.targets.items() if target.is_default), next(iter(self.targets)))

    def suggest(self, name: str, others: Iterable[str] = ()) -> str | None:
        """A remedy that names a similar operator, one of `others` among them, or None."""
        close = get_close_matches(name, (*self.names, *others), n=1)
        return f"did you mean `{close[0]}`?" if close else None

    def unknown_operator(self, name: str, span: Span, remedy: str | None = None) -> Diagnostic:
        """What to say of a name, or of a sign between terms, that no operator has."""
        if name not in SIGNS:
            instead = remedy or self.suggest(name) or "docs/operators.md lists the operators"
            return Diagnostic(f"unknown operator `{name}`", span, instead)
        known = f"the signs are {' '.join(self.signs)}; call other operators by their names"
        return Diagnostic(f"no operator is written `{name}`", span, known if self.signs else "call it by its name")

    @cached_property
    def kernel_operators(self) -> tuple[Operator, ...]:
        """The operators that stand for kernels: their attributes are kernels' schedules."""
        return tuple(op for op in self.operators.values() if op.role == "kernel")

    @cached_property
    def _schedule_parts(self) -> Mapping[str, str]:
        """The schedule's entry that plays each part of the kernel's role."""
        named = (op.decl.role_parts for op in self.kernel_operators)
        return dict(zip(KERNEL_PARTS, next(filter(None, named), ()), strict=False))

    def launch_entry(self, schedule: Mapping[str, Any], part: str, default: int) -> int:
        """What a schedule says of a part of `KERNEL_PARTS`, or the default where it says nothing."""
        entry = self._schedule_parts.get(part)
        return int(schedule.get(entry, default)) if entry else default

    @cached_property
    def _schedule_defaults(self) -> Mapping[str, Any]:
        """The constant defaults of kernels' attributes."""
        declared = [a for op in self.kernel_operators for a in op.decl.attributes]
        return {a.name: value for a in declared if (value := _constant(a.default)) is not None}

    @cached_property
    def _derived_entries(self) -> Mapping[str, Evaluator]:
        """The defaults of kernels' attributes that depend on others of these, or on the target, and on nothing else."""
        found: dict[str, Evaluator] = {}
        for op in self.kernel_operators:
            known = {*op.attributes, "target"}
            defaults = ((a.name, a.default) for a in op.decl.attributes if a.default is not None)
            found |= {n: op.defaults[n] for n, d in defaults if free_names(d) <= known and _constant(d) is None}
        return found

    def whole_schedule(self, schedule: Mapping[str, Any], target: Target) -> dict[str, Any]:
        """A schedule with the entries that it does not give and that follow from the others."""
        entries = {**self._schedule_defaults, **schedule}
        for name, default in self._derived_entries.items():
            if name not in entries:
                try:
                    entries[name] = default({**entries, "target": target})
                except (GenrwError, KeyError):
                    continue  # What it follows from is not given.
        return entries

    def told_schedule(self, schedule: Mapping[str, Any], target: Target) -> dict[str, Any]:
        """A schedule without the entries that follow from the others."""
        told = {
            k: v for k, v in schedule.items() if k not in self._schedule_defaults or v != self._schedule_defaults[k]
        }
        names = {**schedule, "target": target}
        derived = {k: default(names) for k, default in self._derived_entries.items() if k in told}
        return {k: v for k, v in told.items() if k not in derived or v != derived[k]}

    @staticmethod
    def names_of_kernel(schedule: Mapping[str, Any]) -> dict[str, Any]:
        """What a kernel's costs see of its schedule: each entry, and all of them as `schedule`."""
        return {**schedule, "schedule": Members(schedule)}

    def schedule_record(self, schedule: Mapping[str, Any], target: Target, listing: Span | None = None) -> Record:
        """A kernel's schedule as rules see it; without entries where there is none. `listing` is the text of a program
        that begins behind the choice of its schedule: what the schedule lacks is missing there."""
        absent = partial(_unscheduled, listing) if listing is not None else None
        if schedule:
            return Record.of(self.whole_schedule(schedule, target), absent)
        return EMPTY if absent is None else Record.of({}, absent)

    @cached_property
    def policies(self) -> tuple[str, ...]:
        """The policies that rules ask for, in alphabetical order."""
        asked = [e for r in self.rules for e in (r.guard, *(b.value for b in (*r.with_, *r.for_))) if e is not None]
        return tuple(sorted({word for e in asked for word in words_compared(e, "policy", self.scope.lets)}))

    @cached_property
    def scheduling_stage(self) -> str | None:
        """The stage at which kernels get their schedules; None without any."""
        chosen = [self.stages.index(s) for op in self.kernel_operators for s in op.decl.stages if s in self.stages]
        return self.stages[max(chosen)] if chosen else None

    @property
    def schedules_follow_fusing(self) -> bool:
        """Do kernels get their schedules as soon as programs are cut into them?"""
        following = dict(zip(self.stages, self.stages[1:], strict=False))
        return self.scheduling_stage is not None and following.get(self.fusing_stage or "") == self.scheduling_stage

    def is_scheduled(self, stage: str) -> bool:
        """Do programs at a stage have a schedule?"""
        first = self.scheduling_stage
        return stage in self.stages and first is not None and self.stages.index(stage) >= self.stages.index(first)

    @cached_property
    def context_stages(self) -> dict[str, tuple[str, ...]]:
        """The stages whose rules know the parts of the context that are not always there."""
        before = zip(self.stages, self.stages[1:], strict=False)
        return {"schedule": tuple(s for last, s in before if self.is_scheduled(last)), "space": self.stages[1:]}

    def members_of(self, class_name: str) -> frozenset[str] | None:
        """The operators of a class or role; None if there is no such class."""
        if class_name in self.classes:
            return self.classes[class_name]
        return self._by_role[class_name] if class_name in ROLES else None

    @cached_property
    def _by_role(self) -> dict[str, frozenset[str]]:
        """The operators of each role."""
        found: dict[str, set[str]] = {role: set() for role in ROLES}
        for name in self.names:
            role = self.role(name)
            if role in found:
                found[role].add(name)
        return {role: frozenset(names) for role, names in found.items()}


_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def family_affixes(name: str) -> tuple[str, str]:
    """What stands before and after the placeholder of a family's name."""
    match = _PLACEHOLDER.search(name)
    assert match is not None, name
    return name[: match.start()], name[match.end() :]
