"""What a module's header says of the program below it, compared with the program."""

from __future__ import annotations

from dataclasses import replace

from genrw.engine.ir.nodes import Module
from genrw.engine.library.library import Library
from genrw.engine.programs.operands import stored
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
    """GenrwError if a header's space is another one than the program's, where that still tells it: lanes store no tensors."""
    buffers = {id(parameter) for parameter in written_parameters(made, library).values()}
    results = [stored(node) for node in made.root.operands]
    if made.space is None or any(r.type.sort != "tensor" or id(r) in buffers for r in results):
        return
    try:
        right = with_space(replace(made, space=None, axes=()), library)
    except GenrwError:
        return
    if (right.space, right.axes) != (made.space, made.axes):
        span = next(a.value_span for a in module.attributes if a.name == "space")
        message = f"the program runs over {_over(right.space, right.axes)}, not over {_over(made.space, made.axes)}"
        raise error(message, span, "leave out `space` and `axes`: they follow from the program")


def _over(space: tuple[int, ...] | None, axes: tuple[int, ...]) -> str:
    lens = f"{{{', '.join(map(str, space or ()))}}}"
    return f"the rows of {lens} along {{{', '.join(map(str, axes))}}}" if axes else lens
