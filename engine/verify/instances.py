"""Random terms that a rule's left side matches: well-typed, with leaves of any type and shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from genrw.engine.ir.dtypes import DTYPES, in_class
from genrw.engine.ir.nodes import Attributes, Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.expr import free_names
from genrw.engine.language.expr_walk import member_uses
from genrw.engine.library.arities import Arities, rest_counts
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.rewriting import coerced
from genrw.engine.library.sides import conditions
from genrw.engine.library.variants import Variant, nodes, pattern_operators, variants
from genrw.engine.programs.build import attribute_problem, complete, input_node
from genrw.engine.verify.attributes import NUMBERS, AttributeDraw, near_lens, within_domain
from genrw.engine.verify.choices import Choices
from genrw.engine.verify.examples import Hint, example_modules, hints
from genrw.engine.verify.facts import Facts
from genrw.engine.verify.fitting import Fitting, Taken
from genrw.engine.verify.sides import TermMatch, number_node, shared
from genrw.engine.verify.surroundings import WAVES, Headers, KernelContext, draw
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Call, Const, Name
from genrw.grammar.rw_tree import NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern

LONGEST = 9
MOST_AXES = 4
_MOST_OPERANDS = 4
_ATTRIBUTE_TRIES, _TRIES_AS_DRAWN = 8, 5
"""Draws of an operation's attributes, and how many of them are taken as they are; the later ones are made to fit."""
_WIDEST_SHARE = 32
_LONGEST_SHARE = 256
_SAME = 0.2
_AS_SHOWN = 0.9
"""How often what an example shows is taken as it is where choices say that examples are shown."""
_NO_SHAPE = 0.7
"""How often the constant that a number of a rule stands for has no axes."""
_TRIVIAL = 0.8
"""How often terms are drawn anew whose tensors have a single element: most attributes fit those."""
_AS_LONG = 0.25
"""How often an axis is as long as one before it: what is said of one axis may hold of another only by its length."""
_MOST_ELEMENTS = 1 << 15
_USUAL_TYPES = ("float", "float", "half", "half", "bf16", "int32", "double", "int64", "int8", "uint8", "bool", "uint32")
_NARROW_TYPES = tuple(d for d, t in DTYPES.items() if t.is_float and t.compute != d)
_LARGE_NUMBERS = ((1 << 31) - 1, 1 << 30, 1 << 28, -(1 << 30))
_LARGE_RANGES = ((0, (1 << 31) - 1), (-(1 << 31), 7), (0, 1 << 29), (-(1 << 29), 1 << 29))
"""What an index or a number is, so that what is made of it may need more than 32 bits."""
_RANGES = ((0, 7), (0, 63), (0, 255), (-9, 20), (0, 0), (3, 3), (0, 1000), (-64, 64))


class NoInstance(Exception):
    """The draws did not come to a well-typed term."""


@dataclass
class Instance:
    """A match, what it stands in, and the ranges of its index leaves by identity."""

    match: TermMatch
    surroundings: KernelContext
    ranges: dict[int, dict[str, int]]


_EMPTY = 0.3
"""How often tensors have no elements where a guard asks how many there are."""


@dataclass
class Instances:
    """Draws instances of one rule, half of them of types that round early if `narrow`. What operators take is made to fit if
    it does not after some draws, unless `as_drawn`."""

    library: Library
    rule: RuleDecl
    waves: Sequence[int] = WAVES
    missing: bool = False
    longest: int = LONGEST
    narrow: bool = False
    most_axes: int = MOST_AXES
    as_drawn: bool = False
    modules: list[Module] = field(init=False)
    empty: bool = field(init=False)

    def __post_init__(self) -> None:
        self.headers = Headers.of(self.library, self.rule)
        self.odd = self.rule.guard is not None and "target" in free_names(self.rule.guard)
        asked = member_uses(self.rule.guard, self.library.scope.lets) if self.rule.guard is not None else ()
        self.empty = any(member == "elements" for _, member in asked)
        self.modules = list(example_modules(self.library, self.rule))
        self.stage = next((s for s in self.rule.stages if s in self.library.stages), "")
        stages, fusing = self.library.stages, self.library.fusing_stage
        self.is_last = self.stage in stages[-1:]
        self.in_kernel = fusing is not None and stages.index(self.stage) > stages.index(fusing)
        leaves = [op for op in self.library.operators.values() if op.result_sort == "index" and not op.decl.operands]
        self.index_sizes = [op.result_args[0] for op in leaves if op.result_args]
        counts = rest_counts(self.rule, self.library, Arities.up_to(_MOST_OPERANDS), frozenset(self.library.names))
        self.variants = list(variants(self.rule, self.library, counts))
        self.hints = [
            hints(self.library, self.rule, v.left, self.modules) if isinstance(v.left, OpPattern) else []
            for v in self.variants
        ]

    def draw(self, random: Choices) -> Instance:
        """One instance, attributes and numbers that the rule names those wanted; NoInstance if the draws do not fit
        together."""
        place = random.randrange(len(self.variants))
        known = self.hints[place]
        hint = random.choice(known) if known and (random.shown or random.random() < 0.75) else Hint()
        return _Draw(self, self.variants[place], hint, random).instance()

    def shown(self, seed: str) -> tuple[Instance, Choices] | None:
        """An instance that is mostly as an example shows, and its choices; None if the draws do not fit together."""
        choices = Choices(seed, shown=True)
        try:
            return (self.draw(choices), choices) if any(self.hints) else None
        except NoInstance:
            return None

    def enlarged(self, instance: Instance, choices: Choices) -> Iterator[tuple[Instance, Choices]]:
        """The instances that the same choices lead to in the last stage with one of the rule's indices or numbers large."""
        operands = [o.value for node in nodes(self.rule.left) for o in node.operands if isinstance(o, NumberPattern)]
        numbers = sorted({value.name for value in operands if isinstance(value, Name)})
        indices = sorted({str(n.attribute("name")) for n in instance.match.leaves if n.type.sort == "index"})
        wanted: list[tuple[str, Any]] = [(name, number) for name in numbers for number in _LARGE_NUMBERS]
        wanted += [(name, ends) for name in indices for ends in _LARGE_RANGES]
        for name, value in wanted if self.is_last else ():
            again = choices.again(name, choices.taken, {**choices.wanted, name: value})
            try:
                yield self.draw(again), again
            except NoInstance:
                continue

    def drawn(self, seed: str, most: int) -> Iterator[tuple[int, Choices, Instance]]:
        """Instances from so many draws, with the number of the draw and its choices."""
        for number in range(most):
            choices = Choices(f"{seed}/{number}")
            try:
                yield number, choices, self.draw(choices)
            except NoInstance:
                continue


class _Draw:
    """One instance being drawn."""

    def __init__(self, source: Instances, variant: Variant, hint: Hint, random: Choices) -> None:
        self.library, self.rule, self.variant = source.library, source.rule, variant
        self.hint, self.random, self.wanted = hint, random, random.wanted
        self.missing, self.odd, self.as_drawn = source.missing, source.odd, source.as_drawn
        self.longest, self.most_axes = source.longest, source.most_axes
        self.empty = source.empty
        self.index_sizes, self.stage, self.in_kernel = source.index_sizes, source.stage, source.in_kernel
        self.shrunk = self._shrunk()
        self.lens = self._base_lens()
        self.dtype = random.choice(_NARROW_TYPES if source.narrow and random.random() < 0.5 else _USUAL_TYPES)
        self.size = random.choice((1, 2, 4, 4, 8))
        self.surroundings = draw(source.headers, self.lens, random, source.waves, odd=self.odd)
        self.context = self.surroundings.context(self.library)
        self.size = self._share(self.size)
        self.constants = self._constants()
        self.attributes = AttributeDraw(self.library, random, self.lens, self.dtype, self.shrunk)
        self.operators: dict[int, Node] = {}
        self.values: dict[str, Node] = {}
        self.names: dict[str, Any] = {}
        self.ranges: dict[int, dict[str, int]] = {}
        self.leaves: list[Node] = []
        self.made: dict[Any, Node] = {}

    def _as_shown(self) -> bool:
        return self.random.shown and self.random.random() < _AS_SHOWN

    def _share(self, usual: int) -> int:
        """How many values a lane has, 0 for one: what indices without operands say under the schedule, if there is one."""
        if not self.surroundings.schedule:
            return usual
        sizes: set[int] = set()
        for size in self.index_sizes:
            try:
                sizes.add(int(size(self.context)))
            except (GenrwError, KeyError):
                continue
        found = max(sizes, default=usual)
        return found if found <= _WIDEST_SHARE else usual

    def _shrunk(self) -> dict[int, int]:
        """Short lengths in place of an example's long ones, the same everywhere."""
        if self.random.shown:
            return {}
        tensors = [n.type for n in (*self.hint.operators.values(), *self.hint.values.values())]
        long = {n for t in tensors for n in t.lens if n > self.longest}
        if self.random.random() < (0.3 if self.odd else 0.8):
            return {n: self.random.randint(min(2, self.longest), self.longest) for n in sorted(long)}
        return self._within(_MOST_ELEMENTS, tensors)

    def _within(self, most: int, tensors: Sequence[Type]) -> dict[int, int]:
        """Lengths of any magnitude in place of an example's, such that no tensor has more elements than `most`."""
        lengths = sorted({n for t in tensors for n in t.lens if n > 1})
        rooms = [most] * len(tensors)
        found: dict[int, int] = {}
        for n in self.random.sample(lengths, len(lengths)):
            times = [t.lens.count(n) for t in tensors]
            room = min((r ** (1 / k) for r, k in zip(rooms, times, strict=True) if k), default=1.0)
            found[n] = max(1, min(n, int(max(1.0, room + 1e-9) ** self.random.random())))
            rooms = [r // found[n] ** k for r, k in zip(rooms, times, strict=True)]
        return found

    def _base_lens(self) -> tuple[int, ...]:
        given = [n.type.lens for n in self.hint.values.values() if n.type.sort == "tensor"]
        found = [lens for lens in given if len(lens) <= self.most_axes]
        if found and self.random.random() < 0.6:
            return tuple(self.shrunk.get(n, n) for n in self.random.choice(found))
        rank = min(self.most_axes, self.random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))
        lens: list[int] = []
        for _ in range(rank):
            drawn = min(self.longest, self.random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 4)))
            lens.append(self.random.choice(lens) if lens and self.random.random() < _AS_LONG else drawn)
        if lens and self.empty and self.random.random() < _EMPTY:
            lens[self.random.randrange(len(lens))] = 0
        return tuple(lens)

    def instance(self) -> Instance:
        left = self.variant.left
        assert isinstance(left, OpPattern)
        try:
            root = self._node(left, None)
        except (GenrwError, KeyError) as problem:
            raise NoInstance(str(problem)) from None
        tensors = [n.type for n in self.operators.values() if n.type.sort == "tensor"]
        tensors += [n.type for n in self.leaves if n.type.sort == "tensor"]
        sizes = [n.type.size for n in self.operators.values()]
        if any(t.elements > _MOST_ELEMENTS for t in tensors) or any(size > _LONGEST_SHARE for size in sizes):
            raise NoInstance("too large")
        few = all(t.elements <= 1 for t in tensors) and not (self.empty and any(t.elements == 0 for t in tensors))
        if tensors and few and self.random.random() < _TRIVIAL:
            raise NoInstance("of single elements")
        surroundings = self._fitted(tensors)
        context = surroundings.context(self.library, root)
        facts = Facts(root, self.library, context, self.ranges)
        match = TermMatch(
            self.variant, root, self.operators, self.values, self.names, context, facts, tuple(self.leaves)
        )
        return Instance(match, surroundings, self.ranges)

    def _fitted(self, tensors: Sequence[Type]) -> KernelContext:
        """The surroundings, their space often that of one of the tensors, its axes those that an attribute names."""
        found = self.surroundings
        random = self.random
        space, axes = found.space, found.axes
        if tensors and random.random() < 0.6:
            space = random.choice(tensors).lens
        named = [v for n in self.operators.values() for v in dict(n.attributes).values() if isinstance(v, tuple)]
        named = [v for v in named if all(type(d) is int and 0 <= d < len(space) for d in v) and len(set(v)) == len(v)]
        if named and random.random() < 0.6:
            axes = tuple(sorted(random.choice(named)))
        axes = tuple(d for d in axes if d < len(space))
        parameters = tuple(n for n in self.leaves if n.type.sort == "tensor")
        return KernelContext(found.target, found.schedule, space, axes, found.policy, parameters)

    # ---- operations

    def _node(self, pattern: OpPattern, want: str | None) -> Node:
        """A term that the pattern matches; `want` is the sort that its user takes."""
        name = self._operator(pattern)
        operator = self.library.operator(name)
        if name == self.library.boundary("input").name:
            return self._input(pattern)
        inner = self._operations(pattern, operator, want)
        for attempt in range(_ATTRIBUTE_TRIES):
            saved = dict(self.names), dict(self.values), len(self.leaves)
            try:
                operands = self._operands(pattern, operator, want, inner)
                attributes = self._attributes(pattern, operator, operands)
                if attempt >= _TRIES_AS_DRAWN and not self.as_drawn:
                    operands, attributes = self._made_to_fit(pattern, name, operands, attributes, saved)
                type_ = infer(self.library, name, attributes, [o.type for o in operands], self.context)
            except (TypeProblem, NoInstance, GenrwError, KeyError, IndexError, ZeroDivisionError):
                self.names, self.values = saved[0], saved[1]
                del self.leaves[saved[2] :]
                continue
            node = shared(self.made, Node(name, attributes, tuple(operands), type_))
            self._check_domain(operator, node)
            self.operators[id(pattern)] = node
            if pattern.binds is not None:
                self.values[pattern.binds] = node
            return node
        raise NoInstance(f"no attributes for `{name}`")

    def _input(self, pattern: OpPattern) -> Node:
        """A parameter: a leaf that the pattern names."""
        hint = self.hint.operators.get(id(pattern))
        node = self._leaf(f"p{len(self.leaves)}", "tensor", self._input_type(hint), hint)
        self.operators[id(pattern)] = node
        for attribute in pattern.attributes:
            value = attribute.value if attribute.value is not None else Name(attribute.name)
            known = (
                self.names.setdefault(value.name, node.attribute(attribute.name))
                if isinstance(value, Name)
                else self._fixed(value)
            )
            if known != node.attribute(attribute.name):
                raise NoInstance("a parameter of another kind")
        if pattern.binds is not None:
            self.values[pattern.binds] = node
        return node

    def _input_type(self, hint: Node | None) -> str:
        return hint.type.dtype if hint is not None and self.random.random() < 0.5 else self.dtype

    def _check_domain(self, operator: Operator, node: Node) -> None:
        """NoInstance if attributes or types are outside of what an operator's domain says."""
        found = self.library.find(node.op)
        member = found[1] if found is not None else None
        types = [o.type for o in node.operands]
        if not within_domain(operator, member, node.attributes, types, self.context):
            raise NoInstance("outside of the domain")
        if self.in_kernel and operator.role == "pointwise":
            lens = {o.type.lens for o in node.operands if o.type.sort == "tensor"}
            if len(lens) > 1:
                raise NoInstance("kernels have pointwise operators of one shape only")

    def _operator(self, pattern: OpPattern) -> str:
        """The operator that a pattern stands for here: one of a class or family."""
        names = sorted(pattern_operators(pattern, self.rule, self.library))
        if len(names) == 1 and pattern.family is None and pattern.op == names[0]:
            return names[0]
        variable = pattern.family or pattern.op
        if variable in self.names and pattern.family is None:
            return str(self.names[f"operator {variable}"])
        if pattern.family is not None and pattern.family in self.names:
            return pattern.op.replace("{}", str(self.names[pattern.family]))
        count = len(pattern.operands)
        fitting = [n for n in names if self._takes(n, count) and self._is_there(n)]
        hint = self.hint.operators.get(id(pattern))
        if not fitting:
            raise NoInstance("no operator takes so many operands")
        name = (
            hint.op
            if hint is not None and hint.op in fitting and self.random.random() < 0.3
            else self.random.choice(fitting)
        )
        if pattern.family not in self.library.monoids:
            found = self.library.find(name)
            assert found is not None
            self.names[variable] = found[1] if pattern.family is not None and found[1] is not None else name
            self.names[f"operator {variable}"] = name
        return name

    def _is_there(self, name: str) -> bool:
        """May an operator be in a program when the rule runs?"""
        order = self.library.stages
        stages = self.library.operator(name).decl.stages
        first = min((order.index(s) for s in stages if s in order), default=0)
        return self.stage not in order or first <= order.index(self.stage)

    def _takes(self, name: str, count: int) -> bool:
        operator = self.library.operator(name)
        least = len(operator.fixed)
        return count == least or (count > least and operator.variadic is not None)

    # ---- operands

    def _operations(self, pattern: OpPattern, operator: Operator, want: str | None) -> dict[int, Node]:
        """The operands that are operations, by place: they decide on the types of the others."""
        inner = [(i, p) for i, p in enumerate(pattern.operands) if isinstance(p, OpPattern)]
        return {i: self._node(p, operator.operand(i).sort or self._open_sort(p, operator, want)) for i, p in inner}

    def _operands(
        self, pattern: OpPattern, operator: Operator, want: str | None, inner: Mapping[int, Node]
    ) -> list[Node]:
        """The operands, beside those that are operations values and numbers."""
        found = dict(inner)
        types: dict[str, str] = {}
        if operator.result_sort is None and any(node.type.sort == "tensor" for node in inner.values()):
            want = "tensor"
        for i in sorted(range(len(pattern.operands)), key=lambda i: i not in inner):
            decl, part = operator.operand(i), pattern.operands[i]
            if not isinstance(part, OpPattern):
                sort = decl.sort or self._open_sort(part, operator, want)
                found[i] = self._operand(part, sort, decl.dtype, operator, types)
            if decl.dtype is not None and found[i].type.dtype:
                types.setdefault(decl.dtype, found[i].type.dtype)
        return [found[i] for i in range(len(pattern.operands))]

    def _open_sort(self, pattern: Pattern, operator: Operator, want: str | None) -> str:
        """The sort of an operand whose declaration leaves it open: of pointwise operators, that of the result."""
        if operator.result_sort is None and want is not None:
            return want
        hint = self.hint.values.get(pattern.name) if isinstance(pattern, VarPattern) else None
        if operator.result_sort is not None and hint is not None and hint.type.sort in ("tensor", "scalar", "array"):
            return "tensor" if hint.type.sort == "tensor" else "value"
        return self._own_sort()

    def _own_sort(self) -> str:
        """What operators without a sort of their own work on at the rule's stage."""
        return "tensor" if self.library.boundary("result").legal_at(self.stage) else "value"

    def _operand(
        self,
        pattern: VarPattern | NumberPattern,
        sort: str,
        dtype: str | None,
        operator: Operator,
        types: Mapping[str, str],
    ) -> Node:
        if isinstance(pattern, NumberPattern):
            return self._number(pattern)
        if pattern.name not in self.values:
            wanted = self._dtype(dtype, operator, types)
            self.values[pattern.name] = self._leaf(pattern.name, sort, wanted, self.hint.values.get(pattern.name))
        return self.values[pattern.name]

    def _number(self, pattern: NumberPattern) -> Node:
        value = pattern.value
        if isinstance(value, Const):
            return shared(self.made, number_node(self.library, int(value.value)))
        assert isinstance(value, Name)
        if value.name not in self.names:
            hint = self.hint.numbers.get(value.name)
            near = [] if hint is None else [hint, hint, hint + 1, hint - 1, 2 * hint]
            schedule = [v for v in self.surroundings.schedule.values() if type(v) is int]
            others = [v for v in self.names.values() if type(v) is int]
            options = [*NUMBERS, *near, *near, *schedule, *others, *(2 * n for n in others), *self.lens, -1, -3]
            drawn = self.wanted.get(value.name, self.random.choice(options))
            self.names[value.name] = max(0, drawn) if self.missing else drawn
        return shared(self.made, number_node(self.library, self.names[value.name]))

    def _dtype(self, wanted: str | None, operator: Operator, types: Mapping[str, str]) -> str:
        """An element type that an operand may have."""
        if wanted is not None and wanted in types:
            return types[wanted]
        bound = dict(operator.decl.where).get(wanted or "", wanted or "any")
        bound = "any" if len(bound) == 1 and bound.isupper() else bound
        if in_class(self.dtype, bound) and self.random.random() < 0.9:
            return self.dtype
        fitting = [d for d in DTYPES if in_class(d, bound)]
        return self.random.choice(fitting) if fitting else self.dtype

    def _leaf(self, name: str, sort: str, dtype: str, hint: Node | None) -> Node:
        """Any value of a sort: an input of the term."""
        if dtype not in DTYPES and sort != "buffer":
            raise NoInstance("accumulators of several fields are no leaves")
        if sort == "tensor":
            type_ = self._tensor(dtype, hint)
        elif sort == "index":
            type_ = Type("index", "int64", size=self._size(hint))
        elif sort == "buffer":
            type_ = Type("buffer", dtype, hint.type.lens if hint is not None else (self.size or 1,))
        elif sort == "effect":
            raise NoInstance("effects are no leaves")
        else:
            size = 0 if sort == "scalar" else (self.size or 1) if sort == "array" else self._size(hint)
            type_ = Type("array" if size else "scalar", dtype, size=size)
        node = input_node(self.library, name.replace("#", ""), type_)
        self.leaves.append(node)
        if sort == "index":
            self.ranges[id(node)] = self._range(node.attribute("name"), type_.size)
        return node

    def _size(self, hint: Node | None) -> int:
        if hint is not None and self.random.random() < 0.6:
            return self.size if hint.type.size else 0
        return self.random.choice((0, 0, self.size))

    def _range(self, name: str, size: int) -> dict[str, int]:
        """The range of an index, and what divides it."""
        options = [*_RANGES, (0, max(0, prod(self.lens) - 1)), (-1, max(0, prod(self.lens) - 1))]
        drawn = self.random.choice(options)
        low, high = self.wanted.get(name, drawn)
        low = max(-1, low) if self.missing else low
        pow2 = self.random.choice((1, 1, 1, 2, 4, 8, 16)) if drawn[0] >= 0 else 1
        return {"lo": low, "hi": max(low, high // pow2 * pow2), "pow2": pow2 if low % pow2 == 0 else 1, "size": size}

    def _tensor(self, dtype: str, hint: Node | None) -> Type:
        """A tensor of about the usual lengths: the same, one that repeats, or another; sometimes with strides."""
        random = self.random
        lens = self.lens
        given = hint.type.lens if hint is not None and hint.type.sort == "tensor" else None
        if given is not None and self._as_shown():
            return Type("tensor", dtype, given)
        if given is not None and len(given) <= self.most_axes and random.random() < 0.6:
            lens = tuple(self.shrunk.get(n, n) for n in given)
        chance = random.random()
        if chance < 0.15:
            lens = tuple(1 if random.random() < 0.4 else n for n in lens)[random.choice((0, 0, 1)) :]
        elif chance < 0.3:
            lens = tuple(random.randint(1, self.longest) for _ in range(random.randint(0, self.most_axes)))
        elif chance < 0.33 and lens:
            none = random.randrange(len(lens))
            lens = tuple(0 if d == none else n for d, n in enumerate(lens))
        elif chance < 0.4:
            lens = near_lens(random, lens)
        strides = self.attributes.strides(lens) if lens and random.random() < 0.25 else None
        return Type("tensor", dtype, lens, strides)

    # ---- attributes

    def _attributes(
        self, pattern: OpPattern, operator: Operator, operands: Sequence[Node]
    ) -> tuple[tuple[str, Any], ...]:
        types = [o.type for o in operands]
        hint = self.hint.operators.get(id(pattern))
        shown = dict(hint.attributes) if hint is not None else {}
        known: dict[str, Any] = {}
        for attribute in pattern.attributes:
            value = attribute.value if attribute.value is not None else Name(attribute.name)
            if not isinstance(value, Name):
                known[attribute.name] = self._fixed(value)
            elif value.name in self.names:
                known[attribute.name] = self._checked(operator, attribute.name, self.names[value.name])
        asked = {a.name: getattr(a.value, "name", a.name) for a in pattern.attributes}
        # a constant's value goes by its type and lengths
        for name, decl in sorted(operator.attributes.items(), key=lambda item: item[1].type == "any"):
            if name in known or (name not in asked and not self._is_free(pattern, name, operator)):
                continue
            if name in shown and self._as_shown():
                drawn = shown[name]
            else:
                drawn = self._again(self.attributes.value(decl, operator, types, known, shown.get(name)))
            drawn = self.constants.get(asked.get(name, ""), drawn)
            drawn = self.wanted.get(asked.get(name, ""), drawn)
            drawn = self._checked(operator, name, drawn)
            known[name] = coerced(operator, name, _along(drawn, decl.type, types))
        for attribute in pattern.attributes:
            value = attribute.value if attribute.value is not None else Name(attribute.name)
            if isinstance(value, Name):
                self.names[value.name] = known[attribute.name]
        return complete(operator, known, types, self.context)

    def _made_to_fit(
        self,
        pattern: OpPattern,
        name: str,
        operands: Sequence[Node],
        attributes: Attributes,
        before: tuple[Mapping[str, Any], Mapping[str, Any], int],
    ) -> tuple[list[Node], Attributes]:
        """Operands and attributes that the operator's requirements allow; NoInstance if none are found. What may change is
        what was drawn for this operation alone: `before` are the names, the values and how many leaves there were."""
        found = self.library.find(name)
        assert found is not None, name
        operator, member = found
        asked = {a.name: getattr(a.value, "name", None if a.value else a.name) for a in pattern.attributes}
        taken_already = {*before[0], *self.constants, *self.wanted}
        own = {key for key, variable in asked.items() if variable is not None and variable not in taken_already}
        own |= {key for key in operator.attributes if key not in asked and self._may_differ(pattern, key, operator)}
        new = {id(leaf) for leaf in self.leaves[before[2] :] if leaf.type.sort == "tensor"}
        free = {i for i, o in enumerate(operands) if id(o) in new and sum(o is other for other in operands) == 1}
        given = {key: v for key, v in attributes if key in asked or self._may_differ(pattern, key, operator)}
        drawn = Taken(tuple(o.type for o in operands), given)
        taken = Fitting(operator, member, self.attributes, free | own, self.context).fitted(drawn)
        if taken is None:
            raise NoInstance("no operands and attributes that fit together")
        for key, variable in asked.items():
            if variable is not None and key in own:
                self.names[variable] = self._checked(operator, key, taken.attributes[key])
        fitting = [self._retyped(o, t) for o, t in zip(operands, taken.types, strict=True)]
        return fitting, complete(operator, taken.attributes, taken.types, self.context)

    @staticmethod
    def _may_differ(pattern: OpPattern, name: str, operator: Operator) -> bool:
        """May an attribute that the pattern does not name have any value?"""
        return pattern.open_attributes or name not in operator.defaults

    def _retyped(self, leaf: Node, type_: Type) -> Node:
        """A leaf of another type in place of one."""
        if leaf.type == type_:
            return leaf
        found = input_node(self.library, leaf.name or "", type_)
        self.leaves = [found if known is leaf else known for known in self.leaves]
        self.values = {name: found if known is leaf else known for name, known in self.values.items()}
        return found

    def _checked(self, operator: Operator, name: str, value: Any) -> Any:
        """The value; NoInstance if it is of another type than the attribute: one name may stand for attributes of two."""
        decl = operator.attributes.get(name)
        if decl is not None and attribute_problem(self.library, decl.type, value):
            raise NoInstance(f"a value of another type for `{name}`")
        return value

    def _constants(self) -> dict[str, Any]:
        """What the numbers of the left side are: values, the usual type, and no shape of their own mostly."""
        found: dict[str, Any] = {}
        for condition in conditions(self.variant.guard):
            if not isinstance(condition, Call):
                continue
            match condition.function, condition.args:
                case "is_constant", (Name(value), number, Name(dtype)):
                    found |= {value: self.library.scope.compile(number)({}), dtype: self.dtype}
                case "broadcasts_to", (Name(lens), _) if self.random.random() < _NO_SHAPE:
                    found[lens] = ()
        return found

    def _again(self, drawn: Any) -> Any:
        """The value, now and then a list that another attribute has."""
        others = [v for v in self.names.values() if isinstance(v, tuple)] if isinstance(drawn, tuple) else []
        return self.random.choice(others) if others and self.random.random() < _SAME else drawn

    def _is_free(self, pattern: OpPattern, name: str, operator: Operator) -> bool:
        """Is an attribute that the pattern does not name drawn, and not left at its default?"""
        if name not in operator.defaults:
            return True
        return pattern.open_attributes and self.random.random() < 0.5

    def _fixed(self, value: Any) -> Any:
        return self.library.scope.compile(value)({**self.context, **self.names})


def _along(drawn: Any, kind: str, operands: Sequence[Type]) -> Any:
    """Axes counted from the first one, sorted; NoInstance for one that the first operand does not have."""
    if kind not in ("axis", "axes") or not operands:
        return drawn
    rank = len(operands[0].lens)
    axes = drawn if isinstance(drawn, tuple) else (drawn,)
    if any(not -rank <= d < rank for d in axes):
        raise NoInstance("an axis is out of range")
    return tuple(sorted({d % rank for d in axes})) if kind == "axes" else axes[0] % rank
