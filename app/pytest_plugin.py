"""A plugin for pytest: the rules that tests use, and those that they leave out.

`--rule-cov DIR` watches the programs that tests lower in their own process, lowers these once more to see what every rule
of the folder did in them, and prints what is still to be seen. `--rule-cov-fail-under` fails the run below a percentage.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from genrw.coverage.observed import Coverage, RuleRow
    from genrw.engine.library.library import Library
    from genrw.engine.lowering.program import StagedProgram

_WORKER = "genrw_rule_coverage"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("genrw", "coverage of rules")
    group.addoption(
        "--rule-cov",
        action="append",
        metavar="DIR",
        nargs="?",
        const="",
        help="tell which rules of a folder the tests leave out; without a folder, of all that tests load",
    )
    group.addoption(
        "--rule-cov-fail-under", type=float, metavar="N", help="fail if fewer than N of 100 rules are covered"
    )
    group.addoption("--rule-cov-html", type=Path, metavar="FILE", help="write a page with the rules coloured")
    group.addoption("--rule-cov-xml", type=Path, metavar="FILE", help="write Cobertura XML")
    group.addoption("--rule-cov-data", type=Path, metavar="FILE", help="keep what was seen, from run to run")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--rule-cov") is not None:
        _require_folders(config)
        config.pluginmanager.register(_Watch(config), "genrw-rule-coverage")


def _require_folders(config: pytest.Config) -> None:
    """A mistaken name ends the run before the tests."""
    from genrw.folders import require_folder
    from genrw.grammar.diagnostics import GenrwError

    try:
        for folder in _folders(config):
            require_folder(folder)
    except GenrwError as problem:
        raise pytest.UsageError(str(problem)) from None


def _folders(config: pytest.Config) -> list[Path]:
    return [Path(folder).resolve() for folder in config.getoption("--rule-cov") if folder]


class _Watch:
    """One run of tests, in its main process or in a worker."""

    def __init__(self, config: pytest.Config) -> None:
        from genrw.coverage.data import CoverageData
        from genrw.engine.lowering.program import watchers

        self.config = config
        self.programs: dict[Any, StagedProgram] = {}
        self.data = CoverageData()
        self.rows: list[RuleRow] = []
        self.problem = ""
        watchers.append(self._note)

    def _note(self, program: StagedProgram) -> None:
        """Keep a program that a test lowers, as it was loaded; one of each kind."""
        key = (id(program.library), program.options.key, id(program.origin or program.units))
        self.programs.setdefault(key, program)

    # ---- the end of the run

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        from genrw.grammar.diagnostics import GenrwError

        self._close()
        worker = getattr(self.config, "workeroutput", None)
        if worker is not None:
            self._collect()
            worker[_WORKER] = self.data.dump()
            return
        try:
            self._report()
        except GenrwError as problem:
            self.problem = str(problem)
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        limit = self.config.getoption("--rule-cov-fail-under")
        if limit is not None and self._percent() < limit and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker saw."""
        from genrw.coverage.data import CoverageData

        seen = getattr(node, "workeroutput", {}).get(_WORKER)
        if seen is not None:
            self.data.add(CoverageData.load(seen, "a worker"))

    def _close(self) -> None:
        from genrw.engine.lowering.program import watchers

        if self._note in watchers:
            watchers.remove(self._note)

    def _collect(self) -> None:
        """Lower what was noted once more, with all rules watched."""
        from genrw.coverage.data import CoverageData
        from genrw.coverage.observed import Coverage

        by_library: dict[int, list[StagedProgram]] = {}
        for program in self.programs.values():
            by_library.setdefault(id(program.library), []).append(program)
        for programs in by_library.values():
            library = programs[0].library
            coverage = Coverage(library, self._names(library))
            _add(coverage, [p.with_units(p.origin or p.units) for p in programs])
            self.data.add(CoverageData.of(coverage.rows(), coverage.library))

    # ---- the report

    def _report(self) -> None:
        """Gather the rows and write what is asked for; GenrwError for rules that cannot be read, and for such places."""
        from genrw.coverage.report import Request, write_reports

        self._collect()
        self.rows = self._all_rows()
        option = self.config.getoption
        write_reports(self.rows, Request(page=option("--rule-cov-html"), xml=option("--rule-cov-xml")))

    def _names(self, library: Library) -> frozenset[str]:
        """The rules asked about: those that a library has from the folders, or all."""
        folders = _folders(self.config)
        return frozenset(r.name for r in library.rules if not folders or _inside(r.name_span.source.name, folders))

    def _all_rows(self) -> list[RuleRow]:
        """The rows of the rules asked about, with the data of earlier runs and the rules' own examples."""
        from genrw.coverage.data import CoverageData
        from genrw.coverage.observed import Coverage

        library = self._library()
        examples = Coverage(library, self._names(library))
        examples.add_examples()
        self.data.add(CoverageData.of(examples.rows(), library))
        kept = self.config.getoption("--rule-cov-data")
        if kept is not None:
            self.data.add(CoverageData.read(kept))
            self.data.write(kept)
        return self.data.rows(examples.rules, library)

    def _library(self) -> Library:
        from genrw.authoring.rulesets import load_library

        if _folders(self.config) or not self.programs:
            return load_library(_folders(self.config))
        return max((p.library for p in self.programs.values()), key=lambda library: len(library.rules))

    def _percent(self) -> float:
        from genrw.coverage.report import percent

        return percent(self.rows)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:

        terminalreporter.section("coverage of rules")
        if self.problem:
            terminalreporter.write_line(self.problem)
            return
        gaps: Sequence[RuleRow] = [row for row in self.rows if row.gaps]
        for row in gaps:
            terminalreporter.write_line(f"{row.rule.name_span.location}: {row.direction}: {', '.join(row.gaps)}")
        covered = len(self.rows) - len(gaps)
        terminalreporter.write_line(f"{covered} of {len(self.rows)} rules are covered: {self._percent():.0f} %")
        limit = self.config.getoption("--rule-cov-fail-under")
        if limit is not None and self._percent() < limit:
            terminalreporter.write_line(f"FAIL: fewer than {limit:g} of 100 rules are covered")


def _add(coverage: Coverage, programs: Sequence[StagedProgram]) -> None:
    """Lower programs together, or one by one where tests have some that cannot be lowered."""
    from genrw.grammar.diagnostics import GenrwError

    try:
        coverage.add(programs)
    except GenrwError:
        if len(programs) > 1:
            for program in programs:
                _add(coverage, [program])


def _inside(name: str, folders: Sequence[Path]) -> bool:
    """Is a rule file one of the folders'? Shipped ones have names that are no paths, but may look like some."""
    path = Path(name).resolve()
    return path.is_file() and any(folder in path.parents for folder in folders)
