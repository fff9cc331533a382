"""The functions of the Python API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genrw.arguments import check_settings, folders, named
from genrw.authoring.rulesets import load_library
from genrw.engine.fusion.stage import SEARCH, plan_named
from genrw.engine.lowering.options import DEFAULT_POLICY, Options
from genrw.grammar.diagnostics import error
from genrw.grammar.read import read_text
from genrw.grammar.source import Source
from genrw.onnx.file import SUFFIX
from genrw.program import Program

if TYPE_CHECKING:
    from genrw.executable import Executable

Folders = Sequence[str | Path]

_READ_WITH = ("rules", "shipped", "trust_rules", "dims")
_LOWERED_WITH = ("target", "strict", "schedule", "policy", "plan")

# What a file's path does not hold and every program does: a line end or a call.
_TEXT = re.compile(r"[\n(]")


def load(
    path_or_text: str | Path,
    *,
    rules: Folders = (),
    shipped: bool = True,
    target: str | None = None,
    strict: bool = False,
    schedule: Mapping[str, Any] | None = None,
    policy: str = DEFAULT_POLICY,
    plan: str = SEARCH,
    dims: Mapping[str, int] | None = None,
    trust_rules: bool = False,
) -> Program:
    """Read and check a `.gen` program: a path, or its text. A path that ends with `.onnx` is a model's; `dims` are the
    lengths of its symbolic dimensions.

    `rules` names folders of rules beside the shipped ones, or instead of them where `shipped` is false.
    `trust_rules` lets the C++ of these folders be compiled whatever it says; else what could do harm is refused.
    `strict` lowers by exact rules only; `schedule` pins entries of the schedule; `policy` names what chooses
    the others. `plan` says how kernels are formed: by "search", or "exact", which only small programs allow. A target that is not given is the one in the program's header, else the rules' default. GenrwError with
    all problems found.
    """
    named(path_or_text, "give the path of a program, or its text")
    check_settings(
        {
            "shipped": shipped,
            "target": target,
            "strict": strict,
            "policy": policy,
            "plan": plan,
            "trust_rules": trust_rules,
        }
    )
    options = Options(target or "", strict, _pinned(schedule), policy, plan_named(plan))
    if str(path_or_text).endswith(SUFFIX):
        written = [f"{name}={length}" for name, length in (dims or {}).items()]
        loaded = load_model(path_or_text, options, rules, shipped, dims=written)
    elif dims:
        raise error("only ONNX models have symbolic dimensions", remedy="leave out `dims`")
    else:
        loaded = load_source(_source(path_or_text), options, rules=rules, shipped=shipped)
    return replace(loaded, trusted=trust_rules)


def load_model(
    path: str | Path,
    options: Options,
    rules: Folders = (),
    shipped: bool = True,
    default_target: str = "",
    dims: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> Program:
    """The program of an ONNX model. `dims` are texts `N=8`; `inputs`, texts `x=file.npy`, are arrays for inputs that
    shapes may depend on."""
    from genrw.onnx.program import import_file

    library = load_library(folders(rules), shipped=shipped, examples=False)
    model = import_file(path, library, dims, inputs, options.target or default_target or library.default_target)
    return model.program(str(path), library, options, default_target)


def load_source(
    source: Source,
    options: Options,
    *,
    rules: Folders = (),
    shipped: bool = True,
    default_target: str = "",
) -> Program:
    """The same for a text that was read already; a target left open is the header's, else the default."""
    return Program.parse(source, load_library(folders(rules), shipped=shipped, examples=False), options, default_target)


def _source(path_or_text: str | Path) -> Source:
    if isinstance(path_or_text, str) and _TEXT.search(path_or_text):
        return Source("<text>", path_or_text)
    return read_text(path_or_text)


def lower(program: Program | str | Path, stage: str | None = None, **settings: Any) -> str:
    """The program at a stage, by default the last, as `.gen` text. Settings are those of `load`."""
    loaded = _loaded(program, settings)
    return str(loaded.lower(loaded.stages[-1] if stage is None else stage))


def emit(program: Program | str | Path, **settings: Any) -> str:
    """The HIP C++ of the program's kernels. Settings are those of `load`."""
    return source_text(_loaded(program, settings))


def source_text(program: Program) -> str:
    """The HIP C++ of all kernels as one text."""
    return "\n".join(kernel.text for kernel in program.kernels())


def ir_text(program: Program | str | Path, **settings: Any) -> str:
    """The program's kernels in the IR that the HIP C++ is printed from. Settings are those of `load`."""
    from genrw.codegen.kernel_ir.text import ir_text as text_of

    return text_of(_loaded(program, settings))


def compile(
    program: Program | str | Path, target: str | None = None, *, device: str = "host", **settings: Any
) -> Executable:
    """Compile the program for a device: the CPU, as a target's kernels, by default its own; or a GPU, `hip` or `cuda`, with
    `:N` for the one of a number.

    The result is called on arrays, in the parameters' order or by their names: numpy's, or on a GPU any that lie there and
    say so by DLPack or `__cuda_array_interface__`. Settings are those of `load`. GenrwError if there is no such device.
    """
    from genrw.codegen.runtime.devices import find_device
    from genrw.executable import Executable

    found = find_device(device)
    return Executable(_loaded(program, {"target": target, **settings}, found.default_target), found)


def _loaded(program: Program | str | Path, settings: Mapping[str, Any], default_target: str = "") -> Program:
    """A program as the settings want it, for the default target where neither they nor a header name one."""
    loaded = program if isinstance(program, Program) else load(program, **settings)
    kept = loaded.options
    if loaded is program:
        _refuse_late(settings)
        check_settings(settings)
        kept = Options(
            settings.get("target") or kept.target,
            settings.get("strict", kept.strict),
            _pinned(settings.get("schedule") or kept.schedule),
            settings.get("policy", kept.policy),
            plan_named(settings.get("plan", kept.plan)),
        )
    if not loaded.target_chosen and not settings.get("target"):
        kept = replace(kept, target=default_target or loaded.library.default_target)
    return loaded if kept == loaded.options else loaded.with_options(kept)


def _refuse_late(settings: Mapping[str, Any]) -> None:
    """Refuse what a loaded program has already, and what is no setting of `load` at all."""
    for name in settings:
        if name in _READ_WITH:
            raise error(f"a program that is loaded was read already: `{name}` is too late", remedy="give it to load")
        if name not in _LOWERED_WITH:
            settings_are = ", ".join(_LOWERED_WITH)
            raise TypeError(f"there is no setting `{name}`: a loaded program takes {settings_are}")


def _pinned(schedule: object) -> dict[str, Any]:
    if schedule is not None and not isinstance(schedule, Mapping):
        raise error(f"the schedule is {schedule!r}", remedy='pin entries by name: schedule={"algo": "block"}')
    return {name: _entry(name, value) for name, value in (schedule or {}).items()}


def _entry(name: str, value: object) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_entry(name, part) for part in value)
    if not isinstance(value, bool | int | float | str):
        raise error(f"the schedule entry `{name}` is {value!r}", remedy="give a number, a word, or a list of such")
    return value
