"""Parsed `.gen` modules to checked, typed graphs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from genrw.engine.ir.dtypes import DTYPES, is_dtype, is_element, type_meant
from genrw.engine.ir.nodes import Attributes, Module, Node, Unit, distinct_names
from genrw.engine.ir.types import EFFECT, MEMORY_LIMIT, Type, beyond_limits
from genrw.engine.language.expr_walk import did_you_mean
from genrw.engine.library.infer import TypeProblem, check_arity, environment, infer, unmet_requirement
from genrw.engine.library.library import Library, Operator
from genrw.engine.programs.build_main import build_main, is_main
from genrw.engine.programs.calls import (
    called_modules,
    check_calls,
    check_given,
    check_names,
    check_operands,
    parameters_of,
)
from genrw.engine.programs.headers import check_results, check_space
from genrw.engine.programs.space import space_record
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.parsing import show_number
from genrw.grammar.rw_tree import AttributeDecl
from genrw.grammar.source import Span

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
"""What results, parameters and words are called."""

_HEADER = {
    "stage": "a name",
    "target": "a name",
    "policy": "a name",
    "schedule": "a map such as {algo=block}",
    "space": "a list of lengths such as {2, 3}",
    "axes": "a list of axes such as {1}",
    "outputs": "a map of names such as {z_output=y}",
    "results": "a list of names such as {y}",
}

_WRITTEN_OTHERWISE = {
    "input": "an input is written as `x = @param:x -> float{2, 3}`",
    "result": "results are written as `@return(x)`",
    "effects": "stores are returned, as in `@return(x)`",
}
"""How programs write what has an operator only for the engine, by its part of the boundary."""

_MOST_PARAMETERS, _MOST_RESULTS, _MOST_OPERANDS = 2000, 1000, 256
"""How wide programs and operations may be. What they cost grows faster than their width."""

_INT64 = range(-(2**63), 2**63)


def build_file(file: tree.File, library: Library, default_target: str) -> tuple[Unit, ...]:
    """Check and type every module that is not a submodule of another; GenrwError with all problems found.

    A main module, which does nothing but launch kernels, makes one program with them.
    """
    modules: dict[str, tree.Module] = {}
    for module in file.modules:
        if module.name in modules:
            raise error(f"module `{module.name}` is defined twice", module.span, _apart(module, modules[module.name]))
        modules[module.name] = module
    called = {name for module in file.modules for name, _ in called_modules(module)}

    def build(module: tree.Module, *, fragment: bool = False) -> Module:
        return build_module(module, library, default_target, modules, fragment=fragment)

    return tuple(
        build_main(module, library, modules, build) if is_main(module, library) else Unit((build(module),))
        for name, module in modules.items()
        if name not in called
    )


def _apart(module: tree.Module, other: tree.Module) -> str:
    """What to do about two modules of one name: a listing of all stages has each once for a stage."""
    stages = [next((a.value for a in m.attributes if a.name == "stage"), None) for m in (other, module)]
    return "keep the modules of one stage" if stages[0] != stages[1] else "rename one of them"


def build_module(
    module: tree.Module,
    library: Library,
    default_target: str,
    modules: Mapping[str, tree.Module] | None = None,
    *,
    fragment: bool = False,
) -> Module:
    """Check and type one module; GenrwError with all problems found. A fragment, which a rule's author wrote, may return
    values of any sort."""
    header = _header(module, library, of_rule=fragment)
    named = header.get("target", default_target)
    target = library.target(named)
    schedule = header.get("schedule", {})
    arrangement = {**library.whole_schedule(schedule, target), "target": target} if schedule else {}
    _check_arrangement(module, arrangement, library)
    context = {
        "target": target,
        "schedule": library.schedule_record(schedule, target, None if fragment else module.span),
    }
    modules = modules or {module.name: module}
    check_calls(module, modules)
    builder = _Builder(library, context, modules, header.get("stage"), fragment)
    root = builder.body(module, fragment)
    made = Module(
        module.name,
        root,
        tuple(builder.parameters),
        stage=header.get("stage") or infer_stage(library, builder.written),
        target=named if "target" in header else "",
        schedule=schedule,
        space=header.get("space"),
        axes=header.get("axes", ()),
        results=header.get("results", ()) or builder.results,
        outputs=header.get("outputs", {}),
        span=module.span,
    )
    if not fragment:
        check_results(module, made, library)
        check_space(module, made, library)
    if arrangement and made.space is not None:
        _check_arrangement(module, {**arrangement, "space": space_record(made, library)}, library)
    return made


def module_values(
    module: tree.Module, library: Library, default_target: str, modules: Mapping[str, tree.Module]
) -> tuple[list[Node], list[Diagnostic]]:
    """The values of a module that can be typed, in order, and all that is wrong with the others."""
    try:
        header = _header(module, library)
        schedule = header.get("schedule", {})
        target = library.target(header.get("target", default_target))
        check_calls(module, modules)
    except GenrwError as problem:
        return [], list(problem.diagnostics)
    context = {"target": target, "schedule": library.schedule_record(schedule, target)}
    builder = _Builder(library, context, modules, header.get("stage"))
    builder.instructions(module, None)
    return builder.made, builder.problems


def infer_stage(library: Library, ops: Sequence[str]) -> str:
    """The stage of a module without a header: the latest of the stages at which its operators first appear."""
    order = {stage: i for i, stage in enumerate(library.stages)}
    firsts = [min((order[s] for s in library.operator(op).decl.stages if s in order), default=0) for op in ops]
    latest = max(firsts, default=0)
    return library.stages[latest] if latest else ""


def _header(module: tree.Module, library: Library, of_rule: bool = False) -> dict[str, Any]:
    """What a module's header says; GenrwError if that is of the wrong kind."""
    header: dict[str, Any] = {}
    for attribute in module.attributes:
        if attribute.name not in _HEADER:
            what = "an example's context" if of_rule else "a module header"
            raise error(f"{what} has no `{attribute.name}`", attribute.span, f"it has {', '.join(_HEADER)}")
        problem = _header_problem(attribute, header, library)
        if problem is not None:
            message, span, remedy = problem
            raise error(as_rules_write(message) if of_rule else message, span, remedy)
        header[attribute.name] = plain(attribute.value)
    return header


def _header_problem(
    attribute: tree.Attribute, header: Mapping[str, Any], library: Library
) -> tuple[str, Span, str | None] | None:
    """What is wrong with an entry of a header, where, and the remedy."""
    name, value, span = attribute.name, plain(attribute.value), attribute.value_span
    if not _is_of_kind(name, value):
        return f"the header's `{name}` is {_HEADER[name]}", span, "write one, or leave it out"
    if name == "stage" and value not in library.stages:
        return f"there is no stage `{value}`", span, f"stages are {', '.join(library.stages)}"
    if name == "target" and value not in library.targets:
        return f"unknown target `{value}`", span, f"targets are {', '.join(library.targets)}"
    if name == "axes" and any(not 0 <= axis < len(header.get("space", ())) for axis in value):
        return "an axis is out of range for the header's `space`", span, "give the space before its axes"
    wrong = _schedule_problem(value, library) if name == "schedule" else None
    return None if wrong is None else (wrong, span, "leave it out")


def as_rules_write(text: str) -> str:
    """A text about values with its lists in square brackets: `{1, 2}` of a program is `[1, 2]` in a rule."""
    changed = re.sub(r"\{([^={}]*)\}", r"[\1]", text)
    return changed if changed == text else as_rules_write(changed)


def _is_of_kind(name: str, value: Any) -> bool:
    """Is an entry of a header what `_HEADER` says?"""
    if name in ("space", "axes"):
        fine = isinstance(value, tuple) and all(type(v) is int for v in value)
        return fine and all(0 <= v < 2**48 for v in value)
    if name == "results":
        return isinstance(value, tuple) and all(map(_is_name, value))
    if name in ("schedule", "outputs"):
        return isinstance(value, dict) and (name == "schedule" or all(map(_is_name, value.values())))
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    """Can a result be called so? Results are saved in files of their names."""
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _schedule_problem(schedule: Mapping[str, Any], library: Library) -> str | None:
    """What is wrong with the entries of a schedule: they are the attributes of the operator that stands for kernels."""
    kernels = library.kernel_operators
    declared = {name: decl for op in kernels for name, decl in op.attributes.items()}
    for name, value in schedule.items():
        if kernels and name not in declared:
            return f"a schedule has no `{name}`: it has {', '.join(declared)}"
        problem = attribute_problem(library, declared[name].type, value) if kernels else None
        if problem is not None:
            return f"the schedule's `{name}` {problem}"
    return None


def _check_arrangement(module: tree.Module, known: Mapping[str, Any], library: Library) -> None:
    """GenrwError if the entries of a header's schedule are no arrangement of lanes, as far as that follows from what is known."""
    for kernel in library.kernel_operators:
        wrong = unmet_requirement(kernel, known)
        if wrong is not None:
            span = next(a.value_span for a in module.attributes if a.name == "schedule")
            raise error(wrong, span, "give numbers that fit together, or leave the schedule out")


def plain(value: tree.Value) -> Any:
    """An attribute's value without syntax: words as strings, lists as tuples, maps as dicts."""
    if isinstance(value, tree.Word):
        return value.name
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, tree.MapValue):
        return {k: plain(v) for k, v in value.items}
    if isinstance(value, tree.TypeNode):
        return (value.dtype or "float", value.lens) if value.kind == "tensor" else (value.dtype or value.kind)
    return value


class _Builder:
    """Builds the instructions of a module, inlining the modules it calls."""

    def __init__(
        self,
        library: Library,
        context: Mapping[str, Any],
        modules: Mapping[str, tree.Module],
        stage: str | None,
        of_rule: bool = False,
    ) -> None:
        """`stage`: the text is that stage's output, where operators' names stand for values without a name. `of_rule`: it is
        an example of a rule."""
        self.library = library
        self.context = context
        self.modules = modules
        self.parameters: list[Node] = []
        self.parameter_names: set[str] = set()
        self.written: list[str] = []
        self.problems: list[Diagnostic] = []
        self.made: list[Node] = []
        self.calling: list[str] = []
        self.printed = stage is not None
        self.of_lanes = stage is not None and stage not in library.boundary("result").decl.stages
        self.of_rule = of_rule
        self.returned: tuple[str, ...] = ()
        self.results: tuple[str, ...] = ()

    def body(self, module: tree.Module, fragment: bool) -> Node:
        """The root of the module; raises all problems at once."""
        results = self.instructions(module, None)
        if self.problems:
            raise GenrwError(self.problems)
        if results is None:
            last = module.instructions[-1].span if module.instructions else module.span
            raise error("the program has no `@return`", last, "end it with `@return(name)`")
        nodes, span = results
        if not fragment:
            self.check_returned(module, nodes)
        self.results = self.returned
        effects = all(n.type.sort == "effect" for n in nodes)
        part = self.library.boundary("effects" if effects else "result")
        if fragment:
            return Node(part.name, (), tuple(nodes), EFFECT, None, span)
        return self.node(part.name, (), tuple(nodes), span, [n.name or "" for n in nodes])

    def check_returned(self, module: tree.Module, nodes: Sequence[Node]) -> None:
        """GenrwError unless a program returns tensors alone, or stores alone."""
        sorts = [node.type.sort for node in nodes]
        if set(sorts) in ({"tensor"}, {"effect"}):
            return
        end = next(i for i in reversed(module.instructions) if i.op == "@return")
        wanted = "tensors, or the stores of its lanes"
        if not nodes:
            raise error(f"a program returns {wanted}", end.span, "end it with `@return(name)`")
        wrong = next(k for k, sort in enumerate(sorts) if sort not in ("tensor", "effect") or sort != sorts[0])
        shown, span = end.operands[wrong], end.operands[wrong].span
        assert isinstance(shown, tree.Ref)
        message = f"a program returns {wanted}; `{shown.name}` is of sort {sorts[wrong]}"
        raise error(message, span, f"leave out `{shown.name}`, or return what is made or stored of it")

    def instructions(self, module: tree.Module, arguments: Sequence[Node] | None) -> tuple[list[Node], Span] | None:
        """Build all instructions; `arguments` take the place of the parameters of a called module."""
        scope: dict[str, Node | None] = {}
        results: tuple[list[Node], Span] | None = None
        taken = iter(arguments or ())
        for instruction in module.instructions:
            if results is not None:
                remedy = "move it above, and return all results at once"
                self.problems.append(
                    Diagnostic("`@return` ends a module, and this is behind it", instruction.span, remedy)
                )
                break
            try:
                if instruction.op == "@return":
                    self.returned = distinct_names(o.name for o in instruction.operands if isinstance(o, tree.Ref))
                    results = self.result_nodes(instruction, scope), instruction.span
                    continue
                if instruction.op == "@param" and arguments is not None:
                    made = [next(taken)]
                else:
                    made = self.instruction(instruction, scope)
                if made:
                    check_names(instruction, len(made))
            except GenrwError as problem:
                self.problems.extend(problem.diagnostics)
                made = []
            self.made += made
            self.bind(instruction, made, scope)
        return results

    def result_nodes(self, instruction: tree.Instruction, scope: Mapping[str, Node | None]) -> list[Node]:
        """The nodes that a `@return` names, but for those whose definition failed."""
        if len(instruction.operands) > _MOST_RESULTS:
            raise _too_wide("a program", "results", _MOST_RESULTS, instruction.operands[_MOST_RESULTS].span)
        number = next((o for o in instruction.operands if isinstance(o, tree.NumberOperand)), None)
        if number is not None:
            raise error("a result has a name", number.span, "write it as x = @literal{5} -> float{1}, and return x")
        return [n for o in instruction.operands if (n := self.operand(o, scope)) is not None]

    def bind(self, instruction: tree.Instruction, made: Sequence[Node], scope: dict[str, Node | None]) -> None:
        names = instruction.names or (instruction.op.removeprefix("@"),)
        for i, name in enumerate(names):
            if name in scope and instruction.names:
                span = instruction.name_spans[i] if instruction.name_spans else instruction.span
                self.problems.append(Diagnostic(f"`{name}` is already defined", span, "give this result another name"))
            scope[name] = made[i] if i < len(made) else None

    def instruction(self, instruction: tree.Instruction, scope: Mapping[str, Node | None]) -> list[Node]:
        if instruction.op == "@param":
            return [self.parameter(instruction)]
        if instruction.op == "@literal":
            return [self.literal(instruction)]
        found = self.library.find(instruction.op)
        if found is None:
            raise GenrwError(self.library.unknown_operator(instruction.op, instruction.op_span))
        operands = [self.operand(o, scope) for o in instruction.operands]
        if any(o is None and isinstance(w, tree.Ref) for o, w in zip(operands, instruction.operands, strict=True)):
            return []
        operator = found[0]
        part = operator.decl.role_parts[0] if operator.role == "boundary" and operator.decl.role_parts else None
        if part in _WRITTEN_OTHERWISE and not (part == "input" and self.of_rule):
            raise error(
                f"`{instruction.op}` is no operation of programs", instruction.op_span, _WRITTEN_OTHERWISE[part]
            )
        if part == "call":
            return self.call(instruction, [o for o in operands if o is not None])
        self.written.append(instruction.op)
        return [self.operation(operator, instruction, operands)]

    def operand(self, operand: tree.Operand, scope: Mapping[str, Node | None]) -> Node | None:
        """The node that an operand names; None for a number, and for a name whose definition failed."""
        if isinstance(operand, tree.NumberOperand):
            return None
        if operand.name not in scope:
            close = get_close_matches(operand.name, list(scope), n=1)
            remedy = f"did you mean `{close[0]}`?" if close else "define it above this line"
            raise error(f"`{operand.name}` is not defined", operand.span, remedy)
        return scope[operand.name]

    def parameter(self, instruction: tree.Instruction) -> Node:
        type_ = self.tensor_type(instruction)
        name = instruction.param or ""
        if not is_dtype(type_.dtype):
            assert instruction.type is not None
            raise error(f"`{name}` is of {type_.dtype}, which only folds make", instruction.type.span, "give elements")
        if len(self.parameters) == _MOST_PARAMETERS:
            raise _too_wide("a program", "parameters", _MOST_PARAMETERS, instruction.span)
        if name in self.parameter_names:
            raise error(f"parameter `{name}` is already defined", instruction.span, "rename one of them")
        op = self.library.boundary("input").name
        attributes = (
            ("name", name),
            ("dtype", type_.dtype),
            ("lens", type_.lens),
            ("strides", type_.strides or ()),
            ("file", instruction.file or ""),
        )
        shown = instruction.names[0] if instruction.names else name
        node = Node(op, attributes, (), type_, shown, instruction.span)
        self.parameter_names.add(name)
        self.parameters.append(node)
        return node

    def literal(self, instruction: tree.Instruction) -> Node:
        type_ = self.tensor_type(instruction)
        elements = instruction.literal or ()
        if len(elements) not in (1, type_.elements):
            raise error(
                f"the literal has {len(elements)} elements, its type {type_.elements}",
                instruction.span,
                "give all elements, or one for all of them",
            )
        for element in elements:
            self.check_element(element, type_.dtype, instruction.span)
        value = elements[0] if len(set(map(str, elements))) == 1 else tuple(elements)
        if self.of_lanes and instruction.type is not None and instruction.type.kind == "scalar":
            made = self.scalar(value, type_.dtype, instruction.span, lane=True)
        else:
            made = self.constant(value, type_, instruction.span)
        return replace(made, name=self.given_name(instruction, made.op))

    def constant(self, value: Any, type_: Type, span: Span) -> Node:
        """Elements row by row: a constant is packed, whatever strides its type is written with."""
        op = self.library.boundary("constant").name
        attributes = (("value", value), ("dtype", type_.dtype), ("lens", type_.lens))
        return Node(op, attributes, (), replace(type_, strides=None), None, span)

    def tensor_type(self, instruction: tree.Instruction) -> Type:
        node = instruction.type
        if node is None:
            raise error(f"`{instruction.op}` needs a type", instruction.span, "write it as `-> float{2, 3}`")
        if node.kind not in ("tensor", "scalar") or (node.kind == "scalar" and node.dtype is None):
            message = f"`{instruction.op}` has a tensor's type, and this is a lane's"
            raise error(message, node.span, "give lengths in braces, as in float{2, 3}")
        return self.type(node)

    def type(self, node: tree.TypeNode) -> Type:
        dtype = node.dtype or "float"
        monoid, _, element = dtype.rpartition(".")
        if not is_dtype(element) or (monoid and monoid not in self.library.monoids):
            raise error(f"unknown type `{dtype}`", node.span, _type_meant(dtype))
        for what, n in (*(("length", n) for n in node.lens), *(("stride", n) for n in node.strides or ())):
            if isinstance(n, str):
                raise error(f"the {what} `{n}` is not a number", node.span, f"{what}s are fixed when lowering")
            if not 0 <= n < 2**48:
                raise error(f"the {what} {n} is out of range", node.span, f"{what}s run from 0 to 2^48 - 1")
        if node.kind == "scalar" and node.dtype:
            return Type("tensor", dtype)
        lens = tuple(int(n) for n in node.lens)
        excess = beyond_limits(lens)
        if excess is not None:
            raise error(excess[0], node.span, excess[1])
        strides = tuple(int(n) for n in node.strides) if node.strides is not None else None
        if strides is not None and len(strides) != len(lens):
            remedy = "write a stride for each length, or none"
            raise error(f"{len(lens)} lengths need as many strides, not {len(strides)}", node.span, remedy)
        plain_type = Type("tensor", dtype, lens)
        type_ = plain_type if strides == plain_type.layout else Type("tensor", dtype, lens, strides)
        if type_.span >= MEMORY_LIMIT:
            message = f"the tensor reaches over {type_.span} elements of memory"
            raise error(message, node.span, "give lengths and strides that reach over fewer than 2^56")
        return type_

    def operation(self, operator: Operator, instruction: tree.Instruction, operands: Sequence[Node | None]) -> Node:
        labels = [o.name if isinstance(o, tree.Ref) else str(o.value).lower() for o in instruction.operands]
        if len(operands) > _MOST_OPERANDS:
            raise _too_wide("an operation", "operands", _MOST_OPERANDS, instruction.operands[_MOST_OPERANDS].span)
        try:
            check_arity(operator, instruction.op, len(operands))
        except TypeProblem as problem:
            raise error(problem.message, instruction.op_span, problem.remedy) from None
        nodes = self.number_operands(operator, instruction, operands)
        attributes = self.attributes(operator, instruction, nodes, labels)
        name = self.given_name(instruction, instruction.op)
        try:
            type_ = infer(self.library, instruction.op, attributes, [n.type for n in nodes], self.context, labels)
        except TypeProblem as problem:
            raise error(problem.message, self.place(instruction, problem), problem.remedy) from None
        self.check_written_type(instruction, type_)
        self.check_written_memory(operator, instruction, nodes)
        return Node(instruction.op, attributes, tuple(nodes), type_, name, instruction.span)

    def given_name(self, instruction: tree.Instruction, op: str) -> str | None:
        """The name that an author gave; None for one that a printed stage made up from the operator."""
        name = instruction.names[0] if instruction.names else None
        made_up = name is not None and re.fullmatch(rf"{re.escape(op)}(\.\d+)?", name)
        return None if self.printed and made_up else name

    def place(self, instruction: tree.Instruction, problem: TypeProblem) -> Span:
        if problem.operand is not None:
            return instruction.operands[problem.operand].span
        for attribute in instruction.attributes:
            if attribute.name == problem.attribute:
                return attribute.value_span
        return instruction.op_span

    def number_operands(
        self, operator: Operator, instruction: tree.Instruction, operands: Sequence[Node | None]
    ) -> list[Node]:
        """The operands, with nodes for those written as numbers: of the type their neighbours have."""
        known = {
            operator.operand(i).dtype: o.type.dtype for i, o in enumerate(operands) if o is not None and o.type.dtype
        }
        lanes = any(o is not None and o.type.sort in ("scalar", "array", "index") for o in operands)
        nodes: list[Node] = []
        for i, (node, written) in enumerate(zip(operands, instruction.operands, strict=True)):
            if node is not None:
                nodes.append(node)
                continue
            assert isinstance(written, tree.NumberOperand)
            decl = operator.operand(i)
            if decl.sort == "index":
                nodes.append(self.number(written))
                continue
            dtype = known.get(decl.dtype) or (decl.dtype if decl.dtype and is_dtype(decl.dtype) else None)
            if dtype is None:
                dtype = "float" if isinstance(written.value, float) else _default_dtype(written.value)
            scalar = decl.sort in ("scalar", "array", "value") or (decl.sort is None and lanes)
            nodes.append(self.scalar(written.value, dtype, written.span, scalar))
        return nodes

    def number(self, written: tree.NumberOperand) -> Node:
        if not isinstance(written.value, int) or isinstance(written.value, bool):
            raise error("an index is a whole number", written.span, "write one, such as 4")
        if abs(written.value) not in _INT64:
            raise error(f"{written.value} is no index", written.span, "indices are numbers of 64 bits with a sign")
        op = self.library.boundary("number").name
        return Node(op, (("value", int(written.value)),), (), Type("index", "int64"), None, written.span)

    def check_element(self, value: Any, dtype: str, span: Span) -> None:
        """GenrwError for a number that no element of a type can stand for."""
        if not is_dtype(dtype):
            raise error(f"{show_number(value)} is no {dtype}", span, "accumulators come from folds")
        if not is_element(value, dtype):
            limits = DTYPES[dtype]
            reach = f"{dtype} runs from {limits.smallest} to {limits.largest}"
            raise error(f"{show_number(value)} is no {dtype}", span, reach)

    def scalar(self, value: Any, dtype: str, span: Span, lane: bool) -> Node:
        self.check_element(value, dtype, span)
        if lane:
            op = self.library.boundary("scalar").name
            return Node(op, (("value", value), ("dtype", dtype)), (), Type("scalar", dtype), None, span)
        return self.constant(value, Type("tensor", dtype), span)

    def attributes(
        self,
        operator: Operator,
        instruction: tree.Instruction,
        operands: Sequence[Node],
        labels: Sequence[str],
    ) -> Attributes:
        """All attributes in declared order, checked and with defaults."""
        given: dict[str, Any] = {}
        for attribute in instruction.attributes:
            decl = operator.attributes.get(attribute.name)
            if decl is None:
                names = ", ".join(operator.attributes) or "none"
                raise error(
                    f"`{instruction.op}` has no attribute `{attribute.name}`",
                    attribute.span,
                    f"it has {names}",
                )
            if attribute.value is None:
                raise error(f"attribute `{attribute.name}` has no value", attribute.span, "write `name=value`")
            given[attribute.name] = self.attribute(decl, attribute, operands, labels)
        return complete(operator, given, [n.type for n in operands], self.context, instruction)

    def attribute(
        self,
        decl: AttributeDecl,
        attribute: tree.Attribute,
        operands: Sequence[Node],
        labels: Sequence[str],
    ) -> Any:
        value = plain(attribute.value)
        problem = attribute_problem(self.library, decl.type, value)
        if problem is not None:
            told = as_rules_write(problem) if self.of_rule else problem
            raise error(f"attribute `{decl.name}` {told}", attribute.value_span, attribute_remedy(decl.type, value))
        if decl.type in ("axes", "axis"):
            if not operands:
                message = f"`{decl.name}` counts axes of the first operand, and there is none"
                raise error(message, attribute.span, "write an operand")
            axes = (value,) if decl.type == "axis" else value
            rank = len(operands[0].type.lens)
            fixed = tuple(self.axis(a, rank, labels[0], attribute) for a in axes)
            if len(set(fixed)) != len(fixed):
                raise error("an axis is listed twice", attribute.value_span, "list it once")
            return fixed[0] if decl.type == "axis" else tuple(sorted(fixed))
        return float(value) if decl.type == "float" else value

    def axis(self, axis: int, rank: int, label: str, attribute: tree.Attribute) -> int:
        if not -rank <= axis < rank:
            dimensions = "1 dimension" if rank == 1 else f"{rank} dimensions"
            remedy = f"axes run from {-rank} to {rank - 1}" if rank else "it has no axes"
            raise error(
                f"axis {axis} is out of range for {label}, which has {dimensions}",
                attribute.value_span,
                remedy,
            )
        return axis % rank

    def check_written_memory(self, operator: Operator, instruction: tree.Instruction, nodes: Sequence[Node]) -> None:
        """GenrwError for an operation that writes to what is no memory of the caller's."""
        if operator.role != "write":
            return
        position = self.library.part(instruction.op, 0)
        memory = nodes[position]
        if memory.type.sort == "tensor" and memory.op != self.library.boundary("input").name:
            raise error(
                f"`{instruction.op}` writes to a parameter",
                instruction.operands[position].span,
                "declare it with @param",
            )

    def check_written_type(self, instruction: tree.Instruction, type_: Type) -> None:
        written = instruction.type
        if written is None:
            return
        if type_.sort in ("tensor", "buffer") and written.kind == "tensor":
            want = self.type(replace(written, dtype=written.dtype or type_.dtype))
            if (want.dtype, want.lens) == (type_.dtype, type_.lens):
                return
            found = f"{type_.dtype}{{{', '.join(map(str, type_.lens))}}}"
            remedy = "leave the type out, or convert or reshape the result"
            raise error(f"the result is {found}, not {written.span.text or 'as written'}", written.span, remedy)
        if written.kind == "tensor" and type_.sort != "effect":
            raise error(f"the result is of sort {type_.sort}, not a tensor", written.span, "leave the type out")

    def node(
        self, op: str, attributes: Attributes, operands: tuple[Node, ...], span: Span, labels: Sequence[str]
    ) -> Node:
        try:
            type_ = infer(self.library, op, attributes, [n.type for n in operands], self.context, labels)
        except TypeProblem as problem:
            raise error(problem.message, span, problem.remedy) from None
        return Node(op, attributes, operands, type_, None, span)

    def call(self, instruction: tree.Instruction, operands: Sequence[Node]) -> list[Node]:
        """The results of a called module, its instructions built in place."""
        attribute = next((a for a in instruction.attributes if a.name == "module"), None)
        if attribute is None or not isinstance(attribute.value, tree.Word):
            raise error("the call names no module", instruction.op_span, "write `[module=NAME]`")
        name = attribute.value.name
        if name not in self.modules or name in self.calling:
            why = "calls itself" if name in self.calling else "is not in this file"
            remedy = did_you_mean(name, self.modules) or f"write one: @module {name}"
            remedy = "write out what it is to compute" if name in self.calling else remedy
            raise error(f"module `{name}` {why}", attribute.value_span, remedy)
        module = self.modules[name]
        check_operands(instruction, module)
        for written, node, parameter in zip(instruction.operands, operands, parameters_of(module), strict=True):
            check_given(written, node.type, parameter, self.tensor_type(parameter), name)
        told = len(self.problems)
        self.calling.append(name)
        results = self.instructions(module, operands)
        self.calling.pop()
        if len(self.problems) > told:
            return []
        if results is None:
            raise error(f"module `{name}` has no `@return`", attribute.value_span, "end it with `@return(name)`")
        made, _ = results
        if len(made) == 1:
            self.check_written_type(instruction, made[0].type)
        return made


def _too_wide(what: str, parts: str, most: int, span: Span) -> GenrwError:
    return error(f"{what} has no more than {most} {parts}", span, "split it")


def input_node(library: Library, name: str, type_: Type) -> Node:
    """A parameter of a name and type."""
    operator = library.boundary("input")
    given = {"name": name, "dtype": type_.dtype, "lens": type_.lens, "strides": type_.strides or ()}
    return Node(operator.name, complete(operator, given, (), {}), (), type_, name)


def _default_dtype(value: object) -> str:
    return "bool" if isinstance(value, bool) else "int64"


def complete(
    operator: Operator,
    given: Mapping[str, Any],
    operands: Sequence[Type],
    context: Mapping[str, Any],
    instruction: tree.Instruction | None = None,
) -> Attributes:
    """Attributes in declared order with defaults for those not given; GenrwError if one without default is missing."""
    env = environment(operator, None, (), operands, {}, context)
    hidden = {operand.name for operand in operator.decl.operands}
    values: dict[str, Any] = {}
    for name in operator.attributes:
        if name in given:
            value = given[name]
        elif name in operator.defaults:
            try:
                value = operator.defaults[name](env)
            except GenrwError as problem:
                raise _no_default(problem, operator, name, instruction) from None
        else:
            span = instruction.op_span if instruction is not None else operator.decl.name_span
            raise error(f"`{operator.name}` needs its attribute `{name}`", span, f"write `[{name}=…]`")
        values[name] = value
        if name not in hidden:
            env[name] = value
    return tuple(values.items())


def _no_default(problem: GenrwError, operator: Operator, name: str, instruction: tree.Instruction | None) -> GenrwError:
    """What is said of a default that has no value for an operation: at the program, where it is one's."""
    told = problem.diagnostics[0]
    if instruction is None or (told.span is not None and told.span.source is instruction.span.source):
        return problem
    message = f"`{operator.name}` has no `{name}` of its own here: {told.message}"
    return error(message, instruction.op_span, f"mend the operands, or write `[{name}=…]`")


def attribute_problem(library: Library, type_: str, value: Any) -> str | None:
    """What is wrong with a value for an attribute of a declared type; None if nothing is."""
    if type_ in ("int", "axis"):
        return None if _is_whole(value) else "is a whole number of 64 bits"
    if type_ in ("ints", "axes"):
        fine = isinstance(value, tuple) and all(map(_is_whole, value))
        return None if fine else "is a list of whole numbers of 64 bits such as {1, 2}"
    if type_ == "float":
        return None if isinstance(value, (int, float)) and not isinstance(value, bool) else "is a number"
    if type_ == "bool":
        return None if isinstance(value, bool) else "is true or false"
    if type_ == "dtype":
        return None if isinstance(value, str) and is_dtype(value) else "is an element type"
    if type_ == "monoid":
        fine = isinstance(value, str) and value in library.monoids
        return None if fine else f"is one of {', '.join(library.monoids)}"
    if type_ == "instruction":
        fine = isinstance(value, str) and value in library.instructions
        return None if fine else f"is one of {', '.join(library.instructions) or 'none that is declared'}"
    if type_ in ("name", "string", "module"):
        return None if isinstance(value, str) else "is a name"
    if type_ == "shape":
        return None if _is_shape(value) else "is an element type and lengths such as {float, {4}}"
    return "is a number, a text or a list" if _holds_map(value) else None


def attribute_remedy(type_: str, value: Any) -> str:
    """What to write in place of a value that an attribute of a declared type does not take."""
    return _type_meant(value) if type_ == "dtype" and isinstance(value, str) else "write one of that kind"


def _type_meant(name: str) -> str:
    meant = type_meant(name)
    return f"did you mean `{meant}`?" if meant else f"types are {', '.join(DTYPES)}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _is_shape(value: Any) -> bool:
    fine = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], tuple)
    return fine and all(_is_whole(n) and n >= 0 for n in value[1])


def _holds_map(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, tuple) and any(map(_holds_map, value)))
