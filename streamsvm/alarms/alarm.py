"""What both alarms share: the bets on each name's values, when an alarm is due, and how all of it is stored."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from river import base

from streamsvm.core.inputs import is_apart
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import require, require_array, require_finite
from streamsvm.estimators.inputs.checks import PLAIN, plain_names, require_plain
from streamsvm.estimators.learner.copies import Content, Saved
from streamsvm.online.change import Values, Watched, nothing, observe

FALSE_ALARM_RATE = 1e-7  # a record: a false alarm in one of a thousand streams of 10 000 records
MOST_NAMES = 256  # watched, which takes about 30 us a record; later names are not
OF_NAMES = ("table", "seen", "sums", "means")


class Alarm(Saved, base.DriftDetector):
    """A drift detector that bets on the rank of each value among earlier ones of the same name."""

    _both_sides: ClassVar[bool]

    def __init__(self, false_alarm_rate: float) -> None:
        super().__init__()
        if not isinstance(false_alarm_rate, float | int) or not 0.0 < false_alarm_rate < 1.0:
            raise ValueError(f"false_alarm_rate={false_alarm_rate!r} must be a number above 0 and below 1")
        self.false_alarm_rate = false_alarm_rate
        self._n_seen = self._n_alarms = 0
        self._cause: Hashable = None
        self._begin()

    def _begin(self) -> None:
        """Know no values, as at first and after an alarm."""
        self._rows: dict[Hashable, int] = {}
        self._state = nothing(0)

    @property
    def n_seen(self) -> int:
        """Number of records so far."""
        return self._n_seen

    @property
    def n_alarms(self) -> int:
        """Number of alarms so far."""
        return self._n_alarms

    @property
    def cause(self) -> Hashable:
        """The name that the last alarm was about; None before the first one."""
        return self._cause

    def _observe(self, rows: np.ndarray, values: np.ndarray) -> int:
        """Take in records up to the first alarm, and return their number.  After an alarm, everything begins anew."""
        n, loudest = observe(self._state, Values(rows, values), self._both_sides, 1.0 / self.false_alarm_rate)
        self._n_seen += n
        self._drift_detected = False
        if loudest >= 0:
            cause = list(self._rows)[loudest]
            self._begin()
            self._hear(cause)
        return n

    def _hear(self, cause: Hashable) -> None:
        """Report an alarm."""
        self._drift_detected = True
        self._n_alarms += 1
        self._cause = cause

    def _rows_of(self, names: Sequence[Hashable]) -> np.ndarray:
        """The row of each name; -1 for one that is not watched.  New names get rows as long as there are some."""
        for name in names:
            if name not in self._rows and len(self._rows) < MOST_NAMES and not is_apart(name):
                self._rows[name] = len(self._rows)
        have, want = len(self._state.seen), len(self._rows)
        if want > have:
            new, old = nothing(max(want, min(2 * have, MOST_NAMES))), self._state
            for name in OF_NAMES:
                getattr(new, name)[:have] = getattr(old, name)
            self._state = new._replace(drawn=old.drawn)
        return np.array([self._rows.get(name, -1) for name in names], np.int64)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _content(self) -> Content:
        require_plain("the name", (*self._rows, *(() if self._cause is None else (self._cause,))))
        meta = {
            "false_alarm_rate": float(self.false_alarm_rate),
            "n_seen": self._n_seen,
            "n_alarms": self._n_alarms,
            "names": list(self._rows),
            "cause": self._cause,
            "drift_detected": self._drift_detected,
        }
        n = len(self._rows)
        arrays = {name: getattr(self._state, name)[:n].copy() for name in OF_NAMES}
        return meta, arrays | {"drawn": self._state.drawn}

    @classmethod
    def _of_content(cls, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], *how: Any) -> Self:
        alarm = cls(snapshot.field(meta, "false_alarm_rate", float))
        alarm._n_seen, alarm._n_alarms = snapshot.count(meta, "n_seen"), snapshot.count(meta, "n_alarms")
        alarm._cause = snapshot.field(meta, "cause", *PLAIN, type(None))
        alarm._drift_detected = snapshot.field(meta, "drift_detected", bool)
        names = plain_names(meta, "names")
        require(len(names) <= MOST_NAMES, "too many names")
        alarm._rows = {name: row for row, name in enumerate(names)}
        alarm._state = _state_of(arrays, len(names))
        return alarm


def _state_of(arrays: snapshot.Arrays, n: int) -> Watched:
    """The state that a snapshot holds."""
    empty = nothing(n)._asdict()
    found = Watched(*(require_array(arrays, name, own.dtype, own.shape).copy() for name, own in empty.items()))
    require_finite(arrays, "table", "sums", "means")
    require((found.seen >= 0).all() and found.drawn[0] >= 0, "a count is below 0")
    require((found.sums >= 0.0).all() and (found.means >= 0.0).all(), "a bet is below 0")
    return found
