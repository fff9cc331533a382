"""What is known of a rule after it was looked at: proven, tried out, or refuted, and what its guard is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from genrw.engine.fusion.compute_locations import is_of_places
from genrw.engine.library.library import Library
from genrw.engine.verify.elements import WrongElement
from genrw.engine.verify.functions import try_functions
from genrw.engine.verify.kernels import KernelTrial
from genrw.engine.verify.monoids import try_monoid
from genrw.engine.verify.places import try_places
from genrw.engine.verify.probes import with_probes
from genrw.engine.verify.proof import prove, solver_is_there
from genrw.engine.verify.report import failure_text, wrong_kernel_text
from genrw.engine.verify.smallest import smallest
from genrw.engine.verify.surroundings import WAVES
from genrw.engine.verify.trial import RuleTrial, Tried, has_meaning
from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.rw_tree import MonoidDecl, OpDecl, RuleDecl

PROVEN, BOUNDED, TRIED, REFUTED, OPEN = "proven", "bounded", "tried", "refuted", "open"
"""How a rule ends: proven for all values; for all of 8 bits and random ones of 32; right on all random instances; wrong;
nothing could be said, which is never a pass."""
_KERNELS = 16
"""A whole kernel is tried for so many instances."""
_SURE = 20
"""How many instances outside of the guard have to hold for it to be called needlessly strong."""


@dataclass(frozen=True)
class Options:
    """How hard to try: instances of each rule, the seed of all random choices, the lengths of waves. Of `suspects`, rules
    by name, nothing is known yet."""

    count: int = 50
    seed: int = 0
    waves: Sequence[int] = WAVES
    suspects: frozenset[str] = frozenset()


Subject = RuleDecl | MonoidDecl | OpDecl
"""What a verdict is on."""


@dataclass
class Verdict:
    """How one rule, monoid or operator ended. `instances` were compared; `strong` are conditions of the guard that seem not to be
    needed, `missed` the kinds of kernels in which the rule was not exercised."""

    rule: Subject
    status: str
    instances: int = 0
    problem: Diagnostic | None = None
    shown: str = ""
    note: str = ""
    strong: list[Diagnostic] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def refute(self, why: str, shown: str) -> None:
        """The rule is wrong: why, and what shows it."""
        self.status, self.shown = REFUTED, shown
        remedy = _remedy(self.rule) if isinstance(self.rule, RuleDecl) else None
        self.problem = Diagnostic(f"`{self.rule.name}` does not hold{why}", self.rule.name_span, remedy)

    def leave_open(self, said: str, remedy: str) -> None:
        """Nothing could be said of the rule."""
        self.status = OPEN
        self.problem = Diagnostic(f"`{self.rule.name}` {said}", self.rule.name_span, remedy)


def verify(library: Library, subject: Subject, options: Options) -> Verdict:
    """Look at one rule, monoid or operator. The same one, library and options give the same verdict."""
    if isinstance(subject, MonoidDecl):
        return verify_monoid(library, subject, options)
    if isinstance(subject, OpDecl):
        return verify_functions(library, subject, options)
    return verify_rule(library, subject, options)


def verify_monoid(library: Library, monoid: MonoidDecl, options: Options) -> Verdict:
    """Look at one monoid: is its identity neutral, may it be combined in any order, do its types hold its values?"""
    compared, wrong = try_monoid(library, monoid, options.count, f"{options.seed}/{monoid.name}")
    verdict = Verdict(monoid, TRIED, compared)
    if wrong is not None:
        verdict.status, verdict.shown = REFUTED, wrong.shown
        verdict.problem = Diagnostic(f"the monoid `{monoid.name}` is wrong: {wrong.reason}", wrong.span, wrong.remedy)
    return verdict


def verify_functions(library: Library, op: OpDecl, options: Options) -> Verdict:
    """Look at one operator: do its functions compute what it means, as near as it says?"""
    tried = try_functions(library, op, options.count, f"{options.seed}/{op.name}")
    return of_elements(op, "function", *tried, "mend the term, or say how near it is: `within …`")


def of_elements(op: OpDecl, what: str, compared: int, wrong: WrongElement | None, remedy: str) -> Verdict:
    """What elements say of an operator's function or text."""
    verdict = Verdict(op, TRIED, compared)
    if wrong is not None:
        verdict.status, verdict.shown = REFUTED, wrong.shown
        message = f"the {what} of `{op.name}` is not what the operator means: {wrong.reason}"
        verdict.problem = Diagnostic(message, op.name_span, remedy)
    elif not compared:
        verdict.leave_open("was not compared on any number", "give its attributes defaults")
    return verdict


def verify_rule(library: Library, rule: RuleDecl, options: Options) -> Verdict:
    """Look at one rule. The same rule, library and options give the same verdict."""
    library = with_probes(library)
    if not has_meaning(library, rule):
        if is_of_places(rule, library):
            return of_places(library, rule, options)
        return of_kernels(library, rule, options)
    verdict = tried_out(library, rule, options)
    if verdict.status == TRIED and solver_is_there():
        _prove(library, rule, verdict)
    return verdict


def _prove(library: Library, rule: RuleDecl, verdict: Verdict) -> None:
    """Say of a rule over indices, that was right on all instances, whether it is right for all integers."""
    proof = prove(library, rule)
    if proof is None:
        return
    if proof.status == "refuted":
        shown = ", ".join(f"{name} = {value}" for name, value in proof.model.items())
        verdict.refute(f" for all integers{': ' + proof.note if proof.note else ''}", f"with:\n  {shown}")
    else:
        verdict.status, verdict.note = (PROVEN if proof.status == "proven" else BOUNDED), proof.note


def of_kernels(library: Library, rule: RuleDecl, options: Options) -> Verdict:
    """Try a rule in whole kernels, at each of its stages."""
    verdict = Verdict(rule, TRIED)
    for stage in (s for s in rule.stages if s in library.stages):
        trial = KernelTrial(library, rule, stage, options.waves, options.suspects, options.seed)
        tried = trial.run(max(1, options.count // _KERNELS), f"{options.seed}/{rule.name}")
        verdict.instances += tried.compared
        verdict.missed += tried.missed
        if tried.refused is not None:
            verdict.status, verdict.problem = REFUTED, tried.refused
            return verdict
        if tried.failure is not None:
            wrong = tried.failure
            shown = wrong_kernel_text(wrong, library)
            if wrong.others:
                named = ", ".join(f"`{name}`" for name in wrong.others)
                said = f"took part in a kernel that is wrong, and so did {named}: {wrong.reason}"
                verdict.leave_open(said, "mend first what is refuted alone, or verify with one of them left out")
                verdict.shown = shown
            else:
                verdict.refute(f": {wrong.reason}", shown)
            return verdict
    if not verdict.instances:
        verdict.leave_open("took part in no kernel that was tried", "give it an example with a schedule and a space")
    return verdict


def of_places(library: Library, rule: RuleDecl, options: Options) -> Verdict:
    """Ask of a rule about places whether what it leaves to a place is all that it needs there."""
    compared, wrong = try_places(library, rule, options.count, f"{options.seed}/{rule.name}")
    verdict = Verdict(rule, TRIED, compared)
    if wrong is not None:
        verdict.refute(f": {wrong.reason}", wrong.shown)
    elif not compared:
        verdict.leave_open("was not compared on any instance", _OPEN_REMEDY)
    return verdict


def tried_out(library: Library, rule: RuleDecl, options: Options) -> Verdict:
    """Compare the two sides of a rule on random instances."""
    trial = RuleTrial(library, rule, options.waves)
    seed = f"{options.seed}/{rule.name}"
    tried = trial.run(options.count, seed)
    strong = [] if rule.defines is not None else _too_strong(tried)
    verdict = Verdict(rule, TRIED, tried.compared, strong=strong)
    if tried.failure is not None:
        found = smallest(trial, tried.failure)
        verdict.refute(f": {found.reason}", failure_text(found, library))
    elif not tried.compared:
        said = max(tried.problems, key=lambda p: tried.problems[p], default="no random term is one that it matches")
        verdict.leave_open(f"was not compared on any instance: {said}", _OPEN_REMEDY)
    return verdict


_OPEN_REMEDY = "give it an example with short axes, or a guard that is less rare"


def _remedy(rule: RuleDecl) -> str:
    if rule.contract == "exact":
        return "guard the rule, or say by how much it may differ: `contract approximate …`"
    return "guard the rule, or weaken its contract"


def _too_strong(tried: Tried) -> list[Diagnostic]:
    """The conditions that alone kept instances out of which all held."""
    if tried.failure is not None:
        return []
    found = []
    for key, count in sorted(tried.held.items()):
        if key not in tried.needed and count >= _SURE:
            message = f"without this condition the rule held on {count} instances more"
            found.append(Diagnostic(message, tried.conditions[key].span, severity="note"))
    return found
