"""How soon `genrw watch` shows a change: of a program, and of a rule at each stage that has some."""

from __future__ import annotations

import itertools
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from table import parser, report

import genrw
from genrw.authoring.rulesets import shipped_folder

BAR = 100.0
EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAMS = ("softmax", "layernorm", "transpose_add")


class Watched:
    """A process that watches a program under a copy of the shipped rules."""

    def __init__(self, program: Path, rules: Path, stage: str) -> None:
        command = [str(Path(sys.executable).with_name("genrw")), "watch", str(program), "--stage", stage]
        command += ["--rules", str(rules), "--no-shipped-rules"]
        self.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
        self.lines: Queue[tuple[float, str]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._until("@return")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put((time.perf_counter(), line))

    def _until(self, start: str) -> float:
        while True:
            seen, line = self.lines.get(timeout=60)
            if line.startswith(start):
                return seen

    def change(self, path: Path, text: str) -> tuple[float, float]:
        """Milliseconds from writing a file to the difference: by the clock, and of the processor."""
        time.sleep(0.15)
        used, started = self._processor(), time.perf_counter()
        path.with_suffix(".new").write_text(text, encoding="utf-8")
        path.with_suffix(".new").replace(path)
        seen = self._until("# ")
        return (seen - started) * 1e3, (self._processor() - used) * 1e3

    def _processor(self) -> float:
        """Seconds that the process has run."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def shapes(text: str) -> Iterator[str]:
    """The program with other lengths, one after the other."""
    longest = max(re.findall(r"\d{3,}", text), key=int)
    return (text.replace(longest, str(int(longest) - 64 * n)) for n in itertools.count(1))


def edits(text: str, rule: str) -> Iterator[str]:
    """The rule file with a guard at a rule that refuses all matches, of another text each time."""
    found = re.search(rf"^rule {rule}\n(?P<left>(?:.*\n)*?)(?=  <?=>)", text, re.MULTILINE)
    assert found is not None, rule
    left = found["left"].rstrip("\n")
    joined = f"{left} and " if re.search(r"\bwhen\b", left) else f"{left} when "
    for n in itertools.count():
        yield f"{text[: found.start('left')]}{joined}{n} > {n}\n{text[found.end('left') :]}"


def optional_rules(program: Path, rules: Path) -> dict[str, tuple[str, Path]]:
    """For each stage a rule without which the program becomes another one there, and its file."""
    loaded = genrw.load(program, rules=[rules], shipped=False)
    used = loaded.lower(loaded.stages[-1]).trace.survived
    found: dict[str, tuple[str, Path]] = {}
    for rule in loaded.library.rules:
        if rule.name in used and rule.stages[0] not in found:
            path = Path(rule.span.source.name)
            if changes(program, rules, rule.stages[0], path, next(edits(rule.span.source.text, rule.name))):
                found[rule.stages[0]] = (rule.name, path)
    return found


def changes(program: Path, rules: Path, stage: str, path: Path, text: str) -> bool:
    """Does another text of a rule file make another program at a stage, and none that is wrong?"""
    stages = (stage, genrw.load(program, rules=[rules], shipped=False).stages[-1])
    before = [genrw.lower(program, name, rules=[rules], shipped=False) for name in stages]
    kept = path.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    try:
        after = [genrw.lower(program, name, rules=[rules], shipped=False) for name in stages]
    except genrw.GenrwError:
        return False
    finally:
        path.write_text(kept, encoding="utf-8")
    return all(a != b for a, b in zip(before, after, strict=True))


def main() -> None:
    given = parser(__doc__ or "", 11).parse_args()
    folder = Path(tempfile.mkdtemp())
    rules = folder / "rules"
    shutil.copytree(shipped_folder(), rules, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    rows = []
    for name in PROGRAMS:
        program = folder / f"{name}.gen"
        shutil.copy(EXAMPLES / program.name, program)
        rows.append([f"{name}, another shape", *changed_program(program, rules, given.times)])
    program = folder / f"{PROGRAMS[0]}.gen"
    last = genrw.load(program).stages[-1]
    for stage, (rule, path) in optional_rules(program, rules).items():
        for shown in dict.fromkeys((stage, last)):
            title = f"{program.stem}, a rule of {stage}, shown at {shown}"
            rows.append([title, *changed_rule(program, rules, shown, rule, path, given.times)])
    shutil.rmtree(folder)
    table = [[title, clock, processor, BAR, clock / BAR] for title, clock, processor in rows]
    report(["a change of", "median ms", "of the processor", "bar ms", "ratio"], table, given.json)


def changed_program(program: Path, rules: Path, times: int) -> tuple[float, float]:
    """The medians of changes of a program's shape."""
    texts = shapes(program.read_text(encoding="utf-8"))
    with watched(program, rules, "final") as process:
        process.change(program, next(texts))
        return medians(process.change(program, next(texts)) for _ in range(times))


def changed_rule(program: Path, rules: Path, stage: str, rule: str, path: Path, times: int) -> tuple[float, float]:
    """The medians of changes of a rule, each under a shape of the program that was not seen before."""
    text = path.read_text(encoding="utf-8")
    texts, programs = edits(text, rule), shapes(program.read_text(encoding="utf-8"))
    found = []
    with watched(program, rules, stage) as process:
        for _ in range(times + 1):
            process.change(program, next(programs))
            found.append(process.change(path, next(texts)))
            process.change(path, text)
    return medians(found[1:])


@contextmanager
def watched(program: Path, rules: Path, stage: str) -> Iterator[Watched]:
    """A process that watches; the program is put back."""
    before = program.read_text(encoding="utf-8")
    process = Watched(program, rules, stage)
    try:
        yield process
    finally:
        process.end()
        program.write_text(before, encoding="utf-8")


def medians(found: Iterable[tuple[float, float]]) -> tuple[float, float]:
    clock, processor = zip(*found, strict=True)
    return statistics.median(clock), statistics.median(processor)


if __name__ == "__main__":
    main()
