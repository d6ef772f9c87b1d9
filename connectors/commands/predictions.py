"""The command ``streamsvm predictions``: write the predictions of the trainer or of scorers to a file."""

import argparse
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from streamsvm.core.arguments import is_number

from ..logs.reading import read_all
from ..logs.transport import Record, Transport
from ..records.codec import readable
from ..records.formats.base import BadRecord
from ..records.formats.json import read_json
from ..records.people.label_files import PARQUET
from ..runtime.text import plural
from ..settings.opening import open_once
from ..settings.sections import Settings
from .shared.configuration import read_config
from .shared.log_access import watched
from .shared.tables import TEXTUAL, require_table, write_table

_BLOCK = 65_536  # offsets whose counts lie together: the offsets of a topic may begin anywhere

_TYPES: dict[str, type] = {"id": str, "label": str, "score": float, "margin": float, "src": str}


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, with_model=False)
    require_table(arguments.out, (*TEXTUAL, PARQUET))
    topic = settings.log.scores if arguments.scores else settings.log.predictions
    types, suffix = _types(settings), arguments.out.suffix
    with open_once(settings) as log:
        rows = watched(_rows(log, topic, types), "reading")
        write_table(arguments.out, types, (_told(row, suffix) for row in rows), "prediction")


def _types(settings: Settings) -> dict[str, type]:
    """The columns."""
    answered = {"model": str} if settings.split() else {}
    return {**_TYPES, **answered, **({"decided": bool, "labels": str} if settings.decide.error else {})}


def _rows(log: Transport, topic: str, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The last prediction of each event: a process that was killed writes some again, one with a new state all."""
    ahead, n_damaged = Ahead(), 0
    for record in read_all(log, topic):
        try:
            ahead.add(*_read(record)[1])
        except BadRecord:
            n_damaged += 1
    if n_damaged:
        print(f"streamsvm: passed over {plural(n_damaged, 'record')} without a prediction", file=sys.stderr)
    for _, (fields, place) in readable(read_all(log, topic), _read):
        if not ahead.is_last(*place):
            continue
        if isinstance(made_by := fields.get("model"), dict):
            fields["model"] = made_by.get("name")
        yield {name: fields[name] for name in columns if fields.get(name) is not None}


def _told(row: dict[str, Any], suffix: str) -> dict[str, Any]:
    """A row as files of this kind tell it: the labels that are left are one text except in JSON lines."""
    if "labels" in row and suffix != ".jsonl":
        row["labels"] = "; ".join(str(int(label) if isinstance(label, bool) else label) for label in row["labels"])
    if "decided" in row and suffix == ".csv":
        row["decided"] = "yes" if row["decided"] else "no"
    return row


def _read(record: Record) -> tuple[dict[str, Any], tuple[str, int]]:
    """A prediction, and the partition and the offset of its event.

    Raises
    ------
    BadRecord
        If the record is no prediction.
    """
    fields: dict[str, Any] = read_json(record.value or b"", dict)
    partition, _, offset = str(fields.get("src")).rpartition("-")
    if not (offset.isdecimal() and len(offset) < 20):
        raise BadRecord("missing-field", "the record has no 'src', the place of its event")
    numbers = [fields[name] for name, kind in _TYPES.items() if kind is float and fields.get(name) is not None]
    is_told = isinstance(fields.get("decided"), bool | None) and isinstance(fields.get("labels"), list | None)
    if not (is_told and all(map(is_number, numbers))):
        raise BadRecord("bad-feature", "a value is of another type than in predictions")
    return fields, (partition, int(offset))


class Ahead:
    """How many predictions of each event are still to be read: four bytes each."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, int], array[int]] = defaultdict(lambda: array("I", [0]) * _BLOCK)

    def add(self, partition: str, offset: int) -> None:
        block, at = divmod(offset, _BLOCK)
        self._counts[partition, block][at] += 1

    def is_last(self, partition: str, offset: int) -> bool:
        """Whether this prediction of an event, which is now read, is the last one that was added."""
        block, at = divmod(offset, _BLOCK)
        counts = self._counts[partition, block]
        n_left = counts[at]
        counts[at] = max(n_left - 1, 0)
        return n_left == 1
