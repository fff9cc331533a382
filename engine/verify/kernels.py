"""Rules whose sides mean nothing by themselves, tried in whole kernels: small ones, lowered with the rule's side wherever
it made one, and run at every lane.

A kernel that comes out wrong is the rule's fault if the same kernel comes out right without the rule's side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from genrw.engine.egraph.stage import EGraphSnapshot
from genrw.engine.interpret.compare import first_problem
from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.interpret.memory import inputs_read_as
from genrw.engine.interpret.reference import interpret
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Module, Node, Unit
from genrw.engine.ir.types import Type
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.functions import Value
from genrw.engine.library.library import Library
from genrw.engine.library.variants import pattern_operators
from genrw.engine.lowering.garbage import uncollected
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.lowering.trace import Trace
from genrw.engine.programs.build import plain
from genrw.engine.programs.example_programs import kernel_of
from genrw.engine.verify.examples import example_modules
from genrw.engine.verify.facets import Kind
from genrw.engine.verify.goals import Goals
from genrw.engine.verify.meaning import ran_out_of_memory
from genrw.engine.verify.offers import LONG, POLICIES, Offer, choosing, has_several_rows, offers_of, opened, targets_of
from genrw.engine.verify.programs import SCATTERED, operators_of, random_fold_of_views, random_kernel, random_program
from genrw.engine.verify.seeking import Prospects
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.rw_tree import OpPattern, RuleDecl

_LEAST_PROGRAMS = 240
_PROGRAMS_FOR_EACH, _PROGRAMS_FOR_RARE = 8, 80
"""Programs for each kernel that is wanted; more only as long as the rule took part in none."""
_RARER = 4
"""So many times as many programs for a rule that asks for schedules of its own, or for folds of several views: most have
none."""
_KERNELS_FOR_KINDS = 4
"""At most so many times as many kernels as are wanted are tried, so that there is one of every kind."""
_PROGRAMS_FOR_TARGETS = 3
"""Programs for each length of waves, at least, to see which kinds of kernels there are."""
_SHOWN = 0.4
"""How often kernels have a type that examples show."""
_KERNEL_SHOWN = 0.5
"""How often a kernel is one that an example's context names."""
_UNSTEADY_RUNS, _UNITS = 2, 4
"""Runs that are each off by so many units in the last place, to see whether a difference is one of rounding."""
_OF_KIND = 0.8
"""How often kernels get a schedule of a kind that is still to be met."""
_LIKE_EXAMPLES, _LIKE_EXAMPLES_MET = 0.7, 0.2
"""How often they get one such as examples have, before the rule took part in a kernel and later."""
_SHORT = 0.1
"""How often rows are of one element."""
_OF_VIEWS = 0.7
"""How often the kernel of a space with several axes beside its rows folds several views of that."""
_NO_MEANING = "no meaning"
"""What the interpreter says of operators that only a later stage tells."""
_OFFERED, _SOUGHT, _TRIED_FOR_EACH = (40, 90), 6, 3
"""So many programs are looked through for kernels that would show something new; so many of these are wanted each time, and
so many tried for each."""


Printed = Callable[[Module, Options, Mapping[str, Values]], Sequence[Values] | None]
"""The results of a kernel at the last stage as it is printed; None where nothing is asked of it."""


@dataclass(frozen=True)
class WrongKernel:
    """A kernel as it was before the rule's stage, after all stages, and what is wrong with its results for some inputs. `others` are rules
    that may as well be the cause: the kernel cannot be made without any of them."""

    before: Module
    after: Module
    options: Options
    reason: str
    inputs: Mapping[str, Values]
    others: tuple[str, ...] = ()


@dataclass
class KernelsTried:
    """How many kernels were right with the rule's side in them, the first that was not, what is said if an operator does not
    allow the rule's side, and the kinds of kernels that the rule took part in none of."""

    compared: int = 0
    failure: WrongKernel | None = None
    refused: Diagnostic | None = None
    missed: tuple[str, ...] = ()


class KernelTrial:
    """One rule, tried in kernels at one of its stages."""

    def __init__(
        self,
        library: Library,
        rule: RuleDecl,
        stage: str,
        waves: Sequence[int],
        suspects: Collection[str] = (),
        seed: int = 0,
        printed: Printed | None = None,
    ) -> None:
        """`suspects` are other rules of which nothing is known either: what they make wrong is not this rule's fault. `seed` says
        which kernels there are that any rule is tried in. What is `printed` of a kernel has to be right as well."""
        self.library, self.rule, self.stage, self.suspects, self.printed = library, rule, stage, suspects, printed
        self.pipeline = Pipeline(library)
        self.targets = targets_of(library, waves)
        self.offers = offers_of(library, tuple(waves), seed)
        self.place = library.stages.index(stage)
        self.choosing = choosing(library)
        headers = [{a.name: plain(a.value) for a in e.context} for e in rule.examples if e.after is not None]
        self.wanted = [header["schedule"] for header in headers if "schedule" in header]
        # a rule for some targets says so in its examples
        named = dict.fromkeys(str(h["target"]) for h in headers if h.get("target") in library.targets)
        self.targets += [[*named]] * len(self.targets) if named else []
        self.spaces = [(tuple(h["space"]), tuple(h.get("axes", ()))) for h in headers if h.get("space")]
        modules = list(example_modules(library, rule))
        kernels = (kernel_of(library, e) for e in rule.examples if e.after is not None)
        self.shown = [module for module in kernels if module is not None]
        if not self.spaces:
            self.spaces = [*dict.fromkeys(s for m in modules for s in self._rows(m))]
        self.folds_views = any(has_several_rows(*space) for space in self.spaces)
        self.goals, self.prospects = Goals(library, rule, stage), Prospects()
        self.types = sorted({p.type.dtype for m in modules for p in m.parameters if p.type.sort == "tensor"})
        scattered = set(operators_of(library, SCATTERED))
        self.turned = any(schedule.get("sides") for schedule in self.wanted) or any(
            n.op in scattered for m in modules for n in m.nodes
        )

    def _rows(self, module: Module) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """What the folds of a program run over."""
        for node in module.nodes:
            along = [a.name for a in self.library.operator(node.op).decl.attributes if a.type == "axes"]
            if self.library.role(node.op) == "fold" and along:
                yield node.operands[0].type.lens, node.attribute(along[0])

    def run(self, count: int, seed: str) -> KernelsTried:
        """Compare so many kernels that the rule took part in, and one of each kind; ends with the first that fails."""
        tried = KernelsTried()
        with uncollected():
            for number in range(max(count * _PROGRAMS_FOR_RARE, _LEAST_PROGRAMS)):
                if self._is_enough(tried.compared, number, count):
                    break
                random = Random(f"{seed}/{number}")
                for reference, before, options in self._kernels(random):
                    tried.failure = self._compared(reference, before, options, number, tried)
                    if tried.failure is not None or tried.refused is not None:
                        return tried
            if self.goals.of_schedules and self.place >= self.choosing:
                self._seek(tried)
                if tried.failure is not None:
                    return tried
        tried.missed = tuple(self.goals.not_exercised()) if tried.compared else ()
        return tried

    def _is_enough(self, compared: int, programs: int, count: int) -> bool:
        if not compared:
            return False
        if compared < count:
            return programs >= count * _PROGRAMS_FOR_EACH * (_RARER if self.goals.words or self.folds_views else 1)
        most = count * _KERNELS_FOR_KINDS
        looked_at = programs >= _PROGRAMS_FOR_TARGETS * len(self.targets)
        return (looked_at and not self.goals.open()) or compared >= most or programs >= 2 * most

    def _seek(self, tried: KernelsTried) -> None:
        """Try the rule in kernels that any rule may be tried in, as long as some of them would show what none showed yet."""
        for programs in _OFFERED:
            found = [
                (kinds, offer, schedule)
                for offer in self.offers.first(programs)
                for kinds, schedule in self._allowed(offer.module, offer.schedules, offer.options)
            ]
            self.goals.seen(kind for kinds, _, _ in found for kind in kinds)
            wanted = tried.compared + _SOUGHT
            for _ in range(min(_SOUGHT * _TRIED_FOR_EACH, len(found))):
                best = max(found, key=lambda f: self.goals.gain(f[0]) * self.prospects.of(f[1].module))
                kinds, offer, schedule = best
                if not self.goals.gain(kinds) or tried.compared >= wanted:
                    break
                found.remove(best)
                self._try_offer(offer, schedule, kinds, tried)
                if tried.failure is not None or tried.refused is not None:
                    return

    def _try_offer(self, offer: Offer, schedule: Mapping[str, Any], kinds: Sequence[Kind], tried: KernelsTried) -> None:
        """Try the rule in a kernel under one of its schedules."""
        options = replace(offer.options, schedule=schedule)
        try:
            before = self._lowered(offer.module, self.library.stages[self.choosing : self.place], options)
        except GenrwError:
            self.goals.note(kinds, False)
            return
        tried.failure = self._compared(offer.module, before, options, tried.compared, tried)

    # ---- kernels before the rule's stage

    def _kernels(self, random: Random) -> Iterator[tuple[Module, Module, Options]]:
        """Tensor programs of kernels, as they are before the rule's stage."""
        options = Options(random.choice(random.choice(self.targets)), policy=random.choice(POLICIES))
        program = self._program(random)
        cut = self.library.stages[min(self.choosing, self.place) - 1]
        try:
            (unit,) = self.pipeline.lower([Unit((program,))], cut, options)
        except GenrwError:
            return
        for module in unit.kernels:
            try:
                own = self._scheduled(module, options, random)
                yield module, self._lowered(module, self.library.stages[self.choosing : self.place], own), own
            except GenrwError:
                continue

    def _program(self, random: Random) -> Module:
        """A program; where the rule's examples say what a kernel runs over, mostly one of such a kernel."""
        if self.shown and random.random() < _KERNEL_SHOWN:
            return random.choice(self.shown)
        monoid = self.goals.wanted_monoid(random)
        if self.spaces and random.random() < 0.8:
            space, axes = random.choice(self.spaces)
            dtype = random.choice(self.types) if self.types and random.random() < _SHOWN else None
            if has_several_rows(space, axes) and random.random() < _OF_VIEWS:
                module = random_fold_of_views(self.library, random, space, axes, dtype=dtype)
                if module is not None:
                    # folds of views are what the first stage makes
                    return replace(module, stage=self.library.stages[0])
            if axes and random.random() < _SHORT:
                # rows of one element are left only where the program says that the first stage is done
                short = tuple(1 if d in axes else n for d, n in enumerate(space))
                module = random_kernel(self.library, random, short, axes, exact=True, monoid=monoid)
                return replace(module, stage=self.library.stages[0])
            return random_kernel(self.library, random, space, axes, dtype=dtype, monoid=monoid, turned=self.turned)
        if monoid is not None:
            return random_kernel(self.library, random, *random.choice([s for s in LONG if s[1]]), monoid=monoid)
        if random.random() < 0.5:
            return random_kernel(self.library, random, *random.choice(LONG))
        return random_program(self.library, random)

    def _scheduled(self, module: Module, options: Options, random: Random) -> Options:
        """The options with one of the kernel's schedules: of a kind that is still to be met, or such as examples have."""
        if self.place <= self.choosing:
            return options
        found = opened(self.pipeline, module, options)
        if self.goals.words and not any(self.goals.has_words(s) for s in found):
            raise error("no schedule has the words that the rule asks for")
        if self.wanted and random.random() < (_LIKE_EXAMPLES_MET if self.goals.met else _LIKE_EXAMPLES):
            like = random.choice(self.wanted)
            best = max((_likeness(schedule, like) for schedule in found), default=0)
            found = [schedule for schedule in found if _likeness(schedule, like) == best]
            return replace(options, schedule=random.choice(found)) if found else options
        allowed = self._allowed(module, found, options)
        if allowed and random.random() < _OF_KIND:
            self.goals.seen(kind for kinds, _ in allowed for kind in kinds)
            return replace(options, schedule=self.goals.least_tried(random, allowed))
        return replace(options, schedule=random.choice(found)) if found else options

    def _allowed(
        self, module: Module, schedules: Sequence[Mapping[str, Any]], options: Options
    ) -> list[tuple[list[Kind], Mapping[str, Any]]]:
        """The schedules under which the guard may take something of a kernel, and the kinds that it then is of."""
        spaced = self.pipeline.spaced(module, self.library.stages[self.choosing])
        named = self.pipeline.context(spaced, options)
        target = named["target"]
        found = []
        for schedule in schedules if self.place > self.choosing else ({},):
            if self.goals.has_words(schedule):
                context = {**named, "schedule": self.library.schedule_record(schedule, target)}
                if self.goals.passes(context):
                    found.append((self.goals.of(module, schedule, context), schedule))
        return found

    def _lowered(self, module: Module, stages: Sequence[str], options: Options) -> Module:
        for stage in stages:
            (module,) = self.pipeline.step([module], stage, options, Trace())
        return module

    # ---- the rule's side

    def _compared(
        self, reference: Module, before: Module, options: Options, seed: int, tried: KernelsTried
    ) -> WrongKernel | None:
        took_part = False
        for forced in self._forced(before, options, tried):
            wrong = self._wrong(reference, forced, options, seed)
            kinds = self.goals.of(before, forced.schedule, self.pipeline.context(forced, options))
            if wrong is None:
                tried.compared += 1
                took_part = True
                self.goals.note(kinds, True)
            elif isinstance(wrong, WrongKernel):
                blamed = self._blamed(wrong, forced, reference, before, options, seed)
                if blamed is not None:
                    return blamed
        self.prospects.note(reference, took_part)
        context = self.pipeline.context(before, options)
        if not took_part and self.goals.passes(context):
            self.goals.note(self.goals.of(before, before.schedule, context), False)
        return None

    def _forced(self, before: Module, options: Options, tried: KernelsTried) -> Iterator[Module]:
        """The kernel after the rule's stage, with the rule's side wherever there is one; notes it if that is not allowed."""
        modules = [self.pipeline.spaced(before, self.stage)]
        # of rules that are alternatives another one may be taken: one that is looked at stands alone
        alone = frozenset({self.rule.name}) if self.rule.alternative else None
        try:
            batch = self.pipeline.batch(modules, self.stage, options, alternatives=alone)
        except GenrwError as problem:
            told = problem.diagnostics[0]
            if told.span in (self.rule.right.span, self.rule.name_span):
                tried.refused = told
            return
        graph, module = batch.graph, batch.modules[0]
        made = self._made(graph)
        if not made and not self._fired(graph):
            return
        root = graph.class_of[graph.ids[id(module.root)]]
        kernels = [n for n in made.get(root, ()) if self.library.role(n.op) == "kernel"]
        if kernels:
            schedules = [dict(graph.interner.attributes(node.attributes)) for node in kernels]
            yield from self._of_schedules(module, schedules, options)
            return
        # what may not leave the stage is no choice: other rules go on from there
        for chosen in ([*made], *([number] for number in list(made)[:2]), []):
            kept = {number: graph.classes[number] for number in chosen}
            graph.classes.update((number, list(made[number])) for number in chosen)
            try:
                root_node = batch.extractor.extract(module, batch.contexts[0], batch.names)
            except GenrwError:
                continue
            finally:
                graph.classes.update(kept)
            yield self.pipeline.with_root(module, root_node, self.stage)
            return

    def _of_schedules(
        self, module: Module, schedules: Sequence[Mapping[str, Any]], options: Options
    ) -> Iterator[Module]:
        """The kernel under the schedules that the rule opens: two of kinds that are still to be met."""
        made = [replace(module, schedule=schedule, stage=self.stage) for schedule in schedules]
        open_ = [(self.goals.kinds(m.schedule, self.pipeline.context(m, options)), m) for m in made]
        self.goals.seen(kind for kinds, _ in open_ for kind in kinds)
        for _ in range(min(2, len(made))):
            chosen = self.goals.least_tried(Random(self.goals.tried.total()), open_)
            open_ = [(kinds, m) for kinds, m in open_ if m is not chosen]
            yield chosen

    def _own(self, graph: EGraphSnapshot) -> set[int]:
        """The numbers of the rule's directions."""
        return {number for number, key in graph.rules.items() if key.split("/")[0] == self.rule.name}

    def _fired(self, graph: EGraphSnapshot) -> bool:
        own = self._own(graph)
        return any(rules & own for rules in graph.why.values())

    def _made(self, graph: EGraphSnapshot) -> dict[int, list[ENode]]:
        """The nodes of classes that the rule made."""
        right = self.rule.right
        if not isinstance(right, OpPattern):
            return {}
        named = pattern_operators(right, self.rule, self.library)
        named = frozenset(name for name in named if self.library.operator(name).legal_at(self.stage))
        own = self._own(graph)
        found: dict[int, list[ENode]] = {}
        for number, rules in graph.why.items():
            if rules & own:
                nodes = [n for n in graph.classes.get(number, ()) if n.op in named and self._may_make(graph, number, n)]
                others = len(graph.classes.get(number, ())) - len(nodes)
                if nodes and (others or self.rule.replaces or number in graph.class_of.values()):
                    found[number] = nodes
        return found

    def _may_make(self, graph: EGraphSnapshot, number: int, node: ENode) -> bool:
        """May a node of a class be the rule's: has no other rule alone computed its attributes?"""
        openers = {key.split("/")[0] for key in graph.openers(number, node)}
        return not openers or self.rule.name in openers

    def _wrong(self, reference: Module, kernel: Module, options: Options, seed: int) -> WrongKernel | str | None:
        """What is wrong with a kernel lowered on and run; a text if it cannot be lowered; None if nothing is. Where a rule makes
        several kernels of it, it is run as it is then."""
        try:
            after = self._lowered(kernel, self.library.stages[self.place + 1 :], options)
        except GenrwError as problem:
            if self.stage != self.library.fusing_stage:
                return problem.diagnostics[0].message
            after = kernel
        try:
            inputs = random_inputs(reference, self.library, seed)
            want = interpret(reference, self.library, self.pipeline.context(reference, options), inputs, precise=True)
            rounded = interpret(reference, self.library, self.pipeline.context(reference, options), inputs)
        except GenrwError as problem:
            return problem.diagnostics[0].message
        if _different(list(rounded.values()), want, reference):
            return "the kernel's rounding alone makes its results differ"
        try:
            given = inputs_read_as(after.parameters, inputs, _types(reference))
            got = interpret(after, self.library, self.pipeline.context(after, options), given)
        except GenrwError as problem:
            said = problem.diagnostics[0].message
            tells_nothing = ran_out_of_memory(problem) or (after is kernel and _NO_MEANING in said)
            return said if tells_nothing else WrongKernel(kernel, after, options, said, inputs)
        wrong = _different(list(got.values()), want, reference)
        if wrong and self._is_unsteady(reference, options, inputs, want):
            return "the kernel's rounding alone may make its results differ"
        if not wrong and self.printed is not None:
            run = self.printed(after, options, given)
            wrong = _different(run, want, reference) if run is not None else ""
        return WrongKernel(kernel, after, options, wrong, inputs) if wrong else None

    def _is_unsteady(
        self, reference: Module, options: Options, inputs: Mapping[str, Values], want: Mapping[str, Values]
    ) -> bool:
        """Do results change if each operation is off by a few units in the last place?"""
        context = self.pipeline.context(reference, options)
        for seed in range(_UNSTEADY_RUNS):
            evaluator = _Unsteady(self.library, context, seed)
            got = interpret(reference, self.library, context, inputs, precise=True, evaluator=evaluator)
            if _different(list(got.values()), want, reference):
                return True
        return False

    # ---- whose fault it is

    def _blamed(
        self, wrong: WrongKernel, forced: Module, reference: Module, before: Module, options: Options, seed: int
    ) -> WrongKernel | None:
        """The wrong kernel, if the rule is the cause, or may be; None if it is right neither with nor without the rule, or
        goes wrong later by a rule of which as little is known."""
        others = self._others_at(forced, reference, before, options, seed)
        if others is None:
            return None
        rules = tuple(r for r in self.library.rules if r is not self.rule)
        without = KernelTrial(replace(self.library, rules=rules), self.rule, self.stage, ())
        try:
            after = without._lowered(before, [self.stage], options)
        except GenrwError:
            return replace(wrong, before=before, others=others)
        return replace(wrong, before=before) if without._wrong(reference, after, options, seed) is None else None

    def _others_at(
        self, forced: Module, reference: Module, before: Module, options: Options, seed: int
    ) -> tuple[str, ...] | None:
        """The other suspects at the rule's stage, if the kernel is wrong there or no other suspect takes part where it gets
        wrong; else None."""
        inputs = random_inputs(reference, self.library, seed)
        want = interpret(reference, self.library, self.pipeline.context(reference, options), inputs, precise=True)
        trace = Trace()
        stages = self.library.stages[self.place + 1 :]
        module = forced
        for stage in ("", *stages):
            if stage:
                trace = Trace()
                (module,) = self.pipeline.step([module], stage, options, trace)
            else:
                self._stepped(before, options, trace)
            others = self._suspects_in(trace, stage or self.stage)
            try:
                given = inputs_read_as(module.parameters, inputs, _types(reference))
                got = interpret(module, self.library, self.pipeline.context(module, options), given)
                is_wrong = bool(_different(list(got.values()), want, reference))
            except GenrwError as problem:
                # a stage without meanings tells nothing; what is read or written outside is wrong
                is_wrong = _NO_MEANING not in problem.diagnostics[0].message
            if is_wrong:
                return others if not stage else None if others else ()
        return ()

    def _suspects_in(self, trace: Trace, stage: str) -> tuple[str, ...]:
        """The other suspects that made a value of a kernel at a stage."""
        survived = {key.split("/")[0] for key in trace.survived}
        found = [r.name for r in self.library.rules if r.name in survived and stage in r.stages]
        return tuple(name for name in found if name in self.suspects and name != self.rule.name)

    def _stepped(self, before: Module, options: Options, trace: Trace) -> None:
        """Run the rule's stage, to note which rules make a value of the kernel."""
        try:
            self.pipeline.step([before], self.stage, options, trace)
        except GenrwError:
            return


class _Unsteady(Evaluator):
    """Computes as in kernels that round otherwise: what an operation makes is off by a few units in the last place."""

    def __init__(self, library: Library, context: Mapping[str, Any], seed: int) -> None:
        super().__init__(library, context, True)
        self._rng = np.random.default_rng(seed)

    def value(self, node: Node, operands: Sequence[Value]) -> Value:
        """The value of an operation, a little off."""
        value = super().value(node, operands)
        dtype = node.type.dtype
        if not isinstance(value, Array) or dtype not in DTYPES or not DTYPES[dtype].is_float:
            return value
        units = _UNITS * DTYPES[DTYPES[dtype].compute].epsilon
        return Array(value.values * (1 + units * self._rng.uniform(-1, 1, value.values.shape)), value.dtype)


def _likeness(schedule: Mapping[str, Any], like: Mapping[str, Any]) -> int:
    """How much a schedule is like another one: words count most, also those that only one of them has."""
    alike = sum(100 if isinstance(v, str) else 1 for k, v in like.items() if schedule.get(k) == v)
    return alike - sum(100 for k, v in schedule.items() if v and isinstance(v, str) and k not in like)


def _types(program: Module) -> dict[str, Type]:
    """The types of a program's inputs, by name."""
    return {parameter.attribute("name"): parameter.type for parameter in program.parameters}


def _different(got: Sequence[Values], want: Mapping[str, Values], reference: Module) -> str:
    """What is wrong with results, in words; empty if nothing is."""
    results = zip(got, want.items(), reference.root.operands, strict=True)
    return (
        first_problem(
            (
                f"the result `{name}`",
                np.asarray(found).reshape(right.shape),
                right,
                (node.type.dtype, node.type.dtype, 0.0),
            )
            for found, (name, right), node in results
        )
        or ""
    )
