"""The command ``streamsvm lag``: how far the trainers and the scorers are."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..logs.transport import TopicMismatch
from ..runtime.text import aligned
from ..settings.opening import backend_of, open_once
from ..settings.sections import Settings
from .shared.configuration import read_config


def run(arguments: argparse.Namespace) -> None:
    found = lags(read_config(arguments, with_model=False))
    if arguments.json:
        print(json.dumps([lag._asdict() for lag in found]))
        return
    print(aligned([Lag._fields, *([_shown(cell) for cell in lag] for lag in found)], left=2))


def _shown(cell: object) -> str:
    return "-" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


class Lag(NamedTuple):
    """How far a group of consumers is in a partition."""

    group: str
    topic: str
    partition: int
    committed: int | None  # None: the group has not begun with this partition
    end: int
    lag: int


def lags(settings: Settings) -> list[Lag]:
    """The lag of the trainers, and of the scorers if the configuration has a topic of models for them."""
    log = settings.log
    readers = {settings.group.id: log.inputs}
    if log.model:
        readers[f"{settings.group.id}-score"] = (log.topic,)
    return [lag for group, names in readers.items() for lag in _lags(settings, group, names)]


def _lags(settings: Settings, group: str, names: Sequence[str]) -> Iterator[Lag]:
    with open_once(settings, group) as log:
        for name in names:
            if not log.start_offsets(name) and not backend_of(settings).makes_topics:
                raise TopicMismatch(f"there is no topic {name!r}; `streamsvm topics CONFIG.toml` lists the topics")
            committed, starts = log.committed(name), log.start_offsets(name)
            for partition, end in sorted(log.end_offsets(name).items()):
                at = committed[partition].offset if partition in committed else None
                behind = end - max(at or 0, starts.get(partition, 0))  # Retention may have removed what was not read.
                # A group that has read an open transaction is ahead of `end`.
                yield Lag(group, name, partition, at, end, max(0, behind))
