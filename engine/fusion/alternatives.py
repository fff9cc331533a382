"""Other ways to make what kernels store: the program in which some kernels' values are made as alternatives make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

from genrw.engine.fusion.modules import kernel_modules
from genrw.engine.fusion.search import Plan
from genrw.engine.ir.nodes import Module, Node, rebuilt
from genrw.engine.ir.structure import nameless_key
from genrw.engine.library.library import Library


@dataclass(frozen=True)
class PlannedKernel:
    """A kernel of a plan as a module, with the numbers of the values that it is given and stores, in their order."""

    module: Module
    given: tuple[int, ...]
    stored: tuple[int, ...]

    @cached_property
    def key(self) -> Any:
        """What kernels of the same structure share."""
        return nameless_key(self.module)


def planned_kernels(plan: Plan, library: Library) -> list[PlannedKernel]:
    """The kernels of a plan, in order."""
    modules = kernel_modules(plan, library)
    return [
        PlannedKernel(module, tuple(given), tuple(plan.kernel(k).outputs))
        for k, (module, given) in zip(plan.order(), modules, strict=True)
    ]


def rewritten(
    plan: Plan, kernels: Sequence[PlannedKernel], others: Mapping[Any, Module]
) -> tuple[Module, frozenset[int]]:
    """The program of a plan where `others` say, by a kernel's key, what makes the kernel's values, and these values by identity."""
    nodes, operands = plan.graph.nodes, plan.graph.operands
    replaced = [kernel for kernel in kernels if kernel.key in others]
    makers = {i: (kernel, k) for kernel in replaced for k, i in enumerate(kernel.stored) if not plan.graph.given[i]}
    # A kernel stores all its values at once, so each of them needs all that the kernel is given.
    needed = {i: makers[i][0].given if i in makers else operands[i] for i in range(len(nodes))}
    made: dict[int, Node] = {}
    done: dict[int, tuple[Node, ...]] = {}
    for i in TopologicalSorter(needed).static_order():
        if i not in makers:
            made[i] = replace(nodes[i], operands=tuple(made[o] for o in operands[i])) if operands[i] else nodes[i]
            continue
        kernel, k = makers[i]
        if id(kernel) not in done:
            done[id(kernel)] = _over(others[kernel.key], [made[g] for g in kernel.given])
        made[i] = done[id(kernel)][k]
    module = plan.graph.module
    numbers = {id(node): i for i, node in enumerate(nodes)}
    root = replace(module.root, operands=tuple(made[numbers[id(o)]] for o in module.root.operands))
    return replace(module, root=root), frozenset(id(made[i]) for i in makers)


def _over(module: Module, given: Sequence[Node]) -> tuple[Node, ...]:
    """What a module returns, made of other values in place of its parameters."""
    leaves = {id(node): node for node in module.nodes if not node.operands}
    leaves |= {id(p): value for p, value in zip(module.parameters, given, strict=True)}
    made = rebuilt(module.nodes[:-1], leaves)
    return tuple(made[id(o)] for o in module.root.operands)
