"""The command ``streamsvm demo``: streams through an embedded log and the trainer, and digits to label."""

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm.contrib.logging import logging_redirect_tqdm

import streamsvm

from ...report import charts
from ...runtime.libraries import LibraryMissing
from ...runtime.log_output import set_up_logging
from ...runtime.process import Stop, stop_on_signals
from ...settings.loading import load
from ...settings.sections import Settings
from ...trainer import trainer
from ...trainer.state.state import State
from ..shared.log_access import fill
from ..shared.long_running import working
from . import digits
from .orders import orders

STREAMS = {"bananas": "Bananas", "phishing": "Phishing", "orders": None}  # names in river.datasets; None: raw records

_CONFIG = """\
[log]
dir = "log"
topic = "{name}"
predictions = "{name}-predictions"
dlq = "{name}-dlq"

[daemon]
state_dir = "state/{name}"
follow = false
"""
_RAW = """
[features]
raw = true
id = "order"
label = "returned"

[label]
positive = "yes"
negative = "no"
"""


def run(arguments: argparse.Namespace) -> None:
    if arguments.label:
        with working(load(digits.prepare(arguments.dir), {})) as stop:
            digits.label_digits(arguments.dir, stop)
        return
    set_up_logging("text")
    with stop_on_signals() as stop, logging_redirect_tqdm():
        learn_streams(arguments.dir, arguments.records, stop)


def learn_streams(folder: Path, n_records: int | None, stop: Stop) -> None:
    """Write the streams into a log, learn them, and show the results; continue where an earlier call ended.

    Parameters
    ----------
    folder
        For the log, the checkpoints and the pictures.
    n_records
        How many records of each stream; None: all.
    stop
        Called between batches; True ends the demonstration.
    """
    print("Preparing the engine ...", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    streamsvm.warmup(streamsvm.LASVM)
    print(f"To see it resume: kill -9 {os.getpid()}, then run the same command again.")
    states, drawn = {}, []
    for name, dataset in STREAMS.items():
        config = folder / f"{name}.toml"
        config.write_text(_CONFIG.format(name=name) + ("" if dataset else _RAW), encoding="utf-8")
        settings = load(config, {})
        fill(settings.log.dir, name, (json.dumps(each).encode() for each in islice(_records(dataset), n_records)))
        state = trainer.run(settings, stop).get(0)
        if state is None or stop():
            print("Stopped; the same command continues from here.")
            return
        states[name] = state
        drawn.append((name, config, settings))
    print(charts.table(states))  # first, because drawing adds kernel evaluations
    for name, state in states.items():
        if (records := state.models.trained(None).records) is not None:
            print(f"what the fields of {name} became:\n{records.summary()}")
    for name, config, settings in drawn:
        print(f"{name}: settings {config}, picture {_picture(settings, states[name], folder / f'{name}.png')}")
        digits.show_report(settings, folder / f"{name}.html", f"of the stream {name}")
    digits.label_by_itself(folder / "labelling", stop)


def _records(dataset: str | None) -> Iterable[Mapping[str, Any]]:
    """The records of a stream: events of a dataset of river, or raw ones."""
    if dataset is None:
        return orders()
    from river import datasets  # loads half of scikit-learn

    return ({"id": number, "x": x, "y": y} for number, (x, y) in enumerate(getattr(datasets, dataset)()))


def _picture(settings: Settings, state: State, path: Path) -> str:
    try:
        charts.draw(settings, state, path)
    except LibraryMissing as error:
        return f"none ({error})"
    return str(path)
