"""The command as a process: how it ends when its surroundings fail it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from genrw import main
from genrw.main import execute

COMMAND = (sys.executable, "-c", "from genrw.main import main; main()")


def run(*arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **settings)  # type: ignore[call-overload, no-any-return]


def test_statuses(softmax: Path) -> None:
    done = run("lower", softmax)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("@module main [stage=final")
    done = run("lower", "missing.gen")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: there is no file missing.gen\n"


def test_nothing_stays_behind(softmax: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    on_disk = (
        "import genrw.engine.egraph.stage as s; s._memory_folder = lambda: None; from genrw.main import main; main()"
    )
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-c", on_disk, "lower", str(softmax)]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False).returncode == 0
    assert os.listdir(folder) == []


def test_a_reader_that_leaves(softmax: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "lower", str(softmax)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no such shell")
@pytest.mark.parametrize(
    ("closed", "arguments", "status", "err"),
    [
        ("<&-", ("lower", "-"), 2, "error: standard input is closed\n  help: name a file\n"),
        ("<&-", ("rules", "trace", "-"), 2, "error: standard input is closed\n  help: name a file\n"),
        (">&-", ("lower", "softmax.gen"), 0, ""),
        ("2>&-", ("lower", "missing.gen"), 2, ""),
    ],
)
def test_streams_that_are_closed(softmax: Path, closed: str, arguments: tuple[str, ...], status: int, err: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *arguments],
        cwd=softmax.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", err)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the machine has no full device")
def test_a_full_device(softmax: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "lower", str(softmax)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "error: No space left on device\n"


def test_output_to_a_device_goes_to_it(softmax: Path) -> None:
    assert run("lower", softmax, "-o", "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_interrupted() -> None:
    # What runs in the background is started with the signal ignored, and hands that on.
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [*COMMAND, "lower", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, heeded)
    assert process.stdin is not None
    process.stdin.write("# more than a pipe holds: once it is written, the command reads\n" * 4000)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


class PanicException(BaseException):
    """What egglog's bindings raise when Rust panics."""


@pytest.mark.parametrize(
    ("problem", "status", "said"),
    [
        (MemoryError(), 2, "error: there is not enough memory"),
        (RecursionError(), 2, "error: the program or a rule is nested too deeply"),
        (PanicException("called `Option::unwrap()`\non a `None` value"), 2, "error: genrw failed: PanicException"),
        (ValueError("odd"), 2, "error: genrw failed: ValueError: odd"),
        (PermissionError(13, "Permission denied", "a.gen"), 2, "error: a.gen: Permission denied"),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(3), 3, ""),
    ],
)
def test_whatever_is_raised(
    problem: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object) -> int:
        raise problem

    monkeypatch.setattr(main, "_run", fail)
    assert execute(["lower", "x.gen"]) == status
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert len([line for line in err.splitlines() if line.startswith("error")]) == (1 if said else 0)
    assert "Traceback" not in err


def test_messages_are_coloured_on_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    path = tmp_path / "bad.gen"
    path.write_text("x = @param:x -> float{4}\ny = expp(x)\n@return(y)\n")
    subprocess.run([*COMMAND, "lower", str(path)], stderr=follower, env=environment, check=False, timeout=60)
    os.close(follower)
    said = os.read(leader, 100_000).decode()
    os.close(leader)
    assert "\x1b[" in said
    assert "unknown operator `expp`" in said.replace("\r\n", "\n")


def test_processes_of_a_command_print_nothing_when_they_are_interrupted(tmp_path: Path) -> None:
    """Not while they begin, and not later."""
    script = tmp_path / "several.py"
    script.write_text(
        "import multiprocessing, os, signal, time\n"
        "from genrw.processes import deaf_to_interrupts, ready_to_end\n"
        "def work(pipe):\n"
        "    pipe.send('begun')\n"
        "    ready_to_end()\n"
        "    pipe.send('ready')\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    ours, theirs = context.Pipe()\n"
        "    process = context.Process(target=work, args=(theirs,))\n"
        "    with deaf_to_interrupts():\n"
        "        process.start()\n"
        "    os.kill(process.pid, signal.SIGINT)\n"
        "    print(ours.recv(), ours.recv())\n"
        "    os.kill(process.pid, signal.SIGINT)\n"
        "    process.join()\n"
        "    print(process.exitcode == -signal.SIGINT, signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)  # see above
    try:
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
    finally:
        signal.signal(signal.SIGINT, heeded)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "begun ready\nTrue True\n"
