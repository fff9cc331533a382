"""What tests ask of a browser."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Browser:
    """What tests ask of a browser."""

    driver: Any

    def open(self, path: Path) -> None:
        """Show a page, in a window of its own size."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.set_window_size(1600, 900)
        self.driver.get(path.as_uri())

    def complaints(self) -> list[str]:
        """What stands in the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """What the page asked for since it was opened, itself included."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
