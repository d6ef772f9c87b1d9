"""The command ``streamsvm produce``: write the events or the labels of a file into a topic."""

import argparse
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tqdm import tqdm

from ..logs.transport import Transport
from ..records.columns import Columns
from ..records.files import read_events
from ..runtime.text import plural
from ..settings import topics
from ..settings.loading import load
from ..settings.opening import backend_of, open_once
from ..settings.sections import ConfigError, LogSettings, Settings
from .shared import options
from .shared.labels_in import LabelFile
from .shared.log_access import flush

_OWN_FIELDS = ("id", "x", "y", "w", "ts")  # of an event; a column for people cannot have these names
_HINT = "; with --show {column}, annotators see the column, and the model does not learn it"
_SEVERAL_HINT = "; for more than two classes, list them in [label] classes and use --config"


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write each row of a file as an event. The file is CSV with a header, JSON lines (events, or flat objects), "
        "LIBSVM format, or npz. An npz file holds X and y, or a CSR matrix as data, indices, indptr and y; its other "
        "arrays are ignored. Without --label, the events of a CSV file or of flat objects have no label. The whole "
        "file is checked before the first record is written. With --labels, the rows are labels of events that the "
        "log has: CSV, JSON lines or Parquet with the columns id and y, such as `streamsvm labels` writes. Each label "
        "goes to the partition of its event, and replaces the label that the event has."
    )
    options.add_file(command, "the file to read")
    command.add_argument("--text", metavar="COLUMN", help="column of a text that annotators read; it is not a feature")
    command.add_argument("--image", metavar="COLUMN", help="column of an image's address that annotators see")
    command.add_argument("--series", metavar="COLUMN", help="column of numbers, as in '1 2 4', drawn as a curve")
    command.add_argument(
        "--show", type=options.names, default=[], metavar="COLUMNS", help="other columns that annotators see, as A,B"
    )
    command.add_argument("--labels", action="store_true", help="the rows are labels or corrections, not events")
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--dir", type=Path, help="folder of the embedded log")
    where.add_argument("--config", type=Path, metavar="CONFIG.toml", help="configuration that names the log")
    command.add_argument(
        "--topic",
        type=options.topic,
        help="topic to write to (default: log.topic or log.labels of the configuration, else 'events' or 'labels')",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    given = LogSettings(dir=arguments.dir, labels="labels")
    settings = load(arguments.config, os.environ) if arguments.config else Settings(log=given)
    if arguments.positive and settings.label.vocabulary:
        raise ConfigError(["--positive names one of two classes, but the configuration has more (label.classes)"])
    if arguments.labels:
        _produce_labels(arguments, settings)
    else:
        _produce_events(arguments, settings)


def _produce_events(arguments: argparse.Namespace, settings: Settings) -> None:
    columns = _columns(arguments, settings)
    topic = arguments.topic or settings.log.topic

    def events(description: str, total: int | None = None) -> Iterator[bytes]:
        values = read_events(arguments.file, arguments.format, columns)
        return tqdm(values, description, total=total, unit=" records", disable=None)

    n_records = sum(1 for _ in events("checking"))
    with _open(settings, topic) as target:
        for value in events("writing", n_records):
            target.produce(topic, value)
        _end(target, topic, settings, f"{n_records} records from {arguments.file}")


def _columns(arguments: argparse.Namespace, settings: Settings) -> Columns:
    """The meaning of the file's columns; raises `ConfigError` if two of them would be the same field of an event."""
    fields = settings.labelling
    shown = [(fields.text, arguments.text), (fields.image, arguments.image), *((name, name) for name in arguments.show)]
    named = [(part, column) for part, column in shown if column is not None]
    series = [] if arguments.series is None else [(fields.series, arguments.series)]
    problems = [
        f"--show {part}: the field {part!r} of an event has a meaning of its own; rename the column"
        for part, _ in named
        if part in _OWN_FIELDS
    ]
    counted = Counter(part for part, _ in [*named, *series])
    problems += [f"two columns would be the field {part!r} of an event" for part, n in counted.items() if n > 1]
    if problems:
        raise ConfigError(problems)
    main, classes = (arguments.label, arguments.id, arguments.positive), settings.label.vocabulary
    return Columns(
        *main, shown=dict(named), series=dict(series), hint=_HINT, classes=classes, several_hint=_SEVERAL_HINT
    )


def _produce_labels(arguments: argparse.Namespace, settings: Settings) -> None:
    topic = arguments.topic or settings.log.labels
    problems = [
        f"--{name}: labels have no such column; it goes with events"
        for name in ("text", "image", "series", "show")
        if getattr(arguments, name)
    ]
    if not topic:
        problems.append("log.labels = '': there is no topic for labels; set log.labels to its name, or use --topic")
    if problems:
        raise ConfigError(problems)
    columns = Columns(arguments.label, arguments.id, arguments.positive, classes=settings.label.vocabulary)
    file = LabelFile(arguments.file, arguments.format, columns, settings)
    n_labels = file.check()
    with _open(settings, topic) as target:
        missing = file.find_events(target)
        for value, place in tqdm(file.placed(), "writing", total=n_labels, unit=" records", disable=None):
            target.produce(topic, value, key=place.key, partition=place.partition)
        if missing:
            print(f"topic {settings.log.topic} has no event yet for {plural(missing, 'label')}")
        _end(target, topic, settings, f"{plural(n_labels, 'label')} from {arguments.file}")


def _open(settings: Settings, topic: str) -> AbstractContextManager[Transport]:
    """Open the log; its client would wait for a topic that does not exist."""
    if not backend_of(settings).makes_topics:
        topics.check(settings, [topic])
    return open_once(settings)


def _end(target: Transport, topic: str, settings: Settings, what: str) -> None:
    """Make the records durable, and say so."""
    flush(target)
    total = sum(target.end_offsets(topic).values())
    print(f"appended {what} to topic {topic} of {backend_of(settings).name}, which now has {total}")
