"""What a module's header says of the program below it, compared with the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library
from genrw.engine.programs.orders import stored
from genrw.engine.programs.signature import written_parameters
from genrw.engine.programs.space import with_space
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import GenrwError, error


def check_results(module: tree.Module, made: Module, library: Library) -> None:
    """GenrwError if a header names more or fewer results than the program returns, or buffers that it does not write."""
    spans = {a.name: a.value_span for a in module.attributes}
    if made.root.op == library.boundary("result").name and len(made.results) != len(made.root.operands):
        message = f"the program returns {len(made.root.operands)} results, and its header names {len(made.results)}"
        raise error(message, spans["results"], "name each of them, or leave `results` out")
    written = written_parameters(made, library)
    odd = next((buffer for buffer in made.outputs if buffer not in written), None)
    if odd is not None:
        remedy = f"it writes {', '.join(written)}" if written else "leave `outputs` out"
        raise error(f"the program writes no parameter `{odd}`", spans["outputs"], remedy)


def check_space(module: tree.Module, made: Module, library: Library) -> None:
    """GenrwError if a header's space is another one than the program's. Lanes store no tensors: of their program it is told by
    what they store into."""
    if made.space is None:
        return
    written = written_parameters(made, library)
    buffers = {id(parameter) for parameter in written.values()}
    results = [stored(node) for node in made.root.operands]
    if any(r.type.sort != "tensor" or id(r) in buffers for r in results):
        _check_elements(module, made, written)
        return
    try:
        right = with_space(replace(made, space=None, axes=()), library)
    except GenrwError:
        return
    if (right.space, right.axes) != (made.space, made.axes):
        span = next(a.value_span for a in module.attributes if a.name == "space")
        message = f"the program runs over {_over(right.space, right.axes)}, not over {_over(made.space, made.axes)}"
        raise error(message, span, "leave out `space` and `axes`: they follow from the program")


def _check_elements(module: tree.Module, made: Module, written: Mapping[str, Node]) -> None:
    """GenrwError where lanes store into what has neither an element for each of the space nor one for each of its rows."""
    lens = made.space or ()
    elements, rows = prod(lens), prod(n for axis, n in enumerate(lens) if axis not in made.axes)
    odd = next((name for name, buffer in written.items() if buffer.type.elements not in (elements, rows)), None)
    if odd is not None:
        span = next(a.value_span for a in module.attributes if a.name == "space")
        message = f"lanes store {written[odd].type.elements} elements into `{odd}`, and the space has {elements}"
        message += f" in {rows} rows" if made.axes else ""
        raise error(message, span, "give the space that the kernel was lowered for")


def _over(space: tuple[int, ...] | None, axes: tuple[int, ...]) -> str:
    lens = f"{{{', '.join(map(str, space or ()))}}}"
    return f"the rows of {lens} along {{{', '.join(map(str, axes))}}}" if axes else lens
