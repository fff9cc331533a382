"""The search for a plan: which values are stored, and which of them share a kernel.

A plan begins with as little stored as the rules allow. Then it is changed step by step, as long as that makes it
cheaper: values that are made several times are stored, stored ones made again, kernels merged. All changes are of one
form: some kernels are replaced by others, and those that meet the values concerned are rated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from math import inf

from genrw.engine.fusion.body import Kernel, KernelBody, body_of
from genrw.engine.fusion.graph import FLAT, FusionGraph
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.source import NOWHERE, Span

_LEAST_GAIN = 1e-9
_SWEEPS = 4
_PARTNERS = 8
_TAKERS = 3
_LATER = 32
"""So many values are looked at that might be stored in another one's place."""


class Plan:
    """Kernels by number, with their bodies; `owner` says which kernel stores a value."""

    def __init__(self, graph: FusionGraph) -> None:
        self.graph = graph
        self.bodies: dict[int, KernelBody] = {}
        self.owner: dict[int, int] = {}
        self.met: list[dict[int, None]] = [{} for _ in graph.nodes]
        self.version: dict[int, int] = {}
        self._next = 0

    @property
    def latest(self) -> int:
        """The number of the kernel that was made last."""
        return self._next - 1

    @property
    def time(self) -> float:
        """The predicted time of all kernels, in microseconds."""
        return _time(self.bodies.values())

    def begin(self, bodies: Sequence[KernelBody]) -> None:
        """Take over kernels as the first plan."""
        self._put([], dict(enumerate(bodies)), {})
        self._next = len(bodies)

    def kernel(self, k: int) -> Kernel:
        """What a kernel stores, and its space."""
        return self.bodies[k].kernel

    # ---- changes

    def change(self, drop: Sequence[int], add: Sequence[Kernel], least: float = _LEAST_GAIN) -> bool:
        """Replace kernels by others if the plan stays legal and gets cheaper by `least`; says whether it was done."""
        overlay = self._rated(drop, add, least)
        if overlay is None:
            return False
        new, affected = overlay
        numbered = {self._next + n: made for n, made in enumerate(new)}
        undo = self._put(drop, numbered, affected)
        if self._cyclic([*numbered, *affected]):
            self._put(*undo)
            return False
        self._next += len(new)
        return True

    def gain(self, drop: Sequence[int], add: Sequence[Kernel]) -> float | None:
        """What a change would save, in microseconds; None if it is not legal. Does not look for cycles."""
        overlay = self._rated(drop, add)
        if overlay is None:
            return None
        new, affected = overlay
        return self._times((*drop, *affected)) - _time(new) - _time(affected.values())

    def _times(self, kernels: Iterable[int]) -> float:
        return _time(self.bodies[k] for k in kernels)

    def _rated(
        self, drop: Sequence[int], add: Sequence[Kernel], least: float | None = None
    ) -> tuple[list[KernelBody], dict[int, KernelBody]] | None:
        """The bodies of new kernels and of those that a change concerns; None if one of them is not legal, or if the
        change would not save `least`."""
        removed = {i for k in drop for i in self.kernel(k).outputs}
        stored = {i for kernel in add for i in kernel.outputs}
        concerned = {k: None for i in sorted(removed ^ stored) for k in self.met[i] if k not in drop}
        most = self._times((*drop, *concerned)) - least if least is not None else inf
        kept = {i: self.owner.pop(i) for i in removed}
        self.owner.update(dict.fromkeys(stored, -1))
        try:
            bodies = self._within(most, [*add, *map(self.kernel, concerned)])
        finally:
            for i in stored:
                del self.owner[i]
            self.owner.update(kept)
        if bodies is None:
            return None
        return bodies[: len(add)], dict(zip(concerned, bodies[len(add) :], strict=True))

    def _within(self, most: float, kernels: Sequence[Kernel]) -> list[KernelBody] | None:
        """The bodies of kernels; None if one is not legal, or if all together take longer than `most`."""
        # No kernel is faster than a launch: most changes that do not pay are given up after the first body.
        time = self.graph.costs.launch * len(kernels)
        bodies = []
        for kernel in kernels:
            body = body_of(self.graph, kernel, self.owner)
            time += body.time - self.graph.costs.launch
            if not body.legal or time > most:
                return None
            bodies.append(body)
        return bodies

    def _put(
        self, drop: Iterable[int], new: Mapping[int, KernelBody], affected: Mapping[int, KernelBody]
    ) -> tuple[list[int], dict[int, KernelBody], dict[int, KernelBody]]:
        """Make a change, the new kernels by number; gives the change that takes it back."""
        old = {k: self.bodies[k] for k in drop}
        before = {k: self.bodies[k] for k in affected}
        for k, body in old.items():
            self._forget(k)
            for i in body.kernel.outputs:
                del self.owner[i]
            del self.bodies[k]
        for k, body in new.items():
            self.owner.update(dict.fromkeys(body.kernel.outputs, k))
            self._note(k, body)
        for k, body in affected.items():
            self._forget(k)
            self._note(k, body)
        return list(new), old, before

    def _note(self, k: int, body: KernelBody) -> None:
        self.bodies[k] = body
        self.version[k] = self.version.get(k, 0) + 1
        for values in (body.values, body.loads):
            for i in values:
                self.met[i][k] = None

    def _forget(self, k: int) -> None:
        body = self.bodies[k]
        for values in (body.values, body.loads):
            for i in values:
                self.met[i].pop(k, None)

    def before(self, k: int) -> Iterator[int]:
        """The kernels whose values a kernel loads."""
        for i in self.bodies[k].loads:
            owner = self.owner.get(i)
            if owner is not None and not self.graph.given[i]:
                yield owner

    def _cyclic(self, kernels: Iterable[int]) -> bool:
        """Does any of these kernels wait for itself?"""
        return any(self._reaches(self.before(k), k) for k in kernels)

    def _reaches(self, first: Iterable[int], goal: int) -> bool:
        stack = list(first)
        seen: set[int] = set()
        while stack:
            k = stack.pop()
            if k == goal:
                return True
            if k not in seen:
                seen.add(k)
                stack.extend(self.before(k))
        return False

    # ---- the result

    def order(self) -> list[int]:
        """The kernels in an order in which they can run: of those that can, the one with the earliest value."""
        found: list[int] = []
        done: set[int] = set()
        waiting = sorted(self.bodies, key=lambda k: self.kernel(k).outputs)
        stack = [(k, False) for k in reversed(waiting)]
        while stack:
            k, ready = stack.pop()
            if k in done:
                continue
            if ready:
                done.add(k)
                found.append(k)
                continue
            stack.append((k, True))
            stack.extend((b, False) for b in sorted(set(self.before(k)), reverse=True) if b not in done)
        return found


def _time(bodies: Iterable[KernelBody]) -> float:
    return sum(body.time for body in bodies)


# ---- the first plan


class _Cut:
    """Stores results, and what else no kernel can make where it is needed."""

    def __init__(self, graph: FusionGraph) -> None:
        self.graph = graph
        self.stored: dict[int, None] = dict.fromkeys(graph.results)
        self.bodies: dict[int, KernelBody] = {}

    def plan(self) -> Plan:
        waiting = sorted(self.stored)
        while waiting:
            i = waiting.pop()
            self.bodies[i], needed = self._kernel(i)
            new = [n for n in needed if n not in self.stored]
            self.stored.update(dict.fromkeys(new))
            waiting = sorted({*waiting, *new, *self._changed(new)})
        plan = Plan(self.graph)
        plan.begin([self.bodies[i] for i in sorted(self.bodies)])
        return plan

    def _changed(self, new: Sequence[int]) -> list[int]:
        """Rate kernels again that made what is stored now; gives those that are none any more."""
        broken = []
        for i, body in self.bodies.items():
            if any(n in body.values and n != i for n in new):
                self.bodies[i] = body_of(self.graph, body.kernel, self.stored)
                if not self.bodies[i].legal:
                    broken.append(i)
        return broken

    def _kernel(self, i: int) -> tuple[KernelBody, list[int]]:
        """The cheapest kernel for one value, with what has to be stored for it."""
        best: tuple[float, KernelBody, list[int]] | None = None
        problem = i
        for space in spaces_of(self.graph, i):
            body, needed = self._with_needed(Kernel(space, (i,)))
            if not body.legal:
                problem = body.missing[0][0]
                continue
            time = body.time + sum(map(self._storing, needed))
            if best is None or time < best[0]:
                best = (time, body, needed)
        if best is None:
            raise self._impossible(problem)
        return best[1], best[2]

    def _with_needed(self, kernel: Kernel) -> tuple[KernelBody, list[int]]:
        """A kernel's body when all is stored that it cannot make, and what that is besides what is stored already."""
        needed: dict[int, None] = {}
        while True:
            body = body_of(self.graph, kernel, {*self.stored, *needed} if needed else self.stored)
            new = [n for n, _ in body.missing if n not in needed and n not in kernel.outputs]
            if any(self.graph.held[n] for n in new):
                new = [n for n in body.repeated[:1] if n not in needed]
            if not new:
                return body, list(needed)
            needed.update(dict.fromkeys(new))

    def _storing(self, i: int) -> float:
        costs = self.graph.costs
        return costs.launch + 2 * self.graph.bytes[i] / costs.bandwidth

    def _impossible(self, i: int) -> GenrwError:
        node, most = self.graph.nodes[i], self.graph.costs.buffers
        needed = len({o for o in self.graph.operands[i] if not self.graph.free[o]}) + 1
        if needed > most:
            message = f"`{node.op}` reads and writes {needed} tensors here, and a kernel of the target {most} at most"
            remedy = "raise the target's `kernel_buffers`, or write it with other operators"
        else:
            message = f"no rule says how a kernel makes `{node.op}`"
            remedy = "add a rule that lowers it, or write it with other operators"
        return GenrwError(Diagnostic(message, self._written_at(i), remedy))

    def _written_at(self, i: int) -> Span | None:
        """Where a value is written, or the nearest value that is made of it."""
        todo = [i]
        for found in todo:
            if self.graph.nodes[found].span is not NOWHERE:
                return self.graph.nodes[found].span
            todo += [user for user in self.graph.users[found] if user not in todo]
        return None


def spaces_of(graph: FusionGraph, i: int) -> list[int]:
    """The spaces of which a kernel that stores just this value may be."""
    rows = list(dict.fromkeys(space for _, space in graph.aligned[i]))
    return rows if i in graph.fold_space else [*rows, FLAT]


# ---- improving it


class _Improver:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.results = frozenset(plan.graph.results)
        self.seen: dict[int, tuple[tuple[int, int], ...]] = {}
        self.apart: set[tuple[int, int, int, int]] = set()
        self.refused: set[tuple[int, int, int, int, int]] = set()
        self.alike: dict[int, list[int]] = {}
        self.candidates = dict.fromkeys(i for i in range(len(plan.graph.nodes)) if self._worth_storing(i))

    def run(self) -> None:
        for _ in range(_SWEEPS):
            changed = self._merges()
            changed = self._values() or changed
            if not changed:
                return

    # ---- single values

    def _worth_storing(self, i: int) -> bool:
        """May storing a value be better than storing what its only user makes of it?"""
        graph, users = self.graph, self.graph.users[i]
        if graph.given[i] or i in self.results:
            return False
        if any(graph.item[i] < graph.item[o] for o in graph.operands[i]):
            return True
        return len(users) > 1 or any(
            u in graph.fold_space or graph.elements[u] > graph.elements[i] or graph.takes_elsewhere(u, i) for u in users
        )

    def _values(self) -> bool:
        changed = False
        for i in sorted({*self.candidates, *self.plan.owner}.difference(self.results)):
            if not self._tried(i):
                changed = (self._unstored(i) if i in self.plan.owner else self._stored(i) or self._parted(i)) or changed
        for i in sorted(self.plan.owner):
            if i in self.plan.owner:
                changed = self._moved(i) or self._advanced(i) or self._handed_over(i) or changed
        return changed

    def _tried(self, i: int) -> bool:
        """Was a value looked at before, with the same kernels around it?"""
        kernels = tuple((k, self.plan.version[k]) for k in self.plan.met[i])
        if self.seen.get(i) == kernels:
            return True
        self.seen[i] = kernels
        return False

    def _stored(self, i: int) -> bool:
        """Store a value that is made several times, in a kernel of its own or in one that makes it anyway."""
        plan = self.plan
        makers = {k: plan.bodies[k] for k in plan.met[i]}
        if len(makers) < 2 and all(body.values[i] < 2 for body in makers.values()):
            return False
        loading: dict[int, float] = {}
        for k, body in makers.items():
            time = body.loading(i)
            if time is None:
                return False
            loading[k] = time
        saved = sum(body.time - loading[k] for k, body in makers.items())
        rated = []
        for k, body in makers.items():
            if any((i, p) in body.made for p in self._homes(i, body.kernel)):
                gain = saved - (body.storing(i) - loading[k])
                rated.append((gain, [k], Kernel(body.kernel.space, tuple(sorted((*body.kernel.outputs, i))))))
        least = self.graph.time(self.graph.bytes[i], 0)
        if saved > least:
            rated += [(saved - least, [], Kernel(space, (i,))) for space in spaces_of(self.graph, i)]
        return self._first([r for r in rated if r[0] > _LEAST_GAIN])

    def _parted(self, i: int) -> bool:
        """Store a value that a kernel makes at several places, and leave to another kernel what takes it to other places."""
        graph, plan = self.graph, self.plan
        for k in list(plan.met[i]):
            kernel, body = plan.kernel(k), plan.bodies[k]
            if len(kernel.outputs) < 2 or body.values.get(i, 0) < 2:
                continue
            alone = {o: body_of(graph, Kernel(kernel.space, (o,)), (i,)) for o in kernel.outputs}
            homes = self._homes(i, kernel)
            away = tuple(o for o in kernel.outputs if any(v == i and p not in homes for v, p in alone[o].loaded))
            near = tuple(sorted({i, *kernel.outputs}.difference(away)))
            spaces = dict.fromkeys((kernel.space, FLAT))
            if away and any(
                plan.change([k], [Kernel(here, near), Kernel(there, away)]) for here, there in product(spaces, spaces)
            ):
                return True
        return False

    def _homes(self, i: int, kernel: Kernel) -> tuple[int, ...]:
        return self.graph.homes(i, kernel.space, self.graph.elements[kernel.outputs[0]])

    def _unstored(self, i: int) -> bool:
        """Make a value again wherever it is read."""
        k = self.plan.owner[i]
        kernel = self.plan.kernel(k)
        left = tuple(o for o in kernel.outputs if o != i)
        return self.plan.change([k], [Kernel(kernel.space, left)] if left else [])

    def _moved(self, i: int) -> bool:
        """Store a kernel's only value in a kernel of another space."""
        k = self.plan.owner[i]
        kernel = self.plan.kernel(k)
        if len(kernel.outputs) > 1:
            return False
        others = [Kernel(space, (i,)) for space in spaces_of(self.graph, i) if space != kernel.space]
        return any(self.plan.change([k], [other]) for other in others)

    def _advanced(self, i: int) -> bool:
        """Store what the readers of a value make of it in its place, or beside it: else each of them makes that again,
        and for each element of its space if the value is repeated there."""
        plan = self.plan
        k = plan.owner[i]
        kernel = plan.kernel(k)
        rated = []
        for later in self._made_of(i):
            makers = [plan.bodies[m] for m in plan.met[later] if later in plan.bodies[m].values]
            loading = [body.loading(later) for body in makers]
            saved = sum(body.time - time for body, time in zip(makers, loading, strict=True) if time is not None)
            if saved <= _LEAST_GAIN or None in loading or not self._homes(later, kernel):
                continue
            kept = [o for o in kernel.outputs if o != i]
            choices = [[*kernel.outputs, later]] if i in self.results else [[*kept, later], [*kernel.outputs, later]]
            rated += [(saved, [k], Kernel(kernel.space, tuple(sorted(outputs)))) for outputs in choices]
        return self._first(rated)

    def _made_of(self, i: int) -> list[int]:
        """The values worth storing that are made of a value element by element, and are not stored."""
        graph = self.graph
        found = [i]
        for value in found:
            found += [
                user
                for user in graph.users[value]
                if graph.elements[user] == graph.elements[i] and user not in graph.fold_space and user not in found
            ]
            if len(found) > _LATER:
                break
        return [value for value in found[1:] if value in self.candidates and value not in self.plan.owner]

    def _handed_over(self, i: int) -> bool:
        """Store one of a kernel's values in another kernel."""
        plan = self.plan
        k = plan.owner[i]
        kernel = plan.kernel(k)
        left = tuple(o for o in kernel.outputs if o != i)
        if not left:
            return False
        without = plan.bodies[k].least_without(i)
        for other in self._partners(k)[:_TAKERS]:
            taker = plan.kernel(other)
            offer = (i, k, plan.version[k], other, plan.version[other])
            outputs = tuple(sorted((*taker.outputs, i)))
            spaces = {taker.space: None} | ({kernel.space: None} if taker.space == FLAT else {})
            if offer in self.refused:
                continue
            self.refused.add(offer)
            now, least = plan.bodies[k].time + plan.bodies[other].time, without + plan.bodies[other].least_with(i)
            if now - least <= _LEAST_GAIN:
                continue
            # Without the value there may be no reduction left that the kernel's rows are for.
            for space, rest in product(
                filter(partial(self._stores, outputs), spaces), {kernel.space: None, FLAT: None}
            ):
                if plan.change([k, other], [Kernel(rest, left), Kernel(space, outputs)]):
                    return True
        return False

    def _first(self, rated: list[tuple[float, list[int], Kernel]]) -> bool:
        """Make the change that saves most, of those that can be made."""
        rated.sort(key=lambda r: (-r[0], r[1], r[2].space))
        return any(self.plan.change(drop, [kernel]) for _, drop, kernel in rated)

    # ---- merging

    def _merges(self) -> bool:
        changed = False
        self.alike = {}
        for k in sorted(self.plan.bodies):
            for size in self._sizes(k):
                self.alike.setdefault(size, []).append(k)
        for k in sorted(self.plan.bodies, key=lambda k: self.plan.kernel(k).outputs):
            while k in self.plan.bodies and self._merge(k):
                changed = True
                k = self.plan.latest
                for size in self._sizes(k):
                    self.alike.setdefault(size, []).insert(0, k)
        return changed

    def _merge(self, k: int) -> bool:
        """Make a kernel one with that of its partners with which it saves most."""
        plan = self.plan
        rated = []
        for other in self._partners(k):
            pair = (k, plan.version[k], other, plan.version[other])
            merged = self._merged(k, other) if pair not in self.apart else None
            if merged is None:
                continue
            self.apart.add(pair)
            one, two = plan.bodies[k], plan.bodies[other]
            gain = one.time + two.time - one.with_body(two, merged)
            if gain > _LEAST_GAIN:
                rated.append((gain, [k, other], merged))
        return self._first(rated)

    def _partners(self, k: int) -> list[int]:
        """The kernels that share most bytes with a kernel, of what they read or of what one writes for the other; then
        others that run over as many elements."""
        plan, graph = self.plan, self.graph
        shared: dict[int, int] = {}
        for i in (*plan.bodies[k].loads, *plan.kernel(k).outputs):
            for other in (*plan.met[i], *([plan.owner[i]] if i in plan.owner else [])):
                shared[other] = shared.get(other, 0) + graph.bytes[i]
        found = sorted(shared, key=lambda other: (-shared[other], other))[:_PARTNERS]
        alike = (other for size in self._sizes(k) for other in self.alike.get(size, ()))
        found += [other for other in islice(alike, _PARTNERS) if other not in shared]
        return [other for other in found if other != k and other in plan.bodies]

    def _sizes(self, k: int) -> tuple[int, ...]:
        """How many elements the results of a kernel may have."""
        body = self.plan.bodies[k]
        return (body.elements,) if body.kernel.space == FLAT else (body.elements, body.rows)

    def _merged(self, a: int, b: int) -> Kernel | None:
        """Two kernels as one; None if no space serves both."""
        plan = self.plan
        one, two = plan.kernel(a), plan.kernel(b)
        outputs = tuple(sorted((*one.outputs, *two.outputs)))
        space = self._shared_space(one.space, two.space, outputs)
        if space is None:
            return None
        kept = tuple(o for o in outputs if o in self.results or any(k not in (a, b) for k in plan.met[o]))
        return Kernel(space, kept) if kept else None

    def _shared_space(self, one: int, two: int, outputs: Sequence[int]) -> int | None:
        """A space that serves kernels of two spaces and can store values; None if there is none."""
        if one != two and min(one, two) != FLAT:
            return None
        return max(one, two) if self._stores(outputs, max(one, two)) else None

    def _stores(self, outputs: Sequence[int], space: int) -> bool:
        """Can a kernel of a space store values?"""
        elements = self.graph.elements[outputs[0]]
        return all(self.graph.homes(o, space, elements) for o in outputs)


def search(graph: FusionGraph) -> Plan:
    """A plan for a program; GenrwError if there is an operation that no kernel can make."""
    cut = _Cut(graph)
    plan = cut.plan()
    _Improver(plan).run()
    return plan
