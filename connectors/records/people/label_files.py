"""Files of labels: CSV, JSON lines and Parquet, with a label in each row.

A row has the fields of a label (see `labels`) as columns; only the id and the label itself are required.  A column
``partition`` says where the label belongs; other columns, such as those that `streamsvm labels` adds, are ignored.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from ...logs.transport import Record
from ...runtime.folders import FileError
from ...runtime.text import number_in, to_number, to_whole
from ..classes import is_blank
from ..codec import Codec
from ..columns import MEANINGS, Columns, canonical
from ..formats.base import BadRecord, show
from ..tables import TABLES, format_of, rows_of
from ..text_files import Mistakes, Row

PARQUET = ".parquet"

_TEXTS = ("source", "query_id", "like")
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
        If the format is unknown, or, at the end of the file, with the rows that are no labels, or if no label was the
        positive one.  No label comes after the first row that is none.
    OSError
        If the file cannot be read.
    """
    mistakes = Mistakes()
    with mistakes:
        for where, row in _rows(path, file_format, columns, mistakes):
            with mistakes:
                label = _label(where, row, columns, codec)
                if not mistakes.n:
                    yield label
    mistakes.complain(columns.absence(path, mistakes))


def _rows(path: Path, file_format: str, columns: Columns, mistakes: Mistakes) -> Iterator[_Row]:
    kind = format_of(path, file_format)
    if kind not in TABLES:
        raise FileError(f"{path}: labels are CSV (.csv), JSON lines (.jsonl) or Parquet (.parquet)")
    for row in rows_of(path, kind, mistakes, [columns.id or "id"]):
        with mistakes:
            yield row.where, _typed(row) if kind == "csv" else row.fields


def _typed(row: Row) -> dict[str, Any]:
    """The cells of a CSV row with the types that the columns of a label have; an empty cell is a missing one."""
    cells: dict[str, Any] = {name: cell for name, cell in row.fields.items() if cell.strip()}
    for name, read in _READ.items():
        if is_blank(cells.get(name)):
            cells.pop(name, None)
        else:
            cells[name] = _converted(read, cells[name], f"{row.where}, column {name!r}")
    return cells


def _converted(read: Callable[[str], Any], cell: str, where: str) -> Any:
    try:
        return read(cell)
    except ValueError:
        raise FileError(f"{where}: {show(cell)} is not a {'whole ' if read is to_whole else ''}number") from None


def _time(cell: str) -> str | float:
    """A time as a label has it: a number, or a text in ISO 8601."""
    number = number_in(cell)
    return cell if number is None else number


_READ: Mapping[str, Callable[[str], Any]] = {
    "weight": to_number, "rev": to_whole, "partition": to_whole, "ts": _time
}  # fmt: skip


def _label(where: str, row: Mapping[str, Any], columns: Columns, codec: Codec) -> FileLabel:
    id_ = row.get(columns.id or "id")
    if id_ is None:
        raise FileError(f"{where}: no {columns.id or 'id'!r}")
    fields = {"id": _plain(id_, f"{where}: id"), "op": row.get("op") or "set"}
    if fields["op"] == "set":
        fields["y"] = _y(row, columns, where)
    for name in ("weight", "rev", "ts"):
        if not is_blank(row.get(name)):
            fields[name] = _plain(row[name], f"{where}: {name}")
    fields |= {name: str(row[name]) for name in _TEXTS if row.get(name) is not None}
    try:
        codec.decode_label(Record("", 0, 0, 0, None, json.dumps(fields).encode(), ()))
    except BadRecord as error:
        raise FileError(f"{where}: {error.detail}") from None
    partition = row.get("partition")
    if partition is not None and (type(partition) is not int or not 0 <= partition < 1 << 31):
        raise FileError(f"{where}: partition must be a whole number, got {show(partition)}")
    return FileLabel(where, fields, partition)


def _y(row: Mapping[str, Any], columns: Columns, where: str) -> Any:
    """The label as its record has it: texts that mean a boolean or a number are one, names of classes stay texts."""
    y = row.get(columns.label) if columns.label else row.get("y", row.get("label"))
    if columns.is_missing(y):
        named = show(columns.label) if columns.label else "'y'"
        raise FileError(f"{where}: no {named}; to take a label back, set the column 'op' to retract")
    if columns.positive is not None or columns.classes:
        return columns.to_label(y, where)
    text = y.strip() if isinstance(y, str) else None
    return _plain(y, f"{where}: y") if text is None or text in columns.names else MEANINGS.get(canonical(text), text)


def _plain(value: Any, where: str) -> Any:
    """A value of a table as JSON has it."""
    if isinstance(value, date):  # or a datetime
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if not isinstance(value, str | int | float):
        raise FileError(f"{where} must be a text or a number, got {show(value)}")
    return value
