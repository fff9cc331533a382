"""What stands beside our kernels does the same work: on inputs that lie as the program says, into memory of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import genrw
from genrw.engine.interpret.inputs import random_inputs
from genrw.grammar.source import Source
from genrw.measure.cases import BenchCase
from genrw.measure.counterparts import Counterparts
from genrw.measure.peers import own_results
from genrw.measure.torch_counterparts import strided_copy, torch_arrays, with_own_results

torch: Any = pytest.importorskip("torch")
PEERS = Path(__file__).parents[2] / "bench" / "peers.py"


@pytest.mark.parametrize(
    "strides", [(7, 1), (1, 5), (0, 1), (1, 8)], ids=["in order", "turned", "broadcast", "turned with gaps"]
)
def test_a_copy_has_the_same_strides_and_elements(strides: tuple[int, int]) -> None:
    memory = torch.arange(100.0)
    tensor = memory.as_strided((5, 7), strides)
    copy = strided_copy(tensor)
    assert copy.stride() == strides
    assert torch.equal(copy, tensor)
    assert copy.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()


VIEWS = {
    "a part": lambda x: x[1:],
    "turned": lambda x: x.T,
    "turned sums": lambda x: (x + 1).T,
    "both": lambda x: (x + 1, x),
}


@pytest.mark.parametrize("name", VIEWS)
def test_results_lie_in_order_in_memory_of_their_own(name: str) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    wanted = VIEWS[name](x)
    made = with_own_results(torch, VIEWS[name], [x])(x)
    for got, want in zip(made, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert got.is_contiguous()
        assert torch.equal(got, want)
        assert got.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_what_makes_its_own_results_is_left_alone() -> None:
    assert with_own_results(torch, torch.relu, [torch.zeros(3)]) is torch.relu


def test_numpy_copies_its_views_too() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    (turned, sums) = own_results((x.T, x + 1), [x.dtype, np.dtype(np.float16)], [x])
    assert turned.flags.c_contiguous
    assert not np.may_share_memory(turned, x)
    assert sums.dtype == np.float16


PROGRAM = """
x = @param:x -> half{10, 7}, {1, 12}
y = @param:y -> half{10, 7}
a = slice[axes={1}, starts={0}, ends={7}](x)
b = clip(a, -1, 1)
c = concat[axis=1](b, y)
@return(c)
"""


def test_what_traces_python_reads_counterparts() -> None:
    """PyTorch's compiler looks names up in the module that a function says it is of."""
    program = genrw.load(PROGRAM)
    function = Counterparts(PEERS).of(BenchCase("traced", Source("traced", PROGRAM), "traced"), program)
    assert function is not None
    arrays = torch_arrays(torch, program, random_inputs(program.origin[0], program.library, 0), "cpu")
    traced = torch.compile(function, backend="eager", fullgraph=True)
    for got, want in zip(traced(*arrays), function(*arrays), strict=True):
        assert torch.equal(got, want)
