"""C++ of rules that did not come with genrw: what it may say, and who ever compiles it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import genrw
from genrw.authoring.rulesets import load_library
from genrw.codegen.hip.trust import Vetting
from genrw.codegen.runtime import amd, compilers, host
from genrw.engine.language.expr_walk import free_names
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError
from genrw.main import execute

PROGRAM = "x = @param:x -> float{64}\ny = f(x)\n@return(y)\n"
HARMLESS = """\
namespace gen {
/* A constant, and a struct with a function: isn't that harmless? */
template <class T>
struct scaled
{
    T factor;
    GEN_DEVICE T of(T x) const { return x * factor; }
};

// One step of a loop that is unrolled.
GEN_DEVICE float own(float x)
{
    const scaled<float> twice{2.0f};
    float y = 0.0f, parts[2] = {x, 1e-3f};
    GEN_UNROLL
    for (int i = 0; i < 2; ++i) {
        if (i % 2 == 0 && !(x != x)) y += parts[i] > 0 ? exp(parts[i]) : -parts[i];
    }
    const auto word = detail::bits<uint32>(y) & 0xffffff00u;
    return max(twice.of(detail::bits<float>(word)), static_cast<float>(sizeof(int32)));
}
}  // namespace gen
"""


def rules(folder: Path, emit: str = "gen::own({{x}})", device: str | None = HARMLESS, attributes: str = "") -> Path:
    """A folder with an operator `f`."""
    text = f"/// An operator.\nop f{attributes}(x: float) -> float\n  role pointwise\n  means x + 1\n  emit {json.dumps(emit)} prec cond\n"
    if device is not None:
        text += f'  device """\n{device}"""\n'
    folder.mkdir(exist_ok=True)
    (folder / "f.rw").write_text(text, newline="")
    return folder


def refusal(folder: Path, program: str = PROGRAM, **settings: object) -> str:
    with pytest.raises(GenrwError) as problem:
        genrw.emit(program, rules=[folder], **settings)  # type: ignore[arg-type]
    assert all(d.span is not None for d in problem.value.diagnostics)
    assert "--trust-rules" in (problem.value.diagnostics[-1].remedy or "")
    return str(problem.value)


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library with the operator `f`."""
    return load_library([rules(tmp_path_factory.mktemp("harmless") / "mine")])


def refused(library: Library, device: str) -> str:
    """What is said of the operator `f` with another `device` text."""
    with pytest.raises(GenrwError) as problem:
        Vetting(library).device(replace(library.operators["f"].decl, device=device))
    assert "--trust-rules" in (problem.value.diagnostics[-1].remedy or "")
    return str(problem.value)


def body(statement: str) -> str:
    return f"namespace gen {{\nGEN_DEVICE float own(float x)\n{{\n    {statement}\n    return x;\n}}\n}}\n"


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ('#include "/etc/passwd"\n', "has a preprocessor line"),
        ("  #  pragma once\n", "has a preprocessor line"),
        ("%:include <stdlib.h>\n", "has a preprocessor line"),
        ("/* a */ # define max min\n", "has a preprocessor line"),
        ("??=include <stdlib.h>\n", "has `??`"),
        ("// a comment \\\n#include <stdlib.h>\n", "has a backslash in a comment"),
        ("// a comment ??/\nint x;\n", "has a backslash in a comment"),
        ("// a comment\r#include <stdlib.h>\n", "has the character U+000D"),
        ("/* without an end\n", "has a comment without an end"),
        ('const auto s = R"x( // )x";\n', "has a string"),
        ("const int c = 'a';\n", "has a string"),
        ("const int n = 1'000;\n", "has a string"),
        (body('asm volatile("nop");'), "has inline assembly"),
        (body('__asm__("nop");'), "has inline assembly"),
        (body("__asm { nop }"), "has inline assembly"),
        (body("as\\\nm(0);"), "has a backslash"),
        (body("\\u0061sm(0);"), "has a backslash"),
        (body('_Pragma("GCC poison x")'), "names `_Pragma`"),
        (body("GEN_PRAGMA(weak x)"), "uses the macro `GEN_PRAGMA`"),
        (body("GEN_BUILTIN(trap, trap)"), "uses the macro `GEN_BUILTIN`"),
        (body("__builtin_trap();"), "names `__builtin_trap`"),
        (body("x += __COUNTER__;"), "names `__COUNTER__`"),
        (body("system(0);"), "calls `system`"),
        (body("::system(0);"), "names what is outside of the device header"),
        (body("return ::system(0);"), "names what is outside of the device header"),
        (body("std::exit(0);"), "says `std`"),
        (body("using namespace std; exit(0);"), "calls `exit`"),
        (body("(exit)(0);"), "calls or casts what has no name"),
        (body("table[0](0);"), "calls or casts what has no name"),
        (body("[] { return 0; }();"), "calls or casts what has no name"),
        (body("*(int*)4096 = 0;"), "casts to a pointer"),
        (body("*detail::bits<int*>(4096ll) = 0;"), "casts to a pointer"),
        (body("reinterpret_cast<int&>(x) = 0;"), "says `reinterpret_cast`"),
        (body("new int;"), "says `new`"),
        (body("throw 1;"), "says `throw`"),
        ("extern int environ;\n", "says `extern`"),
        ("[[gnu::constructor]] GEN_DEVICE int f() { return 0; }\n", "has an attribute"),
        ("<:<:gnu::constructor]] GEN_DEVICE int f() { return 0; }\n", "has `<:`"),
        ("__attribute__((constructor)) static void f() {}\n", "names `__attribute__`"),
        ("int caf\u00e9 = 1;\n", "has the character U+00E9"),
        ("int a$b = 1;\n", "has the character `$`"),
        ("int a\x0cb = 1;\n", "has the character U+000C"),
    ],
)
def test_what_device_texts_may_not_say(harmless: Library, device: str, said: str) -> None:
    assert f"the `device` of `f` {said}" in refused(harmless, device)


def test_a_program_is_not_printed_with_such_a_text(tmp_path: Path) -> None:
    assert "the `device` of `f` calls `system`" in refusal(rules(tmp_path, device=body("system(0);")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("emit", "said"),
    [
        ("system({{x}})", "calls `system`"),
        ("sys{{ 'tem' }}({{x}})", "calls `system`"),
        ("{{ 'sys' ~ 'tem' }}({{x}})", "calls `system`"),
        ("{% if x %}exit{% else %}gen::exp{% endif %}({{x}})", "calls `exit`"),
        ("{{x}}({{x}})", "calls or casts what has no name"),
        ("({{x}}, asm(0), 1.0f)", "has inline assembly"),
        ("{{x}};\n#include <stdlib.h>\n1.0f", "has a preprocessor line"),
        ("{{x}} + __builtin_{{ 'trap' }}()", "names `__builtin_trap`"),
        ("{{x}} + ::{{ 'exp' }}({{x}})", "names what is outside of the device header"),
        ("{{ '\"' }}", "has a string"),
        ("{{x}} /* to the end", "has a comment without an end"),
    ],
)
def test_what_emit_texts_may_not_become(tmp_path: Path, emit: str, said: str) -> None:
    assert f"the `emit` of `f` {said}" in refusal(rules(tmp_path, emit, device=None))


def test_where_it_stands(tmp_path: Path) -> None:
    for ending in ("\n", "\r\n"):
        folder = rules(tmp_path / str(len(ending)))
        path = folder / "f.rw"
        path.write_text(
            path.read_text().replace("float y = 0.0f", "abort(); float y = 0.0f").replace("\n", ending), newline=""
        )
        line = path.read_text().split("abort();")[0].count("\n") + 1
        lines = refusal(folder).split("\n")
        assert lines[0].startswith(
            f"{path}:{line}:5: error: the `device` of `f` calls `abort`, which the device header does"
        )
        assert lines[1].lstrip().startswith("abort(); float")
        assert lines[2].strip() == "^^^^^"
    said = refusal(rules(tmp_path / "e", "gen::own({{x}}) + abs() + getpid()", HARMLESS))
    assert "f.rw:5:35: error: the `emit` of `f` calls `getpid`" in said


def test_a_harmless_text_runs(tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    y = genrw.compile(PROGRAM, rules=[rules(tmp_path)])(x)
    want = 2 * np.where(x > 0, np.exp(x), -x)
    np.testing.assert_allclose(y, np.maximum(want, 4), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["asm", "_Pragma", "__builtin_trap", "GEN_PRAGMA", "system", "std", "exp"])
def test_names_that_a_program_chooses(tmp_path: Path, name: str) -> None:
    """They are printed as names of values, whatever they are called."""
    program = f"{name} = @param:{name} -> float{{64}}\nexp.1 = exp({name})\ny = f(exp.1)\n@return(y)\n"
    made = genrw.compile(program, rules=[rules(tmp_path, "gen::own({{x}}) + 0.0f * {{x}}")])
    assert np.all(made(np.zeros(64, np.float32)) >= 4)


def test_every_position_is_looked_at(harmless: Library) -> None:
    """A `#` that is put anywhere but into a comment is found."""
    places = [i for i, c in enumerate(HARMLESS) if c in "{;("]
    assert len(places) > 20
    for i in places:
        assert "has a preprocessor line" in refused(harmless, f"{HARMLESS[: i + 1]}\n#error x\n{HARMLESS[i + 1 :]}")


@pytest.mark.slow
@pytest.mark.parametrize("word", ["system(0)", "1.0f); asm(0", "x\n#include <stdlib.h>\n"])
def test_words_that_a_program_brings(tmp_path: Path, word: str) -> None:
    program = PROGRAM.replace("f(x)", f"f[mode={json.dumps(word)}](x)")
    refusal(rules(tmp_path, "{{x}} + {{mode}}", None, "[mode: string]"), program)
    path = tmp_path / "f.rw"
    path.write_text(
        "/// A word as a number.\nop f[mode: string](x: float) -> float\n  role pointwise\n  means x + mode\n"
    )
    with pytest.raises(GenrwError, match="unknown name `mode`"):
        genrw.emit(program, rules=[tmp_path])
    with pytest.raises(GenrwError, match="unknown name `mode`"):
        genrw.emit(program, rules=[tmp_path], trust_rules=True)


def test_no_shipped_text_takes_a_word_of_a_program() -> None:
    """Unless the word is one of those that a condition lets pass, or a type."""
    for operator in load_library().operators.values():
        decl = operator.decl
        checked = {name for r in decl.requires for name in free_names(r.condition)}
        checked |= free_names(decl.result)
        words = [
            a.name for a in decl.attributes if a.type in ("string", "name", "any", "module") and a.name not in checked
        ]
        assert not any(f"{{{{{word}" in (operator.decl.emit or "") for word in words), operator.name


def test_comments_stay_comments(tmp_path: Path) -> None:
    (tmp_path / "m.rw").write_text(
        "/// Ends in \\\n/// or goes on\r#include <stdlib.h>\nmonoid longest\n  identity 0\n  combine max(a, b)\n",
        newline="",
    )
    text = genrw.emit(PROGRAM.replace("f(x)", "reduce_longest[axes={0}](x)") + "# ends \\", rules=[tmp_path])
    assert [line for line in text.splitlines() if line.startswith("#include")] == ['#include "gen.hpp"']
    assert not [line for line in text.splitlines() if line.startswith("//") and line.endswith("\\")]


# ---- who compiles


class Compiled(Exception):
    """A compiler was called."""


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Whoever compiles fails, or in another process leaves this file."""
    left = tmp_path / "compiled"
    script = tmp_path / "cxx"
    script.write_text(f"#!/bin/sh\ntouch {left}\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("GENRW_HOST_COMPILER", str(script))

    def fail(*_: object) -> None:
        raise Compiled

    for module in (compilers, amd):
        monkeypatch.setattr(module, "run_compiler", fail)
    monkeypatch.setattr(host, "_built", fail)
    return left


HOSTILE = body('asm(".incbin \\"/etc/passwd\\"");').replace("\\", "") + '#include "/etc/passwd"\n'
RULE = "\nstage simplify\n\nrule f_twice\n  f(f(x))\n  => f(x)\n  given x: float{8}\n"
RULE += "  example f(f(x)) gives f(x)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "lower {program}",
        "explain {program}",
        "explain {program} --annotate",
        "view {program} -o {folder}/page.html",
        "run {program} --device interpret",
        "rules list",
        "rules check",
        "rules test",
        "rules why-not f_twice {program}",
        "rules trace {program}",
        "rules cover {program}",
    ],
)
def test_who_never_compiles(no_compiler: Path, tmp_path: Path, command: str) -> None:
    folder = rules(tmp_path / "mine", device=HOSTILE)
    with open(folder / "f.rw", "a") as file:
        file.write(RULE)
    (tmp_path / "a.gen").write_text(PROGRAM)
    arguments = command.format(program=tmp_path / "a.gen", folder=tmp_path).split()
    assert execute([*arguments, "--rules", str(folder)]) in (0, 1)
    assert not no_compiler.exists()


def test_who_does_not_even_know_the_compilers() -> None:
    """What edits, checks and watches has nothing to do with kernels' text."""
    folder = Path(genrw.__file__).parent
    files = [path for package in ("authoring", "coverage", "editor") for path in (folder / package).glob("*.py")]
    files += [folder / "explain" / f"{name}.py" for name in ("watching", "why_not", "trace")]
    files.append(folder / "pytest_plugin.py")
    assert len(files) > 15
    for path in files:
        assert "genrw.codegen" not in path.read_text(encoding="utf-8"), path


def test_verifying_refuses(no_compiler: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rules(tmp_path / "mine", device=HOSTILE)
    assert execute(["rules", "verify", "--count", "3", "--rules", str(folder)]) == 1
    assert "the text of `f` was not tried: the `device` of `f` has inline assembly" in capsys.readouterr().err
    assert not no_compiler.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["emit", "compile -o {folder}/out", "run", "run --target gfx942 --check", "tune --best 1"]
)
def test_who_refuses(
    no_compiler: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENRW_TUNED", str(tmp_path / "tuned"))
    folder = rules(tmp_path / "mine", device=HOSTILE)
    (tmp_path / "a.gen").write_text(PROGRAM)
    arguments = [*command.format(folder=tmp_path).split(), str(tmp_path / "a.gen"), "--rules", str(folder)]
    assert execute(arguments) == 2 if "tune" not in command else execute(arguments) in (1, 2)
    said = capsys.readouterr()
    assert "the `device` of `f` has inline assembly" in said.err + said.out
    assert not (tmp_path / "out").exists()
    assert not no_compiler.exists()


def test_trusted_rules_are_compiled_as_they_stand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "#if GEN_HOST\n" + body('asm volatile("nop");') + "#else\n" + body("") + "#endif\n"
    folder = rules(tmp_path / "mine", device=text)
    (tmp_path / "a.gen").write_text(PROGRAM.replace("f(x)", "f(x)"))
    assert execute(["emit", str(tmp_path / "a.gen"), "--rules", str(folder), "--trust-rules"]) == 0
    assert 'asm volatile("nop");' in capsys.readouterr().out
    x = np.ones(64, np.float32)
    np.testing.assert_array_equal(genrw.compile(PROGRAM, rules=[folder], trust_rules=True)(x), x)
    loaded = genrw.load(PROGRAM, rules=[folder], trust_rules=True)
    assert "asm volatile" in genrw.emit(loaded, target="host")
    with pytest.raises(GenrwError, match="`trust_rules` is too late"):
        genrw.emit(loaded, trust_rules=True)
    with pytest.raises(GenrwError, match="has inline assembly"):
        genrw.compile(PROGRAM, rules=[folder])


def test_a_target_names_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.rw").write_text('target mine : gfx942\n  arch "gfx942 -include /etc/passwd"\n')
    (tmp_path / "a.gen").write_text(PROGRAM.replace("f(x)", "exp(x)"))
    arguments = ["compile", str(tmp_path / "a.gen"), "-o", str(tmp_path / "out"), "--target", "mine"]
    assert execute([*arguments, "--rules", str(tmp_path)]) == 2
    assert "which is no GPU's" in capsys.readouterr().err


@pytest.mark.parametrize(("emit", "meant"), [("gen::sinn({{x}})", "sin"), ("{{ 'gen::sqtr' }}({{x}})", "sqrt")])
def test_a_misspelled_function_comes_with_what_is_meant(tmp_path: Path, emit: str, meant: str) -> None:
    said = refusal(rules(tmp_path, emit=emit))
    assert f"help: did you mean `{meant}`? else read it: with `--trust-rules`" in said
