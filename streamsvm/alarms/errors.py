"""An alarm that predictions have become worse."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from streamsvm.alarms.alarm import FALSE_ALARM_RATE, Alarm


class ErrorAlarm(Alarm):
    """A drift detector that hears when a model errs more often than before.

    It needs labels.  It counts each class for itself, so that a rare class that turns is not lost among the common
    ones.  It is silent while a model learns, because errors then become rarer.

    Parameters
    ----------
    false_alarm_rate
        Bound on false alarms: the probability of one within n records is at most n times this number, if the records
        of each class are exchangeable, that is as likely in any order.  Above 0 and below 1; default: 1e-7, one false
        alarm in a thousand streams of 10 000 records.

    Notes
    -----
    The first 100 records of a class are only listened to.  After an alarm, everything begins anew.  At most 256
    classes are watched.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVM
    >>> from streamsvm.alarms import ErrorAlarm
    >>> model, alarm = LASVM(), ErrorAlarm()
    >>> for n, (x, y) in enumerate(datasets.Bananas()):
    ...     y = y if n < 3000 else not y  # From here on, the labels mean the opposite.
    ...     alarm.update(model.predict_one(x) != y, y)
    ...     if alarm.drift_detected:
    ...         print(f"after {n - 3000} records: {alarm.cause}")
    ...     model.learn_one(x, y)
    after 27 records: False
    """

    _both_sides: ClassVar[bool] = False

    def __init__(self, false_alarm_rate: float = FALSE_ALARM_RATE) -> None:
        super().__init__(false_alarm_rate)

    def update(self, x: bool | int | float, label: Hashable = None) -> None:
        """Take in one record.

        Parameters
        ----------
        x
            Whether the prediction was wrong: True or False, 1 or 0.
        label
            The true class; default: all records are of one class.

        Raises
        ------
        ValueError
            If `x` is neither 0 nor 1.
        """
        if x not in (0, 1):
            raise ValueError(f"x={x!r} must say whether the prediction was wrong: True or False, 1 or 0")
        list(self.update_many(np.array([bool(x)]), [label]))

    def update_many(self, are_wrong: npt.NDArray[np.bool_], labels: Sequence[Hashable]) -> Iterator[int]:
        """Take in records, with the same result as one by one.

        Parameters
        ----------
        are_wrong
            Whether each prediction was wrong, (n,).
        labels
            The true classes, n of them.

        Yields
        ------
        int
            The place of each record that raises an alarm, before later records are taken in.
        """
        n, values = 0, np.asarray(are_wrong, np.float64).reshape(-1, 1)
        while n < len(values):
            n += self._observe(self._rows_of(labels[n:]).reshape(-1, 1), values[n:])
            if self._drift_detected:
                yield n - 1
