"""Products of matrices on a GPU, beside torch.matmul in the same process.

    python bench/matrices.py                     the shapes of real layers, with the schedules that are chosen
    python bench/matrices.py 4096x4096x4096      shapes MxNxK, or BxMxNxK
    python bench/matrices.py 4096x4096x4096 --tried 12
                                                 besides, the dozen schedules that are predicted to be the best, each pinned

Prints for each shape both times in microseconds, TFLOP/s, and the ratio of the times (torch / genrw: above 1 is sooner).
Results are compared with torch's in float. Takes a GPU that CUDA reaches, and PyTorch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from math import exp, log
from statistics import median

import torch

import genrw

# tokens x features of the projections of BERT-base and -large, GPT-2, Llama 3 8B, ViT-B and -L, Whisper, at some batch sizes;
# products of attention; odd lengths
SHAPES = [
    *(
        "4096x4096x4096",
        "8192x8192x8192",
        "512x768x768",
        "512x3072x768",
        "512x768x3072",
        "4096x768x768",
        "4096x3072x768",
    ),
    *("4096x768x3072", "4096x1024x1024", "4096x4096x1024", "4096x1024x4096", "1024x2304x768", "1024x50257x768"),
    *("2048x4096x4096", "2048x6144x4096", "2048x14336x4096", "2048x4096x14336", "512x14336x4096", "512x4096x14336"),
    *("6304x768x768", "6304x3072x768", "6304x768x3072", "1576x1024x1024", "1500x384x384", "1500x1536x384"),
    *("96x512x512x64", "96x512x64x512", "16x2048x2048x128", "64x197x197x64", "1000x1000x1000", "777x333x555"),
]
KINDS = {"nn": "{M}x{K} times {K}x{N}", "nt": "{M}x{K} times {N}x{K} turned around"}
TYPES = {"half": torch.half, "bf16": torch.bfloat16, "float": torch.float}


def program(shape: tuple[int, ...], kind: str, dtype: str) -> str:
    """The product as a program; `kind` nt has the second matrix lie turned around."""
    *batch, m, n, k = shape
    outer = "".join(f"{b}, " for b in batch)
    if kind == "nn":
        second = f"w = @param:w -> {dtype}{{{outer}{k}, {n}}}"
    else:
        order = [*range(len(batch)), len(batch) + 1, len(batch)]
        second = (
            f"t = @param:w -> {dtype}{{{outer}{n}, {k}}}\n"
            f"w = transpose[permutation={{{', '.join(map(str, order))}}}](t)"
        )
    return f"x = @param:x -> {dtype}{{{outer}{m}, {k}}}\n{second}\ny = dot(x, w)\n@return(y)\n"


def microseconds(call: Callable[[], object], repeats: int = 20) -> float:
    """The median time of a call on the GPU, captured in a graph so that launching takes no part."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            call()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / 4)
    return median(times)


def schedules(text: str, count: int, target: str) -> Iterator[dict[str, object]]:
    """No pins, then the schedules that are predicted to be the best."""
    yield {}
    if count:
        program = genrw.load(text, target=target)
        rated = next(iter(program.lower("schedule").trace.schedules.values()))
        yield from (dict(schedule) for _, schedule, _ in rated[:count])


def measured(shape: tuple[int, ...], kind: str, dtype: str, tried: int, target: str) -> float:
    """Print the lines of one shape; the ratio of the schedule that was chosen."""
    *batch, m, n, k = shape
    torch.manual_seed(0)
    x = torch.randn(*batch, m, k, device="cuda", dtype=TYPES[dtype])
    w = torch.randn(*batch, *((k, n) if kind == "nn" else (n, k)), device="cuda", dtype=TYPES[dtype])
    turned = w if kind == "nn" else w.transpose(-1, -2)
    out = torch.empty(*batch, m, n, device="cuda", dtype=TYPES[dtype])
    operations = 2.0 * m * n * k
    for b in batch:
        operations *= b
    peer = microseconds(lambda: torch.matmul(x, turned, out=out))
    expected = torch.matmul(x.float(), turned.float())
    text, chosen = program(shape, kind, dtype), 0.0
    for schedule in schedules(text, tried, target):
        try:
            compiled = genrw.compile(text, target=target, device="cuda", schedule=schedule)
            out.fill_(float("nan"))
            own = microseconds(lambda: compiled(x, w, stream=torch.cuda.current_stream(), out={"y": out}))  # noqa: B023
        except Exception as problem:  # a schedule that the device refuses is a line of the table, too
            print(
                f"{'x'.join(map(str, shape)):>20} {kind} {dtype} {schedule}: {str(problem).splitlines()[0][:100]}",
                flush=True,
            )
            continue
        off = (out.float() - expected).norm() / expected.norm()
        told = " ".join(
            f"{key}={schedule[key]}" for key in ("tile", "waves", "stages", "instruction") if key in schedule
        )
        print(
            f"{'x'.join(map(str, shape)):>20} {kind} {dtype}: {own:9.1f} us {operations / own / 1e6:6.1f}  "
            f"torch {peer:9.1f} us {operations / peer / 1e6:6.1f}  ratio {peer / own:5.2f}  "
            f"{'right' if off < 1e-2 else f'WRONG {off:.1e}'}  {told}",
            flush=True,
        )
        chosen = chosen or peer / own
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    parser.add_argument("--kinds", default="nn,nt")
    parser.add_argument("--type", default="half", choices=TYPES)
    parser.add_argument("--tried", type=int, default=0)
    parser.add_argument("--target", default="sm_90")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    ratios = []
    for shape in given.shapes:
        for kind in given.kinds.split(","):
            ratios.append(measured(tuple(map(int, shape.split("x"))), kind, given.type, given.tried, given.target))
    ratios = [ratio for ratio in ratios if ratio]
    if ratios:
        print(
            f"{len(ratios)} cases, geometric mean {exp(sum(map(log, ratios)) / len(ratios)):.3f}, worst {min(ratios):.2f}"
        )


if __name__ == "__main__":
    main()
