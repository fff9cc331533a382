"""What was measured of schedules, kept in an SQLite database that compiling asks for the best.

An entry belongs to a kernel under one set of rules, for one target, on one device: another rule, another program or
another machine asks for other entries.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import platformdirs

from genrw.engine.ir.nodes import Module
from genrw.engine.ir.structure import nameless_key
from genrw.grammar.diagnostics import error
from genrw.program import Program

_WAIT_SECONDS = 30.0
_TABLE = """
CREATE TABLE IF NOT EXISTS measured (
  kernel TEXT, device TEXT, schedule TEXT, predicted REAL, microseconds REAL, problem TEXT,
  PRIMARY KEY (kernel, device, schedule)
)"""
# On the device that is named, else on the one that measured last.
_OF_KERNEL = """
FROM measured WHERE kernel = ?
  AND device = COALESCE(?, (SELECT device FROM measured WHERE kernel = ? ORDER BY rowid DESC LIMIT 1))"""
_ALL = f"SELECT schedule, predicted, microseconds, problem {_OF_KERNEL} ORDER BY predicted, schedule"
_BEST = f"SELECT schedule {_OF_KERNEL} AND problem IS NULL ORDER BY microseconds, schedule LIMIT 1"


@dataclass(frozen=True)
class Measured:
    """A schedule of a kernel: what it was predicted to take and what it took, in microseconds; or what is wrong."""

    schedule: Mapping[str, Any]
    predicted: float
    microseconds: float | None
    problem: str | None = None


def database_path() -> Path:
    """Where measurements are kept: $GENRW_TUNED, else a file among the user's data."""
    return Path(os.environ.get("GENRW_TUNED") or Path(platformdirs.user_data_dir("genrw")) / "tuned.sqlite")


def kernel_key(module: Module, program: Program) -> str:
    """What a kernel's measurements go by: the kernel without its names, the target, and the rules that lower it."""
    options = program.options
    parts = (nameless_key(module), options.target, options.strict, options.policy, program.library.digest)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Database:
    """The measurements in a file, which several processes may share. GenrwError where it is none of ours."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as connection, connection:
                connection.execute(_TABLE)
                yield connection
        except (sqlite3.Error, OSError) as problem:
            raise error(f"{self.path}: {problem}", remedy="remove it, or name another one in GENRW_TUNED") from None

    def of(self, kernel: str, device: str | None) -> list[Measured]:
        """All that was measured of a kernel on a device; on the one that measured last where none is named."""
        with self._open() as connection:
            rows = connection.execute(_ALL, (kernel, device, kernel)).fetchall()
        return [Measured(json.loads(schedule), *rest) for schedule, *rest in rows]

    def add(self, kernel: str, device: str, measured: Measured) -> None:
        """Keep a measurement; one of the same schedule is replaced."""
        row = (kernel, device, _written(measured.schedule), measured.predicted, measured.microseconds, measured.problem)
        with self._open() as connection:
            connection.execute("INSERT OR REPLACE INTO measured VALUES (?, ?, ?, ?, ?, ?)", row)

    def best(self, kernel: str, device: str | None) -> Mapping[str, Any] | None:
        """The schedule that took least, of those that gave right results."""
        with self._open() as connection:
            found = connection.execute(_BEST, (kernel, device, kernel)).fetchone()
        return json.loads(found[0]) if found else None

    @property
    def size(self) -> int:
        """A number that grows with every measurement."""
        with self._open() as connection:
            return int(connection.execute("SELECT COALESCE(MAX(rowid), 0) FROM measured").fetchone()[0])


def _written(schedule: Mapping[str, Any]) -> str:
    return json.dumps(dict(schedule), sort_keys=True)


@dataclass(frozen=True)
class Winners:
    """Prefers the schedules that were measured best, for the pipeline."""

    database: Database
    program: Program
    device: str | None

    @cached_property
    def key(self) -> tuple[str, str | None, int]:
        """What tells preferences apart."""
        return str(self.database.path), self.device, self.database.size

    def schedule(self, module: Module) -> Mapping[str, Any] | None:
        """The schedule to take for a kernel, if one was measured."""
        return self.database.best(kernel_key(module, self.program), self.device)


def of_schedule(measured: Iterable[Measured], schedule: Mapping[str, Any]) -> Measured | None:
    """What was measured of a schedule, if it was."""
    return next((m for m in measured if m.schedule == schedule), None)


def all_measured(module: Module, program: Program) -> list[Measured]:
    """What was measured of a kernel's schedules, on the device that measured last."""
    database = _written_before()
    return database.of(kernel_key(module, program), None) if database is not None else []


def with_winners(program: Program, device: str | None = None) -> Program:
    """The program with what was measured best, on a device or wherever; as it is where nothing was measured."""
    database = _written_before()
    if database is None:
        return program
    return replace(program, options=replace(program.options, preferences=Winners(database, program, device)))


def _written_before() -> Database | None:
    """The measurements, if there were any on this machine: asking makes no file."""
    path = database_path()
    return Database(path) if path.is_file() else None
