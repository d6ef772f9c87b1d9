"""Files of labels: CSV, JSON lines and Parquet, with a label in each row.

A row has the fields of a label (see `labels`) as columns; only the id and the label itself are required.  A column
``partition`` says where the label belongs; other columns, such as those that `streamsvm labels` adds, are ignored.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ...logs.transport import Record
from ...runtime.folders import FileError
from ..codec import Codec
from ..columns import MEANINGS, Columns, canonical
from ..files import SUFFIXES, parse_object
from ..formats.base import BadRecord
from ..parquet import read_rows

PARQUET = ".parquet"

_TEXTS = ("source", "query_id")
_Row = tuple[str, Mapping[str, Any]]  # its place, for messages, and its columns


class FileLabel(NamedTuple):
    """A label in a file: its place for messages, the fields of its record, and the partition or None."""

    where: str
    fields: dict[str, Any]
    partition: int | None


def read_label_file(path: Path, file_format: str, columns: Columns, codec: Codec) -> Iterator[FileLabel]:
    """Read a file of labels, in constant memory.

    Parameters
    ----------
    path
        The file.
    file_format
        "csv", "jsonl", or "auto" for the format that belongs to the suffix, which may also be .parquet.
    columns
        Columns of the id and of the label, "id" and "y" unless they are named, and the positive label.
    codec
        Knows the names of the classes.

    Raises
    ------
    FileError
        If the format is unknown, if a row is no label, or, at the end, if no label was the positive one.
    OSError
        If the file cannot be read.
    """
    try:
        for where, row in _rows(path, file_format):
            yield _label(where, row, columns, codec)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: {error}") from None
    columns.check_positive(path)


def _rows(path: Path, file_format: str) -> Iterator[_Row]:
    suffix = path.suffix.lower()
    kind = SUFFIXES.get(suffix, file_format) if file_format == "auto" else file_format
    if suffix == PARQUET and file_format == "auto":
        yield from ((f"{path}, row {number}", row) for number, row in enumerate(read_rows(path), 1))
    elif kind == "csv":
        yield from _csv_rows(path)
    elif kind == "jsonl":
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}, line {number}", parse_object(line, f"{path}, line {number}")
    else:
        raise FileError(f"{path}: labels are CSV (.csv), JSON lines (.jsonl) or Parquet (.parquet)")


def _csv_rows(path: Path) -> Iterator[_Row]:
    """The rows of a CSV file, with the types that the columns of a label have; an empty cell is a missing one."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if None in row or None in row.values():
                raise FileError(f"{where}: the number of columns is not that of the header")
            cells: dict[str, Any] = {name: cell for name, cell in row.items() if cell != ""}
            for name, read in (("weight", float), ("rev", int), ("partition", int)):
                if name in cells:
                    cells[name] = _converted(read, cells[name], f"{where}, column {name!r}")
            if "ts" in cells:
                cells["ts"] = _time(cells["ts"])
            yield where, cells


def _converted(read: type, cell: str, where: str) -> Any:
    try:
        return read(cell)
    except ValueError:
        raise FileError(f"{where}: {cell!r} is not a {'whole ' if read is int else ''}number") from None


def _time(cell: str) -> str | float:
    """A time as a label has it: a number, or a text in ISO 8601."""
    try:
        return float(cell)
    except ValueError:
        return cell


def _label(where: str, row: Mapping[str, Any], columns: Columns, codec: Codec) -> FileLabel:
    id_ = row.get(columns.id or "id")
    if id_ is None:
        raise FileError(f"{where}: no {columns.id or 'id'!r}")
    fields = {"id": id_, "op": row.get("op") or "set"}
    if fields["op"] == "set":
        fields["y"] = _y(row, columns, where)
    for name in ("weight", "rev", "ts"):
        if row.get(name) is not None:
            fields[name] = row[name].isoformat() if isinstance(row[name], datetime) else row[name]
    fields |= {name: str(row[name]) for name in _TEXTS if row.get(name) is not None}
    try:
        codec.decode_label(Record("", 0, 0, 0, None, json.dumps(fields).encode(), ()))
    except BadRecord as error:
        raise FileError(f"{where}: {error.detail}") from None
    partition = row.get("partition")
    if partition is not None and (type(partition) is not int or not 0 <= partition < 1 << 31):
        raise FileError(f"{where}: partition must be a whole number, got {partition!r}")
    return FileLabel(where, fields, partition)


def _y(row: Mapping[str, Any], columns: Columns, where: str) -> Any:
    """The label as its record has it: texts that mean a boolean or a number are one, names of classes stay texts."""
    y = row.get(columns.label) if columns.label else row.get("y", row.get("label"))
    if y is None:
        named = repr(columns.label) if columns.label else "'y'"
        raise FileError(f"{where}: no {named}; to take a label back, set the column 'op' to retract")
    if columns.positive is not None or columns.classes:
        return columns.to_label(y, where)
    return MEANINGS.get(canonical(y), y) if isinstance(y, str) else y
