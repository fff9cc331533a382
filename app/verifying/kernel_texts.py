"""Do the `emit` texts of operators that rules make in kernels compute what these mean? Small kernels of these rules are run as they are
printed, and as their operators mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.codegen.runtime.isolated import run_apart
from genrw.engine.ir.nodes import Module, Unit
from genrw.engine.language.arrays import Values
from genrw.engine.library.library import Library
from genrw.engine.library.variants import nodes
from genrw.engine.lowering.options import Options
from genrw.engine.verify.kernels import KernelTrial
from genrw.engine.verify.probes import with_probes
from genrw.engine.verify.report import wrong_kernel_text
from genrw.engine.verify.verdict import REFUTED, TRIED, Verdict
from genrw.engine.verify.verdict import Options as Trials
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import OpDecl, RuleDecl
from genrw.grammar.source import Source
from genrw.program import Program
from genrw.verifying.operator_texts import not_tried

_KERNELS = 2
"""A rule is tried in so many kernels at first: each is compiled by itself."""


def is_made_in_kernels(library: Library, op: OpDecl) -> bool:
    """Is it an operator of somebody's own that rules make, and that has a meaning and a text of its own?"""
    own = op.name in library.foreign and op.emit is not None and op.means is not None
    return own and any(True for _ in _makers(library, op))


def verify_in_kernels(library: Library, op: OpDecl, options: Trials, seconds: float, *, trusted: bool) -> Verdict:
    """Look at one operator: are kernels that rules make of it right as they are printed?"""
    try:
        return _verdict(with_probes(library), op, options, seconds, trusted=trusted)
    except GenrwError as problem:
        return not_tried(op, problem)


def _verdict(library: Library, op: OpDecl, options: Trials, seconds: float, *, trusted: bool) -> Verdict:
    verdict = Verdict(op, TRIED)
    for rule in _makers(library, op):
        for stage in (s for s in rule.stages if s in library.stages):
            printed = _Printed(library, op, seconds, trusted=trusted)
            trial = KernelTrial(library, rule, stage, options.waves, options.suspects, options.seed, printed)
            wrong = trial.run(_KERNELS, f"{options.seed}/{op.name}").failure
            verdict.instances += printed.count
            if wrong is not None and printed.is_last(wrong.after):
                verdict.status, verdict.shown = REFUTED, wrong_kernel_text(wrong, library)
                message = f"the text of `{op.name}` is not what the operator means: as it is printed, {wrong.reason}"
                verdict.problem = Diagnostic(message, op.name_span, "mend the text, or what it means")
                return verdict
    if not verdict.instances:
        verdict.leave_open(
            "stood in no kernel that was tried", "give the rule that makes it an example with a schedule"
        )
    return verdict


def _makers(library: Library, op: OpDecl) -> Iterator[RuleDecl]:
    """The rules that make the operator."""
    return (rule for rule in library.rules if any(node.op == op.name for node in nodes(rule.right)))


class _Printed:
    """Runs kernels that hold an operator as they are printed."""

    def __init__(self, library: Library, op: OpDecl, seconds: float, *, trusted: bool) -> None:
        self.library, self.op, self.seconds, self.trusted = library, op, seconds, trusted
        self.count = 0
        self._last: Module | None = None

    def __call__(self, module: Module, options: Options, inputs: Mapping[str, Values]) -> Sequence[Values] | None:
        holds = any(self.library.operator(node.op).decl is self.op for node in module.nodes)
        if not holds or any(stride < 0 for p in module.parameters for stride in p.type.layout):
            return None  # no program has parameters that lie backwards
        self.count, self._last = self.count + 1, module
        units = (Unit((module,)),)
        program = Program(units, self.library, options, Source(f"<{self.op.name}>", ""), units, trusted=self.trusted)
        sequence = HostSequence(HostProgram.compile_all(program.kernels()), program)
        return [*run_apart(sequence, inputs, self.seconds)[0].values()]

    def is_last(self, module: Module) -> bool:
        """Was a kernel the last one that was run? Else it was wrong by what its operators mean."""
        return module is self._last
