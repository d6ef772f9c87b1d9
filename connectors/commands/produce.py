"""The command ``streamsvm produce``: write the events or the labels of a file into a topic."""

import argparse
import os
import sys
from array import array
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import islice

import numpy as np

from ..logs.transport import Transport, Unavailable
from ..records.columns import Columns
from ..records.files import events_with_ids, read_events
from ..runtime.text import plural
from ..settings import topics
from ..settings.loading import load
from ..settings.opening import backend_of, open_once
from ..settings.sections import ConfigError, LogSettings, Settings, refuse
from .shared.configuration import check_file, columns_of, misplaced, tell_unlabelled
from .shared.labels_in import LabelFile, Placed
from .shared.log_access import flush, watched

_RAW_HINT = "; --raw takes texts, blanks and times as they are"
_NO_FEATURES = b'"x":{}'  # in an event
_OWN_FIELDS = ("id", "x", "y", "w", "ts")  # of an event; a column for people cannot have these names
_HINT = "; with --show {column}, annotators see the column, and the model does not learn it" + _RAW_HINT
_MULTICLASS_HINT = "; for more than two classes, list them in [label] classes and use --config"


def run(arguments: argparse.Namespace) -> None:
    given = LogSettings(dir=arguments.dir, labels="labels")
    settings = load(arguments.config, os.environ, with_model=False) if arguments.config else Settings(log=given)
    check_file(arguments)
    if arguments.positive and settings.label.vocabulary:
        raise ConfigError("--positive names one of two classes, but the configuration has more (label.classes)")
    arguments.topic = arguments.topic or (settings.log.labels if arguments.labels else settings.log.topic)
    if arguments.labels:
        _produce_labels(arguments, settings)
    else:
        _produce_events(arguments, settings)


def _produce_events(arguments: argparse.Namespace, settings: Settings) -> None:
    columns = _columns(arguments, settings)
    if settings.log.format != "json" and arguments.topic == settings.log.topic:
        raise ConfigError(f"log.format = {settings.log.format!r}: produce writes JSON, which nothing here would read")
    n_records = n_empty = 0
    ids = array("q")  # their hashes: eight bytes each
    for value, id_ in watched(events_with_ids(arguments.file, arguments.format, columns), "checking"):
        n_records += 1
        n_empty += _NO_FEATURES in value
        if id_ is not None:
            ids.append(hash(repr(id_)))  # that of -1 would be that of -2
    tell_unlabelled(columns)
    if n_empty:
        print(
            f"streamsvm: {plural(n_empty, 'record')} of {n_records} without features, which a model cannot tell apart; "
            "with --raw, texts are features",
            file=sys.stderr,
        )
    if n_again := len(ids) - len(np.unique(ids)):
        print(
            f"streamsvm: {plural(n_again, 'record')} of {n_records} with the id of an earlier one, whose place in the "
            "model the later one takes; use each id once",
            file=sys.stderr,
        )
    with _open(settings, arguments.topic) as log:
        records = ((value, None) for value in read_events(arguments.file, arguments.format, columns))
        _write(arguments, settings, log, records, n_records, "record")


def _write(
    arguments: argparse.Namespace, settings: Settings, log: Transport, records: Iterable[Placed], total: int, noun: str
) -> None:
    """Write records, and say so; if that ends early, say what is written: a second try would write it twice."""
    topic = arguments.topic
    before = sum(log.end_offsets(topic).values())
    try:
        for value, home in islice(watched(records, "writing", total), arguments.skip, None):
            log.produce(topic, value, key=home and home.key, partition=home and home.partition)
        flush(log)
    except BaseException:
        n_written = "an unknown number of"
        with suppress(OSError, Unavailable):
            n_written = str(sum(log.end_offsets(topic).values()) - before)
        print(
            f"streamsvm: topic {topic} has got {n_written} of the records; once the cause is mended, the same command "
            f"with --skip {arguments.skip + int(n_written) if n_written.isdecimal() else 'N'} writes the others",
            file=sys.stderr,
        )
        raise
    what = f"{plural(max(0, total - arguments.skip), noun)} from {arguments.file}"
    there = sum(log.end_offsets(topic).values())
    print(f"appended {what} to topic {topic} of {backend_of(settings).name}, which now has {there}")


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
    columns = columns_of(arguments, settings)
    if columns.raw == "flat" and (named or series):
        problems.append(
            "--text, --image, --series and --show: records stay as they are, because [features] names a field of them; "
            "name the fields that people see in [labelling]"
        )
    if arguments.time and not columns.raw:
        problems.append("--time goes with raw records: --raw, or [features] raw = true in the configuration")
    refuse(problems)
    learned = tuple(column for column in (arguments.text, arguments.series) if columns.raw and column is not None)
    return replace(
        columns, shown=dict(named), series=dict(series), learned=learned, hint=_HINT, multiclass_hint=_MULTICLASS_HINT
    )


def _produce_labels(arguments: argparse.Namespace, settings: Settings) -> None:
    of_events = dict.fromkeys(("text", "image", "series")) | {"show": []}
    problems = list(misplaced(arguments, [("events", False, of_events)]))
    if not arguments.topic:
        problems.append("log.labels = '': there is no topic for labels; set log.labels to its name, or use --topic")
    refuse(problems)
    file = LabelFile(arguments.file, arguments.format, columns_of(arguments, settings), settings)
    n_labels = file.check()
    with _open(settings, arguments.topic) as log:
        if missing := file.find_events(log):
            print(f"topic {settings.log.topic} has no event yet for {plural(missing, 'label')}")
        _write(arguments, settings, log, file.placed(), n_labels, "label")


def _open(settings: Settings, topic: str) -> AbstractContextManager[Transport]:
    """Open the log; its client would wait for a topic that does not exist."""
    if not backend_of(settings).makes_topics:
        topics.check(settings, [topic])
    return open_once(settings)
