"""Results of runs, kept in a folder."""

import json
import sys
import time
from pathlib import Path
from typing import Any


class Kept:
    """Results by part, set, way and seed; in memory, and in a folder if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._found: dict[str, Any] = {}
        self._since = time.monotonic()

    def has(self, *name: Any) -> bool:
        """Whether a run was done."""
        path = self._path(name)
        if self._title(name) not in self._found and path and path.exists():
            self._found[self._title(name)] = json.loads(path.read_text())
        return self._title(name) in self._found

    def get(self, *name: Any) -> Any:
        """The result of a run that was done."""
        return self._found[self._title(name)] if self.has(*name) else None

    def misses(self, *name: Any) -> bool:
        """Whether a run is to be done."""
        self._since = time.monotonic()
        return not self.has(*name)

    def put(self, part: str, of: str, way: str, seed: int, result: Any) -> None:
        """Keep the result of a run."""
        name = (part, of, way, seed)
        self._found[self._title(name)] = result
        path = self._path(name)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result))
        print(f"{self._title(name)}: {time.monotonic() - self._since:.1f} s", file=sys.stderr, flush=True)

    def _title(self, name: tuple[Any, ...]) -> str:
        return "-".join(str(part).replace(" ", "_").replace("|", "").replace(",", "") for part in name)

    def _path(self, name: tuple[Any, ...]) -> Path | None:
        return self._folder and self._folder / f"{self._title(name)}.json"
