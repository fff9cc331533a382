"""What a program gives in double, and which elements are sure: those that rounding errors cannot change much.

A comparison, a rounding or a difference of nearly equal numbers may turn one rounding error into another result. So a
program is run some more times with rounding errors thrown into all that is not exact. What differs then is not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from genrw.engine.interpret.compare import ELEMENT_BOUND
from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.language.arrays import Array, stored
from genrw.engine.library.library import Library, nearness
from genrw.grammar.diagnostics import GenrwError
from genrw.program import Program

Arrays = dict[str, Any]

Errors = tuple[float, float]
NOISE: Sequence[tuple[Errors, Errors]] = (
    ((0.0, 0.0), (0.0, 0.0)),
    ((0.5, 2.0), (0.5, 2.0)),
    ((-2.0, -0.5), (-2.0, -0.5)),
    ((-2.0, 2.0), (-2.0, 2.0)),
    ((0.0, 0.0), (0.5, 2.0)),
)
"""From how many to how many epsilons the rounding errors of operands and of results are, one run for each. Where both have
some they may cancel out: then the bits of a result look sure, but for the run in which operands have none."""
WIDE: tuple[Errors, Errors] = ((-32.0, 32.0), (-32.0, 32.0))
"""One more run, for results that are compared bit for bit: small errors of doubles have few values, and are equal too often."""
MARGIN = 16
"""What part of the bound of errors they may come to where an element is sure."""
_SPECIAL = (float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1e30, -7e4, 1e-30)


class Rejected(Exception):
    """A program that says nothing: no inputs are found for it, or it asks for elements that there are not."""


def reference(program: Program, seed: int, *, special: bool) -> tuple[Arrays, Arrays, Arrays]:
    """Random inputs, results in double, and which of their elements rounding errors cannot change much.

    `special` puts infinities, NaN and the like among the inputs. Rejected where there are no inputs, or where the program
    asks for elements that there are not.
    """
    try:
        inputs = dict(random_inputs(program.modules[0], program.library, seed))
    except GenrwError as problem:
        raise Rejected(str(problem)) from None
    if special:
        inputs = _with_special(program, inputs, seed)
    module, context = program.modules[0], program.context(program.modules[0])
    try:
        results, exact = _precise(module, program.library, context, inputs)
    except GenrwError as problem:
        if "out of range" in str(problem):
            raise Rejected(str(problem)) from None
        raise
    wanted = dict(zip(program.results, results, strict=True))
    sure = {name: np.ones(array.shape, np.bool_) for name, array in wanted.items()}
    for run, errors in enumerate((*NOISE, WIDE)):
        noise = _Noise(exact, np.random.default_rng((seed, run)), program.library, errors)
        try:
            noisy = _evaluated(module, program.library, context, inputs, noise)
        except GenrwError as problem:
            raise Rejected(str(problem)) from None
        for (name, want), got, node in zip(wanted.items(), noisy, program.results.values(), strict=True):
            if errors is not WIDE or not DTYPES[node.type.dtype].is_float:
                sure[name] &= _near(got, want, node.type.dtype)
    return inputs, wanted, sure


def _with_special(program: Program, inputs: Arrays, seed: int) -> Arrays:
    """The inputs with infinities, NaN and other numbers on the edge among floats that lie packed."""
    rng = np.random.default_rng((seed, 99))
    found = dict(inputs)
    for name, node in program.inputs.items():
        if DTYPES[node.type.dtype].is_float and node.type.strides is None:
            places = rng.random(node.type.lens) < 0.05
            with np.errstate(all="ignore"):
                special = rng.choice(_SPECIAL, node.type.lens).astype(numpy_dtype(node.type.dtype))
            found[name] = np.where(places, special, inputs[name])
    return found


def _near(got: Any, want: Any, dtype: str) -> Any:
    """Where a noisy result is as good as the right one."""
    if not DTYPES[dtype].is_float:
        return got == want
    with np.errstate(all="ignore"):
        rounded = want.astype(numpy_dtype(dtype)).astype(np.float64)
        found, right = got.astype(np.float64), want.astype(np.float64)
        same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        finite = np.isfinite(found) & np.isfinite(rounded)
        typical = np.sqrt(np.mean(np.where(finite, right, 0.0) ** 2)) if right.size else 0.0
        bound = ELEMENT_BOUND / MARGIN * DTYPES[dtype].epsilon * (np.abs(right) + typical)
        return same | (finite & (np.abs(found - right) <= bound))


class _Noise:
    """Rounding errors, thrown into what is not exact: into an operation's floating operands and its result."""

    def __init__(
        self, exact: Mapping[int, Any], rng: np.random.Generator, library: Library, errors: tuple[Errors, Errors]
    ) -> None:
        self.exact, self.rng, self.library = exact, rng, library
        self.of_operands, self.of_results = errors

    def operands(self, node: Node, operands: list[Array]) -> list[Array]:
        if self.library.role(node.op) == "index_map" or np.all(self.exact[id(node)]):
            return operands
        return [self._with_noise(x, x.dtype, True, self.of_operands) for x in operands]

    def result(self, node: Node, value: Array) -> Array:
        if self.library.role(node.op) == "index_map":
            return value
        said = nearness(self.library.operator(node.op).decl) or 0.0
        return self._with_noise(value, node.type.dtype, ~self.exact[id(node)], self.of_results, said)

    def _with_noise(self, value: Array, dtype: str, places: Any, errors: Errors, said: float = 0.0) -> Array:
        """A value that is off by errors, in parts of what rounding it may lose, or what its operator says."""
        if not DTYPES[dtype].is_float:
            return value
        factors = 1 + max(DTYPES[dtype].epsilon, said / 2) * self.rng.uniform(*errors, value.values.shape)
        values = np.where(places, value.values * factors, value.values)
        return stored(Array(values, dtype).finished(dtype, False), dtype, False)


def _precise(
    module: Module, library: Library, context: Mapping[str, Any], inputs: Arrays
) -> tuple[list[Any], dict[int, Any]]:
    """The results in double; and by the identity of the node, which of its elements are numbers of the element type."""
    found: dict[int, Any] = {}

    def note(node: Node, value: Array) -> None:
        dtype = "float" if node.type.dtype == "double" else node.type.dtype
        if not DTYPES[dtype].is_float:
            found[id(node)] = np.ones(value.values.shape, np.bool_)
            return
        with np.errstate(all="ignore"):
            rounded = value.values.astype(numpy_dtype(dtype)).astype(np.float64)
        is_near = nearness(library.operator(node.op).decl) is not None  # so nothing that it gives is exact
        found[id(node)] = ((rounded == value.values) & (not is_near)) | np.isnan(value.values)

    return _evaluated(module, library, context, inputs, None, note), found


def _evaluated(
    module: Module,
    library: Library,
    context: Mapping[str, Any],
    inputs: Arrays,
    noise: _Noise | None,
    note: Callable[[Node, Array], None] | None = None,
) -> list[Any]:
    """The results of a tensor program, in double, or in the elements' types with noise."""
    evaluator = Evaluator(library, context, noise is None)
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in module.nodes:
            if node is module.root:
                break
            value = _value(node, evaluator, values, inputs, noise)
            values[id(node)] = value
            if note is not None:
                note(node, value)
        return [values[id(o)].finished(o.type.dtype, noise is None) for o in module.root.operands]


def _value(
    node: Node, evaluator: Evaluator, values: Mapping[int, Array], inputs: Arrays, noise: _Noise | None
) -> Array:
    library = evaluator.library
    if node.op == library.boundary("input").name:
        return stored(np.asarray(inputs[node.attribute("name")]), node.type.dtype, evaluator.precise)
    if node.op == library.boundary("constant").name:
        return evaluator.constant(node, node.type.lens)
    operands = [values[id(o)] for o in node.operands]
    if noise is None:
        return evaluator.value(node, operands)  # type: ignore[return-value]
    value: Array = evaluator.value(node, noise.operands(node, operands))  # type: ignore[assignment]
    return noise.result(node, value)
