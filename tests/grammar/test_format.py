"""`genrw fmt`: layouts are stable, keep comments, and say what the text said before."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import files
from work import at_most

from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import parse_gen, print_gen
from genrw.grammar.gen_format import format_gen
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_format import format_rw
from genrw.main import execute

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
WRITTEN = sorted([*(ROOT / "rules").rglob("*.rw"), *(ROOT / "examples").glob("*.gen"), *(HERE / "data").glob("*.rw")])

UNTIDY_GEN = """\


   # head
@module   main[stage=simplify,target = gfx942]   # kept

x=@param:x="w.npy"->half{8,4},{4,1}   # an input



  c=@literal{1,-2}->float{2}
y , z = call [module=a , m={b:1,c={ 1,2}}](x,
     0.5,   # inside
       c)->{8,4}\t
   // a note
@return( y,z )

# end

"""

TIDY_GEN = """\
# head
@module main [stage=simplify, target=gfx942]   # kept

x = @param:x = "w.npy" -> half{8, 4}, {4, 1}   # an input

c = @literal{1, -2} -> float{2}
y, z = call[module=a, m={b: 1, c={1, 2}}](x,
     0.5,   # inside
       c) -> {8, 4}
// a note
@return(y, z)

# end
"""

UNTIDY_RW = """\
# Heading.
stage   simplify
class a=b+{c,d}-e
///About it.
rule one f[ axes , n=- 1,.. ]( x,{ n+1 } )   when(x.rank)>-1 and n  in[1,2]  # why
  => g@h( xs... , reduce_{ op }[..](x) ) with k=[d for d in x.lens[ 1 : n ] if d!=-1],m = ~k*(2-1)
   replaces
   # a note
   given x :float {4,8},one:float{4}=- 1 ,u=exp( x )
   example[wave,schedule={algo = block},space=[8 ,4]]exp( x )   gives x
   example
         exp[axes=[ 1 ]]( x
           # inside
         ,u )

   gives x
   counterexample[ ]f( x ),u
context   wave[ target=host ]
context[wave]
given  x:half{4} , {1},i=local_id()


# ---- a section
op two[axes:ints=x.lens[1:],n:int=-1](x:T tensor,ys:any...)->tensor(T,x.lens[ :1 ]) where T:real
        means reduce( "sum" , x,
                      axes)
  emit \"\"\"
    {{x}}   \"\"\"
target t:base
     size   (1+2)
     sizes [1,2]   # kept
     low -1
"""

TIDY_RW = """\
# Heading.
stage simplify
class a = b + {c, d} - e

/// About it.
rule one
  f[axes, n=-1, ..](x, {n + 1}) when (x.rank) > -1 and n in [1, 2]  # why
  => g@h(xs..., reduce_{ op }[..](x))
  with k = [d for d in x.lens[1:n] if d != -1], m = ~k * (2 - 1)
  replaces
  # a note
  given x: float{4, 8}, one: float{4} = -1, u = exp(x)
  example [wave, schedule={algo=block}, space=[8, 4]] exp(x) gives x
  example
        exp[axes=[1]](x
  # inside
        , u)
  gives x
  counterexample [] f(x), u
context wave [target=host]
context [wave]
given x: half{4}, {1}, i = local_id()

# ---- a section
op two[axes: ints = x.lens[1:], n: int = -1](x: T tensor, ys: any...) -> tensor(T, x.lens[:1]) where T: real
  means reduce("sum", x,
                axes)
  emit \"\"\"
    {{x}}   \"\"\"

target t : base
  size (1 + 2)
  sizes [1, 2]   # kept
  low -1
"""


def test_a_program() -> None:
    assert format_gen(UNTIDY_GEN) == TIDY_GEN
    assert format_gen(TIDY_GEN) == TIDY_GEN


def test_rules() -> None:
    assert format_rw(UNTIDY_RW) == TIDY_RW
    assert format_rw(TIDY_RW) == TIDY_RW


def test_what_is_written_is_laid_out_so() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in WRITTEN}
    layouts = {path: (format_rw if path.suffix == ".rw" else format_gen)(text) for path, text in texts.items()}
    assert [path.name for path in WRITTEN if layouts[path] != texts[path]] == []
    assert len(WRITTEN) > 60


@settings(max_examples=30, deadline=None)
@given(files)
def test_any_program_keeps_its_tree(tree: object) -> None:
    text = print_gen(tree)  # type: ignore[arg-type]
    laid_out = format_gen(text)
    assert parse_gen(laid_out) == parse_gen(text)
    assert format_gen(laid_out) == laid_out


GAPS = (" ", "  ", "\t", "\n   ", "\n", " # a note\n ", "\n\n      ", "\n# left\n  ")
DECLARATIONS = [
    piece for path in WRITTEN if path.suffix == ".rw" for piece in re.split(r"\n\n(?=///|rule|op)", path.read_text())
]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_any_spacing_of_rules_keeps_their_tree(seed: int) -> None:
    rng = random.Random(seed)
    text = respaced("\n\n".join(rng.sample(DECLARATIONS, 2)), rng)
    try:
        tree = parse_rw(text)
    except GenrwError:
        return
    laid_out = format_rw(text)
    assert parse_rw(laid_out) == tree
    assert format_rw(laid_out) == laid_out
    assert notes(laid_out) == notes(text)


@pytest.mark.parametrize("blank", ["\xa0", "\u3000", "\x0b", "\x0c", "\x85", "\u2028"])
def test_blanks_of_other_texts_are_blanks(blank: str) -> None:
    """Before documentation they made another comment of it, which was lost or laid out as the end of what stood before."""
    text = (
        f"stage final\n\nclass c = a + b\n\n{blank}/// Of this.\n{blank}rule{blank}one\n{blank}exp(x){blank}\n  => x\n"
    )
    assert parse_rw(text).declarations[-1].doc == "Of this."
    laid_out = format_rw(text)
    assert laid_out == "stage final\n\nclass c = a + b\n\n/// Of this.\nrule one\n  exp(x)\n  => x\n"
    assert parse_rw(laid_out) == parse_rw(text)


def respaced(text: str, rng: random.Random) -> str:
    """A text with other gaps here and there between its words, but not inside texts in quotes."""
    pieces = re.split(r'("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|(?:#|//)[^\n]*)', text)
    loose = rng.choice([0.0, 0.02, 0.1])

    def gap(match: re.Match[str]) -> str:
        return rng.choice(GAPS) if rng.random() < loose else match[0]

    return "".join(
        re.sub(r"(?<=\w) (?=\S)|(?<=[,(\[]) ?(?=\w)", gap, p) if i % 2 == 0 else p for i, p in enumerate(pieces)
    )


def notes(text: str) -> list[str]:
    return re.findall(r"# a note|# left", text)


def test_long_texts_take_no_longer_than_they_are() -> None:
    program = "x = f(" + "y," * 5_000 + "y)\n"
    with at_most(150 * len(program)):
        assert format_gen(program) == program.replace(",", ", ")
    rules = "stage a\n\n" + "\n\n".join(f"rule r{i}\n  f(x)\n  # a note\n  => g(x)" for i in range(300)) + "\n"
    with at_most(150 * len(rules)):
        assert format_rw(rules) == rules


# ---- the command


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.gen"
    (tmp_path / "b.rw").write_text("stage simplify\n")
    path.write_text("x=@param:x->float{4}\n@return(x)\n")
    assert execute(["fmt", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out == f"{path}\n"
    assert execute(["fmt", str(path), "--diff"]) == 0
    assert "+x = @param:x -> float{4}\n" in capsys.readouterr().out
    assert path.read_text().startswith("x=")
    assert execute(["fmt", str(tmp_path)]) == 0
    assert path.read_text() == "x = @param:x -> float{4}\n@return(x)\n"
    capsys.readouterr()
    assert execute(["fmt", str(tmp_path), "--check"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("before", ["", "\n", "   \n", "  ", "\t", "\n\n    "])
@pytest.mark.parametrize("mark", ["#", "//"])
@pytest.mark.parametrize("after", ["", "\nlet f(x) = x", "\n\nlet f(x) = x"])
def test_what_heads_a_file_does_so_wherever_it_stands(before: str, mark: str, after: str) -> None:
    text = f"{before}{mark} A heading,\n  {mark} of two lines.{after}\n"
    assert parse_rw(text).doc == "A heading,\nof two lines."
    laid_out = format_rw(text)
    assert parse_rw(laid_out) == parse_rw(text)
    assert format_rw(laid_out) == laid_out


@pytest.mark.parametrize("text", ["# alone", "# alone\n", "# one\n\n# two", "stage simplify\n# last"])
def test_a_comment_at_the_end_stays(text: str) -> None:
    assert format_rw(text) == text.rstrip("\n") + "\n"


def test_what_cannot_be_read_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.gen"
    path.write_text("x = (\n")
    assert execute(["fmt", str(path)]) == 2
    assert path.read_text() == "x = (\n"
    (tmp_path / "a.txt").write_text("x")
    assert execute(["fmt", str(tmp_path / "a.txt")]) == 2
    assert "is neither a .gen nor a .rw file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("missing", "there is no file missing"),
        ("missing.rw", "there is no file missing.rw"),
        ("-", "`fmt` lays out files where they lie, and `-` is none\n  help: name files, or folders of them"),
    ],
)
def test_what_is_no_file(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fmt", given]) == 2
    assert capsys.readouterr().err == f"error: {said}\n"
