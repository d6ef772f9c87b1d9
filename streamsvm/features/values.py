"""One raw value: what kind it votes for, and what it is as a value of some kind.

A reader returns None for a missing value, and `UNFIT` for one that is not of its kind.
"""

import re
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np

from streamsvm.core.arguments import is_missing
from streamsvm.core.blocks import LARGEST_FEATURE
from streamsvm.core.scaling.renewal import AT_ONCE

NUMBER, CATEGORY, TIME, TEXT, LIST = "number", "category", "time", "text", "list"
IGNORE, ID = "ignore", "id"
EPOCHS = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6}  # kinds of times that are numbers: units in a second
GIVEN = (NUMBER, CATEGORY, TIME, TEXT, LIST, IGNORE, *EPOCHS)  # kinds that a user may give

LEFT_OUT = (None, IGNORE, ID)  # kinds without columns; None before the first value that is present

UNFIT: Any = object()
LONGEST_LIST = AT_ONCE  # numbers: as many columns as a model scales from its first example on
LONGEST_WORD, KEPT = 64, 40  # characters of a category's value; a longer one is known by its beginning and a checksum
LONGEST_BITS = 4 * LONGEST_WORD  # of an integer as a category's value; Python refuses to write very long ones
ABSENT = frozenset(  # in the place of a number or a time
    (
        *("", "na", "n/a", "n.a.", "nan", "-nan", "nat", "none", "null", "nil", "?", "-", "--", ".", "\\n"),
        *("#n/a", "#na", "#null!", "#div/0!", "#value!", "#ref!", "<na>", "(null)", "(blank)"),
    )
)
ISO = re.compile(r"\d{4}([-/])\d\d\1\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?").fullmatch
CODE = re.compile(r"0\d\d+").fullmatch  # a postal code, a telephone number: numbers are not written so
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number_of(v: Any) -> Any:
    """A number, also one that is written as a string."""
    if isinstance(v, str):
        v = v.strip()
        if v.lower() in ABSENT:
            return None
        if "_" in v:  # which Python allows between digits
            return UNFIT
    elif v is None or isinstance(v, date | bytes | np.datetime64 | np.timedelta64):
        return None if is_missing(v) else UNFIT
    try:
        v = float(v)
    except (TypeError, ValueError, OverflowError):
        return None if not isinstance(v, str) and is_missing_scalar(v) else UNFIT
    if -LARGEST_FEATURE < v < LARGEST_FEATURE:
        return v
    return UNFIT if v == v else None  # NaN is missing


def is_missing_scalar(v: Any) -> bool:
    """Whether a value of any type is missing, as pandas' NA is; a container is not."""
    try:
        return v is np.ma.masked or (not isinstance(v, Mapping | list | tuple | np.ndarray) and is_missing(v))
    except (ValueError, ArithmeticError):  # as of a Series, or of a decimal number that is a signal
        return False


def time_of(v: Any) -> Any:
    """A time with a zone: ISO text, a date, a `datetime` or numpy's; without a zone it is UTC."""
    if isinstance(v, str):
        v = v.strip()
        if v.lower() in ABSENT:
            return None
        if not ISO(v):
            return UNFIT
        try:
            v = datetime.fromisoformat(v[:11].replace("/", "-") + v[11:].replace(" ", "").replace("UTC", "Z"))
        except ValueError:
            return UNFIT
    elif isinstance(v, np.datetime64):
        v = None if np.isnat(v) else v.astype("datetime64[us]").item()
    if is_missing_scalar(v):
        return None
    if not isinstance(v, date):
        return UNFIT
    if not isinstance(v, datetime):
        v = datetime(v.year, v.month, v.day)
    return v if v.tzinfo else v.replace(tzinfo=UTC)


def epoch_of(v: Any, unit: int) -> Any:
    """A time from a number since 1970; there are so many of it in a second."""
    number = number_of(v)
    if number is None or number is UNFIT:
        return number
    try:
        return EPOCH + timedelta(seconds=number / unit)
    except OverflowError:
        return UNFIT


def word_of(v: Any) -> Any:
    """A category's value as a short string, which must be the same in every process."""
    if isinstance(v, list | tuple | np.ndarray):
        v = text_of(v)
    elif not isinstance(v, str):
        if is_missing_scalar(v):
            return None
        is_huge = isinstance(v, int) and v.bit_length() > LONGEST_BITS
        if is_huge or not isinstance(v, Number | date | np.generic | UUID) or isinstance(v, np.timedelta64):
            return UNFIT
        v = str(int(v)) if isinstance(v, float) and v.is_integer() else str(v)
    if v is None or v is UNFIT:
        return v
    word = v.strip()
    if len(word) > LONGEST_WORD:
        word = f"{word[:KEPT]}...{zlib.crc32(word.encode('utf-8', 'replace')):08x}"
    return word or None


def text_of(v: Any) -> Any:
    """A text; a list of strings is one, too."""
    if isinstance(v, str):
        return v.strip() or None
    if isinstance(v, list | tuple | np.ndarray) and all(isinstance(part, str) for part in v):
        return " ".join(v).strip() or None
    return None if is_missing_scalar(v) else UNFIT


def list_of(v: Any) -> Any:
    """An array of finite numbers, (n,) float64; an empty list is missing."""
    if not isinstance(v, list | tuple | np.ndarray):
        return None if number_of(v) is None else UNFIT
    if len(v) == 0:
        return None
    try:
        array = np.asarray(v)
    except ValueError:
        return UNFIT
    if array.ndim != 1 or array.dtype.kind not in "fiub" or len(array) > LONGEST_LIST:
        return UNFIT
    array = array.astype(np.float64)
    return array if np.all(np.abs(array) < LARGEST_FEATURE) else UNFIT


READERS: dict[str, Callable[[Any], Any]] = {
    NUMBER: number_of,
    CATEGORY: word_of,
    TIME: time_of,
    TEXT: text_of,
    LIST: list_of,
    **{kind: partial(epoch_of, unit=unit) for kind, unit in EPOCHS.items()},
}


def vote_of(v: Any) -> str | None:
    """The kind for which one value votes: codes, and strings that are no number and no time, vote for `CATEGORY`."""
    if isinstance(v, str) and CODE(v.strip()):
        return CATEGORY
    if isinstance(v, list | tuple | np.ndarray) and not isinstance(list_of(v), np.ndarray):
        return CATEGORY if isinstance(word_of(v), str) else None
    for kind in (NUMBER, TIME, LIST, CATEGORY):
        found = READERS[kind](v)
        if found is None:
            return None
        if found is not UNFIT:
            return kind
    return None
