"""`genrw rules verify`: do rules, monoids, functions and texts of operators hold? Each is looked at in a process of its own, within limits of time and memory."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from genrw.authoring.rulesets import load_library, own_declarations
from genrw.engine.library.library import Library
from genrw.engine.verify.surroundings import WAVES
from genrw.engine.verify.verdict import BOUNDED, OPEN, PROVEN, REFUTED, TRIED, Options, Subject, Verdict, verify
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.rw_tree import MonoidDecl, OpDecl, RuleDecl
from genrw.processes import deaf_to_interrupts, ready_to_end
from genrw.terminal import progress, write, write_diagnostics
from genrw.verifying.kernel_texts import is_made_in_kernels, verify_in_kernels
from genrw.verifying.operator_texts import has_text, verify_text

_MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Request:
    """What to verify and how: rules, monoids and operators by name, folders of rules, limits for each rule in seconds and megabytes;
    whether the C++ of these folders is `trusted`."""

    names: tuple[str, ...] = ()
    folders: tuple[str | Path, ...] = ()
    shipped: bool = True
    options: Options = field(default_factory=Options)
    seconds: float = 120.0
    megabytes: int = 2048
    as_json: bool = False
    trusted: bool = False


def verify_rules(request: Request) -> int:
    """Verify rules, monoids and operators and print what was found; 1 if one is refuted or left open. GenrwError for bad files or
    names."""
    library = load_library(request.folders, shipped=request.shipped)
    _check_waves(library, request.options.waves)
    rules = chosen(library, request)
    if request.folders:
        request = replace(request, options=replace(request.options, suspects=_unknown(library)))
    with progress("rules", len(rules)) as step:
        verdicts = []
        for verdict in verdicts_of(rules, request):
            verdicts.append(verdict)
            step()
    order = {_key(rule): place for place, rule in enumerate(rules)}
    verdicts.sort(key=lambda v: order[_key(v.rule)])
    if request.as_json:
        write(json.dumps([entry(v) for v in verdicts], indent=2, ensure_ascii=False))
    else:
        _tell(verdicts)
    return int(any(v.status in (REFUTED, OPEN) for v in verdicts))


def _check_waves(library: Library, waves: Sequence[int]) -> None:
    """Kernels are lowered for the targets of the rules, which have waves of certain lengths."""
    known = sorted({t.values["wave_size"] for t in library.targets.values() if "wave_size" in t.values})
    for wave in waves:
        if wave not in known and wave not in WAVES:
            raise error(f"no target has waves of {wave}", remedy=f"targets have waves of {', '.join(map(str, known))}")


def chosen(library: Library, request: Request) -> list[Subject]:
    """The rules, monoids and operators by name; without names those of the folders, and without folders all."""
    known = _subjects(library)
    unknown = [name for name in request.names if not any(name == subject.name for subject in known)]
    if unknown:
        raise error(f"there is no rule `{unknown[0]}`", remedy="`genrw rules list` shows all")
    if request.names:
        return [subject for name in request.names for subject in known if subject.name == name]
    if not request.folders:
        return known
    return _of_folders(library)


def _of_folders(library: Library) -> list[Subject]:
    """What is not shipped."""
    # A rule of a library may be one that was made of what is declared: of a term, of the definition of an operator.
    files = {declaration.span.source.name for declaration in own_declarations(library)}
    return [s for s in _subjects(library) if s.span.source.name in files]


def _unknown(library: Library) -> frozenset[str]:
    """The names of rules that are not shipped."""
    return frozenset(s.name for s in _of_folders(library) if isinstance(s, RuleDecl))


def _subjects(library: Library) -> list[Subject]:
    """All that can be verified: of operators, those that have functions or texts."""
    operators = [op.decl for op in library.operators.values()]
    tried = [op for op in operators if op.functions or has_text(op) or is_made_in_kernels(library, op)]
    return [*library.rules, *library.monoids.values(), *tried]


def _key(subject: Subject) -> tuple[str, str]:
    """What tells subjects apart: a rule and a monoid may have one name."""
    return _kind(subject), subject.name


def _kind(subject: Subject) -> str:
    return "monoid" if isinstance(subject, MonoidDecl) else "operator" if isinstance(subject, OpDecl) else "rule"


# ---- processes


@dataclass
class _Worker:
    """A process that looks at one rule after another, and the rule that it is looking at."""

    process: Any
    pipe: Connection
    rule: Subject | None = None
    until: float = 0.0


def verdicts_of(rules: Sequence[Subject], request: Request) -> Iterator[Verdict]:
    """The verdicts on subjects as they come, from as many processes as there are processors."""
    waiting = list(reversed(rules))
    workers = [_begun(request) for _ in range(min(len(rules), os.cpu_count() or 1))]
    try:
        while True:
            for worker in workers:
                if worker.rule is None and waiting:
                    _give(worker, waiting.pop(), request)
            busy = [worker for worker in workers if worker.rule is not None]
            if not busy:
                return
            wait([w.pipe for w in busy], timeout=max(0.0, min(w.until for w in busy) - time.monotonic()))
            for worker in busy:
                verdict = _told(worker, request)
                if verdict is not None:
                    worker.rule = None
                    yield verdict
                    if not worker.process.is_alive() and waiting:
                        workers[workers.index(worker)] = _begun(request)
    finally:
        for worker in workers:
            worker.process.kill()


def _begun(request: Request) -> _Worker:
    """A new process. It shares nothing with this one: a copy would not have the threads that the e-graph works with."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(request, theirs), daemon=True)
    with deaf_to_interrupts():
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _give(worker: _Worker, rule: Subject, request: Request) -> None:
    worker.rule, worker.until = rule, time.monotonic() + request.seconds
    worker.pipe.send(_key(rule))


def _told(worker: _Worker, request: Request) -> Verdict | None:
    """The verdict of a process, or that its time is over; None if it is at work."""
    rule = worker.rule
    assert rule is not None
    if worker.pipe.poll():
        try:
            verdict: Verdict = worker.pipe.recv()
        except EOFError:
            worker.process.join()
            return _open(rule, "ended the process that looked at it", "this is a fault of genrw or of the rule")
        verdict.rule = rule
        return verdict
    if time.monotonic() < worker.until:
        return None
    worker.process.kill()
    worker.process.join()
    said = f"took more than {request.seconds:g} s"
    return _open(rule, said, "make the rule's examples smaller, or allow more with `--seconds`")


def _work(request: Request, pipe: Connection) -> None:
    """What a process does: look at the rules that it is told, and send a verdict on each."""
    ready_to_end()
    library = load_library(request.folders, shipped=request.shipped)
    rules = {_key(subject): subject for subject in _subjects(library)}
    _limit_memory(request.megabytes)
    while True:
        try:
            rule = rules[pipe.recv()]
        except EOFError:
            return
        pipe.send(_looked_at(library, rule, request))


def _looked_at(library: Library, rule: Subject, request: Request) -> Verdict:
    try:
        if isinstance(rule, OpDecl) and rule.emit is not None:
            look = verify_text if has_text(rule) else verify_in_kernels
            return look(library, rule, request.options, request.seconds, trusted=request.trusted)
        return verify(library, rule, request.options)
    except MemoryError:
        return _open(
            rule, f"takes more than {request.megabytes} MB", "guard it by sizes, or allow more with `--memory`"
        )
    except GenrwError as problem:
        return Verdict(rule, OPEN, problem=problem.diagnostics[0])
    except RecursionError:
        return _open(rule, "is nested too deeply", "split its expressions into `let` functions")
    except Exception as problem:
        said = f"ended in an error: {type(problem).__name__}: {problem}"
        return _open(rule, said, "this is a fault of genrw: please report it with the rule")


def _limit_memory(megabytes: int) -> None:
    """Let the process take so much more memory than it has; where the system knows no such limit, any."""
    try:
        import resource
    except ImportError:
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    limit = pages * os.sysconf("SC_PAGE_SIZE") + megabytes * _MEGABYTE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _open(rule: Subject, said: str, remedy: str) -> Verdict:
    return Verdict(rule, OPEN, problem=Diagnostic(f"verifying `{rule.name}` {said}", rule.name_span, remedy))


# ---- what is told


def _place(verdict: Verdict) -> str:
    """The file and the line of what was verified."""
    span = verdict.rule.name_span
    return f"{span.source.name}:{span.line}"


def _tell(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        if verdict.problem is not None:
            write_diagnostics([verdict.problem])
            write(verdict.shown)
    for verdict in verdicts:
        if verdict.note and verdict.status in (PROVEN, BOUNDED):
            write(f"{_place(verdict)}: {verdict.rule.name} is {verdict.status}: {verdict.note}")
    for verdict in verdicts:
        for found in verdict.strong:
            write(f"{found.span}: `{found.span.text if found.span else ''}` of {verdict.rule.name}: {found.message}")
    for verdict in verdicts:
        for missed in verdict.missed:
            write(f"{_place(verdict)}: {verdict.rule.name} was not exercised: {missed}")
    write(summary(verdicts))


def summary(verdicts: Sequence[Verdict]) -> str:
    """How the rules ended, in one line."""
    counts = {status: sum(v.status == status for v in verdicts) for status in (PROVEN, BOUNDED, TRIED, REFUTED, OPEN)}
    instances = sum(v.instances for v in verdicts)
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    kinds = [_kind(v.rule) for v in verdicts]
    subjects = [(kinds.count(word), word) for word in ("rule", "monoid", "operator")]
    rules = ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in subjects if n) or "0 rules"
    return f"{rules}: {told or 'none'}; {instances} instances compared"


def entry(verdict: Verdict) -> dict[str, Any]:
    """A verdict for other tools."""
    span, problem = verdict.rule.name_span, verdict.problem
    return {
        "kind": _kind(verdict.rule),
        "rule": verdict.rule.name,
        "file": span.source.name,
        "line": span.line,
        "status": verdict.status,
        "instances": verdict.instances,
        "message": problem.message if problem is not None else None,
        "help": problem.remedy if problem is not None else None,
        "shown": verdict.shown,
        "note": verdict.note,
        "not_exercised": verdict.missed,
        "needlessly_strong": [
            {"line": f.span.line, "condition": f.span.text, "message": f.message} for f in verdict.strong if f.span
        ],
    }
