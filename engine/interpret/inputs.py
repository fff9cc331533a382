"""Random inputs for a program, within the domains that its operators and monoids declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from genrw.engine.interpret.memory import extent
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Module, Node, Unit
from genrw.engine.language.arrays import Values, stored
from genrw.engine.language.expr import free_names
from genrw.engine.language.numeric import compile_numeric
from genrw.engine.library.library import Library, Operator
from genrw.engine.programs.launches import parameters
from genrw.engine.programs.signature import given_parameters
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import MonoidDecl

ATTEMPTS = 64
_LARGEST_FLOAT = 2.0
_SMALLEST_FLOAT = 0.05
_LARGEST_INTEGER = 8
_WIDEST_BITS = 12
_LAST_RESORT = (1, 2, 0.5, 0, -1, 10)

Domain = Callable[[Values], Values | None]
"""Which elements of an array may stand in a place; None where that cannot be told from the array alone."""


def random_inputs(module: Module | Unit, library: Library, seed: int) -> dict[str, Values]:
    """Values for the inputs of a program, by name; the same for the same seed.

    Floats lie in [-2, 2] and not next to 0, integers near 0. Where an operand is a parameter, or an index map
    of one, its values lie in the operator's domain.
    """
    unit = module if isinstance(module, Unit) else Unit((module,))
    domains = _unit_domains(unit, library)
    inputs = {}
    for i, (name, parameter) in enumerate(parameters(unit, library).items()):
        rng = np.random.default_rng((seed, i))
        inputs[name] = _Draw(parameter, domains.get(name, []), rng).values()
    return inputs


class _Draw:
    """Draws one input. What strides let overlap in memory gets one value."""

    def __init__(self, parameter: Node, domains: list[Domain], rng: np.random.Generator) -> None:
        self.parameter, self.domains, self.rng = parameter, domains, rng
        self.dtype = DTYPES[parameter.type.dtype]
        self.origin, self.size = extent(parameter.type)

    @cached_property
    def places(self) -> Values:
        """Where each element lies in memory."""
        type_ = self.parameter.type
        steps = (np.arange(n) * s for n, s in zip(type_.lens, type_.layout, strict=True))
        axes = np.meshgrid(*steps, indexing="ij", sparse=True)
        return sum(axes, np.zeros(type_.lens, np.int64)) - self.origin

    def values(self) -> Values:
        memory = self._fresh(self.size)
        type_ = self.parameter.type
        if not self.domains and type_.member("packed"):  # no places are looked for in what may be gigabytes
            return memory.reshape(type_.lens)
        for _ in range(ATTEMPTS):
            wrong = np.unique(self.places[~self._fine(memory[self.places])])
            if not wrong.size:
                return memory[self.places]
            memory[wrong] = self._fresh(wrong.size)
        return self._settled(memory)

    def _settled(self, memory: Values) -> Values:
        """Elements that found no value of their own take one of the others', or a plain number."""
        right = self._fine(memory[self.places])
        others = memory[self.places][right][:ATTEMPTS]
        for candidate in (*others, *filter(self._holds, _LAST_RESORT)):
            wrong = np.unique(self.places[~self._fine(memory[self.places])])
            if not wrong.size:
                break
            tried = memory.copy()
            tried[wrong] = candidate
            fits = self._fine(tried[self.places])
            good = np.setdiff1d(wrong, self.places[~fits])
            memory[good] = tried[good]
        if not np.all(self._fine(memory[self.places])):
            name = self.parameter.attribute("name")
            raise error(f"no values found for the input `{name}` that its operators take", self.parameter.span)
        return memory[self.places]

    def _holds(self, number: float) -> bool:
        """Can an input of the type hold a number?"""
        return self.dtype.is_float or (isinstance(number, int) and self.dtype.smallest <= number <= self.dtype.largest)

    def _fine(self, values: Values) -> Values:
        fine = np.ones(values.shape, np.bool_)
        for domain in self.domains:
            allowed = domain(values)
            if allowed is not None and allowed.shape == values.shape:
                fine &= allowed
        return fine

    def _fresh(self, count: int) -> Values:
        numpy_type = numpy_dtype(self.dtype.name)
        if self.dtype.kind == "bool":
            return self.rng.integers(0, 2, count).astype(numpy_type)
        signs = self.rng.choice((-1, 1), count)
        if self.dtype.is_float:
            return (signs * self.rng.uniform(_SMALLEST_FLOAT, _LARGEST_FLOAT, count)).astype(numpy_type)
        sizes = self._integer_sizes(count)
        return (sizes if self.dtype.kind == "uint" else signs * sizes).astype(numpy_type)

    def _integer_sizes(self, count: int) -> Values:
        """Small integers; where a domain has its say, some large ones too, since its reach is not known."""
        if not self.domains:
            return self.rng.integers(0, _LARGEST_INTEGER + 1, count)
        bits = min(_WIDEST_BITS, self.dtype.bits - 1)
        return np.floor(2.0 ** (bits * self.rng.uniform(0, 1, count) ** 2)).astype(np.int64) - 1


# ---- domains, read off the graph


def _unit_domains(unit: Unit, library: Library) -> dict[str, list[Domain]]:
    """By parameter name, what its elements have to satisfy in all kernels that are given it."""
    if unit.main is None:
        return _domains(unit.kernels[0], library)
    shown = {p.name: p.attribute("name") for p in unit.main.parameters}
    kernels = {module.name: module for module in unit.kernels}
    found: dict[str, list[Domain]] = {}
    for call in unit.main.calls:
        module = kernels[call.kernel]
        inside = _domains(module, library)
        for name, value in zip(given_parameters(module, library), call.operands, strict=True):
            if value in shown:
                found.setdefault(shown[value], []).extend(inside.get(name, []))
    return found


def _domains(module: Module, library: Library) -> dict[str, list[Domain]]:
    """By parameter name, what its elements have to satisfy."""
    found: dict[str, list[Domain]] = {}
    for node in module.nodes:
        for operand, domain in _node_domains(node, library):
            parameter = _parameter_behind(operand, library)
            if parameter is not None:
                found.setdefault(parameter.attribute("name"), []).append(domain)
    return found


def _parameter_behind(node: Node, library: Library) -> Node | None:
    """The parameter whose elements a value consists of, if it is one, moved about at most."""
    while library.role(node.op) == "index_map" and node.operands:
        node = node.operands[0]
    return node if node.op == library.boundary("input").name else None


def _node_domains(node: Node, library: Library) -> Iterator[tuple[Node, Domain]]:
    """The operands of a node with what their elements have to satisfy."""
    found = library.find(node.op)
    if found is None:
        return
    operator, member = found
    env: dict[str, Any] = {**dict(node.attributes), operator.decl.family or "": member}
    env.update((d.name, o.type) for d, o in zip(operator.fixed, node.operands, strict=False))
    for expr in operator.decl.domain:
        names = free_names(expr)
        for decl, operand in zip(operator.fixed, node.operands, strict=False):
            if decl.name in names:
                yield operand, _domain(library, expr, env, decl.name, operand.type.dtype)
    monoid = _monoid(operator, env, library)
    if operator.role == "fold" and monoid is not None:
        for expr in monoid.domain:
            operand = node.operands[0]
            yield operand, _domain(library, expr, {"type": operand.type.dtype}, "x", operand.type.dtype)


def _monoid(operator: Operator, env: Mapping[str, Any], library: Library) -> MonoidDecl | None:
    """The monoid that a node folds with."""
    names = [a.name for a in operator.decl.attributes if a.type == "monoid"]
    return library.monoids.get(env[operator.decl.family or (names or [""])[0]])


def _domain(library: Library, expr: Expr, env: Mapping[str, Any], name: str, dtype: str) -> Domain:
    scope = library.scope
    holds = compile_numeric(expr, scope.lets, functions=scope.functions)

    def allowed(values: Values) -> Values | None:
        try:
            result = holds({**env, name: stored(values, dtype, False)})
        except GenrwError:
            # the domain relates elements of several operands, or says something about another one
            return None
        return np.asarray(result, np.bool_)

    return allowed
