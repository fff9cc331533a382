"""An editor for tests: a process with the server, spoken to as the protocol says."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_PATIENCE = 60
_REQUEST_FAILED = -32803


class Refusal(Exception):
    """What the server told in place of an answer that it refused."""


class Editor:
    """One session with `genrw lsp`, which writes what fails to the file `log`."""

    def __init__(self, folder: Path, *arguments: str, log: Path = Path(os.devnull)) -> None:
        command = [str(Path(sys.executable).with_name("genrw")), "lsp", *arguments]
        self.log = log
        with log.open("wb") as failed:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=failed, cwd=folder
            )
        self.folder = folder
        self._answers: dict[int, queue.Queue[Any]] = {}
        self.diagnostics: dict[str, list[Any]] = {}
        self._first: dict[tuple[str, int | None], list[Any]] = {}
        self._told = threading.Condition()
        self._last = 0
        self._versions: dict[str, int] = {}
        threading.Thread(target=self._read, daemon=True).start()
        root = {"uri": folder.as_uri(), "name": "root"}
        self.capabilities = self.ask(
            "initialize", {"processId": None, "rootUri": root["uri"], "capabilities": {}, "workspaceFolders": [root]}
        )["capabilities"]
        self.tell("initialized", {})

    # ---- messages

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            self._take(json.loads(stream.read(length)))

    def _take(self, message: Any) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            with self._told:
                params = message["params"]
                self.diagnostics.setdefault(params["uri"], []).append(params["diagnostics"])
                self._first.setdefault((params["uri"], params.get("version")), params["diagnostics"])
                self._told.notify_all()
        elif "id" in message and "method" not in message:
            self._answers[message["id"]].put(message)

    def _send(self, message: Any) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def ask(self, method: str, params: Any) -> Any:
        """A request's result; Refusal if it is refused. Any other error is one of the test."""
        self._last += 1
        answer = self._answers[self._last] = queue.Queue()
        self._send({"id": self._last, "method": method, "params": params})
        message = answer.get(timeout=_PATIENCE)
        if message.get("error", {}).get("code") == _REQUEST_FAILED:
            raise Refusal(message["error"]["message"])
        assert "error" not in message, message
        return message["result"]

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    # ---- texts

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> list[Any]:
        """Open a text; what is wrong with it."""
        (self.folder / name).write_text(text, encoding="utf-8")
        version = self._next(name)
        document = {"uri": self.uri(name), "languageId": "x", "version": version, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return self._findings(name, version)

    def change(self, name: str, text: str) -> list[Any]:
        """Change a whole text; what is wrong with it at once."""
        version = self._next(name)
        document = {"uri": self.uri(name), "version": version}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self._findings(name, version)

    def _next(self, name: str) -> int:
        self._versions[name] = self._versions.get(name, 0) + 1
        return self._versions[name]

    def _findings(self, name: str, version: int) -> list[Any]:
        """What is told first of one version of a text."""
        key = self.uri(name), version
        with self._told:
            assert self._told.wait_for(lambda: key in self._first, _PATIENCE)
            return self._first[key]

    def wait(self, name: str, seen: int) -> list[Any]:
        """The findings told after so many times."""
        with self._told:
            told = self.diagnostics.setdefault(self.uri(name), [])
            assert self._told.wait_for(lambda: len(told) > seen, _PATIENCE)
            found: list[Any] = told[seen]
            return found

    def at(self, method: str, name: str, line: int, character: int, **more: Any) -> Any:
        """Ask about a place."""
        place = {"line": line, "character": character}
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": self.uri(name)}, "position": place, **more})

    def close(self) -> int:
        """End the session; the status of the process."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.process.wait(_PATIENCE)
