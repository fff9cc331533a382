"""The suite `gpu` on the CPU, beside numpy: its programs for the target `host`, and for a GPU whose part the CPU plays.

Extents are a quarter of the suite's, so that a case fits into the host's memory. `--assert` ends with status 1 unless
the bars are met.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy_peers
from table import parser, report, seconds

import genrw
from genrw.engine.interpret.inputs import random_inputs
from genrw.measure.cases import BenchCase, suite

GPU = "gfx942"
NUMPY_BAR = 1.0
"""The geometric mean of numpy's time over the target `host`'s, at least."""
GPU_BAR = 20.0
"""The time of a GPU's kernels on the CPU over that of the target `host`, at most: each case, so the mean too."""

_QUARTERED = {str(n): str(n // 4) for n in (2**k for k in range(12, 27))}
_QUARTERED |= {"4097": "1025", "4099": "1027", "8190": "2046", "8191": "2047"}


@dataclass(frozen=True)
class Times:
    """Milliseconds of a case: the shortest of calls that take turns, so that other work on the machine counts little."""

    name: str
    numpy: float
    host: float
    gpu: float


def quartered(text: str) -> str:
    """A program of the suite with smaller extents."""
    return re.sub(r"\d+", lambda m: _QUARTERED.get(m[0], m[0]), text)


def measure(case: BenchCase, times: int) -> Times:
    """A case on arrays that all runs share."""
    text = quartered(case.source.text)
    host, gpu = (genrw.compile(text, target=target) for target in ("host", GPU))
    inputs = random_inputs(host.program.origin[0], host.program.library, 0)
    arrays = list(inputs.values())
    peer: Callable[..., Any] = getattr(numpy_peers, case.name)
    runs: tuple[Callable[[], Any], ...] = (lambda: peer(*arrays), lambda: host(*arrays), lambda: gpu(*arrays))
    want, *results = (run() for run in runs)
    for got in results:
        # A half's last bit, and what numpy's stand-in for erf differs by.
        np.testing.assert_allclose(np.float64(got).ravel(), np.float64(want).ravel(), 2e-2, 2e-2, err_msg=case.name)
    taken = [[1e3 * seconds(run) for run in runs] for _ in range(times)]
    return Times(case.name, *(min(column) for column in zip(*taken, strict=True)))


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def failures(cases: Sequence[Times]) -> list[str]:
    """The bars that are not met."""
    faster = mean([c.numpy / c.host for c in cases])
    found = [f"{faster:.2f} times as fast as numpy, the bar is {NUMPY_BAR}"] if faster < NUMPY_BAR else []
    slow = [c for c in cases if c.gpu > GPU_BAR * c.host]
    return found + [
        f"{c.name}: {GPU} is {c.gpu / c.host:.1f} times as slow as host, the bar is {GPU_BAR}" for c in slow
    ]


def main() -> int:
    arguments = parser(__doc__ or "", times=9)
    arguments.add_argument("--only", default=None, help="cases whose name holds this")
    arguments.add_argument("--assert", dest="assert_bars", action="store_true", help="status 1 unless the bars are met")
    given = arguments.parse_args()
    cases = [measure(case, given.times) for case in suite("gpu", given.only)]
    faster, slower = [c.numpy / c.host for c in cases], [c.gpu / c.host for c in cases]
    rows = [[c.name, c.numpy, c.host, c.gpu, f, s] for c, f, s in zip(cases, faster, slower, strict=True)]
    rows.append(["geometric mean", "", "", "", mean(faster), mean(slower)])
    rows.append(["worst", "", "", "", min(faster), max(slower)])
    report(["case", "numpy ms", "host ms", f"{GPU} ms", "numpy / host", f"{GPU} / host"], rows, given.json)
    problems = failures(cases) if given.assert_bars else []
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
