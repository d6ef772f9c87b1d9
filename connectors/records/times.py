"""The times of records, and of the events and labels in them."""

import re
from datetime import UTC, datetime
from typing import Any

_EARLIEST = round(datetime(1678, 1, 1, tzinfo=UTC).timestamp() * 1000)  # the years that nanoseconds in 64 bits reach
_LATEST = round(datetime(2262, 1, 1, tzinfo=UTC).timestamp() * 1000)
_UNKNOWN_FIRST = ANY_SKEW = 1 << 62
_IS_NUMBER = re.compile(r"(?:\d{10}|\d{13}|\d{16}|\d{19})(?:\.\d+)?").fullmatch  # no date has so many digits in a row
_MANY_DIGITS = re.compile(r"\d{9}").match


def read_time(ts: str | int | float) -> int:
    """A time as a record writes it, in milliseconds since 1970.

    Parameters
    ----------
    ts
        Text in ISO 8601, in UTC unless it names another zone; or a number of seconds since 1970, of milliseconds from
        1e11 on, of microseconds from 1e14 on, of nanoseconds from 1e17 on.  The number may be text: with as many digits
        as such a time has today.

    Raises
    ------
    ValueError, OverflowError
        If this is no time, or one before 1678 or after 2261.
    """
    if not isinstance(ts, str):
        time = _of_number(ts)
    elif _IS_NUMBER(ts):
        time = _of_number(float(ts))
    elif _MANY_DIGITS(ts):  # Python would take the ninth one for what separates a date from a time
        raise ValueError("digits that are neither a date nor a time since 1970")
    else:
        when = datetime.fromisoformat(ts.removesuffix(" UTC"))
        time = round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    if not _EARLIEST <= time < _LATEST:
        raise ValueError("not a time from 1678 to 2261")
    return time


def is_time(ts: Any) -> bool:
    """Whether this is a time that `read_time` reads."""
    try:
        return type(ts) in (str, int, float) and read_time(ts) is not None
    except (ValueError, OverflowError):
        return False


def _of_number(number: float) -> int:
    size = abs(number)
    if size < 1e11:
        return round(number * 1000)
    if size < 1e14:
        return round(number)
    return round(number / (1e3 if size < 1e17 else 1e6))


def is_known(stamp: int) -> bool:
    """Whether the timestamp of a record is a time; Kafka's word for a missing one is -1."""
    return 0 <= stamp < _LATEST


def order(stamp: int, offset: int) -> int:
    """What the records of two topics are ordered by: the timestamp; without one, before all others and by offset."""
    return stamp if is_known(stamp) else offset - _UNKNOWN_FIRST


def event_time(time: int | None, stamp: int, max_skew: int = ANY_SKEW) -> int | None:
    """When an event happened, or a label was given, in milliseconds since 1970; None if nothing says it.

    Parameters
    ----------
    time
        The record's own time, or None.
    stamp
        The log's timestamp of the record, in milliseconds.  It is the answer if `time` is missing.
    max_skew
        The largest difference from `stamp`, in milliseconds; a time further away is moved there.  Default: no limit.
    """
    if not is_known(stamp):
        return time
    return stamp if time is None else min(max(time, stamp - max_skew), stamp + max_skew)
