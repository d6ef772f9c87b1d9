"""The demonstration: two real streams through a local log and the daemon."""

import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import river.datasets

import streamsvm

from ..logs.embedded import LocalLog
from ..report import charts as report
from ..runtime.process import Stop
from ..settings.loading import load
from ..settings.sections import Settings
from ..trainer import trainer as daemon
from ..trainer.state.state import State


class Stream(NamedTuple):
    """A stream of the demonstration, and the settings it is learned with."""

    dataset: Callable[[], river.datasets.base.Dataset]
    C: float
    gamma: float


STREAMS = {
    "bananas": Stream(river.datasets.Bananas, C=10.0, gamma=0.5),
    "phishing": Stream(river.datasets.Phishing, C=1.0, gamma=0.1),
}

_CONFIG = """\
[log]
dir = "log"
topic = "{name}"
predictions = "{name}-predictions"
dlq = "{name}-dlq"

[model]
C = {C}
gamma = {gamma}

[daemon]
state_dir = "state/{name}"
follow = false
"""


def run(folder: Path, n_records: int | None, stop: Stop) -> None:
    """Write the streams into a log, consume them, and show the outcome; go on where an earlier call was ended.

    Parameters
    ----------
    folder
        Of the log, the checkpoints and the pictures.
    n_records
        How much of each stream; None: all.
    stop
        Asked between batches.
    """
    folder.mkdir(parents=True, exist_ok=True)
    print("Preparing the engine, which is compiled once per installation: one to several minutes ...", flush=True)
    streamsvm.warmup(streamsvm.LASVM)
    print(f"To see it resume: kill -9 {os.getpid()}, then the same command again.")
    states, drawn = {}, []
    for name, stream in STREAMS.items():
        config = folder / f"{name}.toml"
        config.write_text(_CONFIG.format(name=name, C=stream.C, gamma=stream.gamma), encoding="utf-8")
        settings = load(config, {})
        _fill(settings.log.dir, name, islice(stream.dataset(), n_records))
        state = daemon.run(settings, stop).get(0)
        if state is None or stop():
            print("Stopped; the same command goes on from here.")
            return
        states[name] = state
        drawn.append((name, config, settings))
    print(report.table(states))  # before the pictures, whose decision values would count as kernel evaluations
    for name, config, settings in drawn:
        print(f"{name}: settings {config}, picture {_picture(settings, states[name], folder / f'{name}.png')}")


def _fill(folder: Path, topic: str, events: Iterator[tuple[dict[str, float], bool]]) -> None:
    """Append what the topic does not have yet."""
    with LocalLog(folder) as log:
        there = log.end_offsets(topic).get(0, 0)
        for number, (x, y) in enumerate(events):
            if number >= there:
                log.produce(topic, json.dumps({"id": number, "x": x, "y": y}).encode())
        log.flush()


def _picture(settings: Settings, state: State, path: Path) -> str:
    try:
        report.draw(settings, state, path)
    except report.PlotMissing as error:
        return f"none ({error})"
    return str(path)
