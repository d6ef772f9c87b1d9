"""One partition of the stream: its inputs, its state, and its checkpoints.

A partition consumes its records in cuts (see `cuts`).  Each cut is in the journal before it is consumed, so a run that
was killed is repeated from its last checkpoint, cut by cut.
"""

import logging
import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from operator import attrgetter

from ..logs.transport import Committed, Record, Transport
from ..records.codec import Codec
from ..records.erasures import Swap
from ..records.formats.base import BadRecord
from ..records.models import Model
from ..records.published import LOADING_SECONDS, Publisher
from ..records.times import is_known
from ..settings.sections import Settings
from .cuts import Cuts
from .erasing import Erasing
from .excerpt import first_event
from .following import Following
from .inputs import Input, ReadAhead
from .processing import Processor
from .publication import merged_model, publish_models
from .serving import Serving
from .state.challengers import check_settings
from .state.checkpoint import Checkpoint, CheckpointStore, Saving, check_topics
from .state.counters import LOSSES, USUAL, losses_of
from .state.erased import without
from .state.journal import Cut, Kind
from .state.quality.prequential import Snapshot
from .state.state import State

logger = logging.getLogger(__name__)

_RECORDS_A_MODEL = 10  # that pay for writing a model: a checkpoint takes little of the time


class Partition:
    """One partition of the stream, whose state this process owns.

    Parameters
    ----------
    number
        Number of the partition.
    settings
        The configuration.
    codec
        Reads its records.
    log
        Has its records, and takes its outputs.
    store
        Keeps its checkpoints and its journal.
    ahead
        The memory limit for polled records.
    learns_from
        Offset of the first event that counts; of raw events before it, the numbers of later ones are made.
    is_silent
        Whether only the models and the join count: nothing is written, measured or watched.
    saves_later
        Whether a checkpoint may be written after records that do not belong to it were consumed.

    Attributes
    ----------
    processor : Processor
        Does what is done with the records; it counts what it met since this process began.
    n_lost : int
        Records that were removed from the log before they were read, since this process began.
    n_unpublished : int
        Models that were too large to publish, since this process began.

    Raises
    ------
    ConfigError
        If the checkpoint belongs to other settings.
    OffsetOutOfRange
        If the log does not have the next record.
    TopicMismatch
        If a topic was deleted and made again since the checkpoint.
    CheckpointError
        If there are checkpoints, but none can be read.
    """

    def __init__(
        self,
        number: int,
        settings: Settings,
        codec: Codec,
        log: Transport,
        store: CheckpointStore,
        ahead: ReadAhead,
        learns_from: int = 0,
        *,
        is_silent: bool = False,
        saves_later: bool = False,
    ) -> None:
        self.number = number
        self._learns_from = learns_from
        self._ahead = ahead
        self.store = store
        self.state: State | None = None
        self._first_model: Model | None = None  # None: an empty one
        self._settings = settings
        self._log = log
        self.processor = Processor(settings, codec, log, number, is_silent=is_silent)
        self._saves_later = saves_later and self.processor.shadow is not None
        self._saving: Saving | None = None  # a checkpoint to which challengers have still to come
        self.checkpoint_bytes = 0
        self._is_whole = True  # no cut is half consumed
        self._has_asked = False  # questions were asked that no checkpoint has
        self._has_changed = False  # requests were followed that no checkpoint has
        self._n_to_save = 0  # checkpoints to write at once, so that none of those before an erasure is left
        self.wants_publication = False  # scorers must not go on with the models that they have
        self._newest = math.nan  # time of the newest record that was consumed, in milliseconds
        self._lag_then = math.nan  # at that moment: a log does not know the lag of a revoked partition
        self.n_lost = 0
        self.n_unpublished = 0
        self._inputs = [*map(self._input, settings.log.inputs)]
        self._events = self._inputs[0]
        erasures = settings.log.erasures
        self._erasing = Erasing([self._input(erasures)], number, self._refuse_request) if erasures else None
        control = settings.log.control_topics if settings.challenger else ()
        serving = Serving([*map(self._input, control)], number, self._refuse_request, settings, log, self.catch_up)
        self._serving = serving if settings.challenger else None
        self._followers: list[Following] = [each for each in (self._erasing, self._serving) if each is not None]
        ids = {item.topic: log.topic_id(item.topic) for item in self._inputs}
        self._topic_ids = {topic: topic_id for topic, topic_id in ids.items() if topic_id}
        # Outputs that were committed together with later offsets must not come twice.
        self._begin(*self._restore(store.load(goes_back=not settings.daemon.exactly_once)))
        self._journal, again, suspect = store.begin_journal()
        self._cuts = Cuts(self._inputs, settings.daemon.batch, again, suspect)
        self._note_saved()

    # --- beginning and going on ---------------------------------------------------------------------------------------

    def _input(self, topic: str) -> Input:
        end = None if self._settings.daemon.follow else self._log.end_offsets(topic).get(self.number, 0)
        return Input(self._log, topic, self.number, end, self._settings.daemon.batch, self._ahead)

    def _restore(self, checkpoint: Checkpoint | None) -> tuple[int, int]:
        """Take over a checkpoint; return the offsets to begin at in both topics."""
        if checkpoint is None:
            first, *labels = map(self._first_offset, self._inputs)
            self._origin = first, sum(labels)
            if self._settings.daemon.begin == "merged":
                self._first_model = merged_model(self._settings, LOADING_SECONDS)
            return self._origin
        check_settings(checkpoint, self._settings, self.store.folder)
        check_topics(checkpoint, self._topic_ids)
        self.state = State.from_checkpoint(checkpoint, self._settings, self.store, self.number)
        self.processor.attend(self.state)
        self._begin_challengers(self.state)
        self._has_asked = self.processor.resume(self.state)
        logger.info(
            "partition %d: going on from checkpoint %d of %s at offset %d",
            *(self.number, self.state.sequence, self.store.folder, self.state.offset),
        )
        return self.state.offset, self.state.labels_offset

    def _begin_challengers(self, state: State) -> None:
        first = partial(first_event, self._settings, self._log, self.number)
        if state.challengers.begin(first, state.offset):
            self.note_progress()

    def _first_offset(self, item: Input) -> int:
        is_latest = self._settings.daemon.start == "latest"
        offsets = self._log.end_offsets(item.topic) if is_latest else self._log.start_offsets(item.topic)
        return offsets.get(self.number, 0)

    def _begin(self, *offsets: int) -> None:
        for item, offset in zip(self._inputs, offsets, strict=False):
            start = item.begin(offset, self._settings.daemon.on_data_loss)
            if start > offset:
                self._count_lost(item, offset, start)
        for each in self._followers:
            each.begin(self.state)

    def _count_lost(self, item: Input, offset: int, start: int) -> None:
        """Count the records from `offset` to `start`, and go on behind them unless earlier ones are still queued."""
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
        self._begin(*(item.position for item in self._inputs))

    def _prepare(self) -> State | None:
        """The state; None until the first event has come, and all requests of the time before this process."""
        if self.state is None:
            if not self._events.records or not all(each.is_ready for each in self._followers):
                return None
            self.state = State.new(self._settings, self.store, self.number, self._first_model)
            self._first_model = None
            self.processor.attend(self.state)
            self.state.offset, self.state.labels_offset = self._origin
            self.state.counters.lost = self.n_lost
            self._begin_challengers(self.state)
            self.save()  # a restart begins at these offsets, even if the log begins later by then
        return self.state

    # --- cuts ---------------------------------------------------------------------------------------------------------

    def offer(self, topic: str, records: Iterable[Record]) -> None:
        """Queue records that were polled from one topic."""
        for item in self._all_inputs():
            if item.topic == topic:
                item.offer(records)

    def step(self) -> int:
        """Consume a cut, if there is one; return the number of its records."""
        state = self._prepare()
        if state is None or not self._may_learn(state) or not self._may_predict(state):
            return 0
        if self._saves_later and self._saving is None and self._is_time and not self._n_to_save:
            self._saving = self._begin_saving(state, is_later=True)
        stop = self._serving.stop if self._serving else None
        cut = self._cuts.next((state.offset, state.labels_offset), self._journal, stop)
        if cut is None:
            return 0
        started = time.perf_counter()
        self._is_whole = False
        try:
            n_records = self._consume(cut, state)
        except Exception:
            self._journal.done()  # Only a crash leaves the cut open, to be consumed again.
            raise
        self._is_whole = True
        if not self._cuts.again:
            self._journal.done()
        self._lag_then = sum(self.lag.values())
        state.counters.seconds += time.perf_counter() - started
        self._remember(state)
        return n_records

    def _may_predict(self, state: State) -> bool:
        """Let the right model serve; return whether it may, or whether a checkpoint comes first."""
        if self._serving is None:
            return True
        if not self._serving.is_ready:
            return False
        if self._serving.follow(state, is_repeating=bool(self._cuts.again)):
            self._note_change(1)
        return not self._has_changed

    def _may_learn(self, state: State) -> bool:
        """Follow the requests to forget; return whether the next cut may be consumed, or a checkpoint comes first."""
        if self._erasing is None or self._cuts.again:  # a repeated cut was consumed before those requests
            return True
        if not self._erasing.is_ready:
            return False
        if not self._erasing.is_empty:
            self.catch_up()
        if not self._has_changed and self._erasing.follow(state):
            self._note_change(self._settings.daemon.keep)
            self._has_asked = self.processor.resume(state) or self._has_asked  # withdraws questions
        return not self._has_changed and self._erasing.swap is None

    @property
    def is_behind(self) -> bool:
        """Whether challengers have not yet followed through all cuts."""
        shadow = self.processor.shadow
        return shadow is not None and shadow.is_behind

    def catch_up(self, seconds: float = math.inf) -> None:
        """Let the challengers follow for so long, or through all cuts."""
        if self.processor.shadow and self.state:
            self.processor.shadow.catch_up(self.state, seconds)

    def _note_change(self, n_to_save: int) -> None:
        """Write so many checkpoints before the next cut: the models are others than those of the newest one."""
        self._has_changed = self.wants_publication = True
        self._n_to_save = max(self._n_to_save, n_to_save)

    @property
    def swap(self) -> Swap | None:
        """The rebuilt state that the partition waits for, once a checkpoint has all requests before it."""
        return self._erasing.swap if self._erasing and not self._has_changed else None

    def swapped(self, rebuilt: State | None) -> None:
        """Go on with a rebuilt state of the same place in the stream; None: with the one that is here."""
        assert self.state
        assert self._erasing
        if rebuilt is not None:
            self.state = self.state.replaced_by(rebuilt)
            self.processor.attend(self.state)
        self._erasing.swapped(self.state)
        self._note_change(self._settings.daemon.keep)

    def _refuse_request(self, record: Record, error: BadRecord, state: State) -> None:
        logger.error("%s-%d-%d is passed over: %s", *record[:3], error.detail)
        self.processor.decoder.refuse(record, "request", error, state)

    def read_on(self, events: int, labels: int) -> None:
        """Read on to later ends of both topics."""
        for item, end in zip(self._inputs, (events, labels), strict=False):
            item.extend(end)

    def note_progress(self) -> None:
        """Write a checkpoint soon: a challenger has caught up with more of the log."""
        self._n_to_save = max(self._n_to_save, 1)

    @property
    def wants_records(self) -> bool:
        """Whether the next cut has to be polled first."""
        if self.state is None or self._cuts.again or not all(each.is_ready for each in self._followers):
            return True
        return not all(item.has_cut or item.is_at_end for item in self._inputs)

    @property
    def is_finished(self) -> bool:
        """Whether a trainer that does not follow has consumed all records that the log had at the beginning."""
        is_open = self._n_to_save or not all(each.is_finished for each in self._followers)
        if self.state is None:  # labels alone make none
            return self._events.is_at_end and not self._events.records
        return not is_open and all(item.is_at_end and not item.records for item in self._inputs)

    @property
    def lag(self) -> dict[str, int]:
        """Number of records that are known to wait, by topic."""
        return {item.topic: item.lag for item in self._inputs}

    def _all_inputs(self) -> list[Input]:
        return [*self._inputs, *(item for each in self._followers for item in each.items)]

    def _consume(self, cut: Cut, state: State) -> int:
        taken = [item.take(end) for item, end in zip(self._inputs, cut.ends, strict=False)]
        events, labels = (*taken, [])[:2]
        stamps = [record.timestamp for record in (*events[-1:], *labels[-1:]) if is_known(record.timestamp)]
        self._newest = max(stamps, default=self._newest)
        if cut.kind == Kind.SKIP:
            error = BadRecord("killed-the-process", "the process was killed whenever it consumed this record")
            for record in (*events, *labels):
                logger.error("passing over %s-%d-%d: it killed the process", *record[:3])
                self.processor.decoder.refuse(record, "learn", error, state)
        else:
            erased = state.erased
            events = without(events, erased.events)
            n_earlier = bisect_left(events, self._learns_from, key=attrgetter("offset"))
            self.processor.observe(events[:n_earlier], state)
            self.processor.process(events[n_earlier:], without(labels, erased.labels), state)
        state.offset = max(state.offset, cut.events)  # a repeated cut may lie before lost records
        state.labels_offset = max(state.labels_offset, cut.labels)
        return len(events) + len(labels)

    def _remember(self, state: State) -> None:
        if state.history.is_due(state.offset):
            state.history.add(self._snapshot(state))
        state.decided.note(state.offset)

    def _snapshot(self, state: State) -> Snapshot:
        metrics, sizes = state.metrics, state.models.sizes()
        return Snapshot(
            n=state.offset,
            error=metrics.rolling_error(),
            n_support=sizes.n_support,
            seconds=state.counters.seconds,
            n_members=sizes.n_members,
            n_labels=metrics.n,
            n_errors=metrics.n_errors,
            lag=self._lag_then,
            age=max(time.time() - self._newest / 1000, 0.0),  # NaN stays NaN
            shift=self.processor.drift.largest(),
            **metrics.of_history(),
        )

    # --- checkpoints --------------------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether a checkpoint is to be written now."""
        if self._saves_later and not self._n_to_save:
            return self._is_prepared
        return self.is_new and (self._n_to_save > 0 or self._is_time)

    @property
    def _is_prepared(self) -> bool:
        """Whether challengers have come to the place of a checkpoint that was begun."""
        return self._saving is not None and self._saving.is_complete and not self._n_to_save

    @property
    def _is_time(self) -> bool:
        """Whether there is so much to save, or since so long, that the next checkpoint may begin."""
        if not self._n_unsaved and not self._has_asked:
            return False
        daemon = self._settings.daemon
        is_late = time.monotonic() - self._saved_at >= daemon.checkpoint_seconds
        worth_writing = _RECORDS_A_MODEL * self.state.models.n_unsaved if self.state else 0
        return is_late or self._n_unsaved >= max(daemon.checkpoint_records, worth_writing)

    @property
    def is_new(self) -> bool:
        """Whether anything was consumed or asked since the last checkpoint."""
        is_open = self._n_unsaved > 0 or self._has_asked or self._n_to_save > 0 or self._saving is not None
        return self.state is not None and is_open

    def catch_up_to_save(self) -> None:
        """Let the challengers come to the place of the next checkpoint: they have outputs, too."""
        if not self._is_prepared:
            self.catch_up()

    def settle(self) -> None:
        """Let the next checkpoint be of this place: one that was begun is given up."""
        if self._saving:
            self.note_progress()

    def save(self) -> dict[tuple[str, int], Committed]:
        """Write a checkpoint: of this place, or the one that was begun if challengers have come to its place.

        Outputs of all models must be durable by now, or be committed with it.

        Returns
        -------
        dict
            The offsets to commit; the note names the checkpoint.

        Raises
        ------
        TakenOver
            If another process owns the partition by now.
        """
        assert self.state
        if self._saving is None or not self._is_prepared:
            assert not self.is_behind, "a checkpoint before challengers have caught up"
            self._saving = self._begin_saving(self.state)
            for _ in self._saving.complete():
                pass
            self._n_to_save = max(0, self._n_to_save - 1)
        found, self._saving = self._saving.checkpoint, None
        checkpoint = found.to_bytes()
        self._journal = self.store.save(checkpoint, found.sequence, self._cuts.again)
        self.checkpoint_bytes = len(checkpoint)
        self.state.models.remove_old()
        note = f"{self.store.epoch}:{found.sequence}"
        return {
            (item.topic, self.number): Committed(found.offsets[name], note)
            for item, name in zip(self._inputs, ("events", "labels"), strict=False)
        }

    def _begin_saving(self, state: State, *, is_later: bool = False) -> Saving:
        """Begin a checkpoint of this place, between two cuts, with what the model that serves has."""
        assert self._is_whole, "a checkpoint in the middle of a cut"
        state.history.latest = self._snapshot(state)
        if self._has_changed:
            state.models.leave_all()
        else:
            state.models.leave(self.store.crowded)
        checkpoint, of_challengers = state.to_checkpoint(self._settings)
        saving = Saving(replace(checkpoint, topic_ids=self._topic_ids), of_challengers)
        state.sequence = checkpoint.sequence
        self._has_asked = self._has_changed = False
        self._log_losses()
        self._note_saved()
        if is_later:
            assert self.processor.shadow
            self._journal = self.store.go_on(checkpoint.sequence, self._cuts.again)
            self.processor.shadow.follow_with(saving.complete())
        return saving

    def publish(self, publisher: Publisher) -> int:
        """Publish the models that have changed; return their number."""
        self.wants_publication = False
        if self.state is None:
            return 0
        n_published, n_too_large = publish_models(publisher, self.state, self._settings, self.number, self.store.epoch)
        self.n_unpublished += n_too_large
        return n_published

    def _log_losses(self) -> None:
        """Log what was given up since the last checkpoint."""
        for what, n in (self._losses - self._saved_losses).items():
            level = logging.INFO if what in USUAL else logging.WARNING
            logger.log(level, "partition %d: %d %s", self.number, n, LOSSES[what])

    def _note_saved(self) -> None:
        self._saved_at = time.monotonic()
        self._saved_offsets = self._offsets
        self._saved_losses = self._losses

    @property
    def _losses(self) -> Counter[str]:
        state = self.state
        return losses_of(state.join.counters, state.models.n_dropped, state.join.odd_times) if state else Counter()

    @property
    def _offsets(self) -> int:
        """Number of records of both topics so far."""
        return self.state.offset + self.state.labels_offset if self.state else 0

    @property
    def _n_unsaved(self) -> int:
        return self._offsets - self._saved_offsets

    def close(self) -> None:
        """Give the partition up.  Its next owner consumes again what was not saved."""
        for item in self._all_inputs():
            item.close()
        if self.state:
            self.state.models.close()
        self.store.close()
