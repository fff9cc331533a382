"""The best plan there is for a small program, by integer programming.

A kernel is known by the first value that it stores and by its space, so there is one candidate for each such pair. What a
candidate stores, makes and loads are variables; what it makes needs its operands to be made or loaded there; what it
loads some other kernel has to store, and launch before it. What a kernel stores no other one makes: bodies load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from genrw.engine.fusion.body import Kernel, body_of
from genrw.engine.fusion.compute_locations import ELEMENT, HELD
from genrw.engine.fusion.graph import EXPOSED, FLAT, FusionGraph, Need
from genrw.engine.fusion.search import Plan
from genrw.grammar.diagnostics import error

MOST_NEEDS = 6000
"""How many variables a program may take: with more the solver would not end."""

_SECONDS = 120.0
_OUT_OF_TIME = 1
"""What scipy's solver says of itself where it came to no end."""


def exact(graph: FusionGraph) -> Plan:
    """A plan than which none is cheaper; GenrwError for programs that are too large, and without scipy."""
    try:
        import scipy  # noqa: F401
    except ImportError:
        raise error("`--plan exact` needs scipy", remedy="pip install 'genrw[exact]'") from None
    program = _Program(graph)
    kernels = program.solved()
    plan = Plan(graph)
    stored = {i for kernel in kernels for i in kernel.outputs}
    plan.begin([body_of(graph, kernel, stored) for kernel in kernels])
    return plan


@dataclass
class _Candidate:
    """A kernel that may be: its variables by what they stand for."""

    first: int
    space: int
    used: int
    time: int
    rank: int
    outputs: dict[int, int] = field(default_factory=dict)
    made: dict[Need, int] = field(default_factory=dict)
    loaded: dict[Need, int] = field(default_factory=dict)


class _Program:
    """The variables, and rows `low <= sum of coefficient * variable`."""

    def __init__(self, graph: FusionGraph) -> None:
        self.graph = graph
        self.integral: list[int] = []
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.rows: list[tuple[dict[int, float], float]] = []
        self._linked: set[tuple[int, Need]] = set()
        values = [i for i, given in enumerate(graph.given) if not given or i in graph.results]
        self.candidates = [self._candidate(i, space) for i in values for space in self._spaces(i)]
        for candidate in self.candidates:
            self._fill(candidate, [o for o in values if o >= candidate.first])
        self._store(values)
        self._order()

    def _variable(self, cost: float = 0.0, upper: float = 1.0, integral: bool = True) -> int:
        self.integral.append(int(integral))
        self.upper.append(upper)
        self.cost.append(cost)
        if len(self.cost) > MOST_NEEDS:
            module = self.graph.module
            message = f"module `{module.name}` is too large for an exact plan"
            raise error(message, module.span, "leave out `--plan exact`")
        return len(self.cost) - 1

    def _spaces(self, i: int) -> list[int]:
        """The spaces of kernels that can store a value, with whatever others."""
        graph = self.graph
        return [s for s in range(FLAT, len(graph.spaces)) if graph.homes(i, s, graph.elements[i])]

    def _candidate(self, first: int, space: int) -> _Candidate:
        used = self._variable(self.graph.costs.launch)
        time = self._variable(1.0, float("inf"), integral=False)
        rank = self._variable(0.0, float("inf"), integral=False)
        return _Candidate(first, space, used, time, rank)

    # ---- one candidate

    def _fill(self, c: _Candidate, values: Sequence[int]) -> None:
        elements = self.graph.counts(c.space, c.first)[0]
        users: dict[Need, list[int]] = {}
        for output in values:
            homes = self.graph.homes(output, c.space, elements)
            if not homes:
                continue
            variable = c.outputs[output] = c.used if output == c.first else self._variable()
            self._row(0, (1, c.used), (-1, variable))
            need = (output, homes[0])
            self._reach(c, need)
            users.setdefault(need, []).append(variable)
            self._row(0, *((1, v) for v in self._ways(c, need, output)), (-1, variable))
        self._make_for_some(c, users)
        folds = [v for (i, _), v in c.made.items() if i in self.graph.fold_space]
        if c.space != FLAT:
            self._row(0, *((1, v) for v in folds), (-1, c.used))
        if self.graph.costs.products < inf:
            self._keep_products_apart(c, elements)
        self._keep_apart(c)
        self._times(c)

    def _make_for_some(self, c: _Candidate, users: dict[Need, list[int]]) -> None:
        """What is made is stored, or something is made of it: a fold for nothing is none."""
        for need, variable in c.made.items():
            for below in self.graph.below(c.space, *need) or ():
                users.setdefault(below, []).append(variable)
        for need, variable in c.made.items():
            self._row(0, *((1, v) for v in users.get(need, ())), (-1, variable))

    def _keep_apart(self, c: _Candidate) -> None:
        """What others load is made by a kernel that stores it, and nothing else."""
        for (i, _), variable in c.made.items():
            if self.graph.kept_apart[i]:
                self._row(0, *((1, v) for o, v in c.outputs.items() if o == i), (-1, variable))
                for other in (v for o, v in c.outputs.items() if o != i):
                    self._not_both(variable, other)

    def _keep_products_apart(self, c: _Candidate, elements: int) -> None:
        """Beside a product a kernel has no more folds than there may be, and stores none of its space's own elements."""
        graph = self.graph
        own = [v for o, v in c.outputs.items() if graph.roots[graph.homes(o, c.space, elements)[0]] == ELEMENT]
        folds = [(i, v) for (i, place), v in c.made.items() if i in graph.fold_space and graph.roots[place] != HELD]
        most, beyond = graph.costs.products, max(0.0, len(folds) - graph.costs.products)
        for product in (v for i, v in folds if i in graph.products):
            for variable in own:
                self._not_both(product, variable)
            self._row(-most - beyond, (-beyond, product), *((-1, v) for _, v in folds))

    def _not_both(self, one: int, other: int) -> None:
        self._row(-1, (-1, one), (-1, other))

    def _row(self, low: float, *terms: tuple[float, int]) -> None:
        """low <= the sum of the terms."""
        row: dict[int, float] = {}
        for coefficient, variable in terms:
            row[variable] = row.get(variable, 0.0) + coefficient
        self.rows.append((row, low))

    def _reach(self, c: _Candidate, first: Need) -> None:
        """Variables for a need and all below it."""
        stack = [first]
        while stack:
            need = stack.pop()
            if need in c.made or need in c.loaded:
                continue
            c.loaded[need] = self._variable(integral=False)
            below = None if self.graph.given[need[0]] else self.graph.below(c.space, *need)
            if below is not None:
                c.made[need] = self._variable()
                stack.extend(below)
        for need, variable in c.made.items():
            for below_need in self.graph.below(c.space, *need) or ():
                if below_need in c.loaded and (variable, below_need) not in self._linked:
                    self._linked.add((variable, below_need))
                    self._row(0, *((1, v) for v in self._ways(c, below_need)), (-1, variable))

    def _ways(self, c: _Candidate, need: Need, output: int | None = None) -> list[int]:
        """The variables by which a candidate has a value: made, or loaded if it is not the one to store."""
        ways = [c.made[need]] if need in c.made else []
        if output is None or self.graph.given[need[0]]:
            ways.append(c.loaded[need])
        return ways

    def _times(self, c: _Candidate) -> None:
        """A kernel takes as long as its bytes or its operations do, whichever is more, and what that does not hide of the
        others."""
        graph = self.graph
        body = body_of(graph, Kernel(c.space, (c.first,)), ())
        moved = [(-body.bytes_of(need) / graph.costs.bandwidth, v) for need, v in c.loaded.items()]
        moved += [(-graph.bytes[o] / graph.costs.bandwidth, v) for o, v in c.outputs.items()]
        computed = [(-body.work_of(need) / graph.costs.rate, v) for need, v in c.made.items()]
        for most, less in ((moved, computed), (computed, moved)):
            self._row(0, (1, c.time), *most, *((EXPOSED * time, v) for time, v in less))

    # ---- all of them

    def _store(self, values: Sequence[int]) -> None:
        """Results are stored, nothing is stored twice, and what is loaded another kernel stores; what one stores is made by
        no other."""
        for i in values:
            storing = [(1.0, c.outputs[i]) for c in self.candidates if i in c.outputs]
            if i in self.graph.results:
                self._row(1, *storing)
            self._row(-1, *((-1.0, v) for _, v in storing))
        for c in self.candidates:
            for (i, _), variable in c.loaded.items():
                if not self.graph.given[i]:
                    self._row(0, *((1, v) for v in self._storing(i, c)), (-1, variable))
            for (i, _), variable in c.made.items():
                self._row(-1, *((-1, v) for v in self._storing(i, c)), (-1, variable))

    def _storing(self, i: int, but: _Candidate) -> list[int]:
        """The variables by which other candidates than one store a value."""
        return [c.outputs[i] for c in self.candidates if c is not but and i in c.outputs]

    def _order(self) -> None:
        """A kernel is launched after those whose values it loads."""
        most = float(len(self.candidates))
        for c in self.candidates:
            for (i, _), variable in c.loaded.items():
                if self.graph.given[i]:
                    continue
                for d in self.candidates:
                    if d is not c and i in d.outputs:
                        terms = ((1, c.rank), (-1, d.rank), (-most, variable), (-most, d.outputs[i]))
                        self._row(1 - 2 * most, *terms)

    def solved(self) -> list[Kernel]:
        """The kernels of the best plan, in the order of their launch."""
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        entries = [(n, v, x) for n, (row, _) in enumerate(self.rows) for v, x in row.items()]
        shape = (len(self.rows), len(self.cost))
        matrix: Any = coo_array(
            ([x for *_, x in entries], ([n for n, *_ in entries], [v for _, v, _ in entries])), shape
        )
        low = np.array([low for _, low in self.rows])
        found = milp(
            self.cost,
            integrality=self.integral,
            bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(matrix.tocsc(), low, np.inf),
            options={"time_limit": _SECONDS, "mip_rel_gap": 1e-6},
        )
        if found.status != 0:
            within = (
                f"within {_SECONDS:g} seconds" if found.status == _OUT_OF_TIME else f"by the solver: {found.message}"
            )
            name, span = self.graph.module.name, self.graph.module.span
            raise error(f"no best plan of module `{name}` was found {within}", span, "leave out `--plan exact`")
        chosen = [c for c in self.candidates if found.x[c.used] > 0.5]
        kernels = []
        for c in sorted(chosen, key=lambda c: (found.x[c.rank], c.first)):
            kernels.append(Kernel(c.space, tuple(o for o, v in c.outputs.items() if found.x[v] > 0.5)))
        return kernels
