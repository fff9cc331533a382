"""What takes more of this machine than there is: told before it begins. What has begun ends where it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import Command
from test_process import COMMAND

import genrw as package
from genrw import demands
from genrw.engine.interpret.reference import most_held

LONG = """x = @param:x -> float{%d, 1}
y = @param:y -> float{1, %d}
m = mul(x, y)
e = exp(m)
s = reduce_max[axes={0, 1}](e)
@return(s)
"""
"""A fold of so many elements squared, of operands that are small."""

HOURS = {
    "products of two": LONG % (4_000_000, 4_000_000),
    "repeated": "x = @param:x -> float{1, 1}\nb = multibroadcast[out_lens={9000000, 4000000}](x)\n"
    "s = reduce_sum[axes={0, 1}](b)\n@return(s)\n",
    "products of matrices": "x = @param:x -> float{60000, 1000}\ny = @param:y -> float{1000, 60000}\nd = dot(x, y)\n"
    "e = dot(d, x)\n@return(e)\n",
}


@pytest.mark.parametrize("text", HOURS.values(), ids=HOURS)
def test_hours_of_work_are_refused(genrw: Command, text: str) -> None:
    result = genrw("run", "-", "--seconds", "10", stdin=text)
    assert (result.status, result.out) == (2, "")
    assert ": error: kernels go over " in result.err
    assert "\n  help: run it with shorter lengths, or allow more with `--seconds`\n" in result.err


def test_no_time_is_too_short_for_what_is_short(genrw: Command) -> None:
    assert genrw("run", "-", "--seconds", "0.1", stdin=LONG % (10, 10)).status == 0


@pytest.mark.parametrize(
    ("options", "remedy"), [(("--check",), "leave out `--check`"), (("--device", "interpret"), "use")]
)
def test_what_numpy_would_take_is_refused(
    genrw: Command, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], remedy: str
) -> None:
    monkeypatch.setattr(demands, "_memory", lambda: 7_000_000)
    result = genrw("run", "-", *options, stdin=LONG % (1000, 1000))
    assert (result.status, result.out) == (2, "")
    assert ":3:1: error: numpy takes " in result.err
    assert f"\n  help: {remedy}" in result.err
    assert genrw("run", "-", *options, stdin=LONG % (100, 100)).status == 0


def test_memory_between_elements_counts(genrw: Command) -> None:
    text = "x = @param:x -> float{4, 4}, {140737488355327, 1}\ny = exp(x)\n@return(y)\n"
    result = genrw("run", "-", stdin=text)
    assert result.status == 2
    assert "inputs and results take 1,688,849.9 GB of memory" in result.err


def test_values_are_held_as_long_as_they_are_needed() -> None:
    chain = "".join(f"v{i + 1} = exp(v{i})\n" for i in range(20))
    program = package.load(f"v0 = @param:x -> float{{1000}}\n{chain}@return(v20, v3)\n")
    (module,) = program.modules
    assert most_held(module, program.library, precise=True) == 3 * 8000
    results = program.run({"x": np.full(1000, -1, np.float32)}, device="interpret")
    assert results["v3"][0] == pytest.approx(np.exp(np.exp(np.exp(-1))))


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_kernel_is_interrupted() -> None:
    # What runs in the background is started with the signal ignored, and hands that on.
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = (
        "import os, threading, time, genrw.codegen.runtime.host as h; run = h.HostKernel.launch\n"
        "def launch(*a, **k): print('begun', flush=True); run(*a, **k)\n"
        "h.HostKernel.launch = launch; from genrw.main import main; main()"
    )
    try:
        process = subprocess.Popen(
            [*COMMAND[:2], begun, "run", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, heeded)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(LONG % (300_000, 300_000))
    process.stdin.close()
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT
