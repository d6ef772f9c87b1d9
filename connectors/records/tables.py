"""Raw records in files: rows of CSV, JSON lines and Parquet as they come, for the transformer `Records`.

A raw record may hold texts, blanks, nulls and nested objects.  It becomes an event in one of two shapes:

- ``"event"``: ``{"id": ..., "x": {...}, "y": ..., "ts": ...}``, whose x is the record without id and label.
- ``"flat"``: the record itself, for a configuration whose [features] names the fields of the id, the label or the time.
  Only the label is written anew, as the configuration spells it.
"""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.folders import FileError
from .classes import ClassLabel, is_blank
from .codec import MAX_BYTES
from .columns import Columns
from .formats.base import show
from .parquet import read_rows
from .text_files import Mistakes, Row, csv_rows, json_rows, listed, separator_of, series_of
from .times import is_time

SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

Fields = dict[str, Any]

_ABSENT = object()


def raw_rows(path: Path, file_format: str, mistakes: Mistakes) -> Iterator[Row]:
    """The records of a file, with values as JSON has them.

    Parameters
    ----------
    path
        The file.  The columns of a CSV file may be separated by semicolons, tabs or bars as well.
    file_format
        A format of `SUFFIXES`; "auto": by the file's suffix.
    mistakes
        Takes the rows that cannot be read.

    Raises
    ------
    FileError, OSError
        If the file cannot be read.
    """
    chosen = SUFFIXES.get(path.suffix.lower(), "") if file_format == "auto" else file_format
    if chosen == "csv":
        yield from csv_rows(path, mistakes, separator=separator_of(path))
    elif chosen == "jsonl":
        for where, number, fields in json_rows(path, mistakes):
            yield Row(where, number, plain(fields, where))
    elif chosen == "parquet":
        for number, fields in enumerate(read_rows(path), 1):
            where = f"{path}, row {number}"
            with mistakes:
                yield Row(where, number, plain(fields, where))
    else:
        found = f"the suffix {path.suffix!r}" if file_format == "auto" else f"the format {file_format!r}"
        raise FileError(f"{path}: {found} holds no raw records; they are CSV, JSON lines (.jsonl) or Parquet")


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


class RawRecord(NamedTuple):
    """A record of a file.

    Attributes
    ----------
    parts
        Its id, label, time and group, by their part in an event.
    fields
        The event.
    value
        The same as bytes.
    """

    parts: Fields
    fields: Fields
    value: bytes


def read_raw(path: Path, file_format: str, columns: Columns) -> Iterator[RawRecord]:
    """The records of a file as events in the shape ``columns.raw``; after a mistake, only others are looked for.

    Raises
    ------
    FileError
        At the end of the file, with the records that are wrong; or if no record has a field that `columns` names.
    """
    mistakes, missing = Mistakes(), {*columns.named.values()}
    if columns.raw == "flat":
        missing.discard(columns.label)  # The configuration names it, and new records have none.
    names: dict[str, None] = {}
    with mistakes:
        for row in raw_rows(path, file_format, mistakes):
            if len(names) < 100:  # to list some
                names |= dict.fromkeys(row.fields)
            missing -= {name for name in missing if _has(row.fields, name)}
            with mistakes:
                parts = _parts(row, columns, f"{path.stem}:{row.number}")
                event = _event(row, parts, columns)
                value = _encoded(event, row.where)
                if not mistakes.n:
                    yield RawRecord(parts, event, value)
    absent = [f"{path}: no record has a field {show(name)}; there are {listed([*names])}" for name in sorted(missing)]
    mistakes.complain([*(absent if names else []), *columns.absence(path, mistakes)])


def _parts(row: Row, columns: Columns, default_id: str) -> Fields:
    """The id, the label, the time and the group of a record."""
    fields, where = row.fields, row.where
    is_event = not columns.named and isinstance(fields.get("x"), dict)
    names = {part: part for part in ("id", "y", "ts")} if is_event else columns.named
    found: Fields = {part: look_up(fields, name) for part, name in names.items()}
    parts: Fields = {"x": fields["x"]} if is_event else {}
    if columns.raw == "event" or "id" in columns.named:
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
    if columns.group is not None:
        if is_blank(found["group"]):
            raise FileError(f"{where}: no group in {show(columns.group)}")
        parts["group"] = str(found["group"])
    return parts


def _id(value: Any, where: str, name: str) -> str | int:
    if isinstance(value, float) and value.is_integer():  # as tables have whole numbers
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FileError(f"{where}, column {show(name)}: an id is a text or a whole number, not {show(value)}")
    return value


def _event(row: Row, parts: Fields, columns: Columns) -> Fields:
    fields = row.fields
    if columns.raw == "flat":
        return _replaced(fields, columns.label, columns.spelled(parts["y"])) if columns.label else fields
    own = {part: value for part, value in parts.items() if part != "group"}
    if "x" in own:
        return fields | own
    x = dict(fields)
    for name in columns.not_learned:
        x = _without(x, name)
    shown = {part: look_up(fields, name) for part, name in columns.shown.items()}
    for part, name in columns.series.items():
        shown[part] = x[name] = series_of(look_up(fields, name), row.where, name)
    return {**own, **shown, "x": x}


def _encoded(event: Fields, where: str) -> bytes:
    value = json.dumps(event, separators=(",", ":")).encode()
    if len(value) > MAX_BYTES:
        raise FileError(f"{where}: the record has {len(value)} bytes, at most {MAX_BYTES} are read")
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
