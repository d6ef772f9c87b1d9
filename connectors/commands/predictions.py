"""The command ``streamsvm predictions``: write the predictions of the trainer or of scorers to a file."""

import argparse
import json
from collections.abc import Iterable, Iterator
from typing import Any

from tqdm import tqdm

from ..logs.reading import read_all
from ..logs.transport import Transport
from ..records.formats.json import read_json
from ..records.people.label_files import PARQUET
from ..settings.opening import open_once
from ..settings.sections import Settings
from .shared.configuration import read_config
from .shared.tables import TEXTUAL, require_table, write_table

_TYPES: dict[str, type] = {"id": str, "label": str, "score": float, "margin": float, "src": str}


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, with_model=False)
    require_table(arguments.out, (*TEXTUAL, PARQUET))
    topic = settings.log.scores if arguments.scores else settings.log.predictions
    with open_once(settings) as log:
        rows = tqdm(_rows(log, topic, _types(settings)), "reading", unit=" records", disable=None)
        write_table(arguments.out, _types(settings), rows, "prediction")


def _types(settings: Settings) -> dict[str, type]:
    """The columns; the labels that are left are one text, as JSON."""
    return {**_TYPES, "decided": bool, "labels": str} if settings.decide.error else _TYPES


def _rows(log: Transport, topic: str, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Each prediction once: a process that was killed may have written some again, with the same place of the event."""
    newest: dict[str, int] = {}
    for record in read_all(log, topic):
        if record.value is None:
            continue
        fields = read_json(record.value, dict)
        if "labels" in fields:
            fields["labels"] = json.dumps(fields["labels"], ensure_ascii=False)
        partition, _, offset = str(fields["src"]).rpartition("-")
        if int(offset) > newest.get(partition, -1):
            newest[partition] = int(offset)
            yield {name: fields[name] for name in columns if fields.get(name) is not None}
