"""Failing programs made smaller: results, instructions, layouts, names and lengths left out while the fault stays."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from random_programs import Line, RandomProgram, parameter
from random_trials import Fault, Trial

from genrw.engine.ir.types import Type
from genrw.grammar.diagnostics import GenrwError

Try = Callable[[Trial], Fault | None]
"""What is wrong with a trial."""

_NAMES = re.compile(r"`[^`]*`|'[^']*'|\d+")


@dataclass(frozen=True)
class Text:
    """A program that is a text alone."""

    text: str


def signature(fault: Fault) -> str:
    """What faults of one cause have in common: their kind, and the first line of what is said, without names."""
    if fault.kind.startswith("wrong"):
        return fault.kind
    lines = [line for line in fault.text.splitlines() if "error" in line] or [fault.text]
    said = lines[1] if fault.kind.startswith("does not compile") and len(lines) > 1 else lines[0]
    return f"{fault.kind}: {_NAMES.sub('_', said.split('error:')[-1]).strip()}"


def shrunk(trial: Trial, fault: Fault, first_fault: Try, seconds: float) -> tuple[Trial, Fault]:
    """The smallest trial with a fault of the same signature that is found in so many seconds of a processor."""
    until, wanted = _spent() + seconds, signature(fault)
    smaller: Iterator[Trial] = iter(_smaller(trial))
    while _spent() < until:
        candidate = next(smaller, None)
        if candidate is None:
            break
        try:
            found = first_fault(candidate)
        except GenrwError:
            continue
        if found is not None and signature(found) == wanted:
            trial, fault = replace(candidate, schedule=found.schedule), found
            smaller = iter(_smaller(trial))
    return trial, fault


def _spent() -> float:
    """Seconds that a processor has worked for this process and the compilers that it called."""
    return sum(os.times()[:4])


def _smaller(trial: Trial) -> Iterator[Trial]:
    """Trials that are a step simpler, the largest steps first."""
    program = trial.program
    if isinstance(program, RandomProgram):
        yield from (replace(trial, program=p) for p in _smaller_programs(program))
    plain = {"schedule": None, "forced": False, "strict": False, "plan": "search", "special": False}
    yield from (replace(trial, **{k: v}) for k, v in plain.items() if getattr(trial, k) != v)  # type: ignore[arg-type]
    yield from (replace(trial, program=Text(text)) for text in _shorter(program.text))  # type: ignore[arg-type]


def _smaller_programs(program: RandomProgram) -> Iterator[RandomProgram]:
    for result in dict.fromkeys(program.results):
        if len(program.results) > 1:
            yield replace(program, results=(result,)).needed()
    for i in range(len(program.results)):
        if len(program.results) > 2:
            yield replace(program, results=program.results[:i] + program.results[i + 1 :]).needed()
    if program.cut is not None:
        yield replace(program, cut=None)
    if program.name:
        yield replace(program, name="")
    for i, line in reversed([*enumerate(program.lines)]):
        if line.operands is not None:
            yield from _without(program, i, line)
    for i, line in enumerate(program.lines):
        if line.operands is None and (line.type.strides is not None or not line.is_parameter):
            yield _with_line(program, i, parameter(line.name, replace(line.type, strides=None)))
    yield from _renamed(program)


def _without(program: RandomProgram, place: int, line: Line) -> Iterator[RandomProgram]:
    """The program with a parameter in place of a value, or one of the value's own operands; a result may be of another type."""
    yield _with_line(program, place, parameter(line.name, line.type)).needed()
    types = {v.name: v.type for v in program.lines}
    for operand in dict.fromkeys(line.operands or ()):
        results = tuple(operand if r == line.name else r for r in program.results)
        if operand in types and line.name in program.results:
            yield replace(program, results=tuple(dict.fromkeys(results))).needed()
        if operand in types and _alike(types[operand], line.type):
            lines = [_using(v, line.name, operand) for v in program.lines]
            yield replace(program, lines=tuple(lines), results=results).needed()


def _alike(a: Type, b: Type) -> bool:
    return (a.dtype, a.lens) == (b.dtype, b.lens)


def _using(line: Line, old: str, new: str) -> Line:
    if line.operands is None or old not in line.operands:
        return line
    return replace(line, operands=tuple(new if o == old else o for o in line.operands))


def _with_line(program: RandomProgram, place: int, line: Line) -> RandomProgram:
    return replace(program, lines=(*program.lines[:place], line, *program.lines[place + 1 :]))


def _renamed(program: RandomProgram) -> Iterator[RandomProgram]:
    """The program with plain names, where it has others."""
    names = {line.name: f"v{i}" for i, line in enumerate(program.lines)}

    def renamed(line: Line) -> Line:
        new = names[line.name]
        if line.is_parameter:
            return parameter(new, line.type)
        operands = None if line.operands is None else tuple(names.get(o, o) for o in line.operands)
        return replace(line, name=new, operands=operands)

    plain = replace(program, lines=tuple(map(renamed, program.lines)), results=tuple(names[r] for r in program.results))
    if plain.text != program.text:
        yield plain


def _shorter(text: str) -> Iterator[str]:
    """The text with a number, wherever it stands between brackets, made smaller."""
    inside = re.findall(r"\{([^{}]*)\}", text)
    numbers = sorted({int(n) for part in inside for n in re.findall(r"(?<![\w.])\d+(?![\w.])", part)}, reverse=True)
    for n in numbers:
        for m in dict.fromkeys((1, 2, 3, n // 2, n - 1)):
            if 0 < m < n:
                yield re.sub(rf"(?<![\w.:@]){n}(?![\w.])", str(m), text)
