"""One partition of the stream: what was polled and not yet taken, its state, and its checkpoints.

Records are taken in *cuts*: at most `batch` records, those with the earliest timestamps of the two topics, events
before labels of the same time; first all events of the cut are consumed, then its labels.  A cut ends sooner with the
record that reaches 4 MB, for a decoded record takes many times its bytes.  While more records are known
to be in the log a cut is always full, so the cuts are a function of the log.  Where the partition has caught up, what
there is makes a cut at once, and the journal remembers it.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import islice

from streamsvm import WarmupScaler

from ..logs.transport import Committed, OffsetOutOfRange, Record, Transport
from ..records.codec import Codec
from ..records.formats.base import BadRecord
from ..records.published import Publisher, TooLarge, pack_model
from ..settings.sections import Settings
from .state.checkpoint import Checkpoint, CheckpointStore, check_fingerprint, check_topics
from .state.journal import Cut, Kind
from .state.models import KeyedModels
from .state.observe import Snapshot
from .state.state import Breaker, State, TooManyBadRecords
from .training import Training

logger = logging.getLogger(__name__)

_BUFFERED = 4000  # records that are polled ahead of one topic, or two cuts if that is more
_CUT_BYTES = 4 << 20  # a cut ends with the record that reaches it
_RECORD_BYTES, _HEADER_BYTES = 300, 150  # what the objects of a record, and of a header, take beside their bytes


def key_name(key: bytes) -> str:
    """Under which name the model of a record key is published."""
    return f"k-{blake2b(key, digest_size=16).hexdigest()}"


class RecordsLost(OffsetOutOfRange):
    """Records were removed from the log before they were read."""

    def __init__(self, where: str, offset: int, start: int) -> None:
        super().__init__(
            f"{where} begins at offset {start}, and {offset} is next: {start - offset} records were removed before "
            'they were read. daemon.on_data_loss = "skip" goes on without them'
        )
        self.start = start


class ReadAhead:
    """Memory for records that were polled and not yet taken, shared by all inputs of a process.

    Parameters
    ----------
    max_bytes
        Above it nothing is polled but what an input needs for its next cut.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0


class Input:
    """Records of one topic of the partition that were polled and not yet taken.

    Parameters
    ----------
    log, topic, number
        Where they come from.
    end
        Where to stop reading; None: never.
    batch
        The most records that a cut has.
    ahead
        Memory for them; None for an input that keeps none.
    """

    def __init__(
        self,
        log: Transport,
        topic: str,
        number: int,
        end: int | None,
        batch: int = 1,
        ahead: ReadAhead | None = None,
    ) -> None:
        self.topic = topic
        self._log = log
        self._number = number
        self._end = end
        self._batch = batch
        self._limit = max(_BUFFERED, 2 * batch)
        self._ahead = ahead or ReadAhead(0)
        self._wanted = 0  # records before this offset are polled, whatever room they take
        self._bytes = 0
        self.records: deque[Record] = deque()

    def begin(self, offset: int) -> None:
        """Poll from `offset` on.

        Raises
        ------
        RecordsLost
            If the log begins after it.
        OffsetOutOfRange
            If the log ends before it.
        """
        start = self._log.start_offsets(self.topic).get(self._number, 0)
        end = self._log.end_offsets(self.topic).get(self._number, 0)
        if offset > end:
            raise OffsetOutOfRange(
                f"{self.topic}-{self._number} ends at offset {end}, before {offset}, which was read before: it was "
                "deleted and made again, or cut. Choose another daemon.state_dir to begin with what is there now"
            )
        if offset < start:
            raise RecordsLost(f"{self.topic}-{self._number}", offset, start)
        self._log.seek(self.topic, self._number, offset)

    def offer(self, records: Iterable[Record]) -> None:
        """Keep what was polled, but for what lies behind the end."""
        for record in records:
            if self._end is None or record.offset < self._end:
                self.records.append(record)
                self._count(_size(record))
        is_full = len(self.records) >= self._limit or self._ahead.nbytes >= self._ahead.max_bytes
        if is_full and self.has_cut and self.has_all_below(self._wanted):
            self._log.pause(self.topic, self._number)

    @property
    def has_cut(self) -> bool:
        """Whether a cut could be made of these records alone."""
        return len(self.records) >= self._batch or self._bytes >= _CUT_BYTES

    def _count(self, n_bytes: int) -> None:
        self._bytes += n_bytes
        self._ahead.nbytes += n_bytes

    @property
    def position(self) -> int:
        """The offset of the next record that is polled."""
        return self._log.position(self.topic, self._number)

    def has_all_below(self, offset: int) -> bool:
        """Whether every record before `offset` was polled."""
        return self.position >= offset

    @property
    def is_exhausted(self) -> bool:
        """Whether there is nothing in the log, as far as is known, that was not polled."""
        if self._end is None:
            return self.has_all_below(self._log.known_end(self.topic, self._number))
        return self.is_at_end

    @property
    def lag(self) -> int:
        """How many records are known to wait."""
        behind = self._log.known_end(self.topic, self._number) - self.position
        return len(self.records) + max(0, behind)

    @property
    def is_at_end(self) -> bool:
        """Whether everything up to `end` was polled."""
        return self._end is not None and self.has_all_below(self._end)

    def heads(self, limit: int) -> list[tuple[int, int]]:
        """Timestamps and sizes of the first `limit` records."""
        return [(record.timestamp, _size(record)) for record in islice(self.records, limit)]

    def reach(self, offset: int) -> bool:
        """Whether every record before `offset` was polled; if not, they are, whatever room they take."""
        if self.has_all_below(offset):
            return True
        self._wanted = offset
        self._log.resume(self.topic, self._number)
        return False

    def take(self, offset: int) -> list[Record]:
        """The records before `offset`."""
        records, taken = self.records, []
        while records and records[0].offset < offset:
            taken.append(records.popleft())
        self._count(-sum(map(_size, taken)))
        has_room = len(records) < self._limit // 2 and self._ahead.nbytes < self._ahead.max_bytes // 2
        if has_room or not self.has_cut:
            self._log.resume(self.topic, self._number)
        return taken

    def close(self) -> None:
        """Read no more, and forget what was not taken."""
        self._log.release(self.topic, self._number)
        self._count(-self._bytes)
        self.records.clear()


def _size(record: Record) -> int:
    """Memory for a record."""
    return record.nbytes + _RECORD_BYTES + _HEADER_BYTES * len(record.headers)


class WarmUp:
    """Fits the scale on the first events, which are consumed afterwards.

    They are fewer than `features.warmup` if these would not fit into memory: a function of the log all the same.
    """

    def __init__(self, settings: Settings, codec: Codec) -> None:
        self._kind = settings.features.scale
        self._length = settings.features.warmup
        self._max_bytes = settings.limits.read_ahead_bytes
        self._max_features = settings.limits.model_features
        self._names: set[str] = set()  # of the features so far
        self._codec = codec
        self._breaker = Breaker(settings.daemon.max_bad)
        self._n_seen = 0  # records
        self._n_bytes = 0  # of them
        self._n_examples = 0  # events among them

    def fit(self, events: Input) -> WarmupScaler | None:
        """Look at the events that have come since the last call; None while there are not enough."""
        for record in islice(events.records, self._n_seen, None):
            x = self._features(record)
            self._names |= x.keys() if x else set()
            if len(self._names) > self._max_features:
                return self._scaler_of_fewer(events, "for more would have more features than limits.model_features")
            self._n_seen += 1
            self._n_bytes += _size(record)
            self._n_examples += x is not None
            self._breaker.observe([x is None])
            if self._n_examples == self._length:
                return self._scaler(events)
            if self._n_bytes >= self._max_bytes:
                return self._scaler_of_fewer(events, "for more would not fit into limits.read_ahead_mb")
        if events.is_at_end and self._n_examples:
            return self._scaler_of_fewer(events, "for the log has no more")
        events.reach(events.position + 1)
        return None

    def _scaler_of_fewer(self, events: Input, why: str) -> WarmupScaler:
        if not self._n_examples:
            raise TooManyBadRecords(
                f"none of the first {self._n_seen} records of topic {events.topic!r} is an event; "
                'daemon.start = "latest" passes over them'
            )
        logger.warning("the scale is fitted on %d events, %s", self._n_examples, why)
        return self._scaler(events)

    def _scaler(self, events: Input) -> WarmupScaler:
        """Decodes the events once more, one by one: all of them together take many times the memory of their bytes."""
        self._names.clear()  # which are of no use any more
        scaler = WarmupScaler(kind=self._kind, warmup=self._n_examples)
        for record in islice(events.records, self._n_seen):
            x = self._features(record)
            if x is not None:
                scaler.learn_one(x)
        return scaler

    def _features(self, record: Record) -> dict[str, float] | None:
        """None if the record is no event."""
        try:
            return self._codec.decode(record).x
        except BadRecord:
            return None


class Partition:
    """One partition of the stream, whose state this process owns.

    Parameters
    ----------
    number
        Of the partition.
    settings
        The configuration.
    codec
        Reads its records.
    log
        Where they come from, and outputs go.
    store
        Its checkpoints.
    ahead
        Memory for records that were not taken yet.

    Raises
    ------
    ConfigError
        If the checkpoint belongs to other settings.
    OffsetOutOfRange
        If the log does not have what comes next.
    TopicMismatch
        If a topic was deleted and made again since the checkpoint.
    CheckpointError
        If there are checkpoints that cannot be read.
    """

    def __init__(
        self,
        number: int,
        settings: Settings,
        codec: Codec,
        log: Transport,
        store: CheckpointStore,
        ahead: ReadAhead,
    ) -> None:
        self.number = number
        self._ahead = ahead
        self.store = store
        self.state: State | None = None
        self._settings = settings
        self._log = log
        self._training = Training(settings, codec, log, number)
        self._warm_up = WarmUp(settings, codec)
        self.checkpoint_bytes = 0
        self._is_whole = True  # no cut is half consumed
        self._has_asked = False  # questions without a record, which no checkpoint has
        self._newest = math.nan  # time of the newest record that was taken, in milliseconds
        self._lag_then = math.nan  # when it was taken: once the partition is revoked, the log does not know it any more
        self.n_lost = 0  # records that were gone before they were read, since the beginning of this process
        self.n_unpublished = 0  # models that were too large to publish, likewise
        self._events = self._input(settings.log.topic)
        self._labels = self._input(settings.log.labels) if settings.log.labels else None
        ids = {item.topic: log.topic_id(item.topic) for item in self._inputs()}
        self._topic_ids = {topic: topic_id for topic, topic_id in ids.items() if topic_id}
        self._begin(*self._restore(store.load()))
        self._journal, again, self._suspect = store.begin_journal()
        self._again = deque(again)  # cuts that were taken before, and are taken again
        self._note_saved()

    # --- beginning and going on ---------------------------------------------------------------------------------------

    def _input(self, topic: str) -> Input:
        end = None if self._settings.daemon.follow else self._log.end_offsets(topic).get(self.number, 0)
        return Input(self._log, topic, self.number, end, self._settings.daemon.batch, self._ahead)

    def _restore(self, checkpoint: Checkpoint | None) -> tuple[int, int]:
        """Take over a checkpoint; return where to begin in both topics."""
        if checkpoint is None:
            self._origin = self._first_offset(self._events), self._first_offset(self._labels)
            return self._origin
        check_fingerprint(checkpoint, self._settings.fingerprint(), self.store.folder)
        check_topics(checkpoint, self._topic_ids)
        self.state = State.from_checkpoint(checkpoint, self._settings, self.store, self.number)
        self._has_asked = self._training.resume(self.state)
        logger.info(
            "partition %d: going on from checkpoint %d at offset %d",
            self.number,
            self.state.sequence,
            self.state.offset,
        )
        return self.state.offset, self.state.labels_offset

    def _first_offset(self, item: Input | None) -> int:
        if item is None:
            return 0
        is_latest = self._settings.daemon.start == "latest"
        offsets = self._log.end_offsets(item.topic) if is_latest else self._log.start_offsets(item.topic)
        return offsets.get(self.number, 0)

    def _begin(self, events: int, labels: int) -> None:
        self._begin_input(self._events, events)
        if self._labels:
            self._begin_input(self._labels, labels)

    def _begin_input(self, item: Input, offset: int) -> None:
        try:
            item.begin(offset)
        except RecordsLost as error:
            if self._settings.daemon.on_data_loss == "fail":
                raise
            logger.error("partition %d: %s", self.number, error)
            self._count_lost(item, offset, error.start)
            item.begin(error.start)

    def _count_lost(self, item: Input, offset: int, start: int) -> None:
        """Count the records from `offset` to `start`, and go on behind them unless there are some to consume before."""
        self.n_lost += start - offset
        if self.state is None:
            return
        self.state.counters.lost += start - offset
        if item is self._events and not item.records:
            self.state.offset = start
        elif not item.records:
            self.state.labels_offset = start

    def check_positions(self) -> None:
        """After the log has refused a position: go on behind what was removed, or raise `RecordsLost`."""
        self._begin(self._events.position, self._labels.position if self._labels else 0)

    def _prepare(self) -> State | None:
        """The state; None as long as the first events, which give the scale, are not there."""
        if self.state is None:
            scaler = None
            if self._settings.features.scale != "none":
                scaler = self._warm_up.fit(self._events)
                if scaler is None:
                    return None
            elif not self._events.records:
                return None
            self.state = State.new(self._settings, self.store, scaler, self.number)
            self.state.offset, self.state.labels_offset = self._origin
            self.state.counters.lost = self.n_lost
            self.save()  # what comes next is counted from here, wherever the log begins by then
        return self.state

    # --- cuts ---------------------------------------------------------------------------------------------------------

    def offer(self, topic: str, records: Iterable[Record]) -> None:
        """Keep records that were polled from one topic."""
        for item in self._inputs():
            if item.topic == topic:
                item.offer(records)

    def step(self) -> int:
        """Consume a cut, if there is one; return the number of its records."""
        state = self._prepare()
        cut = self._next_cut(state) if state else None
        if state is None or cut is None:
            return 0
        started = time.perf_counter()
        self._is_whole = False
        try:
            n_records = self._consume(cut, state)
        except Exception:
            self._journal.done()  # this was no crash
            raise
        self._is_whole = True
        if not self._again:
            self._journal.done()
        self._lag_then = sum(self.lag.values())
        state.counters.seconds += time.perf_counter() - started
        self._remember(state)
        return n_records

    @property
    def wants_records(self) -> bool:
        """Whether the next cut has to be polled first."""
        if self.state is None or self._again:
            return True
        return not all(item.has_cut or item.is_at_end for item in self._inputs())

    @property
    def is_finished(self) -> bool:
        """Whether all records are consumed that there were at the beginning, for a daemon that does not follow."""
        return all(item.is_at_end and (not item.records or self.state is None) for item in self._inputs())

    @property
    def lag(self) -> dict[str, int]:
        """How many records are known to wait, by topic."""
        return {item.topic: item.lag for item in self._inputs()}

    @property
    def refused(self) -> Mapping[str, int]:
        """How many records were put aside since the beginning of this process, by reason."""
        return self._training.refused

    def take_waits(self) -> list[float]:
        """Seconds from events to their labels, of those that came since the last call."""
        waits, self._training.waits = self._training.waits, []
        return waits

    @property
    def drift(self) -> float:
        """See `observe.Drift`."""
        return self._training.drift.largest()

    def _inputs(self) -> list[Input]:
        return [self._events, self._labels] if self._labels else [self._events]

    def _next_cut(self, state: State) -> Cut | None:
        """What to take next, which is in the journal by then; None if more has to be polled first."""
        if self._again:
            cut = self._again[0]
            if not self._events.reach(cut.events) or (self._labels and not self._labels.reach(cut.labels)):
                return None  # of the daemon before, whose batch may have been larger
            self._again.popleft()
            if not self._again:
                self._journal.retry()
            return cut
        n_events, n_labels = self._earliest(1 if self._suspect else self._settings.daemon.batch)
        if n_events + n_labels == 0:
            return None
        cut = Cut(
            Kind.ONE if self._suspect else Kind.CUT,
            self._events.records[n_events - 1].offset + 1 if n_events else state.offset,
            self._labels.records[n_labels - 1].offset + 1 if self._labels and n_labels else state.labels_offset,
        )
        self._journal.append(cut)
        if self._suspect and cut.events >= self._suspect.events and cut.labels >= self._suspect.labels:
            self._suspect = None
        return cut

    def _earliest(self, limit: int) -> tuple[int, int]:
        """How many events and labels have the earliest timestamps; none if an earlier one may be in the log still."""
        events = self._events.heads(limit)
        labels = self._labels.heads(limit) if self._labels else []
        n_events = n_labels = n_bytes = 0
        while n_events + n_labels < limit and n_bytes < _CUT_BYTES:
            has_event, has_label = n_events < len(events), n_labels < len(labels)
            if not (has_event or self._events.is_exhausted):
                return 0, 0
            if self._labels and not (has_label or self._labels.is_exhausted):
                return 0, 0
            if not has_event and not has_label:
                break
            if not has_label or (has_event and events[n_events][0] <= labels[n_labels][0]):
                n_bytes += events[n_events][1]
                n_events += 1
            else:
                n_bytes += labels[n_labels][1]
                n_labels += 1
        return n_events, n_labels

    def _consume(self, cut: Cut, state: State) -> int:
        events = self._events.take(cut.events)
        labels = self._labels.take(cut.labels) if self._labels else []
        self._newest = max((record.timestamp for record in (*events[-1:], *labels[-1:])), default=self._newest)
        if cut.kind == Kind.SKIP:
            error = BadRecord("killed-the-process", "the process did not survive this record")
            for record in (*events, *labels):
                logger.error("passing over %s-%d-%d, which killed the process", *record[:3])
                self._training.refuse(record, "learn", error, state)
        else:
            self._training.consume(events, labels, state)
        state.offset = max(state.offset, cut.events)  # a cut that is taken again may lie before what was lost
        state.labels_offset = max(state.labels_offset, cut.labels)
        return len(events) + len(labels)

    def _remember(self, state: State) -> None:
        if state.history.is_due(state.offset):
            state.history.add(self._snapshot(state))

    def _snapshot(self, state: State) -> Snapshot:
        metrics, models = state.metrics, list(state.models.in_memory())
        return Snapshot(
            n=state.offset,
            error=metrics.rolling_error(),
            g_mean=metrics.rolling_g_mean(),
            n_support=sum(model.n_support for model in models),
            seconds=state.counters.seconds,
            n_members=sum(model.n_members for model in models),
            n_labels=metrics.n,
            n_errors=metrics.n_errors,
            lag=self._lag_then,
            age=max(time.time() - self._newest / 1000, 0.0),  # NaN stays NaN
            shift=self.drift if self._settings.features.scale == "standard" else math.nan,
        )

    # --- checkpoints --------------------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        if not self.is_new:
            return False
        daemon = self._settings.daemon
        is_late = time.monotonic() - self._saved_at >= daemon.checkpoint_seconds
        return self._n_unsaved >= daemon.checkpoint_records or is_late

    @property
    def is_new(self) -> bool:
        """Whether anything was consumed, or produced, since the last checkpoint."""
        return self.state is not None and (self._n_unsaved > 0 or self._has_asked)

    def save(self) -> None:
        """Write a checkpoint, between two cuts; outputs must be durable by now, or be committed with it.

        Raises
        ------
        TakenOver
            If the partition belongs to another process by now.
        """
        assert self.state
        assert self._is_whole, "a checkpoint in the middle of a cut"
        self.state.history.latest = self._snapshot(self.state)
        checkpoint = replace(self.state.to_checkpoint(self._settings), topic_ids=self._topic_ids).to_bytes()
        self._journal = self.store.save(checkpoint, self.state.sequence + 1, self._again)
        self.checkpoint_bytes = len(checkpoint)
        self.state.sequence += 1
        self._has_asked = False
        if isinstance(self.state.models, KeyedModels):
            self.state.models.remove_old()
        n_dropped = self.state.models.n_dropped - self._saved_dropped
        if n_dropped:
            logger.info(
                "partition %d: %d models made room for those of other keys: daemon.max_keys", self.number, n_dropped
            )
        n_unmatched = self._unmatched - self._saved_unmatched
        if n_unmatched:
            logger.info(
                "partition %d: %d labels found no event, within join.ttl_seconds and join.labels_mb",
                self.number,
                n_unmatched,
            )
        self._note_saved()

    @property
    def committed(self) -> dict[tuple[str, int], Committed]:
        """What to tell others after a checkpoint; the note names it."""
        assert self.state
        note = f"{self.store.epoch}:{self.state.sequence}"
        offsets = (self.state.offset, self.state.labels_offset)
        return {
            (item.topic, self.number): Committed(offset, note)
            for item, offset in zip(self._inputs(), offsets, strict=False)
        }

    def publish(self, publisher: Publisher) -> int:
        """Publish the models that have changed; return their number."""
        if self.state is None:
            return 0
        for gone in self.state.models.withdrawn():
            publisher.withdraw(key_name(gone))
        n_models = 0
        for key, model in self.state.models.changed():
            name = f"p{self.number}" if key is None else key_name(key)
            meta = {
                "epoch": self.store.epoch,
                "ver": self.state.version,
                "offset": self.state.offset,
                "created": time.time(),
            }
            try:
                publisher.publish(name, pack_model(model, self.state.scaler, {}), meta)
                n_models += 1
            except TooLarge as error:
                self.n_unpublished += 1
                logger.error("partition %d: scorers keep the model that they have: %s", self.number, error)
        return n_models

    def _note_saved(self) -> None:
        self._saved_at = time.monotonic()
        self._saved_offsets = self._offsets
        self._saved_unmatched = self._unmatched
        self._saved_dropped = self.state.models.n_dropped if self.state else 0

    @property
    def _unmatched(self) -> int:
        """Labels that have found no event so far."""
        return self.state.join.counters.unmatched + self.state.join.counters.dropped_labels if self.state else 0

    @property
    def _offsets(self) -> int:
        """Records of both topics so far, for counting."""
        return self.state.offset + self.state.labels_offset if self.state else 0

    @property
    def _n_unsaved(self) -> int:
        return self._offsets - self._saved_offsets

    def close(self) -> None:
        """Give the partition up; what was not saved is consumed again by its next owner."""
        for item in self._inputs():
            item.close()
        if self.state and isinstance(self.state.models, KeyedModels):
            self.state.models.close()
        self.store.close()
