"""Tables that commands write to files, as CSV or JSON lines."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamsvm.core.saving.snapshot import write_atomic

from ...runtime.folders import require_folder
from ...runtime.text import plural
from ...settings.sections import ConfigError


def require_table(path: Path | None) -> None:
    """Refuse a file that `write_table` cannot write before the work begins."""
    if path is not None and path.suffix not in (".csv", ".jsonl"):
        raise ConfigError([f"--out {path}: the name must end with .csv or .jsonl"])
    require_folder(path)


def write_table(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]], noun: str = "row") -> None:
    """Write rows as CSV or JSON lines, and print that.

    Parameters
    ----------
    path
        The file to write; its suffix is .csv or .jsonl.
    columns
        Names of the columns; a row may lack some.
    rows
        Values by column. True and False are 1 and 0 in CSV.
    noun
        What a row is.
    """
    text = "".join(json.dumps(row) + "\n" for row in rows) if path.suffix == ".jsonl" else _as_csv(columns, rows)
    write_atomic(path, text.encode())
    print(f"wrote {plural(len(rows), noun)} to {path}")


def _as_csv(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: int(value) if isinstance(value, bool) else value for name, value in row.items()})
    return file.getvalue()
