"""One GPU through its vendor's runtime: the same steps for AMD and NVIDIA, under each vendor's names."""

from __future__ import annotations

import ctypes
import re
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.compilers import own_part
from genrw.codegen.runtime.refusals import Refused
from genrw.grammar.diagnostics import error

_SHOWN_LOG = 2000
_BYTES = re.compile(r"""\bb(["'])(?P<text>.*?)\1""")


@dataclass(frozen=True, eq=False)
class Mark:
    """A place in a stream's work, by an event that is freed when nobody holds the mark any more."""

    event: Any


Launcher = Callable[[Sequence[int], int], None]
"""Starts a kernel on memories in the order of its arguments, on a stream."""


class Parameters:
    """The arguments of a kernel's launches as vendors' functions take them: an array of addresses, each of a pointer.

    They are made once. A launch under way has them to itself: another thread's launch gets a further set. `described`
    says for places in the order of the arguments what the kernel takes in place of a pointer: an object, and its address.
    """

    def __init__(self, count: int, described: Mapping[int, Callable[[int], tuple[object, int]]] | None = None) -> None:
        self._count = count
        self._described = dict(described or {})
        self._free: list[tuple[Any, Any, int]] = []

    def started(self, pointers: Sequence[int], start: Callable[[int], None]) -> None:
        """Have `start` launch with the address of an array that leads to the pointers."""
        try:
            taken = self._free.pop()
        except IndexError:
            taken = self._new()
        try:
            taken[0][:] = pointers
            made = [(place, *describe(pointers[place])) for place, describe in self._described.items()]
            for place, _, address in made:
                taken[1][place] = address
            start(taken[2])
        finally:
            self._free.append(taken)

    def _new(self) -> tuple[Any, Any, int]:
        values = (ctypes.c_void_p * self._count)()
        first, size = ctypes.addressof(values), ctypes.sizeof(ctypes.c_void_p)
        places = (ctypes.c_void_p * self._count)(*(first + i * size for i in range(self._count)))
        return values, places, ctypes.addressof(places)


class GpuRuntime(ABC):
    """A GPU. Pointers and streams are addresses; stream 0 is the default one.

    All methods raise GenrwError with the vendor's word for what went wrong. A vendor's class gives its functions for
    the steps, by the names used here, with the same arguments.
    """

    name: str
    """The device's name on the command line."""
    kind: int
    """DLPack's number for this sort of device."""
    remedy: str
    """What to do where the vendor's libraries are missing."""
    number: int
    """Which of this machine's GPUs."""
    arch: str
    """What kernels are compiled for, such as `sm_90` or `gfx942`."""
    model: str
    """What the vendor calls the GPU."""
    functions: Mapping[str, Callable[..., Any]]
    is_sooner_by_graphs = False
    """Was it measured that a graph of launches starts sooner than these?"""

    @abstractmethod
    def count(self) -> int:
        """How many GPUs of this sort the machine has."""

    @property
    @abstractmethod
    def compiler(self) -> str:
        """Name and version of what compiles kernels."""

    @abstractmethod
    def build(self, kernel: KernelSource) -> bytes:
        """Compile a printed kernel to a code object."""

    @abstractmethod
    def scratch_bytes(self, image: bytes, kernel: str) -> int:
        """The bytes of memory that a lane of a compiled kernel takes for what registers do not hold."""

    @abstractmethod
    def enter(self) -> None:
        """Make this GPU the calling thread's."""

    @abstractmethod
    def launcher(self, function: Any, kernel: KernelSource) -> Launcher:
        """What starts a kernel, the function that was loaded of it, on the GPU that is the calling thread's."""

    @abstractmethod
    def said(self, status: Any) -> str:
        """The vendor's word for a status."""

    def do(self, step: str, what: str, *arguments: Any) -> Any:
        """One of the vendor's functions: its result, or GenrwError that says what failed and why."""
        return self.call(what, self.functions[step], *arguments)

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The same for any function that gives a status and perhaps a result."""
        try:
            given = function(*arguments)
        except RuntimeError as problem:  # how the bindings say that there is no library
            raise error(f"{what}: {_sentence(problem)}", remedy=self.remedy) from None
        status, *results = given if isinstance(given, tuple) else (given,)
        if int(status) != 0:
            raise error(f"{what}: {self.said(status)}")
        return results[0] if results else None

    # ---- kernels

    def load(self, image: bytes, kernel: str, dynamic_lds_bytes: int = 0) -> Any:
        """The function of a kernel in a code object; its launches ask for so much workgroup memory."""
        self.enter()
        module = self.do("module", f"kernel {kernel} does not load", image)
        function = self.do("function", f"kernel {kernel} is not in its module", module, kernel.encode())
        if dynamic_lds_bytes:
            self.allow_lds(function, dynamic_lds_bytes)
        return function

    def allow_lds(self, function: Any, size: int) -> None:
        """Let launches of a function ask for so many bytes of workgroup memory."""
        raise error(f"{function}: launches on {self.name} ask for no workgroup memory, not for {size} bytes")

    # ---- memory

    def allocate(self, size: int) -> int:
        """So many bytes of the GPU's memory, aligned to 256."""
        self.enter()
        return int(self.do("allocate", f"the GPU has no {size} bytes left", max(size, 1)))

    def free(self, pointer: int) -> None:
        """Give memory back."""
        self.enter()
        self.do("free", "memory cannot be freed", pointer)

    def allocate_on(self, size: int, stream: int) -> int:  # noqa: ARG002
        """The same for what a stream does from now on; it need not wait for the GPU."""
        return self.allocate(size)

    def free_behind(self, pointer: int, streams: Collection[int | None]) -> None:  # noqa: ARG002
        """Give memory back behind the work of streams, of which the first one is that which it was taken for; None is any."""
        self.free(pointer)

    def write(self, pointer: int, array: Array, stream: int) -> None:
        """Copy an array to the GPU; done when it returns."""
        self.enter()
        self.do("write", "copying to the GPU failed", pointer, array.ctypes.data, array.nbytes, stream)
        self.synchronize(stream)

    def read(self, array: Array, pointer: int, stream: int) -> None:
        """Copy memory of the GPU to an array, after what the stream has yet to do; done when it returns."""
        self.enter()
        self.do("read", "copying from the GPU failed", array.ctypes.data, pointer, array.nbytes, stream)
        self.synchronize(stream)

    def copy(self, to: int, pointer: int, size: int, stream: int) -> None:
        """Start copying bytes from one place of the GPU's memory to another."""
        self.enter()
        self.do("duplicate", "copying on the GPU failed", to, pointer, size, stream)

    def fill(self, pointer: int, byte: int, size: int, stream: int) -> None:
        """Start setting bytes to a value."""
        self.enter()
        self.do("fill", "memory cannot be set", pointer, byte, size, stream)

    # ---- streams and events

    def synchronize(self, stream: int) -> None:
        """Wait for all that a stream has to do."""
        self.enter()
        self.do("synchronize", "the GPU reports a fault", stream)

    def mark(self, stream: int) -> Mark:
        """A mark behind all that a stream has to do up to now."""
        self.enter()
        event = self.do("event", "the GPU has no events left", 0)
        mark = Mark(event)
        weakref.finalize(mark, self._forget, event)
        self.move(mark, stream)
        return mark

    def move(self, mark: Mark, stream: int) -> None:
        """Put a mark behind all that a stream has to do up to now; what waits for it already waits for where it was."""
        self.do("record", "the stream cannot be used", mark.event, stream)

    def _forget(self, event: Any) -> None:
        self.enter()
        self.do("free event", "an event cannot be freed", event)

    def wait_for(self, mark: Mark, stream: int) -> None:
        """Have a stream wait for what lies before a mark."""
        self.enter()
        self.do("wait", "the stream cannot wait", stream, mark.event, 0)

    def times(self, run: Callable[[int], None], count: int) -> list[float]:
        """The times in microseconds that `count` runs take on the GPU, between events on a stream of their own."""
        self.enter()
        stream = int(self.do("stream", "the GPU has no streams left", 0))
        events = [self.do("event", "the GPU has no events left", 0) for _ in range(count + 1)]
        self.do("record", "an event cannot be recorded", events[0], stream)
        for event in events[1:]:
            run(stream)
            self.do("record", "an event cannot be recorded", event, stream)
        self.synchronize(stream)
        elapsed = [1000 * float(self.do("elapsed", "events give no time", *pair)) for pair in pairwise(events)]
        for event in events:
            self.do("free event", "an event cannot be freed", event)
        self.do("free stream", "a stream cannot be freed", stream)
        return elapsed

    def is_capturing(self, stream: int) -> bool:
        """Is what a stream is asked to do put into a graph?"""
        return int(self.do("capturing", "the stream cannot be used", stream)) != 0

    def captured(self, run: Callable[[int], None]) -> Callable[[int], None]:
        """What a run launches, as a graph: called with a stream, it launches all of it at once.

        The graph is freed when nobody holds the callable any more.
        """
        self.enter()
        stream = int(self.do("stream", "the GPU has no streams left", 0))
        self.do("capture", "launches cannot be captured", stream)
        run(stream)
        graph = self.do("captured", "launches cannot be captured", stream)
        whole = self.do("graph", "a graph cannot be made", graph, 0)
        self.do("free captured", "what was captured cannot be freed", graph)
        self.do("free stream", "a stream cannot be freed", stream)

        def launch(on: int) -> None:
            self.enter()
            self.do("launch graph", "a graph cannot be launched", whole, on)

        weakref.finalize(launch, self.do, "free graph", "a graph cannot be freed", whole)
        return launch


def vendor_module(package: str, name: str, remedy: str) -> Any:
    """A module of a vendor's bindings; GenrwError if they are not there."""
    try:
        return getattr(__import__(package, fromlist=[name]), name)
    except (ImportError, AttributeError):
        raise error(f"the Python module {package}.{name} is missing", remedy=remedy) from None


def _sentence(problem: RuntimeError) -> str:
    """What bindings say: its first sentence, and bytes in it as the text that they are."""
    text = _BYTES.sub(lambda m: m["text"], " ".join(str(problem).split()))
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]


def compiler_call(compiler: str, remedy: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A function of a vendor's run-time compiler: its result, or GenrwError where it is not there or fails."""
    try:
        status, *results = function(*arguments)
    except RuntimeError as problem:  # how the bindings say that there is no library
        raise error(f"{compiler} does not start: {_sentence(problem)}", remedy=remedy) from None
    if int(status) != 0:
        raise error(f"{compiler} failed: {status.name}")
    return results[0] if results else None


def refused(kernel: str, status: Any, log: bytes, unit: str) -> Refused:
    """The error for a source that a run-time compiler refuses: its status and its first messages."""
    said = log.rstrip(b"\0 \n").decode(errors="replace")
    message = f"kernel {kernel} does not compile: {status.name}\n{said[:_SHOWN_LOG]}"
    return Refused(message, own_part(unit, kernel), said)
