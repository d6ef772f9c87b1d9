"""Raw records in files: rows of CSV, JSON lines and Parquet as they come, for the transformer `Records`.

A raw record may hold texts, blanks, nulls and nested objects.  It becomes an event in one of two shapes:

- ``"event"``: ``{"id": ..., "x": {...}, "y": ..., "ts": ...}``, whose x is the record without id and label.
- ``"flat"``: the record itself, for a configuration whose [features] names the fields of the id, the label or the time.
  Only the label is written anew, as the configuration spells it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..runtime.folders import FileError
from .classes import ClassLabel, is_blank
from .columns import Columns
from .formats.base import show
from .parquet import read_rows
from .text_files import Mistakes, Row, csv_rows, json_rows, listed, separator_of, series_of
from .times import is_time

SUFFIXES = {  # the formats of files
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
}
TABLES = ("csv", "jsonl", "parquet")  # those with names in each row

Fields = dict[str, Any]
Located = Iterator[tuple[str, Fields]]  # the place of an event, for messages, and its fields

_ABSENT = object()


def format_of(path: Path, file_format: str = "auto") -> str:
    """The format of a file: the given one, or with "auto" that of its suffix; empty if that says nothing."""
    return SUFFIXES.get(path.suffix.lower(), "") if file_format == "auto" else file_format


def rows_of(path: Path, file_format: str, mistakes: Mistakes, needed: Iterable[str] = ()) -> Iterator[Row]:
    """The rows of a file in one of the formats `TABLES`; the header of a CSV file must have the needed columns."""
    if file_format == "csv":
        return csv_rows(path, mistakes, needed)
    if file_format == "jsonl":
        return json_rows(path, mistakes)
    return (Row(f"{path}, row {number}", number, fields) for number, fields in enumerate(read_rows(path), 1))


def raw_rows(path: Path, file_format: str, mistakes: Mistakes) -> Iterator[Row]:
    """The records of a file, with values as JSON has them.

    Parameters
    ----------
    path
        The file.  The columns of a CSV file may be separated by semicolons, tabs or bars as well.
    file_format
        A format of `TABLES`; "auto": by the file's suffix.
    mistakes
        Takes the rows that cannot be read.

    Raises
    ------
    FileError, OSError
        If the file cannot be read.
    """
    chosen = format_of(path, file_format)
    if chosen not in TABLES:
        found = f"the suffix {path.suffix!r}" if file_format == "auto" else f"the format {file_format!r}"
        raise FileError(f"{path}: {found} holds no raw records; they are CSV, JSON lines (.jsonl) or Parquet")
    if chosen == "csv":
        yield from csv_rows(path, mistakes, separator=separator_of(path))
        return
    for row in rows_of(path, chosen, mistakes):
        with mistakes:
            yield row._replace(fields=plain(row.fields, row.where))


def plain(value: Any, where: str) -> Any:
    """A value as JSON can hold it: NaN is null, a time is ISO text, a duration is its seconds."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(inner, where) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, where) for inner in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else None
    raise FileError(
        f"{where}: {show(str(value)[:40])} ({type(value).__name__}) is neither a number nor a text; drop it"
    )


# --- events -----------------------------------------------------------------------------------------------------------


def raw_events(path: Path, file_format: str, columns: Columns, mistakes: Mistakes) -> Located:
    """The records of a file as events in the shape ``columns.raw``; `columns` hears which fields no record has."""
    missing = {*columns.named.values()}
    if columns.raw == "flat":
        missing.discard(columns.label)  # The configuration names it, and new records have none.
    names: dict[str, None] = {}
    for row in raw_rows(path, file_format, mistakes):
        if len(names) < 100:  # to list some
            names |= dict.fromkeys(row.fields)
        missing -= {name for name in missing if _has(row.fields, name)}
        with mistakes:
            yield row.where, event_of(row, columns, path.stem)
    there = listed([*names])
    columns.absent = [f"no record has a field {show(name)}; there are {there}" for name in sorted(missing) if names]


def event_of(row: Row, columns: Columns, stem: str) -> Fields:
    """A record as an event; `stem` is that of its file's name, which names a record without an id."""
    fields, parts = row.fields, _parts(row, columns, f"{stem}:{row.number}")
    if columns.raw == "flat":
        return _replaced(fields, columns.label, columns.spelled(parts["y"])) if columns.label else fields
    if "x" in parts:
        return fields | parts
    x = dict(fields)
    for name in columns.not_learned:
        if x.pop(name, _ABSENT) is _ABSENT:
            x = _without(x, name)
    shown = {part: look_up(fields, name) for part, name in columns.shown.items()}
    for part, name in columns.series.items():
        shown[part] = series_of(look_up(fields, name), row.where, name)
        if name in x:
            x[name] = shown[part]
    return {**parts, **shown, "x": x}


def _parts(row: Row, columns: Columns, default_id: str) -> Fields:
    """The id, the label, the time and the group of a record."""
    fields, where = row.fields, row.where
    is_event = not columns.named and isinstance(fields.get("x"), dict)
    names = {part: part for part in ("id", "y", "ts")} if is_event else columns.named
    found: Fields = {part: look_up(fields, name) for part, name in names.items()}
    parts: Fields = {"x": fields["x"]} if is_event else {}
    if columns.raw != "flat" or "id" in columns.named:
        parts["id"] = _id(found["id"], where, names["id"]) if found.get("id") is not None else default_id
        if "id" in columns.named and is_blank(found["id"]):
            raise FileError(f"{where}: no id in {show(columns.id)}")
    if "y" in names:
        parts["y"] = columns.to_label(found["y"], f"{where}, column {show(names['y'])}")
    if not is_blank(ts := found.get("ts")):
        if not is_time(ts):
            raise FileError(
                f"{where}, column {show(names['ts'])}: {show(ts)} is no time in ISO 8601 and no number of seconds "
                "since 1970"
            )
        parts["ts"] = ts
    return parts | ({"group": found["group"]} if "group" in found else {})


def _id(value: Any, where: str, name: str) -> str | int:
    if isinstance(value, float) and value.is_integer():  # as tables have whole numbers
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FileError(f"{where}, column {show(name)}: an id is a text or a whole number, not {show(value)}")
    return value


# --- nested names -----------------------------------------------------------------------------------------------------


def look_up(fields: Mapping[str, Any], name: str, absent: Any = None) -> Any:
    """A field by its name, with dots between nested names; `absent` if there is none."""
    if name in fields:
        return fields[name]
    outer, _, inner = name.partition(".")
    nested = fields.get(outer)
    return look_up(nested, inner, absent) if isinstance(nested, Mapping) else absent


def _has(fields: Mapping[str, Any], name: str) -> bool:
    return look_up(fields, name, _ABSENT) is not _ABSENT


def _without(fields: Fields, name: str) -> Fields:
    if name in fields:
        return {other: value for other, value in fields.items() if other != name}
    outer, _, inner = name.partition(".")
    nested = fields.get(outer)
    return fields | {outer: _without(nested, inner)} if isinstance(nested, dict) else fields


def _replaced(fields: Fields, name: str, value: ClassLabel | None) -> Fields:
    if not _has(fields, name) or name in fields:
        return fields | {name: value}
    outer, _, inner = name.partition(".")
    return fields | {outer: _replaced(fields[outer], inner, value)}
