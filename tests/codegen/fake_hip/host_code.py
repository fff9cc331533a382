"""What hiprtc would do, for a GPU whose part the CPU plays: HIP source to a library of this machine.

Called as `host_code.py FOLDER OPTION…`: reads source.hip in the folder, writes `code` there. clang sees source and
options first, as HIP for the GPU that they name, so that both are known to be right and messages are real.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from genrw.codegen.runtime.compilers import host_compiler, zig

HERE = Path(__file__).parent
_KERNEL = re.compile(r"^GEN_KERNEL(?:_RESIDENT)?\((\d+)(?:, \d+)?\)\s*(\w+)\(([^)]*)\)", re.MULTILINE)
_BODY = re.compile(r'^#line 1 "(?!gen\.hpp).*$', re.MULTILINE)
_AS_HIPRTC = ("-x", "hip", "--offload-device-only", "-nogpulib", "-nogpuinc", "-fsyntax-only")
_OPTIONS = ("-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-x", "c++", "-")
_EXPORT = 'extern "C" __attribute__((visibility("default")))'
# Lanes share workgroup memory, which for C++ would be each one's own.
_LDS = """#undef GEN_LDS
#undef GEN_REST_LDS
#define GEN_LDS(type, name, count) static thread_local type name[count]
#define GEN_REST_LDS(type, name, offset, count) alignas(16) static thread_local type name[count]
"""


def main(folder: Path, options: list[str]) -> int:
    source = folder / "source.hip"
    seen = subprocess.run([zig(), "clang", *_AS_HIPRTC, *options, str(source)], check=False)
    if seen.returncode == 0:
        build_library(source.read_text(), options, folder / "code")
    return seen.returncode


def build_library(source: str, options: list[str], library: Path) -> None:
    """The library of a source's one kernel: `fake_run(arguments, groups)`, and what the launch has to know about it."""
    ((block, name, parameters),) = _KERNEL.findall(source)
    types = [re.sub(r"\b__restrict__\b|\w+$", "", part.strip()).strip() for part in parameters.split(",")]
    (arch,) = (o.partition("=")[2] for o in options if o.startswith("--offload-arch="))
    facts = {"char fake_arch[]": f'"{arch}"', "char fake_kernel[]": f'"{name}"'}
    facts |= {"unsigned fake_block": block, "unsigned fake_arguments": str(len(types))}
    values = ", ".join(f"({type_})a[{i}]" for i, type_ in enumerate(types))
    text = [f"#define FAKE_BLOCK {block}", "#define __GFX9__ 1" if arch.startswith("gfx9") else ""]
    text += [(HERE / "lanes.hpp").read_text(), _BODY.sub(lambda line: _LDS + line[0], source)]
    text += [f"{_EXPORT} const {what} = {value};" for what, value in facts.items()]
    text += [f"static void lane(void* const* a) {{ {name}({values}); }}"]
    text += [f"{_EXPORT} int fake_run(void* const* a, unsigned groups) {{ return fake::run(lane, a, groups); }}\n"]
    tool = host_compiler()
    command = (*tool.command, "c++") if tool.is_zig else tool.command
    defines = [option for option in options if option.startswith("-D")]
    subprocess.run([*command, *_OPTIONS, *defines, "-o", str(library)], input="\n".join(text), text=True, check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
