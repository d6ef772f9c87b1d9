"""Runs a trainer, and kills it in the midst of its work, for the tests of what is left."""

import contextlib
import os
from collections.abc import Callable

import pytest

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.trainer import processing, trainer
from streamsvm.connectors.trainer.state import journal
from streamsvm.connectors.trainer.state.checkpoint import CheckpointStore
from streamsvm.connectors.trainer.state.journal import Journal
from streamsvm.connectors.trainer.state.models import KeyedModels
from streamsvm.connectors.trainer.state.remote.objects import ObjectPlace
from streamsvm.connectors.trainer.state.state import State

EFFECTS: tuple[tuple[object, list[str]], ...] = (
    (LocalLog, ["seek", "produce", "flush", "commit"]),  # not poll: how often depends on the time
    (CheckpointStore, ["load", "save"]),
    (os, ["fsync", "replace"]),
    (State, ["to_checkpoint"]),
    (Journal, ["append", "retry", "done"]),
    (KeyedModels, ["_write", "remove_old"]),
    (ObjectPlace, ["_create", "trim"]),
    (processing, ["unusable_rows"]),
)


class Killed(BaseException):
    """As a kill: nothing catches it, and nothing is flushed on its way out."""


class Fuse:
    """Counts steps, and blows at one of them."""

    def __init__(self, blows_at: int | None = None) -> None:
        self.steps = 0
        self.blows_at = blows_at
        self.is_safe = False  # while somebody else is at work

    def __call__(self) -> None:
        if self.is_safe:
            return
        self.steps += 1
        if self.steps == self.blows_at:
            raise Killed

    def around(self, function: Callable) -> Callable:
        def fused(*arguments, **options):
            self()
            result = function(*arguments, **options)
            self()
            return result

        return fused


def run(settings, stop=lambda: False):
    """The state of the only partition after a run."""
    return trainer.run(settings, stop).get(0)


def run_with(settings, fuse, monkeypatch, stop=lambda: False):
    """A run that may be killed before and after every effect on the world, and within the model."""
    with monkeypatch.context() as patch:
        for owner, names in EFFECTS:
            for name in names:
                patch.setattr(owner, name, fuse.around(getattr(owner, name)))
        return trainer.run(settings, stop)


def run_through(settings, later, monkeypatch, changed=lambda settings: settings):
    """Runs, each killed so many steps later than the one before, until one comes through; its states by partition."""
    monkeypatch.setattr(journal, "TRIES", 10**9)  # no record is to be suspected
    states, steps = None, [0]
    while states is None:
        steps.append(steps[-1] + later())
        with contextlib.suppress(Killed):
            states = run_with(changed(settings), Fuse(steps[-1]), monkeypatch)
    assert len(steps) > 4
    return states


def killed_anywhere(make, outcome, apart, monkeypatch, between=lambda settings: None):
    """What comes of a trainer, killed or not; `make` prepares settings under a name."""
    settings, fuse = make("whole"), Fuse()
    expected = outcome(settings, run_with(settings, fuse, monkeypatch))
    assert fuse.steps > 50, fuse.steps
    for place in range(1, fuse.steps + 1, apart):
        settings = make(str(place))
        with pytest.raises(Killed):
            run_with(settings, Fuse(place), monkeypatch)
        between(settings)
        assert outcome(settings, trainer.run(settings)) == expected, f"killed at step {place}"
    return expected
