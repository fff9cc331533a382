"""The commands. What they do is imported when a command runs, so that `--help` is instant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from genrw.grammar.source import Source
    from genrw.program import Program
    from genrw.settings import Settings

app = typer.Typer(
    help="GPU kernels written as rewrite rules: lower .gen programs, print, compile and run them.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
rules_app = typer.Typer(help="What the rules are, and which of them programs use.")
app.add_typer(rules_app, name="rules")


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"genrw {version('genrw')}")
        raise typer.Exit


def _number(value: float) -> float:
    """NaN is above and below nothing, so that no bound refuses it."""
    if value != value:
        raise typer.BadParameter(f"{value} is no number")
    return value


def _named(text: str) -> str:
    """An empty text, as of a variable that a script left unset, would name the folder at hand."""
    if not text:
        raise typer.BadParameter("an empty text names no file or folder")
    return text


def _word(text: str) -> str:
    """An empty text would leave open what it is given for."""
    if not text:
        raise typer.BadParameter("an empty text names nothing")
    return text


def _path(text: str) -> Path:
    return Path(_named(text))


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


_STDIN = "-"
_ALL_STAGES = "all"

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A .gen program, or an .onnx model; - is a program on standard input.", parser=_named
    ),
]
Target = Annotated[
    str | None, typer.Option("--target", metavar="T", help="The machine to lower for: gfx942, host, …", parser=_word)
]
Rules = Annotated[
    list[Path] | None,
    typer.Option("--rules", metavar="DIR", help="A folder of rules to add; any number.", parser=_path),
]
NoShipped = Annotated[bool, typer.Option("--no-shipped-rules", help="Use the rules of --rules alone.")]
TrustRules = Annotated[
    bool,
    typer.Option("--trust-rules", help="Compile the C++ of --rules as it stands: it can do all that you can."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Use exact rules only.")]
Schedule = Annotated[
    list[str] | None,
    typer.Option(
        "--schedule",
        metavar="K=V,…",
        parser=_word,
        help="Pin entries of the schedule; policy=NAME chooses the others; any number.",
    ),
]
Plan = Annotated[
    str, typer.Option("--plan", metavar="P", help="How kernels are formed: search, or exact for small programs.")
]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="N=8", help="The length of a symbolic dimension of a model; any number."),
]
Inputs = Annotated[list[str] | None, typer.Option("--input", metavar="X=A.NPY", help="An input; others are random.")]
Output = Annotated[Path | None, typer.Option("-o", metavar="FILE", help="Write there, not to stdout.", parser=_path)]
RuleNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="RULE", help="Rules by name; else those of --rules, else all."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def lower(
    file: File,
    stage: Annotated[
        str | None,
        typer.Option("--stage", metavar="S", help="The stage to print, or all; else the last.", parser=_word),
    ] = None,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
    output: Output = None,
) -> int:
    """Print the program at a stage."""
    program = _load(file, _settings(target, strict, schedule, plan, rules, no_shipped_rules))
    if stage == _ALL_STAGES:
        text = "\n".join(f"# {name}\n{at_stage}" for name, at_stage in program.remaining_stages())
    else:
        text = str(program.lower(program.stages[-1] if stage is None else stage))
    return _print(text, output)


@app.command()
def emit(
    file: File,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    trust_rules: TrustRules = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
    ir: Annotated[bool, typer.Option("--ir", help="Print the kernels in the IR that C++ is printed from.")] = False,
    output: Output = None,
) -> int:
    """Print the HIP C++ of the program's kernels."""
    from genrw.api import ir_text, source_text

    program = _load(file, _settings(target, strict, schedule, plan, rules, no_shipped_rules, trust_rules))
    return _print(ir_text(program) if ir else source_text(program), output)


@app.command("compile")
def compile_command(
    file: File,
    output: Annotated[Path, typer.Option("-o", metavar="DIR", help="The folder to write to.", parser=_path)],
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    trust_rules: TrustRules = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
) -> int:
    """Write NAME.hip, NAME.co (for AMD targets) and launch.json."""
    from genrw.codegen.runtime.compile import compile_program
    from genrw.output import write_files
    from genrw.tuned import with_winners

    program = _load(file, _settings(target, strict, schedule, plan, rules, no_shipped_rules, trust_rules))
    compiled = compile_program(with_winners(program))
    write_files(output, compiled.files)
    return _print("\n".join(str(output / name) for name in compiled.files), None)


@app.command()
def run(
    file: File,
    device: Annotated[str, typer.Option("--device", metavar="D", help="host, interpret, hip or cuda.")] = "host",
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="S", help="The stage that the interpreter runs.", parser=_word)
    ] = None,
    inputs: Inputs = None,
    dim: Dims = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with the program in double.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of random inputs.")] = 0,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Write NAME.npy there.", parser=_path)
    ] = None,
    order: Annotated[
        int, typer.Option("--order", min=0, max=2**32 - 1, help="A seed that shuffles groups and waves.")
    ] = 0,
    profile: Annotated[bool, typer.Option("--profile", help="Show how long each kernel takes.")] = False,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=0.1, callback=_number, help="The time that kernels may take on the CPU."),
    ] = 600.0,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    trust_rules: TrustRules = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
) -> int:
    """Run the program, by default as a kernel of the device's own target."""
    from genrw.codegen.runtime.devices import find_device
    from genrw.runner import Run
    from genrw.runner import run as run_program

    default = find_device(device).default_target
    settings = _settings(target, strict, schedule, plan, rules, no_shipped_rules, trust_rules)
    program = _load(file, settings, default, dim or (), inputs or ())
    return run_program(
        program,
        Run(device, stage, tuple(inputs or ()), check, seed, save, order, bool(rules), seconds, profile),
    )


@app.command()
def bench(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A program, a folder of programs, or a shipped suite.", parser=_named)
    ] = "gpu",
    device: Annotated[
        str, typer.Option("--device", metavar="D", help="hip or cuda, with :N for the GPU of a number; or host.")
    ] = "cuda",
    only: Annotated[
        str | None, typer.Option("--only", metavar="TEXT", help="Cases whose name holds this.", parser=_word)
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(
            "--peers",
            metavar="FILE",
            help="A Python file of functions to compare with: PyTorch's, on host numpy's.",
            parser=_path,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Each kernel of the suite once, at small extents.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which programs the suite random has.")] = 0,
    count: Annotated[int, typer.Option("--count", min=1, help="How many.")] = 200,
    programs: Annotated[
        Path | None,
        typer.Option("--programs", metavar="DIR", help="Write the programs of the cases there.", parser=_path),
    ] = None,
    times: Annotated[
        int, typer.Option("--times", min=1, help="Graphs, or on host launches, timed for each case.")
    ] = 15,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all figures there.", parser=_path)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the roofline there.", parser=_path)
    ] = None,
) -> int:
    """Check and time the programs of a suite on a GPU or the CPU."""
    from genrw.measure.bench_report import Request, run_bench

    return run_bench(Request(suite, device, only, peers, times, json_file, plot, quick, seed, count, programs))


@app.command()
def tune(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Programs, or folders of programs.", parser=_named)
    ],
    device: Annotated[str, typer.Option("--device", metavar="D", help="host, hip or cuda.")] = "host",
    best: Annotated[int, typer.Option("--best", min=1, help="How many schedules of each kernel, cheapest first.")] = 8,
    times: Annotated[int, typer.Option("--times", min=1, help="How many times each is timed.")] = 9,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all figures there.", parser=_path)
    ] = None,
    target: Target = None,
    plan: Plan = "search",
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    trust_rules: TrustRules = False,
    strict: Strict = False,
) -> int:
    """Measure the schedules of a program's kernels and keep the best for later compiles."""
    from genrw.codegen.runtime.devices import find_device
    from genrw.measure.tune import Request, program_sources, run_tune

    settings = _settings(target, strict, None, plan, rules, no_shipped_rules, trust_rules)
    default = find_device(device).default_target
    programs = {name: _load(source or name, settings, default) for name, source in program_sources(files).items()}
    return run_tune(programs, Request(device, best, times, json_file))


@app.command()
def devices(as_json: AsJson = False) -> int:
    """Show what programs can run on here."""
    from genrw.device_list import show

    show(as_json)
    return 0


@app.command("import")
def import_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An .onnx file.", parser=_named)],
    output: Annotated[Path, typer.Option("-o", metavar="DIR", help="The folder to write to.", parser=_path)],
    dim: Dims = None,
    inputs: Inputs = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
) -> int:
    """Write an ONNX model as NAME.gen and its constants as .npy files."""
    from genrw.authoring.rulesets import load_library
    from genrw.onnx.program import import_file
    from genrw.output import write_files

    library = load_library(rules or (), shipped=not no_shipped_rules, examples=False)
    files = import_file(model, library, dim or (), inputs or (), library.default_target).files(Path(model).stem)
    write_files(output, files)
    return _print("\n".join(str(output / name) for name in files), None)


@app.command()
def explain(
    file: File,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
    annotate: Annotated[
        bool, typer.Option("--annotate", help="Print all stages and the kernels, with the rules behind each line.")
    ] = False,
    compiled: Annotated[
        bool,
        typer.Option("--compiled", help="Compile the kernels, and show what lanes take and which schedules spill."),
    ] = False,
) -> int:
    """Show each kernel's schedules, what they should cost, and the rules that made it."""
    program = _load(file, _settings(target, strict, schedule, plan, rules, no_shipped_rules))
    if annotate:
        from genrw.explain.annotate import annotated

        return _print(annotated(program), None)
    from genrw.explain.report import show

    show(program, compiled)
    return 0


@app.command()
def view(
    file: File,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="The page; else the program's name with .html.", parser=_path),
    ] = None,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
) -> int:
    """Write a page that shows the stages side by side: where each value comes from, and what else it could be."""
    from genrw.explain.view import view_file

    return view_file(_load(file, _settings(target, strict, schedule, plan, rules, no_shipped_rules)), output)


@app.command()
def fmt(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE…", help=".gen and .rw files, or folders of them; else this folder.", parser=_path),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; status 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print what would change.")] = False,
) -> int:
    """Lay out programs and rule files; comments stay."""
    from genrw.authoring.formatting import format_files

    return format_files(files or (), check, diff)


@app.command()
def watch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .gen program.", parser=_path)],
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="S", help="The stage to show; else the last.", parser=_word)
    ] = None,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
) -> int:
    """Show a stage of a program, and what changes in it whenever the program or its rules do."""
    from genrw.explain.watching import watch_file

    return watch_file(file, stage, _settings(target, strict, schedule, plan, rules, no_shipped_rules))


@app.command("lsp")
def lsp_command(rules: Rules = None, no_shipped_rules: NoShipped = False) -> int:
    """Answer an editor: the language server, over standard input and output."""
    from genrw.editor.start import start

    return start(rules or (), not no_shipped_rules)


@rules_app.command("list")
def list_rules(rules: Rules = None, no_shipped_rules: NoShipped = False, as_json: AsJson = False) -> int:
    """Show every rule: its stage, place, contract and what it says of itself."""
    from genrw.authoring.rule_list import show
    from genrw.authoring.rulesets import load_library

    show(load_library(rules or (), shipped=not no_shipped_rules), as_json)
    return 0


@rules_app.command()
def check(rules: Rules = None, no_shipped_rules: NoShipped = False, as_json: AsJson = False) -> int:
    """Find rules that are superfluous, unreachable, endless, misplaced or constant, and operators that nothing lowers."""
    from genrw.authoring.rule_check import check_folders

    return check_folders(rules or (), not no_shipped_rules, as_json)


@rules_app.command("test")
def run_examples(
    names: RuleNames = None, rules: Rules = None, no_shipped_rules: NoShipped = False, as_json: AsJson = False
) -> int:
    """Run rules' examples and counterexamples: those of --rules, or of all; show where and how they fail."""
    from genrw.authoring.rule_test import run_tests

    return run_tests(names or (), rules or (), not no_shipped_rules, as_json)


@rules_app.command()
def verify(
    names: RuleNames = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    count: Annotated[int, typer.Option("--count", min=1, help="Instances of each rule.")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="What all random choices follow from.")] = 0,
    wave: Annotated[
        list[int] | None, typer.Option("--wave", metavar="N", min=1, help="Lengths of waves; 1, 32 and 64 without.")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, callback=_number, help="Time for each rule.")] = 120.0,
    memory: Annotated[int, typer.Option("--memory", metavar="MB", min=64, help="Memory for each rule.")] = 2048,
    trust_rules: TrustRules = False,
    as_json: AsJson = False,
) -> int:
    """Find rules that do not hold: compare both sides on random instances, prove rules over indices."""
    from genrw.engine.verify.surroundings import WAVES
    from genrw.engine.verify.verdict import Options
    from genrw.verifying.rule_verify import Request, verify_rules

    options = Options(count, seed, tuple(wave or WAVES))
    shipped, folders = not no_shipped_rules, tuple(rules or ())
    return verify_rules(Request(tuple(names or ()), folders, shipped, options, seconds, memory, as_json, trust_rules))


@rules_app.command("why-not")
def why_not(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The name of a rule.")],
    file: File,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
) -> int:
    """Show where the deepest match of a rule in a program fails, and the values that its guard saw."""
    from genrw.explain.why_not import tell

    return tell(rule, _load(file, _settings(target, strict, schedule, plan, rules, no_shipped_rules)))


@rules_app.command()
def trace(
    file: File,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="S", help="The stage to show; else all.", parser=_word)
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="K", help="The module to show; else all.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show rewrites that led to nothing, too.")] = False,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
) -> int:
    """Show the rewrites that lead to what each stage gives, in order, with the difference that each makes."""
    from genrw.explain.trace import show

    return show(
        _load(file, _settings(target, strict, schedule, plan, rules, no_shipped_rules)), stage, kernel, everything
    )


@rules_app.command()
def cover(
    programs: Annotated[
        list[str] | None, typer.Argument(metavar="PROGRAM…", help="Programs to lower.", parser=_named)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Tell of rules outside the folders, too.")] = False,
    target: Target = None,
    rules: Rules = None,
    no_shipped_rules: NoShipped = False,
    strict: Strict = False,
    schedule: Schedule = None,
    plan: Plan = "search",
    as_json: AsJson = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page, the rules coloured.", parser=_path)
    ] = None,
    xml: Annotated[
        Path | None, typer.Option("--xml", metavar="FILE", help="Write Cobertura XML.", parser=_path)
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="Keep what was seen there, from run to run.", parser=_path),
    ] = None,
) -> int:
    """Show which rules matter to programs, and which guards were seen both ways, there or in the rules' examples.

    The rules are those of the folders given with --rules, or all.
    """
    from genrw.coverage.report import Request, cover_files

    settings = _settings(target, strict, schedule, plan, rules, no_shipped_rules)
    request = Request(everything, as_json, html, xml, data)
    return cover_files({name: _load(name, settings) for name in programs or ()}, settings, request)


# ---- shared steps


def _settings(
    target: str | None,
    strict: bool,
    schedule: list[str] | None,
    plan: str,
    rules: list[Path] | None,
    no_shipped_rules: bool,
    trust_rules: bool = False,
) -> Settings:
    from genrw.settings import Settings

    pinned, folders = ",".join(schedule or ()), tuple(rules or ())
    return Settings(target, strict, pinned, plan, folders, not no_shipped_rules, trust_rules)


def _load(
    file: str | Source,
    settings: Settings,
    default_target: str = "",
    dims: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> Program:
    """The program in a file or of a text. A model's shapes depend on `dims`, and may depend on `inputs`."""
    from genrw.api import load_model, load_source
    from genrw.grammar.diagnostics import error
    from genrw.grammar.read import read_text
    from genrw.onnx.file import SUFFIX

    if isinstance(file, str) and file.endswith(SUFFIX):
        model = load_model(file, settings.options(), settings.rules, settings.shipped, default_target, dims, inputs)
        return replace(model, trusted=settings.trusted)
    if dims:
        raise error("only ONNX models have symbolic dimensions", remedy="leave out `--dim`")
    if isinstance(file, str):
        file = _standard_input() if file == _STDIN else read_text(file)
    loaded = load_source(
        file,
        settings.options(),
        rules=settings.rules,
        shipped=settings.shipped,
        default_target=default_target,
    )
    return replace(loaded, trusted=settings.trusted)


def _standard_input() -> Source:
    from genrw.grammar.diagnostics import error
    from genrw.grammar.read import read_stream

    # Python has none where the process was started with it closed.
    if sys.stdin is None:
        raise error("standard input is closed", remedy="name a file")
    return read_stream(sys.stdin.buffer, "<stdin>")


def _print(text: str, output: Path | None) -> int:
    from genrw.output import write_file
    from genrw.terminal import write

    if output is None:
        write(text)
    else:
        write_file(output, text.encode() if text.endswith("\n") else f"{text}\n".encode())
    return 0
