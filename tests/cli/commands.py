"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SOFTMAX = """\
x = @param:x -> half{8, 100}
m = reduce_max[axes={1}](x)
d = sub(x, m)
e = exp(d)
s = reduce_sum[axes={1}](e)
y = div(e, s)
@return(y)
"""


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Command = Callable[..., Result]
