"""An alarm that the features have moved."""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from streamsvm.alarms.alarm import FALSE_ALARM_RATE, Alarm
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import require
from streamsvm.estimators.inputs.checks import values_of
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.copies import Content

MOST_ALARMS = 3  # More than that in `WITHIN` records mean that inputs move all the time.
WITHIN = round(0.001 / FALSE_ALARM_RATE)  # records: a false alarm among them has a chance of 1 in 1000


class InputAlarm(Alarm):
    """A drift detector that hears when a feature moves.  It needs no label and no model.

    It compares each value of a feature with the earlier ones by its rank, so units and outliers do not matter.

    Parameters
    ----------
    false_alarm_rate
        Bound on false alarms: the probability of one within n records is at most n times this number, if the records
        are exchangeable, that is as likely in any order.  Above 0 and below 1; default: 1e-7, one false alarm in a
        thousand streams of 10 000 records.

    Notes
    -----
    **Inputs that depend on each other in time**, such as a temperature by the hour, are never exchangeable.  They cause
    alarm after alarm, rightly and of no use.  So the alarm is `muted` after 3 alarms within 10 000 records, for as long
    as there are that many.

    The first 100 values of a feature are only stored.  After an alarm, everything begins anew.  At most 256 features
    are watched, the first to appear.  Those whose names begin with ``~`` are not.  A value that a record lacks, or that
    is None, NaN or infinite, is passed over.

    Examples
    --------
    >>> import random
    >>> from streamsvm.alarms import InputAlarm
    >>> rng, alarm = random.Random(0), InputAlarm()
    >>> for n in range(3000):
    ...     shift = 1.0 if n >= 2000 else 0.0
    ...     alarm.update({"a": rng.gauss(0, 1), "b": rng.gauss(shift, 1), "c": rng.gauss(0, 1)})
    ...     if alarm.drift_detected:
    ...         print(f"after {n - 2000} records: {alarm.cause}")
    after 58 records: b
    """

    _both_sides: ClassVar[bool] = True

    def __init__(self, false_alarm_rate: float = FALSE_ALARM_RATE) -> None:
        super().__init__(false_alarm_rate)
        self._heard: deque[int] = deque(maxlen=MOST_ALARMS)

    def _begin(self) -> None:
        super()._begin()
        self._last: tuple[tuple[Hashable, ...], np.ndarray] = ((), np.zeros((1, 0), np.int64))

    @property
    def muted(self) -> bool:
        """Whether there were so many alarms lately that further ones are not reported: inputs move all the time."""
        return len(self._heard) == MOST_ALARMS and self._n_seen - self._heard[0] < WITHIN

    def update(self, x: Mapping[Hashable, Any]) -> None:  # type: ignore[override]  # of river: a number
        """Take in one record: features by name.

        Raises
        ------
        TypeError
            If a value is not a number.
        """
        list(self._take_in(tuple(x), np.asarray([values_of(x, takes_gaps=True)], np.float64)))

    def update_many(self, rows: NamedRows) -> Iterator[int]:
        """Take in records, with the same result as one by one.

        Parameters
        ----------
        rows
            The records.

        Yields
        ------
        int
            The place of each record that raises an alarm, before later records are taken in.
        """
        if rows.is_table:
            yield from self._take_in(rows.names, rows.values.reshape(len(rows), len(rows.names)))
            return
        for place, x in enumerate(rows):
            for _ in self._take_in(tuple(x), np.array([list(x.values())], np.float64)):
                yield place

    def _take_in(self, names: tuple[Hashable, ...], values: np.ndarray) -> Iterator[int]:
        """Take in the rows of a table; give the place of each that raises an alarm."""
        n = 0
        while n < len(values):
            if names != self._last[0]:
                self._last = names, self._rows_of(names).reshape(1, -1)
            n += self._observe(self._last[1], values[n:])
            if self._drift_detected:
                yield n - 1

    def _hear(self, cause: Hashable) -> None:
        if not self.muted:
            super()._hear(cause)
        self._heard.append(self._n_seen)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _content(self) -> Content:
        meta, arrays = super()._content()
        return meta | {"heard": list(self._heard)}, arrays

    @classmethod
    def _of_content(cls, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], *how: Any) -> Self:
        alarm = super()._of_content(meta, arrays)
        heard = snapshot.field(meta, "heard", list)
        require(all(type(n) is int and 0 < n <= alarm._n_seen for n in heard), "the records of alarms are out of range")
        require(len(heard) <= MOST_ALARMS and heard == sorted(heard), "the records of alarms are not in order")
        alarm._heard.extend(heard)
        return alarm
