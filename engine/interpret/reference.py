"""Programs evaluated in numpy, at any stage: tensors one after the other, lane programs all lanes at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from genrw.engine.interpret.evaluate import Evaluator, at_node
from genrw.engine.interpret.lane_program import LaneProgram
from genrw.engine.ir.dtypes import DTYPES, dtype_name
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.language.arrays import Array, Values, check_repeats, masked, storage, stored
from genrw.engine.language.functions import Value
from genrw.engine.library.library import Library
from genrw.engine.programs.signature import written_parameters
from genrw.grammar.diagnostics import error
from genrw.grammar.expr_tree import Expr

_VIEWS = ("index_map", "boundary")
"""Roles of operators whose tensors may lie in memory that is there already."""
_LANE_SORTS = ("scalar", "array", "index")


def interpret(
    module: Module,
    library: Library,
    context: Mapping[str, Any],
    inputs: Mapping[str, Values],
    *,
    precise: bool = False,
    evaluator: Evaluator | None = None,
) -> dict[str, Values]:
    """The results of a module, by name, for inputs by parameter name.

    `context` is what rules may ask of the module's surroundings (`Pipeline.context`). With `precise`, floats
    are double throughout: results are, and inputs may be. `evaluator` computes in place of the usual one. GenrwError
    for inputs that do not fit, and for a lane program that reads outside a tensor, writes different values to one
    element, or leaves one unwritten.
    """
    evaluator = evaluator or Evaluator(library, context, precise)
    written = written_parameters(module, library)
    given = _inputs(module, written, inputs, precise)
    with np.errstate(all="ignore"):
        if any(node.type.sort in _LANE_SORTS for node in module.nodes):
            outputs: dict[str, Values] = LaneProgram(module, evaluator, given, written).outputs()
            return _named(module, outputs)
        return _tensor_results(module, evaluator, given, written)


def _part_of(node: Node, library: Library, number: int) -> Node:
    """The operand that plays a part in its operator's role."""
    operator = library.operator(node.op)
    names = [decl.name for decl in operator.decl.operands]
    return node.operands[names.index(operator.decl.role_parts[number])]


# ---- inputs and results


def _inputs(
    module: Module, written: Mapping[str, Node], inputs: Mapping[str, Values], precise: bool
) -> dict[str, Array]:
    """The given arrays by parameter name, checked; GenrwError if one is missing, wrong or unknown."""
    wanted = {p.attribute("name"): p for p in module.parameters if p.attribute("name") not in written}
    for name in inputs:
        if name not in wanted:
            raise error(f"module `{module.name}` has no input `{name}`", remedy=_inputs_are(wanted))
    found = {name: checked_input(name, p, inputs.get(name), precise) for name, p in wanted.items()}
    return {name: stored(values, wanted[name].type.dtype, precise) for name, values in found.items()}


def _inputs_are(names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"its inputs are {listed}" if listed else "it has no inputs"


def checked_input(name: str, parameter: Node, given: object, precise: bool) -> Values:
    """What is given for a parameter as an array; GenrwError if it does not fit."""
    if given is None:
        raise error(f"there is no value for the input `{name}`", parameter.span)
    if isinstance(given, np.ma.MaskedArray):
        raise masked(name)
    values, type_ = np.asarray(given), parameter.type
    dtype, lens = dtype_name(values.dtype) or str(values.dtype), list(type_.lens)
    if dtype != type_.dtype and not (precise and dtype == "double" and DTYPES[type_.dtype].is_float):
        raise error(f"the input `{name}` is of type {type_.dtype}, not {dtype}", parameter.span)
    if values.shape != type_.lens:
        raise error(f"the input `{name}` has lens {lens}, not {list(values.shape)}", parameter.span)
    check_repeats(name, values, type_.layout)
    return values


def _named(module: Module, outputs: Mapping[str, Values]) -> dict[str, Values]:
    """Output parameters under the names of the results that they hold."""
    return _unique((module.outputs.get(name, name), values) for name, values in outputs.items())


def _unique(results: Iterable[tuple[str, Values]]) -> dict[str, Values]:
    """Results by name; a name met again gets a number."""
    found: dict[str, Values] = {}
    for wanted, values in results:
        name, count = wanted, 0
        while name in found:
            count += 1
            name = f"{wanted}_{count}"
        found[name] = values
    return found


# ---- tensor programs


def _tensor_results(
    module: Module, evaluator: Evaluator, inputs: Mapping[str, Array], written: Mapping[str, Node]
) -> dict[str, Values]:
    library = evaluator.library
    values: dict[int, Value] = {}
    outputs: dict[str, Values] = {}
    needless = _needless_after(module)

    def finished(node: Node) -> Values:
        result: Values = values[id(node)].finished(node.type.dtype, evaluator.precise)
        return result

    for node in module.nodes:
        if library.role(node.op) == "write":
            buffer, tensor = _part_of(node, library, 0), _part_of(node, library, 1)
            if any(tensor is parameter for parameter in written.values()):
                raise at_node(node, f"reads `{tensor.attribute('name')}`, which only results are written to")
            outputs[buffer.attribute("name")] = finished(tensor).reshape(buffer.type.lens)
        elif node is not module.root:
            values[id(node)] = _tensor_value(node, evaluator, values, inputs)
        for operand in needless[id(node)]:
            values.pop(id(operand), None)
    if module.root.op == library.boundary("result").name:
        return {name: finished(node) for name, node in zip(module.results, module.root.operands, strict=True)}
    return _named(module, {name: outputs[name] for name in written})


def _needless_after(module: Module) -> dict[int, list[Node]]:
    """For each node, the operands that no later one needs; those of the root are results."""
    last = {id(operand): (node, operand) for node in module.nodes for operand in node.operands}
    needless: dict[int, list[Node]] = {id(node): [] for node in module.nodes}
    for node, operand in last.values():
        if node is not module.root:
            needless[id(node)].append(operand)
    return needless


def most_held(module: Module, library: Library, precise: bool) -> int:
    """The most bytes that values of a tensor program take at least at a time: those that are computed and needed still. Other
    elements of a tensor, and constants, may be views."""
    needless, held = _needless_after(module), dict[int, int]()
    taken = most = 0
    for node in module.nodes:
        if node.type.dtype in DTYPES and library.role(node.op) not in _VIEWS:
            held[id(node)] = node.type.elements * storage(node.type.dtype, precise).itemsize
            taken += held[id(node)]
        most = max(most, taken)
        taken -= sum(held.get(id(operand), 0) for operand in needless[id(node)])
    return most


def _tensor_value(node: Node, evaluator: Evaluator, values: Mapping[int, Value], inputs: Mapping[str, Array]) -> Value:
    library = evaluator.library
    role = library.role(node.op)
    if node.op == library.boundary("input").name:
        return inputs.get(node.attribute("name"), node.type)
    if node.op == library.boundary("constant").name:
        return evaluator.constant(node, node.type.lens)
    if role == "alloc":
        return node.type
    if role == "boundary":
        raise at_node(node, "cannot stand in a tensor program")
    value = evaluator.value(node, [values[id(o)] for o in node.operands])
    return _of_shape(node, value, evaluator.meaning(node))


def _of_shape(node: Node, value: Value, meaning: Expr | None) -> Value:
    """The value, which has to have the shape that its type says; of an accumulator, each field."""
    if isinstance(value, tuple):
        return tuple(_of_shape(node, part, meaning) for part in value)
    if not isinstance(value, Array) or value.values.shape != node.type.lens:
        found = list(value.values.shape) if isinstance(value, Array) else "another kind of value"
        raise at_node(node, f"means a tensor of lens {found}, but its type says {list(node.type.lens)}", meaning)
    return value
