"""The command ``streamsvm produce``: write the records of a file into a topic."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from ..records.files import Columns, read_events
from ..settings import topics
from ..settings.loading import load
from ..settings.opening import backend_of, open_once
from ..settings.sections import LogSettings, Settings
from .shared import options
from .shared.log_access import flush


def add_parser(subparsers: options.Subparsers) -> None:
    command = subparsers.add_parser("produce", help="write the records of a file into a topic")
    command.description = (
        "Write each row of a file as an event. The file is CSV with a header, JSON lines (events, or flat objects), "
        "LIBSVM format, or npz. An npz file holds X and y, or a CSR matrix as data, indices, indptr and y; its other "
        "arrays are ignored. Without --label, the events of a CSV file or of flat objects have no label. The whole "
        "file is checked before the first record is written."
    )
    options.add_file(command, "the file to read")
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--dir", type=Path, help="folder of the embedded log")
    where.add_argument("--config", type=Path, metavar="CONFIG.toml", help="configuration that names the log")
    command.add_argument(
        "--topic", type=options.topic, help="topic to write to (default: log.topic of the configuration, else 'events')"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = load(arguments.config, os.environ) if arguments.config else Settings(log=LogSettings(dir=arguments.dir))
    topic = arguments.topic or settings.log.topic
    columns = Columns(arguments.label, arguments.id, arguments.positive)

    def events(description: str, total: int | None = None) -> Iterator[bytes]:
        values = read_events(arguments.file, arguments.format, columns)
        return tqdm(values, description, total=total, unit=" records", disable=None)

    n_records = sum(1 for _ in events("checking"))
    backend = backend_of(settings)
    if not backend.makes_topics:
        topics.check(settings, [topic])  # the client would wait for a topic that does not exist
    with open_once(settings) as target:
        for value in events("writing", n_records):
            target.produce(topic, value)
        flush(target)
        total = sum(target.end_offsets(topic).values())
    where = f"topic {topic} of {backend.name}, which now has {total}"
    print(f"appended {n_records} records from {arguments.file} to {where}")
