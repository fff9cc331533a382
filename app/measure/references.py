"""Inputs of cases, and whether results are right, worked out by other processes while a device measures.

Large arrays take the CPU many seconds to draw and to evaluate in double, a GPU microseconds to run on. So processes draw
inputs ahead, and compare results behind what is measured. Arrays go through files in memory.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from genrw.api import load
from genrw.codegen.runtime.array_layout import Array
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.engine.ir.nodes import Node
from genrw.measure.cases import BenchCase
from genrw.processes import deaf_to_interrupts, ready_to_end
from genrw.program import Program
from genrw.reference import Reference

_Result = TypeVar("_Result")

_FEW_CASES = 8
"""Up to so many cases, starting processes takes longer than they save."""
_MOST_PROCESSES = 8
_MEMORY, _ROOM = Path("/dev/shm"), 8 << 30
"""Where files lie in memory, and the bytes that have to be free there."""


class References:
    """Inputs and verdicts for cases, drawn and given in the order of the cases."""

    def __init__(self, cases: Sequence[BenchCase], seed: int = 0) -> None:
        self.cases, self.seed = cases, seed
        self.folder = tempfile.TemporaryDirectory(dir=_MEMORY if _has_room() else None)
        self.processes = min(_MOST_PROCESSES, max(1, (os.cpu_count() or 1) - 2)) if len(cases) > _FEW_CASES else 0
        self.pool: Executor = _pool(self.processes)
        self.drawn: dict[int, Future[None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        self.pool.shutdown(cancel_futures=True)
        self.folder.cleanup()

    def inputs(self, number: int, program: Program) -> dict[str, Array]:
        """The inputs of a case by its number; those of the next ones are drawn meanwhile."""
        for n in range(number, min(number + 1 + self.processes, len(self.cases))):
            if n not in self.drawn:
                self.drawn[n] = self._submit(_draw, self.cases[n].source.text, self._place(n), self.seed)
        self.drawn[number].result()
        return {name: _read(self._place(number) / name, node) for name, node in program.inputs.items()}

    def verdict(self, number: int, results: Mapping[str, Array]) -> Future[str | None]:
        """What is wrong with the results of a case whose inputs were asked for; None if they are right."""
        for name, array in results.items():
            _write(self._place(number) / _result(name), array)
        return self._submit(_judge, self.cases[number].source.text, self._place(number))

    def drop(self, number: int) -> None:
        """Forget a case's files."""
        for path in self._place(number).glob("*"):
            path.unlink(missing_ok=True)

    def _submit(self, function: Callable[..., _Result], *arguments: object) -> Future[_Result]:
        with deaf_to_interrupts():  # the pool starts a process where all others are at work
            return self.pool.submit(function, *arguments)

    def _place(self, number: int) -> Path:
        return Path(self.folder.name) / str(number)


def _pool(processes: int) -> Executor:
    if not processes:
        return _AtOnce()
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=ready_to_end)


def _has_room() -> bool:
    return _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM


class _AtOnce(Executor):
    """What is submitted is done."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as problem:  # as an executor hands it on
            future.set_exception(problem)
        return future


# ---- in the other processes


def _draw(text: str, place: Path, seed: int) -> None:
    """Write a program's inputs into a folder."""
    program = load(text)
    place.mkdir(exist_ok=True)
    for name, array in random_inputs(program.origin[0], program.library, seed).items():
        _write(place / name, array)


def _judge(text: str, place: Path) -> str | None:
    """What is wrong with results that lie in a folder with their inputs."""
    program = load(text)
    inputs = {name: _read(place / name, node) for name, node in program.inputs.items()}
    results = {name: _read(place / _result(name), node) for name, node in program.results.items()}
    return Reference(program, inputs).first_problem(results)


# ---- files


def _result(name: str) -> str:
    """The file of a result, which may be called as an input is."""
    return f"{name}.result"


def _write(path: Path, array: Array) -> None:
    array.tofile(path)


def _read(path: Path, node: Node) -> Array:
    """The array in a file, which is not read until it is looked at."""
    lens, dtype = node.type.lens, numpy_dtype(node.type.dtype)
    if 0 in lens:
        return np.empty(lens, dtype)
    return np.memmap(path, dtype, mode="r", shape=lens or (1,)).reshape(lens)
