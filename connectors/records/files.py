"""Files as events or labelled examples: CSV, JSON lines, LIBSVM format and npz.

Events come out as the JSON that `codec` describes, in file order.  All formats but npz are read in constant memory.  A
`FileError` says what is wrong with a file, with the lines and the columns.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..logs.transport import Record
from ..runtime.folders import FileError
from .arrays import read_arrays
from .classes import is_blank
from .codec import MAX_BYTES, Codec, Event
from .columns import Columns
from .formats.base import BadRecord, show
from .tables import Located, event_of, format_of, look_up, raw_events
from .text_files import Mistakes, csv_rows, json_rows, lines, number_of

_UNLABELLED = "remove the line, or fill its label in"
_WHERE_LABEL = "--label names its column or field"


def read_events(path: Path, file_format: str = "auto", columns: Columns | None = None) -> Iterator[bytes]:
    """Read a file as encoded events.

    Parameters
    ----------
    path
        The file.
    file_format
        A key of `FORMATS`; default "auto": by the file's suffix.
    columns
        The meaning of the columns.

    Raises
    ------
    FileError
        If the format is unknown, or, at the end of the file, with the lines that are wrong, or if no label was the
        positive one.  No event comes after the first line that is wrong.
    OSError
        If the file cannot be read.
    """
    return (value for _, value, _ in _checked(path, file_format, columns or Columns()))


def events_with_ids(path: Path, file_format: str, columns: Columns) -> Iterator[tuple[bytes, Any]]:
    """As `read_events`, each with its id; None for a flat record without an id, whose place in the log will name it."""
    for fields, value, event in _checked(path, file_format, columns):
        yield value, event.id if columns.raw != "flat" else columns.id and look_up(fields, columns.id)


class Example(NamedTuple):
    """A labelled event, and its group or None."""

    event: Event
    group: str | None


def read_examples(path: Path, file_format: str = "auto", columns: Columns | None = None) -> Iterator[Example]:
    """Read a file as labelled examples.

    Parameters
    ----------
    path, file_format, columns
        As for `read_events`.

    Raises
    ------
    FileError, OSError
        As for `read_events`; a line without a label is wrong, except among raw records: it is left out.
    """
    columns = columns or Columns()
    for fields, _, event in _checked(path, file_format, columns, labelled=True):
        if event.y is not None:
            yield Example(event, None if columns.group is None else str(fields["group"]))


def _checked(
    path: Path, file_format: str, columns: Columns, *, labelled: bool = False
) -> Iterator[tuple[dict[str, Any], bytes, Event]]:
    """For each event: its fields, its bytes, and what the codec reads.  After a mistake, only others are looked for."""
    codec, mistakes = Codec(classes=columns.classes), Mistakes()
    with mistakes:
        for where, fields in _located(path, file_format, columns, mistakes):
            with mistakes:
                if labelled and columns.group is not None and is_blank(fields["group"]):
                    raise FileError(f"{where}: no group in {show(columns.group)}")
                value = json.dumps(fields, separators=(",", ":")).encode()
                event = _raw(fields, value, where) if columns.raw else _decoded(codec, value, where)
                if labelled and event.y is None and not columns.raw:
                    raise FileError(f"{where}: no label; {_UNLABELLED if 'y' in fields else _WHERE_LABEL}")
                if not mistakes.n:
                    yield fields, value, event
    mistakes.complain(columns.absence(path, mistakes))


def _raw(fields: dict[str, Any], value: bytes, where: str) -> Event:
    """A raw record as it is, which needs no codec."""
    if len(value) > MAX_BYTES:
        raise FileError(f"{where}: the record has {len(value)} bytes, at most {MAX_BYTES} are read")
    return Event(fields.get("id", ""), 0, fields.get("x", fields), fields.get("y"), 1.0, fields.get("ts"))


def _decoded(codec: Codec, value: bytes, where: str) -> Event:
    try:
        return codec.decode(Record("", 0, 0, 0, None, value, ()))
    except BadRecord as error:
        raise FileError(f"{where}: {error.detail}") from None


def _located(path: Path, file_format: str, columns: Columns, mistakes: Mistakes) -> Located:
    if columns.raw:
        return raw_events(path, file_format, columns, mistakes)
    chosen = format_of(path, file_format)
    if chosen not in FORMATS:
        raise FileError(f"{path}: the suffix {path.suffix!r} belongs to no format; name one of {', '.join(FORMATS)}")
    return FORMATS[chosen](path, columns, mistakes)


# --- CSV --------------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, columns: Columns, mistakes: Mistakes) -> Located:
    for row in csv_rows(path, mistakes, [*columns.special.values(), *columns.looked_at.values()]):
        with mistakes:
            event, where = event_of(row, columns, path.stem), row.where
            numbers = {name: number_of(cell, where, name, columns.hint) for name, cell in event["x"].items()}
            yield where, event | {"x": numbers}


# --- JSON lines -------------------------------------------------------------------------------------------------------


def _read_jsonl(path: Path, columns: Columns, mistakes: Mistakes) -> Located:
    """Read events, which keep their ids and labels, or flat objects of features, label and id."""
    for where, number, fields in json_rows(path, mistakes):
        with mistakes:
            if isinstance(fields.get("x"), dict | list):
                event = fields | _named(fields, where, columns.beside_x)
            else:
                event = _from_flat(fields, where, columns)
            event.setdefault("id", f"{path.stem}:{number}")
            if "y" in event:
                event["y"] = columns.to_label(event["y"], where)
            yield where, event


def _from_flat(fields: dict[str, Any], where: str, columns: Columns) -> dict[str, Any]:
    parts = {**columns.special, **columns.looked_at}
    event = _named(fields, where, parts)
    names = set(parts.values())
    return {**event, "x": {name: value for name, value in fields.items() if name not in names}}


def _named(fields: dict[str, Any], where: str, names: Mapping[str, str]) -> dict[str, Any]:
    for name in names.values():
        if name not in fields:
            raise FileError(f"{where}: no field {show(name)}")
    return {part: fields[name] for part, name in names.items()}


# --- LIBSVM -----------------------------------------------------------------------------------------------------------


def _read_libsvm(path: Path, columns: Columns, mistakes: Mistakes) -> Located:
    """Lines ``label index:value ...``; features keep their index as name."""
    _refuse_columns(path, columns)
    for number, line in lines(path):
        label, *pairs = line.partition("#")[0].split() or [""]
        where = f"{path}, line {number}"
        with mistakes:
            if ":" in label:
                raise FileError(f"{where}: no label before {show(label)}")
            x = dict(_pair(pair, where) for pair in pairs)
            if len(x) != len(pairs):
                raise FileError(f"{where}: a feature appears more than once")
            if label:
                yield where, {"id": f"{path.stem}:{number}", "y": columns.to_label(label, where), "x": x}


def _pair(pair: str, where: str) -> tuple[str, float]:
    index, _, value = pair.partition(":")
    if not (index.isascii() and index.isdecimal()):
        raise FileError(f"{where}: {show(pair)} is not index:value")
    return index.lstrip("0") or "0", number_of(value, where, index, kind="feature")


def _refuse_columns(path: Path, columns: Columns) -> None:
    if columns.special:
        raise FileError(f"{path}: only CSV and JSON lines have columns for label, id and group")


# --- npz --------------------------------------------------------------------------------------------------------------


def _read_npz(path: Path, columns: Columns, mistakes: Mistakes) -> Located:
    """Arrays ``X, y``, or ``data, indices, indptr, y`` of a CSR matrix; features are named by column, from 0."""
    _refuse_columns(path, columns)
    rows, labels = read_arrays(path)
    for number, x in enumerate(rows, 1):
        where = f"{path}, row {number}"
        event = {"id": f"{path.stem}:{number}", "x": x}
        with mistakes:
            if labels is not None:
                event["y"] = columns.to_label(labels[number - 1], where)
            yield where, event


FORMATS: dict[str, Callable[[Path, Columns, Mistakes], Located]] = {
    "csv": _read_csv,
    "jsonl": _read_jsonl,
    "libsvm": _read_libsvm,
    "npz": _read_npz,
}
