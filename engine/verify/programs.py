"""Small random tensor programs: of the operators that programs are made of, whichever those are."""

from __future__ import annotations

from functools import lru_cache
from math import log2, prod
from random import Random
from typing import Any

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module, Node, walk
from genrw.engine.ir.types import EFFECT, Type
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library
from genrw.engine.library.rewriting import coerced
from genrw.engine.programs.build import complete, input_node
from genrw.engine.verify.attributes import AttributeDraw, within_domain
from genrw.grammar.diagnostics import GenrwError

_LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64, 100, 128, 256, 300, 512, 1000)
_MOST_ELEMENTS, _LONGEST_ROWS = 1 << 14, 1 << 17
"""Elements of a program, and of one of two rows at most, which are as long as a rule needs them to be."""
_ROLES = ("pointwise", "pointwise", "fold", "index_map", "index_map")
_TYPES = ("float", "float", "float", "int32", "half", "double", "int8")
_TYPES_OF_VIEWS = ("half", "half", "bf16", "bf16", "float", "double", "int8", "uint8")
_TRIES = 40
_REPEATED = 0.15
"""How often rows have one value for all of their elements."""
_MOST_PRODUCTS = 1 << 22
"""Elements of the space of a fold of several views, which holds far more than these do: several workgroups' worth."""
_DEEP = 80
"""About so many of them are folded into one, if that many are."""
_ROUND = 0.6
"""How often the lengths of such a space are powers of two."""
_USUAL_SUM = 0.8
"""How often what such a fold makes is of the type in which its elements are computed."""
_PLAIN = 0.3
"""How often a view that might be a fold is a parameter."""
_TURNED = 0.8
"""How often rows are of what lies along them and of what lies across, where that is asked for."""
_IN_BOTH = 0.5
"""How often several views have a kept axis that is left when each has one of its own."""
SCATTERED = "scattered"
"""The part of the role of index maps whose neighbours lie apart."""


def random_program(library: Library, random: Random) -> Module:
    """A program of a few operations on one to three parameters."""
    return _Writer(library, random).program()


@lru_cache(maxsize=64)
def operators_of(library: Library, role: str) -> tuple[str, ...]:
    """The operators of a role that programs hold when they are cut into kernels."""
    stage = library.fusing_stage or library.stages[0]
    if role == SCATTERED:
        return tuple(n for n in operators_of(library, "index_map") if role in library.operator(n).decl.role_parts)
    named = [n for n in library.names if library.role(n) == role and library.operator(n).legal_at(stage)]
    return tuple(n for n in named if library.operator(n).decl.stages or library.operator(n).result_sort is None)


def random_kernel(
    library: Library,
    random: Random,
    lens: tuple[int, ...],
    axes: tuple[int, ...],
    *,
    exact: bool = False,
    dtype: str | None = None,
    monoid: str | None = None,
    turned: bool = False,
) -> Module:
    """A program of one kernel that runs over tensors of about these lengths, or `exact`ly these, with rows along axes if
    there are any, folded with a monoid that is wanted or with any; mostly of what lies along and across rows if that is `turned`."""
    if not exact:
        lens = tuple(max(1, n + random.choice((0, 0, 0, -1, 1))) for n in lens)
    while prod(lens) > _MOST_ELEMENTS:
        longest = max((d for d in range(len(lens)) if d not in axes), key=lambda d: lens[d], default=0)
        if lens[longest] <= 2 and prod(lens) <= _LONGEST_ROWS:
            break
        longest = longest if lens[longest] > 2 else max(range(len(lens)), key=lambda d: lens[d])
        lens = tuple((n + 1) // 2 if d == longest else n for d, n in enumerate(lens))
    return _Writer(library, random, lens, dtype, monoid).kernel(axes, turned)


def random_fold_of_views(
    library: Library, random: Random, lens: tuple[int, ...], axes: tuple[int, ...], *, dtype: str | None = None
) -> Module | None:
    """A program of one kernel that folds several views of a space of about the proportions of `lens` along `axes`; None if
    the draws do not fit together. Each view has some of the axes that the fold keeps, and these stay long."""
    deep = prod(lens[d] for d in axes)
    most = random.choice((_MOST_PRODUCTS, _MOST_PRODUCTS >> 2)) / min(deep, _DEEP)
    kept = min(1.0, (most / (prod(lens) / deep)) ** (1 / max(1, len(lens) - len(axes))))
    folded = min(1.0, (_DEEP / deep) ** (1 / max(1, len(axes))))
    lens = tuple(_about(n * (folded if d in axes else kept), random) for d, n in enumerate(lens))
    return _Writer(library, random, lens, dtype or random.choice(_TYPES_OF_VIEWS)).fold_of_views(axes)


def _about(length: float, random: Random) -> int:
    """A length near one that is wanted: a power of two, or any."""
    length *= 2 ** random.uniform(-0.8, 0.8)
    return max(1, 1 << round(log2(max(1.0, length))) if random.random() < _ROUND else round(length))


class _Writer:
    def __init__(
        self,
        library: Library,
        random: Random,
        lens: tuple[int, ...] | None = None,
        dtype: str | None = None,
        monoid: str | None = None,
    ) -> None:
        self.library, self.random, self.monoid = library, random, monoid
        self.dtype = dtype or random.choice(_TYPES)
        self.lens = self._lens() if lens is None else lens
        self.attributes = AttributeDraw(library, random, self.lens, self.dtype, {})
        self.values: list[Node] = []
        self.parameters: list[Node] = []

    def _lens(self) -> tuple[int, ...]:
        rank = self.random.choice((1, 2, 2, 2, 3))
        lens = [self.random.choice(_LENGTHS) for _ in range(rank)]
        while prod(lens) > _MOST_ELEMENTS:
            lens[self.random.randrange(rank)] = self.random.choice(_LENGTHS[:8])
        return tuple(lens)

    def program(self) -> Module:
        self._parameter(self.dtype)
        for _ in range(self.random.randint(1, 4)):
            self._operation()
        return self._ended()

    def kernel(self, axes: tuple[int, ...], turned: bool = False) -> Module:
        """An element-wise value of the parameters; of rows their fold, and what is made of it with the elements."""
        if turned and axes and len(axes) < len(self.lens) and self.random.random() < _TURNED:
            others = [d for d in range(len(self.lens)) if d not in axes]
            self._pointwise(self._lying(axes[-1]), self._lying(self.random.choice(others)))
        else:
            self._parameter(self.dtype)
        if self.random.random() < 0.6:
            self._some("pointwise")
        if not axes:
            self._some(self.random.choice(("pointwise", "index_map", SCATTERED, SCATTERED)))
            return self._ended()
        whole = self.values[-1]
        if self.random.random() < _REPEATED:
            row = tuple(1 if d in axes else n for d, n in enumerate(self.lens))
            whole = self._repeated(self._parameter(self.dtype, row)) or whole
        for _ in range(self.random.choice((1, 1, 2))):
            fold = self._folded(whole, axes)
            if fold is not None and self.random.random() < 0.5:
                whole = self._pointwise(whole, fold) or whole
        return self._ended()

    def fold_of_views(self, axes: tuple[int, ...]) -> Module | None:
        """A fold along axes of parameters that have some of the other axes each, and sometimes what is made of it."""
        name = self.random.choice([n for n in operators_of(self.library, "fold") if self._operands_of(n) > 1])
        types = self._view_types(name)
        views = [
            (self._fold_of_own_views(lens, axes) if dtype != self.dtype else None) or self._parameter(dtype, lens)
            for dtype, lens in zip(types, self._view_lens(len(types), axes), strict=True)
        ]
        given = {
            key: axes if decl.type == "axes" else self._entry(name, key, [v.type for v in views])
            for key, decl in self.library.operator(name).attributes.items()
        }
        fold = self._made(name, given, views)
        if fold is None:
            return None
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self._pointwise(self.values[-1])
        return self._ended()

    def _view_types(self, name: str) -> list[str]:
        """The element types of a fold's views: those that it asks for, else the program's."""
        declared = [operand.dtype for operand in self.library.operator(name).fixed]
        return [dtype if dtype in DTYPES else self.dtype for dtype in declared]

    def _fold_of_own_views(self, lens: tuple[int, ...], axes: tuple[int, ...]) -> Node | None:
        """A view that is a fold of views itself, mostly: one of these has the axes that the other fold keeps, one those that it
        folds, and both an axis of their own."""
        if self.random.random() < _PLAIN:
            return None
        deep = _about(_DEEP, self.random)
        kept = self._parameter(self.dtype, (*(1 if d in axes else n for d, n in enumerate(lens)), deep))
        both = [d in axes or self.random.random() < _PLAIN for d in range(len(lens))]
        along = self._parameter(self.dtype, (*(n if has else 1 for has, n in zip(both, lens, strict=True)), deep))
        name = self.random.choice([n for n in operators_of(self.library, "fold") if self._operands_of(n) > 1])
        last = len(lens)
        given = {
            key: (last,) if decl.type == "axes" else self._entry(name, key, [kept.type, along.type])
            for key, decl in self.library.operator(name).attributes.items()
        }
        fold = self._made(name, given, [kept, along])
        return self._repeated(fold, lens) if fold is not None else None

    def _entry(self, name: str, key: str, types: list[Type]) -> Any:
        """An attribute of a fold; its type is mostly the one that elements of the program's type are computed in."""
        operator = self.library.operator(name)
        decl = operator.attributes[key]
        if decl.type == "dtype" and self.random.random() < _USUAL_SUM:
            return DTYPES[self.dtype].compute
        return coerced(operator, key, self.attributes.value(decl, operator, types, {}))

    def _operands_of(self, name: str) -> int:
        """How many tensors an operator takes."""
        return len(self.library.operator(name).fixed)

    def _view_lens(self, count: int, axes: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shapes of views: each kept axis is one of one of them, or of all, and of length 1 in the others. Each view
        has one of its own, as long as there are so many."""
        kept = [d for d in range(len(self.lens)) if d not in axes]
        owners: dict[int, int | None] = {}
        for place, d in enumerate(self.random.sample(kept, len(kept))):
            shared = place >= count and self.random.random() < _IN_BOTH
            owners[d] = None if shared else place % count
        return [
            tuple(n if owners.get(d) in (None, view) else 1 for d, n in enumerate(self.lens)) for view in range(count)
        ]

    def _some(self, role: str) -> None:
        for _ in range(_TRIES):
            made = self._drawn(role, None)
            if made is not None and 0 < made.type.elements <= _MOST_ELEMENTS:
                self.values.append(made)
                return

    def _folded(self, x: Node, axes: tuple[int, ...]) -> Node | None:
        """A fold of a tensor along axes, with any monoid that takes its type."""
        names = operators_of(self.library, "fold")
        wanted = tuple(n for n in names if (found := self.library.find(n)) is not None and found[1] == self.monoid)
        for _ in range(_TRIES):
            name = self.random.choice(wanted if self.monoid is not None and wanted else names)
            operator = self.library.operator(name)
            along = next((a.name for a in operator.decl.attributes if a.type == "axes"), None)
            if along is not None and len(operator.fixed) == 1:
                made = self._made(name, {along: axes}, [x])
                if made is not None:
                    return made
        return None

    def _repeated(self, x: Node, lens: tuple[int, ...] | None = None) -> Node | None:
        """A tensor of some lengths, the program's own if not given, by any operator that lengths make one of it."""
        lens = self.lens if lens is None else lens
        options = [
            (name, a.name)
            for name in operators_of(self.library, "index_map")
            for a in self.library.operator(name).decl.attributes
            if a.type == "ints"
        ]
        for name, attribute in self.random.sample(options, len(options)):
            made = self._made(name, {attribute: lens}, [x])
            if made is not None and made.type.lens == lens:
                return made
            self.values = [v for v in self.values if v is not made]
        return None

    def _pointwise(self, *operands: Node) -> Node | None:
        """A pointwise operator of some values."""
        for _ in range(_TRIES):
            name = self.random.choice(operators_of(self.library, "pointwise"))
            if self._operands_of(name) == len(operands) and not self.library.operator(name).decl.attributes:
                made = self._made(name, {}, [*operands])
                if made is not None:
                    return made
        return None

    def _made(self, name: str, given: dict[str, Any], operands: list[Node]) -> Node | None:
        types = [o.type for o in operands]
        try:
            attributes = complete(self.library.operator(name), given, types, {})
            node = Node(name, attributes, tuple(operands), infer(self.library, name, attributes, types, {}))
        except (TypeProblem, GenrwError, KeyError):
            return None
        self.values.append(node)
        return node

    def _ended(self) -> Module:
        """The values that nothing uses are the results."""
        used = {id(o) for v in self.values for o in v.operands}
        results = tuple(v for v in self.values if id(v) not in used and v not in self.parameters) or (self._copy(),)
        results = results[:2]
        ending = Node(self.library.boundary("result").name, (), results, EFFECT)
        present = {id(n) for n in walk(ending)}
        names = tuple(f"r{i}" for i in range(len(results)))
        parameters = tuple(p for p in self.parameters if id(p) in present)
        return Module("main", ending, parameters, results=names)

    def _parameter(self, dtype: str, lens: tuple[int, ...] | None = None) -> Node:
        lens = self.lens if lens is None else lens
        strides = self.attributes.strides(lens) if lens and self.random.random() < 0.15 else None
        return self._kept(Type("tensor", dtype, lens, strides))

    def _kept(self, type_: Type) -> Node:
        node = input_node(self.library, f"p{len(self.parameters)}", type_)
        self.parameters.append(node)
        self.values.append(node)
        return node

    def _lying(self, along: int) -> Node:
        """A parameter of which neighbours along an axis are neighbours in memory."""
        order = [*self.random.sample([d for d in range(len(self.lens)) if d != along], len(self.lens) - 1), along]
        strides = tuple(prod(self.lens[e] for e in order[order.index(d) + 1 :]) for d in range(len(self.lens)))
        return self._kept(Type("tensor", self.dtype, self.lens, strides))

    def _copy(self) -> Node:
        """Something done to the last value, where nothing else was."""
        for _ in range(_TRIES):
            made = self._drawn("pointwise", 1)
            if made is not None:
                return made
        return self.values[-1]

    def _operation(self) -> None:
        for _ in range(_TRIES):
            made = self._drawn(self.random.choice(_ROLES), None)
            if made is not None and made.type.elements <= _MOST_ELEMENTS:
                self.values.append(made)
                return

    def _drawn(self, role: str, arity: int | None) -> Node | None:
        """One operation on values that are there; None if the draws do not fit together."""
        name = self.random.choice(operators_of(self.library, role))
        operator = self.library.operator(name)
        if arity is not None and len(operator.fixed) != arity:
            return None
        count = len(operator.fixed) or (2 if operator.variadic is not None else 0)
        operands = [self._operand(operator.operand(i).dtype, i) for i in range(count)]
        types = [o.type for o in operands]
        known: dict[str, Any] = {}
        try:
            for key, decl in operator.attributes.items():
                if key in operator.defaults and self.random.random() < 0.5:
                    continue
                known[key] = coerced(operator, key, self.attributes.value(decl, operator, types, known))
            attributes = complete(operator, known, types, {})
            type_ = infer(self.library, name, attributes, types, {})
            self._check(name, attributes, types)
        except (TypeProblem, GenrwError, KeyError, IndexError, ValueError):
            return None
        return Node(name, attributes, tuple(operands), type_)

    def _operand(self, dtype: str | None, position: int) -> Node:
        last = self.values[-1]
        if dtype in DTYPES or dtype == "integer":
            return self._parameter("int32" if dtype == "integer" else str(dtype), (self.random.choice(_LENGTHS[:8]),))
        if position == 0 or self.random.random() < 0.5:
            return last
        same = [v for v in self.values if v.type.dtype == last.type.dtype]
        return (
            self.random.choice(same) if self.random.random() < 0.6 else self._parameter(last.type.dtype, last.type.lens)
        )

    def _check(self, name: str, attributes: tuple[tuple[str, Any], ...], types: list[Type]) -> None:
        """KeyError for attributes outside of what an operator's domain and its axes allow."""
        operator = self.library.operator(name)
        for decl in operator.decl.attributes:
            value = dict(attributes)[decl.name]
            if decl.type in ("axis", "axes"):
                axes = value if isinstance(value, tuple) else (value,)
                if any(not 0 <= d < len(types[0].lens) for d in axes) or not axes:
                    raise KeyError(decl.name)
        if not within_domain(operator, None, attributes, types, {}):
            raise KeyError("domain")
