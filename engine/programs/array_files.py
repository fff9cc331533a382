"""Arrays in `.npy` files. The format has no name for bf16: its arrays are stored by their bits, as uint16."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.engine.ir.dtypes import dtype_name, numpy_dtype
from genrw.engine.ir.nodes import Node
from genrw.engine.ir.types import Type
from genrw.engine.language.functions import shown
from genrw.grammar.diagnostics import error
from genrw.grammar.source import Span

Array = npt.NDArray[Any]

_BITS_OF_BF16 = ("uint16", "void16")


def read_array(path: str | Path, parameter: Node) -> Array:
    """The array in a file, for a parameter; GenrwError if there is none or it does not fit."""
    wanted = parameter.type
    stored = of_type(_mapped(Path(path), parameter.span), wanted)
    if isinstance(stored, str):
        raise error(
            f"{path} holds {stored}, but the input `{parameter.attribute('name')}` is {type_text(wanted)}",
            parameter.span,
            "store an array of that type and shape",
        )
    return np.array(stored, dtype=numpy_dtype(wanted.dtype))


def of_type(array: Array, wanted: Type) -> Array | str:
    """An array as stored, read as of a type; where it is of another, what it holds."""
    if wanted.dtype == "bf16" and array.dtype.name in _BITS_OF_BF16:
        array = array.view(numpy_dtype(wanted.dtype))
    found = dtype_name(array.dtype.newbyteorder("="))
    if found == wanted.dtype and array.shape == wanted.lens:
        return array
    return f"{found or array.dtype.name}{shown(array.shape)}"


def read_beside(program: str, file: str, parameter: Node) -> Array:
    """The array in a file that a program names, which lies in the program's folder or below."""
    folder = Path(program).parent
    if Path(file).is_absolute() or not (folder / file).resolve().is_relative_to(folder.resolve()):
        raise error(f"the file `{file}` lies outside of the program's folder", parameter.span, "move it there")
    return read_array(folder / file, parameter)


def read_any_array(path: str | Path) -> Array:
    """The array in a file, whatever its type and shape; GenrwError if there is none."""
    return np.array(_mapped(Path(path)))


def named_files(given: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The names and paths of texts `x=file.npy`."""
    for text in given:
        name, _, path = text.partition("=")
        if not name or not path:
            raise error(f"the input {text!r} names no file", remedy="write `--input name=file.npy`")
        yield name, path


def _mapped(path: Path, place: Span | None = None) -> Array:
    """A file's array, mapped into memory, so that a wrong one is refused before it is read: at the parameter that it is for."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise error(f"there is no file {path}", place, "name one that numpy.save has written") from None
    except OSError as problem:
        remedy = "name a file that numpy.save has written"
        raise error(f"{path} cannot be read: {problem.strerror or problem}", place, remedy) from None
    except Exception as problem:  # numpy's reader raises whatever parsing a damaged header brings up
        # What numpy says of other files is advice to load them unsafely.
        reason = "" if "allow_pickle" in str(problem) else f": {str(problem).splitlines()[0]}"
        raise error(f"{path} holds no array{reason}", place, "write it with numpy.save") from None
    if not isinstance(array, np.ndarray):
        raise error(f"{path} holds several arrays", place, "write one array with numpy.save")
    return array


def array_bytes(array: Array) -> bytes:
    """An array in the `.npy` format."""
    stored = array.view(np.uint16) if dtype_name(array.dtype) == "bf16" else array
    buffer = io.BytesIO()
    np.save(buffer, stored, allow_pickle=False)
    return buffer.getvalue()


def type_text(type_: Type) -> str:
    """A tensor's type as programs write it."""
    return f"{type_.dtype}{shown(type_.lens)}"
