"""The programs of rules' examples.

An example needs no `@return`: what no other instruction uses is its result. Values of lanes, indices and operators that
are legal at no stage may all be results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library
from genrw.engine.programs.build import build_module
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import Example, RuleDecl


def program_of(library: Library, example: Example, file: tree.File) -> Module:
    """One of an example's two programs, with what its brackets say of its surroundings; GenrwError for one that is none."""
    written = file.modules[-1]
    instructions = tuple(_returning(written.instructions))
    whole = replace(written, instructions=instructions, attributes=example.context)
    modules = {m.name: m for m in file.modules[:-1]} | {whole.name: whole}
    target = library.default_target if library.targets else ""
    module = build_module(whole, library, target, modules, fragment=True)
    return replace(module, root=_bare(module.root, library), target=module.target or target)


def check_examples(library: Library, rule: RuleDecl) -> Iterator[Diagnostic]:
    """What is wrong with a rule's examples as programs, none of them run; without targets there are no programs."""
    for example in rule.examples if library.targets else ():
        for file in (example.before, example.after):
            try:
                if file is not None:
                    program_of(library, example, file)
            except GenrwError as problem:
                yield from problem.diagnostics


def _returning(instructions: Sequence[tree.Instruction]) -> list[tree.Instruction]:
    """The instructions, with a return of what none of them uses if they have none of their own."""
    if any(i.op == "@return" for i in instructions):
        return list(instructions)
    used = {o.name for i in instructions for o in i.operands if isinstance(o, tree.Ref)}
    names = [n for i in instructions for n in (i.names or (i.op.removeprefix("@"),)) if n not in used]
    operands = tuple(tree.Ref(name) for name in names)
    return [*instructions, tree.Instruction((), "@return", operands=operands, span=instructions[-1].span)]


def _bare(root: Node, library: Library) -> Node:
    """A kernel is its own root."""
    if len(root.operands) == 1 and library.role(root.operands[0].op) == "kernel":
        return root.operands[0]
    return root
