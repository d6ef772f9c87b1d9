"""The command ``streamsvm bisect``: which records broke the model.

A model is trained along the log once, with a checkpoint every tenth of the way.  Every two-hundredth, it looks at the
held-out events: an online model may learn its way out of what broke it.  Where their loss has risen most, a binary
search goes on from the checkpoints: it looks at the model halfway, and goes on with the half that has raised the loss.
If both halves have, the records lie around the middle, and their ends are searched for.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ...logs.reading import read_all, read_one, read_partition
from ...logs.transport import Transport
from ...records.codec import Event
from ...records.formats.base import BadRecord
from ...records.predictions import predictions_of
from ...records.said import answer_of, probability_of
from ...records.times import order
from ...runtime.process import Stop
from ...settings.opening import open_once
from ...settings.sections import ConfigError, Settings
from ...trainer.rerun import Rerun, Stage, erased_by, requests_of
from ...trainer.state.state import State
from ..shared.configuration import read_config
from ..shared.long_running import replaying

MOST = 20  # replays
_NEEDS = {'daemon.per = "partition"': "bisect looks at one model of a partition, so it must be 'partition'"}
_PARTS = 10  # of the first pass, each with a checkpoint
_LOOKS = 200  # of the first pass
_MOST_EVENTS = 2000  # held-out events, because each look predicts them all
_FEWEST = 20  # held-out events
_SMALLEST = 1 / 400  # of the log: in fewer records, the loss rises and falls by chance
_CLEAR = 4.0  # standard errors by which a loss must rise
_UNUSUAL = 5.0  # times the middle change between two looks
_NEARLY_ALL, _NEARLY_NONE = 0.8, 0.1  # of a rise
_LEAST = 1e-4  # probability: one event says no more than its logarithm


class Look(NamedTuple):
    """What a model says about the held-out events: the loss and the error of each, (n,)."""

    losses: np.ndarray
    errors: np.ndarray


class Batch(NamedTuple):
    """Records that have raised the loss, by their offsets, and how much."""

    first: int
    end: int
    before: Look
    after: Look

    @property
    def rise(self) -> float:
        """The rise of the mean loss."""
        return float(np.mean(self.after.losses - self.before.losses))

    @property
    def deviation(self) -> float:
        """Standard error of the rise, over the held-out events."""
        differences = self.after.losses - self.before.losses
        return float(differences.std() / np.sqrt(len(differences)))


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, _NEEDS)
    with replaying(settings) as stop:
        events = _held_out(settings, arguments.held_out)
        with tempfile.TemporaryDirectory(prefix="streamsvm-bisect-") as folder:
            batch, n_replays = bisect(settings, arguments.partition, events, Path(folder), stop)
    where = f"{settings.log.topic}-{arguments.partition}"
    if batch is None:
        print(f"after the first tenth of {where}, nothing has clearly raised the loss on {len(events)} held-out events")
        return
    print(f"{where}, offsets {batch.first} to {batch.end}: {batch.end - batch.first} records")
    for name in ("losses", "errors"):
        before, after = (float(np.mean(getattr(look, name))) for look in (batch.before, batch.after))
        shown = f"{100 * before:.2f}% to {100 * after:.2f}%" if name == "errors" else f"{before:.4f} to {after:.4f}"
        print(f"{'error' if name == 'errors' else 'log loss'} on {len(events)} held-out events: from {shown}")
    print(f"the loss rose by {batch.rise:.4f} +- {batch.deviation:.4f}; {n_replays} replays")


def _held_out(settings: Settings, topic: str) -> list[Event]:
    """The labelled events of a topic."""
    codec, found = settings.codec(), []
    with open_once(settings) as log:
        for record in read_all(log, topic):
            try:
                event = codec.decode(record)
            except BadRecord as error:
                raise ConfigError(f"--held-out {topic}: offset {record.offset}: {error.detail}") from None
            if event.y is not None:
                found.append(event)
    if len(found) < _FEWEST:
        raise ConfigError(f"--held-out {topic}: it has {len(found)} labelled events, at least {_FEWEST} are needed")
    chosen = np.linspace(0, len(found) - 1, min(len(found), _MOST_EVENTS)).astype(int)
    return [found[i] for i in chosen.tolist()]


def bisect(settings: Settings, number: int, events: list[Event], folder: Path, stop: Stop) -> tuple[Batch | None, int]:
    """Find the records of a partition that have raised the loss on some events most.

    Parameters
    ----------
    settings
        The configuration of the trainer.
    number
        The partition.
    events
        Labelled events that are not in the log.
    folder
        For the checkpoints.
    stop
        Asked between cuts; True ends the search with an error.

    Returns
    -------
    batch, n_replays
        The records, or None if the loss has not clearly risen after the first tenth; and the number of replays.

    Raises
    ------
    ConfigError
        If the log does not have the partition.
    """
    topic = settings.log.topic
    with open_once(settings) as log:
        starts, ends = log.start_offsets(topic), log.end_offsets(topic)
        if number not in starts:
            numbers = ", ".join(map(str, sorted(starts))) or "none"
            raise ConfigError(f"--partition {number}: {topic!r} does not have it; its partitions are {numbers}")
        first, end = starts[number], ends[number]
        models = _Models(log, settings, number, events, folder, stop)
        batch = _search(models, np.linspace(first, end, _PARTS + 1).astype(int).tolist())
    return batch, models.n_replays


def _search(models: "_Models", ends: list[int]) -> Batch | None:
    """The narrowest range that has nearly all of the largest rise after the first of these offsets."""
    n_records = ends[-1] - ends[0]
    looks = models.along(ends[1:], max(1, n_records // _LOOKS))
    batch = _largest(looks)
    if batch is None:
        return None
    batch = batch._replace(before=models.at(batch.first), after=models.at(batch.end))
    middle, smallest = None, max(1.0, _SMALLEST * n_records)
    while middle is None and models.n_replays < MOST and batch.end - batch.first > smallest:
        batch, middle = _half(models, batch)
    return batch if middle is None else _trimmed(models, batch, middle, smallest)


def _largest(looks: list[tuple[int, Look]]) -> Batch | None:
    """The largest rise over two steps between looks, if it is clear; of records in a row, a step may have a part."""
    parts = [Batch(a, b, before, after) for (a, before), (b, after) in zip(looks, looks[2:], strict=False)]
    if not parts:
        return None
    usual = float(np.median([abs(part.rise) for part in parts]))
    best = max(parts, key=lambda part: part.rise)
    return best if best.rise > _CLEAR * best.deviation and best.rise > _UNUSUAL * usual else None


def _half(models: "_Models", batch: Batch) -> tuple[Batch, int | None]:
    """The half that has nearly all of the rise; the whole and its middle, if both halves have a part."""
    middle = (batch.first + batch.end) // 2
    for half in _cut(models, batch, middle):
        if half.rise >= _NEARLY_ALL * batch.rise:
            return half, None
    return batch, middle


def _trimmed(models: "_Models", batch: Batch, middle: int, smallest: float) -> Batch:
    """The part of a range around its middle that has nearly all of its rise."""
    whole, low, high = batch.rise, middle, middle
    while models.n_replays < MOST and max(low - batch.first, batch.end - high) > max(1.0, smallest / 2):
        is_left = low - batch.first >= batch.end - high
        place = (batch.first + low) // 2 if is_left else (high + batch.end) // 2
        left, right = _cut(models, batch, place)
        outer, rest = (left, right) if is_left else (right, left)
        if outer.rise < _NEARLY_NONE * whole:
            batch = rest
        elif is_left:
            low = place
        else:
            high = place
    return batch


def _cut(models: "_Models", batch: Batch, place: int) -> tuple[Batch, Batch]:
    """The parts of a range before a place and from it on."""
    look = models.at(place)
    return Batch(batch.first, place, batch.before, look), Batch(place, batch.end, look, batch.after)


class _Models:
    """The models at offsets of the log; each is trained from the nearest checkpoint before it, without erased records.

    Labels belong before the events that are later than they, by the records' times.
    """

    def __init__(
        self, log: Transport, settings: Settings, number: int, events: list[Event], folder: Path, stop: Stop
    ) -> None:
        self._log, self._settings, self._number = log, settings, number
        self._events, self._folder, self._stop = events, folder, stop
        self._known: set[int] = set()
        self._is_erased = erased_by(settings, requests_of(settings, number))
        labels = settings.log.labels
        own = read_partition(log, labels, number) if labels else ()
        times = [order(record.timestamp, record.offset) for record in own]
        self._labels = np.maximum.accumulate(times) if times else np.zeros(0)
        self._first_label = log.start_offsets(labels).get(number, 0) if labels else 0

    @property
    def n_replays(self) -> int:
        """How often records were read."""
        return len(self._known)

    def along(self, ends: list[int], step: int) -> list[tuple[int, Look]]:
        """Train up to each of these offsets, and look at the held-out events at every step after the first."""
        looks: list[tuple[int, Look]] = []

        def see(state: State) -> None:
            if state.offset >= (looks[-1][0] if looks else ends[0]) + (step if looks else 0):
                looks.append((state.offset, _look(state, self._events)))

        for end in tqdm(ends, "training along the log", disable=None):
            self._trained(end, see)
        return looks

    def at(self, offset: int) -> Look:
        """Train up to an offset, keep a checkpoint there, and look at the held-out events."""
        return _look(self._trained(offset), self._events)

    def _trained(self, offset: int, see: Callable[[State], object] = lambda state: None) -> State | None:
        folder = self._folder / str(offset)
        before = max((known for known in self._known if known < offset), default=None)
        if before is not None and not folder.exists():
            shutil.copytree(self._folder / str(before), folder)
        state = Rerun(self._settings, self._number, folder, self._is_erased).run(self._stage(offset), self._stop, see)
        if self._stop():
            raise KeyboardInterrupt
        self._known.add(offset)
        return state

    def _stage(self, offset: int) -> Stage:
        """The place of an event, and of the labels that come before it."""
        newest = read_one(self._log, self._settings.log.topic, self._number, offset - 1)
        n_labels = np.searchsorted(self._labels, order(newest.timestamp, newest.offset)) if newest else 0
        return Stage(offset, self._first_label + int(n_labels))


def _look(state: State | None, events: list[Event]) -> Look:
    if state is None:
        raise ConfigError("the log has no events before the first place to look at")
    rows = state.rows([event.x for event in events], None)
    said = predictions_of(state.model, rows)
    pairs = [(each, event.y) for each, event in zip(said, events, strict=True) if event.y is not None]  # all have one
    right = np.array([probability_of(each, y) for each, y in pairs])
    wrong = [answer_of(each) != y for each, y in pairs]
    return Look(-np.log(np.maximum(right, _LEAST)), np.array(wrong))
