"""Runs the rules of one stage on a batch of kernels in one e-graph."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from genrw.engine.egraph.bindings import egg
from genrw.engine.egraph.clearing import CLEAR, clearing
from genrw.engine.egraph.encode import (
    ACTIVE,
    ASKING,
    FACTS,
    FIRED,
    TYPE,
    Encoded,
    answer_table,
    constructor,
    demand_table,
)
from genrw.engine.egraph.encodings import RULES, WAITING, Encodings, Needed, for_arity, rulesets
from genrw.engine.egraph.faults import fault, is_fault
from genrw.engine.egraph.guard_evaluation import RuleUse
from genrw.engine.egraph.ill_made import blamed, ill_made_by
from genrw.engine.egraph.reading import read_terms
from genrw.engine.egraph.recording import CLASS, OPERATOR, Application, applications
from genrw.engine.egraph.schema import Declared
from genrw.engine.egraph.unfinished import Work, graph_text, keep
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.interner import CONTEXT_SHIFT, Interner
from genrw.engine.ir.nodes import Module
from genrw.engine.library.arities import NARROW, program_arities, term_arities
from genrw.engine.library.library import Library
from genrw.engine.programs.graph_facts import GRAPH_FACTS, GraphFacts
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.rw_tree import RuleDecl
from genrw.grammar.source import NOWHERE

_LOAD = "load"
ITERATIONS_A_STEP = 8
_CALM_GROWTH = 1.5
_OPERATIONS_OF_A_KERNEL = 50
"""A program of more becomes several kernels, and may have their nodes."""
_NODES_LEFT = 2000
"""How many nodes may stay until the next run clears them away. Clearing takes time, which a single run then saves."""
_NODES_DELETED = 400
"""Up to so many nodes are deleted one by one, and so many may stay that cannot be: going back to the copy is faster then."""
_MOST_READ = 2_000_000
"""Rows of an e-graph that is still read where it was not finished: Python takes more memory for them than egglog."""
_SUSPECTS = 4
_SOONER = 4
_TIMES_LONGER = 4
"""What has not settled without a rule in so many times as many rounds as with all rules is taken never to settle."""
_SECONDS_FOR_SUSPECTS = 10.0
_ALL: Mapping[int, str] = {}
_LOADED_FACTS = ("ty", *GRAPH_FACTS)
"""What is known of each node of a program, in the order of the columns of its row."""
_MERGES = {
    **{"ty": "min", "depth": "min", "uses": "max", "fold": "min", "order": "min", "varies": "min", "ways": "max"},
    **{"lo": "max", "hi": "min", "pow2": "max", "size": "min"},
}
"""The facts, and which of two about one class is kept."""
_COMMUTATIVE, _INJECTIVE = "commutative", "injective"
"""The class of the operators whose operands may stand in either order, beside those that rules name."""


@dataclass(frozen=True)
class Limits:
    """What bounds a stage's work. Reaching one is an error that names a rule, never another program.

    `memory` is in bytes, those by which the process grows. It is looked at between the iterations.
    """

    rounds: int = 400
    nodes_per_kernel: int = 40_000
    seconds: float = 120.0
    memory: int = 4 << 30


@dataclass(frozen=True)
class _Batch:
    """What a run is of: `contexts[i]` belongs to `modules[i]`; `without[i]` is the key of a rule to leave out."""

    modules: Sequence[Module]
    contexts: Sequence[Mapping[str, Any]]
    without: Mapping[int, str]


@dataclass
class _Ended(Exception):
    """A stage reached a limit: why, and whether for the time that it took."""

    why: str
    slow: bool = False


@dataclass(frozen=True)
class _Size:
    """How many nodes an e-graph has, and how many rows all its tables."""

    nodes: int = 0
    rows: int = 0

    @classmethod
    def of(cls, sizes: Iterable[tuple[str, int]]) -> _Size:
        """The size of an e-graph with tables of some sizes."""
        counts = dict(sizes)
        return cls(sum(n for name, n in counts.items() if name.startswith("N")), sum(counts.values()))


@dataclass
class GuardStatistics:
    """What rules were asked and answered: how many demands of each size, how guards decided, the numbers in each rule's
    answers; of watched rules also the seconds that egglog and their answers took."""

    demands: dict[int, int] = field(default_factory=dict)
    uses: dict[str, RuleUse] = field(default_factory=dict)
    numbers: dict[str, set[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def note_time(self, report: Any) -> None:
        """Take over how long a run took for each rule."""
        for name, spent in report.search_and_apply_time_per_rule.items():
            self.spend(name.split("#")[0], spent.total_seconds())

    def spend(self, key: str, seconds: float) -> None:
        """Add to the time of a rule."""
        self.seconds[key] = self.seconds.get(key, 0.0) + seconds


@dataclass
class EGraphSnapshot:
    """The e-graph after a stage, in Python: classes by number, what they hold, and where the input went.

    `replaced` has the nodes that rules took out of the classes; `fired`, for each watched rule that did, the numbers of
    the modules in which it did; `facts` of a watched engine what is known of each class, by the fact and the class;
    `applied` what each rule of recorded encodings did, in the order of the rules.
    """

    interner: Interner
    classes: dict[int, list[ENode]]
    replaced: dict[int, list[ENode]]
    class_of: dict[int, int]
    ids: dict[int, int]
    why: dict[int, set[int]]
    rules: Mapping[int, str]
    builds: Mapping[int, frozenset[str]]
    answered: GuardStatistics
    fired: Mapping[str, set[int]]
    facts: Mapping[str, Mapping[int, int]]
    applied: Sequence[Application] = ()

    def growth(self) -> dict[str, int]:
        """How many terms of the e-graph each rule made."""
        made: dict[str, int] = {}
        for number, rules in self.why.items():
            for rule in rules:
                count = sum(node.op in self.builds[rule] for node in self.classes.get(number, ()))
                made[self.rules[rule]] = made.get(self.rules[rule], 0) + count
        return made

    def openers(self, number: int, node: ENode) -> tuple[str, ...]:
        """The rules that computed the attributes of a node of a class."""
        keys = [self.rules[r] for r in sorted(self.why.get(number, ()))]
        return tuple(k for k in keys if node.attributes in self.answered.numbers.get(k, ()))


class StageEngine:
    """The rules of one stage, declared once; `run` loads a batch of kernels, saturates and reads the result back."""

    def __init__(
        self,
        library: Library,
        stage: str,
        rules: Iterable[RuleDecl],
        operators: frozenset[str] | None = None,
        limits: Limits | None = None,
        encodings: Encodings | None = None,
        outdated: StageEngine | None = None,
    ) -> None:
        """`operators` are those that can appear, by default all. `encodings` are shared by the engines of a library; if
        these are watched, every guard's decisions are counted and a run can leave out a rule, at the price of speed.
        `outdated` is an engine of the stage that nobody needs any more: its e-graph is taken over where it can be.
        """
        self.library = library
        self.stage = stage
        self.rules = tuple(rules)
        self.operators = operators if operators is not None else frozenset(library.names)
        self.limits = limits or Limits()
        self._longest = 0
        self.encodings = encodings or Encodings(library)
        self.watched = self.encodings.watched
        self.encoded: dict[int, Encoded] = {}
        self.keys: dict[int, str] = {}
        self.declared = Declared(False)
        self.graph: Any = None
        self.folder = ""
        self._folder: _Folder | None = None
        self.wide: list[int] = []
        self._sources: tuple[str, ...] = (RULES,)
        self._awaits = False
        self._outdated = outdated
        self._size = _Size()
        self._pushed = self._used = self._clears = False
        self._contexts = 0
        self._left = _Size()
        self._served: set[Hashable] = set()

    @property
    def arities(self) -> frozenset[int]:
        """The numbers of operands that terms can have."""
        return self.declared.arities

    @property
    def _widths(self) -> list[int]:
        """The large ones among them."""
        return sorted(k for k in self.arities if k > NARROW)

    # ---- declarations

    def grow(self, rules: Iterable[RuleDecl], operators: frozenset[str]) -> None:
        """Have more rules, on terms of more operators, from the next run on."""
        self.rules, self.operators = tuple(rules), self.operators | operators
        self._served.clear()

    def _declare(self, needed: Needed) -> None:
        """An e-graph with all that is needed: the one that there is, with more, if it has few other rules."""
        encoded = needed.encoded
        outdated, self._outdated = self._outdated, None
        if self.declared.serves(encoded):
            encoded = tuple(dict.fromkeys((*self.encoded.values(), *encoded)))
            if self._pushed:
                self._pop()
        elif outdated is not None and outdated.declared.apart and outdated.declared.serves(encoded):
            self._take_over(outdated)
        else:
            self._begin()
        self.encoded = {e.number: e for e in encoded}
        own = {e.key for e in encoded}
        self.keys = {number: key for number, key in self.encodings.keys.items() if key in own}
        self._awaits = not self.encodings.awaited.isdisjoint(own)
        self.demand_sizes = sorted({e.inputs for e in encoded if e.answer})
        try:
            self._run(*self._tables(needed.arities - self.arities))
            self.declared.arities |= needed.arities
            self._run(*self.declared.more(encoded, self.encodings.spans(NOWHERE)))
            self._run(*self._rows(self._members()))
        except BaseException:
            # Nobody knows what the e-graph has now.
            self.declared = Declared(False)
            raise

    def _take_over(self, outdated: StageEngine) -> None:
        """Go on with the e-graph of another engine."""
        if outdated._pushed:
            outdated._pop()
        self._folder, self.folder, self.graph = outdated._folder, outdated.folder, outdated.graph
        self.declared, outdated.declared = outdated.declared, Declared(False)
        outdated._served.clear()
        self._pushed = self._used = self._clears = False

    def _begin(self) -> None:
        """A fresh e-graph."""
        self._pushed = self._used = self._clears = False
        self._folder = _Folder()
        self.folder = self._folder.name
        self.graph = egg.EGraph(fact_directory=self.folder)
        self.declared = Declared(self.encodings.apart)
        self._run(*self._common_tables())

    def _common_tables(self) -> list[Any]:
        """The tables of terms of any number of operands."""
        sp = self.encodings.spans(NOWHERE)
        old, new = egg.Var(sp, "old"), egg.Var(sp, "new")
        commands: list[Any] = [
            egg.Datatype(sp, "T", [egg.Variant(sp, "Num", ["i64"])]),
            egg.FunctionCommand(sp, "node", egg.Schema(["i64"], "T"), None),
            egg.FunctionCommand(sp, "operator", egg.Schema(["i64"], "String"), None),
            egg.Relation(sp, "member", ["String", "String", "i64"]),
            egg.Relation(sp, "why", ["T", "i64"]),
            egg.Relation(sp, "numbers", ["i64", "i64"]),
            *(egg.Relation(sp, name, ["i64", "i64"]) for name in (ACTIVE, FIRED) if self.watched),
            egg.AddRuleset(sp, _LOAD),
            *(egg.AddRuleset(sp, n) for n in rulesets([0])),
        ]
        for name, merge in _MERGES.items():
            commands.append(egg.FunctionCommand(sp, name, egg.Schema(["T"], "i64"), egg.Call(sp, merge, [old, new])))
        return [*commands, _load_numbers(sp), *_number_facts(sp)]

    def _tables(self, arities: Collection[int]) -> list[Any]:
        """The tables of terms of some numbers of operands, and the rules that all stages have for them."""
        sp = self.encodings.spans(NOWHERE)
        commands: list[Any] = [egg.AddRuleset(sp, n) for n in rulesets(arities) if n not in rulesets([0])]
        for k in sorted(arities):
            schema = egg.Schema(["String", "i64", *["T"] * k], "T")
            commands.append(egg.Constructor(sp, constructor(k), schema, None, False))
            commands.append(_numbers_alone(sp, k))
            if k <= NARROW:
                columns = ["i64", "String", *["i64"] * (1 + len(_LOADED_FACTS) + k)]
                commands += [egg.Relation(sp, f"program{k}", columns), self._load_rule(sp, k)]
            commands += [special(sp) for special in _OF_ARITY.get(k, ())]
        return commands

    def _load_rule(self, sp: Any, arity: int) -> Any:
        """program<k>(id, op, attributes, facts…, operand ids…) makes the term and its facts."""
        i, op, a = (egg.Var(sp, n) for n in ("i", "op", "a"))
        facts = [egg.Var(sp, f"fact {name}") for name in _LOADED_FACTS]
        ids = [egg.Var(sp, f"i{j}") for j in range(arity)]
        terms = [egg.Var(sp, f"x{j}") for j in range(arity)]
        term = egg.Call(sp, constructor(arity), [op, a, *terms])
        body: list[Any] = [egg.Fact(egg.Call(sp, f"program{arity}", [i, op, a, *facts, *ids]))]
        body += [egg.Eq(sp, x, egg.Call(sp, "node", [j])) for x, j in zip(terms, ids, strict=True)]
        head: list[Any] = [egg.Set(sp, "node", [i], term)]
        head += [egg.Set(sp, name, [term], value) for name, value in zip(_LOADED_FACTS, facts, strict=True)]
        return egg.RuleCommand(egg.Rule(sp, head, body, f"load {arity}", _LOAD))

    def _members(self) -> dict[str, list[str]]:
        """Which operators belong to the classes that rules name, and the operators' numbers: rows of two tables, no more
        than rules look up, since every run copies them, and no others than are missing."""
        ids = {name: i for i, name in enumerate(self.library.names)}
        families: dict[str, Collection[str]] = {
            family.name: self.library.family_members(family) for family in self.library.families
        }
        members = []
        families[_COMMUTATIVE] = {o.name for o in self.library.operators.values() if o.decl.commutative}
        families[_INJECTIVE] = {o.name for o in self.library.operators.values() if o.decl.injective}
        classes = {
            _COMMUTATIVE,
            _INJECTIVE,
            *(name for e in self.encoded.values() for name in e.classes),
        } - self.declared.classes
        for name in sorted(classes):
            operators = families.get(name) or self.library.members_of(name) or ()
            members += [f"{name}\t{op}\t{ids[op]}\n" for op in sorted(operators)]
        named = any(e.names for e in self.encoded.values()) and not self.declared.named
        self.declared.classes |= classes
        self.declared.named |= named
        return {"member": members, "operator": [f"{i}\t{op}\n" for op, i in ids.items()] if named else []}

    # ---- running

    def run(
        self, modules: Sequence[Module], contexts: Sequence[Mapping[str, Any]], without: Mapping[int, str] = _ALL
    ) -> EGraphSnapshot:
        """Saturate a batch. `contexts[i]` belongs to `modules[i]`; `without[i]` is the key of a watched rule to leave out.

        GenrwError where a limit is reached: it names the rule that is responsible, unless some were left out.
        """
        batch = _Batch(modules, contexts, without)
        reports: list[Any] = []
        answered = GuardStatistics()
        interner, ids = self._start(batch)
        try:
            kernels = sum(1 + len(module.nodes) // _OPERATIONS_OF_A_KERNEL for module in modules)
            self._saturate(interner, kernels, answered, reports, self._rounds(without))
            return self._judged(self._read(interner, ids, answered), modules)
        except GenrwError as problem:
            graph = self._read(interner, ids, answered) if self._size.rows <= _MOST_READ else None
            raise blamed(self.library, graph, modules, problem) from None
        except _Ended as problem:
            if without:
                raise error(f"stage `{self.stage}` {problem.why}") from None
            ended = problem
            graph = self._read(interner, ids, answered) if self._size.rows <= _MOST_READ else None
        finally:
            if self._size.nodes > _NODES_LEFT:
                self._pop()
        raise self._exhausted(ended, graph, reports, batch)

    def _judged(self, graph: EGraphSnapshot, modules: Sequence[Module]) -> EGraphSnapshot:
        """The e-graph; GenrwError where a rule that did not come with genrw made what its operator does not allow."""
        foreign = self.library.foreign_rules
        wrong = ill_made_by(self.library, graph, modules, foreign) if foreign else None
        if wrong is not None:
            raise wrong
        return graph

    def settles(self, batch: _Batch) -> bool:
        """Does a batch saturate, within the limits?"""
        try:
            interner, _ = self._start(batch)
            self._saturate(interner, len(batch.modules), GuardStatistics(), [], self.limits.rounds)
        except (_Ended, GenrwError):
            return False
        return True

    def _start(self, batch: _Batch) -> tuple[Interner, dict[int, int]]:
        """An e-graph that has all rules and the batch, nothing else, and the numbers that attributes and values have in it."""
        self._provide(batch.modules)
        self._empty()
        self._used = True
        first, self._contexts = self._contexts, self._contexts + len(batch.contexts)
        interner, ids = Interner(list(batch.contexts), first), _number_nodes(batch.modules)
        try:
            self._load(batch, interner, ids)
        except BaseException:
            self._pop()  # nobody knows what it has now
            raise
        return interner, ids

    def _provide(self, modules: Sequence[Module]) -> None:
        """Declare what the terms of modules need, if the e-graph does not have it."""
        present = program_arities(modules, self.library)
        # no rule need know of an operator that a program has
        widths = frozenset(len(n.operands) for m in modules for n in m.nodes)
        if (present.key, widths) in self._served:
            return
        needed = self.encodings.needed(self.rules, self.operators, term_arities(self.library, self.rules, present))
        needed = replace(needed, arities=needed.arities | widths)
        if not (needed.arities <= self.arities and set(self.encoded.values()).issuperset(needed.encoded)):
            self._served.clear()
            self._declare(needed)
        self._served.add((present.key, widths))

    def prepare(self) -> None:
        """Clear away what the last run left, if there was one: the next run then begins sooner."""
        if self._used:
            self._empty()

    def _empty(self) -> None:
        """An e-graph with rules and nothing else that a run could meet, to be used once."""
        if self._used and self._deletes:
            self._delete()
        if self._used:
            self._pop()
        if not self._pushed:
            self._run(egg.Push(1))
            self._pushed = True
            self._contexts, self._left = 0, _Size()

    def _pop(self) -> None:
        """Go back to the copy that was made before the first run."""
        self._run(egg.Pop(self.encodings.spans(NOWHERE), 1))
        self._pushed = self._used = self._clears = False

    @property
    def _deletes(self) -> bool:
        """Can the rows of the last runs be deleted, all but a few?"""
        kept = self.watched or self.encodings.recorded
        return not kept and max(self._size.nodes, self._left.nodes) <= _NODES_DELETED

    def _delete(self) -> None:
        """Delete what the last run left."""
        sp = self.encodings.spans(NOWHERE)
        if not self._clears:
            terms = {constructor(k): k + 2 for k in sorted(self.arities)}
            functions = {**terms, "Num": 1, "node": 1, **dict.fromkeys(_MERGES, 1)}
            loaded = {f"program{k}": 3 + len(_LOADED_FACTS) + k for k in sorted(self.arities) if k <= NARROW}
            relations = {**loaded, "why": 2, "numbers": 2, **self.declared.tables}
            self._run(*clearing(functions, relations, sp))
            self._clears = True
        *_, sizes = self._run(egg.RunSchedule(egg.Run(sp, egg.RunConfig(CLEAR))), self._print_size)
        self._left = _Size.of(sizes.sizes)
        self._used = False

    def _load(self, batch: _Batch, interner: Interner, ids: Mapping[int, int]) -> None:
        number_op = self.library.boundary("number").name
        rows: dict[str, list[str]] = {}
        if self.watched:
            rows[ACTIVE] = [
                f"{rule}\t{i << CONTEXT_SHIFT}\n"
                for i in range(len(batch.modules))
                for rule, key in self.keys.items()
                if key != batch.without.get(i)
            ]
        wide: list[list[list[Any]]] = []
        for context, module in enumerate(batch.modules):
            below: dict[int, int] = {}
            graph = GraphFacts.of(module, self.library)
            for node in module.nodes:
                number = ids[id(node)]
                if node.op == number_op:
                    rows.setdefault("numbers", []).append(f"{number}\t{node.attribute('value')}\n")
                    continue
                fields = [
                    number,
                    node.op,
                    interner.attributes_id(context, node.attributes),
                    interner.type_id(node.type),
                    graph.depth[id(node)],
                    graph.uses.get(id(node), 0),
                    graph.fold.get(id(node), -1),
                    graph.order[id(node)],
                    graph.varies[id(node)],
                    graph.ways[id(node)],
                    *(ids[id(o)] for o in node.operands),
                ]
                level = below[id(node)] = max((below.get(id(o), 0) for o in node.operands), default=0)
                if len(node.operands) <= NARROW:
                    rows.setdefault(f"program{len(node.operands)}", []).append("\t".join(map(str, fields)) + "\n")
                    continue
                below[id(node)] += 1
                if level == len(wide):
                    wide.append([])
                wide[level].append(fields)
        self.wide = sorted(
            {len(n.operands) for module in batch.modules for n in module.nodes if len(n.operands) > NARROW}
        )
        self._load_terms(self._rows(rows), wide)

    def _rows(self, rows: Mapping[str, Sequence[str]]) -> list[Any]:
        """The commands that add rows to relations, through files: the fastest way in."""
        sp = self.encodings.spans(NOWHERE)
        for table, lines in rows.items():
            # A text file and its buffer take longer than the few lines.
            with open(os.path.join(self.folder, table), "wb", buffering=0) as file:
                file.write("".join(lines).encode())
        return [egg.Input(sp, table, table) for table in rows]

    def _run(self, *commands: Any) -> Any:
        """Run commands of egglog; GenrwError where it fails."""
        try:
            return self.graph.run_program(*commands)
        except BaseException as problem:
            if not is_fault(problem):
                raise
            operators = (operator.decl for operator in self.library.operators.values())
            raise fault(problem, self.stage, [*self.rules, *operators]) from None

    def _load_terms(self, rows: Sequence[Any], wide: Sequence[Sequence[Sequence[Any]]]) -> None:
        """Make the terms of all rows, each after its operands. Those of many operands are made one by one, level by level:
        a rule for so many would look up each operand, and egglog takes long to plan that."""
        sp = self.encodings.spans(NOWHERE)
        narrow = egg.RunSchedule(egg.Saturate(sp, egg.Run(sp, egg.RunConfig(_LOAD))))
        levels = [
            [egg.ActionCommand(action) for fields in level for action in self._wide_term(sp, fields)] for level in wide
        ]
        loading = [command for level in levels for command in (*level, narrow)]
        *_, sizes = self._run(*rows, narrow, *loading, self._print_size)
        self._note_size(sizes.sizes)

    def _wide_term(self, sp: Any, fields: Sequence[Any]) -> list[Any]:
        """What makes the term of a row of many operands, and its facts."""
        number, op, attributes, *others = fields
        facts, operands = others[: len(_LOADED_FACTS)], others[len(_LOADED_FACTS) :]

        def known(i: int) -> Any:
            return egg.Call(sp, "node", [egg.Lit(sp, egg.Int(i))])

        head = [egg.Lit(sp, egg.String(op)), egg.Lit(sp, egg.Int(attributes))]
        term = egg.Call(sp, constructor(len(operands)), [*head, *map(known, operands)])
        made = [egg.Set(sp, "node", [egg.Lit(sp, egg.Int(number))], term)]
        values = zip(_LOADED_FACTS, facts, strict=True)
        return made + [egg.Set(sp, fact, [known(number)], egg.Lit(sp, egg.Int(value))) for fact, value in values]

    def _rounds(self, without: Mapping[int, str]) -> int:
        """The most rounds of a run: fewer where rules are left out on purpose."""
        most = self.limits.rounds
        return min(most, _TIMES_LONGER * self._longest) if without and self._longest else most

    def _saturate(
        self, interner: Interner, kernels: int, answered: GuardStatistics, reports: list[Any], rounds: int
    ) -> None:
        """Run rules and answer their demands until nothing changes, within the limits; keeps egglog's reports.

        What rules ask is gathered after each step and not in its iterations, most of which would find nothing new to ask.
        """
        started, memory = time.monotonic(), _memory()
        before = size = self._size.nodes
        self._sources = (RULES,)
        answers: list[Any] = []
        for number in range(1, rounds + 1):
            wide = self.wide
            # What grows fast is watched closely: memory could be gone before the next look.
            steps = 1 if size > _CALM_GROWTH * before else ITERATIONS_A_STEP
            report, questions, rows = self._round(steps, answers)
            reports += report, questions
            if self.watched:
                answered.note_time(report)
                answered.note_time(questions)
            if _memory() - memory > self.limits.memory:
                raise _Ended(f"took more than {self.limits.memory / (1 << 20):.0f} MiB of memory")
            # A step that changes nothing is the last.
            settled = not report.updated or len(report.iterations) < steps * len(self._sets(wide))
            asked = [k for k in self.demand_sizes if rows[demand_table(k)] > answered.demands.get(k, 0)]
            tables = self.graph.freeze().functions if asked or self._widths else {}
            answers = self._rows(self._answer(asked, tables, interner, answered))
            new = bool(answers)
            self.wide = [k for k in self._widths if any(not row.subsumed for row in tables[constructor(k)].rows)]
            before, size = size, self._size.nodes
            if settled and not new and set(self.wide).issubset(wide):
                if not self._awaits or WAITING in self._sources:
                    self._longest = max(self._longest, number)
                    return
                self._sources = (RULES, WAITING)
            if time.monotonic() - started > self.limits.seconds:
                raise _Ended(f"took more than {self.limits.seconds:.0f} s", slow=True)
            if size > self.limits.nodes_per_kernel * kernels:
                raise _Ended(f"made more than {self.limits.nodes_per_kernel} nodes per kernel")
        raise _Ended(f"did not settle within {rounds} rounds")

    def _round(self, steps: int, answers: Sequence[Any]) -> tuple[Any, Any, Mapping[str, int]]:
        """Add answers, run rules so many times, and those that ask once, in one call: egglog's reports of both, and how many
        rows each table has then."""
        *_, rules, asking, sizes = self._run(*answers, self._runs("", steps), self._runs(ASKING, 1), self._print_size)
        self._note_size(sizes.sizes)
        return rules.report, asking.report, dict(sizes.sizes)

    def _runs(self, kind: str, count: int) -> Any:
        """Run all rules of a kind that can match so many times."""
        sp = self.encodings.spans(NOWHERE)
        runs = [egg.Run(sp, egg.RunConfig(self.declared.running(f"{s}{kind}"))) for s in self._sets(self.wide)]
        return egg.RunSchedule(egg.Repeat(sp, count, egg.Sequence(sp, runs)))

    def _sets(self, wide: Sequence[int]) -> list[str]:
        """The rulesets for where there are terms of some large numbers of operands."""
        return [name for rules in self._sources for name in (rules, *(for_arity(rules, k) for k in wide))]

    @property
    def _print_size(self) -> Any:
        """What has egglog tell the sizes of all tables."""
        return egg.PrintSize(self.encodings.spans(NOWHERE), None)

    def _note_size(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Note how much there is that earlier runs did not leave."""
        size = _Size.of(sizes)
        self._size = _Size(size.nodes - self._left.nodes, size.rows - self._left.rows)

    def _exhausted(
        self, ended: _Ended, graph: EGraphSnapshot | None, reports: Sequence[Any], batch: _Batch
    ) -> GenrwError:
        """The diagnostic for a limit that was reached; the e-graph is kept for the author to look at."""
        work = Work.of(reports, self.rules, graph)
        ranked = work.slowest if ended.slow else work.busiest
        # The others settle on all that comes with genrw.
        suspects = sorted(ranked, key=lambda r: r.name not in self.library.foreign_rules or not work.applied[r.name])
        found = self._responsible(suspects, batch)
        rule = found or next(iter(suspects), None)
        message = f"stage `{self.stage}` {ended.why}"
        if rule is not None:
            how = "without it the stage settles" if found else f"it {'took longest' if ended.slow else 'made most'}"
            message += f"; rule `{rule.name}` is responsible: {how}"
        kept = None
        if graph is not None:
            kept = keep(graph_text(graph, batch.modules, self.library, [message, *work.told]), self.stage)
        remedy = "give the rule a guard, or make it simplify in one direction"
        if kept is not None:
            remedy += f"; the e-graph is in {kept}"
        return error(message, rule.name_span if rule is not None else None, remedy)

    def _responsible(self, suspects: Sequence[RuleDecl], batch: _Batch) -> RuleDecl | None:
        """The first of the likeliest rules without which the stage settles: soon, as stages do."""
        started = time.monotonic()
        for rule in suspects[:_SUSPECTS]:
            left = _SECONDS_FOR_SUSPECTS - (time.monotonic() - started)
            limits = replace(
                self.limits,
                rounds=max(1, self.limits.rounds // _SOONER),
                nodes_per_kernel=max(1, self.limits.nodes_per_kernel // _SOONER),
                seconds=min(self.limits.seconds, left),
            )
            others = [other for other in self.rules if other is not rule]
            engine = StageEngine(self.library, self.stage, others, self.operators, limits, self.encodings)
            if left > 0 and engine.settles(batch):
                return rule
        return None

    def _answer(
        self, sizes: Sequence[int], functions: Mapping[str, Any], interner: Interner, answered: GuardStatistics
    ) -> dict[str, list[str]]:
        """The answers to all new demands of some sizes, as rows of tables. Of several that fail the first rule's is raised:
        the order of demands hangs on what the e-graph served before."""
        rows: dict[str, list[str]] = {}
        failed: list[tuple[int, str, GenrwError]] = []
        to_int = self.graph.value_to_i64
        for size in sizes:
            asked = functions[demand_table(size)].rows
            # Rows of numbers never change, and new ones come last.
            first, answered.demands[size] = answered.demands.get(size, 0), len(asked)
            for row in asked[first:]:
                number, *inputs = map(to_int, row.inputs)
                encoded = self.encoded[number]
                assert encoded.answer is not None
                began = time.perf_counter()
                try:
                    answers = encoded.answer(tuple(inputs), interner, answered.uses.setdefault(encoded.key, RuleUse()))
                except GenrwError as problem:
                    failed.append((number, str(problem), problem))
                    continue
                if self.watched:
                    answered.spend(encoded.key, time.perf_counter() - began)
                given = answered.numbers.setdefault(encoded.key, set())
                table = answer_table(encoded.inputs, encoded.outputs)
                for outputs in answers:
                    given.update(outputs)
                    line = "\t".join(map(str, (number, *inputs, *outputs))) + "\n"
                    rows.setdefault(table, []).append(line)
        if failed:
            raise min(failed, key=itemgetter(0, 1))[-1]
        return rows

    def _read(self, interner: Interner, ids: Mapping[int, int], answered: GuardStatistics) -> EGraphSnapshot:
        functions = self.graph.freeze().functions
        to_int = self.graph.value_to_i64
        read = read_terms(functions, to_int, self.graph.value_to_string, interner)
        class_number = read.numbers.__getitem__

        def known(fact: str) -> dict[int, int]:
            return {class_number(row.inputs[0]): to_int(row.output) for row in functions[fact].rows}

        class_of = {to_int(r.inputs[0]): class_number(r.output) for r in functions["node"].rows}
        why: dict[int, set[int]] = {}
        for row in functions["why"].rows:
            why.setdefault(class_number(row.inputs[0]), set()).add(to_int(row.inputs[1]))
        fired: dict[str, set[int]] = {}
        for row in functions[FIRED].rows if self.watched else ():
            rule, kernel = map(to_int, row.inputs)
            fired.setdefault(self.keys[rule], set()).add(kernel >> CONTEXT_SHIFT)
        return EGraphSnapshot(
            interner,
            read.classes,
            read.replaced,
            class_of,
            dict(ids),
            why,
            self.keys,
            self.encodings.builds,
            answered,
            fired,
            {fact: known(fact) for fact in (TYPE, *FACTS)} if self.watched else {},
            self._applied(functions, read.classes, class_number),
        )

    def _applied(
        self, functions: Mapping[str, Any], classes: Mapping[int, Sequence[ENode]], class_number: Callable[[Any], int]
    ) -> list[Application]:
        """What recorded rules did."""

        def read(sort: str, cell: Any) -> Any:
            if sort == CLASS:
                return class_number(cell)
            return self.graph.value_to_string(cell) if sort == OPERATOR else self.graph.value_to_i64(cell)

        def number_of(number: int) -> int | None:
            return next((node.number for node in classes[number] if node.number is not None), None)

        recorded = [e.recorded for e in self.encoded.values() if e.recorded is not None]
        return [a for r in recorded for a in applications(r, functions[r.table].rows, read, number_of)]


def _memory() -> int:
    """The bytes of memory that the process has now; where the system does not tell, the most that it had."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class _Folder:
    """A temporary folder that is there as long as this is."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="genrw-", dir=_memory_folder())
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


def _memory_folder() -> str | None:
    """A folder in memory for the files that carry facts into egglog; opening one on disk costs more than a stage."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _number_nodes(modules: Sequence[Module]) -> dict[int, int]:
    ids: dict[int, int] = {}
    for module in modules:
        for node in module.nodes:
            ids.setdefault(id(node), len(ids))
    return ids


def _load_numbers(sp: Any) -> Any:
    """numbers(id, n) makes the term."""
    i, n = egg.Var(sp, "i"), egg.Var(sp, "n")
    fact = egg.Fact(egg.Call(sp, "numbers", [i, n]))
    head = egg.Set(sp, "node", [i], egg.Call(sp, "Num", [n]))
    return egg.RuleCommand(egg.Rule(sp, [head], [fact], "load numbers", _LOAD))


def _number_facts(sp: Any) -> list[Any]:
    """Range and divisibility of index constants; 0 is divisible by every power of two."""
    n, e, zero = egg.Var(sp, "n"), egg.Var(sp, "e"), egg.Lit(sp, egg.Int(0))
    num = egg.Eq(sp, e, egg.Call(sp, "Num", [n]))
    exact = [egg.Set(sp, "lo", [e], n), egg.Set(sp, "hi", [e], n), egg.Set(sp, "size", [e], zero)]
    divisor = egg.Call(sp, "&", [n, egg.Call(sp, "-", [zero, n])])
    some = egg.Fact(egg.Call(sp, "!=", [n, zero]))
    none = egg.Eq(sp, n, zero)
    large = egg.Lit(sp, egg.Int(1 << 30))
    return [
        egg.RuleCommand(egg.Rule(sp, exact, [num], "range of numbers", RULES)),
        egg.RuleCommand(egg.Rule(sp, [egg.Set(sp, "pow2", [e], divisor)], [num, some], "pow2 of numbers", RULES)),
        egg.RuleCommand(egg.Rule(sp, [egg.Set(sp, "pow2", [e], large)], [num, none], "pow2 of zero", RULES)),
    ]


def _numbers_alone(sp: Any, arity: int) -> Any:
    """What is known to be a number needs no other form. The kernels of a batch share their numbers, so any form kept
    there would be found by the rules of all of them."""
    e, op, a, n = (egg.Var(sp, name) for name in ("e", "op", "a", "n"))
    operands = [op, a, *(egg.Var(sp, f"x{i}") for i in range(arity))]
    body = [
        egg.Eq(sp, e, egg.Call(sp, constructor(arity), operands)),
        egg.Eq(sp, e, egg.Call(sp, "Num", [n])),
    ]
    head = [egg.Change(sp, egg.Subsume(), constructor(arity), operands)]
    return egg.RuleCommand(egg.Rule(sp, head, body, f"numbers stand alone {arity}", for_arity(RULES, arity)))


def _either_order(sp: Any) -> Any:
    """Terms of a commutative operator that differ in the order of operands only are equal. Rules make both orders, each
    from another match; taken for two values, they would double with each operator above them."""
    first, second, op, a, x, y, number = (egg.Var(sp, name) for name in ("e", "f", "op", "a", "x", "y", "n"))
    body = [
        egg.Eq(sp, first, egg.Call(sp, constructor(2), [op, a, x, y])),
        egg.Eq(sp, second, egg.Call(sp, constructor(2), [op, a, y, x])),
        egg.Fact(egg.Call(sp, "member", [egg.Lit(sp, egg.String(_COMMUTATIVE)), op, number])),
    ]
    return egg.RuleCommand(egg.Rule(sp, [egg.Union(sp, first, second)], body, "either order", RULES))


def _one_operand(sp: Any) -> Any:
    """Operands of which an injective operator makes the same are equal. What rules move past it in each form of a value
    would stay apart, and there would be twice as many with each operator that has two forms."""
    term, op, a, x, y, number = (egg.Var(sp, name) for name in ("e", "op", "a", "x", "y", "n"))
    body = [
        egg.Eq(sp, term, egg.Call(sp, constructor(1), [op, a, x])),
        egg.Eq(sp, term, egg.Call(sp, constructor(1), [op, a, y])),
        egg.Fact(egg.Call(sp, "member", [egg.Lit(sp, egg.String(_INJECTIVE)), op, number])),
    ]
    return egg.RuleCommand(egg.Rule(sp, [egg.Union(sp, x, y)], body, "one operand", RULES))


_OF_ARITY = {1: (_one_operand,), 2: (_either_order,)}
"""The rules that all stages have for terms of a number of operands, beside those for any number."""
