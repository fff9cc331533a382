"""A rule's failure as text: both sides as programs, what stands for the rule's names, where they differ."""

from __future__ import annotations

from collections.abc import Iterator

from genrw.engine.ir.nodes import Module, Node, walk
from genrw.engine.ir.types import EFFECT
from genrw.engine.language.expr import free_names
from genrw.engine.library.infer import show
from genrw.engine.library.library import Library
from genrw.engine.library.variants import nodes
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.programs.text import module_tree
from genrw.engine.verify.facts import View
from genrw.engine.verify.instances import Instance
from genrw.engine.verify.judge import listed, shown
from genrw.engine.verify.kernels import WrongKernel
from genrw.engine.verify.meaning import LANE_SORTS
from genrw.engine.verify.trial import Failure
from genrw.grammar.gen import print_gen
from genrw.grammar.gen_tree import File


def failure_text(failure: Failure, library: Library) -> str:
    """The lines that show an instance on which a rule fails."""
    lines = ["left side:", *indented(term_text(failure.left, failure.instance, library))]
    if failure.right is not None:
        lines += ["right side:", *indented(term_text(failure.right, failure.instance, library))]
    names = list(_names(failure))
    lines += ["with:", *indented("\n".join(names))] if names else []
    values = list(_values(failure))
    lines += ["of the values:", *indented("\n".join(values))] if values else []
    if failure.difference is not None:
        lines.append(f"at {failure.difference.place}: {failure.difference.left} left, {failure.difference.right} right")
    return "\n".join(lines)


def _values(failure: Failure) -> Iterator[str]:
    """The values of the leaves: of tensors all elements, of lanes those of the lane at which the sides differ."""
    index = failure.difference.index if failure.difference is not None else ()
    for leaf in failure.instance.match.leaves:
        values = failure.values.get(id(leaf))
        if values is None:
            continue
        if leaf.type.sort == "tensor":
            yield f"{leaf.name} = {listed(values)}"
        elif len(index) == values.ndim:
            lane = values[tuple(min(i, n - 1) for i, n in zip(index[:-1], values.shape, strict=False))]
            yield f"{leaf.name} = {listed(lane) if leaf.type.size else shown(lane[0])} there"


def term_text(root: Node, instance: Instance, library: Library) -> str:
    """A term as a program."""
    present = {id(node) for node in walk(root)}
    leaves = tuple(leaf for leaf in instance.match.leaves if id(leaf) in present)
    ending = Node(library.boundary("result").name, (), (root,), EFFECT)
    module = Module("main", ending, leaves)
    return print_gen(File((module_tree(module, library, instance.match.context),))).rstrip("\n")


def _names(failure: Failure) -> Iterator[str]:
    """What the rule's names stand for, and what the term stands in."""
    surroundings = failure.instance.surroundings
    context = set(failure.instance.match.context)
    for name, value in failure.alternative.names.items():
        # what no author can write, as it has a space, is not the rule's own name
        if name not in context and " " not in name and not isinstance(value, View):
            yield f"{name} = {show(value)}"
    ranges = failure.instance.ranges
    for leaf in failure.instance.match.leaves:
        if id(leaf) in ranges:
            facts = ranges[id(leaf)]
            yield f"{leaf.name} from {facts['lo']} to {facts['hi']}, divided by {facts['pow2']}"
    asked = _asked(failure)
    if surroundings.schedule and "schedule" in asked:
        yield f"schedule = {{{', '.join(f'{k}={show(v)}' for k, v in surroundings.schedule.items())}}}"
    if "space" in asked:
        yield f"space = {show(surroundings.space)}, axes = {show(surroundings.axes)}"
    if "target" in asked:
        yield f"target = {surroundings.target.name}"


def _asked(failure: Failure) -> frozenset[str]:
    """What of its surroundings the rule asks for; of lanes, the schedule always counts."""
    rule = failure.instance.match.variant.rule
    exprs = [rule.guard, *(b.value for b in (*rule.with_, *rule.for_))]
    exprs += [a.value for side in (rule.left, rule.right) for n in nodes(side) for a in n.attributes]
    names = frozenset(name for expr in exprs if expr is not None for name in free_names(expr))
    in_lanes = any(n.type.sort in LANE_SORTS for n in walk(failure.left))
    return names | {"schedule"} if in_lanes else names


def wrong_kernel_text(wrong: WrongKernel, library: Library) -> str:
    """The lines that show a kernel that is wrong, before the rule's stage and after all stages, and for which inputs."""
    before, after = (module_text(m, library, wrong.options) for m in (wrong.before, wrong.after))
    inputs = [f"  {name} = {listed(values)}" for name, values in wrong.inputs.items()]
    return "\n".join(("before:", *indented(before), "after:", *indented(after), "of the values:", *inputs))


def module_text(module: Module, library: Library, options: Options) -> str:
    """A module as a program."""
    context = Pipeline(library).context(module, options)
    return print_gen(File((module_tree(module, library, context),))).rstrip("\n")


def indented(text: str) -> list[str]:
    """The lines of a text, set in."""
    return [f"  {line}" for line in text.split("\n")]
