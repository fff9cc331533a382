"""What `genrw view` shows: programs stage by stage, and of each value where it comes from and what else it could be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from genrw.codegen.hip.names import kernel_names
from genrw.codegen.hip.printer import print_kernel
from genrw.engine.egraph.extract import Member
from genrw.engine.explain.stage_trace import Study, study
from genrw.engine.fusion.compute_locations import is_of_places
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.interner import attributes_key
from genrw.engine.ir.nodes import Main, Module, Node, Unit
from genrw.engine.lowering.program import recording_pipeline_of
from genrw.engine.programs.text import main_tree, module_tree, value_names
from genrw.explain.expressions import Expressions
from genrw.grammar import gen_tree as tree
from genrw.grammar.gen import print_instruction, print_module
from genrw.program import Program

WRITTEN = "written"
"""The column of the program as loaded."""

_MARK = "\x1f"
_MOST_MEMBERS = 60

Json = dict[str, Any]


@dataclass
class _Column:
    """A module at a stage: the keys of its values, by their nodes and by their names."""

    stage: str
    module: Module | Main
    nodes: dict[int, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.stage}:{self.module.name}"


@dataclass
class _Kernel:
    """A kernel, and the modules that are shown for it at each stage."""

    module: Module
    columns: list[tuple[str, tuple[str, ...]]]
    last: _Column


def view_data(program: Program) -> Json:
    """All that the page shows, as JSON."""
    return _Collector(program).collected()


class _Collector:
    def __init__(self, program: Program) -> None:
        self.program, self.library = program, program.library
        self.pipeline = recording_pipeline_of(program.library)
        self.modules: dict[str, Json] = {}
        self.values: dict[str, Json] = {}
        self.rules: dict[str, int] = {}

    def collected(self) -> Json:
        """Follow the programs through the stages that are still to come, each by itself."""
        followed = [self._followed(self.program.with_units((unit,))) for unit in self.program.units]
        kernels = [kernel for found, _ in followed for kernel in found]
        lowered = self.program.with_units(tuple(unit for _, program in followed for unit in program.units))
        return {
            "title": PurePath(self.program.source.name).name,
            "target": self.program.options.target,
            "modules": self.modules,
            "values": self.values,
            "rules": [self._rule(key) for key in self.rules],
            "kernels": self._kernels(kernels, lowered),
        }

    def _followed(self, program: Program) -> tuple[list[_Kernel], Program]:
        """The kernels of one program, and the program at the last stage."""
        start = program.units[0].stage or WRITTEN
        kernels = []
        for module in program.modules:
            column = self._column(module, start)
            kernels.append(_Kernel(module, [(start, (column.key,))], column))
        for stage, lowered in program.remaining_stages():
            kernels = [after for kernel in kernels for after in self._stage(kernel, stage, program, lowered)]
            program = lowered
        return kernels, program

    def _rule(self, key: str) -> Json:
        name = key.split("/")[0]
        rule = next(rule for rule in self.library.rules if rule.name == name)
        return {"name": key, "place": rule.name_span.location, "doc": rule.doc}

    def _rule_number(self, key: str) -> int:
        return self.rules.setdefault(key, len(self.rules))

    # ---- stages

    def _stage(self, kernel: _Kernel, stage: str, program: Program, lowered: Program) -> list[_Kernel]:
        """What a stage makes of a kernel: one, or, where a program is cut, several."""
        if kernel.module.name in lowered.trace.schedules:
            return [self._chosen(kernel, stage, lowered)]
        found = _Known(study(self.pipeline, kernel.module, stage, program.options), program)
        after = found.study.module
        cut = next((u for u in lowered.units if u.main is not None and u.name == kernel.module.name), None)
        if cut is not None and stage == self.library.fusing_stage:
            return self._cut(kernel, found, cut, lowered)
        column = self._column(after, stage)
        self._describe(column, {id(node): node for node in after.nodes}, found, kernel.last)
        return [_Kernel(after, [*kernel.columns, (stage, (column.key,))], column)]

    def _chosen(self, kernel: _Kernel, stage: str, lowered: Program) -> _Kernel:
        """The stage that chooses a schedule: its header says what else there was."""
        chosen = next(m for m in lowered.modules if m.name == kernel.module.name)
        spaced = self.pipeline.spaced(kernel.module, stage)
        module = replace(spaced, schedule=chosen.schedule, stage=stage, target=chosen.target)
        column = self._column(module, stage)
        for node, key in column.nodes.items():
            self.values[key]["ancestors"] = [kernel.last.nodes[node]] if node in kernel.last.nodes else []
        rated = lowered.trace.schedules[module.name]
        head = self.values[f"{column.key}:"]
        head["name"], head["schedules"] = "schedule", True
        head["rules"] = [self._rule_number(r) for _, s, opened in rated if s == module.schedule for r in opened]
        head["members"] = [
            {"text": ", ".join(f"{k}={v}" for k, v in schedule.items()), "cost": cost, "total": cost, "why": ""}
            | {"taken": schedule == module.schedule}
            for cost, schedule, _ in rated
        ]
        return _Kernel(module, [*kernel.columns, (stage, (column.key,))], column)

    def _cut(self, kernel: _Kernel, found: _Known, unit: Unit, lowered: Program) -> list[_Kernel]:
        """The kernels that a program falls into."""
        stage, main = found.study.stage, unit.main
        assert main is not None
        origins = _Origins(found.study.module, main, unit.kernels)
        whole = self._column(main, stage)
        for name, key in whole.names.items():
            self._explain(key, origins.values.get(name), found, kernel.last)
        survived = lowered.trace.survived
        makers = [r.name for r in self.library.rules if is_of_places(r, self.library)]
        self.values[f"{whole.key}:"]["rules"] = [
            self._rule_number(name) for name in makers if main.name in survived.get(name, ())
        ]
        kernels = []
        for module in unit.kernels:
            column = self._column(module, stage)
            self._describe(column, origins.nodes, found, kernel.last)
            self._join(whole, column, origins)
            kernels.append(_Kernel(module, [*kernel.columns, (stage, (whole.key, column.key))], column))
        return kernels

    def _join(self, whole: _Column, column: _Column, origins: _Origins) -> None:
        """Say which values of a main module and of a kernel are the same."""
        named = {id(node): whole.names[name] for name, node in origins.values.items() if name in whole.names}
        for node, key in column.nodes.items():
            other = named.get(id(origins.nodes.get(node)))
            if other is not None:
                self.values[key]["same"].append(other)
                self.values[other]["same"].append(key)

    # ---- values

    def _column(self, module: Module | Main, stage: str) -> _Column:
        """Take in the text of a module."""
        column = _Column(stage, module)
        nodes: Mapping[str, Node] = {}
        if isinstance(module, Module):
            context = self.program.context(module)
            written = module_tree(module, self.library, context)
            nodes = value_names(module, self.library, context)
        else:
            written = main_tree(module, self.library)
        own = f"{column.key}:"
        head = {"parts": [print_module(written).split("\n")[0]], "value": own}
        self._value(own, module.name, column)
        for name in (name for instruction in written.instructions for name in instruction.names):
            column.names[name] = f"{column.key}:{name}"
            self._value(column.names[name], name, column)
        column.nodes.update((id(nodes[name]), key) for name, key in column.names.items() if name in nodes)
        lines = [head, *(_line(instruction, column) for instruction in written.instructions)]
        self.modules[column.key] = {"stage": stage, "name": module.name, "lines": lines}
        return column

    def _value(self, key: str, name: str, column: _Column) -> None:
        about = {"name": name, "stage": column.stage, "module": column.module.name}
        self.values[key] = {**about, "same": [], "ancestors": [], "rules": [], "members": [], "more": 0}

    def _describe(self, column: _Column, origins: Mapping[int, Node], found: _Known, before: _Column) -> None:
        """Say of each value of a column where it comes from."""
        for node, key in column.nodes.items():
            self._explain(key, origins.get(node), found, before)

    def _explain(self, key: str, node: Node | None, found: _Known, before: _Column) -> None:
        """Say of a value where it comes from, which rules made it, and what else it could be."""
        number = found.classes.get(id(node)) if node is not None else None
        if number is None:
            return
        value = self.values[key]
        come = [before.nodes[id(n)] for n in found.ancestors(number) if id(n) in before.nodes]
        value["ancestors"] = list(dict.fromkeys(come))
        value["rules"] = [self._rule_number(name) for name in found.rules.get(number, ())]
        value["members"], value["more"] = found.members(number)

    # ---- kernels

    def _kernels(self, kernels: Sequence[_Kernel], program: Program) -> list[Json]:
        """The kernels with their columns and their source, whose lines name the values that they compute."""
        names = kernel_names([program.as_called(kernel.module) for kernel in kernels], self.library)
        shown = []
        for kernel, name in zip(kernels, names, strict=True):
            columns = [{"stage": stage, "modules": list(modules)} for stage, modules in kernel.columns]
            shown.append({"name": name, "columns": columns, "source": self._source(kernel, name, program)})
        return shown

    def _source(self, kernel: _Kernel, name: str, program: Program) -> list[Json]:
        keys = kernel.last.nodes

        def note(nodes: Sequence[Node]) -> str:
            return _MARK + _MARK.join(dict.fromkeys(keys[id(n)] for n in nodes if id(n) in keys))

        context = program.context(kernel.module)
        text = print_kernel(kernel.module, self.library, context, "", name, note).text
        lines = []
        for line in text.rstrip("\n").split("\n"):
            code, _, noted = line.partition(f"  // {_MARK}")
            lines.append({"text": code, "values": [key for key in noted.split(_MARK) if key]})
        return lines


def _line(instruction: tree.Instruction, column: _Column) -> Json:
    """An instruction's text in parts; those that name values are pairs of the name and the value's key."""
    names = [*instruction.names, *(o.name for o in instruction.operands if isinstance(o, tree.Ref))]
    marked = tuple(tree.Ref(f"{_MARK}{o.name}{_MARK}") if isinstance(o, tree.Ref) else o for o in instruction.operands)
    own = tuple(f"{_MARK}{name}{_MARK}" for name in instruction.names)
    text = print_instruction(replace(instruction, names=own, operands=marked)).split(_MARK)
    assert text[1::2] == names
    parts = [[part, column.names.get(part)] if i % 2 else part for i, part in enumerate(text) if part]
    return {"parts": parts, "value": column.names[instruction.names[0]] if instruction.names else None}


class _Known:
    """What is known of the values of a stage's result, by their classes; `rules` are those that made them."""

    def __init__(self, found: Study, program: Program) -> None:
        self.study = found
        self.classes = found.classes
        self._written = _written(found, program)
        self.rules: dict[int, dict[str, None]] = {}
        self._come: dict[ENode, tuple[Node, ...]] = {}
        for step in found.steps:
            come = tuple(
                dict.fromkeys(node for term in step.matched for node in self._ancestors(term.number, term.node))
            )
            # A step that leaves a part of what there was makes nothing of it.
            for term in (step.after, *step.made) if step.made else ():
                self.rules.setdefault(term.number, {})[step.key] = None
                self._come.setdefault(term.node, come)
        self._shown = Expressions(found, found.states[::-1], program)

    def ancestors(self, number: int) -> tuple[Node, ...]:
        """The written nodes that a class of the result comes from."""
        return self._ancestors(number, self.study.chosen.program[number])

    def _ancestors(self, number: int, node: ENode) -> tuple[Node, ...]:
        """A written value is its own ancestor, and that of its elements; others have those of what rules matched."""
        return self._written.get(number) or self._come.get(node, ())

    def members(self, number: int) -> tuple[list[Json], int]:
        """The members of a class with their costs, and how many more there are."""
        members = self.study.batch.extractor.members(number, self.study.chosen)
        rows = []
        for member in members[:_MOST_MEMBERS]:
            taken = self.study.chosen.program.get(number) == member.node
            row = {"text": self._shown.node(member.node), "cost": member.cost, "total": member.total, "taken": taken}
            rows.append({**row, "why": self._why(member)})
        return rows, len(members) - len(rows)

    def _why(self, member: Member) -> str:
        """Why a member could not be taken; "" for one that could."""
        if member.replaced:
            return "replaced by a rule"
        if member.cost is None:
            return f"not legal after {self.study.stage}"
        return "" if member.total is not None else "made of itself, or of what is not legal"


def _written(found: Study, program: Program) -> dict[int, tuple[Node, ...]]:
    """The written nodes of classes, and for the elements of tensors those of the tensors. Of a value that is made of itself
    again, as by rounding and widening, it is the first."""
    graph, written = found.batch.graph, dict[int, tuple[Node, ...]]()
    below: dict[int, frozenset[int]] = {}
    for node in found.batch.modules[0].nodes:
        number = graph.class_of[graph.ids[id(node)]]
        below[id(node)] = frozenset({number}).union(*(below[id(o)] for o in node.operands))
        if not any(number in below[id(o)] for o in node.operands):
            written[number] = (*written.get(number, ()), node)
    elements: dict[int, tuple[Node, ...]] = {}
    for number, members in graph.classes.items():
        for member in members:
            if member.op in program.library.element_operators:
                elements[number] = (*elements.get(number, ()), *written.get(member.operands[0], ()))
    return {**elements, **written}


class _Origins:
    """Which value of a program each value of its kernels is.

    `nodes` has it for the nodes of kernels, `values` for the values that the main module names.
    """

    def __init__(self, module: Module, main: Main, kernels: Iterable[Module]) -> None:
        self.known = {self._key(node, node.operands): node for node in module.nodes}
        self.nodes: dict[int, Node] = {}
        self.values: dict[str, Node] = {}
        inputs = {p.attribute("name"): p for p in module.parameters}
        for parameter in main.parameters:
            self.values[parameter.name or parameter.attribute("name")] = inputs[parameter.attribute("name")]
        named = {kernel.name: kernel for kernel in kernels}
        for call in main.calls:
            self._follow(named[call.kernel], call.operands, call.results)

    def _follow(self, kernel: Module, operands: Sequence[str], results: Sequence[str]) -> None:
        """Find the values of a kernel from those that it is given on."""
        found: dict[int, Node] = {}
        for parameter, name in zip(kernel.parameters, operands, strict=True):
            if name in self.values:
                found[id(parameter)] = self.values[name]
        for node in kernel.nodes:
            below = [found[id(o)] for o in node.operands if id(o) in found]
            origin = self.known.get(self._key(node, below)) if len(below) == len(node.operands) else None
            if id(node) not in found and origin is not None:
                found[id(node)] = origin
        for result, name in zip(kernel.root.operands, results, strict=True):
            if id(result) in found:
                self.values[name] = found[id(result)]
        for number, node in found.items():
            self.nodes.setdefault(number, node)

    @staticmethod
    def _key(node: Node, operands: Sequence[Node]) -> Any:
        return (node.op, attributes_key(node.attributes), tuple(map(id, operands)))
