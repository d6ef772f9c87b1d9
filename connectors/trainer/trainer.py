"""The trainer: it reads events from a log, predicts, learns, and forgets nothing when it is killed.

It owns a share of the topic's partitions, each with its own state (see `partition`).  A cycle is:

1. Poll records.
2. Consume a cut of each partition.  If there is none, let challengers follow for a moment, or catch up with the log.
3. Where a checkpoint is due: flush the outputs, write the checkpoint, then commit the offsets.
4. Publish models, and show metrics, when it is time.

A partition's checkpoint holds the model together with the offsets of the next records.  Everything in it depends on
the order in which records were consumed, and that order is in the journal.  So a trainer that was killed goes on from
its last checkpoint, and ends with the same model as one that was not.  Outputs after that checkpoint are written again;
readers recognise repetitions by ``src``.  The trainer reads its offsets from the checkpoint; it commits them for others
to see.
"""

import logging
import re
import time
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..logs.transport import Committed, OutputsLost, Record, TopicMismatch, Transport, Unavailable
from ..records.erasures import Swap
from ..records.published import LOADING_SECONDS, Place, Publisher, read_places
from ..runtime.folders import lock_folder, make_private
from ..runtime.health import Health
from ..runtime.metrics import Metrics
from ..runtime.process import POLL_SECONDS, Stop
from ..settings import topics
from ..settings.opening import backend_of, open_log, open_once
from ..settings.sections import Settings
from .catching_up import CatchingUp
from .inputs import POLL_RECORDS, ReadAhead
from .operate import Loop, operate, progress_bar
from .partition import Partition
from .state.checkpoint import CheckpointStore, checkpoint_files
from .state.remote.ledger import Ledger
from .state.remote.objects import ObjectPlace, open_objects
from .state.remote.places import LedgerPlace, TopicPlace
from .state.remote.store import RemoteStore
from .state.state import State, TooManyBadRecords
from .swapping import caught_up
from .telemetry import Telemetry

logger = logging.getLogger(__name__)

_SHADOW_SECONDS = 0.001  # that challengers follow, before the next look at the log


def run(settings: Settings, stop: Stop = lambda: False) -> dict[int, State]:
    """Run a trainer.

    Parameters
    ----------
    settings
        The configuration.
    stop
        Asked between cycles; the trainer ends cleanly once it says True.

    Returns
    -------
    dict
        The state of each partition after its last record; partitions without an event are missing.

    Raises
    ------
    ConfigError
        If the checkpoint belongs to other settings.
    AlreadyInUse
        If another trainer uses the state folder, or writes to the same embedded log.
    LogCorruption, OffsetOutOfRange, TopicMismatch, CheckpointError, TooManyBadRecords
        If the log or the checkpoints cannot be used.
    AccessDenied, Unavailable, OutputsLost, TakenOver
        If a Kafka cluster refuses the trainer, does not answer, or gave its partitions to another one.
    """
    with ExitStack() as stack:
        if not backend_of(settings).has_groups or settings.group.assign:  # no group keeps our partitions from others
            make_private(settings.daemon.state_dir)
            stack.enter_context(lock_folder(settings.daemon.state_dir, "this trainer's state"))
        states = operate(Trainer, settings, stop, settings.group.id)
    return states or {}


class Trainer(Loop[dict[int, State]]):
    """The loop over this process's share of the partitions."""

    def __init__(self, settings: Settings, log: Transport, stop: Stop, health: Health, metrics: Metrics) -> None:
        super().__init__(settings, log, stop, health, metrics)
        self._codec = settings.codec(self._wait)
        vocabulary = settings.label.vocabulary
        self._telemetry = Telemetry(metrics, self._codec, vocabulary.listed if vocabulary else (), settings.audit)
        self._publisher = Publisher(log, settings.log.model) if settings.log.model else None
        self._published_at = time.monotonic()
        self._ahead = ReadAhead(settings.limits.read_ahead_bytes)
        self._opened = ExitStack()
        self._plain: Transport | None = None  # takes the state: a claim must be seen before a transaction ends
        self._partitions: dict[int, Partition] = {}
        self._catching_up: dict[int, CatchingUp] = {}
        self._was_assigned = False  # a partition, at any time
        self._n_partitions = 1  # of the topic of events, when it was last looked at
        self._polled_at = 0.0
        self._is_busy = True  # the last cycle had something to do

    def run(self) -> dict[int, State]:
        """Consume the log to its end, or until stopped; return the state of each partition."""
        self._health.unready = "no partition is assigned yet"
        topic = self._settings.log.topic
        try:
            topics.check(self._settings, topics.of_trainers(self._settings))
            self._n_partitions = max(1, len(self._log.start_offsets(topic)))
            self._log.subscribe(topic, self)
            if not self._was_assigned:
                logger.info("waiting for partitions; those of a trainer that was killed are free when its session ends")
            with self._progress(topic) as progress:
                while not self._stop() and not self._is_finished():
                    self._cycle(progress)
            if not self._save_all(list(self._partitions.values())):
                raise OutputsLost("the last transaction was not committed; its records will be consumed again")
            if self._publisher:
                self._publish(self._publisher)
            return self._states()
        except TooManyBadRecords as error:
            error.states = self._states()
            raise
        finally:
            self._drop(list(self._partitions))
            self._opened.close()

    def _states(self) -> dict[int, State]:
        return {number: partition.state for number, partition in self._partitions.items() if partition.state}

    def _progress(self, topic: str) -> "tqdm[Any]":
        if self._settings.daemon.follow:
            return progress_bar(topic, None, self._n_done())
        before = sum(self._log.start_offsets(topic).values())
        n_records = sum(self._log.end_offsets(topic).values()) - before
        return progress_bar(topic, n_records, max(0, self._n_done() - before))

    # --- ownership ----------------------------------------------------------------------------------------------------

    def assigned(self, partitions: list[int]) -> None:
        """Take partitions over, from the checkpoints of their last owners."""
        with self._health.heartbeat.allow(LOADING_SECONDS):
            if max(partitions, default=0) >= self._n_partitions:
                self._look_at_new_partitions(max(partitions) + 1)
            if self._settings.daemon.exactly_once:
                self._commit(self._partitions.values())  # no transaction stays open while checkpoints are loaded
            if self._publisher:
                self._publisher.resume(self._places())
            committed = self._log.committed(self._settings.log.topic, partitions)
            for number in partitions:
                if number not in self._partitions:  # the call is repeated if the log did not answer
                    partition = self._partitions[number] = self._open(number, committed.get(number))
                    if self._settings.challenger:
                        self._catching_up[number] = CatchingUp(self._settings, partition)
        self._was_assigned = self._is_busy = True
        self._telemetry.rebalanced(self._partitions.values())
        self._health.unready = None
        logger.info("assigned partitions %s", partitions)

    def revoked(self, partitions: list[int]) -> None:
        """Hand partitions over."""
        logger.info("revoked partitions %s", partitions)
        is_saved = self._save_all([self._partitions[number] for number in partitions if number in self._partitions])
        if not is_saved and self._log.can_commit():  # the open transaction has outputs of these partitions
            raise Unavailable("the partitions are handed over only after their outputs are durable")
        self._drop(partitions)

    def lost(self, partitions: list[int]) -> None:
        """Forget partitions that have another owner by now: it began at their last checkpoints."""
        logger.warning("lost partitions %s", partitions)
        self._drop(partitions)

    def _look_at_new_partitions(self, n_partitions: int) -> None:
        """Refuse partitions that the topic of events has, but another topic lacks."""
        topics.check(self._settings, topics.of_trainers(self._settings))
        self._n_partitions = n_partitions
        logger.warning(
            "topic %r has %d partitions now. The models of the new ones begin empty, or with the merged model "
            "(daemon.begin). If producers choose the partition "
            "by the key, a label may come to another partition than its event, and will not find it",
            self._settings.log.topic,
            n_partitions,
        )

    def _open(self, number: int, committed: Committed | None) -> Partition:
        settings = self._settings
        store = self._store(settings.daemon.state_dir / f"p{number}", number)
        checkpoint = parse_note(committed.note) if committed else None
        if checkpoint and backend_of(settings).has_groups and not checkpoint_files(store.folder):
            raise TopicMismatch(
                f"partition {number} was consumed up to offset {committed.offset if committed else 0}, but "
                f"{settings.log.state or settings.state.url or store.folder} has no checkpoint. All trainers of group "
                f"{settings.group.id!r} must share daemon.state_dir, or have state.store = 'topic' or 'objects'. To "
                "begin again with an empty model, choose another group.id"
            )
        if settings.daemon.exactly_once:
            store.roll_back(checkpoint)
        saves_later = settings.state.store == "dir" and not settings.daemon.exactly_once
        return Partition(number, settings, self._codec, self._log, store, self._ahead, saves_later=saves_later)

    def _store(self, folder: Path, number: int) -> CheckpointStore:
        settings = self._settings
        if settings.state.store == "dir":
            return CheckpointStore(folder, settings.daemon.keep)
        n_kept = 2 if settings.daemon.exactly_once else 1  # The newest may be of a transaction that is given up.
        return RemoteStore(folder, settings.daemon.keep, Ledger(self._place(number), self._wait, n_kept))

    def _place(self, number: int) -> LedgerPlace:
        settings, topic = self._settings, self._settings.log.state
        if settings.state.store == "objects":
            url = settings.state.url
            return ObjectPlace(open_objects(url), f"p{number}", f"partition {number} of {url!r}")
        trim = partial(backend_of(settings).trim, topic, number)
        if settings.daemon.exactly_once and self._plain is None:
            self._plain = self._opened.enter_context(open_once(settings))
        return TopicPlace(self._plain or self._log, topic, number, partial(open_once, settings), trim)

    def _drop(self, partitions: list[int]) -> None:
        for number in partitions:
            if number in self._catching_up:
                self._catching_up.pop(number).close()
            if number in self._partitions:
                partition = self._partitions.pop(number)
                self._telemetry.forget(partition)
                partition.close()
        if not self._partitions:
            self._health.unready = "no partition is assigned"

    # --- a cycle ------------------------------------------------------------------------------------------------------

    def _cycle(self, progress: "tqdm[Any]") -> None:
        self._health.heartbeat.beat()
        now = time.monotonic()
        if now - self._polled_at >= POLL_SECONDS or any(part.wants_records for part in self._partitions.values()):
            self._polled_at = now
            self._offer(self._poll(0.0 if self._is_busy else POLL_SECONDS, POLL_RECORDS))
        n_records = self._consume()
        for partition in self._partitions.values() if not n_records else ():
            partition.catch_up(_SHADOW_SECONDS)
        is_behind = any(partition.is_behind for partition in self._partitions.values())
        self._is_busy = n_records > 0 or is_behind or any(each.step() for each in self._catching_up.values())
        progress.update(n_records)
        self._save([partition for partition in self._partitions.values() if partition.is_due])
        is_due = time.monotonic() - self._published_at >= self._settings.daemon.publish_seconds
        if self._publisher and (is_due or any(part.wants_publication for part in self._partitions.values())):
            self._publish(self._publisher)
        if self._telemetry.is_due:
            self._telemetry.collect(self._partitions.values())
            progress.set_postfix(self._telemetry.summary(self._partitions.values()), refresh=False)

    def _seek(self) -> None:
        for partition in self._partitions.values():
            partition.check_positions()

    def _offer(self, records: list[Record]) -> None:
        """Give the records to the partitions."""
        if self._partitions:
            self._show()
        for (topic, number), batch in groupby(records, attrgetter("topic", "partition")):
            owner = self._partitions.get(number)
            if owner is not None:
                owner.offer(topic, batch)

    def _consume(self) -> int:
        """Consume a cut of each partition that has one; return the number of records."""
        n_records = 0
        for partition in list(self._partitions.values()):
            started = time.perf_counter()
            n_taken = partition.step()
            if partition.swap:
                self._swap(partition, partition.swap)
            if n_taken:
                self._telemetry.took(n_taken, time.perf_counter() - started)
            n_records += n_taken
        return n_records

    def _swap(self, partition: Partition, swap: Swap) -> None:
        """Go on with a rebuilt state; a trainer that has to end leaves that to its next run.

        What the partition has noted must be durable before that: the rebuilt state follows it, too.
        """
        if not self._save_all(list(self._partitions.values())):
            return
        with self._health.heartbeat.allow(LOADING_SECONDS):
            rebuilt = caught_up(partition, swap, self._settings, self._stop)
        if rebuilt is not None or not self._stop():
            partition.swapped(rebuilt)

    def _is_finished(self) -> bool:
        if self._settings.daemon.follow or self._is_busy or not self._was_assigned:
            return False
        if any(catching_up.is_open for catching_up in self._catching_up.values()):
            return False
        return all(partition.is_finished for partition in self._partitions.values())

    def _n_done(self) -> int:
        return sum(partition.state.offset for partition in self._partitions.values() if partition.state)

    # --- saving -------------------------------------------------------------------------------------------------------

    def _save(self, partitions: list[Partition]) -> bool:
        """Write checkpoints, after the outputs have become durable.

        Return False if there is a transaction that could not be committed.
        """
        if self._settings.daemon.exactly_once:
            return self._commit(self._partitions.values()) if partitions else True
        if any(partition.is_new for partition in partitions):
            self._commit(partitions)
        return True

    def _save_all(self, partitions: list[Partition]) -> bool:
        """As `_save`, with everything that was consumed."""
        for partition in partitions:
            partition.settle()
        return self._save(partitions)

    def _catch_up(self, partitions: list[Partition]) -> bool:
        """Make all outputs durable, those of the challengers of these partitions too; return whether that succeeded."""
        for partition in partitions:
            partition.catch_up_to_save()
        return self._flush("no checkpoint is written: outputs")

    def _commit(self, partitions: Iterable[Partition]) -> bool:
        """Write the checkpoints of those that have consumed anything, and commit; False if that is not possible.

        All partitions share a transaction, because an output must be committed together with the offsets of its
        inputs.  So every partition that has consumed anything is saved.  A checkpoint counts once the transaction is
        committed.  Until then the committed offset names the checkpoint before, and the next owner rolls back to it.
        """
        new = [partition for partition in partitions if partition.is_new]
        if not self._log.can_commit() or not self._catch_up(new):  # so at most one checkpoint does not count yet
            return False
        offsets: dict[tuple[str, int], Committed] = {}
        for partition in new:
            with self._telemetry.saving(partition):
                offsets |= partition.save()
        is_done = self._log.commit(offsets)
        self._show()
        return is_done

    def _publish(self, publisher: Publisher) -> None:
        self._published_at = time.monotonic()
        for partition in self._partitions.values():
            self._telemetry.published(partition.publish(publisher))
        if self._settings.daemon.exactly_once:
            self._commit(self._partitions.values())  # models are outputs, too

    def _places(self) -> dict[str, Place]:
        """The places of earlier owners' publications on the topic of models."""
        with open_log(self._settings, self._stop) as reader:
            return read_places(reader, self._settings.log.model, time.monotonic() + LOADING_SECONDS)


def parse_note(note: str) -> tuple[int, int] | None:
    """The epoch and the sequence number of the checkpoint that `Partition.save` named; None if there is none."""
    found = re.fullmatch(r"(\d{1,6}):(\d{1,10})", note, re.ASCII)
    return (int(found[1]), int(found[2])) if found else None
