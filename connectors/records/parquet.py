"""Parquet files, by pyarrow, which is optional: rows in and out, a group of rows at a time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from ..runtime.folders import FileError
from ..runtime.libraries import needing
from .formats.base import show

GROUP = 10_000  # rows that are in memory at once


def require_pyarrow() -> ModuleType:
    """The library; raises `LibraryMissing` without it."""
    with needing("Parquet needs pyarrow", "parquet"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow


def write_rows(file: IO[bytes], types: Mapping[str, type], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows.

    Parameters
    ----------
    file
        Takes the bytes.
    types
        Types of the columns by name: `str`, `int`, `float`, `bool`, or `datetime` with a time zone.
    rows
        Values by column; a row may lack some.  In a column of texts, other values are written as texts.
    """
    arrow = require_pyarrow()
    known = {
        str: arrow.string(),
        int: arrow.int64(),
        float: arrow.float64(),
        bool: arrow.bool_(),
        datetime: arrow.timestamp("ms", tz="UTC"),
    }
    schema = arrow.schema([(name, known[kind]) for name, kind in types.items()])
    made = {name: kind for name, kind in types.items() if kind in (str, float)}  # pyarrow refuses integers over 2^53
    left = (
        {**row, **{name: kind(row[name]) for name, kind in made.items() if row.get(name) is not None}} for row in rows
    )
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(left, GROUP)):
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read rows, with None for what is missing.

    Raises
    ------
    LibraryMissing
        If pyarrow is not installed.
    FileError
        If the file is no Parquet file.
    """
    arrow = require_pyarrow()
    with _translated(arrow, path), arrow.parquet.ParquetFile(path) as file:
        for name, count in Counter(file.schema_arrow.names).items():
            if count > 1:  # the rows would have the last of them
                raise FileError(f"{path}: column {show(name)} appears more than once")
        for batch in file.iter_batches(GROUP):
            yield from batch.to_pylist()


@contextmanager
def _translated(arrow: ModuleType, path: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except (arrow.lib.ArrowException, ValueError, OverflowError) as error:  # of a time that Python cannot express
        raise FileError(f"{path}: {error}") from None
