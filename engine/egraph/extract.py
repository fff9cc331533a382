"""The cheapest legal program in a saturated e-graph, by DAG cost: a value used twice is paid once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul, or_
from typing import Any

from genrw.engine.egraph.ill_made import blamed, differ, ill_made, other_type
from genrw.engine.egraph.narrowed import Classes, Numbered, narrowed
from genrw.engine.egraph.sharing import Sharing
from genrw.engine.egraph.stage import EGraphSnapshot
from genrw.engine.egraph.unvarying import unvarying
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.interner import attributes_key
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library
from genrw.engine.programs.build_main import type_text
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.source import NOWHERE, Span

_NUMBER_COST = 0.01
_AS_WRITTEN = -1
"""Comes before the numbers of all rules."""


@dataclass
class _Best:
    """The best term found for a class: its node, and all classes that its term uses as bits of numbers, one for each
    price."""

    total: float
    node: ENode
    members: tuple[int, ...]
    all: int


class _Bits:
    """The classes below a root as bits, and the prices of their nodes, the lowest first."""

    def __init__(self, numbers: Sequence[int], prices: Iterable[float]) -> None:
        self.of = {number: 1 << place for place, number in enumerate(numbers)}
        self.prices = sorted(set(prices))
        self.level = {price: place for place, price in enumerate(self.prices)}

    def total(self, members: Sequence[int], all_: int) -> float:
        """The price of all classes together; one that two operands use with different nodes has the lower price."""
        counts = [bits.bit_count() for bits in members]
        if sum(counts) != all_.bit_count():
            seen = 0
            for level, bits in enumerate(members):
                counts[level] = (bits & ~seen).bit_count()
                seen |= bits
        # Rounded so that the order in which costs were added cannot decide between equals.
        return float(round(sum(map(mul, self.prices, counts)), 9))


@dataclass(frozen=True)
class Member:
    """A node of a class: what it costs by itself, None if the stage's result may not hold it, and in all, with everything
    that it needs, None if it has no term that may be taken. A rule `replaced` some: those are not looked at."""

    node: ENode
    cost: float | None
    total: float | None
    replaced: bool = False


@dataclass(frozen=True)
class Chosen:
    """A program taken from an e-graph: the class of its root, the node of each of its classes, and the cheapest node of
    every class below the root, whether the program has it or not."""

    root: int
    program: Mapping[int, ENode]
    cheapest: Mapping[int, ENode]


class Extractor:
    """Extracts modules from one saturated stage; of terms that cost the same it takes those of the `written` modules."""

    def __init__(self, library: Library, stage: str, graph: EGraphSnapshot, written: Sequence[Module] = ()) -> None:
        self.library, self.stage, self.graph = library, stage, graph
        self._written = {key for module in written for key in _as_enodes(graph, module)}
        self._costs: dict[tuple[str, int], float | None] = {}
        self._orders: dict[tuple[str, int], tuple[Any, ...]] = {}
        self._types: dict[Any, Type] = {}

    def extract(self, module: Module, context: Mapping[str, Any], names: Mapping[int, Node]) -> Node:
        """The new root of a module; `names` gives the written node of each class that has one."""
        chosen = self.chosen(module, names)
        try:
            made = self.made(chosen.root, chosen.program, context, names)
        except GenrwError as problem:
            raise blamed(self.library, self.graph, [module], problem) from None
        root = self.rounded(made[chosen.root], made, module, context, names).root
        if module.root.op == root.op and any(map(_changed, module.root.operands, root.operands)):
            raise ill_made(self.library, self.graph, [module]) or _other_results(module.root, root)
        return root

    def rounded(
        self,
        root: Node,
        made: Mapping[int, Node],
        module: Module,
        context: Mapping[str, Any],
        names: Mapping[int, Node],
    ) -> Numbered:
        """A program, of nodes by class, with the roundings that rules left out, if it is not cut into kernels yet."""
        stages, cutting = self.library.stages, self.library.fusing_stage
        if cutting is None or stages.index(self.stage) > stages.index(cutting):
            return Numbered(root, {id(node): number for number, node in made.items()}, {})
        classes = Classes(self.graph.classes, lambda node: self.graph.class_of[self.graph.ids[id(node)]])
        taken = {node.name for node in made.values() if node.name}
        return narrowed(root, made, module, classes, lambda step, node: self.node(*step, [node], context, names, taken))

    def chosen(self, module: Module, names: Mapping[int, Node]) -> Chosen:
        """The nodes that a module's new form is made of."""
        root = self.graph.class_of[self.graph.ids[id(module.root)]]
        best = self._search(root)
        while root not in best and self._restore(root, best):
            best = self._search(root)
        if root not in best:
            raise self._stuck(root, best, names)
        nodes = {number: found.node for number, found in best.items()}
        return Chosen(root, Sharing(root, self._terms, nodes, self.cost).improved(), nodes)

    def alternatives(self, module: Module) -> list[tuple[float, ENode]]:
        """The legal nodes of a module's root class with their own costs, cheapest first."""
        root = self.graph.class_of[self.graph.ids[id(module.root)]]
        rated = [(cost, node) for node in self.graph.classes[root] if (cost := self.cost(node)) is not None]
        shared = {cost for cost, count in Counter(cost for cost, _ in rated).items() if count > 1}
        return sorted(rated, key=lambda r: (r[0], self._order(root, r[1]) if r[0] in shared else ()))

    # ---- search

    @cached_property
    def _terms(self) -> Mapping[int, list[ENode]]:
        """The nodes of each class that may be taken: none that counts a loop's steps where another one does not. Who only
        asks for costs, or for a term chosen elsewhere, does without."""
        return unvarying(self.graph.classes, self.library.loop_counters, lambda node: self.cost(node) is not None)

    def _reachable(self, root: int) -> list[int]:
        """The classes below a root, operands before users as far as there are no cycles."""
        order: list[int] = []
        seen = {root}
        stack = [(root, iter(self._below(root)))]
        while stack:
            number, operands = stack[-1]
            operand = next((o for o in operands if o not in seen), None)
            if operand is None:
                order.append(number)
                stack.pop()
            else:
                seen.add(operand)
                stack.append((operand, iter(self._below(operand))))
        return order

    def _below(self, number: int) -> list[int]:
        return [operand for node in self._terms.get(number, ()) for operand in node.operands]

    def _restore(self, root: int, best: Mapping[int, _Best]) -> bool:
        """Give a class without a legal term back what rules replaced; says whether there was one.

        What replaces a node may turn out to be made of the node itself: then only the node ends the circle. Classes above it have
        terms again then, so what was replaced there stays so: the lowest class is taken, if it can have a term at once.
        """
        stuck = [n for n in self._reachable(root) if n not in best and n in self.graph.replaced]
        if not stuck:
            return False
        number = next((n for n in stuck if any(self._ends(node, best) for node in self.graph.replaced[n])), stuck[0])
        self.graph.classes.setdefault(number, []).extend(self.graph.replaced.pop(number))
        del self._terms  # what was given back may be taken
        return True

    def _ends(self, node: ENode, best: Mapping[int, _Best]) -> bool:
        """Has a node a legal term, where some classes have?"""
        return self.cost(node) is not None and all(operand in best for operand in node.operands)

    def _search(self, root: int) -> dict[int, _Best]:
        """Relax classes from the leaves up until no cheaper term appears."""
        reachable = self._reachable(root)
        users: dict[int, list[int]] = {}
        for number in reachable:
            for operand in dict.fromkeys(self._below(number)):
                users.setdefault(operand, []).append(number)
        prices = (self.cost(node) for number in reachable for node in self._terms.get(number, ()))
        bits = _Bits(reachable, (price for price in prices if price is not None))
        best: dict[int, _Best] = {}
        queue = dict.fromkeys(reachable)
        while queue:
            number = next(iter(queue))
            del queue[number]
            if self._improve(number, best, bits):
                queue.update(dict.fromkeys(users.get(number, ())))
        return best

    def _improve(self, number: int, best: dict[int, _Best], bits: _Bits) -> bool:
        """Find the best term of one class from the present bests of its operands; says whether it got better."""
        found = best.get(number)
        changed = False
        for node in self._terms.get(number, ()):
            candidate = self._candidate(number, node, best, bits, found)
            if candidate is not None:
                found, changed = candidate, True
        if changed and found is not None:
            best[number] = found
        return changed

    def _candidate(
        self, number: int, node: ENode, best: Mapping[int, _Best], bits: _Bits, found: _Best | None
    ) -> _Best | None:
        """The term of a node over the present bests of its operands, None if there is none or `found` is better."""
        cost = self.cost(node)
        if cost is None:
            return None
        own = bits.of[number]
        used, all_ = [0] * len(bits.prices), own
        for operand in node.operands:
            below = best.get(operand)
            if below is None or own & below.all:
                return None
            if found is not None and below.total > found.total:
                return None
            used = list(map(or_, used, below.members))
            all_ |= below.all
        used[bits.level[cost]] |= own
        total = bits.total(used, all_)
        if found is not None and total > found.total:
            return None
        if found is not None and total == found.total and not self._comes_before(number, node, found.node):
            return None
        return _Best(total, node, tuple(used), all_)

    def members(self, number: int, chosen: Chosen) -> list[Member]:
        """The nodes of a class with what they cost: those that could be taken first, the cheapest before the others."""
        found = [Member(n, self.cost(n), self._total(number, n, chosen)) for n in self.graph.classes.get(number, ())]
        found += [Member(n, self.cost(n), None, True) for n in self.graph.replaced.get(number, ())]

        def rank(member: Member) -> tuple[Any, ...]:
            total = (member.total is None, member.total or 0.0)
            return (member.replaced, *total, member.cost is None, self._order(number, member.node))

        return sorted(found, key=rank)

    def _total(self, number: int, node: ENode, chosen: Chosen) -> float | None:
        """The cost of a node and of all that it needs, each class once; None if there is no such term."""
        total = self.cost(node)
        seen: set[int] = set()
        stack = list(node.operands)
        while stack and total is not None:
            operand = stack.pop()
            if operand not in seen:
                seen.add(operand)
                below = chosen.program.get(operand) or chosen.cheapest.get(operand)
                price = self.cost(below) if below is not None and operand != number else None
                total = None if price is None else total + price
                stack += below.operands if below is not None else ()
        return None if total is None else round(total, 9)

    def cost(self, node: ENode) -> float | None:
        """What one node costs, None if the stage's output may not hold it."""
        if node.number is not None:
            return _NUMBER_COST
        key = (node.op, node.attributes)
        if key not in self._costs:
            self._costs[key] = self._declared_cost(node)
        return self._costs[key]

    def _declared_cost(self, node: ENode) -> float | None:
        found = self.library.find(node.op)
        if found is None or not found[0].legal_at(self.stage):
            return None
        fixed = found[0].fixed_cost
        if fixed is not None:
            return fixed
        interner = self.graph.interner
        attributes = dict(interner.attributes(node.attributes))
        if found[0].role == "kernel":
            attributes = self.library.names_of_kernel(attributes)
        env = {**interner.context(node.attributes), **attributes}
        if found[1] is not None and found[0].decl.family is not None:
            env[found[0].decl.family] = found[1]
        return found[0].cost_of(env)

    def _comes_before(self, number: int, node: ENode, other: ENode) -> bool:
        """Is a node of a class taken before another one of the same cost?"""
        return node is not other and self._order(number, node) < self._order(number, other)

    def _order(self, number: int, node: ENode) -> tuple[Any, ...]:
        """What decides between terms of equal cost: what was written, then the order of the rules, then the text."""
        key = (node.op, node.attributes)
        text = self._orders.get(key)
        if text is None:
            attributes = self.graph.interner.attributes(node.attributes)
            text = self._orders[key] = (node.op, repr(attributes))
        rules = [r for r in self.graph.why.get(number, ()) if node.op in self.graph.builds[r]]
        made = node.op, attributes_key(self.graph.interner.attributes(node.attributes)), node.operands
        first = _AS_WRITTEN if made in self._written else min(rules, default=_AS_WRITTEN)
        return (first, node.number or 0, *text, node.operands)

    # ---- the result

    def made(
        self, root: int, program: Mapping[int, ENode], context: Mapping[str, Any], names: Mapping[int, Node]
    ) -> dict[int, Node]:
        """The program that the nodes of classes make up, from its root down, as the nodes of all its classes; these are in no
        circle."""
        made: dict[int, Node] = {}
        taken: set[str] = set()
        stack = [root]
        while stack:
            number = stack[-1]
            node = program[number]
            missing = [o for o in node.operands if o not in made]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if number not in made:
                made[number] = self.node(number, node, [made[o] for o in node.operands], context, names, taken)
        return made

    def node(
        self,
        number: int,
        node: ENode,
        operands: Sequence[Node],
        context: Mapping[str, Any],
        names: Mapping[int, Node],
        taken: set[str],
    ) -> Node:
        """The node of a class over operands; its name is the written one if that is not `taken`."""
        written = names.get(number)
        name, span = (written.name, written.span) if written is not None else (None, NOWHERE)
        attributes = self.graph.interner.attributes(node.attributes) if node.number is None else ()
        if node.op == self.library.boundary("input").name:
            name = dict(attributes)["name"]
            taken.add(name)
        elif name is not None:
            # An element takes its tensor's name; where both are in the program, the first has it.
            name = None if name in taken else name
            taken.add(name or "")
        if node.number is not None:
            op = self.library.boundary("number").name
            return Node(op, (("value", node.number),), (), Type("index", "int64"), name, span)
        rules = tuple(
            self.graph.rules[r] for r in sorted(self.graph.why.get(number, ())) if node.op in self.graph.builds[r]
        )
        if written is not None and written.op == node.op and written.attributes == attributes:
            same = len(written.operands) == len(operands) and all(
                a is b for a, b in zip(written.operands, operands, strict=True)
            )
            if same or not operands:
                return written
        type_ = self._type(node.op, attributes, operands, context, node.attributes)
        if written is not None and differ(written.type, type_):
            raise other_type(
                self.library, [self.graph.rules[r] for r in self.graph.why.get(number, ())], type_, written.type
            )
        return Node(node.op, attributes, tuple(operands), type_, name, span, rules)

    def _type(
        self, op: str, attributes: Any, operands: Sequence[Node], context: Mapping[str, Any], number: int
    ) -> Type:
        key = (op, number, tuple(o.type for o in operands))
        known = self._types.get(key)
        if known is None:
            try:
                known = infer(self.library, op, attributes, [o.type for o in operands], context)
            except TypeProblem as problem:
                raise error(f"a rule of stage `{self.stage}` made a bad `{op}`: {problem.message}") from None
            self._types[key] = known
        return known

    def _stuck(self, root: int, best: Mapping[int, _Best], names: Mapping[int, Node]) -> GenrwError:
        """Say which values lack a legal form, one for each operator that is left of them."""
        lacking = self._lacking(root, best)
        problems: dict[str, Diagnostic] = {}
        for number in lacking:
            node = self._last_form(number)
            if node is not None and node.op not in problems:
                operands = [names[o] for o in node.operands if o in names]
                other = next((n for n in operands if n.op != node.op), None)
                what = f" of `{other.op}`" if other is not None else ""
                message = f"no rule of stage `{self.stage}` lowers `{node.op}`{what}"
                attributes = self.graph.interner.attributes(node.attributes) if node.number is None else ()
                shown = _with_words(node.op, attributes)
                shown += f" of {_with_words(other.op, other.attributes)}" if other is not None else ""
                remedy = f"write a rule for {shown}, or see what rules made: `genrw rules trace --stage {self.stage}`"
                place = self._written_at(number, names, self._reachable(root))
                problems[node.op] = Diagnostic(message, place, remedy)
        return GenrwError(problems.values() or [Diagnostic(f"stage `{self.stage}` found no legal program")])

    def _lacking(self, root: int, best: Mapping[int, _Best]) -> list[int]:
        """The classes without a form that the stage allows, for which those above have no legal term either.

        A value with such a form lacks no rule: it only waits for its operands.
        """
        todo, seen, lacking = [root], {root}, []
        for number in todo:
            allowed = [node for node in self.graph.classes.get(number, ()) if self.cost(node) is not None]
            if not allowed:
                lacking.append(number)
            below = dict.fromkeys(o for node in allowed for o in node.operands if o not in best)
            todo += [o for o in below if o not in seen]
            seen.update(below)
        return lacking

    def _last_form(self, number: int) -> ENode | None:
        """The form of a value that rules have come to: the one that the last of them made, or the written one."""
        forms = self.graph.classes.get(number, ())
        return max(forms, key=lambda node: self._order(number, node), default=None)

    def _written_at(self, number: int, names: Mapping[int, Node], reachable: Sequence[int]) -> Span | None:
        """Where a value is written, or else what it is made of, or the nearest value that is made of it."""
        users: dict[int, list[int]] = {}
        for user in reachable:
            for operand in self._below(user):
                users.setdefault(operand, []).append(user)
        todo, seen = [number], {number}
        for found in todo:
            spans = [names[n].span for n in (found, *self._below(found)) if n in names]
            span = next((s for s in spans if s is not NOWHERE), None)
            if span is not None:
                return span
            todo += dict.fromkeys(u for u in users.get(found, ()) if u not in seen)
            seen.update(todo)
        return None


def _changed(old: Node, new: Node) -> bool:
    return differ(old.type, new.type)


def _other_results(before: Node, after: Node) -> GenrwError:
    """What is said of results whose types rules changed, of which nobody knows how."""
    old, new = next((o, n) for o, n in zip(before.operands, after.operands, strict=True) if _changed(o, n))
    return error(f"rules put {type_text(new.type)} in the place of {type_text(old.type)}", old.span)


def _as_enodes(graph: EGraphSnapshot, module: Module) -> Iterator[tuple[str, tuple[Any, ...], tuple[int, ...]]]:
    """The operations of a module as the e-graph has them: with the classes of their operands."""
    for node in module.nodes:
        operands = tuple(graph.class_of[graph.ids[id(o)]] for o in node.operands)
        yield node.op, attributes_key(node.attributes), operands


def written_nodes(graph: EGraphSnapshot, modules: Sequence[Module], library: Library) -> dict[int, Node]:
    """The written node of each class that has one, named ones first, then in program order.

    A tensor's element has none of its own and takes the tensor's.
    """
    written: dict[int, Node] = {}
    for module in modules:
        for node in module.nodes:
            number = graph.class_of[graph.ids[id(node)]]
            known = written.get(number)
            if known is None or (known.name is None and node.name is not None):
                written[number] = node
    elements = library.element_operators
    order = {id(node): place for place, node in enumerate(node for module in modules for node in module.nodes)}
    found: dict[int, Node] = {}
    for number, members in graph.classes.items():
        known = written.get(number)
        if known is None or known.name is None:
            tensors = [written[m.operands[0]] for m in members if m.op in elements and m.operands[0] in written]
            if tensors:
                # An element of several tensors, of which one is made of the other, takes the last one's.
                found[number] = max(tensors, key=lambda node: (node.name is not None, order[id(node)]))
    return {**written, **found}


def _with_words(op: str, attributes: Iterable[tuple[str, Any]]) -> str:
    """An operator with those of its attributes that are words: by them rules tell forms of it apart."""
    words = [f"{name}={value}" for name, value in attributes if isinstance(value, str)]
    return f"`{op}[{', '.join(words)}]`" if words else f"`{op}`"
