"""The times of events and labels."""

from datetime import UTC, datetime


def event_time(ts: str | int | float | None, stamp: int, max_skew: int) -> int:
    """When an event happened, or a label was given, in milliseconds since 1970.

    Parameters
    ----------
    ts
        The record's own time: a number of seconds since 1970, or of milliseconds from 1e11 on, or text in ISO 8601, in
        UTC unless it names another zone.
    stamp
        The log's timestamp of the record, in milliseconds.  It is the answer if `ts` is missing or cannot be read.
    max_skew
        The largest difference from `stamp`, in milliseconds; a time further away is moved there.
    """
    if ts is None:
        return stamp
    try:
        if isinstance(ts, str):
            when = datetime.fromisoformat(ts)
            time = round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
        else:
            time = round(ts if ts >= 1e11 else ts * 1000)
    except (ValueError, OverflowError):  # text that is not a time, or an infinite number
        return stamp
    return min(max(time, stamp - max_skew), stamp + max_skew)
