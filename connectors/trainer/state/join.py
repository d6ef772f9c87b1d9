"""Events and labels, which come on two topics in any order, paired by id.

The outcome depends only on the sequence of calls.  The rules:

Time
    The clock is the largest time so far, of events and labels alike.  An entry expires when the clock is more than the
    ttl beyond its value at the entry's arrival.  So a record that comes late still waits for the full ttl.  One record
    from the future, of a wrong clock or a hostile producer, must not make all entries expire.  So the clock leaps far
    ahead only after several records in a row from there; until then, these count as of the clock's time.  If they were
    right, the stream was silent for long, and they begin to wait when the clock has followed.
Events
    An event without a label waits for one.  After it was learned it stays, for corrections, until it expires.  A second
    event with the same id is a duplicate and changes nothing.  Once the first is forgotten, it is a new event.
Labels
    A label, or a retraction, whose event has not come waits for it.  When the event comes, the event's own wait begins.
    Of two labels with the same id the newer one holds, by revision, then by offset.  The other one is stale; with the
    same revision and the same y it is a duplicate (its weight does not count).  The y of an event is a label of
    revision 0 that is older than all other labels.  A label without a revision has that of the label that holds, so
    that it replaces it.  A label's weight, if it has one, replaces the event's.
Lessons
    The newest label becomes a lesson if its event is here, unless the last lesson said the same.  The first lesson of
    an event is marked.  The others are corrections: the model forgets the example before it learns it anew.  A
    retraction before the first lesson prevents it, until a newer label comes.  A retraction after it is a lesson, too:
    the model forgets the example.
Forgotten events
    The model may still hold the example of an event that is forgotten here.  A label for it cannot be told from a label
    whose event has yet to come, so it waits.  `without_event` says what such a label would mean to the model.
Memory
    Events have a limit in bytes, and labels without an event have another, so that labels with made-up ids do not push
    out events.  Above a limit the oldest entries are dropped, learned or not.  An entry that is larger than the limit
    is not kept at all.

Every loss is counted.  Each event ends as matched, expired, dropped or a duplicate.  Each label, including the y of an
event that is no duplicate, ends as matched, corrected, confirmed, stale, a duplicate, retracted, undone, unmatched or a
dropped label.  Old checkpoints also have labels that were not undone: the trainer could not forget then.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, replace

import numpy as np

from streamsvm.core.saving.snapshot import require_array

from ...records.classes import ClassLabel, KnownClasses, two_classes
from ...records.labels import Label
from ...records.predictions import Said
from ...records.times import ANY_SKEW, event_time
from .lesson import NOTHING_TOLD, JoinCounters, Lesson, Told
from .waiting import FORGET, NEVER, Entry, Waiting, from_columns, to_columns

logger = logging.getLogger(__name__)

AGREEING = 10  # records in a row that are far ahead of the clock before it leaps to them

_INLINE = (0, -1)  # revision and offset of the label in an event


class Join:
    """Pairs events with labels.

    Parameters
    ----------
    ttl_ms
        How long events wait for labels, labels for events, and learned events for corrections, in milliseconds.
    event_bytes
        Memory limit for events.
    label_bytes
        Memory limit for labels without an event.
    classes
        The classes, for checkpoints; default: two.
    leap_ms
        The largest step of the clock that a single record can make; default: no limit.
    skew_ms
        See `join.max_skew_seconds`, in milliseconds; default: no limit.

    Attributes
    ----------
    odd_times : Counter
        Number of records whose time is not what they say, since this process began: "cut" is too far from the
        timestamp, "unknown" is missing, "doubted" is too far ahead of the clock, and of the records after it.
    """

    def __init__(
        self,
        ttl_ms: int,
        event_bytes: int,
        label_bytes: int,
        classes: KnownClasses | None = None,
        leap_ms: int | None = None,
        skew_ms: int = ANY_SKEW,
    ) -> None:
        self._classes = two_classes() if classes is None else classes
        self._ttl = ttl_ms
        self._leap = math.inf if leap_ms is None else leap_ms
        self._doubted: list[int] = []  # keys of the last records, which were too far ahead of the clock
        self._skew = skew_ms
        self.odd_times: Counter[str] = Counter()
        self._events = Waiting(event_bytes)
        self._labels = Waiting(label_bytes)
        self._clock = NEVER
        self.counters = JoinCounters()
        self.when_forgotten: list[Callable[[int], object]] = []  # called with the key of each forgotten event

    @property
    def n_entries(self) -> int:
        """Number of events, learned or not, and of labels without an event."""
        return len(self._events.entries) + len(self._labels.entries)

    @property
    def nbytes(self) -> int:
        """Memory for the entries: never above the sum of both limits."""
        return self._events.nbytes + self._labels.nbytes

    @property
    def clock(self) -> int:
        """The largest time so far, in milliseconds."""
        return self._clock

    def awaiting(self, key: int) -> bytes | None:
        """An event that is here and has no label that was learned, as its record's value; None for any other key."""
        entry = self._events.entries.get(key)
        return entry.value if entry is not None and entry.taught in (None, FORGET) else None

    def entry_of(self, key: int) -> Entry | None:
        """What is kept of an event that is here; None for any other key."""
        return self._events.entries.get(key)

    def event_of(self, key: int) -> bytes | None:
        """An event that is here, learned or not, as its record's value; None for any other key."""
        entry = self._events.entries.get(key)
        return entry.value if entry is not None else None

    def label_of(self, key: int) -> ClassLabel | None:
        """The label that holds of an event that is here; None for any other key."""
        entry = self._events.entries.get(key)
        return entry.y if entry is not None else None

    def without_event(self, key: int) -> Lesson | None:
        """The lesson of a label that waits for this event; None if the event is here, or no label waits."""
        entry = self._labels.entries.get(key)
        return None if entry is None else Lesson(key, None, entry.y, 0.0, NOTHING_TOLD, None, is_first=False)

    def erase(self, keys: Iterable[int]) -> None:
        """Forget events and labels at once, as if they had expired; no counter says so."""
        for key in keys:
            for kept in (self._events, self._labels):
                if key in kept.entries:
                    kept.pop(key)
            self._doubted = [other for other in self._doubted if other != key]
            self._tell_forgotten(key)

    def say(self, said: Mapping[int, Said]) -> None:
        """Replace what was said of the events that are here, by key, because another model learns their labels.

        What was answered, for the metrics, stays.  Of an event that the model has not predicted, the verdict stays.
        """
        for key, entry in self._events.entries.items():
            own, told = said.get(key), entry.told
            decision, verdict = (None, None) if own is None else (own.decision, own.verdict)
            self._events.tell(entry, told._replace(decision=decision, verdict=verdict or told.verdict))

    def add_event(
        self,
        key: int,
        value: bytes,
        *,
        y: ClassLabel | None,
        w: float,
        said: Said,
        entity: bytes | None,
        time: int,
        at: int,
    ) -> Lesson | None:
        """Enter an event.

        Parameters
        ----------
        key
            The event's id as 64 bits.
        value
            The value of its record, kept until the event is forgotten.
        y, w
            Its own label or None, and its weight.
        said
            The prediction for it.
        entity
            The key whose model learns.
        time, at
            When it happened, in milliseconds, and the offset of its record.

        Returns
        -------
        Lesson or None
            What to learn now.
        """
        self.pass_time(key, time)
        if key in self._events.entries:
            self.counters.duplicate_events += 1
            return None
        told = said.margin, said.class_label, said.decision, said.verdict
        entry = Entry(self._clock, value, entity, w, NEVER, NEVER, None, at, None, *told)
        lesson = None
        if key in self._labels.entries:
            waiting = self._labels.pop(key)
            if y is not None:
                self._is_newer(waiting, *_INLINE, y)  # counts y, which is older
            entry.rev, entry.offset = waiting.rev, waiting.offset
            lesson = self._decide(key, entry, waiting.y, waiting.w)
        elif y is not None:
            entry.rev, entry.offset = _INLINE
            lesson = self._decide(key, entry, y, w)
        self._insert(self._events, key, entry)
        return lesson and lesson._replace(told=Told.of(said, is_late=False))  # the model is still the same

    def add_label(self, label: Label, offset: int, time: int) -> Lesson | None:
        """Enter a label, a correction or a retraction.

        Parameters
        ----------
        label
            The label.
        offset
            Offset of its record: of equal revisions the one with the higher offset holds.
        time
            When it was given, in milliseconds.

        Returns
        -------
        Lesson or None
            What to learn or forget now.
        """
        key = label.key
        self.pass_time(key, time)
        y = label.y if label.op == "set" else None
        entry = self._events.entries.get(key) or self._labels.entries.get(key)
        rev = label.rev if label.rev is not None else max(0, entry.rev if entry else 0)
        if entry is None:
            self._insert(self._labels, key, Entry(self._clock, None, None, label.w, rev, offset, y))
            return None
        if not self._is_newer(entry, rev, offset, y):
            return None
        entry.rev, entry.offset = rev, offset
        if entry.value is not None:
            return self._decide(key, entry, y, label.w)
        self.counters.stale += 1  # the label that waited until now
        entry.since, entry.y, entry.w = self._clock, y, label.w
        self._labels.entries.move_to_end(key)
        return None

    def rename_class(self, old: ClassLabel, new: ClassLabel | None, place: int | None) -> None:
        """Let the labels of a class be those of another one, which the model has learned; None: they count no longer.

        `place` is that of the class among those of the model; None: it stays there.
        """
        for entry in (*self._events.entries.values(), *self._labels.entries.values()):
            if entry.y == old:
                entry.y = new
            if entry.taught is not None and entry.taught[0] == old:
                entry.taught = FORGET if new is None else (new, entry.taught[1])
        for entry in self._events.entries.values():
            _, predicted, decision, _ = told = entry.told
            if place is not None and decision is not None:
                decision = decision[:place] + decision[place + 1 :]
            predicted = new if predicted == old else predicted
            self._events.tell(entry, told._replace(predicted=predicted, decision=decision))

    def _is_newer(self, entry: Entry, rev: int, offset: int, y: ClassLabel | None) -> bool:
        """Whether this label holds from now on; if not, count it."""
        if rev == entry.rev and y == entry.y:
            entry.offset = max(entry.offset, offset)
            self.counters.duplicate_labels += 1
            return False
        if (rev, offset) <= (entry.rev, entry.offset):
            self.counters.stale += 1
            return False
        return True

    def _decide(self, key: int, entry: Entry, y: ClassLabel | None, w: float | None) -> Lesson | None:
        """The lesson of an event's newest label."""
        entry.y = y
        taught = entry.taught
        if y is None and taught is None:
            self.counters.retracted += 1
            return None
        assert entry.w is not None
        lesson: tuple[ClassLabel | None, float] = FORGET if y is None else (y, entry.w if w is None else w)
        if lesson == taught:
            self.counters.confirmed += 1
            return None
        if y is None:
            self.counters.undone += 1
        elif taught is None:
            self.counters.matched += 1
        else:
            self.counters.corrected += 1
        entry.taught = lesson
        waited = self._clock - entry.since
        return Lesson(key, entry.value, *lesson, entry.told, entry.entity, taught is None, entry.at, waited)

    # --- time ---------------------------------------------------------------------------------------------------------

    def time_of(self, own: int | None, stamp: int) -> int:
        """The time of a record, whose own time `own` may be None; without any, that of the newest record before it."""
        time = event_time(own, stamp, self._skew)
        if time is None:
            self.odd_times["unknown"] += 1
            return max(self._clock, 0)
        if own is not None and time != own:
            self.odd_times["cut"] += 1
        return time

    def pass_time(self, key: int, time: int) -> int:
        """Move the clock to the time of a record, unless it is too far ahead; return the time that the record gets."""
        if time - self._clock <= self._leap or self._clock == NEVER:
            if self._doubted:
                self.odd_times["doubted"] += len(self._doubted)
                self._doubted.clear()
            if time > self._clock:
                self._advance(time)
            return time
        self._doubted.append(key)
        if len(self._doubted) < AGREEING:
            return self._clock
        self._leap_to(time)
        return time

    def _leap_to(self, time: int) -> None:
        """Believe the last records: they arrived now, and what waited before them has waited long."""
        for kept in (self._events, self._labels):
            for key in self._doubted:
                entry = kept.entries.get(key)
                if entry is not None and entry.since == self._clock:
                    entry.since = time
                    kept.entries.move_to_end(key)
        seconds, before = (time - self._clock) // 1000, replace(self.counters)
        self._doubted.clear()
        self._advance(time)
        logger.warning(
            "%d records in a row are far ahead of all before them, the last one by %d seconds: %d events and %d labels "
            "waited longer than join.ttl_seconds and are given up. If the stream was not silent for so long, correct "
            "the clocks of the producers",
            AGREEING,
            seconds,
            self.counters.expired - before.expired,
            self.counters.unmatched - before.unmatched,
        )

    # --- memory -------------------------------------------------------------------------------------------------------

    def _advance(self, time: int) -> None:
        self._clock = time
        for kept in (self._events, self._labels):
            while kept.entries and next(iter(kept.entries.values())).since < time - self._ttl:
                self._forget_oldest(kept, is_expired=True)

    def _insert(self, kept: Waiting, key: int, entry: Entry) -> None:
        kept.add(key, entry)
        if kept.nbytes > kept.max_bytes and entry.nbytes > kept.max_bytes:
            self._count_lost(kept.pop(key), is_expired=False)
        self._shrink(kept)

    def _shrink(self, kept: Waiting) -> None:
        while kept.nbytes > kept.max_bytes:
            self._forget_oldest(kept, is_expired=False)

    def _forget_oldest(self, kept: Waiting, *, is_expired: bool) -> None:
        key = next(iter(kept.entries))
        entry = kept.pop(key)
        self._count_lost(entry, is_expired=is_expired)
        if entry.value is not None:
            self._tell_forgotten(key)

    def _tell_forgotten(self, key: int) -> None:
        for tell in self.when_forgotten:
            tell(key)

    def _count_lost(self, entry: Entry, *, is_expired: bool) -> None:
        """Count a label, or an event that was never learned."""
        is_label = entry.value is None
        if is_label and is_expired:
            self.counters.unmatched += 1
        elif is_label:
            self.counters.dropped_labels += 1
        elif entry.taught is None and is_expired:
            self.counters.expired += 1
        elif entry.taught is None:
            self.counters.dropped += 1

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The state, for a checkpoint."""
        return {
            "clock": np.array(self._clock),
            "doubted": np.array(self._doubted, dtype=np.int64),
            "counters": np.array(astuple(self.counters)),
            **to_columns({**self._events.entries, **self._labels.entries}, self._classes),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint, possibly with other limits."""
        self.counters = JoinCounters(*require_array(arrays, "counters", "i", (None,)).tolist())
        for key, entry in from_columns(arrays, self._classes):
            (self._labels if entry.value is None else self._events).add(key, entry)
        if "doubted" in arrays:  # checkpoints of older versions lack it
            self._doubted = require_array(arrays, "doubted", "i", (None,)).tolist()
        self._advance(int(require_array(arrays, "clock", "i", ())))
        self._shrink(self._events)
        self._shrink(self._labels)
