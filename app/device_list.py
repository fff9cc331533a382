"""`genrw devices`: what programs can run on, and why not on the rest."""

from __future__ import annotations

import json

from genrw.codegen.runtime.compilers import host_compiler
from genrw.codegen.runtime.devices import GPU_SORTS, find_device, open_gpu
from genrw.grammar.diagnostics import GenrwError
from genrw.terminal import write, write_table


def show(as_json: bool) -> None:
    """Print the devices as a table or as JSON."""
    rows = [_host(), {"device": "interpret", "there": True, "what": "numpy, over all groups and lanes"}]
    for sort in GPU_SORTS:
        rows += _gpus(sort)
    if as_json:
        write(json.dumps(rows, indent=2))
    else:
        write_table(
            ["device", "target", "what"],
            [
                [str(r["device"]), str(r.get("target", "")), str(r["what"] if r["there"] else f"not here: {r['what']}")]
                for r in rows
            ],
        )


def _host() -> dict[str, object]:
    try:
        what = f"this CPU, with {host_compiler().command[0]}"
    except GenrwError as problem:
        return {"device": "host", "there": False, "what": problem.diagnostics[0].message}
    return {"device": "host", "target": find_device("host").default_target, "there": True, "what": what}


def _gpus(sort: str) -> list[dict[str, object]]:
    try:
        first = open_gpu(sort)
        gpus = [first, *(open_gpu(sort, number) for number in range(1, first.count()))]
    except GenrwError as problem:
        return [{"device": sort, "there": False, "what": problem.diagnostics[0].message}]
    names = [sort, *(f"{sort}:{gpu.number}" for gpu in gpus[1:])]
    return [
        {"device": name, "target": gpu.arch, "there": True, "what": gpu.model}
        for name, gpu in zip(names, gpus, strict=True)
    ]
