"""Text files as rows: CSV with a header, and JSON lines.  Each row knows its place, and a file tells all its mistakes.

Files are in UTF-8, perhaps with a byte-order mark, and are read in constant memory.
"""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TextIO

from ..runtime.folders import FileError
from ..runtime.text import to_number
from .formats.base import BadRecord, show
from .formats.json import unique

_MAX_LINE = 16 << 20  # characters
OTHER_SEPARATORS = ";\t|"  # of the columns of a file, beside the comma
_SHOWN = 10  # mistakes of a file, or names of its columns

csv.field_size_limit(_MAX_LINE)  # of a cell: Python's own limit is below the size of a record


class Row(NamedTuple):
    """A row of a file.

    Attributes
    ----------
    where
        Its place, for messages.
    number
        Number of its line; of a CSV row, of its last line.
    fields
        Its cells or members by name.
    """

    where: str
    number: int
    fields: dict[str, Any]


class Mistakes:
    """The mistakes of a file.  As a context, it takes each `FileError` as one of them, and the reading goes on.

    Attributes
    ----------
    n : int
        Number of mistakes.
    """

    def __init__(self) -> None:
        self.n = 0
        self._first: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, FileError):
            self.add(str(error))
        return isinstance(error, FileError)

    def add(self, mistake: str) -> None:
        """Take note of a mistake."""
        self.n += 1
        if self.n <= _SHOWN:
            self._first.append(mistake)

    def complain(self, last: Sequence[str] = ()) -> None:
        """Raise `FileError` with the first mistakes, how many more there are, and the last ones given, if any."""
        more = [f"and {self.n - _SHOWN} more"] if self.n > _SHOWN else []
        if self.n or last:
            raise FileError(*self._first, *more, *last)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text file; a FileError if it is not UTF-8."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield file
    except UnicodeDecodeError as error:
        wrong = f"byte {error.object[error.start]:#04x} cannot be read"
        raise FileError(f"{path}: not UTF-8 text: {wrong}; save the file as UTF-8") from None


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers; a very long line means that the file is of another kind."""
    number = 0
    with opened(path) as file:
        while line := file.readline(_MAX_LINE + 1):
            number += 1
            if len(line) > _MAX_LINE:
                raise FileError(f"{path}, line {number}: the line is longer than {_MAX_LINE} characters")
            yield number, line


def csv_rows(path: Path, mistakes: Mistakes, needed: Iterable[str] = (), separator: str = "") -> Iterator[Row]:
    """The rows of a CSV file whose header has the needed columns; a row with too few or too many cells is a mistake."""
    rows = csv.reader((line for _, line in lines(path)), strict=True, delimiter=separator or _usual_separator(path))
    begins = 1
    try:
        header = next(rows, [])
        _check_header(path, header, needed)
        begins = rows.line_num + 1
        for row in rows:
            number, where = rows.line_num, f"{path}, line {rows.line_num}"
            if len(row) == len(header):
                yield Row(where, number, dict(zip(header, row, strict=True)))
            elif row:  # csv gives [] for an empty line
                mistakes.add(f"{where}: {len(row)} columns, but the header has {len(header)}")
            begins = rows.line_num + 1
    except csv.Error as error:
        what = str(error).replace("unexpected end of data", "a quotation mark opens a cell that never ends")
        raise FileError(f"{path}, line {begins}: {what}") from None


def csv_header(path: Path) -> list[str]:
    """The names of a CSV file's columns."""
    return next(csv.reader((line for _, line in lines(path)), delimiter=_usual_separator(path)), [])


def _usual_separator(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def separator_of(path: Path) -> str:
    """What separates the columns of a CSV file, by its header: a comma, if there is one."""
    header = next((line for _, line in lines(path)), "")
    return next((separator for separator in f",{OTHER_SEPARATORS}" if separator in header), ",")


def _check_header(path: Path, header: list[str], needed: Iterable[str]) -> None:
    if not header:
        raise FileError(f"{path}: no header line")
    name, count = Counter(header).most_common(1)[0]
    if count > 1:
        raise FileError(f"{path}, line 1: column {show(name)} appears more than once")
    there = set(header)
    for name in needed:
        if name not in there:
            raise FileError(f"{path}, line 1: no column {name!r}; there are {listed(header)}{_separator_hint(header)}")


def listed(names: list[str]) -> str:
    """Names for a message, of which there may be many."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(show, names[:_SHOWN])) + more


def _separator_hint(header: list[str]) -> str:
    """What is probably wrong with a header of a single column."""
    is_split_elsewhere = len(header) == 1 and any(separator in header[0] for separator in OTHER_SEPARATORS)
    return "; separate the columns by commas" if is_split_elsewhere else ""


def json_rows(path: Path, mistakes: Mistakes) -> Iterator[Row]:
    """The objects of a file of JSON lines; a line that is none is a mistake."""
    for number, line in lines(path):
        if line.strip():
            where = f"{path}, line {number}"
            with mistakes:
                yield Row(where, number, _object(line, where))


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        fields = json.loads(line, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise FileError(f"{where}: not a JSON object: {error.msg} at character {error.pos + 1}") from None
    except BadRecord as error:
        raise FileError(f"{where}: {error.detail}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"{where}: {error}") from None
    if not isinstance(fields, dict):
        raise FileError(f"{where}: not a JSON object")
    return fields


# --- cells ------------------------------------------------------------------------------------------------------------


def number_of(text: str, where: str, column: str, hint: str = "", kind: str = "column") -> float:
    """The finite number of a cell."""
    try:
        value = to_number(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        found = f"{show(text)} is not a finite number" if text.strip() else "the number is missing"
        raise FileError(f"{where}, {kind} {show(column)}: {found}{hint.format(column=column)}")
    return value


def series_of(cell: Any, where: str, column: str) -> list[float]:
    """The numbers of a cell, between spaces, commas or semicolons, perhaps in brackets; or a list of them."""
    if isinstance(cell, list):
        cell = json.dumps(cell)
    parts = re.split(r"[\s,;]+", str(cell or "").strip().strip("[]").strip())
    return [number_of(part, where, column) for part in parts if part]
