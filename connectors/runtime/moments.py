"""Moments of a log: its beginning, an offset, or a time."""

from datetime import UTC, datetime

from .numbers import MAX_INT64

Moment = int | datetime | None  # None: the beginning of the log


def read_moment(text: str) -> Moment:
    """An offset, a time, or ``earliest``; ValueError if it is neither.  A time without a zone is in UTC."""
    if text == "earliest":
        return None
    if text.isascii() and text.isdecimal():
        if len(text) > 19 or int(text) > MAX_INT64:
            raise ValueError(f"an offset must be a whole number from 0 to {MAX_INT64}")
        return int(text)
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
