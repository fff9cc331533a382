"""What `genrw bench` prints, writes and draws."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from genrw.codegen.runtime.devices import GPU_SORTS, HostDevice, open_gpu
from genrw.folders import PROGRAM
from genrw.grammar.diagnostics import error
from genrw.measure.bench import Bench, Figures, GpuBench, HostBench, as_json, behind, measure, slow, summary, table
from genrw.measure.cases import RANDOM, suite
from genrw.measure.peers import NumpyPeers, Peers, TorchPeers
from genrw.measure.random_cases import random_cases
from genrw.output import check_writable, write_file, write_files
from genrw.terminal import write, write_table


@dataclass(frozen=True)
class Request:
    """What to measure, on which device, beside what, and where the figures go. `seed` and `count` choose random programs;
    `programs` is a folder that takes the cases' programs."""

    suite: str
    device: str
    only: str | None
    peers: Path | None
    times: int
    json: Path | None
    plot: Path | None
    quick: bool = False
    seed: int = 0
    count: int = 200
    programs: Path | None = None


def run_bench(request: Request) -> int:
    """Measure a suite: 1 if a result is wrong, else 0."""
    if request.suite == RANDOM:
        cases = random_cases(request.seed, request.count, request.only)
    else:
        cases = suite(request.suite, request.only, request.quick)
    check_writable(request.json, request.plot)
    if request.plot is not None:
        _check_form(_form(request.plot))
    bench = _bench(request.device)
    peers = _peers(request, bench)
    if request.programs is not None:
        write_files(request.programs, {f"{case.name}{PROGRAM}": case.source.text.encode() for case in cases})

    def done(figures: Sequence[Figures], speed: float) -> None:
        _tell(figures[-1])
        if request.json is not None:  # a run that is cut short leaves what it measured
            write_file(request.json, as_json(bench, speed, figures).encode())

    speed, figures = measure(bench, cases, peers, request.times, done)
    write(f"{bench.model}, {bench.compiler}: a copy moves {speed / 1e3:.0f} GB/s")
    write_table(*table(figures))
    _summarise(figures, request.suite == RANDOM)
    if request.plot is not None:
        write_file(request.plot, drawn(figures, _form(request.plot)))
    return 1 if any(f.wrong for f in figures) else 0


def _bench(device: str) -> Bench:
    if device == HostDevice.name:
        return HostBench()
    sort, _, number = device.partition(":")
    if sort not in GPU_SORTS or not (number or "0").isdecimal():
        raise error(
            f"`{device}` takes no time that could be measured",
            remedy=f"devices are {HostDevice.name}, {', '.join(GPU_SORTS)}",
        )
    return GpuBench(open_gpu(sort, int(number or 0)))


def _peers(request: Request, bench: Bench) -> Peers | None:
    if request.peers is None:
        return None
    sort = NumpyPeers if isinstance(bench, HostBench) else TorchPeers
    return sort(request.peers, request.times)


def _summarise(figures: Sequence[Figures], with_programs: bool) -> None:
    """The figures of all, the cases that are behind, and their programs where no file holds these."""
    for what, value in summary(figures).items():
        write(f"{what}: {value}" if isinstance(value, int) else f"{what}: {value:.3f}")
    for heading, cases in (("behind the best peer", behind(figures)), ("far from a copy's speed", slow(figures))):
        if cases:
            write(f"{heading}: {', '.join(f.name for f in cases)}")
    if with_programs:
        for case in dict.fromkeys(f.name for f in [*(f for f in figures if f.wrong), *behind(figures)]):
            write(f"\n# {case}\n{next(f.program for f in figures if f.name == case)}")


def _tell(figures: Figures) -> None:
    """A line for whoever waits."""
    took = f"{figures.time:.1f} µs" if figures.time else ""
    print(f"{figures.name}: {took} {figures.wrong or ''}".rstrip(), file=sys.stderr, flush=True)


def _form(plot: Path) -> str:
    return plot.suffix.lstrip(".").lower() or "png"


def _check_form(form: str) -> None:
    """GenrwError for what matplotlib does not draw, or without it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise error("matplotlib is not there to draw with", remedy="pip install 'genrw[plot]'") from None
    forms = Figure().canvas.get_supported_filetypes()
    if form not in forms:
        raise error(f"no plot can be written as `.{form}`", remedy=f"name a file that ends with {', '.join(forms)}")


def drawn(figures: Sequence[Figures], form: str) -> bytes:
    """Each case's speed over its bytes, beneath the roof that a copy sets."""
    import io

    import matplotlib as mpl
    from matplotlib.figure import Figure

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
