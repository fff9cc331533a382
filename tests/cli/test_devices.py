"""`genrw devices`, and devices that are not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

from genrw.codegen.runtime.devices import DEVICE_NAMES, open_gpu
from genrw.codegen.runtime.gpu_runtime import compiler_call
from genrw.grammar.diagnostics import GenrwError, error


@pytest.fixture(autouse=True)
def _no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(sort: str, number: int = 0) -> None:
        raise error(f"there is no {sort} GPU number {number}", remedy="plug one in")

    monkeypatch.setattr("genrw.codegen.runtime.devices.open_gpu", absent)
    monkeypatch.setattr("genrw.device_list.open_gpu", absent)


def test_every_device_is_listed(genrw: Command) -> None:
    result = genrw("devices")
    assert result.status == 0
    assert [line.split()[0] for line in result.out.splitlines()[1:]] == list(DEVICE_NAMES)
    assert "not here: there is no cuda GPU number 0" in result.out


def test_as_json(genrw: Command) -> None:
    rows = json.loads(genrw("devices", "--json").out)
    assert [row["device"] for row in rows] == list(DEVICE_NAMES)
    assert [row["there"] for row in rows] == [True, True, False, False]


@pytest.mark.parametrize("device", ["cuda", "hip:3"])
def test_a_missing_gpu(genrw: Command, softmax: Path, device: str) -> None:
    result = genrw("run", softmax, "--device", device)
    assert result.status == 2
    assert "GPU number" in result.err
    assert "plug one in" in result.err


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "host:1"])
def test_unknown_devices(genrw: Command, softmax: Path, device: str) -> None:
    result = genrw("run", softmax, "--device", device)
    assert f"there is no device `{device}`" in result.err
    assert "devices are host, interpret, hip, cuda" in result.err
    assert result.status == 2


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "failed to dlopen 'b'libamdhip64.so'': b'libamdhip64.so: cannot open shared object file'",
            "failed to dlopen 'libamdhip64.so': libamdhip64.so: cannot open shared object file",
        ),
        ('"cuda" is found by search. Ensure that it\n is installed.', '"cuda" is found by search'),
        ("Failed", "Failed"),
    ],
)
def test_what_bindings_say_is_one_plain_sentence(raised: str, said: str) -> None:
    def fail() -> None:
        raise RuntimeError(raised)

    with pytest.raises(GenrwError) as problem:
        compiler_call("hiprtc", "install it", fail)
    assert problem.value.diagnostics[0].message == f"hiprtc does not start: {said}"


def test_gpus_that_cannot_be_opened_say_why() -> None:
    with pytest.raises(GenrwError) as problem:
        open_gpu("cuda", 99)
    assert problem.value.diagnostics[0].remedy
