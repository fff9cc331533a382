"""How long lowering takes: in a process that has lowered before, and as a command."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from table import medians, options, report

import genrw

SOFTMAX = """\
x = @param:x -> half{{{rows}, 4096}}
m = reduce_max[axes={{1}}](x)
d = sub(x, m)
e = exp(d)
s = reduce_sum[axes={{1}}](e)
y = div(e, s)
@return(y)
"""

ROW_SUM = """\
x = @param:x -> float{{{rows}, 1024}}
y = reduce_sum[axes={{1}}](x)
@return(y)
"""

NORM = """\
x = @param:x -> half{{{rows}, 768}}
q = mul(x, x)
m = reduce_mean[axes={{1}}](q)
r = rsqrt(m)
y = mul(x, r)
@return(y)
"""

FUSED = """\
a = @param:a -> float{{{rows}, 512}}
b = @param:b -> float{{512}}
c = mul(a, b)
d = add(c, 1.0)
y = relu(d)
@return(y)
"""

PADDED = """\
x = @param:x -> float{{{rows}, 250}}
p = pad[pads={{0, 3, 0, 3}}](x)
q = mul(p, 2.0)
y = reduce_max[axes={{1}}](q)
@return(y)
"""

KINDS = (SOFTMAX, ROW_SUM, NORM, FUSED, PADDED)
KERNELS = 100


def main() -> None:
    given = options(__doc__ or "")
    shapes = itertools.count(1000)
    cases: list[tuple[str, Callable[[], object], float]] = [
        ("softmax, lowered before", _remembered(), 10.0),
        ("softmax, a new shape each time", _new_shape(shapes), 10.0),
        (f"{KERNELS} kernels of {len(KINDS)} kinds in one call", _many(shapes), 100.0),
        ("`genrw lower`, as a command", _command(), 500.0),
    ]
    rows = [[name, *medians(run, given.times), bar] for name, run, bar in cases]
    report(["text to text", "median ms", "of the processor", "bar ms"], rows, given.json)


def _remembered() -> Callable[[], object]:
    text = SOFTMAX.format(rows=8192)
    return lambda: genrw.lower(text)


def _new_shape(shapes: Iterator[int]) -> Callable[[], object]:
    return lambda: genrw.lower(SOFTMAX.format(rows=next(shapes)))


def _many(shapes: Iterator[int]) -> Callable[[], object]:
    """Programs of several kinds, none of a shape that was lowered before."""

    def run() -> object:
        kinds = itertools.islice(itertools.cycle(KINDS), KERNELS)
        modules = (f"@module k{i}\n{kind.format(rows=next(shapes))}" for i, kind in enumerate(kinds))
        return genrw.lower("\n".join(modules))

    return run


def _command() -> Callable[[], object]:
    """A process of its own; the rules were parsed, and the modules compiled, by an earlier one, as an installation does."""
    folder = tempfile.mkdtemp()
    path = Path(folder) / "softmax.gen"
    path.write_text(SOFTMAX.format(rows=8192), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "genrw"), "lower", str(path)]
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled")}
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=compiled)


if __name__ == "__main__":
    main()
