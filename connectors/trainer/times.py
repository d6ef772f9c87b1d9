"""When the records of a partition happened."""

from collections import Counter

from ..logs.transport import Record
from ..records.times import event_time
from .state.join import Join


class Times:
    """Gives each record its time.

    Parameters
    ----------
    max_skew
        See `join.max_skew_seconds`, in milliseconds.

    Attributes
    ----------
    odd : Counter
        Number of records whose time is not what they say, since this process began: "cut" is too far from the
        timestamp, "unknown" is missing.
    """

    def __init__(self, max_skew: int) -> None:
        self._max_skew = max_skew
        self.odd: Counter[str] = Counter()

    def of(self, own: int | None, record: Record, join: Join) -> int:
        """The time of a record, whose own time `own` may be None; without any, that of the newest record before it."""
        time = event_time(own, record.timestamp, self._max_skew)
        if time is None:
            self.odd["unknown"] += 1
            return max(join.clock, 0)
        if own is not None and time != own:
            self.odd["cut"] += 1
        return time
