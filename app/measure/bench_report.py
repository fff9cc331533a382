"""What `genrw bench` prints, writes and draws."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from genrw.codegen.runtime.devices import GPU_SORTS, open_gpu
from genrw.grammar.diagnostics import error
from genrw.measure.bench import Figures, as_json, measure, suite, summary, table
from genrw.output import write_file
from genrw.terminal import write, write_table


@dataclass(frozen=True)
class Request:
    """What to measure, on which device, beside what, and where the figures go."""

    suite: str
    device: str
    only: str | None
    peers: Path | None
    times: int
    json: Path | None
    plot: Path | None


def run_bench(request: Request) -> int:
    """Measure a suite: 1 if a result is wrong, else 0."""
    paths = suite(request.suite, request.only)
    sort, _, number = request.device.partition(":")
    if sort not in GPU_SORTS or not (number or "0").isdecimal():
        raise error(f"`{request.device}` is no GPU", remedy=f"devices are {', '.join(GPU_SORTS)}")
    runtime = open_gpu(sort, int(number or 0))
    peers = None
    if request.peers is not None:
        from genrw.measure.peers import TorchPeers

        peers = TorchPeers(request.peers, request.times)
    speed, figures = measure(runtime, paths, peers, request.times, _tell)
    write(f"{runtime.model}, {runtime.compiler}: a copy moves {speed / 1e3:.0f} GB/s")
    write_table(*table(figures))
    for what, value in summary(figures).items():
        write(f"{what}: {value:.3f}")
    if request.json is not None:
        write_file(request.json, as_json(runtime, speed, figures).encode())
    if request.plot is not None:
        write_file(request.plot, drawn(figures, request.plot.suffix.lstrip(".") or "png"))
    return 1 if any(f.wrong for f in figures) else 0


def _tell(figures: Figures) -> None:
    """A line for whoever waits."""
    took = f"{figures.time:.1f} µs" if figures.time else ""
    print(f"{figures.name}: {took} {figures.wrong or ''}".rstrip(), file=sys.stderr, flush=True)


def drawn(figures: Sequence[Figures], form: str) -> bytes:
    """Each case's speed over its bytes, beneath the roof that a copy sets. GenrwError without matplotlib."""
    import io

    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise error("matplotlib is not there to draw with", remedy="pip install 'genrw[plot]'") from None
    mpl.rcParams["svg.hashsalt"] = "genrw"
    timed = [f for f in figures if f.time]
    figure = Figure(figsize=(9, 0.3 * len(timed) + 1.5), layout="constrained")
    axes = figure.subplots()
    places = range(len(timed))
    axes.barh(places, [f.fraction() or 0 for f in timed], color="#4477aa", label="genrw")
    peers = [(i, f.floor / f.best_peer) for i, f in zip(places, timed, strict=True) if f.best_peer]
    if peers:
        axes.plot([x for _, x in peers], [i for i, _ in peers], "d", color="#cc6677", label="the faster peer")
    axes.axvline(1.0, color="black", linewidth=1, label="a copy")
    axes.set_yticks(places, [f.name for f in timed])
    axes.invert_yaxis()
    axes.set_xlabel("least bytes / time, as a share of a copy's speed")
    axes.legend(loc="lower right")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, metadata={"Date": None} if form == "svg" else None)
    return buffer.getvalue()
