"""The scorer: it predicts events with the newest published models, and learns nothing.

Scorers share the events in their own consumer group, ``ID-score``; each reads the whole topic of models.  Their only
state is their offsets.  A scorer flushes its predictions before it commits the offsets of the events, so every event is
predicted at least once.  Readers recognise repetitions by ``src``; a repetition may come from a newer model.

A scorer waits for its first models before it takes a share of the events.  Later it replaces models between two
batches.  It unpacks a new model and lets it predict once; if that fails, it refuses the model and keeps the old one.

A scorer counts bad records and passes over them.  The trainer writes the dead letters.
"""

import functools
import logging
import math
import time
from collections.abc import Iterator

from ..logs.reading import POLL_RECORDS
from ..logs.transport import Committed, Record, TopicMismatch, Transport, Unavailable
from ..records.decisions import undecided
from ..records.formats.base import REASONS, BadRecord
from ..records.predictions import NO_CLASS, UNTAUGHT, Said, send_prediction, source, write_prediction
from ..records.published import POLL_PIECES, Snapshot
from ..runtime.health import Health
from ..runtime.metrics import Metrics
from ..runtime.process import LOOK_SECONDS, POLL_SECONDS, Stop
from ..settings import topics
from ..settings.contradictions import lacking
from ..settings.sections import Settings, refuse
from ..trainer.inputs import CUT_BYTES, Input
from ..trainer.operate import Loop, operate, progress_bar
from ..trainer.rows import by_owner
from .committee import ModelTopic, Request, misfit, models_of, unpack

logger = logging.getLogger(__name__)

_SWAP_SECONDS = 0.01  # for unpacking models while events wait; the last one may take longer
_LOADING_SECONDS = 1.0  # for the same at the beginning, when no event waits
_FROM_THE_START = (
    "streamsvm_records_total",
    "streamsvm_predictions_total",
    "streamsvm_lost_records_total",
    "streamsvm_tombstones_total",
    "streamsvm_refused_snapshots_total",
    "streamsvm_rebalances_total",
    "streamsvm_cut_seconds",
)


def run(settings: Settings, stop: Stop = lambda: False, device: str = "cpu") -> int:
    """Run a scorer.

    Parameters
    ----------
    settings
        The configuration.
    stop
        Asked between batches; the scorer ends cleanly once it says True.
    device
        The device that predicts batches, as for `streamsvm.LASVM`; default "cpu".

    Returns
    -------
    int
        Number of predictions.

    Raises
    ------
    ConfigError
        If the configuration names no topic of models.
    TopicMismatch
        If the topic does not exist, or if it has no model and the scorer does not follow it.
    AlreadyInUse
        If another scorer writes to the same embedded log.
    LogCorruption, OffsetOutOfRange
        If the log cannot be used.
    AccessDenied, Unavailable, OutputsLost, TakenOver
        If a Kafka cluster refuses the scorer, does not answer, or gave its partitions to another one.
    """
    refuse(lacking(settings, NEEDS))
    return operate(functools.partial(Scorer, device=device), settings, stop, f"{settings.group.id}-score") or 0


NEEDS = {"log.model": "name the topic on which the trainers publish their models"}


class Scorer(Loop[int]):
    """The loop over this process's share of the events, which predicts batches on a device."""

    def __init__(
        self, settings: Settings, log: Transport, stop: Stop, health: Health, metrics: Metrics, device: str = "cpu"
    ) -> None:
        super().__init__(settings, log, stop, health, metrics)
        self._device = device
        self._codec = settings.codec(self._wait)
        self._untaught: Said = NO_CLASS if settings.label.vocabulary else UNTAUGHT
        if settings.decide.error:
            known = settings.label.known().labels
            self._untaught = self._untaught._replace(verdict=undecided(tuple(known)))
        self._topic = ModelTopic(log, topics.served(settings))
        self._models = models_of(settings, device)
        self._split = settings.split()
        self._inputs: dict[int, Input] = {}
        self._next: dict[int, int] = {}  # offset of the next event to predict, by partition
        self._committed: dict[int, int] = {}
        self._ends: dict[int, int] = {}  # of the topic of events, at the beginning
        self._n_predicted = 0
        self._n_unsaved = 0
        self._saved_at = self._looked_at = time.monotonic()
        self._misfits: dict[str, str] = {}  # why models of these names are not in use
        self._is_busy = True  # the last cycle had something to do
        metrics.begin(*_FROM_THE_START)
        for reason in REASONS:
            metrics.begin("streamsvm_bad_records_total", reason=reason)

    def run(self) -> int:
        """Predict the new events, to the end of the log or until stopped; return their number."""
        settings = self._settings
        topics.check(settings, topics.of_scorers(settings))
        self._ends = self._log.end_offsets(settings.log.topic)
        self._load()
        if self._stop():
            return 0
        total = None if settings.daemon.follow else sum(self._ends.values())
        try:
            self._log.subscribe(settings.log.topic, self)
            with progress_bar(settings.log.topic, total, sum(self._next.values())) as progress:
                while not self._stop() and not self._is_finished():
                    progress.update(self._cycle())
            self._save()
            return self._n_predicted
        finally:
            self._drop(list(self._inputs))

    # --- models -------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Wait until the newest models are in use, at least one."""
        settings, topic = self._settings, self._topic.name
        waits_for = f"reading the models of topic {topic!r}"
        while not self._stop():
            self._beat(waits_for)
            self._topic.follow()
            self._take_events(0.0 if self._topic.arrived else POLL_SECONDS, POLL_PIECES)
            if not self._topic.is_read:
                continue
            self._swap(_LOADING_SECONDS)
            if self._topic.arrived:
                continue
            if self._models:
                return
            refused = "".join(f". Model {name!r} is refused: {why}" for name, why in [*self._misfits.items()][:1])
            if not settings.daemon.follow:
                raise TopicMismatch(
                    f"topic {topic!r} has no model for daemon.per = {settings.daemon.per!r}; a scorer waits for one "
                    f"only if daemon.follow = true{refused}"
                )
            waits_for = (
                f"no model has been published yet on topic {topic!r} for daemon.per = {settings.daemon.per!r}{refused}"
            )

    def _swap(self, seconds: float) -> None:
        """Put newer models into use, for about `seconds`."""
        until = time.perf_counter() + seconds
        while self._topic.arrived:
            name = next(iter(self._topic.arrived))
            arrived = self._topic.arrived.pop(name)
            if self._models.knows(name) and isinstance(arrived, Snapshot):
                self._take(arrived)
            elif self._models.knows(name):
                self._misfits.pop(name, None)
                self._models.drop(name)
                self._metrics.drop(model=name)
            if time.perf_counter() >= until:
                return

    def _take(self, snapshot: Snapshot) -> None:
        name, version = snapshot.name, snapshot.manifest["ver"]
        try:
            member = unpack(snapshot, self._device)
            reason = misfit(member.served, self._settings)
            if self._settings.decide.error and member.served.decider is None:
                reason = (
                    reason or "it does not decide, and the configuration has decide.error: its trainer needs it, too"
                )
        except ValueError as error:
            reason = str(error)
        if reason:
            self._metrics.add("streamsvm_refused_snapshots_total")
            if self._misfits.get(name) != reason:
                logger.warning("refusing version %d of model %r and keeping the old one: %s", version, name, reason)
            self._misfits[name] = reason
            return
        self._misfits.pop(name, None)
        self._models.put(snapshot, member)
        created = member.created
        shown = "newest" if self._settings.daemon.per == "key" else name
        self._metrics.set("streamsvm_model_age_seconds", lambda: time.time() - created, model=shown)
        logger.debug("version %d of model %r is in use", version, name)

    # --- ownership ----------------------------------------------------------------------------------------------------

    def assigned(self, partitions: list[int]) -> None:
        """Take partitions over, from the offsets that their last owners committed."""
        settings, topic = self._settings, self._settings.log.topic
        committed = self._log.committed(topic)
        first = self._ends if settings.daemon.start == "latest" else self._log.start_offsets(topic)
        for number in partitions:
            end = None if settings.daemon.follow else self._ends.get(number, 0)
            self._inputs[number] = Input(self._log, topic, number, end)
            if number in committed:
                self._committed[number] = committed[number].offset
            self._begin(number, self._committed.get(number, first.get(number, 0)))
        self._saved_at = -math.inf  # commit soon, so that the next owner begins here and not at a later end
        self._metrics.add("streamsvm_rebalances_total")
        logger.info("assigned partitions %s", partitions)

    def revoked(self, partitions: list[int]) -> None:
        """Hand partitions over."""
        logger.info("revoked partitions %s", partitions)
        if not self._save() and self._settings.daemon.exactly_once:  # the open transaction has their predictions
            raise Unavailable("the partitions are handed over only after their predictions are durable")
        self._drop(partitions)

    def lost(self, partitions: list[int]) -> None:
        """Forget partitions that have another owner by now: it began at the last commit."""
        logger.warning("lost partitions %s", partitions)
        self._drop(partitions)

    def _begin(self, number: int, offset: int) -> None:
        """Read a partition from `offset` on."""
        start = self._inputs[number].begin(offset, self._settings.daemon.on_data_loss)
        self._metrics.add("streamsvm_lost_records_total", start - offset)
        self._next[number] = start

    def _drop(self, partitions: list[int]) -> None:
        for number in partitions:
            if self._inputs.pop(number, None) is not None:
                self._log.release(self._settings.log.topic, number)
                self._committed.pop(number, None)
                self._next.pop(number, None)
                self._metrics.drop(partition=number)

    # --- a cycle ------------------------------------------------------------------------------------------------------

    def _cycle(self) -> int:
        """Poll, replace models, predict and commit; return the number of records."""
        self._beat(None if self._inputs else "no partition is assigned")
        events = self._take_events(0.0 if self._is_busy else POLL_SECONDS, POLL_RECORDS)
        self._swap(_SWAP_SECONDS)
        for batch in self._batches(events):
            self._score(batch)
        self._is_busy = bool(events or self._topic.arrived)
        if self._is_due:
            self._save()
        return len(events)

    def _beat(self, waits_for: str | None) -> None:
        """Show that the loop is alive, and whether it is ready."""
        self._health.heartbeat.beat()
        self._show(waits_for)
        if time.monotonic() - self._looked_at >= LOOK_SECONDS:
            self._collect()

    def _seek(self) -> None:
        self._topic.check_positions()
        for number in self._inputs:
            self._begin(number, self._next[number])

    def _take_events(self, timeout: float, limit: int) -> list[Record]:
        """The events that have come; models go to the topic's reader."""
        events = []
        for record in self._poll(timeout, limit):
            if record.topic == self._topic.name:
                self._topic.put(record)
            elif record.partition in self._inputs and self._is_wanted(record):
                events.append(record)
        return events

    def _is_wanted(self, record: Record) -> bool:
        return self._settings.daemon.follow or record.offset < self._ends.get(record.partition, 0)

    def _is_finished(self) -> bool:
        is_bounded = not self._settings.daemon.follow
        at_end = bool(self._inputs) and all(item.is_at_end for item in self._inputs.values())
        return is_bounded and at_end and not self._is_busy

    def _collect(self) -> None:
        """Update the metrics."""
        self._looked_at = time.monotonic()
        for number, item in self._inputs.items():
            self._metrics.set("streamsvm_lag_records", item.lag, topic=item.topic, partition=number)
        self._metrics.add("streamsvm_refused_snapshots_total", self._topic.take_refused())

    # --- predicting ---------------------------------------------------------------------------------------------------

    def _batches(self, records: list[Record]) -> Iterator[list[Record]]:
        """All records at once, which costs least, or parts of them if decoded records could take much memory."""
        n_bytes = sum(record.nbytes for record in records)
        at_once = self._settings.daemon.batch if n_bytes > CUT_BYTES else POLL_RECORDS
        for start in range(0, len(records), at_once):
            yield records[start : start + at_once]

    def _score(self, records: list[Record]) -> None:
        """Predict a batch of events."""
        started = time.perf_counter()
        events = [record for record in records if record.value is not None]
        requests = [request for record in events if (request := self._read(record)) is not None]
        answers: dict[int, Said] = {}
        for committee, chosen in by_owner(dict(enumerate(request.committee for request in requests))).items():
            said = committee.predict([requests[i].event.x for i in chosen], self._untaught)
            for i, answer in zip(chosen, said, strict=True):
                if isinstance(answer, BadRecord):
                    self._metrics.add("streamsvm_bad_records_total", reason=answer.reason)
                else:
                    answers[i] = answer
        for i, answer in sorted(answers.items()):
            record, event, committee = requests[i]
            value = write_prediction(self._codec, event, answer, committee.version, source(record))
            send_prediction(self._log, self._settings.log.scores, record, value)
        for record in records:
            self._next[record.partition] = record.offset + 1
        self._n_predicted += len(answers)
        self._n_unsaved += len(records)
        self._metrics.add("streamsvm_records_total", len(records))
        self._metrics.add("streamsvm_tombstones_total", len(records) - len(events))
        self._metrics.add("streamsvm_predictions_total", len(answers))
        self._metrics.observe("streamsvm_cut_seconds", time.perf_counter() - started)

    def _read(self, record: Record) -> Request | None:
        """The event in a record, and its committee; None for a bad record."""
        try:
            event = self._codec.decode(record)
            committee = self._models.choose(record.key, self._split.of(record.key, event.key))
            return Request(record, event, committee)
        except BadRecord as error:
            self._metrics.add("streamsvm_bad_records_total", reason=error.reason)
            return None

    # --- saving -------------------------------------------------------------------------------------------------------

    @property
    def _is_due(self) -> bool:
        daemon = self._settings.daemon
        is_late = time.monotonic() - self._saved_at >= daemon.checkpoint_seconds
        return is_late or self._n_unsaved >= daemon.checkpoint_records

    def _save(self) -> bool:
        """Flush the predictions, then commit the offsets; return False if the flush failed."""
        offsets = {number: offset for number, offset in self._next.items() if offset != self._committed.get(number)}
        if not offsets:
            return True
        if not self._flush("nothing is committed: predictions"):
            return False
        self._log.commit({(self._settings.log.topic, number): Committed(offset) for number, offset in offsets.items()})
        self._committed |= offsets
        self._n_unsaved = 0
        self._saved_at = time.monotonic()
        return True
