"""Whole networks, as PyTorch exports them, on the target `host` beside onnxruntime: `python bench/whole_networks.py [name ...]`.

Weights are random. Prints for each network how long it takes to load, to lower and compile, and to run, how long
onnxruntime runs, and the largest difference of the results in parts of the largest element. Takes PyTorch, torchvision,
transformers, onnx, onnxscript and onnxruntime.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from network_modules import NETWORKS, export, made
from table import parser, report, seconds

import genrw

_TOLERANCE = 1e-4


def main() -> None:
    options = parser(__doc__ or "", times=5)
    options.add_argument("names", nargs="*", choices=[[], *NETWORKS], metavar="name", help="all if none is named")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [_measure(name, Path(folder), given.times) for name in given.names or NETWORKS]
    headings = ["network", "load s", "ready s", "genrw ms", "onnxruntime ms", "ratio", "difference"]
    report(headings, rows, given.json)
    wrong = [row[0] for row in rows if not row[-1] <= _TOLERANCE]
    if wrong:
        raise SystemExit(f"wrong: {', '.join(wrong)}")


def _measure(name: str, folder: Path, times: int) -> list[Any]:
    """A row of the table: medians of runs that take turns with onnxruntime's."""
    path, inputs = _exported(name, folder)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    named = {given.name: value for given, value in zip(session.get_inputs(), inputs, strict=True)}
    expected = session.run(None, named)
    found: list[Any] = []
    loaded = seconds(lambda: found.append(genrw.load(path)))
    ready = seconds(lambda: found.append(genrw.compile(found[0], device="host")))
    results = found[1](**named)
    results = results if isinstance(results, (list, tuple)) else [results]
    difference = max(_difference(a, b) for a, b in zip(results, expected, strict=True))
    runs = (lambda: found[1](**named), lambda: session.run(None, named))
    taken = [[1e3 * seconds(run) for run in runs] for _ in range(times)]
    ours, theirs = (statistics.median(column) for column in zip(*taken, strict=True))
    return [name, loaded, ready, ours, theirs, theirs / ours, difference]


def _difference(ours: Any, theirs: Any) -> float:
    return float(np.abs(np.asarray(ours, np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def _exported(name: str, folder: Path) -> tuple[str, list[Any]]:
    """The path of a network's model, and inputs."""
    network, inputs = made(name)
    path = folder / f"{name}.onnx"
    export(network, inputs, path)
    return str(path), [value.numpy() for value in inputs]


if __name__ == "__main__":
    main()
