"""A second model over the log of one partition: it writes no output, and passes over what was erased.

Its records are those of the log, with erased ones as tombstones.  So its state is bit for bit that of a trainer whose
log never had them.  It reads in *stages*: all events and labels before a pair of offsets, in the order of their
timestamps, then those before the next pair.  The stages decide in which order late labels come, so a receipt has them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, cast

from ..logs.reading import read_partition
from ..logs.transport import Record, Transport
from ..records.codec import readable
from ..records.erasures import Erasure, Swap, read_request
from ..runtime.numbers import MAX_INT32
from ..runtime.process import POLL_SECONDS, Stop
from ..settings.challengers import FIRST, ChallengerSettings
from ..settings.estimates import EstimateSettings
from ..settings.opening import open_once
from ..settings.sections import Settings
from .excerpt import Excerpt, Spans, control_spans
from .inputs import POLL_RECORDS, ReadAhead
from .partition import Partition
from .state.checkpoint import CheckpointStore
from .state.state import State

Erased = Callable[[Record], bool]  # whether a record is to be passed over


class Stage(NamedTuple):
    """The offsets before which a rerun has read everything."""

    events: int
    labels: int


class Quiet(Excerpt):
    """A log that seems to hold tombstones for what was erased, and to take outputs.

    Parameters
    ----------
    log
        The `Transport`; a `Quiet` can stand in for it.
    spans
        The range that it seems to hold.
    is_erased
        Says which records are passed over.
    """

    drops_outputs = True

    def __init__(self, log: Transport, spans: Spans, is_erased: Erased) -> None:
        super().__init__(log, spans)
        self._is_erased = is_erased

    def produce(self, *_: object, **__: object) -> None:
        pass

    def poll(self, timeout: float, limit: int) -> list[Record]:
        records = self._log.poll(timeout, limit)
        return [record._replace(value=None) if self._is_erased(record) else record for record in records]


class Reading(NamedTuple):
    """A rerun whose log is open."""

    log: Transport
    partition: Partition

    def cycle(self, timeout: float, limit: int) -> int:
        """Consume a cut, if there is one, or poll at most so many records; return the number of those consumed."""
        if self.partition.wants_records:
            for topic, records in groupby(self.log.poll(timeout, limit), attrgetter("topic")):
                self.partition.offer(topic, records)
        n_records = self.partition.step()
        if self.partition.is_due:
            self.partition.catch_up()
            self.partition.save()
        return n_records


class Rerun:
    """A model over the log of one partition, in a folder of its own.

    Parameters
    ----------
    settings
        The configuration of the trainer.
    number
        Number of the partition.
    folder
        The folder of the state; a rerun that was interrupted goes on from what it has.
    is_erased
        Says which records are passed over; default: none.
    learns_from
        Offset of the first event that it learns.
    is_silent
        Whether only the model and the join count: metrics, alarms and the like stay as they begin, which takes a third
        of the time.
    """

    def __init__(
        self,
        settings: Settings,
        number: int,
        folder: Path,
        is_erased: Erased = lambda record: False,
        learns_from: int = 0,
        *,
        is_silent: bool = False,
    ) -> None:
        self._settings = quiet(settings, folder)
        self._number = number
        self._is_erased = is_erased
        self._learns_from = learns_from
        self._is_silent = is_silent
        self.folder = folder / f"p{number}"

    def run(
        self, stage: Stage, stop: Stop = lambda: False, see: Callable[[State], object] = lambda state: None
    ) -> State | None:
        """Read on to the end of a stage, and write a checkpoint.

        Parameters
        ----------
        stage
            Where to end.
        stop
            Asked between cuts; True ends the rerun early.
        see
            Called with the state after each cut.

        Returns
        -------
        State or None
            The state; None if there was no event.

        Raises
        ------
        OffsetOutOfRange
            If the log no longer has the records, or not yet.
        CheckpointError, ConfigError
            If the folder belongs to another configuration, or is damaged.
        """
        with self.opened(stage) as reading:
            partition = reading.partition
            while not stop() and not partition.is_finished:
                if reading.cycle(POLL_SECONDS, POLL_RECORDS) and partition.state:
                    see(partition.state)
            partition.catch_up()
            if partition.is_new:
                partition.save()
            return partition.state

    @contextmanager
    def opened(self, stage: Stage) -> Iterator[Reading]:
        """Open the log, which seems to end with a stage, and go on from the last checkpoint; errors as of `run`."""
        topics, number = self._settings.log, self._number
        first = 0 if self._settings.features.raw else self._learns_from  # numbers of raw events depend on all before
        spans: Spans = {topics.topic: {number: (first, stage.events)}, topics.labels: {number: (0, stage.labels)}}
        with open_once(self._settings) as opened:
            log = cast(Transport, Quiet(opened, spans | control_spans(self._settings, opened), self._is_erased))
            ahead = ReadAhead(self._settings.limits.read_ahead_bytes)
            store = CheckpointStore(self.folder, keep=1)
            codec = self._settings.codec()
            partition = Partition(
                number, self._settings, codec, log, store, ahead, self._learns_from, is_silent=self._is_silent
            )
            try:
                yield Reading(log, partition)
            finally:
                partition.close()


def alone(settings: Settings, own: ChallengerSettings, batch: int) -> Settings:
    """The settings of a trainer whose model is that of a challenger, with cuts of so many records.

    The model that serves stands among the challengers, too: so what it says is kept until the labels come.
    """
    log = replace(settings.log, control="")
    itself = ChallengerSettings(FIRST, model=own.model)
    daemon = replace(settings.daemon, batch=batch, checkpoint_records=MAX_INT32)  # the time decides
    return replace(
        settings, model=own.model, challenger=(itself,), log=log, daemon=daemon, estimates=EstimateSettings()
    )


def quiet(settings: Settings, folder: Path) -> Settings:
    """The settings of a rerun: the same model, a folder of its own, and only the topics of events and labels.

    Challengers take part only where one may have been promoted; how fast this machine is drops none.
    """
    log = replace(settings.log, questions="", erasures="", model="", merged="", alarms="", estimates="", state="")
    daemon = replace(
        settings.daemon, follow=False, start="earliest", begin="empty", exactly_once=False, state_dir=folder
    )
    state = replace(settings.state, store="dir", url="")
    comparison = replace(settings.comparison, promote="")
    is_alone = all(challenger.name == FIRST for challenger in settings.challenger)
    limitless = (replace(own, max_mb=math.inf, slowdown=math.inf) for own in settings.challenger)
    own = tuple(limitless) if settings.log.control or is_alone else ()
    return replace(settings, log=log, daemon=daemon, state=state, comparison=comparison, challenger=own)


# --- requests ---------------------------------------------------------------------------------------------------------


Asked = Sequence[tuple[int, Erasure | Swap]]  # requests of a partition, with their offsets


def requests(log: Transport, topic: str, number: int, end: int | None = None) -> Asked:
    """The requests of a partition, up to an offset; records that are none are left out."""
    records = read_partition(log, topic, number, end)
    return [(record.offset, request) for record, request in readable(records, read_request)]


def requests_of(settings: Settings, number: int, end: int | None = None) -> Asked:
    """As `requests`, of the topic that the settings name; none if they name none."""
    topic = settings.log.erasures
    if not topic:
        return []
    with open_once(settings) as log:
        return requests(log, topic, number, end)


def erased_offsets(settings: Settings, asked: Asked) -> dict[str, set[int]]:
    """The offsets of the events and of the labels that these requests erase, by topic."""
    erasures = [request for _, request in asked if isinstance(request, Erasure)]
    erased = ({at for request in erasures for at in getattr(request, name)} for name in Stage._fields)
    return dict(zip(settings.log.inputs, erased, strict=False))


def erased_by(settings: Settings, asked: Asked) -> Erased:
    """Which records these requests erase."""
    found = erased_offsets(settings, asked)
    return lambda record: record.offset in found.get(record.topic, ())
