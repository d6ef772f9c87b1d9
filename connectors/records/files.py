"""Files as events or labelled examples: CSV, JSON lines, LIBSVM format and npz.

Events come out as the JSON that `codec` describes, in file order.  All formats but npz are read in constant memory.  A
`FileError` says what is wrong with a file, with the line and the column.
"""

import csv
import json
import math
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from ..logs.transport import Record
from ..runtime.folders import FileError
from .codec import Codec, Event
from .columns import Columns
from .formats.base import BadRecord

SUFFIXES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
}

_MAX_LINE = 16 << 20  # characters
_MOST_INFLATED, _SMALL = 100, 1 << 28  # an array of an npz file: times its compressed bytes, plus these bytes

Located = Iterator[tuple[str, dict[str, Any]]]  # the place of an event, for messages, and its fields


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
        If the format is unknown, if a line is wrong, or, at the end, if no label was the positive one.
    OSError
        If the file cannot be read.
    """
    for _, _, value, _ in _checked(path, file_format, columns or Columns()):
        yield value


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
        As for `read_events`, and if an example has no label.
    """
    columns = columns or Columns()
    for where, fields, _, event in _checked(path, file_format, columns):
        if event.y is None:
            raise FileError(f"{where}: no label; --label names its column or field")
        yield Example(event, None if columns.group is None else str(fields["group"]))


def _checked(path: Path, file_format: str, columns: Columns) -> Iterator[tuple[str, dict[str, Any], bytes, Event]]:
    """For each event: its place, its fields, its bytes, and what the codec reads."""
    codec = Codec(classes=columns.classes)
    try:
        for where, fields in FORMATS[_format(path, file_format)](path, columns):
            value = json.dumps(fields, separators=(",", ":")).encode()
            try:
                event = codec.decode(Record("", 0, 0, 0, None, value, ()))
            except BadRecord as error:
                raise FileError(f"{where}: {error.detail}") from None
            yield where, fields, value, event
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 text: byte {error.object[error.start]:#04x} cannot be read") from None
    except csv.Error as error:
        raise FileError(f"{path}: {error}") from None
    columns.check_positive(path)


def _format(path: Path, file_format: str) -> str:
    chosen = SUFFIXES.get(path.suffix.lower(), file_format) if file_format == "auto" else file_format
    if chosen not in FORMATS:
        raise FileError(f"{path}: the suffix {path.suffix!r} belongs to no format; name one of {', '.join(FORMATS)}")
    return chosen


def _number(text: str, where: str, hint: str = "") -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        found = f"{text!r} is not a finite number" if text.strip() else "the number is missing"
        raise FileError(f"{where}: {found}{hint}")
    return number


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file; a very long line means that the file is of another kind."""
    number = 0
    while line := file.readline(_MAX_LINE + 1):
        number += 1
        if len(line) > _MAX_LINE:
            raise FileError(f"{path}, line {number}: the line is longer than {_MAX_LINE} characters")
        yield line


# --- CSV --------------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, columns: Columns) -> Located:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(_lines(file, path))
        header = next(rows, [])
        _check_header(path, header, columns)
        for row in filter(None, rows):  # csv gives [] for an empty line
            where = f"{path}, line {rows.line_num}"
            if len(row) != len(header):
                raise FileError(f"{where}: {len(row)} columns, but the header has {len(header)}")
            yield where, _from_row(dict(zip(header, row, strict=True)), where, columns, f"{path.stem}:{rows.line_num}")


def _check_header(path: Path, header: list[str], columns: Columns) -> None:
    if not header:
        raise FileError(f"{path}: no header line")
    name, count = Counter(header).most_common(1)[0]
    if count > 1:
        raise FileError(f"{path}, line 1: column {name!r} appears more than once")
    for name in [*columns.special.values(), *columns.looked_at.values()]:
        if name not in header:
            raise FileError(
                f"{path}, line 1: no column {name!r}; there are {', '.join(map(repr, header))}{_separator_hint(header)}"
            )


def _separator_hint(header: list[str]) -> str:
    """What is probably wrong with a header of a single column."""
    is_split_elsewhere = len(header) == 1 and any(separator in header[0] for separator in ";\t|")
    return "; separate the columns by commas" if is_split_elsewhere else ""


def _from_row(cells: dict[str, str], where: str, columns: Columns, default_id: str) -> dict[str, Any]:
    special = columns.special
    event: dict[str, Any] = {"id": default_id} | {part: cells[name] for part, name in special.items()}
    event |= {part: cells[name] for part, name in columns.shown.items()}
    event |= {part: _series(cells[name], f"{where}, column {name!r}") for part, name in columns.series.items()}
    if columns.label:
        event["y"] = columns.to_label(event["y"], f"{where}, column {columns.label!r}")
    features = cells.keys() - {*special.values(), *columns.looked_at.values()}
    event["x"] = {
        name: _number(cell, f"{where}, column {name!r}", columns.hint.format(column=name))
        for name, cell in cells.items()
        if name in features
    }
    return event


def _series(cell: str, where: str) -> list[float]:
    """The numbers of a cell, between spaces, commas or semicolons, perhaps in brackets."""
    parts = re.split(r"[\s,;]+", cell.strip().strip("[]").strip())
    return [_number(part, where) for part in parts if part]


# --- JSON lines -------------------------------------------------------------------------------------------------------


def _read_jsonl(path: Path, columns: Columns) -> Located:
    """Read events, which keep their ids and labels, or flat objects of features, label and id."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(_lines(file, path), 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            fields = parse_object(line, where)
            if isinstance(fields.get("x"), dict | list):
                event = fields | _named(fields, where, columns.beside_x)
            else:
                event = _from_flat(fields, where, columns)
            event.setdefault("id", f"{path.stem}:{number}")
            if event.get("y") is not None:
                event["y"] = columns.to_label(event["y"], where)
            yield where, event


def parse_object(line: str, where: str) -> dict[str, Any]:
    """The JSON object in a line; FileError, with the place, if there is none."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise FileError(f"{where}: not a JSON object: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"{where}: {error}") from None
    if not isinstance(fields, dict):
        raise FileError(f"{where}: not a JSON object")
    return fields


def _from_flat(fields: dict[str, Any], where: str, columns: Columns) -> dict[str, Any]:
    parts = {**columns.special, **columns.looked_at}
    event = _named(fields, where, parts)
    names = set(parts.values())
    return {**event, "x": {name: value for name, value in fields.items() if name not in names}}


def _named(fields: dict[str, Any], where: str, names: Mapping[str, str]) -> dict[str, Any]:
    for name in names.values():
        if name not in fields:
            raise FileError(f"{where}: no field {name!r}")
    return {part: fields[name] for part, name in names.items()}


# --- LIBSVM -----------------------------------------------------------------------------------------------------------


def _read_libsvm(path: Path, columns: Columns) -> Located:
    """Lines ``label index:value ...``; features keep their index as name."""
    _refuse_columns(path, columns)
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(_lines(file, path), 1):
            label, *pairs = line.partition("#")[0].split() or [""]
            if not label:
                continue
            where = f"{path}, line {number}"
            x = dict(_pair(pair, where) for pair in pairs)
            if len(x) != len(pairs):
                raise FileError(f"{where}: a feature appears more than once")
            yield where, {"id": f"{path.stem}:{number}", "y": columns.to_label(label, where), "x": x}


def _pair(pair: str, where: str) -> tuple[str, float]:
    index, _, value = pair.partition(":")
    if not index.isdecimal():
        raise FileError(f"{where}: {pair!r} is not index:value")
    return index, _number(value, f"{where}, feature {index}")


def _refuse_columns(path: Path, columns: Columns) -> None:
    if columns.special:
        raise FileError(f"{path}: only CSV and JSON lines have columns for label, id and group")


# --- npz --------------------------------------------------------------------------------------------------------------


def _read_npz(path: Path, columns: Columns) -> Located:
    """Arrays ``X, y``, or ``data, indices, indptr, y`` of a CSR matrix; features are named by column, from 0."""
    _refuse_columns(path, columns)
    arrays = _load_arrays(path)
    rows = (row.tolist() for row in arrays["X"]) if "X" in arrays else _csr_rows(path, arrays)
    labels = arrays["y"].tolist() if "y" in arrays else None
    for number, x in enumerate(rows, 1):
        where = f"{path}, row {number}"
        event = {"id": f"{path.stem}:{number}", "x": x}
        if labels is not None:
            event["y"] = columns.to_label(labels[number - 1], where)
        yield where, event


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as file:
            present = set(file.namelist())
            names = [name for name in ("X", "data", "indices", "indptr", "y") if f"{name}.npy" in present]
            arrays = {name: _load_array(file, name) for name in names}
    except (EOFError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise FileError(f"{path}: not an npz file of plain arrays: {error}") from None
    missing = [name for name in ("data", "indices", "indptr") if name not in arrays]
    if "X" not in arrays and missing:
        raise FileError(f"{path}: no array X, and no {', '.join(missing)} of a CSR matrix")
    for name, array in arrays.items():
        if array.ndim != (2 if name == "X" else 1):
            raise FileError(f"{path}: {name} has shape {array.shape}; {'2 dimensions' if name == 'X' else '1'} needed")
    n_rows = len(arrays["X"]) if "X" in arrays else len(arrays["indptr"]) - 1
    if "y" in arrays and arrays["y"].shape != (n_rows,):
        raise FileError(f"{path}: y has shape {arrays['y'].shape}, but there are {n_rows} rows")
    return arrays


def _load_array(file: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array of the archive.  Its shape is compared with its bytes before memory is taken for it."""
    info = file.getinfo(f"{name}.npy")
    if info.file_size > _MOST_INFLATED * info.compress_size + _SMALL:
        raise ValueError(
            f"{name} is compressed from {info.file_size} to {info.compress_size} bytes; do not compress it"
        )
    with file.open(info) as member:
        major, _ = np.lib.format.read_magic(member)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(member)
        n_bytes, there = math.prod(shape) * dtype.itemsize, info.file_size - member.tell()
    if dtype.hasobject or n_bytes != there or min(shape, default=0) < 0:
        raise ValueError(f"{name} is {dtype} of shape {shape}: this takes {n_bytes} bytes, but the file has {there}")
    with file.open(info) as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))


def _csr_rows(path: Path, arrays: dict[str, np.ndarray]) -> Iterator[dict[str, float]]:
    data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    whole = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu" and len(indptr) > 0
    if (
        not whole
        or len(data) != len(indices)
        or indptr[0] != 0
        or indptr[-1] != len(data)
        or (indptr[1:] < indptr[:-1]).any()
    ):
        raise FileError(f"{path}: data, indices and indptr are not those of a CSR matrix")
    for start, stop in pairwise(indptr.tolist()):
        yield dict(zip(map(str, indices[start:stop].tolist()), data[start:stop].tolist(), strict=True))


FORMATS: dict[str, Callable[[Path, Columns], Located]] = {
    "csv": _read_csv,
    "jsonl": _read_jsonl,
    "libsvm": _read_libsvm,
    "npz": _read_npz,
}
