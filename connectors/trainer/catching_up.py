"""Challengers that begin at an earlier event: they read the log up to where the trainer is, and then take part.

A `Rerun` of the challenger's model alone reads, in a folder of its own.  It works in slices, while no record waits, so
that the next record hardly waits for one.  When it has read all that the trainer has, its model takes the challenger's
place, and a checkpoint follows.  A trainer that is killed goes on from the rerun's last checkpoint.

Where a slice or a kill falls changes nothing: the rerun takes events and labels in the order of their timestamps.
"""

import logging
import math
import shutil
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from ..logs.transport import Unavailable
from ..records.erasures import Erasure
from ..settings.sections import ConfigError, Settings
from .erasing import erase
from .partition import Partition
from .rerun import Reading, Rerun, Stage, alone, erased_by, requests_of
from .state.challengers import Challenger
from .state.checkpoint import load_newest
from .state.models import SingleModel
from .state.state import State

logger = logging.getLogger(__name__)

_SLICE_SECONDS = 0.002
_SLICE_RECORDS = 32  # that are consumed, or polled, before the time is looked at
_REST_SECONDS = 1.0  # while the log does not answer
_FOLDER = "catching-up"


class CatchingUp:
    """Lets the challengers of a partition catch up, one after the other.

    Parameters
    ----------
    settings
        The configuration.
    partition
        The partition.
    """

    def __init__(self, settings: Settings, partition: Partition) -> None:
        self._settings = settings
        self._partition = partition
        self._name = ""  # of the challenger that reads
        self._reading: Reading | None = None
        self._opened = ExitStack()
        self._sequence = 0  # of its last checkpoint
        self._left_at: int | None = None  # sequence of the trainer's checkpoint before a rerun was left
        self._rests_until = -math.inf
        self._remove_others()

    @property
    def is_open(self) -> bool:
        """Whether a challenger catches up."""
        return self._next is not None

    def step(self) -> bool:
        """Let a challenger catch up for a moment; return whether there is more to do at once."""
        challenger, state = self._next, self._partition.state
        if state is None or time.monotonic() < self._rests_until:
            return False
        if self._left_at is not None and state.sequence > self._left_at:
            self._left_at = None
            self._remove_others()
        if challenger is None:
            return False
        try:
            return self._read(challenger, state)
        except Unavailable as error:
            logger.warning("challenger %r goes on to catch up when it can read: %s", challenger.name, error)
            self._rests_until = time.monotonic() + _REST_SECONDS
        except Exception as error:  # Whatever it is, the model that serves goes on.
            challenger.drop(f"it could not catch up: {type(error).__name__}: {error}")
            self._end()
        return False

    def close(self) -> None:
        """Stop; the next run goes on from the rerun's last checkpoint."""
        self._reading, self._sequence = None, 0
        self._opened.close()

    @property
    def _next(self) -> Challenger | None:
        state = self._partition.state
        return next(iter(state.challengers.catching_up), None) if state else None

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read(self, challenger: Challenger, state: State) -> bool:
        place = Stage(state.offset, state.labels_offset)
        reading = self._reading_of(challenger, place)
        own = reading.partition
        own.read_on(*place)
        self._forget(own, state)
        until = time.perf_counter() + _SLICE_SECONDS
        while not own.is_finished:
            reading.cycle(_SLICE_SECONDS, _SLICE_RECORDS)
            if time.perf_counter() >= until:
                break
        if own.state:
            self._note(challenger, own.state)
        if own.is_finished and (own.state is None or _is_here(own.state, place)):
            self._take_part(challenger, own.state, state)
            return self.is_open
        return not own.is_finished

    def _reading_of(self, challenger: Challenger, place: Stage) -> Reading:
        if self._reading is None or self._name != challenger.name:
            self.close()
            try:
                self._reading = self._open(challenger, place)
            except ConfigError:  # It is of other settings.
                self._remove(self._folder_of(challenger))
                self._reading = self._open(challenger, place)
            self._name = challenger.name
        return self._reading

    def _open(self, challenger: Challenger, place: Stage) -> Reading:
        settings, number = self._settings, self._partition.number
        is_erased = erased_by(settings, requests_of(settings, number))
        own = alone(settings, challenger.settings, _SLICE_RECORDS)
        rerun = Rerun(own, number, self._folder_of(challenger), is_erased, challenger.begun or 0, is_silent=True)
        if found := load_newest(rerun.folder):  # it may have come farther than the trainer's own checkpoint
            offsets = found[1].offsets
            place = Stage(max(place.events, offsets["events"]), max(place.labels, offsets["labels"]))
        return self._opened.enter_context(rerun.opened(place))

    def _note(self, challenger: Challenger, own: State) -> None:
        """Tell how far it has come, and write that down whenever the rerun has."""
        challenger.caught_up = own.offset
        if own.sequence > self._sequence:
            self._sequence = own.sequence
            self._partition.note_progress()

    def _forget(self, own: Partition, state: State) -> None:
        """Let the rerun forget what was erased since it last did."""
        if own.state is None or own.state.erased.offset >= state.erased.offset:
            return
        own.catch_up()
        for at, request in requests_of(self._settings, self._partition.number, state.erased.offset):
            if at >= own.state.erased.offset and isinstance(request, Erasure):
                erase(own.state, request)
        own.state.erased.offset = state.erased.offset
        own.save()

    # --- its end ------------------------------------------------------------------------------------------------------

    def _take_part(self, challenger: Challenger, own: State | None, state: State) -> None:
        """Let the challenger go on with what the rerun has."""
        if own is None:
            challenger.caught_up = None
        else:
            _check_classes(own, state)
            _compare_records(challenger, own, state)
            said = {key: each for key, each in own.challengers.said.items() if state.join.event_of(key) is not None}
            assert isinstance(own.models, SingleModel)
            challenger.take_part(own.models, own.counters, said, state.offset)
        logger.info(
            "partition %d: challenger %r has caught up, and takes part from offset %d on",
            *(self._partition.number, challenger.name, state.offset),
        )
        self._end()

    def _end(self) -> None:
        """The rerun is done, or given up."""
        self.close()
        assert self._partition.state
        self._left_at = self._partition.state.sequence
        self._partition.note_progress()

    def _folder_of(self, challenger: Challenger) -> Path:
        return self._settings.daemon.state_dir / _FOLDER / f"{challenger.name}-{challenger.begun}"

    def _remove_others(self) -> None:
        """Remove what reruns have left that are no longer needed."""
        state = self._partition.state
        needed = {self._folder_of(each) for each in state.challengers.catching_up} if state else set()
        for folder in (self._settings.daemon.state_dir / _FOLDER).glob("*"):
            if folder not in needed:
                self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Remove the part of this partition of a folder, and the folder after the last part."""
        shutil.rmtree(folder / f"p{self._partition.number}", ignore_errors=True)
        for each in (folder, folder.parent):
            with suppress(OSError):  # it has others
                each.rmdir()


def _is_here(own: State, place: Stage) -> bool:
    """Whether a rerun that has read everything before a place has read nothing after it."""
    return own.offset <= place.events and own.labels_offset <= place.labels


def _check_classes(own: State, state: State) -> None:
    if own.changes.all != state.changes.all:
        raise ValueError("the classes were changed meanwhile")


def _compare_records(challenger: Challenger, own: State, state: State) -> None:
    """Tell if the numbers of raw events are others than those that the model that serves took."""
    if own.records is not None and state.records is not None and own.records.digest() != state.records.digest():
        logger.warning(
            "challenger %r has learned numbers of raw events as a trainer makes them that begins with the log; those "
            "of this trainer, which it takes from now on, are a little different",
            challenger.name,
        )
