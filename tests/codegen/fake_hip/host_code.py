"""What hiprtc would do, for a GPU whose part the CPU plays: HIP source to a library of this machine.

Called as `host_code.py FOLDER OPTION…`: reads source.hip in the folder, writes `code` there. clang sees source and
options first, as HIP for the GPU that they name, so that both are known to be right and messages are real.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from genrw.codegen.compilers import zig
from genrw.codegen.host import compile_host
from genrw.grammar.cache import cache_folder

_KERNEL = re.compile(r"^GEN_KERNEL\((\d+)\)\s*(\w+)\(([^)]*)\)", re.MULTILINE)
_AS_HIPRTC = ("-x", "hip", "--offload-device-only", "-nogpulib", "-nogpuinc", "-fsyntax-only")


def main(folder: Path, options: list[str]) -> int:
    source = folder / "source.hip"
    seen = subprocess.run([zig(), "clang", *_AS_HIPRTC, *options, str(source)], check=False)
    if seen.returncode == 0:
        (folder / "code").write_bytes(host_library(source.read_text(), options))
    return seen.returncode


def host_library(source: str, options: list[str]) -> bytes:
    """The library of a source's one kernel, with what the launch has to know about it."""
    ((block, name, parameters),) = _KERNEL.findall(source)
    types = [re.sub(r"\b__restrict__\b|\w+$", "", part.strip()).strip() for part in parameters.split(",")]
    (arch,) = (o.partition("=")[2] for o in options if o.startswith("--offload-arch="))
    (wave,) = (int(o.partition("=")[2]) for o in options if o.startswith("-DGEN_WAVE_SIZE="))
    facts = {"char fake_arch[]": f'"{arch}"', "char fake_kernel[]": f'"{name}"'}
    facts |= {"unsigned fake_block": block, "unsigned fake_arguments": str(len(types))}
    export = 'extern "C" __attribute__((visibility("default"))) const'
    text = "\n".join([kernel_text(source), *(f"{export} {what} = {value};" for what, value in facts.items())])
    with tempfile.TemporaryDirectory() as cache:
        os.environ["GENRW_CACHE_DIR"] = cache
        compile_host(text, name, types, wave_size=wave, block=int(block), cooperative=True)
        (library,) = cache_folder("host").glob("*.so")
        return library.read_bytes()


def kernel_text(source: str) -> str:
    """A translation unit without the device header, which compiling for the host puts in front again."""
    return re.split(r'^#line 1 "(?!gen\.hpp).*\n', source, flags=re.MULTILINE)[-1]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
