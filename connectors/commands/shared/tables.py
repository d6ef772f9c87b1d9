"""Tables that commands write to files, as CSV, JSON lines or Parquet; a file is replaced when it is whole."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import IO, Any

from streamsvm.core.saving import snapshot

from ...records.parquet import require_pyarrow, write_rows
from ...records.people.label_files import PARQUET
from ...runtime.folders import require_folder
from ...runtime.text import plural
from ...settings.sections import ConfigError

TEXTUAL = (".csv", ".jsonl")

Row = Mapping[str, Any]


def require_table(path: Path | None, suffixes: Sequence[str] = TEXTUAL) -> None:
    """Refuse a file that cannot be written, before the work begins."""
    if path is not None and path.suffix not in suffixes:
        raise ConfigError(f"--out {path}: the name must end with {', '.join(suffixes[:-1])} or {suffixes[-1]}")
    if path is not None and path.suffix == PARQUET:
        require_pyarrow()
    require_folder(path)


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Row], noun: str = "row") -> None:
    """Write rows, one at a time, and print that.

    Parameters
    ----------
    path
        The file to write; its suffix is .csv or .jsonl, or .parquet if `columns` is a mapping.
    columns
        Names of the columns; for Parquet a mapping to their types.  A row may lack some.
    rows
        Values by column. In CSV True and False are 1 and 0; in CSV and JSON lines a time is a text.
    noun
        What a row is.
    """
    n_rows = count()
    counted = (row for row, _ in zip(rows, n_rows, strict=False))
    with snapshot.replacing(path) as file:
        if path.suffix == PARQUET:
            assert isinstance(columns, Mapping)
            write_rows(file, columns, counted)
        elif path.suffix == ".jsonl":
            _write_lines(file, counted)
        else:
            _write_csv(file, list(columns), counted)
    print(f"wrote {plural(next(n_rows), noun)} to {path}")


def _write_lines(file: IO[bytes], rows: Iterator[Row]) -> None:
    for row in rows:
        file.write(json.dumps(row, default=_as_text).encode() + b"\n")


def _write_csv(file: IO[bytes], columns: Sequence[str], rows: Iterator[Row]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _as_cell(value) for name, value in row.items()})
    text.detach()


def _as_cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return _as_text(value)
    return int(value) if isinstance(value, bool) else value


def _as_text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
