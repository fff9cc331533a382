"""Main modules: programs of several kernels, as text, to what they launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from genrw.engine.ir.nodes import Call, Main, Module, Node, Unit, distinct_names
from genrw.engine.ir.types import Type
from genrw.engine.language.expr_walk import did_you_mean
from genrw.engine.language.functions import shown
from genrw.engine.library.library import Library
from genrw.engine.programs.signature import given_parameters, results
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error


class Build(Protocol):
    """Builds one module of the file; a fragment may return values of any sort, and none."""

    def __call__(self, module: tree.Module, *, fragment: bool = False) -> Module: ...


def is_main(module: tree.Module, library: Library) -> bool:
    """Does a module do nothing but launch kernels? Only from the stage on at which there are kernels."""
    stage = next((a.value.name for a in module.attributes if a.name == "stage" and isinstance(a.value, tree.Word)), "")
    first = library.fusing_stage
    if first is None or stage not in library.stages[library.stages.index(first) :]:
        return False
    ops = {i.op for i in module.instructions}
    return library.launch.name in ops and ops <= {library.launch.name, "@param", "@return"}


def build_main(
    module: tree.Module,
    library: Library,
    modules: Mapping[str, tree.Module],
    build: Build,
) -> Unit:
    """A main module with its kernels, each built once by `build`; GenrwError with all problems found."""
    return _Builder(module, library, modules, build).unit()


class _Builder:
    def __init__(
        self,
        module: tree.Module,
        library: Library,
        modules: Mapping[str, tree.Module],
        build: Build,
    ) -> None:
        self.module, self.library, self.modules, self.build = module, library, modules, build
        self.kernels: dict[str, Module] = {}
        self.types: dict[str, Type] = {}
        self.problems: list[Diagnostic] = []

    def unit(self) -> Unit:
        # The parameters, the header and the names of the results are those of a module without calls.
        calls = [i for i in self.module.instructions if i.op == self.library.launch.name]
        frame = self._frame()
        self.types.update((p.name or "", p.type) for p in frame.parameters)
        made = [call for i in calls if (call := self._tried(i)) is not None]
        returned = self._returned()
        if self.problems:
            raise GenrwError(self.problems)
        kernels = tuple(self.kernels.values())
        stages = {kernel.stage: kernel for kernel in (frame, *kernels)}
        if len(stages) > 1:
            raise error("a main module and its kernels are at one stage", self.module.span, "lower them together")
        names = frame.results or distinct_names(returned)
        if len(names) != len(returned):
            message = "the header's `results` are not as many as the program returns"
            raise error(message, self.module.span, "name each of them, or leave `results` out")
        main = Main(frame.name, frame.parameters, tuple(made), returned, names, frame.stage, frame.target, frame.span)
        return Unit(kernels, main)

    def _frame(self) -> Module:
        """The module's header and parameters, as those of a module that returns nothing."""
        end = tree.Instruction((), "@return", span=self.module.span)
        parameters = [i for i in self.module.instructions if i.op == "@param"]
        header = tree.Module(self.module.name, self.module.attributes, (*parameters, end), self.module.span)
        return self.build(header, fragment=True)

    def _tried(self, instruction: tree.Instruction) -> Call | None:
        try:
            return self._call(instruction)
        except GenrwError as problem:
            self.problems.extend(problem.diagnostics)
            return None

    def _call(self, instruction: tree.Instruction) -> Call:
        kernel = self._kernel(instruction)
        given = list(given_parameters(kernel, self.library).values())
        made = [node.type for _, node in results(kernel, self.library)]
        names = [self._operand(o) for o in instruction.operands]
        if len(names) != len(given):
            raise error(
                f"`{kernel.name}` takes {len(given)} operands, not {len(names)}",
                instruction.span,
                f"its parameters are {', '.join(p.attribute('name') for p in given)}",
            )
        for operand, parameter in zip(instruction.operands, given, strict=True):
            self._check(operand, parameter)
        if len(instruction.names) != len(made):
            raise error(
                f"`{kernel.name}` makes {len(made)} values, not {len(instruction.names)}",
                instruction.span,
                "name them all",
            )
        for position, (name, type_) in enumerate(zip(instruction.names, made, strict=True)):
            if name in self.types:
                span = instruction.name_spans[position] if instruction.name_spans else instruction.span
                raise error(f"`{name}` is already defined", span, "give this result another name")
            self.types[name] = type_
        return Call(kernel.name, tuple(names), tuple(instruction.names))

    def _kernel(self, instruction: tree.Instruction) -> Module:
        attribute = next((a for a in instruction.attributes if a.name == "module"), None)
        if attribute is None or not isinstance(attribute.value, tree.Word):
            raise error("the call names no module", instruction.op_span, "write `[module=NAME]`")
        name = attribute.value.name
        if name not in self.modules or name == self.module.name:
            why = "calls itself" if name == self.module.name else "is not in this file"
            remedy = did_you_mean(name, self.modules) or f"write one: @module {name}"
            remedy = "write out what it is to compute" if name == self.module.name else remedy
            raise error(f"module `{name}` {why}", attribute.value_span, remedy)
        if name not in self.kernels:
            self.kernels[name] = self.build(self.modules[name])
        return self.kernels[name]

    def _operand(self, operand: tree.Operand) -> str:
        if not isinstance(operand, tree.Ref):
            raise error("a kernel is given tensors, not numbers", operand.span, "write the number into the kernel")
        if operand.name not in self.types:
            raise error(f"`{operand.name}` is not defined", operand.span, "define it above this line")
        return operand.name

    def _check(self, operand: tree.Operand, parameter: Node) -> None:
        assert isinstance(operand, tree.Ref)
        found, wanted = self.types[operand.name], parameter.type
        if (found.dtype, found.lens, found.layout) != (wanted.dtype, wanted.lens, wanted.layout):
            raise error(
                f"`{operand.name}` is {type_text(found)}, but the kernel takes {type_text(wanted)}",
                operand.span,
            )

    def _returned(self) -> tuple[str, ...]:
        end = next((i for i in self.module.instructions if i.op == "@return"), None)
        if end is None or not end.operands:
            raise error("the program has no `@return`", self.module.span, "end it with `@return(name)`")
        made = {name for i in self.module.instructions if i.op == self.library.launch.name for name in i.names}
        names = []
        for operand in end.operands:
            try:
                name = self._operand(operand)
                if name not in made:
                    raise error(f"no kernel makes `{name}`", operand.span, "return what a call gives")
                names.append(name)
            except GenrwError as problem:
                self.problems.extend(problem.diagnostics)
        return tuple(names)


def type_text(type_: Type) -> str:
    """A tensor's type as programs write it, with its strides where it is not packed."""
    strides = "" if type_.strides is None else f", {shown(type_.strides)}"
    return f"{type_.dtype}{shown(type_.lens)}{strides}"
