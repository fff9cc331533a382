"""The entry of the command line: runs a command, turns what ends it into a diagnostic and an exit status."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.processes import ready_to_end
from genrw.terminal import prepare_streams, write_diagnostics

_BAD_INPUT = 2
_INTERRUPTED = 130
_ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000


def main() -> NoReturn:
    """Run the process's command line and end the process."""
    # Looking for cycles takes a tenth of a short command's time and frees nothing that matters to it.
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    status = execute(sys.argv[1:])
    if status == _INTERRUPTED:
        ready_to_end()  # Ctrl-C again does not wait for what is left behind.
    # Taking down e-graphs and modules one by one takes longer than lowering a kernel: leave without.
    atexit._run_exitfuncs()
    os._exit(status)


def execute(arguments: Sequence[str]) -> int:
    """Run a command line; gives the exit status: 0 done, 1 a check found something, 2 bad input or call."""
    prepare_streams()
    try:
        status = _run(list(arguments))
        sys.stdout.flush()
        return status
    except BaseException as problem:
        return _tell(problem)


def _run(arguments: list[str]) -> int:
    status = _command()(args=arguments or ["--help"], prog_name="genrw", standalone_mode=False)
    return status if isinstance(status, int) else 0


@lru_cache(maxsize=1)
def _command() -> Callable[..., Any]:
    """The command line as typer reads it from the functions behind it, which takes as long as a short command."""
    from typer.main import get_command

    from genrw.cli import app

    return get_command(app)


def _tell(problem: BaseException) -> int:
    """Say on stderr what ended a command."""
    # typer ends the process itself where the reader of the output has left.
    if isinstance(problem, BrokenPipeError) or isinstance(problem.__context__, BrokenPipeError):
        _discard_output()
        return 0
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else _BAD_INPUT
    if _is_interrupt(problem):
        return _INTERRUPTED
    try:
        write_diagnostics(_diagnostics(problem))
    except OSError:
        _discard_output()
    return _BAD_INPUT


def _is_interrupt(problem: BaseException) -> bool:
    return isinstance(problem, KeyboardInterrupt) or type(problem).__name__ == "Abort"


def _diagnostics(problem: BaseException) -> Sequence[Diagnostic]:
    if isinstance(problem, GenrwError):
        return problem.diagnostics
    if isinstance(problem, MemoryError):
        return [Diagnostic("there is not enough memory for this program", remedy="try it with shorter lengths")]
    if isinstance(problem, RecursionError):
        return [Diagnostic("the program or a rule is nested too deeply", remedy="split it into named parts")]
    if isinstance(problem, OSError):
        return [Diagnostic(_os_message(problem))]
    usage = getattr(problem, "format_message", None)
    if usage is not None:
        return [Diagnostic(_sentence(usage()), remedy=_usage_remedy(problem))]
    return [_fault(problem)]


def _os_message(problem: OSError) -> str:
    where = f"{problem.filename}: " if problem.filename else ""
    return f"{where}{problem.strerror or problem}"


def _sentence(message: str) -> str:
    """A usage error as diagnostics are worded: one line, no capital, no full stop."""
    line = " ".join(message.split()).rstrip(".")
    return line[:1].lower() + line[1:]


def _usage_remedy(problem: BaseException) -> str:
    context = getattr(problem, "ctx", None)
    return f"see `{context.command_path if context is not None else 'genrw'} --help`"


def _fault(problem: BaseException) -> Diagnostic:
    """What is nobody's input's fault, a panic inside the e-graph among it."""
    if os.environ.get("GENRW_TRACEBACK"):
        import traceback

        traceback.print_exception(problem)
    said = str(problem).strip().split("\n")[0]
    message = f"genrw failed: {type(problem).__name__}{f': {said}' if said else ''}"
    return Diagnostic(message, remedy="this is a fault of genrw or of a rule; GENRW_TRACEBACK=1 shows where")


def _discard_output() -> None:
    """Nobody reads the output any more: let what is still to be flushed go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
