"""An editor for tests: a process with the server, spoken to as the protocol says."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_PATIENCE = 60


class Editor:
    """One session with `genrw lsp`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [str(Path(sys.executable).with_name("genrw")), "lsp", *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder
        )
        self.folder = folder
        self._answers: dict[int, queue.Queue[Any]] = {}
        self.diagnostics: dict[str, list[Any]] = {}
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
                self._told.notify_all()
        elif "id" in message and "method" not in message:
            self._answers[message["id"]].put(message)

    def _send(self, message: Any) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def ask(self, method: str, params: Any) -> Any:
        """A request's result; an error is one of the test."""
        self._last += 1
        answer = self._answers[self._last] = queue.Queue()
        self._send({"id": self._last, "method": method, "params": params})
        message = answer.get(timeout=_PATIENCE)
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
        document = {"uri": self.uri(name), "languageId": "x", "version": 1, "text": text}
        seen = len(self.diagnostics.get(self.uri(name), []))
        self.tell("textDocument/didOpen", {"textDocument": document})
        return self.wait(name, seen)

    def change(self, name: str, text: str) -> list[Any]:
        """Change a whole text; what is wrong with it at once."""
        seen = len(self.diagnostics.get(self.uri(name), []))
        version = self._versions[name] = self._versions.get(name, 1) + 1
        document = {"uri": self.uri(name), "version": version}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self.wait(name, seen)

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
