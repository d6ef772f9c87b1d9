"""The daemon: read events from a log, predict, learn, and forget nothing when it is killed.

The state after any record is a pure function of the log up to there and of the settings:

- batches are cut at multiples of the batch size in the topic's offsets, not by what a poll happens to bring;
- the scaler is fitted on the first events of the log, which are then consumed from the start with the frozen scale;
- a checkpoint holds the model together with the offset of the next record.

So a daemon that is killed goes on from its last checkpoint and ends with the very model of one that never was.  Outputs
made after that checkpoint are made again, with the same bytes: readers tell repetitions by ``src``.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import numpy as np

from streamsvm import WarmupScaler

from .checkpoint import CheckpointStore, check_fingerprint
from .local_log import LocalLog
from .observe import Progress, Snapshot
from .settings import Settings
from .state import Breaker, State
from .transport import Record, Transport
from .wire import MAX_MAGNITUDE, BadRecord, Codec, Event, ModelVersion, dead_letter_headers

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2  # a signal is noticed at least this often

Stop = Callable[[], bool]


class Decoded(NamedTuple):
    """A record that is an event, with its features in the model's coordinates."""

    record: Record
    event: Event
    x: dict[str, float]


def run(settings: Settings, stop: Stop = lambda: False) -> State | None:
    """Consume the local log of a configuration; see `Daemon`.

    Parameters
    ----------
    settings
        The configuration.
    stop
        Asked between batches; the daemon ends cleanly once it says True.

    Returns
    -------
    State or None
        As of the last record; None if there was not one event.

    Raises
    ------
    ConfigError
        If the checkpoint belongs to other settings.
    AlreadyInUse
        If another daemon uses the state folder or writes to the output topics.
    LogCorruption, OffsetOutOfRange, CheckpointError, TooManyBadRecords
        If the log or the checkpoints cannot be used.
    """
    segment_bytes = int(settings.log.segment_mb * 2**20)
    with (
        CheckpointStore(settings.daemon.state_dir, settings.daemon.keep) as store,
        LocalLog(settings.log.dir, segment_bytes) as log,
    ):
        return Daemon(settings, log, store, stop).run()


class Daemon:
    """The loop over one partition of one topic.

    Parameters
    ----------
    settings
        The configuration.
    log
        Where events come from and predictions go.
    store
        Where checkpoints go.
    stop
        Asked between batches; the daemon ends cleanly once it says True.
    """

    def __init__(self, settings: Settings, log: Transport, store: CheckpointStore, stop: Stop) -> None:
        self._settings = settings
        self._log = log
        self._store = store
        self._stop = stop
        self._codec = Codec(settings.features.names, settings.label.positive, settings.label.negative)
        self._end = None if settings.daemon.follow else log.end_offsets(settings.log.topic).get(0, 0)

    def run(self) -> State | None:
        """Go on from the newest checkpoint, or from the start, to the end of the log or until stopped."""
        state = self._restore() or self._begin()
        if state is None:
            return None
        saved_offset, saved_at = state.offset, time.monotonic()
        with self._progress(state) as progress:
            for batch in self._batches(state.offset):
                started = time.perf_counter()
                self._consume(batch, state)
                state.offset = batch[-1].offset + 1
                state.counters.seconds += time.perf_counter() - started
                self._observe(state, progress, len(batch))
                if self._is_due(state.offset - saved_offset, time.monotonic() - saved_at):
                    self._save(state)
                    saved_offset, saved_at = state.offset, time.monotonic()
        if state.offset > saved_offset:
            self._save(state)
        return state

    # --- beginning ----------------------------------------------------------------------------------------------------

    def _restore(self) -> State | None:
        checkpoint = self._store.load()
        if checkpoint is None:
            return None
        check_fingerprint(checkpoint, self._settings.fingerprint(), self._settings.daemon.state_dir)
        state = State.from_checkpoint(checkpoint, self._settings)
        logger.info("going on from checkpoint %d at offset %d", state.sequence, state.offset)
        return state

    def _begin(self) -> State | None:
        """The state before the first record; None if not even the scale can be fitted."""
        if self._settings.features.scale == "none":
            return State.new(self._settings, None)
        scaler = self._fit_scaler()
        return None if scaler is None else State.new(self._settings, scaler)

    def _fit_scaler(self) -> WarmupScaler | None:
        """Fit the scale on the first events; None if there is no event yet."""
        features = self._settings.features
        examples = [event.x for event in islice(self._first_events(), features.warmup)]
        if not examples or (len(examples) < features.warmup and self._stop()):
            return None
        if len(examples) < features.warmup:
            logger.warning("the scale is fitted on %d events, for the log has no more", len(examples))
        scaler = WarmupScaler(kind=features.scale, warmup=len(examples))
        for x in examples:
            scaler.learn_one(x)
        return scaler

    def _first_events(self) -> Iterator[Event]:
        """Events from the start of the log, which are consumed later."""
        breaker = Breaker(self._settings.daemon.max_bad)
        for batch in self._batches(0):
            for record in batch:
                try:
                    event = self._codec.decode(record.value)
                except BadRecord:
                    breaker.observe(True)
                else:
                    breaker.observe(False)
                    yield event

    # --- the loop's parts ---------------------------------------------------------------------------------------------

    def _batches(self, offset: int) -> Iterator[list[Record]]:
        """Records from `offset` on, cut at multiples of the batch size; the last batch may be short if the log ends."""
        size, topic = self._settings.daemon.batch, self._settings.log.topic
        self._log.seek(topic, 0, offset)
        while self._end is None or offset < self._end:
            cut = (offset // size + 1) * size
            cut = cut if self._end is None else min(cut, self._end)
            batch: list[Record] = []
            while offset < cut:
                if self._stop():
                    return
                batch += self._log.poll(POLL_SECONDS, cut - offset)
                offset = batch[-1].offset + 1 if batch else offset
            yield batch

    def _consume(self, batch: list[Record], state: State) -> None:
        """Predict every event of a batch, then learn those that have a label."""
        decoded = self._decode_batch(batch, state)
        if not decoded:
            return
        rows = [item.x for item in decoded]
        margins = state.model.decision_function_many(rows)
        scores = state.model.probability(margins)
        version = ModelVersion(state.counters.learned, state.offset)
        for item, margin, score in zip(decoded, margins.tolist(), scores.tolist(), strict=True):
            self._emit(item, margin, score, version)
        self._learn(decoded, margins, state)
        state.counters.predicted += len(decoded)

    def _learn(self, decoded: list[Decoded], margins: np.ndarray, state: State) -> None:
        labelled = [i for i, item in enumerate(decoded) if item.event.y is not None]
        if not labelled:
            return
        events = [decoded[i].event for i in labelled]
        y = np.array([event.y for event in events], dtype=bool)
        state.metrics.update(y, margins[labelled])
        state.model.learn_many(
            [decoded[i].x for i in labelled],
            y,
            w=np.array([event.w for event in events]),
            ids=np.array([event.key for event in events], dtype=np.int64),
        )
        state.counters.learned += len(labelled)

    def _decode_batch(self, batch: list[Record], state: State) -> list[Decoded]:
        """The events of a batch in the model's coordinates; what is none goes to the dead-letter topic."""
        decoded = []
        for record in batch:
            try:
                event = self._codec.decode(record.value)
                decoded.append(Decoded(record, event, _usable(state, event.x)))
            except BadRecord as error:
                self._refuse(record, error)
                state.counters.bad += 1
                state.breaker.observe(True)
            else:
                state.breaker.observe(False)
        return decoded

    def _refuse(self, record: Record, error: BadRecord) -> None:
        headers = [*record.headers, *dead_letter_headers(record, "decode", error)]
        self._log.produce(self._settings.log.dlq, record.value, key=record.key, headers=headers)

    def _emit(self, item: Decoded, margin: float, score: float, version: ModelVersion) -> None:
        src = f"{item.record.topic}-{item.record.partition}-{item.record.offset}"
        value = self._codec.encode(item.event, score=score, margin=margin, model=version, src=src)
        self._log.produce(self._settings.log.predictions, value, key=item.record.key)

    # --- watching and saving ------------------------------------------------------------------------------------------

    def _progress(self, state: State) -> Progress:
        return Progress(self._settings.log.topic, total=self._end, done=state.offset)

    def _observe(self, state: State, progress: Progress, n_records: int) -> None:
        if not state.history.is_due(state.offset):
            progress.advance(n_records)
            return
        metrics, n_support = state.metrics, state.model.n_support
        error, g_mean = metrics.rolling_error(), metrics.rolling_g_mean()
        state.history.add(Snapshot(state.offset, error, g_mean, n_support, state.counters.seconds))
        progress.advance(n_records, error=f"{error:.1%}", support_vectors=n_support)

    def _is_due(self, n_records: int, seconds: float) -> bool:
        daemon = self._settings.daemon
        return n_records >= daemon.checkpoint_records or seconds >= daemon.checkpoint_seconds

    def _save(self, state: State) -> None:
        """Outputs become durable before the checkpoint that says their inputs are done."""
        self._log.flush()
        self._store.save(state.to_checkpoint(self._settings))
        state.sequence += 1


def _usable(state: State, x: dict[str, float]) -> dict[str, float]:
    """The features in the model's coordinates, if the model can learn from them."""
    scaled = state.scaler.transform_one(x) if state.scaler else x
    for name, value in scaled.items():
        if not -MAX_MAGNITUDE < value < MAX_MAGNITUDE:
            raise BadRecord(
                "bad-feature", f"feature {name!r} is {x[name]!r}, far outside the scale of the first events"
            )
    try:
        state.model.validate_one(scaled)
    except ValueError as error:
        raise BadRecord("bad-feature", str(error)) from error
    return scaled


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """A `stop` that is true after SIGTERM or SIGINT; a second signal ends the process at once."""
    requested = threading.Event()
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(*_: object) -> None:
        for number in previous:
            signal.signal(number, signal.SIG_DFL)
        requested.set()

    for number in previous:
        signal.signal(number, handle)
    try:
        yield requested.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
