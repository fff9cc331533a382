"""ONNX graphs as programs: node by node, as the rules' `import` declarations say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from genrw.engine.importing.importer import Translator
from genrw.engine.importing.scope import ImportHost, InnerGraph, Unfit, Use
from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.ir.dtypes import dtype_name, numpy_dtype
from genrw.engine.ir.nodes import Attributes, Module, Node, distinct_names, walk
from genrw.engine.ir.types import EFFECT, Type
from genrw.engine.language.arrays import Values, stored
from genrw.engine.library.context import EMPTY
from genrw.engine.library.library import Library
from genrw.engine.programs.array_files import of_type, type_text
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.parsing import special

DIALECT = "onnx"
"""What rules call ONNX's operators."""

_LITERAL_ELEMENTS = 64
"""Longer constants stand in files."""

_FOLDED_ELEMENTS = 1 << 16
"""Larger results of constants are left to the kernels."""

_COMPUTED_ELEMENTS = 1 << 20
"""What is computed to learn a shape may be this large."""

_MAX_ELEMENTS = 1 << 48

_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Imported:
    """A program made from a graph. `arrays` are its constants by file name; `inputs` says what the graph calls its
    parameters, those among them that nothing depends on; `unused` are names, the graph's and the program's, of inputs that
    are none of the program's: those whose given values went into it. The program's results are the graph's outputs, in order."""

    module: Module
    arrays: Mapping[str, Values]
    inputs: Mapping[str, str]
    unused: frozenset[str]


def import_graph(
    model: onnx.ModelProto,
    library: Library,
    target: str,
    dims: Mapping[str, int],
    values: Mapping[str, Values],
) -> Imported:
    """The program of a model. `dims` are the lengths of symbolic dimensions; `values` are arrays for inputs, which go
    into the program where it depends on them. GenrwError with all problems found."""
    return _Importer(model, library, target, dims, values).imported()


def missing_operators(nodes: Sequence[onnx.NodeProto], library: Library) -> Counter[str]:
    """How often each operator stands in a graph that no declaration imports."""
    names = Counter(map(_operator, nodes))
    return Counter({name: count for name, count in names.items() if name not in library.dialects.get(DIALECT, {})})


class _Importer(ImportHost):
    def __init__(
        self,
        model: onnx.ModelProto,
        library: Library,
        target: str,
        dims: Mapping[str, int],
        values: Mapping[str, Values],
    ) -> None:
        self.graph, self.library, self.dims, self.values = model.graph, library, dims, values
        context = {"target": library.target(target), "schedule": EMPTY}
        opset = max((o.version for o in model.opset_import if o.domain in _DOMAINS), default=0)
        self.translator = Translator(library, DIALECT, context, self, opset)
        self.evaluator = Evaluator(library, context, precise=False)
        self.constant_op = library.boundary("constant").name
        self.known: dict[int, Values] = {}
        self.inputs: dict[int, str] = {}
        self.made: dict[Any, Node] = {}
        self.keys: dict[int, Any] = {}
        self.kept: list[Node] = []
        self.names: set[str] = set()
        self.own: dict[str, str] = {}
        self.usual: frozenset[str] = frozenset()
        self.arrays: dict[str, Values] = {}
        self.problems: list[Diagnostic] = []

    def imported(self) -> Imported:
        nodes = _needed(self.graph)
        missing = missing_operators(nodes, self.library)
        if missing:
            raise error(
                _missing_message(missing),
                remedy=f"declare them with `import` below `dialect {DIALECT}` in a folder of rules",
            )
        scope: dict[str, Node | None] = {"": None}
        self._parameters(scope)
        self._initializers(scope, nodes)
        for node in nodes:
            self._translate(node, scope)
        if self.problems:
            raise GenrwError(self.problems)
        return self._whole(scope)

    def _whole(self, scope: Mapping[str, Node | None]) -> Imported:
        """The program of the graph's outputs, its parameters in the order in which the graph names them."""
        results = [value for o in self.graph.output if (value := scope[o.name]) is not None]
        # A result may be a value of another name: an input, or what a graph within the graph gives.
        names = distinct_names(_clean(o.name) for o in self.graph.output if scope[o.name] is not None)
        root = Node(self.library.boundary("result").name, (), tuple(results), EFFECT)
        found = [n for n in walk(root) if n.op == self.library.boundary("input").name]
        # Who gives arrays in the graph's order gives one for each of its inputs; several names may stand for one.
        given = [node for name, node in scope.items() if name not in self.values]
        reached = {id(node) for node in found}
        others = {id(node): node for node in given if node is not None and id(node) in self.inputs}
        found += [node for key, node in others.items() if key not in reached]
        # The place of a node is that of the first of its names.
        order: dict[int, int] = {}
        for node in scope.values():
            order.setdefault(id(node), len(order))
        parameters = tuple(sorted(found, key=lambda p: order.get(id(p), len(order))))
        files = {p.attribute("file") for p in parameters}
        arrays = {name: array for name, array in self.arrays.items() if name in files}
        inputs = {p.attribute("name"): self.inputs[id(p)] for p in parameters if id(p) in self.inputs}
        unused = frozenset(n for name in {*self.inputs.values()} - {*inputs.values()} for n in (name, self.own[name]))
        unused |= self.usual & self.values.keys()
        return Imported(Module("main", root, parameters, results=names), arrays, inputs, unused)

    # ---- what the graph is given

    def _parameters(self, scope: dict[str, Node | None]) -> None:
        constants = {tensor.name for tensor in self.graph.initializer}
        given = [value for value in self.graph.input if value.name not in constants]
        # The constants of other inputs are what these are where nobody gives them.
        self.usual = frozenset(value.name for value in self.graph.input) & constants
        # A name that a program may have stays that of its own input, whatever the others become.
        self.own = names = {v.name: self._name(v.name) for v in sorted(given, key=lambda v: _clean(v.name) != v.name)}
        graph_names = {own: name for name, own in names.items()}
        self.values = {graph_names.get(name, name): array for name, array in self.values.items()}
        self._check_names(given)
        for value in given:
            try:
                type_ = self._type(value)
            except GenrwError as problem:
                self.problems.extend(problem.diagnostics)
                scope[value.name] = None
                continue
            scope[value.name] = node = self._parameter(names[value.name], type_, "")
            self.inputs[id(node)] = value.name

    def _check_names(self, inputs: Sequence[onnx.ValueInfoProto]) -> None:
        """Adds a problem for each length and array that is given for nothing of the graph."""
        names = [value.name for value in inputs]
        for name in sorted(self.values.keys() - {*names, *self.usual}):
            remedy = f"its inputs are {', '.join(names)}" if names else "it has no inputs"
            self.problems.append(Diagnostic(f"the model has no input `{name}`", remedy=remedy))
        dims = [(v.name, axis, d) for v in inputs for axis, d in enumerate(v.type.tensor_type.shape.dim)]
        symbols = {_symbol(*dim): None for dim in dims if dim[2].WhichOneof("value") != "dim_value"}
        for name in sorted(self.dims.keys() - symbols.keys()):
            remedy = f"its symbolic dimensions are {', '.join(symbols)}" if symbols else "it has none: leave it out"
            self.problems.append(Diagnostic(f"the model has no symbolic dimension `{name}`", remedy=remedy))

    def _parameter(self, name: str, type_: Type, file: str) -> Node:
        attributes = (("name", name), ("dtype", type_.dtype), ("lens", type_.lens), ("strides", ()), ("file", file))
        return Node(self.library.boundary("input").name, attributes, (), type_, name)

    def _type(self, value: onnx.ValueInfoProto) -> Type:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            found = (kind or "unknown").removesuffix("_type").replace("_", " ")
            raise error(
                f"the input `{value.name}` is of type {found}, not a tensor", remedy="export a model of tensors"
            )
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            raise error(f"the input `{value.name}` has no shape", remedy="shapes are fixed when a model is imported")
        lens = tuple(self._length(value.name, i, d) for i, d in enumerate(tensor.shape.dim))
        try:
            type_ = Type("tensor", self.dtype(tensor.elem_type), lens)
        except Unfit as problem:
            raise error(f"the input `{value.name}`: {problem}", remedy="convert it before the model") from None
        if type_.elements >= _MAX_ELEMENTS:
            raise error(f"the input `{value.name}` is too large", remedy="it has fewer than 2^48 elements")
        return type_

    def _length(self, name: str, axis: int, dim: onnx.TensorShapeProto.Dimension) -> int:
        if dim.WhichOneof("value") == "dim_value":
            if not 0 <= dim.dim_value < _MAX_ELEMENTS:
                remedy = f"export the model with a length from 0 to {_MAX_ELEMENTS - 1}, or with a name for it"
                raise error(f"the length {dim.dim_value} of the input `{name}` is out of range", remedy=remedy)
            return int(dim.dim_value)
        symbol = _symbol(name, axis, dim)
        if symbol not in self.dims:
            raise error(f"the length `{symbol}` of the input `{name}` is not known", remedy=f"add `--dim {symbol}=8`")
        return self.dims[symbol]

    def _initializers(self, scope: dict[str, Node | None], nodes: Sequence[onnx.NodeProto]) -> None:
        used = {name for node in nodes for name in _taken(node)} | {o.name for o in self.graph.output}
        for tensor in self.graph.initializer:
            if tensor.name in used:
                scope[tensor.name] = self._tensor(tensor, tensor.name)

    def _tensor(self, tensor: onnx.TensorProto, name: str) -> Node | None:
        try:
            type_ = Type("tensor", self.dtype(tensor.data_type), tuple(tensor.dims))
            return self._known_node(self._array(tensor, type_), name)
        except Unfit as problem:
            self.problems.append(Diagnostic(f"the constant `{name}`: {problem}"))
        except Exception as problem:  # onnx raises whatever damaged data brings up
            self.problems.append(Diagnostic(f"the constant `{name}` is damaged: {str(problem).splitlines()[0]}"))
        return None

    def _array(self, tensor: onnx.TensorProto, type_: Type) -> Values:
        """What a constant holds; that of an input, what is given for it."""
        if tensor.name not in self.usual & self.values.keys():
            return numpy_helper.to_array(tensor)
        array = of_type(np.asarray(self.values[tensor.name]), type_)
        if isinstance(array, str):
            raise Unfit(f"the array given for it holds {array}, not {type_text(type_)}")
        return array

    def _known_node(self, array: Values, name: str | None) -> Node:
        """A constant: written out where it is short, else a parameter with a file."""
        dtype = dtype_name(array.dtype)
        assert dtype is not None
        type_ = Type("tensor", dtype, array.shape)
        if array.size <= _LITERAL_ELEMENTS:
            attributes = (("value", _elements(array)), ("dtype", dtype), ("lens", type_.lens))
            node = Node(self.constant_op, attributes, (), type_, self._name(name) if name else None)
        else:
            shown = self._name(name or "constant")
            file = f"{shown}.npy"
            node = self._parameter(shown, type_, file)
            self.arrays[file] = array
        self.known[id(node)] = array
        self.kept.append(node)
        return node

    def _name(self, wanted: str) -> str:
        """A name close to the one wanted that is not taken."""
        name = base = _clean(wanted)
        count = 0
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        return name

    # ---- nodes

    def _translate(self, node: onnx.NodeProto, scope: dict[str, Node | None]) -> None:
        for name in node.output:
            scope[name] = None
        if any(name and scope.get(name) is None for name in _taken(node)):
            return
        try:
            self.translate(node, scope)
        except Unfit as problem:
            where = f" (node `{node.name}`)" if node.name else ""
            self.problems.append(Diagnostic(f"`{node.op_type}`{where} cannot be imported: {problem}"))

    def translate(self, node: onnx.NodeProto, scope: dict[str, Node | None]) -> None:
        """Give the results of a graph's node their places in the scope; Unfit if it cannot be translated."""
        outputs = max(i + 1 for i, name in enumerate(node.output) if name)
        attributes = {a.name: self._attribute(a, scope) for a in node.attribute}
        use = Use(_operator(node), attributes, tuple(scope[name] for name in node.input), outputs)
        for name, result in zip(node.output, self.translator.results(use), strict=False):
            scope[name] = self._named(result, name)

    def _named(self, node: Node, name: str) -> Node:
        """The value under the graph's name for it, unless it has one."""
        if not name or node.name is not None:
            return node
        named = replace(node, name=self._name(name))
        self.kept.append(named)
        if id(node) in self.keys:
            self.made[self.keys[id(node)]] = named
        if id(node) in self.known:
            self.known[id(named)] = self.known[id(node)]
        return named

    def _attribute(self, attribute: onnx.AttributeProto, scope: Mapping[str, Node | None]) -> Any:
        if attribute.type == onnx.AttributeProto.GRAPH:
            return _Inner(self, attribute.g, scope)
        if attribute.type == onnx.AttributeProto.TENSOR:
            return self.constant(attribute.t)
        if attribute.ref_attr_name:
            raise Unfit(f"its attribute `{attribute.name}` is one of a function, in which the node does not stand")
        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, (int, float)):
            return value
        if isinstance(value, Sequence) and all(isinstance(v, (int, float, bytes)) for v in value):
            return tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value)
        raise Unfit(f"its attribute `{attribute.name}` is no number, text or tensor")

    def constant(self, tensor: onnx.TensorProto) -> Node:
        """A constant that a graph or a node holds; Unfit if its elements are of no type here."""
        self.dtype(tensor.data_type)
        return self._known_node(numpy_helper.to_array(tensor), tensor.name or "constant")

    # ---- what translating asks for

    def make(self, op: str, attributes: Attributes, operands: tuple[Node, ...], type_: Type) -> Node:
        """An operation, the same one for the same operands; of constants alone, its value."""
        if type_.elements >= _MAX_ELEMENTS:
            raise Unfit(f"a result of lengths {list(type_.lens)} is too large")
        key = (op, repr(attributes), tuple(map(id, operands)))
        if key in self.made:
            return self.made[key]
        node = Node(op, attributes, operands, type_)
        if op == self.constant_op and type_.elements <= _FOLDED_ELEMENTS:
            self.known[id(node)] = self.evaluator.constant(node, type_.lens).finished(type_.dtype, False)
        elif operands and type_.elements <= _FOLDED_ELEMENTS and all(id(o) in self.known for o in operands):
            node = self._known_node(self._evaluate(node), None)
        self.made[key] = node
        self.keys[id(node)] = key
        self.kept.append(node)
        return node

    def read(self, node: Node) -> Values:
        """The elements of a value that follows from constants and given inputs."""
        for part in walk(node):
            if id(part) in self.known:
                continue
            if id(part) in self.inputs:
                self.known[id(part)] = self._given(self.inputs[id(part)], part.type)
            elif part.type.elements > _COMPUTED_ELEMENTS:
                raise Unfit("a shape depends on a value that is too large to be computed now")
            else:
                self.known[id(part)] = self._evaluate(part)
        return self.known[id(node)]

    def _given(self, name: str, type_: Type) -> Values:
        if name not in self.values:
            raise Unfit(f"a shape depends on the value of the input `{name}`; give it with `--input {name}=FILE.npy`")
        array = of_type(np.asarray(self.values[name]), type_)
        if isinstance(array, str):
            raise Unfit(f"the array given for the input `{name}` holds {array}, not {type_text(type_)}")
        return np.asarray(array, numpy_dtype(type_.dtype))

    def _evaluate(self, node: Node) -> Values:
        operands = [stored(self.known[id(o)], o.type.dtype, False) for o in node.operands]
        result: Values = self.evaluator.value(node, operands).finished(node.type.dtype, False)
        return result

    def dtype(self, code: int) -> str:
        """The element type of an ONNX type's number."""
        try:
            name = dtype_name(np.dtype(helper.tensor_dtype_to_np_dtype(code)))
        except KeyError:
            name = None
        if name is None:
            listed = {number: label for label, number in onnx.TensorProto.DataType.items()}
            raise Unfit(f"elements of type {listed.get(code, code)} are not supported")
        return name


@dataclass(frozen=True)
class _Inner(InnerGraph):
    """A graph within a graph, with the values that it takes from around it."""

    importer: _Importer
    graph: onnx.GraphProto
    around: Mapping[str, Node | None]

    def results(self, operands: Sequence[Node]) -> list[Node]:
        if len(operands) != len(self.graph.input):
            raise Unfit(f"its graph has {len(self.graph.input)} inputs, not {len(operands)}", 3)
        scope = dict(self.around)
        for tensor in self.graph.initializer:
            scope[tensor.name] = self.importer.constant(tensor)
        scope.update(zip((i.name for i in self.graph.input), operands, strict=True))
        for node in _needed(self.graph):
            try:
                self.importer.translate(node, scope)
            except Unfit as problem:
                raise Unfit(f"its `{node.op_type}` cannot be imported: {problem}", 3) from None
        return [value for o in self.graph.output if (value := scope[o.name]) is not None]


def _symbol(name: str, axis: int, dim: onnx.TensorShapeProto.Dimension) -> str:
    """What a length of an input is called that the model leaves open."""
    return dim.dim_param or f"{name}.{axis}"


def _clean(wanted: str) -> str:
    """A name that values of programs may have, close to the one wanted."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "_", wanted).strip(".") or "value"
    name = name if special(name) is None else f"{name}_"  # a number, in a program
    return name if name[0].isalpha() or name[0] == "_" else f"_{name}"


def _elements(array: Values) -> Any:
    """A constant's elements as attributes hold them: one number where all are the same."""
    plain = array if array.dtype.kind in "iub" else array.astype(np.float64)
    values = plain.reshape(-1).tolist()
    return values[0] if len(set(map(str, values))) == 1 else tuple(values)


def _needed(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes that the outputs depend on, in order."""
    wanted = {output.name for output in graph.output}
    needed: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if wanted.intersection(filter(None, node.output)):
            wanted.update(_taken(node))
            needed.append(node)
    return needed[::-1]


def _taken(node: onnx.NodeProto) -> set[str]:
    """The names that a node takes: its inputs, and what its inner graphs take from around it."""
    return {*node.input} | {
        name
        for attribute in node.attribute
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else []))
        for name in _free(graph)
    }


def _free(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph uses and does not make."""
    used = {output.name for output in graph.output}
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for inner in graph.node:
        used |= _taken(inner)
        made |= {*inner.output}
    return used - made - {""}


def _operator(node: onnx.NodeProto) -> str:
    """An operator's name, with that of its domain before it unless it is ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in _DOMAINS else node.op_type


def _missing_message(missing: Counter[str]) -> str:
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(missing.items(), key=lambda m: (-m[1], m[0])))
    plural = "s that are" if len(missing) > 1 else " that is"
    return f"the model uses {len(missing)} operator{plural} not supported: {listed}"
