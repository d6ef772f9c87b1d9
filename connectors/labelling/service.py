"""The desk: shows the trainer's questions to whoever answers them, and writes the answers down.

Questions come from the topic log.questions (see `asking`), answers go to log.labels, on the partition of the question::

    {"id": <of the event>, "y": true, "op": "set", "rev": <ms when it was given>, "source": <who>, "query_id": "..."}

op may be "retract" (of an answer), "skip" or "ignore", without y, too.  Of two answers the one with the higher rev
holds.  A page, a terminal, Label Studio and oracles made of programs or files all answer through `LabellingService`.

An answer is durable before `LabellingService.answer` returns, and the same answer again writes nothing.  So a client
that did not hear the reply repeats it.  What was answered before a restart is read from log.labels, since the trainer
may not have taken it up yet.

`read_question` and `read_status` check all that is read from log.questions: a record that is damaged is set aside with
a warning, and counted, before anything shows it.
"""

import json
import logging
import math
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from streamsvm.active import QuestionBook

from ..commands.topics import open_once
from ..logs.segments import LogCorruption
from ..logs.transport import AccessDenied, OffsetOutOfRange, OutputsLost, Record, TopicMismatch, Transport, Unavailable
from ..records.formats.base import BadRecord, Fields, show
from ..records.formats.json import read_json
from ..runtime.folders import AlreadyInUse, lock_folder
from ..settings import topics
from ..settings.sections import Settings
from ..trainer.asking import STATUS
from ..trainer.trainer import POLL_SECONDS

logger = logging.getLogger(__name__)

Outcome = Literal["first", "repeated", "changed", "stale"]

UNDO_SECONDS = 60
MAX_QUERY_ID = 300  # characters

_POLL_RECORDS = 500
_RETRY_SECONDS = 1.0
_LOOK_SECONDS = 1.0  # between two looks for partitions of the embedded log, which come with their first record
_KEPT_ANSWERS = 20_000  # what is remembered of answers, for those that are repeated
_KEPT_QUESTIONS = 1_000  # that are closed: their answers may come late, or be taken back
_KEPT_BYTES = 16 << 20  # of their records, together
_MAX_VOICES = 16  # of whose labels of one question are remembered, the last ones
_CLOCKS_MS = 3_600_000  # by which those of trainers and desks may differ
_SILENT_SECONDS = 60  # without a reaction to an answer
_MAX_NAME = 200
_INT64 = 1 << 63
_COUNTS = (
    "asked",
    "open",
    "answered",
    "labels",
    "positive",
    "negative",
    "skipped",
    "ignored",
    "expired",
    "withdrawn",
    "corrected",
    "retracted",
    "offered",
)


class UnknownQuestion(LookupError):  # noqa: N818 - reads as what it says
    """There is no question of this id, or it was answered or withdrawn so long ago that it is forgotten."""


class Place(NamedTuple):
    """Where the answer to a question goes."""

    partition: int
    id: str | int  # of the event


@dataclass(frozen=True)
class Shown:
    """A question as it is shown.

    Attributes
    ----------
    query_id
        Of the question.
    id, partition
        Of the event.
    x
        Features by name, as they came.
    event
        What else the event has.
    margin, score
        Decision value, and probability of the positive class if that is known, when it was asked.
    reason
        Why: "seed", "boundary", "explore" or "audit".
    asked_at, expires_at
        Milliseconds of the events' time.
    unusual
        Of the features far from what the first events had, the distance in standard deviations.
    model
        Which model asked: "ver", lessons it had had, and "n_support".
    """

    query_id: str
    id: str | int
    partition: int
    x: Mapping[str, float]
    event: Mapping[str, Any]
    margin: float
    score: float | None
    reason: str
    asked_at: int
    expires_at: int
    unusual: Mapping[str, float]
    model: Mapping[str, int]

    @property
    def place(self) -> Place:
        """Where its answer goes."""
        return Place(self.partition, self.id)


class _Given(NamedTuple):
    """The last that was said about a question."""

    op: str
    y: bool | None
    who: str
    rev: int
    place: Place
    voices: Mapping[str, bool] = MappingProxyType({})  # the labels that hold or were changed, by who gave them

    def says(self, op: str, y: bool | None, who: str) -> bool:
        """Whether this repeats what holds, or what `who` has said: perhaps they have not heard the reply."""
        return (self.op, self.y) == (op, y) or (op == "set" and self.voices.get(who) is y)


class LabellingService:
    """Hands out questions and writes answers, inside a ``with`` block; any thread may call it.

    Whoever answers has a name, such as "page:alice", which becomes the source of the label.

    Parameters
    ----------
    settings
        The configuration; it must name log.questions and log.labels.
    clock
        Seconds since the epoch.

    Raises
    ------
    ValueError
        If it does not.
    AlreadyInUse
        By the ``with`` statement, if another process answers the questions of the same embedded log.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        if not (settings.log.questions and settings.log.labels):
            raise ValueError("settings must name log.questions and log.labels")
        self._settings = settings
        self._codec = settings.codec()
        self._clock = clock
        self._writing = threading.Lock()  # before _changed, where both are taken
        self._changed = threading.Condition()  # guards all below it but _log and _tried, which _writing does
        self._log: Transport | None = None
        self._tried: dict[str, _Given] = {}  # appended, and perhaps not durable yet
        self._version = 0
        self._desk = QuestionBook(int(1000 * settings.labelling.lease_seconds))
        self._open: dict[str, Shown] = {}
        self._closed: OrderedDict[str, Shown] = OrderedDict()  # answered or withdrawn, oldest first
        self._sizes: dict[str, int] = {}  # of the records of both
        self._given: OrderedDict[str, _Given] = OrderedDict()
        self._back: set[str] = set()  # open questions whose answer was taken back, whatever the trainer says
        self._unheard: dict[str, float] = {}  # answers that the trainer has not reacted to, and since when
        self._status: dict[int, dict[str, Any]] = {}
        self._heard: int | None = None  # time of the trainer's last record
        self._is_loaded = False
        self._trouble: str | None = None  # why nothing can be read
        self._failure: Exception | None = None  # of the thread, for good
        self._closing = threading.Event()
        self._asked: dict[str, int] = {}  # open questions, and the time of the record that asked
        self._reading: set[tuple[str, int]] = set()  # partitions
        self._refused: set[tuple[str, int, int]] = set()  # topic, partition and offset of damaged records
        self._thread = threading.Thread(target=self._follow, name="questions", daemon=True)
        self._resources = ExitStack()
        self._writer: AbstractContextManager[Transport] | None = None

    def __enter__(self) -> "LabellingService":
        log = self._settings.log
        if not self._settings.kafka:
            self._resources.enter_context(lock_folder(log.dir / log.labels / "desk", "the labelling of this log"))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join()
        with self._writing:
            self._close_writer()
        self._resources.close()

    # --- questions ----------------------------------------------------------------------------------------------------

    def next(self, who: str) -> Shown | None:
        """A question for `who`: the one they have already, or one that nobody else looks at; None if there is none.

        Raises
        ------
        Unavailable
            If the questions cannot be read.
        """
        _check_name(who)
        with self._changed:
            self._check_readable()
            if not self._is_loaded:
                return None
            query_id = self._desk.assign(who, self._now())
            return None if query_id is None else self._open.get(query_id)

    def release(self, who: str) -> None:
        """Let others have the question that `who` looks at."""
        with self._changed:
            self._desk.release(who)

    def open(self) -> list[Shown]:
        """All questions without an answer, whoever looks at them, oldest first."""
        with self._changed:
            self._check_readable()
            return sorted(self._open.values(), key=lambda shown: shown.asked_at) if self._is_loaded else []

    def last_word(self, query_id: str) -> tuple[str, bool | None, str] | None:
        """What was last said about a question: operation, label and who said so, as far as it is remembered."""
        with self._changed:
            given = self._given.get(query_id)
            return None if given is None else (given.op, given.y, given.who)

    def wait(self, seconds: float, seen: int = -1) -> int:
        """Wait until anything has changed since `seen`, at most so long.

        Parameters
        ----------
        seconds
            At most.
        seen
            What this returned the last time; by default, wait for the next change.

        Returns
        -------
        int
            Number of changes so far.
        """
        with self._changed:
            seen = self._version if seen < 0 else seen
            self._changed.wait_for(lambda: self._version != seen or self._closing.is_set(), seconds)
            return self._version

    def check(self) -> None:
        """Raise what has ended the reading for good, if anything has."""
        if self._failure is not None:
            raise self._failure

    # --- answers ------------------------------------------------------------------------------------------------------

    def answer(self, query_id: str, y: bool, who: str, *, at: int | None = None, place: Place | None = None) -> Outcome:
        """Write a label, durable when this returns.

        A question may be answered late, and again: the last answer holds.

        Parameters
        ----------
        query_id
            Of the question.
        y
            Whether the event is of the positive class.
        who
            Says so.
        at
            When they did, in milliseconds since the epoch; default: now.
        place
            Where the answer goes, from who remembers that longer than we do.

        Returns
        -------
        Outcome
            "first"; "repeated", by the same person or another: nothing was written; "changed": it replaces another
            answer; "stale": a later one holds, and nothing was written.

        Raises
        ------
        UnknownQuestion
            If there is no such question.
        Unavailable
            If it cannot be written now: ask again.
        """
        return self._say(query_id, "set", bool(y), who, at, place)

    def skip(self, query_id: str, who: str, *, at: int | None = None, place: Place | None = None) -> Outcome:
        """Say that `who` cannot tell: it is not asked again, and costs nothing; raises as `answer` does."""
        return self._say(query_id, "skip", None, who, at, place)

    def ignore(self, query_id: str, who: str, *, at: int | None = None, place: Place | None = None) -> Outcome:
        """Say that the event is of no use, as when it is damaged; raises as `answer` does."""
        return self._say(query_id, "ignore", None, who, at, place)

    def retract(self, query_id: str, who: str, *, place: Place | None = None) -> Outcome:
        """Take a label back; raises as `answer` does."""
        return self._say(query_id, "retract", None, who, None, place)

    def undo(self, who: str) -> str | None:
        """Take back the last label of `who` and show them that question again.

        Returns
        -------
        str
            The question; None if there is none of the last 60 seconds, or somebody else has changed it.

        Raises
        ------
        Unavailable
            If it cannot be written now: ask again.
        """
        with self._writing:
            if self._tried:  # which of their answers is the last depends on what becomes of these
                self._flush()
            with self._changed:
                now = self._now()
                newest = self._desk.newest(who, now, 1000 * UNDO_SECONDS)
            if newest is None:
                return None
            query_id, y, given_at = newest
            word = self.last_word(query_id)
            if word == ("set", y, who):
                self._say_locked(query_id, "retract", None, who, None, None)
            elif word != ("retract", None, who):  # which is an undo that somebody else's flush has made durable
                return None
            with self._changed:  # the question is there for everybody: put it in front of them
                self._desk.answered(query_id, who, y, given_at)
                self._desk.undo(who, now, 1000 * UNDO_SECONDS)
                if query_id not in self._open:  # it was closed so long ago that it cannot be shown
                    self._desk.withdraw(query_id)
                self._tell()
            return query_id

    def _say(self, query_id: str, op: str, y: bool | None, who: str, at: int | None, place: Place | None) -> Outcome:
        _check_name(who)
        with self._writing:
            return self._say_locked(query_id, op, y, who, at, place)

    def _say_locked(
        self, query_id: str, op: str, y: bool | None, who: str, at: int | None, place: Place | None
    ) -> Outcome:
        with self._changed:
            self._check_readable()
            if not self._is_loaded:
                raise Unavailable("the questions are still being read")
            place = self._place(query_id, place)
        self._settle(query_id, op, y, who)
        with self._changed:
            last, now = self._given.get(query_id), self._now()
        if last is not None and last.says(op, y, who):
            return "repeated"
        if last is not None and (_is_void(op, last) or (at is not None and at <= last.rev)):
            return "stale"
        if query_id not in self._tried:
            earliest = 0 if last is None else last.rev + 1
            self._produce(query_id, _Given(op, y, who, max(now if at is None else at, earliest), place))
        self._flush()
        return "first" if last is None or last.op == "retract" else "changed"

    def _settle(self, query_id: str, op: str, y: bool | None, who: str) -> None:
        """Wait for what was appended about this question, unless it is this: what may be said depends on it."""
        tried = self._tried.get(query_id)
        if tried is None or (tried.op, tried.y, tried.who) == (op, y, who):
            return
        before = self.last_word(query_id)
        self._flush()
        is_theirs = self.last_word(query_id) == ("set", tried.y, who) and (before is None or before[0] != "set")
        if is_theirs and op in ("skip", "ignore"):  # instead of the label, which they do not know to be there
            self._say_locked(query_id, "retract", None, who, None, tried.place)

    def _place(self, query_id: str, place: Place | None) -> Place:
        shown = self._open.get(query_id) or self._closed.get(query_id)
        if shown is not None:
            return shown.place
        if query_id in self._given:
            return self._given[query_id].place
        if place is None:
            raise UnknownQuestion(f"there is no question {query_id!r}, or it was closed long ago")
        return place

    # --- writing ------------------------------------------------------------------------------------------------------

    def _produce(self, query_id: str, given: _Given) -> None:
        fields: dict[str, Any] = {"id": given.place.id}
        if given.y is not None:
            fields["y"] = given.y
        fields |= {"op": given.op, "rev": given.rev, "source": given.who, "query_id": query_id}
        value = json.dumps(fields, separators=(",", ":")).encode()
        with self._translated():
            if self._log is None:
                self._writer = open_once(self._settings)
                self._log = self._writer.__enter__()
            self._log.produce(self._settings.log.labels, value, partition=given.place.partition)
        self._tried[query_id] = given

    def _flush(self) -> None:
        assert self._log is not None
        with self._translated():
            self._log.flush()
        durable, self._tried = self._tried, {}
        with self._changed:
            for query_id, given in durable.items():
                if given.y is not None:
                    self._desk.answered(query_id, given.who, given.y, given.rev)
                self._note(query_id, given)
            self._tell()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Whatever keeps us from writing, as `Unavailable`: whoever answers keeps the answer, and asks again."""
        try:
            yield
        except Unavailable as error:
            raise Unavailable(f"the answer is not written yet: {error}") from None
        except AlreadyInUse as error:
            raise Unavailable(
                f"another process writes labels to this log, which takes one at a time: end it first ({error})"
            ) from None
        except (AccessDenied, LogCorruption, OutputsLost, TopicMismatch, OSError) as error:
            self._close_writer()  # which may be of no use any more
            raise Unavailable(f"the answer cannot be written: {error}") from None

    def _close_writer(self) -> None:
        writer, self._writer, self._log = self._writer, None, None
        self._tried.clear()
        if writer is not None:
            with suppress(OSError):
                writer.__exit__(None, None, None)

    # --- what there is to show ----------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """How far the labelling is, over all partitions.

        Returns
        -------
        dict
            The counts of `streamsvm.active.LabellingLoop`; "remaining": labels left of the budgets, None without one;
            "verdict": "stop" if all partitions say so, "audit" if any does, and "why"; "curve" of the partition with
            the most labels.  And of the desk: "waiting", questions without an answer; "unheard", answers without the
            trainer's reaction; "refused", damaged records that were set aside; "loaded", whether the questions have
            been read; "trainer", a sentence if nothing has been heard of it, and else None; "heard_at", the time of its
            last record in milliseconds, or None; "trouble", why the log cannot be read, or None.
        """
        with self._changed:
            parts = [self._status[number] for number in sorted(self._status)]
            counts = {name: sum(int(part.get(name) or 0) for part in parts) for name in _COUNTS}
            budgets = [part["remaining"] for part in parts if part.get("remaining") is not None]
            fullest = max(parts, key=lambda part: int(part.get("labels") or 0), default={})
            return {
                **counts,
                "remaining": sum(budgets) if budgets else None,
                "verdict": _verdict(self._status),
                "curve": fullest.get("curve", []),
                "waiting": len(self._open),
                "unheard": len(self._unheard),
                "refused": len(self._refused),
                "loaded": self._is_loaded,
                "trainer": self._missing_trainer(),
                "heard_at": self._heard,
                "trouble": str(self._failure) if self._failure else self._trouble,
            }

    def _missing_trainer(self) -> str | None:
        if not self._is_loaded:
            return None
        if self._heard is None:
            return "no trainer has asked anything yet: `streamsvm run` does, once there are enough events"
        oldest = min(self._unheard.values(), default=math.inf)
        silent = self._clock() - oldest
        if silent < _SILENT_SECONDS:
            return None
        return f"the trainer has not reacted to an answer for {silent:.0f} seconds: is `streamsvm run` running?"

    # --- reading ------------------------------------------------------------------------------------------------------

    def _check_readable(self) -> None:
        if self._failure is not None:
            raise Unavailable(str(self._failure)) from self._failure
        if self._trouble is not None and not self._is_loaded:
            raise Unavailable(self._trouble)

    def _follow(self) -> None:
        """On the thread: read both topics until the end."""
        while not self._closing.is_set():
            try:
                with open_once(self._settings) as log:
                    self._load(log)
                    looked_at = time.monotonic()
                    while not self._closing.is_set():
                        self._take(self._poll(log))
                        if not self._settings.kafka and time.monotonic() - looked_at > _LOOK_SECONDS:
                            looked_at = time.monotonic()
                            self._begin_new(log)
            except (Unavailable, OffsetOutOfRange) as error:
                self._wait_for_log(error)
            except Exception as error:
                logger.error("questions cannot be read: %s", error)
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return

    def _load(self, log: Transport) -> None:
        """Read what there is: the questions, then the answers that they may have."""
        names = self._settings.log
        if self._settings.kafka:
            topics.check(self._settings, [names.questions, names.labels])
        self._reading.clear()
        with self._changed:
            self._asked.clear()
        self._read_to_end(log, names.questions, log.start_offsets(names.questions))
        with self._changed:
            for query_id in self._open.keys() - self._asked.keys() - self._back:
                self._close(query_id)  # it was withdrawn, and that is forgotten, while the log was away
        self._read_to_end(log, names.labels, self._first_answers(log))
        with self._changed:
            self._is_loaded = not self._closing.is_set()
            self._tell()

    def _first_answers(self, log: Transport) -> dict[int, int]:
        """Where in log.labels the first answer to an open question may be."""
        topic = self._settings.log.labels
        if not self._settings.kafka:
            return log.start_offsets(topic)
        from ..logs.kafka_log import offsets_at  # which brings the client

        ends = log.end_offsets(topic)
        if not self._asked:
            return ends
        return {**ends, **offsets_at(self._settings, topic, ends, min(self._asked.values()) - _CLOCKS_MS)}

    def _read_to_end(self, log: Transport, topic: str, starts: Mapping[int, int]) -> None:
        ends = log.end_offsets(topic)
        for number, start in starts.items():
            log.seek(topic, number, start)
            self._reading.add((topic, number))
        while any(log.position(topic, n) < ends[n] for n in starts) and not self._closing.is_set():
            self._take(self._poll(log))

    def _begin_new(self, log: Transport) -> None:
        """Read partitions of the embedded log that were not there before."""
        for topic in (self._settings.log.questions, self._settings.log.labels):
            for number, start in log.start_offsets(topic).items():
                if (topic, number) not in self._reading:
                    log.seek(topic, number, start)
                    self._reading.add((topic, number))

    def _poll(self, log: Transport) -> list[Record]:
        try:
            records = log.poll(POLL_SECONDS, _POLL_RECORDS)
        except Unavailable as error:
            self._wait_for_log(error)
            return []
        if self._trouble is not None:
            logger.info("reading again")
            with self._changed:
                self._trouble = None
                self._tell()
        return records

    def _wait_for_log(self, error: Exception) -> None:
        if self._trouble is None:
            logger.warning("%s", error)
        with self._changed:
            self._trouble = str(error)
            self._tell()
        self._closing.wait(_RETRY_SECONDS)

    def _take(self, records: list[Record]) -> None:
        if not records:
            return
        with self._changed:
            for record in records:
                try:
                    if record.topic == self._settings.log.labels:
                        self._hear(record)
                    else:
                        self._ask(record)
                except BadRecord as error:
                    self._set_aside(record, error)
            self._tell()

    def _set_aside(self, record: Record, error: BadRecord) -> None:
        """Pass over a damaged record; it is read again where the log is."""
        place = (record.topic, record.partition, record.offset)
        if place not in self._refused:
            logger.warning("%s-%d: passing over offset %d: %s", *place, error)
        if len(self._refused) < _KEPT_ANSWERS:
            self._refused.add(place)

    def _ask(self, record: Record) -> None:
        """Of the trainer: a question, its end, or how far it is."""
        self._heard = max(record.timestamp, self._heard or 0)
        if record.key == STATUS:
            self._status[record.partition] = read_status(record)
            return
        if record.value is None:
            query_id = _query_id(record)
            self._unheard.pop(query_id, None)
            if query_id not in self._back:
                self._close(query_id)
            return
        shown = read_question(record)
        query_id = shown.query_id
        self._asked[query_id] = record.timestamp
        self._open[query_id] = shown
        self._sizes[query_id] = len(record.value)
        given = self._given.get(query_id)
        if given is not None and given.op != "retract":
            self._close(query_id)
        else:
            self._closed.pop(query_id, None)
            self._desk.add(query_id, shown.asked_at)

    def _hear(self, record: Record) -> None:
        """An answer, or any label."""
        if b'"query_id"' not in (record.value or b""):
            return
        query_id = read_json(record.value or b"", lambda fields: fields.get("query_id"))
        if not isinstance(query_id, str) or len(query_id) > MAX_QUERY_ID:
            return
        label = self._codec.decode_label(record)
        who = (label.source or "")[:_MAX_NAME]
        given = _Given(label.op, label.y, who, label.rev, Place(record.partition, label.id))
        last = self._given.get(query_id)
        if last is None or last.rev < given.rev:
            self._note(query_id, given)

    def _note(self, query_id: str, given: _Given) -> None:
        """Remember an answer that is in the log; the question of one that was taken back is open again."""
        last = self._given.pop(query_id, None)
        voices = dict(last.voices) if last is not None and given.op != "retract" else {}
        if given.y is not None:
            voices.pop(given.who, None)
            voices[given.who] = given.y
            if len(voices) > _MAX_VOICES:
                del voices[next(iter(voices))]
        self._given[query_id] = given._replace(voices=voices)
        while len(self._given) > _KEPT_ANSWERS:
            self._given.popitem(last=False)
        self._back.discard(query_id)
        if given.op == "retract":
            self._unheard.pop(query_id, None)
            self._reopen(query_id)
            return
        if query_id in self._asked:
            self._unheard[query_id] = self._clock()
        self._close(query_id)

    def _close(self, query_id: str) -> None:
        """Show a question no more."""
        self._desk.withdraw(query_id)
        self._asked.pop(query_id, None)
        shown = self._open.pop(query_id, None)
        if shown is not None:
            self._closed[query_id] = shown
        while len(self._closed) > _KEPT_QUESTIONS or sum(map(self._sizes.__getitem__, self._closed)) > _KEPT_BYTES:
            oldest, _ = self._closed.popitem(last=False)
            del self._sizes[oldest]

    def _reopen(self, query_id: str) -> None:
        """Show a question again whose answer was taken back."""
        shown = self._closed.pop(query_id, None)
        if shown is not None:
            self._open[query_id] = shown
            self._back.add(query_id)
            self._desk.add(query_id, shown.asked_at)

    def _tell(self) -> None:
        self._version += 1
        self._changed.notify_all()

    def _now(self) -> int:
        return int(1000 * self._clock())


def _is_void(op: str, last: _Given) -> bool:
    """Whether this cannot be said any more: a label is not skipped, and only a label is taken back."""
    return (op != "set" and last.op == "set" and op != "retract") or (op == "retract" and last.op != "set")


def _check_name(who: str) -> None:
    if not who or len(who) > _MAX_NAME:
        raise ValueError(f"who must be a name of 1 to {_MAX_NAME} characters, got {who!r:.60}")


# --- records ----------------------------------------------------------------------------------------------------------


def read_question(record: Record) -> Shown:
    """A question from its record.

    Raises
    ------
    BadRecord
        If the record is not exactly what `asking` describes; the detail names the field.
    """
    return read_json(record.value or b"", partial(_to_shown, record))


def _to_shown(record: Record, fields: Fields) -> Shown:
    for name, (is_right, wanted) in _QUESTION.items():
        _check_field(fields, name, is_right, wanted)
    if fields["query_id"] != _query_id(record):
        raise BadRecord("bad-question", f"the key of question {show(fields['query_id'])} is {show(record.key)}")
    names = ("x", "event", "margin", "score", "reason", "asked_at", "expires_at", "unusual", "model")
    return Shown(fields["query_id"], fields["id"], record.partition, *(fields[name] for name in names))


def _query_id(record: Record) -> str:
    """The key of a question, or of its end."""
    try:
        query_id = (record.key or b"").decode()
    except UnicodeDecodeError as error:
        raise BadRecord("bad-question", f"its key is no text: {error}") from None
    if not query_id:
        raise BadRecord("bad-question", "a question must have a key")
    return query_id


def read_status(record: Record) -> dict[str, Any]:
    """How far a partition is, from its record.

    Raises
    ------
    BadRecord
        If a field is not what `asking.status` writes.
    """
    return read_json(record.value or b"", _to_status)


def _to_status(fields: Fields) -> dict[str, Any]:
    _check_field(fields, "status", lambda value: type(value) is dict, "an object")
    status: dict[str, Any] = fields["status"]
    for name in status.keys() & _STATUS.keys():
        _check_field(status, name, *_STATUS[name])
    return status


def _check_field(fields: Fields, name: str, is_right: Callable[[Any], bool], wanted: str) -> None:
    if name not in fields:
        raise BadRecord("missing-field", f"the record has no {name!r}")
    if not is_right(fields[name]):
        raise BadRecord("bad-question", f"{name} must be {wanted}, got {show(fields[name])}")


def _is_finite(value: Any) -> bool:
    """Whether this is a number to everything that shows it."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_share(value: Any) -> bool:
    return _is_finite(value) and 0 <= value <= 1


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _INT64


def _is_time(value: Any) -> bool:
    return type(value) is int and -_INT64 <= value < _INT64


def _are_numbers(value: Any) -> bool:
    return type(value) is dict and all(map(_is_finite, value.values()))


def _is_plain(value: Any) -> bool:
    """Whether this is an object that can be written as JSON again."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return type(value) is dict


def _is_point(value: Any) -> bool:
    """Whether this is a `CurvePoint`."""
    if type(value) is not list or len(value) != 4:
        return False
    return all(map(_is_count, value[:2])) and all(share is None or _is_share(share) for share in value[2:])


def _is_verdict(value: Any) -> bool:
    if type(value) is not dict or not isinstance(value.get("why"), str):
        return False
    return isinstance(value.get("stop"), bool) and isinstance(value.get("audit"), bool)


_Check = tuple[Callable[[Any], bool], str]
_COUNT: _Check = (_is_count, "a count")
_NUMBERS: _Check = (_are_numbers, "an object of finite numbers")
_TIME: _Check = (_is_time, "whole milliseconds")
_QUESTION: dict[str, _Check] = {
    "query_id": (
        lambda value: type(value) is str and 0 < len(value) <= MAX_QUERY_ID,
        f"1 to {MAX_QUERY_ID} characters",
    ),
    "id": (lambda value: type(value) in (str, int), "a text or a whole number"),
    "x": _NUMBERS,
    "event": (_is_plain, "an object without infinite numbers"),
    "margin": (_is_finite, "a finite number"),
    "score": (lambda value: value is None or _is_share(value), "a number from 0 to 1, or null"),
    "reason": (lambda value: type(value) is str, "a text"),
    "asked_at": _TIME,
    "expires_at": _TIME,
    "unusual": _NUMBERS,
    "model": (lambda value: type(value) is dict and all(map(_is_count, value.values())), "an object of counts"),
}
_STATUS: dict[str, _Check] = {
    **dict.fromkeys(_COUNTS, _COUNT),
    "remaining": (lambda value: value is None or _is_count(value), "a count or null"),
    "verdict": (_is_verdict, "an object of stop, audit and why"),
    "curve": (lambda value: type(value) is list and all(map(_is_point, value)), "a list of points"),
}


def _verdict(parts: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """One verdict of those of all partitions."""
    verdicts = {number: part["verdict"] for number, part in sorted(parts.items()) if part.get("verdict")}
    reasons: dict[str, list[int]] = {}
    for number, verdict in verdicts.items():
        reasons.setdefault(str(verdict.get("why") or ""), []).append(number)
    if len(reasons) > 1:
        why = "; ".join(f"partition {', '.join(map(str, numbers))}: {text}" for text, numbers in reasons.items())
    else:
        why = next(iter(reasons), "")
    return {
        "stop": bool(verdicts) and all(verdict.get("stop") for verdict in verdicts.values()),
        "audit": any(verdict.get("audit") for verdict in verdicts.values()),
        "why": why,
    }
