"""Whole networks in halves on a GPU, beside PyTorch in the same process.

    python bench/networks_beside_torch.py                        the networks below, for 1 and 32 images or texts
    python bench/networks_beside_torch.py bert --batches 1 8     one network
    python bench/networks_beside_torch.py --mode eager           beside PyTorch as it is, not compiled

Models are exported first, by several processes. Prints how long either takes from the model to the first result, how long
a call takes, and a replay of its launches as a graph, the number of kernels, and how far either result is from PyTorch's in
floats, by the norm. Ratios are PyTorch's time by ours: above 1 is sooner. `--profile` adds the kernels that take the most.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from beside_torch import geometric_mean, microseconds, milliseconds
from network_modules import NETWORKS, export, made

import genrw
from genrw.profiling import measured

_NAMES = ("resnet50", "mobilenet_v2", "convnext_tiny", "vit_b_16", "bert", "gpt2", "llama", "unet_block", "whisper")
_TOLERANCE = 4.0
"""Times as far from the result in floats as PyTorch's own halves are."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", default=_NAMES, metavar="name", help=f"of {', '.join(NETWORKS)}")
    options.add_argument("--batches", metavar="N", nargs="*", type=int, default=[1, 32])
    options.add_argument("--length", metavar="N", type=int, default=512, help="words of a text")
    options.add_argument("--mode", default="max-autotune", help="of torch.compile, or `eager`")
    options.add_argument("--profile", metavar="N", type=int, default=0, help="kernels to list")
    options.add_argument("--processes", metavar="N", type=int, default=8, help="processes that export models")
    options.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    given = options.parse_args()
    if unknown := [name for name in given.names if name not in NETWORKS]:
        options.error(f"no network is called {', '.join(unknown)}")
    print(torch.cuda.get_device_name())
    rows: list[dict[str, Any]] = []
    cases = [(name, batch) for batch in given.batches for name in given.names]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        models = list(pool.map(partial(_exported, length=given.length, folder=Path(folder)), cases))
        for (name, batch), model in zip(cases, models, strict=True):
            row: dict[str, Any] = {"network": name, "batch": batch}
            try:
                row |= _measured(name, batch, model, given)
            except Exception as problem:  # what one network meets is a row, too
                row["problem"] = f"{type(problem).__name__}: {str(problem).splitlines()[0][:200]}"
            print(_told(row), flush=True)
            rows.append(row)
            if given.json:
                given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    ratios = [row["torch ms"] / row["ms"] for row in rows if "ms" in row]
    if ratios:
        print(f"{len(ratios)} of {len(rows)}, geometric mean {geometric_mean(ratios):.3f}, worst {min(ratios):.2f}")


def _exported(case: tuple[str, int], length: int, folder: Path) -> Path:
    name, batch = case
    path = folder / f"{name}-{batch}.onnx"
    network, inputs = made(name, batch, length)
    export(network.half(), tuple(_in_halves(value) for value in inputs), path)
    return path


def _in_halves(value: torch.Tensor) -> torch.Tensor:
    return value.half() if value.is_floating_point() else value


def _measured(name: str, batch: int, model: Path, given: argparse.Namespace) -> dict[str, Any]:
    network, plain = made(name, batch, given.length)
    network, plain = network.cuda(), tuple(value.cuda() for value in plain)
    with torch.no_grad():
        expected = network(*plain)
        network = network.half()
        inputs = [_in_halves(value) for value in plain]
        near = network(*inputs)
        ours = _ours(model, inputs, given)
        torch.cuda.synchronize()
        row = ours | {"off": _off(ours.pop("result"), expected), "torch off": _off(near, expected)}
        return row | _torch(network, inputs, given.mode)


def _ours(model: Path, inputs: list[torch.Tensor], given: argparse.Namespace) -> dict[str, Any]:
    """Times of the model as we compile it, its result, and its kernels that take the most."""
    started = time.perf_counter()
    program = genrw.compile(genrw.load(model, target="sm_90"), device="cuda")
    stream = torch.cuda.current_stream
    result = torch.from_dlpack(program(*inputs, stream=stream()))
    torch.cuda.synchronize()
    ready = time.perf_counter() - started
    result = result.clone()
    row = {"result": result, "ready s": ready, "kernels": len(program.program.launches().steps)}
    row["ms"] = _milliseconds(lambda: program(*inputs, stream=stream()))
    out = {program.results[0]: torch.empty_like(result)}
    row["replayed ms"] = microseconds(lambda: program(*inputs, stream=stream(), out=out)) / 1000
    if given.profile:
        row["profile"] = _profile(program, inputs, given.profile)
    return row


def _profile(program: Any, inputs: list[torch.Tensor], count: int) -> list[tuple[Any, ...]]:
    """Name, launches, microseconds in all, microseconds predicted, and schedule of the kernels that take the most."""
    lowered = program.program.lower("final")
    names = [name for name in program.inputs if name not in lowered.defaults]
    times = program._run.launch_times(dict(zip(names, inputs, strict=True)), 5)
    kernels = sorted(measured(lowered, times), key=lambda kernel: -sum(kernel.launches))[:count]
    schedules = {module.name: module.schedule for unit in lowered.units for module in unit.kernels}
    return [(k.name, len(k.launches), sum(k.launches), k.predicted, str(schedules.get(k.name))) for k in kernels]


def _torch(network: torch.nn.Module, inputs: list[torch.Tensor], mode: str) -> dict[str, float]:
    """Times of the network as PyTorch compiles it."""
    torch._dynamo.reset()
    call = network if mode == "eager" else torch.compile(network, mode=mode)
    started = time.perf_counter()
    call(*inputs)
    torch.cuda.synchronize()
    ready = time.perf_counter() - started
    return {"torch ready s": ready, "torch ms": _milliseconds(lambda: call(*inputs))}


def _milliseconds(call: Callable[[], object]) -> float:
    """The median time of a call, of calls that follow one another."""

    def three() -> None:
        for _ in range(3):
            call()

    three()
    torch.cuda.synchronize()
    return milliseconds(three) / 3


def _off(result: torch.Tensor, expected: torch.Tensor) -> float:
    off = (result.double() - expected.double()).norm() / expected.double().norm()
    return float(off) if off == off else float("inf")


def _told(row: dict[str, Any]) -> str:
    first = f"{row['network']:>14} {row['batch']:3}: "
    if "problem" in row:
        return first + row["problem"]
    verdict = (
        "right" if row["off"] < _TOLERANCE * row["torch off"] else f"WRONG {row['off']:.1e} {row['torch off']:.1e}"
    )
    told = (
        f"{first}{row['ms']:8.3f} ms, replayed {row['replayed ms']:8.3f}, torch {row['torch ms']:8.3f}, "
        f"ratio {row['torch ms'] / row['ms']:5.2f}, {row['kernels']:3} kernels, "
        f"ready {row['ready s']:5.1f} s, torch {row['torch ready s']:5.1f}, {verdict}"
    )
    kernels = (f"{us:9.1f} us {n:3} x {name}  predicted {p}  {s}" for name, n, us, p, s in row.get("profile", []))
    return "\n".join([told, *kernels])


if __name__ == "__main__":
    main()
