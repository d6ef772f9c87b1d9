"""The trainer: read events from a log, predict, learn, and forget nothing when it is killed.

It has a share of the topic's partitions, each with a state of its own (see `partition`).  A partition's checkpoint
holds the model together with the offsets of what comes next, and everything in it is a function of the order in which
records were taken, which is in the journal.  So a daemon that is killed goes on from its last checkpoint and ends with
the very model of one that never was.  Outputs made after that checkpoint are made again: readers tell repetitions by
``src``.

A cycle is: poll; consume cuts; when a checkpoint is due, flush the outputs, write it, and only then commit the offsets,
which nothing of ours depends on.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Protocol, TypeVar

from ..logs.transport import Committed, OutputsLost, PositionRefused, TopicMismatch, Transport, Unavailable
from ..records.published import Place, Publisher, read_places
from ..runtime.folders import lock_folder, make_private
from ..runtime.http import Health, Metrics, Server
from ..runtime.process import POLL_SECONDS, Stop
from ..runtime.watchdog import Watchdog
from ..settings import topics
from ..settings.opening import open_log
from ..settings.sections import ConfigError, Settings
from .partition import Partition, ReadAhead
from .state.checkpoint import CheckpointStore, checkpoint_files
from .state.observe import Progress
from .state.state import State
from .telemetry import Telemetry

logger = logging.getLogger(__name__)

_POLL_RECORDS = 2000
_LOADING_SECONDS = 600.0  # for checkpoints and published models to be read

Result = TypeVar("Result", covariant=True)


class Loop(Protocol[Result]):
    """What consumes a log until it is told to stop."""

    def run(self) -> Result: ...


def run(settings: Settings, stop: Stop = lambda: False) -> dict[int, State]:
    """Consume the events of a configuration; see `Daemon`.

    Parameters
    ----------
    settings
        The configuration.
    stop
        Asked between batches; the daemon ends cleanly once it says True.

    Returns
    -------
    dict
        The state of each partition as of its last record; without those that had no event.

    Raises
    ------
    ConfigError
        If the checkpoint belongs to other settings.
    AlreadyInUse
        If another daemon uses the state folder or writes to the output topics.
    LogCorruption, OffsetOutOfRange, TopicMismatch, CheckpointError, TooManyBadRecords
        If the log or the checkpoints cannot be used.
    AccessDenied, Unavailable, OutputsLost, TakenOver
        By a log that is elsewhere.
    """
    with ExitStack() as stack:
        if not settings.kafka or settings.group.assign:  # no group sees to it that nobody else has our partitions
            make_private(settings.daemon.state_dir)
            stack.enter_context(lock_folder(settings.daemon.state_dir, "this daemon's state"))
        states = operate(Daemon, settings, stop, settings.group.id)
    return states or {}


def operate(
    loop: Callable[[Settings, Transport, Stop, Health, Metrics, Watchdog], Loop[Result]],
    settings: Settings,
    stop: Stop,
    group: str,
) -> Result | None:
    """Run a loop over a log, with its metrics served and a watchdog beside it.

    Parameters
    ----------
    loop
        Made with the arguments of `Daemon`.
    settings
        The configuration.
    stop
        Asked between cycles.
    group
        Of consumers.

    Returns
    -------
    object
        What the loop returns; None if it was stopped before there was a broker.
    """
    health, metrics = Health(), Metrics()
    with ExitStack() as stack:
        if settings.http.port:
            stack.enter_context(_serve(settings, health, metrics))
        try:
            log = stack.enter_context(open_log(settings, stop, health.set_unready, group))
        except Unavailable:
            if stop():
                return None
            raise
        watchdog = stack.enter_context(Watchdog(settings.daemon.watchdog_seconds))
        return loop(settings, log, stop, health, metrics, watchdog).run()


def _serve(settings: Settings, health: Health, metrics: Metrics) -> Server:
    try:
        return Server(health, metrics, settings.http)
    except OSError as error:
        raise ConfigError(
            [f"http.port = {settings.http.port}: {error}; each process needs a port of its own, or 0 for none"]
        ) from None


class Daemon:
    """The loop over this process's share of the partitions: an `Ownership` of them.

    Parameters
    ----------
    settings
        The configuration.
    log
        Where events come from and predictions go.
    stop
        Asked between cycles; the daemon ends cleanly once it says True.
    health, metrics
        What is shown while it runs.
    watchdog
        What is told that it runs.
    """

    def __init__(
        self, settings: Settings, log: Transport, stop: Stop, health: Health, metrics: Metrics, watchdog: Watchdog
    ) -> None:
        self._settings = settings
        self._log = log
        self._stop = stop
        self._health = health
        self._watchdog = watchdog
        self._codec = settings.codec()
        self._telemetry = Telemetry(metrics, self._codec)
        self._publisher = Publisher(log, settings.log.model) if settings.log.model else None
        self._published_at = time.monotonic()
        self._ahead = ReadAhead(settings.limits.read_ahead_bytes)
        self._partitions: dict[int, Partition] = {}
        self._was_assigned = False  # any partition, ever
        self._n_partitions = 1  # of the events, when they were looked at last
        self._polled_at = 0.0
        self._is_busy = True  # the last cycle had something to do

    def run(self) -> dict[int, State]:
        """Go on from the newest checkpoints, or from the start, to the end of the log or until stopped."""
        self._health.set_unready("no partition is assigned yet")
        topic = self._settings.log.topic
        try:
            topics.check(self._settings, topics.of_trainers(self._settings.log))
            self._n_partitions = max(1, len(self._log.start_offsets(topic)))
            self._log.subscribe(topic, self)
            if not self._was_assigned:
                logger.info(
                    "waiting for a share of the partitions; those of a trainer that was killed come with its end"
                )
            before = 0 if self._settings.daemon.follow else sum(self._log.start_offsets(topic).values())
            total = None if self._settings.daemon.follow else sum(self._log.end_offsets(topic).values()) - before
            with Progress(topic, total, max(0, self._n_done() - before)) as progress:
                while not self._stop() and not self._is_finished():
                    self._cycle(progress)
            if not self._save(list(self._partitions.values())):
                raise OutputsLost("the last transaction did not end; what it was made of will be taken again")
            if self._publisher:
                self._publish(self._publisher)
            return {number: partition.state for number, partition in self._partitions.items() if partition.state}
        finally:
            self._drop(list(self._partitions))

    # --- ownership ----------------------------------------------------------------------------------------------------

    def assigned(self, partitions: list[int]) -> None:
        """Take partitions over, with the state in which their last owner left them."""
        self._health.beat(_LOADING_SECONDS)
        with self._watchdog.allow(_LOADING_SECONDS):
            if max(partitions, default=0) >= self._n_partitions:
                self._look_at_new_partitions(max(partitions) + 1)
            if self._settings.daemon.exactly_once:
                self._commit_all()  # a transaction is not left open while others are loaded
            if self._publisher:
                self._publisher.resume(self._places())
            committed = self._log.committed(self._settings.log.topic, partitions)
            for number in partitions:
                if number not in self._partitions:  # if it is told again, after the log did not answer
                    self._partitions[number] = self._open(number, committed.get(number))
        self._was_assigned = self._is_busy = True
        self._telemetry.rebalanced(self._partitions.values())
        self._health.set_ready()
        logger.info("assigned partitions %s", partitions)

    def revoked(self, partitions: list[int]) -> None:
        """Hand partitions over."""
        logger.info("revoked partitions %s", partitions)
        is_saved = self._save([self._partitions[number] for number in partitions if number in self._partitions])
        if not is_saved and self._log.can_commit():  # without them the transaction would count all the same
            raise Unavailable("partitions are not handed over before the outputs made of them are durable")
        self._drop(partitions)

    def lost(self, partitions: list[int]) -> None:
        """Forget partitions that have another owner by now, who began at their last checkpoint."""
        logger.warning("lost partitions %s", partitions)
        self._drop(partitions)

    def _look_at_new_partitions(self, n_partitions: int) -> None:
        """Refuse partitions that the events have and the other topics have not."""
        topics.check(self._settings, topics.of_trainers(self._settings.log))
        self._n_partitions = n_partitions
        logger.warning(
            "topic %r has %d partitions now: the models of the new ones begin empty, and where producers choose the "
            "partition by the key, a label may be in another one than its earlier event and will not find it",
            self._settings.log.topic,
            n_partitions,
        )

    def _open(self, number: int, committed: Committed | None) -> Partition:
        settings = self._settings
        store = CheckpointStore(settings.daemon.state_dir / f"p{number}", settings.daemon.keep)
        checkpoint = parse_note(committed.note) if committed else None
        if settings.kafka and checkpoint and not checkpoint_files(store.folder):
            raise TopicMismatch(
                f"partition {number} was learned up to offset {committed.offset if committed else 0}, but "
                f"{store.folder} has no checkpoint: all trainers of group {settings.group.id!r} must share "
                "daemon.state_dir. To begin again with an empty model, choose another group.id"
            )
        if settings.daemon.exactly_once:
            store.roll_back(checkpoint)
        return Partition(number, settings, self._codec, self._log, store, self._ahead)

    def _drop(self, partitions: list[int]) -> None:
        for number in partitions:
            if number in self._partitions:
                partition = self._partitions.pop(number)
                self._telemetry.forget(partition)
                partition.close()
        if not self._partitions:
            self._health.set_unready("no partition is assigned")

    # --- a cycle ------------------------------------------------------------------------------------------------------

    def _cycle(self, progress: Progress) -> None:
        self._health.beat()
        self._watchdog.beat()
        now = time.monotonic()
        if now - self._polled_at >= POLL_SECONDS or any(part.wants_records for part in self._partitions.values()):
            self._polled_at = now
            self._poll()
        n_records = 0
        for partition in list(self._partitions.values()):
            started = time.perf_counter()
            n_taken = partition.step()
            if n_taken:
                self._telemetry.took(n_taken, time.perf_counter() - started)
            n_records += n_taken
        self._is_busy = n_records > 0
        progress.advance(n_records)
        self._save([partition for partition in self._partitions.values() if partition.is_due])
        if self._publisher and time.monotonic() - self._published_at >= self._settings.daemon.publish_seconds:
            self._publish(self._publisher)
        if self._telemetry.is_due:
            self._telemetry.collect(self._partitions.values())
            progress.show(**self._telemetry.summary(self._partitions.values()))

    def _poll(self) -> None:
        try:
            records = self._log.poll(0.0 if self._is_busy else POLL_SECONDS, _POLL_RECORDS)
        except PositionRefused as error:
            logger.warning("%s", error)
            for partition in self._partitions.values():
                partition.check_positions()
            return
        except Unavailable as error:
            if self._health.unready != str(error):
                logger.warning("%s", error)
            self._health.set_unready(str(error))
            time.sleep(POLL_SECONDS)
            return
        if self._partitions:
            if self._health.unready:
                logger.info("reading again")
            self._health.set_ready()
        for (topic, number), batch in groupby(records, attrgetter("topic", "partition")):
            owner = self._partitions.get(number)
            if owner is not None:
                owner.offer(topic, batch)

    def _is_finished(self) -> bool:
        if self._settings.daemon.follow or self._is_busy or not self._was_assigned:
            return False
        return all(partition.is_finished for partition in self._partitions.values())

    def _n_done(self) -> int:
        return sum(partition.state.offset for partition in self._partitions.values() if partition.state)

    # --- saving -------------------------------------------------------------------------------------------------------

    def _save(self, partitions: list[Partition]) -> bool:
        """Write checkpoints: outputs become durable before a checkpoint says that their inputs are done.

        Return False if there is a transaction, and it has not ended.
        """
        if self._settings.daemon.exactly_once:
            return self._commit_all() if partitions else True
        partitions = [partition for partition in partitions if partition.is_new]
        if partitions and self._flush():
            self._log.commit(self._write(partitions))
            self._health.set_ready()
        return True

    def _flush(self) -> bool:
        """Whether all outputs are durable."""
        try:
            self._log.flush()
        except Unavailable as error:
            self._health.set_unready(str(error))
            logger.warning("no checkpoint, for outputs are not durable yet: %s", error)
            return False
        return True

    def _commit_all(self) -> bool:
        """End the transaction; return False if it cannot be, or was given up.

        All partitions share it, so each of them that has consumed anything is saved: an output counts only together
        with the offsets of what it was made of. A checkpoint that was written counts once the transaction does. Until
        then the committed offset names the checkpoint before, to which the next owner rolls the state back.
        """
        if not self._log.can_commit() or not self._flush():  # so at most one checkpoint is there that does not count
            return False
        is_done = self._log.commit(self._write([part for part in self._partitions.values() if part.is_new]))
        self._health.set_ready()
        return is_done

    def _write(self, partitions: list[Partition]) -> dict[tuple[str, int], Committed]:
        """Write the checkpoints of partitions; return what to commit."""
        offsets: dict[tuple[str, int], Committed] = {}
        for partition in partitions:
            with self._telemetry.saving(partition):
                partition.save()
            offsets |= partition.committed
        return offsets

    def _publish(self, publisher: Publisher) -> None:
        self._published_at = time.monotonic()
        for partition in self._partitions.values():
            self._telemetry.published(partition.publish(publisher))
        if self._settings.daemon.exactly_once:
            self._commit_all()  # models are outputs, too, and may be the only ones for a long time

    def _places(self) -> dict[str, Place]:
        """Where in the topic of models the publications of earlier owners are."""
        with open_log(self._settings, self._stop) as reader:
            return read_places(reader, self._settings.log.model, time.monotonic() + _LOADING_SECONDS)


def parse_note(note: str) -> tuple[int, int] | None:
    """Which checkpoint a commit belongs to: its epoch and sequence number, as `Partition.committed` writes them."""
    epoch, colon, sequence = note.partition(":")
    return (int(epoch), int(sequence)) if colon and epoch.isdecimal() and sequence.isdecimal() else None


@contextmanager
def stop_on_signals(on_signal: Callable[[], None] = lambda: None) -> Iterator[Stop]:
    """A `stop` that is true after SIGTERM or SIGINT; a second signal ends the process at once."""
    requested = threading.Event()
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(*_: object) -> None:
        for number in previous:
            signal.signal(number, signal.SIG_DFL)
        requested.set()
        on_signal()

    for number in previous:
        signal.signal(number, handle)
    try:
        yield requested.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
