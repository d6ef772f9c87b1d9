"""The command ``streamsvm predictions``: write the predictions of the trainer or of scorers to a file."""

import argparse
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from ..logs.reading import read_all
from ..logs.transport import Transport
from ..records.formats.json import read_json
from ..records.people.label_files import PARQUET
from ..settings.opening import open_once
from .shared.configuration import read_config
from .shared.tables import TEXTUAL, require_table, write_table

_TYPES: dict[str, type] = {"id": str, "label": str, "score": float, "margin": float, "src": str}


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, with_model=False)
    require_table(arguments.out, (*TEXTUAL, PARQUET))
    topic = settings.log.scores if arguments.scores else settings.log.predictions
    with open_once(settings) as log:
        rows = tqdm(_rows(log, topic), "reading", unit=" records", disable=None)
        write_table(arguments.out, _TYPES, rows, "prediction")


def _rows(log: Transport, topic: str) -> Iterator[dict[str, Any]]:
    """Each prediction once: a process that was killed may have written some again, with the same place of the event."""
    newest: dict[str, int] = {}
    for record in read_all(log, topic):
        if record.value is None:
            continue
        fields = read_json(record.value, dict)
        partition, _, offset = str(fields["src"]).rpartition("-")
        if int(offset) > newest.get(partition, -1):
            newest[partition] = int(offset)
            yield {name: fields[name] for name in _TYPES if fields.get(name) is not None}
