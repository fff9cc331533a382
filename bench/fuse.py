"""How long programs take through the stages, by their number of operators: `python bench/fuse.py [operators ...]`."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import replace

import genrw
from genrw.engine.ir.nodes import walk
from genrw.program import Program

TOKENS, WIDTH, HEADS = 512, 1024, 8
REPEATS = 5


def norm(value: str, n: int) -> list[str]:
    """A layer norm with scale and shift; its result is n{n}."""
    return [
        f"m{n} = reduce_mean[axes={{1}}]({value})",
        f"d{n} = sub({value}, m{n})",
        f"q{n} = mul(d{n}, d{n})",
        f"v{n} = reduce_mean[axes={{1}}](q{n})",
        f"w{n} = add(v{n}, 0.00001)",
        f"r{n} = rsqrt(w{n})",
        f"c{n} = mul(d{n}, r{n})",
        f"g{n} = mul(c{n}, scale)",
        f"n{n} = add(g{n}, shift)",
    ]


def weights(n: int) -> list[str]:
    """Attention scores to one weight a token, u{n}."""
    return [
        f"s{n} = @param:s{n} -> half{{{HEADS}, {TOKENS}, {TOKENS}}}",
        f"a{n} = mul(s{n}, 0.125)",
        f"b{n} = add(a{n}, mask)",
        f"x{n} = reduce_max[axes={{2}}](b{n})",
        f"y{n} = sub(b{n}, x{n})",
        f"e{n} = exp(y{n})",
        f"z{n} = reduce_sum[axes={{2}}](e{n})",
        f"p{n} = div(e{n}, z{n})",
        f"t{n} = reduce_max[axes={{0, 2}}](p{n})",
        f"u{n} = reshape[dims={{{TOKENS}, 1}}](t{n})",
    ]


def gelu(value: str, n: int) -> list[str]:
    """The activation f{n}."""
    return [
        f"h{n} = mul({value}, 0.5)",
        f"i{n} = mul({value}, 0.70710678)",
        f"j{n} = erf(i{n})",
        f"k{n} = add(j{n}, 1.0)",
        f"f{n} = mul(h{n}, k{n})",
    ]


def graph(operators: int) -> str:
    """Residual blocks of norms, attention weights and activations, of about so many operators."""
    lines = [
        f"x = @param:x -> half{{{TOKENS}, {WIDTH}}}",
        f"scale = @param:scale -> half{{{WIDTH}}}",
        f"shift = @param:shift -> half{{{WIDTH}}}",
        f"mask = @param:mask -> half{{1, {TOKENS}, {TOKENS}}}",
    ]
    value, count, n = "x", 0, 0
    while count < operators:
        block = [*norm(value, n), *weights(n), f"o{n} = mul(n{n}, u{n})", f"l{n} = add({value}, o{n})"]
        block += [*norm(f"l{n}", n + 1), *gelu(f"n{n + 1}", n + 1), f"l{n + 1} = add(l{n}, f{n + 1})"]
        lines += block
        value, count, n = f"l{n + 1}", count + len(block) - 1, n + 2
    return "\n".join([*lines, f"@return({value})\n"])


def stage_time(program: Program, stage: str, repeats: int = REPEATS) -> tuple[float, float, Program]:
    """Milliseconds to take a program through the stages up to one, with rules declared and all else new: of the clock and
    of the processor. And the program then."""
    times = []
    for repeat in range(repeats + 1):
        # another name, so that nothing is remembered of the program
        units = tuple(
            replace(u, kernels=tuple(replace(m, name=f"r{repeat}") for m in u.kernels)) for u in program.units
        )
        started, used = time.perf_counter(), time.process_time()
        lowered = program.with_units(units).lower(stage)
        times.append((time.perf_counter() - started, time.process_time() - used))
    clock, processor = (statistics.median(column) * 1e3 for column in zip(*times[1:], strict=True))
    return clock, processor, lowered


def main(sizes: list[int]) -> None:
    """Print a line for each size."""
    print("                                            ms by the clock            ms of the processor")
    print("operators  values  kernels  distinct   simplify    fuse      all   simplify    fuse      all")
    for size in sizes:
        program = genrw.load(graph(size))
        operators = sum(1 for _ in walk(program.modules[0].root)) - len(program.inputs) - 1
        simplify, simplify_used, simple = stage_time(program, "simplify")
        values = sum(1 for _ in walk(simple.modules[0].root)) - len(program.inputs) - 1
        fuse, fuse_used, fused = stage_time(simple, "fuse")
        whole, whole_used, _ = stage_time(program, program.stages[-1], 2)
        (unit,) = fused.units
        calls = len(unit.main.calls) if unit.main is not None else 1
        print(
            f"{operators:9}  {values:6}  {calls:7}  {len(unit.kernels):8}  {simplify:9.0f}  {fuse:6.0f}  {whole:7.0f}"
            f"  {simplify_used:9.0f}  {fuse_used:6.0f}  {whole_used:7.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [40, 80, 160, 400, 800, 1600])
