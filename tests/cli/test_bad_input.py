"""Whatever a program or a rule file holds: a diagnostic and exit status 2."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from commands import Command
from work import at_most

LOOKING = [("rules", "trace"), ("rules", "why-not", "one_divided"), ("view", "-o", "page.html"), ("lower",)]
"""What takes a program and only looks at it, up to the program's name."""

X = "x = @param:x -> float{4, 2}\n"

PROGRAMS = {
    "unknown operator": (X + "y = expp(x)\n@return(y)\n", "2:5: error: unknown operator `expp`"),
    "too few operands": (X + "y = add(x)\n@return(y)\n", "2:5: error: `add` takes 2 operands, not 1"),
    "too many operands": (X + "y = exp(x, x)\n@return(y)\n", "2:5: error: `exp` takes 1 operand, not 2"),
    "shape mismatch": (
        X + "z = @param:z -> float{3}\ny = add(x, z)\n@return(y)\n",
        "3:5: error: `add` cannot combine x of shape {4, 2} with z of shape {3}",
    ),
    "axis out of range": (
        X + "y = reduce_sum[axes={7}](x)\n@return(y)\n",
        "2:21: error: axis 7 is out of range for x, which has 2 dimensions",
    ),
    "undefined name": (X + "y = add(x, q)\n@return(y)\n", "2:12: error: `q` is not defined"),
    "duplicate name": (X + "x = exp(x)\n@return(x)\n", "2:1: error: `x` is already defined"),
    "no return": (X + "y = exp(x)\n", "2:1: error: the program has no `@return`"),
    "unknown attribute": (X + "y = exp[speed=3](x)\n@return(y)\n", "error: `exp` has no attribute `speed`"),
    "unknown type": ("x = @param:x -> floaty{4}\n@return(x)\n", "error: "),
    "symbolic length": ("x = @param:x -> float{N}\n@return(x)\n", "error: the length `N` is not a number"),
    "huge tensor": ("x = @param:x -> float{99999999, 99999999, 9}\n@return(x)\n", "error: "),
    "deep parentheses": ("x = " + "(" * 10_000 + ")" * 10_000, "error: brackets are nested more than"),
    "deep lists": (X + f"y = exp[a={'{' * 10_000}{'}' * 10_000}](x)\n@return(y)\n", "error: brackets are nested"),
    "empty": ("", "error: the program is empty"),
    "comments only": ("# nothing\n// here\n", "error: the program is empty"),
    "unknown stage": ("@module m [stage=last]\n" + X + "@return(x)\n", "error: there is no stage `last`"),
    "unknown target": ("@module m [target=gfx1]\n" + X + "@return(x)\n", "1:19: error: unknown target `gfx1`"),
    "behind the return": (X + "@return(x)\ny = exp(x)\n", "3:1: error: `@return` ends a module, and this is behind it"),
    "two returns": (X + "@return(x)\n@return(x)\n", "3:1: error: `@return` ends a module, and this is behind it"),
    "signs between operands": (
        X + "y = x + x\n@return(y)\n",
        "help: write the operator's name before its operands: op(x, y)",
    ),
    "type of another language": ("x = @param:x -> float32{4}\n@return(x)\n", "help: did you mean `float`?"),
    "misspelled type": ("x = @param:x -> duoble{4}\n@return(x)\n", "help: did you mean `double`?"),
    "type of another language as an attribute": (
        X + "y = convert[target_type=bfloat16](x)\n@return(y)\n",
        "help: did you mean `bf16`?",
    ),
    "integers for reals": (
        "x = @param:x -> int8{4}\ny = exp(x)\n@return(y)\n",
        "help: convert it to half, bf16, float or double",
    ),
    "integers beside reals": (
        "x = @param:x -> float{4}\ni = @param:i -> int8{4}\ny = add(i, x)\n@return(y)\n",
        "help: convert one: convert[target_type=float](i)",
    ),
    "operand of what has none": (X + "y = local_id(x)\n@return(y)\n", "help: write local_id()"),
    "requirement without a remedy": (
        "x = @param:x -> float{0, 4}\ny = reduce_max[axes={0}](x)\n@return(y)\n",
        "help: what `reduce_max` requires is declared at rules/ops/reduce.rw:",
    ),
    "unknown header": ("@module m [speed=1]\n" + X + "@return(x)\n", "error: a module header has no `speed`"),
    "same module twice": (
        f"@module m\n{X}@return(x)\n@module m\n{X}@return(x)\n",
        "error: module `m` is defined twice",
    ),
    "axes of nothing": ("y = concat[axis=0]()\n@return(y)\n", "1:12: error: `axis` counts axes of the first operand"),
    "infinite integers": ("y = @literal{1, inf} -> int8{2}\n@return(y)\n", "1:1: error: inf is no int8"),
    "large integers": ("y = @literal{128} -> int8{2}\n@return(y)\n", "help: int8 runs from -128 to 127"),
    "integers beside nan": (
        "x = @param:x -> uint16{3}\ny = max(x, nan)\n@return(y)\n",
        "2:12: error: nan is no uint16",
    ),
    "integers beside negative ones": (
        "x = @param:x -> uint64{3}\ny = max(x, -1)\n@return(y)\n",
        "2:12: error: -1 is no uint64",
    ),
    "literal operator of what is no number": (
        "y = literal[value={1, a}, dtype=float, lens={2}]()\n@return(y)\n",
        "1:19: error: `value` holds what is no float",
    ),
    "literal operator of too few": (
        "y = literal[value={1, 2}, dtype=float, lens={3}]()\n@return(y)\n",
        "1:19: error: `value` is one number, or as many as the shape {3} has",
    ),
    "lane's constant out of range": (
        "z = @param:z -> int8{4}\ni = local_id()\nc = constant[value=nan, dtype=int8]()\ns = store(z, i, c)\n@return(s)\n",
        "3:20: error: `value` is no int8",
    ),
    "map as a value": (
        "c = constant[value={a=1}, dtype=int8]()\n@return(c)\n",
        "1:20: error: attribute `value` is a number, a text or a list",
    ),
    "index of more than 64 bits": (
        X + f"i = iadd({2**63}, 1)\ny = load(x, i)\n@return(y)\n",
        "2:10: error: 9223372036854775808 is no index",
    ),
    "index whose opposite has more than 64 bits": (
        X + f"i = iadd({-(2**63)}, 1)\ny = load(x, i)\n@return(y)\n",
        "2:10: error: -9223372036854775808 is no index",
    ),
    "attribute that makes a negative length": (
        "i = local_id()\nj = strided_index[size=-2, stride=4](i)\n@return(j)\n",
        "2:24: error: the result of `strided_index` has a length of -2 here",
    ),
    "truth value as an index": (
        X + "i = iadd(true, 1)\ny = load(x, i)\n@return(y)\n",
        "2:10: error: an index is a whole number",
    ),
    "attribute of more than 64 bits": (
        X + f"y = slice[axes={{0}}, starts={{{2**63}}}, ends={{3}}](x)\n@return(y)\n",
        "2:28: error: attribute `starts` is a list of whole numbers of 64 bits",
    ),
    "shape without a type": (
        "l = lds_allocate[shape={4, 4}]()\n@return(l)\n",
        "1:24: error: attribute `shape` is an element type and lengths",
    ),
    "parameter as an operator": (
        "y = param[name=a, dtype=float, lens={2}, strides={-1}]()\n@return(y)\n",
        "1:5: error: `param` is no operation of programs",
    ),
    "result as an operator": (X + "y = return(x)\n@return(x)\n", "2:5: error: `return` is no operation of programs"),
    "parameter of accumulators": (
        "x = @param:x -> argmax.float{3}\n@return(x)\n",
        "1:17: error: `x` is of argmax.float, which only folds make",
    ),
    "returned number": (X + "@return(x, 5)\n", "2:12: error: a result has a name"),
    "nothing returned": (X + "@return()\n", "2:1: error: a program returns tensors, or the stores of its lanes"),
    "returned index": ("i = local_id()\n@return(i)\n", "2:9: error: a program returns tensors"),
    "returned mixture": (
        X + "z = @param:z -> float{8}\ni = local_id()\nv = load(x, i)\ns = store(z, i, v)\n@return(s, x)\n",
        "6:12: error: a program returns tensors, or the stores of its lanes; `x` is of sort tensor",
    ),
    "store into a value": (
        X + "y = exp(x)\ni = local_id()\nv = load(x, i)\ns = store(y, i, v)\n@return(s)\n",
        "5:11: error: `store` writes to a parameter",
    ),
    "missing module": (X + "y = call[module=k](x)\n@return(y)\n", "error: module `k` is not in this file"),
}


PROGRAMS |= {
    f"parameter of {type_}": (
        f"x = @param:x -> {type_}\ny = exp(x)\n@return(y)\n",
        "1:17: error: `@param` has a tensor's type, and this is a lane's",
    )
    for type_ in ("float[4]", "index", "index[4]", "scalar", "effect")
}


def chained_modules(count: int) -> str:
    """Modules each of which calls the one before it."""
    text = f"@module m0\n{X}y = exp(x)\n@return(y)\n"
    for i in range(1, count):
        text += f"@module m{i}\n{X}y = call[module=m{i - 1}](x)\n@return(y)\n"
    return text


def doubled_calls(count: int) -> str:
    """Modules each of which calls the one before it twice."""
    text = f"@module m0\n{X}y = exp(x)\n@return(y)\n"
    for i in range(1, count):
        text += f"@module m{i}\n{X}y = call[module=m{i - 1}](x)\nz = call[module=m{i - 1}](y)\n@return(z)\n"
    return text


def many(count: int) -> str:
    return "".join(f"p{i} = @param:p{i} -> float{{4}}\n" for i in range(count))


PROGRAMS |= {
    "deep calls": (chained_modules(1000), "error: modules call one another more than 100 deep"),
    "doubled calls": (doubled_calls(60), "error: calls make this a program of more than 20000 instructions"),
    "many parameters": (f"{many(3000)}@return(p0)\n", "2001:1: error: a program has no more than 2000 parameters"),
    "many results": (f"{X}@return({', '.join(['x'] * 1500)})\n", "error: a program has no more than 1000 results"),
    "many operands": (
        f"{many(300)}c = concat[axis=0]({', '.join(f'p{i}' for i in range(300))})\n@return(c)\n",
        "error: an operation has no more than 256 operands",
    ),
}

RULES = {
    "unbound variable": ("rule r\n  exp(x)\n  => exp(y)\n", "4:10: error: `y` is not bound by the left side"),
    "unused variable": ("rule r\n  add(x, y)\n  => x\n  with n = 3\n", "3:10: error: `y` is bound and never used"),
    "unused value": ("rule r\n  exp(x)\n  => x\n  with n = 3\n", "5:8: error: `n` is computed and never used"),
    "guard of the wrong type": (
        "rule r\n  exp(x) when x.lens\n  => x\n",
        "3:15: error: the guard of `r` is (4, 2), not true or false",
    ),
    "guard that is a text": (
        'rule r\n  exp(x) when "a"\n  => x\n',
        "3:15: error: the guard is a text, not a condition",
    ),
    "unknown operator": ("rule r\n  expp(x)\n  => x\n", "`expp`"),
    "unknown member": ("rule r\n  exp(x) when x.speed > 3\n  => x\n", "speed"),
    "same name twice": ("rule r\n  exp(x)\n  => x\nrule r\n  neg(x)\n  => x\n", "`r` is declared twice"),
    "wrong arity": ("rule r\n  exp(x, y)\n  => x\n", "3:3: error: `exp` takes 1 operand, not 2"),
    "no right side": ("rule r\n  exp(x)\n", "3:9: error: the rule has no `=>`"),
    "deep parentheses": ("rule r\n  exp(x) when " + "(" * 10_000 + "1" + ")" * 10_000 + "\n  => x\n", "the guard is"),
    "deep patterns": ("rule r\n  " + "exp(" * 10_000 + "x" + ")" * 10_000 + "\n  => x\n", "nested"),
    "no such stage": ("stage nowhere\nrule r\n  exp(x)\n  => x\n", "2:6: error: there is no stage `nowhere`"),
    "nonsense": ("%%% what\n", "2:1: error: expected "),
    "target of nothing": ("target t : nothing\n  wave_size 32\n", "the base target `nothing`"),
}

RESULTS = {
    "tensor(T, 5)": "`5` in place of a list of integers",
    "tensor(T, [-5])": "`-5` in place of a length",
    "tensor(T, [1.5])": "in place of a list of integers",
    "tensor(x, x.lens)": "a whole operand in place of an element type",
    'tensor("floaty", [5])': "`floaty` in place of an element type",
    "tensor(T)": "`tensor` of 1 parts in place of a result type",
    "banana(T)": "`banana` of 1 parts in place of a result type",
    "scalar(T, x.lens)": "in place of a length",
    "Q": "`Q` in place of an element type",
    "T + 1": "a result is an element type, or a call",
    "5": "a result is an element type, or a call",
}


def assert_told(status: int, out: str, err: str, said: str) -> None:
    """A call that ended as calls with bad input do."""
    assert status == 2, err
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert "genrw failed" not in err
    assert re.search(r"^(.*: )?error: ", err)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("command", ["lower", "run"])
def test_program(genrw: Command, tmp_path: Path, name: str, command: str) -> None:
    text, said = PROGRAMS[name]
    path = tmp_path / "bad.gen"
    path.write_text(text)
    result = genrw(command, path)
    assert_told(result.status, result.out, result.err, said)


@pytest.mark.parametrize("name", RULES)
def test_rules(genrw: Command, tmp_path: Path, name: str) -> None:
    text, said = RULES[name]
    (tmp_path / "bad.rw").write_text(text if text.startswith("stage") else f"stage simplify\n{text}")
    program = f"{X}y = exp(x)\n@return(y)\n"
    result = genrw("lower", "-", "--rules", tmp_path, stdin=program)
    assert_told(result.status, result.out, result.err, said)
    assert "bad.rw:" in result.err


@pytest.mark.parametrize("result", RESULTS)
def test_declared_results(genrw: Command, tmp_path: Path, result: str) -> None:
    (tmp_path / "bad.rw").write_text(f"op foo(x: T tensor) -> {result}\n  role pointwise\n  means x\n")
    told = genrw("lower", "-", "--rules", tmp_path, stdin=f"{X}y = foo(x)\n@return(y)\n")
    assert_told(told.status, told.out, told.err, RESULTS[result])
    assert "bad.rw:1:24: error: " in told.err


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\xff\xfe\x00", b"x = @param:x\0 -> float{4}\n@return(x)"])
def test_binary_junk(genrw: Command, tmp_path: Path, data: bytes) -> None:
    for name in ("a.gen", "a.rw"):
        (tmp_path / name).write_bytes(data)
    result = genrw("lower", tmp_path / "a.gen")
    assert_told(result.status, result.out, result.err, "error: ")
    result = genrw("lower", "-", "--rules", tmp_path, stdin=f"{X}@return(x)\n")
    assert_told(result.status, result.out, result.err, "a.rw:")


def test_files_that_are_none(genrw: Command, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.gen", tmp_path, "", "a\0b"):
        for command in (*LOOKING, ("emit",), ("run",), ("explain",)):
            result = genrw(*command, path)
            assert_told(result.status, result.out, result.err, "error: ")


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the program is empty"),
        ("\0", "error: "),
        (f"x = @param:x -> float{{{2**48}}}\n@return(x)\n", "1:17: error: the length 281474976710656 is out of range"),
        ("x = @param:x -> float{4, 8}, {-8, 1}\n@return(x)\n", "1:17: error: the stride -8 is out of range"),
        (f"x = @param:x -> float{{{2**24}, {2**24}}}\n@return(x)\n", "1:17: error: the tensor is too large"),
        (f"{X}y = nonesuch(x)\n@return(y)\n", "2:5: error: unknown operator `nonesuch`"),
    ],
)
def test_programs_that_cannot_be_looked_at(
    genrw: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], text: str, said: str
) -> None:
    """What was there before stays."""
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text("before")
    result = genrw(*command, "-", stdin=text)
    assert_told(result.status, result.out, result.err, said)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("page.html", "before")]


@pytest.mark.few(4)
@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize(
    "text",
    [
        "y = literal[value=1.0, dtype=float, lens={4}]()\n@return(y)\n",
        f"{X}@return(x)\n",
        "x = @param:x -> float{0, 4}\ny = exp(x)\n@return(y)\n",
        f"x = @param:x -> half{{{2**24}, {2**24 - 1}}}\ny = exp(x)\n@return(y)\n",
    ],
    ids=["no inputs", "no operations", "no elements", "many elements"],
)
def test_programs_that_are_unusual(
    genrw: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = genrw(*command, "-", stdin=text)
    assert (result.status, result.err) == (0, "")
    assert result.out


def test_rule_folders_that_are_none(genrw: Command, tmp_path: Path) -> None:
    result = genrw("rules", "list", "--rules", tmp_path / "missing")
    assert_told(result.status, result.out, result.err, "there is no folder")
    result = genrw("rules", "list", "--rules", tmp_path)
    assert_told(result.status, result.out, result.err, "has no .rw files")


@pytest.mark.parametrize("place", ["nowhere/out.gen", "file/out.gen", "."])
@pytest.mark.parametrize("command", ["lower", "emit"])
def test_places_that_cannot_be_written(genrw: Command, tmp_path: Path, place: str, command: str) -> None:
    (tmp_path / "file").write_text("")
    result = genrw(command, "-", "-o", tmp_path / place, stdin=f"{X}y = exp(x)\n@return(y)\n")
    assert_told(result.status, result.out, result.err, "cannot be written: ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("command", [("run", "--save"), ("compile", "--target", "gfx942", "-o")])
@pytest.mark.parametrize("place", ["file", "file/out"])
def test_folders_that_cannot_be_written(genrw: Command, tmp_path: Path, place: str, command: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("")
    result = genrw(command[0], "-", *command[1:], tmp_path / place, stdin=f"{X}y = exp(x)\n@return(y)\n")
    assert_told(result.status, result.out, result.err, "cannot be written: ")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("file", "")]


def test_a_schedule_that_is_not_legal(genrw: Command) -> None:
    program = f"{X}y = exp(x)\n@return(y)\n"
    result = genrw("lower", "-", "--schedule", "algo=block", stdin=program)
    assert_told(result.status, result.out, result.err, "no legal schedule of module `main` has algo=block")
    assert "  help: `algo` may be flat\n" in result.err


def test_a_schedule_of_which_one_entry_is_not_legal(genrw: Command) -> None:
    """The remedy has what that entry may be beside the others, not all that it may be anywhere."""
    program = "x = @param:x -> half{512, 256}\nw = @param:w -> half{256, 512}\ny = dot(x, w)\n@return(y)\n"
    pinned = "algo=matrix,instruction=wgmma_m64n64k16_f16,staged=1"
    result = genrw("lower", "-", "--target", "sm_90", "--schedule", pinned, stdin=program)
    assert_told(result.status, result.out, result.err, "no legal schedule of module `main` has algo=matrix, ")
    assert "  help: `instruction` may be mma_m16n8k16_f16; `staged` may be 2\n" in result.err


def test_many_values_of_an_entry_are_not_all_told(genrw: Command) -> None:
    program = "x = @param:x -> half{512, 256}\nw = @param:w -> half{256, 512}\ny = dot(x, w)\n@return(y)\n"
    result = genrw("lower", "-", "--target", "sm_90", "--schedule", "tile={7, 7, 7}", stdin=program)
    assert_told(result.status, result.out, result.err, "no legal schedule of module `main` has tile={7, 7, 7}")
    (remedy,) = (line for line in result.err.splitlines() if line.startswith("  help: "))
    assert remedy.count("{") == 8, remedy
    assert re.search(r"\} and \d+ more$", remedy), remedy


@pytest.mark.slow
def test_files_that_strangers_put_into_a_folder(genrw: Command, tmp_path: Path) -> None:
    """None is waited for, none is read without end, and one that is a text is only read."""
    places = {
        "pipe.rw": lambda path: os.mkfifo(path),
        "endless.rw": lambda path: path.symlink_to("/dev/zero"),
        "nowhere.rw": lambda path: path.symlink_to(tmp_path / "missing"),
        "itself.rw": lambda path: path.symlink_to(path),
        "folder.rw": lambda path: path.mkdir(),
        "large.rw": lambda path: path.write_bytes(b"#" * ((1 << 20) + 1)),
        "nulls.rw": lambda path: path.write_bytes(b"\0" * 4096),
        "two_bytes.rw": lambda path: path.write_text("stage simplify\n", encoding="utf-16"),
        "latin.rw": lambda path: path.write_text("# é\n", encoding="latin-1"),
        "comments.rw": lambda path: path.write_text("///\n" * (1 << 18)),
        "brackets.rw": lambda path: path.write_text("rule r " + "f(" * (1 << 16)),
        "quotes.rw": lambda path: path.write_text('rule r x when "' + '\\"' * (1 << 18)),
    }
    for name, make in places.items():
        folder = tmp_path / name
        folder.mkdir()
        make(folder / name)
        for command in (("rules", "check"), ("lower", "-")):
            with at_most(6_000_000):
                result = genrw(*command, "--rules", folder, stdin=f"{X}@return(x)\n")
            assert_told(result.status, result.out, result.err, name)


def test_more_rules_than_anybody_writes(genrw: Command, tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"{i}.rw").write_text("# \n" * (349_000))
    result = genrw("rules", "check", "--rules", tmp_path)
    assert_told(result.status, result.out, result.err, "are larger than 4 MiB together")


def test_ends_of_lines_and_a_byte_order_mark(genrw: Command, tmp_path: Path) -> None:
    text = "stage simplify\n\n/// Five times.\nrule five\n  neg(neg(neg(neg(neg(x))))) when x.rank > 1\n  => neg(x)\n"
    (tmp_path / "a.rw").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert genrw("lower", "-", "--rules", tmp_path, stdin=f"{X}@return(x)\n").status == 0
