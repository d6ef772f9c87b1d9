"""The command ``streamsvm labels``: write the labels given so far to a file."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..records.formats.base import BadRecord
from ..records.labels import Label
from ..runtime.text import plural
from ..settings.opening import open_once
from ..settings.sections import LabelSettings, Settings
from .shared.configuration import add_config, read_config
from .shared.log_access import read
from .shared.options import Subparsers
from .shared.tables import require_table, write_table

_COLUMNS = ("id", "y", "weight", "rev", "source")


def add_parser(subparsers: Subparsers) -> None:
    command = subparsers.add_parser("labels", help="write the labels given so far to a file")
    command.description = (
        "Read the topic log.labels, and write the label that holds for each event: the newest one, unless it was taken "
        "back. Labels that came inside the events are not included. `streamsvm label --truth` reads the file."
    )
    add_config(command)
    command.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the file to write, .csv or .jsonl (JSON lines)"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, _needs)
    require_table(arguments.out)
    found = labels_that_hold(settings)
    write_table(arguments.out, _COLUMNS, list(_rows(found.labels, settings.label)), "label")
    if found.n_refused:
        print(f"streamsvm: passed over {plural(found.n_refused, 'damaged record')}", file=sys.stderr)


def _needs(settings: Settings) -> Iterator[str]:
    if not settings.log.labels:
        yield "log.labels = '': there is no topic of labels to read; set log.labels to its name"


class Found(NamedTuple):
    """The labels on a topic."""

    labels: list[Label]  # one for each labelled event
    n_refused: int  # records that are no labels


def labels_that_hold(settings: Settings) -> Found:
    """The newest label of each event, by revision and then by offset as in `join`; a retraction removes it."""
    codec, topic = settings.codec(), settings.log.labels
    newest: dict[tuple[int, str | int], Label] = {}
    n_refused = 0
    with open_once(settings) as log:
        for record in read(log, topic, log.start_offsets(topic), log.end_offsets(topic)):
            try:
                label = codec.decode_label(record)
            except BadRecord:
                n_refused += 1
                continue
            place = (record.partition, label.id)
            if label.op in ("set", "retract") and (place not in newest or newest[place].rev <= label.rev):
                newest[place] = label
    return Found([label for label in newest.values() if label.op == "set"], n_refused)


def _rows(labels: Iterable[Label], names: LabelSettings) -> Iterator[dict[str, object]]:
    """The labels as records of log.labels, with the classes' names if the configuration has them."""
    for label in labels:
        y = {True: names.positive, False: names.negative}[bool(label.y)] if names.positive else label.y
        row = {"id": label.id, "y": y, "weight": label.w, "rev": label.rev, "source": label.source}
        yield {name: value for name, value in row.items() if value is not None}
