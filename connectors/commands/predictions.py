"""The command ``streamsvm predictions``: write the predictions of the trainer or of scorers to a file."""

import argparse
import json
from collections import defaultdict
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

_MOST_BETWEEN = 10_000  # events between one that a model answers and one that another has answered first

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
    answered = {"model": str} if settings.split() else {}
    return {**_TYPES, **answered, **({"decided": bool, "labels": str} if settings.decide.error else {})}


def _rows(log: Transport, topic: str, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Each prediction once: a process that was killed may have written some again, with the same place of the event."""
    once = Once()
    for record in read_all(log, topic):
        if record.value is None:
            continue
        fields = read_json(record.value, dict)
        if "labels" in fields:
            fields["labels"] = json.dumps(fields["labels"], ensure_ascii=False)
        if isinstance(made_by := fields.get("model"), dict):
            fields["model"] = made_by.get("name")
        partition, _, offset = str(fields["src"]).rpartition("-")
        if once.is_new(partition, int(offset)):
            yield {name: fields[name] for name in columns if fields.get(name) is not None}


class Once:
    """Knows which events were seen, if they come about in order: where several models answer, one goes first."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._left_out: defaultdict[str, set[int]] = defaultdict(set)  # that may still come

    def is_new(self, partition: str, offset: int) -> bool:
        """Whether an event has not been seen before; it has from now on."""
        newest, left_out = self._newest.get(partition, -1), self._left_out[partition]
        if offset > newest:
            left_out.update(range(max(newest + 1, offset - _MOST_BETWEEN), offset))
            self._newest[partition] = offset
            return True
        is_left_out = offset in left_out
        left_out.discard(offset)
        return is_left_out
